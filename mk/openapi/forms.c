/*
 * forms.c: runs the decoders of requests over probes, and notes what they ask for.
 */
#include "forms.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/json/node.h"
#include "codec/model/request.h"
#include "codec/request/envelope.h"

enum { PATH_MAX_BYTES = 512, ARENA_BYTES = 64 << 20 };

/* Values of every type, in the lists and pairs that decoders look into. */
static const char *const probes[] = {"true", "1", "\"?\"", "\"0-2\"", "[1]", "[1, 1]", "[[1]]", "[\"?\"]", "[[\"?\"]]"};
/* Members that decoders look at first, because they choose among objects. */
static const char *const choosers[] = {NULL, "type", "pattern", "query"};

static const char *const types[] = {[JSON_OBJECT] = "object",   [JSON_ARRAY] = "array", [JSON_STRING] = "string",
                                    [JSON_INTEGER] = "integer", [JSON_REAL] = "number", [JSON_TRUE] = "boolean"};

static json_t *noted;       /* {pointer: forms} */
static size_t notes;        /* calls of note */
static const char *chooser; /* of the object that is being tried; NULL: none */
static size_t choice;       /* the word that the chooser is given */
static size_t choices;      /* words that it has; 0: it is not asked for a word */
static const char *chosen;  /* the word; NULL: none */

/* ---- noting ---- */

static void write_path(const struct node *node, char path[PATH_MAX_BYTES])
{
    if (node->parent == NULL) {
        path[0] = '\0';
        return;
    }
    write_path(node->parent, path);
    strncat(path, "/", PATH_MAX_BYTES - strlen(path) - 1);
    strncat(path, node->name != NULL ? node->name : "*", PATH_MAX_BYTES - strlen(path) - 1);
}

/* Takes over form. */
static void note(const struct node *node, json_t *form)
{
    char path[PATH_MAX_BYTES];
    write_path(node, path);
    json_t *forms = json_object_get(noted, path), *other;
    if (forms == NULL)
        json_object_set_new(noted, path, forms = json_array());
    notes++;
    size_t i;
    json_array_foreach(forms, i, other)
    {
        if (json_equal(form, other)) {
            json_decref(form);
            return;
        }
    }
    json_array_append_new(forms, form);
}

static void note_type(const struct node *node, const char *type)
{
    note(node, json_pack("{ss}", "type", type));
}

static void note_component(const struct node *node, const char *name)
{
    note(node, json_pack("{ss+}", "$ref", "#/components/schemas/", name));
}

/* ---- in the places of node.h ---- */

bool __wrap_node_string(const struct reading *reading, const struct node *node, const char **text, size_t *length);
attn_status __wrap_node_check_members(struct reading *reading, const struct node *node, const struct member *members,
                                      size_t count);
attn_status __wrap_node_decode_members(struct reading *reading, const struct node *node, const struct member *members,
                                       size_t count, void *to);
attn_status __wrap_node_decode_list(struct reading *reading, const struct node *node, const char *wanted,
                                    struct node *list);
attn_status __wrap_node_decode_number(struct reading *reading, const struct node *node, const char *wanted,
                                      double *value);
attn_status __wrap_node_decode_integer(struct reading *reading, const struct node *node, int64_t low, int64_t high,
                                       int64_t *value);
attn_status __wrap_node_decode_word(struct reading *reading, const struct node *node, const char *const *words,
                                    size_t count, size_t *index);
decode_function __wrap_node_decode_bool, __wrap_node_decode_positive, __wrap_node_decode_seed;

bool __wrap_node_string(const struct reading *reading, const struct node *node, const char **text, size_t *length)
{
    if (node_has_failed(reading) || !json_is_string(node->json))
        return false;
    note_type(node, "string");
    *text = json_string_value(node->json);
    *length = json_string_length(node->json);
    return true;
}

attn_status __wrap_node_check_members(struct reading *reading, const struct node *node, const struct member *members,
                                      size_t count)
{
    (void)node;
    (void)members;
    (void)count;
    return reading->status;
}

attn_status __wrap_node_decode_list(struct reading *reading, const struct node *node, const char *wanted,
                                    struct node *list)
{
    (void)wanted;
    *list = (struct node){0};
    if (node_has_failed(reading) || !json_is_array(node->json))
        return node_note(reading, ATTN_ERR_FIELD);
    note_type(node, "array");
    *list = *node;
    json_incref(list->json);
    return ATTN_OK;
}

attn_status __wrap_node_decode_number(struct reading *reading, const struct node *node, const char *wanted,
                                      double *value)
{
    (void)wanted;
    if (node_has_failed(reading) || !json_is_number(node->json))
        return node_note(reading, ATTN_ERR_FIELD);
    note_type(node, "number");
    *value = json_number_value(node->json);
    return ATTN_OK;
}

attn_status __wrap_node_decode_positive(struct reading *reading, const struct node *node, void *to)
{
    if (node_has_failed(reading) || !json_is_number(node->json))
        return node_note(reading, ATTN_ERR_FIELD);
    note(node, json_pack("{sssi}", "type", "number", "exclusiveMinimum", 0));
    *(double *)to = json_number_value(node->json);
    return ATTN_OK;
}

attn_status __wrap_node_decode_integer(struct reading *reading, const struct node *node, int64_t low, int64_t high,
                                       int64_t *value)
{
    if (node_has_failed(reading) || !json_is_number(node->json))
        return node_note(reading, ATTN_ERR_FIELD);
    json_t *form = json_pack("{ss}", "type", "integer");
    if (low > INT64_MIN)
        json_object_set_new(form, "minimum", json_integer(low));
    if (high < INT64_MAX)
        json_object_set_new(form, "maximum", json_integer(high));
    note(node, form);
    *value = low;
    return ATTN_OK;
}

attn_status __wrap_node_decode_seed(struct reading *reading, const struct node *node, void *to)
{
    int64_t seed = 0;
    __wrap_node_decode_integer(reading, node, 0, INT64_MAX, &seed);
    *(uint64_t *)to = (uint64_t)seed;
    return reading->status;
}

attn_status __wrap_node_decode_bool(struct reading *reading, const struct node *node, void *to)
{
    if (node_has_failed(reading) || !json_is_boolean(node->json))
        return node_note(reading, ATTN_ERR_FIELD);
    note_type(node, "boolean");
    *(bool *)to = true;
    return ATTN_OK;
}

attn_status __wrap_node_decode_word(struct reading *reading, const struct node *node, const char *const *words,
                                    size_t count, size_t *index)
{
    if (node_has_failed(reading) || !json_is_string(node->json))
        return node_note(reading, ATTN_ERR_FIELD);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(words[i]));
    note(node, json_pack("{ssso}", "type", "string", "enum", list));
    *index = 0;
    if (chooser != NULL && node->name != NULL && strcmp(node->name, chooser) == 0) {
        choices = count;
        *index = choice < count ? choice : 0;
        chosen = words[*index];
    }
    return ATTN_OK;
}

/* ---- in the place of short_form.c ---- */

attn_status __wrap_short_form_spell(struct reading *reading, struct node *node, const struct short_form *form);

/* Notes a short form as {"as": the pointer of the member that it stands for}, and does not go on with it. */
attn_status __wrap_short_form_spell(struct reading *reading, struct node *node, const struct short_form *form)
{
    const struct node member = {.parent = node, .name = form->member};
    char path[PATH_MAX_BYTES];
    if (node_has_failed(reading))
        return reading->status;
    if (form->member != NULL ? json_is_object(node->json) : json_is_array(node->json))
        return ATTN_OK;
    if (form->has_switch && json_is_boolean(node->json)) {
        note_type(node, "boolean");
    } else if (form->types >> json_typeof(node->json) & 1) {
        write_path(&member, path);
        note(node, json_pack("{ssss}", "as", path, "type", types[json_typeof(node->json)]));
    }
    return node_note(reading, ATTN_ERR_FIELD);
}

/* Puts the forms of the members that they stand for in the places of short forms. */
static void spell_out(void)
{
    const char *pointer;
    json_t *forms;
    json_object_foreach(noted, pointer, forms)
    {
        json_t *spelt = json_array(), *form;
        size_t i;
        json_array_foreach(forms, i, form)
        {
            const char *as = json_string_value(json_object_get(form, "as"));
            json_t *meant = as != NULL ? json_object_get(noted, as) : NULL; /* NULL: read by the decoder itself */
            (void)json_object_del(form, "as");
            if (meant != NULL)
                json_array_extend(spelt, meant);
            else
                json_array_append(spelt, form);
        }
        json_object_set_new(noted, pointer, spelt);
    }
}

/* ---- trying what a member may be ---- */

static void try(struct reading *reading, const struct node *parent, const struct member *member, void *to,
                json_t *probe)
{
    const struct node node = {.parent = parent, .name = member->name, .json = probe, .is_plain = true};
    const size_t before = notes;
    reading->status = ATTN_OK; /* each try begins anew */
    const attn_status status = member->decode(reading, &node, (char *)to + member->offset);
    if (status == ATTN_OK && notes == before) /* read by the decoder itself */
        note_type(&node, types[json_typeof(probe)]);
    reading->status = ATTN_OK;
}

/* Tries the object that the chooser chooses, and one for each of its words if it has words. */
static void try_objects(struct reading *reading, const struct node *parent, const struct member *member, void *to,
                        const char *name)
{
    const char *const outer_chooser = chooser, *const outer_chosen = chosen;
    const size_t outer_choice = choice, outer_choices = choices;
    choice = choices = 0;
    do {
        json_t *probe = name != NULL ? json_pack("{ss}", name, "?") : json_object();
        chooser = name;
        chosen = NULL;
        try(reading, parent, member, to, probe);
        json_decref(probe);
    } while (++choice < choices);
    chooser = outer_chooser, chosen = outer_chosen, choice = outer_choice, choices = outer_choices;
}

attn_status __wrap_node_decode_members(struct reading *reading, const struct node *node, const struct member *members,
                                       size_t count, void *to)
{
    if (node_has_failed(reading) || !json_is_object(node->json))
        return node_note(reading, ATTN_ERR_FIELD);
    json_t *names = json_array(), *form = json_pack("{ssso}", "type", "object", "members", names);
    char tagged[64];
    struct node self = *node;
    if (chosen != NULL) {
        json_object_set_new(form, "tag", json_pack("{ss}", chooser, chosen));
        snprintf(tagged, sizeof tagged, "%s=%s", node->name, chosen);
        self.name = tagged;
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].scope != MEMBER_ALWAYS && !(reading->scopes >> members[i].scope & 1))
            continue;
        json_array_append_new(names, json_string(members[i].name));
        for (size_t p = 0; p < ARRAY_LENGTH(probes); p++) {
            json_t *probe = json_loads(probes[p], JSON_DECODE_ANY, NULL);
            try(reading, &self, &members[i], to, probe);
            json_decref(probe);
        }
        for (size_t c = 0; c < ARRAY_LENGTH(choosers); c++)
            try_objects(reading, &self, &members[i], to, choosers[c]);
    }
    note(node, form);
    return ATTN_OK;
}

/* ---- in the places of tensor_member.c ---- */

/* one: what a single element may be, a type or a component; NULL: a single element is refused. */
static attn_status take_tensor(struct reading *reading, const struct node *node, const char *one, const char *tensor,
                               void *to)
{
    static const attn_tensor stand_in = {.rank = 0};
    const bool is_tensor = json_is_array(node->json) || json_is_object(node->json);
    if (node_has_failed(reading) || (!is_tensor && (one == NULL || !json_is_number(node->json))))
        return node_note(reading, ATTN_ERR_FIELD);
    if (is_tensor || isupper((unsigned char)one[0]))
        note_component(node, is_tensor ? tensor : one);
    else
        note_type(node, one);
    *(const attn_tensor **)to = &stand_in;
    return ATTN_OK;
}

#define STAND_IN(function, one, tensor)                                                                                \
    decode_function __wrap_##function;                                                                                 \
    attn_status __wrap_##function(struct reading *reading, const struct node *node, void *to)                          \
    {                                                                                                                  \
        return take_tensor(reading, node, one, tensor, to);                                                            \
    }

STAND_IN(decode_tensor, NULL, "Tensor")
STAND_IN(decode_rows, NULL, "Tensor")
STAND_IN(decode_past, NULL, "Tensor")
STAND_IN(decode_scores, NULL, "ScoreTensor")
STAND_IN(decode_bias, "number", "ScoreTensor")
STAND_IN(decode_reals, NULL, "Tensor")
STAND_IN(decode_weight, NULL, "Tensor")
STAND_IN(decode_flags, NULL, "FlagTensor")
STAND_IN(decode_flags_or_one, "Flag", "FlagTensor")
STAND_IN(decode_counts, NULL, "IntegerTensor")
STAND_IN(decode_counts_or_one, "integer", "IntegerTensor")
STAND_IN(decode_lengths, "integer", "IntegerTensor")
STAND_IN(decode_ids, NULL, "IntegerTensor")

/* ---- requests ---- */

static const char text[] = "{\"inputs\": {}}";

static void run_envelope(int kind, attn_arena *arena)
{
    struct envelope envelope;
    attn_error err;
    if (envelope_decode(text, strlen(text), (envelope_kind)kind, arena, &envelope, &err) != ATTN_OK)
        return; /* of an empty request, nothing else is expected */
}

static void run_model(int kind, attn_arena *arena)
{
    struct model_request request;
    attn_error err;
    if (model_request_decode(text, strlen(text), (model_request_kind)kind, arena, &request, &err) != ATTN_OK)
        return;
}

json_t *forms_of(const char *request)
{
    static const struct {
        const char *name;
        void (*run)(int kind, attn_arena *arena);
        int kind;
    } requests[] = {
        {"attention", run_envelope, ENVELOPE_ATTENTION},
        {"layer", run_envelope, ENVELOPE_LAYER},
        {"attention gradients", run_envelope, ENVELOPE_ATTENTION_GRADIENTS},
        {"layer gradients", run_envelope, ENVELOPE_LAYER_GRADIENTS},
        {"model", run_model, MODEL_REQUEST_ATTENTION},
        {"model gradients", run_model, MODEL_REQUEST_GRADIENTS},
        {"model tokens", run_model, MODEL_REQUEST_TOKENS},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(requests); i++) {
        if (strcmp(requests[i].name, request) != 0)
            continue;
        attn_arena *arena = attn_arena_create(ARENA_BYTES);
        noted = json_object();
        requests[i].run(requests[i].kind, arena);
        attn_arena_destroy(arena);
        spell_out();
        return noted;
    }
    return NULL;
}

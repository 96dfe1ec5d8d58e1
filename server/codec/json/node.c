/* node.c: decodes members of a request's JSON objects by tables. */
#include "codec/json/node.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "codec/json/document.h"
#include "codec/json/tree.h"
#include "codec/number/number.h"

enum {
    LIST_TEXT_MAX = 1 << 20, /* bytes of a lifted list that may become a tree */
    MEMBERS_MAX = 64,        /* of a table */
};

/* Appends to to[0 .. size) at *used. Text that does not fit is dropped. */
__attribute__((format(printf, 4, 5))) static void append(char *to, size_t size, size_t *used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(to + *used, size - *used, format, arguments);
    va_end(arguments);
    if (written > 0)
        *used = (size_t)written < size - *used ? *used + (size_t)written : size - 1;
}

void node_pointer(const struct node *node, char to[JSON_POINTER_MAX])
{
    const struct node *path[JSON_DEPTH_MAX + 1];
    size_t length = 0, used = 0;
    for (; node->parent && length < ARRAY_LENGTH(path); node = node->parent)
        path[length++] = node;
    to[0] = '\0';
    while (length-- > 0) {
        if (path[length]->parent->is_spelt)
            continue;
        const char *name = path[length]->name;
        const struct text_span span = {name, name != NULL ? strlen(name) : 0};
        used = json_pointer_add(to, JSON_POINTER_MAX, used, span, path[length]->index);
    }
}

json_t *node_find(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

void node_drop_nulls(const struct node *node)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(node->json, next, name, value)
    {
        if (json_is_null(value))
            (void)json_object_del(node->json, name);
    }
}

struct node node_member(const struct node *parent, const char *name)
{
    return (struct node){
        .parent = parent, .name = name, .json = node_find(parent->json, name), .is_plain = parent->is_plain};
}

struct node node_element(const struct node *parent, size_t index)
{
    return (struct node){
        .parent = parent, .index = index, .json = json_array_get(parent->json, index), .is_plain = parent->is_plain};
}

/* The number in a marker; false when the value is no marker. */
static bool read_marker(const struct node *node, size_t *number)
{
    const json_t *place = json_array_get(node->json, 0);
    if (node->is_plain || json_array_size(node->json) != 1 || !json_is_integer(place))
        return false;
    *number = (size_t)json_integer_value(place);
    return true;
}

const struct lifted_text *node_lifted(const struct reading *reading, const struct node *node)
{
    size_t number;
    return read_marker(node, &number) && number < reading->skim->lifted_count ? &reading->skim->lifted[number] : NULL;
}

bool node_attached(const struct reading *reading, const struct node *node, size_t *number)
{
    const size_t first = reading->skim->lifted_count;
    if (!read_marker(node, number) || *number < first)
        return false;
    *number -= first;
    return true;
}

static bool is_lifted_string(const struct lifted_text *lifted)
{
    return lifted && lifted->text[0] == '"';
}

bool node_is_array(const struct reading *reading, const struct node *node)
{
    size_t attachment;
    return json_is_array(node->json) && !is_lifted_string(node_lifted(reading, node)) &&
           !node_attached(reading, node, &attachment);
}

bool node_string(const struct reading *reading, const struct node *node, const char **text, size_t *length)
{
    const struct lifted_text *lifted = node_lifted(reading, node);
    if (is_lifted_string(lifted)) {
        *text = lifted->text + 1;
        *length = lifted->length - 2;
        return true;
    }
    if (!json_is_string(node->json))
        return false;
    *text = json_string_value(node->json);
    *length = json_string_length(node->json);
    return true;
}

bool node_first_string(const struct reading *reading, const struct node *node, const char **text, size_t *length)
{
    if (node_string(reading, node, text, length))
        return true;
    if (!node_is_array(reading, node) || node_lifted(reading, node))
        return false;
    const struct node first = node_element(node, 0);
    return first.json && node_first_string(reading, &first, text, length);
}

attn_status node_fail(struct reading *reading, const struct node *node, attn_status status, const char *format, ...)
{
    char pointer[JSON_POINTER_MAX], message[sizeof(((attn_error *)0)->message)];
    if (node_has_failed(reading))
        return reading->status;
    reading->status = status;
    node_pointer(node, pointer);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (!pointer[0])
        return attn_fail(reading->err, status, NULL, "the request %s", message);
    return attn_fail(reading->err, status, pointer, "%s %s", pointer, message);
}

/* The shortest text that reads back as value; it has a point or an exponent. */
static size_t write_real(double value, char *to)
{
    char *end = number_write_f64(to, value);
    bool is_plain = !memchr(to, '.', (size_t)(end - to)) && !memchr(to, 'e', (size_t)(end - to));
    if (is_plain) {
        memcpy(end, ".0", 2);
        end += 2;
    }
    return (size_t)(end - to);
}

static bool is_silent(const struct reading *reading, const struct node *node)
{
    while (node->parent != NULL && node->parent->parent != NULL)
        node = node->parent;
    return reading->silent != NULL && node->name != NULL && strcmp(node->name, reading->silent) == 0;
}

/*
 * What was received, for a message. True: to is the value itself, as JSON, because it is short and simple. False: to is
 * the name of its type: "object", "array", "string", "binary tensor".
 */
static bool received_text(const struct reading *reading, const struct node *node, char *to, size_t size)
{
    static const char *const names[] = {"object", "array", "string", "number", "number", "true", "false", "null"};
    size_t written = 0, attachment;
    if (json_is_real(node->json) && size > NUMBER_TEXT_MAX + 2)
        written = write_real(json_real_value(node->json), to);
    else if (!json_is_object(node->json) && !json_is_array(node->json) &&
             !(json_is_string(node->json) && is_silent(reading, node)))
        written = json_dumpb(node->json, to, size, JSON_ENCODE_ANY);
    bool is_string = json_is_string(node->json) || is_lifted_string(node_lifted(reading, node));
    bool is_value = written > 0 && written < size;
    if (is_value)
        to[written] = '\0';
    else
        snprintf(to, size, "%s",
                 is_string                                   ? "string"
                 : node_attached(reading, node, &attachment) ? "binary tensor"
                                                             : names[json_typeof(node->json)]);
    return is_value;
}

/* before, unless it is empty, is said first: it is shorter than a long list of what is wanted. */
static attn_status fail_wanted(struct reading *reading, const struct node *node, attn_status status, const char *before,
                               const char *wanted)
{
    char text[100], received[104], expected[128];
    if (node_has_failed(reading))
        return reading->status;
    bool is_value = received_text(reading, node, text, sizeof text);
    const char *article = is_value ? "" : text[0] == 'a' || text[0] == 'o' ? "an " : "a ";
    node_fail(reading, node, status, "%s%smust be %s, received %s%s", before, before[0] != '\0' ? "; it " : "", wanted,
              article, text);
    snprintf(received, sizeof received, is_value ? "%s" : "\"%s\"", text);
    json_t *quoted = json_string(wanted);
    size_t written = quoted ? json_dumpb(quoted, expected, sizeof expected, JSON_ENCODE_ANY) : 0;
    json_decref(quoted);
    bool fits = written > 0 && written < sizeof expected;
    if (fits)
        expected[written] = '\0';
    if (reading->err)
        attn_expect(reading->err, fits ? expected : NULL, received);
    return status;
}

attn_status node_fail_type(struct reading *reading, const struct node *node, const char *wanted)
{
    return fail_wanted(reading, node, ATTN_ERR_FIELD, "", wanted);
}

void node_explain(struct reading *reading, const char *sentence)
{
    if (reading->err == NULL)
        return;
    size_t used = strlen(reading->err->message);
    append(reading->err->message, sizeof reading->err->message, &used, "; %s", sentence);
}

attn_status node_fail_type_with(struct reading *reading, const struct node *node, const char *wanted,
                                const char *sentence)
{
    if (node_has_failed(reading))
        return reading->status;
    node_fail_type(reading, node, wanted);
    node_explain(reading, sentence);
    return ATTN_ERR_FIELD;
}

attn_status node_fail_memory(struct reading *reading, const struct node *node)
{
    return node_fail(reading, node, ATTN_ERR_NO_MEMORY, "does not fit in the memory of the request");
}

void *node_take(struct reading *reading, const struct node *node, size_t count, size_t size)
{
    void *taken = node_has_failed(reading) ? NULL : attn_arena_take(reading->arena, count, size);
    if (taken == NULL)
        node_fail_memory(reading, node);
    return taken;
}

attn_status node_place(struct reading *reading, const char *at)
{
    return skim_place(reading->skim, (size_t)(at - reading->skim->body), ATTN_ERR_SYNTAX, reading->err);
}

static const struct member *find_member(const struct member *members, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    }
    return NULL;
}

bool member_table_has(const struct member_table *table, const char *name)
{
    return find_member(table->members, table->count, name) != NULL;
}

static bool is_usable(const struct reading *reading, const struct member *member)
{
    return member->scope == MEMBER_ALWAYS || reading->scopes >> member->scope & 1;
}

/* The section that has a member of that name; NULL: none has. */
static const char *find_home(const struct reading *reading, const char *name)
{
    for (const struct member_table *const *section = reading->sections; *section; section++) {
        const struct member *member = find_member((*section)->members, (*section)->count, name);
        if (member && is_usable(reading, member))
            return (*section)->section;
    }
    return NULL;
}

/* Why the request cannot have the member of a path: to stand behind "which". NULL: it can. */
static const char *find_lack(const struct reading *reading, const char *path)
{
    char section[32], member[32];
    if (sscanf(path, "%31[^.].%31[^.]", section, member) == 2)
        for (const struct member_table *const *table = reading->sections; *table; table++) {
            const struct member *row = find_member((*table)->members, (*table)->count, member);
            if (strcmp((*table)->section, section) == 0 && row && !is_usable(reading, row))
                return reading->elsewhere[row->scope];
        }
    return reading->lacking != NULL ? reading->lacking(path) : NULL;
}

/* Whether the node is one of those members, or in one of them. */
static bool is_within(const struct node *node, const char *members)
{
    for (; node != NULL; node = node->parent)
        if (node->name != NULL && foreign_has(members, node->name))
            return true;
    return false;
}

/* Whether the node is a member of the request or of a section. In deeper objects, the same name has another meaning. */
static bool is_in_section(const struct node *node)
{
    return !node->parent->parent || !node->parent->parent->parent;
}

enum { SENTENCE_MAX = 320 };

/*
 * Writes what a word of other programs is here. The word is the name of the node, or its value. False, with an empty
 * sentence: it is not known.
 */
static bool explain_word(const struct reading *reading, const struct node *node, const char *word, bool is_value,
                         char sentence[SENTENCE_MAX])
{
    const struct foreign_word *row = reading->foreign;
    const bool is_shallow = !is_value && is_in_section(node);
    sentence[0] = '\0';
    while (row != NULL && row->words != NULL &&
           !((row->within != NULL ? is_within(node, row->within) : is_shallow) && foreign_has(row->words, word)))
        row++;
    if (row == NULL || row->words == NULL)
        return false;
    const char *lack = row->here != NULL && row->within == NULL ? find_lack(reading, row->here) : NULL;
    if (row->here == NULL)
        snprintf(sentence, SENTENCE_MAX, "%s", row->note);
    else if (lack != NULL)
        snprintf(sentence, SENTENCE_MAX, "the word here is %s, which %s", row->here, lack);
    else
        snprintf(sentence, SENTENCE_MAX, "the word here is %s%s%s", row->here, row->note != NULL ? ": " : "",
                 row->note != NULL ? row->note : "");
    return true;
}

attn_status node_fail_value(struct reading *reading, const struct node *node, const char *wanted)
{
    char here[SENTENCE_MAX], before[SENTENCE_MAX + 16] = "";
    const char *word = json_tree_word(node->json);
    if (word != NULL && explain_word(reading, node, word, true, here))
        snprintf(before, sizeof before, "is unknown: %s", here);
    return fail_wanted(reading, node, ATTN_ERR_VALUE, before, wanted);
}

static attn_status fail_unknown(struct reading *reading, const struct node *node, const struct member *members,
                                size_t count)
{
    char known[384] = "", here[SENTENCE_MAX];
    const char *nearest = NULL;
    size_t used = 0, distance = NEAREST_MAX + 1;
    for (size_t i = 0; i < count; i++) {
        if (!is_usable(reading, &members[i]))
            continue;
        append(known, sizeof known, &used, "%s%s", used > 0 ? ", " : "", members[i].name);
        nearest_consider(node->name, members[i].name, &nearest, &distance);
    }
    const char *home = is_in_section(node) ? find_home(reading, node->name) : NULL;
    if (explain_word(reading, node, node->name, false, here))
        return node_fail(reading, node, ATTN_ERR_FIELD, "is an unknown member: %s. Known here: %s", here, known);
    if (nearest)
        return node_fail(reading, node, ATTN_ERR_FIELD, "is an unknown member: did you mean \"%s\"? Known here: %s",
                         nearest, known);
    if (home)
        return node_fail(reading, node, ATTN_ERR_FIELD, "is an unknown member: it belongs into %s. Known here: %s",
                         home, known);
    return node_fail(reading, node, ATTN_ERR_FIELD, "is an unknown member; known here: %s", known);
}

/* member is the row for node->name; NULL: the table has no such row. */
static attn_status check_member(struct reading *reading, const struct node *node, const struct member *member,
                                const struct member *members, size_t count)
{
    const bool is_known = member && (is_usable(reading, member) || reading->elsewhere);
    if (!is_known)
        return fail_unknown(reading, node, members, count);
    if (!is_usable(reading, member) && !json_is_null(node->json))
        return node_fail(reading, node, ATTN_ERR_FIELD, "%s", reading->elsewhere[member->scope]);
    return ATTN_OK;
}

/* Checks every member of an object. found, unless NULL, receives the value for each row of the table. */
static attn_status look_over(struct reading *reading, const struct node *node, const struct member *members,
                             size_t count, json_t **found)
{
    if (node_has_failed(reading) || !json_is_object(node->json))
        return node_fail_type(reading, node, "an object");
    const char *name;
    json_t *value;
    json_object_foreach(node->json, name, value)
    {
        struct node child = {.parent = node, .name = name, .json = value};
        const struct member *member = find_member(members, count, name);
        if (check_member(reading, &child, member, members, count) != ATTN_OK)
            return reading->status;
        if (found && !json_is_null(value))
            found[member - members] = value;
    }
    return ATTN_OK;
}

attn_status node_check_members(struct reading *reading, const struct node *node, const struct member *members,
                               size_t count)
{
    return look_over(reading, node, members, count, NULL);
}

/* An object has few of its possible members, so we walk the object once instead of looking up each row of the table. */
attn_status node_decode_members(struct reading *reading, const struct node *node, const struct member *members,
                                size_t count, void *to)
{
    json_t *found[MEMBERS_MAX] = {NULL};
    assert(count <= MEMBERS_MAX);
    look_over(reading, node, members, count, found);
    for (size_t i = 0; i < count && !node_has_failed(reading); i++) {
        if (!found[i])
            continue;
        struct node child = {.parent = node, .name = members[i].name, .json = found[i], .is_plain = node->is_plain};
        node_note(reading, members[i].decode(reading, &child, (char *)to + members[i].offset));
    }
    return reading->status;
}

static attn_status parse_lifted(struct reading *reading, const struct node *node, const struct lifted_text *lifted,
                                json_t **json)
{
    if (lifted->length > LIST_TEXT_MAX)
        return node_fail(reading, node, ATTN_ERR_TOO_LARGE, "is a list of more than %d bytes", LIST_TEXT_MAX);
    json_error_t error;
    *json = json_tree_load(lifted->text, lifted->length, reading->arena, &error);
    if (*json)
        return ATTN_OK;
    if (json_tree_is_starved())
        return node_fail_memory(reading, node);
    const char *bound = json_tree_integer_bound(&error);
    if (json_error_code(&error) == json_error_numeric_overflow)
        return node_fail(reading, node, ATTN_ERR_VALUE, "holds %s", bound ? bound : "a number that is too large");
    node_fail(reading, node, ATTN_ERR_SYNTAX, "is not JSON: %s", error.text);
    return node_place(reading, lifted->text + (error.position > 0 ? error.position - 1 : 0));
}

attn_status node_decode_list(struct reading *reading, const struct node *node, const char *wanted, struct node *list)
{
    *list = *node;
    list->json = NULL;
    if (node_has_failed(reading) || !node_is_array(reading, node))
        return node_fail_type(reading, node, wanted);
    const struct lifted_text *lifted = node_lifted(reading, node);
    if (lifted) {
        list->is_plain = true;
        return parse_lifted(reading, node, lifted, &list->json);
    }
    list->json = json_incref(node->json);
    return ATTN_OK;
}

attn_status node_decode_bool(struct reading *reading, const struct node *node, void *to)
{
    if (node_has_failed(reading) || !json_is_boolean(node->json))
        return node_fail_type(reading, node, "true or false");
    *(bool *)to = json_is_true(node->json);
    return ATTN_OK;
}

attn_status node_decode_number(struct reading *reading, const struct node *node, const char *wanted, double *value)
{
    if (node_has_failed(reading) || !json_is_number(node->json))
        return node_fail_type(reading, node, wanted);
    *value = json_number_value(node->json);
    return ATTN_OK;
}

attn_status node_decode_positive(struct reading *reading, const struct node *node, void *to)
{
    const char *wanted = "a number above 0";
    double value = 0;
    if (node_decode_number(reading, node, wanted, &value) != ATTN_OK)
        return reading->status;
    if (!(value > 0))
        return node_fail_value(reading, node, wanted);
    *(double *)to = value;
    return ATTN_OK;
}

bool node_integer_of(const json_t *json, int64_t *value)
{
    if (json_is_integer(json)) {
        *value = json_integer_value(json);
        return true;
    }
    return json_is_real(json) && number_is_integer(json_real_value(json), value);
}

attn_status node_decode_integer(struct reading *reading, const struct node *node, int64_t low, int64_t high,
                                int64_t *value)
{
    char wanted[96];
    int64_t integer;
    if (low == INT64_MIN && high == INT64_MAX)
        snprintf(wanted, sizeof wanted, "an integer");
    else if (high == INT64_MAX)
        snprintf(wanted, sizeof wanted, "an integer of at least %lld", (long long)low);
    else
        snprintf(wanted, sizeof wanted, "an integer from %lld to %lld", (long long)low, (long long)high);
    if (node_has_failed(reading) || !json_is_number(node->json))
        return node_fail_type(reading, node, wanted);
    if (!node_integer_of(node->json, &integer) || integer < low || integer > high)
        return node_fail_value(reading, node, wanted);
    *value = integer;
    return ATTN_OK;
}

static attn_status fail_word(struct reading *reading, const struct node *node, const char *const *words, size_t count,
                             bool is_string)
{
    char wanted[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const char *between = i == 0 ? "" : i + 1 < count ? ", " : " or ";
        append(wanted, sizeof wanted, &used, "%s\"%s\"", between, words[i]);
    }
    return is_string ? node_fail_value(reading, node, wanted) : node_fail_type(reading, node, wanted);
}

attn_status node_decode_word(struct reading *reading, const struct node *node, const char *const *words, size_t count,
                             size_t *index)
{
    const char *text;
    size_t length;
    if (node_has_failed(reading) || !node_string(reading, node, &text, &length))
        return fail_word(reading, node, words, count, false);
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) == length && memcmp(text, words[i], length) == 0) {
            *index = i;
            return ATTN_OK;
        }
    }
    return fail_word(reading, node, words, count, true);
}

attn_status node_decode_seed(struct reading *reading, const struct node *node, void *to)
{
    int64_t seed = 0;
    node_decode_integer(reading, node, 0, INT64_MAX, &seed);
    *(uint64_t *)to = (uint64_t)seed;
    return reading->status;
}

/* ---- the long form of a member in place of its short one ---- */

static bool is_long(const struct node *node, const struct short_form *form)
{
    if (form->member == NULL)
        return json_is_array(node->json);
    return json_is_object(node->json) && !(form->takes_tensor && node_find(node->json, "shape"));
}

/* A tensor beside the text stands in the tree as a list with a marker. */
static bool is_short(const struct reading *reading, const struct node *node, const struct short_form *form)
{
    size_t attachment;
    if (form->takes_tensor && (json_is_object(node->json) || node_attached(reading, node, &attachment)))
        return true;
    return form->types >> json_typeof(node->json) & 1 && !node_attached(reading, node, &attachment);
}

static json_t *long_form_of(const struct node *node, const struct short_form *form)
{
    if (form->has_switch && json_is_true(node->json))
        return json_object();
    return form->member != NULL ? json_pack("{s:O}", form->member, node->json) : json_pack("[O]", node->json);
}

attn_status short_form_spell(struct reading *reading, struct node *node, const struct short_form *form)
{
    json_t *object = node->parent->json;
    if (node_has_failed(reading) || is_long(node, form))
        return reading->status;
    if (form->has_switch && json_is_false(node->json)) {
        node->json = NULL;
        return json_object_del(object, node->name) == 0 ? ATTN_OK : node_fail_memory(reading, node);
    }
    if (!is_short(reading, node, form) && !(form->has_switch && json_is_true(node->json)))
        return node_fail_type(reading, node, form->wanted);
    json_t *spelt = long_form_of(node, form);
    if (json_object_set_new(object, node->name, spelt) != 0) /* fails without memory, also for spelt */
        return node_fail_memory(reading, node);
    node->json = spelt;
    node->is_spelt = true;
    return ATTN_OK;
}

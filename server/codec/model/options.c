/* options.c: decodes options.words, stop, interventions, sweep, metric and baseline. */
#include "codec/model/options.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/request/decoder.h"

/* ---- words ---- */

enum { WORDS_MAX = 256 };

static const char wanted_words[] = "a list of texts of one token each or of ids, or \"next\"";

attn_status decode_string(struct reading *reading, const struct node *node, const char *wanted, struct text_span *text)
{
    const char *at = "";
    size_t length = 0;
    if (!node_string(reading, node, &at, &length))
        node_fail_type(reading, node, wanted);
    char *copy = node_take(reading, node, length + 1, 1);
    if (copy == NULL)
        return reading->status;
    memcpy(copy, at, length);
    copy[length] = '\0';
    *text = (struct text_span){copy, length};
    return ATTN_OK;
}

static attn_status decode_text_or_id(struct reading *reading, const struct node *node, const char *wanted,
                                     struct model_word *word)
{
    *word = (struct model_word){.id = 0};
    return json_is_number(node->json) ? node_decode_integer(reading, node, 0, INT32_MAX, &word->id)
                                      : decode_string(reading, node, wanted, &word->text);
}

static attn_status decode_one(struct reading *reading, const struct node *node, void *to)
{
    return decode_text_or_id(reading, node, "a text of one token, or an id", to);
}

attn_status decode_given_words(struct reading *reading, const struct node *node, void *to)
{
    static const struct element_list words = {wanted_words, "words", WORDS_MAX, sizeof(struct model_word), decode_one};
    struct model_word_list *made = to;
    void *items = NULL;
    const char *text;
    size_t length;
    if (node_string(reading, node, &text, &length)) {
        made->is_next = length == strlen("next") && memcmp(text, "next", length) == 0;
        return made->is_next ? ATTN_OK : node_fail_value(reading, node, wanted_words);
    }
    if (decode_elements(reading, node, &words, &items, &made->count) == ATTN_OK && made->count == 0)
        node_fail(reading, node, ATTN_ERR_VALUE, "is empty: name at least one word");
    made->items = items;
    return reading->status;
}

/* ---- where generation stops ---- */

enum { STOPS_MAX = 64 };

static attn_status decode_stop(struct reading *reading, const struct node *node, void *to)
{
    struct model_word *word = to;
    if (decode_text_or_id(reading, node, "a text, or an id", word) == ATTN_OK && word->text.at != NULL &&
        word->text.length == 0)
        node_fail(reading, node, ATTN_ERR_VALUE, "is empty, and every text holds it");
    return reading->status;
}

attn_status decode_stops(struct reading *reading, const struct node *node, void *to)
{
    static const struct element_list stops = {"a text, an id, or a list of them", "stops", STOPS_MAX,
                                              sizeof(struct model_word), decode_stop};
    struct model_stop_list *made = to;
    void *items = NULL;
    if (json_is_string(node->json) || json_is_number(node->json)) {
        items = node_take(reading, node, 1, sizeof(struct model_word));
        made->count = 1;
        if (items != NULL)
            decode_stop(reading, node, items);
    } else
        decode_elements(reading, node, &stops, &items, &made->count);
    made->items = items;
    return reading->status;
}

/* ---- interventions: members ---- */

enum { INTERVENTIONS_MAX = 64, ITEM_MAX = 1 << 20 };

#define MODEL_WORD_NAME(code, name) name,
static const char *const places[] = {MODEL_PLACE_LIST(MODEL_WORD_NAME)};
static const char *const acts[] = {MODEL_ACT_LIST(MODEL_WORD_NAME)};
static const char *const axes[] = {MODEL_AXIS_LIST(MODEL_WORD_NAME)};
static const char *const baselines[] = {MODEL_BASELINE_LIST(MODEL_WORD_NAME)};
#undef MODEL_WORD_NAME
static const char *const parts[] = {"encoder", "decoder", "cross"};

const char *model_place_name(model_place place)
{
    return places[place];
}

const char *model_axis_name(model_axis axis)
{
    return axes[axis];
}

const char *model_act_name(model_act act)
{
    return acts[act];
}

const char *model_baseline_name(model_baseline baseline)
{
    return baselines[baseline];
}

static attn_status decode_at(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_word(reading, node, places, ARRAY_LENGTH(places), to);
}

static attn_status decode_do(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_word(reading, node, acts, ARRAY_LENGTH(acts), to);
}

static attn_status decode_part(struct reading *reading, const struct node *node, void *to)
{
    size_t index = 0;
    const attn_status status = node_decode_word(reading, node, parts, ARRAY_LENGTH(parts), &index);
    *(const char **)to = parts[index];
    return status;
}

/* The selection is settled when the model is known. */
static attn_status decode_list_of_indices(struct reading *reading, const struct node *node, void *to)
{
    attn_selection selection;
    return decode_selection(reading, node, to, &selection);
}

static attn_status decode_factor(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_number(reading, node, "a number", to);
}

static attn_status decode_from(struct reading *reading, const struct node *node, void *to)
{
    struct model_intervention *made = to;
    made->has_from = true;
    return node_decode_integer(reading, node, -ITEM_MAX, ITEM_MAX, &made->from);
}

static attn_status decode_value(struct reading *reading, const struct node *node, void *to)
{
    const attn_tensor **value = to;
    if (decode_tensor(reading, node, value) == ATTN_OK && ((*value)->rank != 1 || (*value)->shape[0] == 0))
        node_fail(reading, node, ATTN_ERR_SHAPE, "must be a vector, a list of numbers");
    return reading->status;
}

/* ["layer", "query"] or ["layer", "head"] */
static attn_status decode_over(struct reading *reading, const struct node *node, void *to)
{
    static const char wanted[] = "[\"layer\", \"query\"] or [\"layer\", \"head\"]";
    struct model_intervention *made = to;
    struct node list;
    size_t over[] = {MODEL_OVER_LAYER, MODEL_OVER_LAYER};
    node_decode_list(reading, node, wanted, &list);
    const size_t count = json_array_size(list.json);
    for (size_t i = 0; i < ARRAY_LENGTH(over) && i < count && !node_has_failed(reading); i++) {
        const struct node element = node_element(&list, i);
        node_decode_word(reading, &element, axes, ARRAY_LENGTH(axes), &over[i]);
    }
    if (!node_has_failed(reading) &&
        (count != ARRAY_LENGTH(over) || over[0] != MODEL_OVER_LAYER || over[1] == MODEL_OVER_LAYER))
        node_fail_type(reading, node, wanted);
    made->is_swept = true;
    made->over = over[1];
    json_decref(list.json);
    return reading->status;
}

#define MEMBER(name) offsetof(struct model_intervention, name)
static const struct member intervention_members[] = {
    {"at", decode_at, MEMBER(at), MEMBER_ALWAYS},
    {"do", decode_do, MEMBER(act), MEMBER_ALWAYS},
    {"part", decode_part, MEMBER(part), MEMBER_ALWAYS},
    {"layers", decode_list_of_indices, MEMBER(layers), MEMBER_ALWAYS},
    {"heads", decode_list_of_indices, MEMBER(heads), MEMBER_ALWAYS},
    {"queries", decode_list_of_indices, MEMBER(queries), MEMBER_ALWAYS},
    {"keys", decode_list_of_indices, MEMBER(keys), MEMBER_ALWAYS},
    {"items", decode_list_of_indices, MEMBER(items), MEMBER_ALWAYS},
    {"factor", decode_factor, MEMBER(factor), MEMBER_ALWAYS},
    {"value", decode_value, MEMBER(value), MEMBER_ALWAYS},
    {"from", decode_from, 0, MEMBER_ALWAYS},
    {"from_queries", decode_list_of_indices, MEMBER(from_queries), MEMBER_ALWAYS},
    {"over", decode_over, 0, MEMBER_ALWAYS},
};

/* ---- what goes together ---- */

#define BIT(code) (1U << (code))

/* The places and the acts with which a member has a meaning, and those that need it. */
static const struct {
    const char *name;
    unsigned places, acts, needed_by;
    const char *why;
} rules[] = {
    {"heads", BIT(MODEL_AT_ATTENTION) | BIT(MODEL_AT_CONTEXT), ~0U, 0,
     "heads are of \"context\" and \"attention\" alone"},
    {"keys", BIT(MODEL_AT_ATTENTION), ~0U, 0, "keys are of \"attention\" alone"},
    {"factor", ~0U, BIT(MODEL_DO_SCALE) | BIT(MODEL_DO_ADD), BIT(MODEL_DO_SCALE),
     "a factor is of \"scale\" and \"add\""},
    {"value", ~0U, BIT(MODEL_DO_ADD) | BIT(MODEL_DO_REPLACE), BIT(MODEL_DO_ADD),
     "a value is of \"add\" and \"replace\""},
    {"from", ~0U, BIT(MODEL_DO_REPLACE), 0, "another item is a source of \"replace\" alone"},
    {"from_queries", ~0U, BIT(MODEL_DO_REPLACE), 0, "they are queries of the item \"from\", of \"replace\" alone"},
};

static attn_status check_rules(struct reading *reading, const struct node *node, const struct model_intervention *made)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
        const struct node member = node_member(node, rules[i].name);
        if (member.json != NULL && !((rules[i].places >> made->at & 1) && (rules[i].acts >> made->act & 1)))
            return node_fail(reading, &member, ATTN_ERR_FIELD, "does not go with \"at\": \"%s\" and \"do\": \"%s\": %s",
                             places[made->at], acts[made->act], rules[i].why);
        if (member.json == NULL && (rules[i].needed_by >> made->act & 1))
            return node_fail(reading, node, ATTN_ERR_FIELD, "has \"do\": \"%s\" without \"%s\"", acts[made->act],
                             rules[i].name);
    }
    return ATTN_OK;
}

static attn_status check_intervention(struct reading *reading, const struct node *node,
                                      const struct model_intervention *made)
{
    const struct node part = node_member(node, "part"), from_queries = node_member(node, "from_queries");
    if (node_has_failed(reading) || check_rules(reading, node, made) != ATTN_OK)
        return reading->status;
    if (made->act == MODEL_DO_MASK && made->at != MODEL_AT_ATTENTION)
        return node_fail(reading, node, ATTN_ERR_FIELD,
                         "has \"do\": \"mask\", which hides edges of \"attention\" alone");
    if (made->act == MODEL_DO_REPLACE && (made->value != NULL) == made->has_from)
        return node_fail(reading, node, ATTN_ERR_FIELD, "replaces by one of \"value\" and \"from\", and has %s",
                         made->has_from ? "both" : "none of them");
    if (from_queries.json != NULL && !made->has_from)
        return node_fail(reading, &from_queries, ATTN_ERR_FIELD,
                         "are queries of the item \"from\", which is not given");
    if (made->part != NULL && strcmp(made->part, "cross") == 0 &&
        (made->at == MODEL_AT_HIDDEN || made->at == MODEL_AT_FEED_FORWARD))
        return node_fail(reading, &part, ATTN_ERR_FIELD, "is \"cross\", and \"%s\" is of the encoder or the decoder",
                         places[made->at]);
    return ATTN_OK;
}

/* ---- the list ---- */

static attn_status decode_change(struct reading *reading, const struct node *node, void *to)
{
    struct model_intervention *made = to;
    *made = (struct model_intervention){.factor = 1};
    if (!json_is_object(node->json))
        return node_fail_type(reading, node, "an object with \"at\" and \"do\"");
    node_decode_members(reading, node, intervention_members, ARRAY_LENGTH(intervention_members), made);
    for (size_t i = 0; i < 2; i++)
        if (node_find(node->json, intervention_members[i].name) == NULL)
            return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"%s\"", intervention_members[i].name);
    return check_intervention(reading, node, made);
}

static attn_status decode_intervention(struct reading *reading, const struct node *node, void *to)
{
    const struct model_intervention *made = to;
    const struct node over = node_member(node, "over");
    if (decode_change(reading, node, to) == ATTN_OK && made->is_swept)
        node_fail(reading, &over, ATTN_ERR_FIELD, "is of options.sweep alone");
    return reading->status;
}

attn_status decode_interventions(struct reading *reading, const struct node *node, void *to)
{
    static const struct element_list of = {"a list of objects with \"at\" and \"do\"", "interventions",
                                           INTERVENTIONS_MAX, sizeof(struct model_intervention), decode_intervention};
    struct model_intervention_list *made = to;
    void *items = NULL;
    const attn_status status = decode_elements(reading, node, &of, &items, &made->count);
    made->items = items;
    return status;
}

/* ---- a sweep ---- */

attn_status decode_sweep(struct reading *reading, const struct node *node, void *to)
{
    const struct model_intervention *made = to;
    if (decode_change(reading, node, to) != ATTN_OK)
        return reading->status;
    if (!made->is_swept)
        return node_fail(reading, node, ATTN_ERR_FIELD,
                         "has no \"over\": [\"layer\", \"query\"] or [\"layer\", \"head\"]");
    const struct node over = node_member(node, "over");
    return made->over == MODEL_OVER_HEAD && made->at != MODEL_AT_CONTEXT && made->at != MODEL_AT_ATTENTION
               ? node_fail(reading, &over, ATTN_ERR_FIELD,
                           "has \"head\", and heads are of \"context\" and \"attention\" alone")
               : ATTN_OK;
}

static attn_status decode_metric_words(struct reading *reading, const struct node *node, void *to)
{
    static const struct element_list of = {"a list of one or two texts or ids", "words", 2, sizeof(struct model_word),
                                           decode_one};
    struct model_word_list *made = to;
    void *items = NULL;
    if (decode_elements(reading, node, &of, &items, &made->count) == ATTN_OK && made->count == 0)
        node_fail(reading, node, ATTN_ERR_VALUE, "is empty: name one word or two");
    made->items = items;
    return reading->status;
}

static attn_status decode_metric_query(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_integer(reading, node, -ITEM_MAX, ITEM_MAX, to);
}

attn_status decode_metric(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"words", decode_metric_words, offsetof(struct model_metric, words), MEMBER_ALWAYS},
        {"query", decode_metric_query, offsetof(struct model_metric, query), MEMBER_ALWAYS},
    };
    struct model_metric *made = to;
    made->query = -1;
    made->has_query = node_find(node->json, "query");
    if (!json_is_object(node->json))
        return node_fail_type(reading, node, "an object with \"words\" and \"query\"");
    if (node_decode_members(reading, node, members, ARRAY_LENGTH(members), made) == ATTN_OK &&
        made->words.items == NULL)
        node_fail(reading, node, ATTN_ERR_FIELD, "has no \"words\": name one or two");
    return reading->status;
}

attn_status decode_baseline(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_word(reading, node, baselines, ARRAY_LENGTH(baselines), to);
}

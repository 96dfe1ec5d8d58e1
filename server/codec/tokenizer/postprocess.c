/*
 * postprocess.c: post-processors. Each becomes a template for one text and one for two, and perhaps a trimming of offsets.
 */
#include "codec/tokenizer/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/utf8.h"
#include "codec/json/tree.h"
#include "codec/tokenizer/text/unicode.h"

enum { PARTS_MAX = 64 };

/* What a post-processor of any kind says. */
struct processor {
    struct step_token_id cls, sep;
    bool trim_offsets, add_prefix_space;
    struct template single, pair;
    bool has_templates;
};

/* ---- templates ---- */

static attn_status make_template(struct loading *loading, const struct template_part *parts, size_t count,
                                 struct template *template)
{
    struct reading *reading = &loading->reading;
    if (node_has_failed(reading))
        return reading->status;
    struct template_part *copy = attn_arena_take(reading->arena, count, sizeof *copy);
    if (copy == NULL)
        return node_note(reading, attn_fail_no_memory(reading->err));
    *template = (struct template){.parts = copy, .count = count};
    for (size_t i = 0; i < count; i++) {
        copy[i] = parts[i];
        template->added += parts[i].what == PART_SPECIAL;
    }
    return ATTN_OK;
}

static attn_status settle_bert(struct loading *loading, const struct node *node, void *options)
{
    (void)node;
    struct processor *processor = options;
    const uint32_t cls = processor->cls.id, sep = processor->sep.id;
    const struct template_part parts[] = {
        {PART_SPECIAL, cls, 0}, {PART_TEXT, 0, 0}, {PART_SPECIAL, sep, 0}, {PART_PAIR, 0, 1}, {PART_SPECIAL, sep, 1}};
    processor->has_templates = true;
    make_template(loading, parts, 3, &processor->single);
    return make_template(loading, parts, ARRAY_LENGTH(parts), &processor->pair);
}

static attn_status settle_roberta(struct loading *loading, const struct node *node, void *options)
{
    (void)node;
    struct processor *processor = options;
    const uint32_t cls = processor->cls.id, sep = processor->sep.id;
    const struct template_part parts[] = {{PART_SPECIAL, cls, 0}, {PART_TEXT, 0, 0}, {PART_SPECIAL, sep, 0},
                                          {PART_SPECIAL, sep, 0}, {PART_PAIR, 0, 0}, {PART_SPECIAL, sep, 0}};
    processor->has_templates = true;
    make_template(loading, parts, 3, &processor->single);
    return make_template(loading, parts, ARRAY_LENGTH(parts), &processor->pair);
}

/* Adds the ids of a special token: {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}. */
static attn_status add_special(struct loading *loading, const struct node *piece, const json_t *special,
                               uint32_t type_id, struct template_part *parts, size_t *count)
{
    const json_t *ids = json_object_get(special, "ids"), *id;
    size_t i;
    if (!json_is_array(ids) || json_array_size(ids) + *count > PARTS_MAX)
        return node_fail(&loading->reading, piece, ATTN_ERR_VALUE,
                         "names a token that \"special_tokens\" does not have, or that has too many ids");
    json_array_foreach(ids, i, id)
    {
        int64_t value;
        if (!node_integer_of(id, &value) || value < 0 || value > INT32_MAX)
            return node_fail(&loading->reading, piece, ATTN_ERR_VALUE, "names a token whose ids are not numbers");
        parts[(*count)++] = (struct template_part){PART_SPECIAL, (uint32_t)value, type_id};
    }
    return ATTN_OK;
}

/* {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}} */
static attn_status add_piece(struct loading *loading, const struct node *piece, const json_t *specials,
                             struct template_part *parts, size_t *count)
{
    const json_t *sequence = json_object_get(piece->json, "Sequence");
    const json_t *special = json_object_get(piece->json, "SpecialToken");
    const json_t *one = sequence != NULL ? sequence : special;
    const char *id = json_tree_word(json_object_get(one, "id"));
    int64_t type_id;
    if (id == NULL || !node_integer_of(json_object_get(one, "type_id"), &type_id) || type_id < 0 || type_id > INT32_MAX)
        return node_fail_value(&loading->reading, piece,
                               "{\"Sequence\": {id, type_id}} or {\"SpecialToken\": {id, type_id}}");
    if (sequence == NULL)
        return add_special(loading, piece, json_object_get(specials, id), (uint32_t)type_id, parts, count);
    const bool is_text = strcmp(id, "A") == 0;
    if ((!is_text && strcmp(id, "B") != 0) || *count == PARTS_MAX)
        return node_fail(&loading->reading, piece, ATTN_ERR_VALUE,
                         "names another sequence than A and B, or is too much");
    parts[(*count)++] = (struct template_part){is_text ? PART_TEXT : PART_PAIR, 0, (uint32_t)type_id};
    return ATTN_OK;
}

static attn_status load_template(struct loading *loading, const struct node *node, const char *name, bool has_pair,
                                 struct template *template)
{
    struct template_part parts[PARTS_MAX];
    size_t count = 0;
    const struct node list = node_member(node, name);
    const json_t *specials = json_object_get(node->json, "special_tokens");
    struct reading *reading = &loading->reading;
    if (!json_is_array(list.json))
        return node_fail(reading, node, ATTN_ERR_FIELD, "needs the list \"%s\"", name);
    for (size_t i = 0; i < json_array_size(list.json) && !node_has_failed(reading); i++) {
        const struct node piece = node_element(&list, i);
        add_piece(loading, &piece, specials, parts, &count);
        if (!has_pair && count > 0 && parts[count - 1].what == PART_PAIR)
            node_fail(reading, &piece, ATTN_ERR_VALUE, "names B, but there is one sequence");
    }
    return make_template(loading, parts, count, template);
}

static attn_status settle_template(struct loading *loading, const struct node *node, void *options)
{
    struct processor *processor = options;
    processor->has_templates = true;
    load_template(loading, node, "single", false, &processor->single);
    return load_template(loading, node, "pair", true, &processor->pair);
}

/* ---- the table ---- */

static const struct member bert_members[] = {STEP_OPTION(processor, sep, step_token),
                                             STEP_OPTION(processor, cls, step_token)};
static const struct member roberta_members[] = {
    STEP_OPTION(processor, sep, step_token), STEP_OPTION(processor, cls, step_token),
    STEP_OPTION(processor, trim_offsets, node_decode_bool), STEP_OPTION(processor, add_prefix_space, node_decode_bool)};
static const struct member byte_level_members[] = {STEP_OPTION(processor, trim_offsets, node_decode_bool),
                                                   STEP_OPTION(processor, add_prefix_space, node_decode_bool),
                                                   {"use_regex", step_ignored, 0, MEMBER_ALWAYS}};
static const struct member template_members[] = {{"single", step_ignored, 0, MEMBER_ALWAYS},
                                                 {"pair", step_ignored, 0, MEMBER_ALWAYS},
                                                 {"special_tokens", step_ignored, 0, MEMBER_ALWAYS}};

#define WITH(members) members, ARRAY_LENGTH(members), sizeof(struct processor)

static const struct step_kind kinds[] = {
    {"BertProcessing", WITH(bert_members), .settle = settle_bert},
    {"RobertaProcessing", WITH(roberta_members), .settle = settle_roberta},
    {"ByteLevel", WITH(byte_level_members), .settle = NULL},
    {"TemplateProcessing", WITH(template_members), .settle = settle_template},
};

const struct step_table post_processor_table = {kinds, ARRAY_LENGTH(kinds), "post-processor", "processors"};

static attn_status check_ids(struct loading *loading, const struct node *node, const struct template *template)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct template_part *part = &template->parts[i];
        if (part->what == PART_SPECIAL && vocabulary_text(loading->vocabulary, part->id).at == NULL)
            return node_fail(&loading->reading, node, ATTN_ERR_VALUE, "adds the id %u, which no token has",
                             (unsigned)part->id);
    }
    return loading->reading.status;
}

attn_status postprocess_load(struct loading *loading, const struct node *node, struct postprocessor *postprocessor)
{
    const struct template_part plain[] = {{PART_TEXT, 0, 0}, {PART_PAIR, 0, 1}};
    struct steps steps;
    bool has_templates = false;
    make_template(loading, plain, 1, &postprocessor->single);
    make_template(loading, plain, 2, &postprocessor->pair);
    if (steps_load(loading, node, &post_processor_table, &steps) != ATTN_OK)
        return loading->reading.status;
    postprocessor->trims = node_take(&loading->reading, node, steps.count, sizeof *postprocessor->trims);
    for (size_t i = 0; i < steps.count && !node_has_failed(&loading->reading); i++) {
        const struct processor *processor = steps.items[i].options;
        if (processor->trim_offsets)
            postprocessor->trims[postprocessor->trim_count++] = (struct trim){processor->add_prefix_space};
        if (!processor->has_templates)
            continue;
        if (has_templates)
            return node_fail(&loading->reading, node, ATTN_ERR_VALUE,
                             "has two steps that add tokens, which is not supported");
        has_templates = true;
        postprocessor->single = processor->single;
        postprocessor->pair = processor->pair;
    }
    check_ids(loading, node, &postprocessor->single);
    return check_ids(loading, node, &postprocessor->pair);
}

/* ---- trimming ---- */

static bool is_trimmed(uint32_t c)
{
    return c == unicode_of_byte(' ') || unicode_is_space(c);
}

static uint32_t count_leading(struct text_span text)
{
    uint32_t count = 0;
    for (const char *at = text.at; at < text.at + text.length && is_trimmed(utf8_next(&at)); count++) {
    }
    return count;
}

static uint32_t count_trailing(struct text_span text)
{
    uint32_t count = 0;
    for (const char *end = text.at + text.length; end > text.at; count++) {
        do
            end--;
        while (end > text.at && !utf8_begins(*end));
        const char *at = end;
        if (!is_trimmed(utf8_next(&at)))
            break;
    }
    return count;
}

/* One leading space is kept where the tokenizer itself adds one. */
static void trim_token(const struct trim *trim, struct tokenizer_token *token, bool is_first)
{
    uint32_t leading = count_leading(token->text);
    const uint32_t trailing = count_trailing(token->text);
    if (leading == 1 && trim->add_prefix_space && (is_first || token->begin == 0))
        leading = 0;
    token->begin = token->begin + leading < token->end ? token->begin + leading : token->end;
    if (token->end >= trailing)
        token->end = token->end - trailing > token->begin ? token->end - trailing : token->begin;
}

void postprocess_trim(const struct postprocessor *postprocessor, struct draft *draft, struct tokenizer_token *tokens,
                      size_t count)
{
    for (size_t i = 0; i < postprocessor->trim_count; i++)
        for (size_t j = 0; j < count && !draft_stops(draft, sizeof *tokens); j++)
            trim_token(&postprocessor->trims[i], &tokens[j], j == 0);
}

/* kinds.c: decodes the steps of a tokenizer by tables of kinds, and has what the models share. */
#include "codec/tokenizer/model/kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/utf8.h"
#include "codec/json/tree.h"

enum { STEPS_MAX = 64, SEQUENCES_MAX = 8 /* one within another */ };

struct node step_item(const struct node *list, const json_t *piece, size_t index, size_t i)
{
    return (struct node){.parent = list, .index = index + i, .json = json_array_get(piece, i), .is_plain = true};
}

/* ---- pieces of the text ---- */

attn_status loading_fail_json(struct loading *loading, const json_error_t *error, size_t at)
{
    attn_error *err = loading->reading.err;
    if (attn_arena_is_cancelled(loading->scratch))
        return attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while the tokenizer was read");
    if (json_tree_is_starved())
        return attn_fail_no_memory(err);
    if (json_error_code(error) == json_error_null_byte_in_key)
        return attn_fail(err, ATTN_ERR_VALUE, NULL, "a name holds U+0000, which is not supported in a vocabulary");
    const struct skim *skim = loading->reading.skim;
    const attn_status status = attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the tokenizer is not JSON: %s", error->text);
    return skim_place(skim, at < skim->body_length ? at : skim->body_length, status, err);
}

attn_status loading_trie(struct loading *loading, const struct text_span *texts, size_t count, struct trie *trie)
{
    struct reading *reading = &loading->reading;
    return node_note(reading, trie_create(trie, texts, count, reading->arena, loading->scratch, reading->err));
}

attn_status loading_each(struct loading *loading, const struct json_collection *member, const struct json_taker *taker,
                         void *context)
{
    json_error_t error;
    const attn_status status = json_pieces_each(member, loading->scratch, taker, context, &error, loading->reading.err);
    if (error.line == 0)
        return node_note(&loading->reading, status);
    const size_t at = (size_t)(member->text.at - loading->reading.skim->body);
    return node_note(&loading->reading,
                     loading_fail_json(loading, &error, error.position > 0 ? at + (size_t)error.position : at));
}

/* ---- options ---- */

attn_status step_text(struct reading *reading, const struct node *node, void *to)
{
    struct text_span text = {NULL, 0};
    if (!node_string(reading, node, &text.at, &text.length))
        return node_fail_type(reading, node, "a string");
    if (memchr(text.at, '\0', text.length) != NULL)
        return node_fail(reading, node, ATTN_ERR_VALUE, "holds U+0000, which is not supported");
    const char *copy = attn_arena_copy_text(reading->arena, text.at, text.length);
    if (copy == NULL)
        return node_fail_memory(reading, node);
    *(struct text_span *)to = (struct text_span){copy, text.length};
    return ATTN_OK;
}

attn_status step_character(struct reading *reading, const struct node *node, void *to)
{
    struct text_span text = {NULL, 0};
    if (step_text(reading, node, &text) != ATTN_OK)
        return reading->status;
    const char *at = text.at;
    *(uint32_t *)to = utf8_next(&at);
    return at == text.at + text.length ? ATTN_OK : node_fail_value(reading, node, "one character");
}

attn_status step_count(struct reading *reading, const struct node *node, void *to)
{
    int64_t count = 0;
    attn_status status = node_decode_integer(reading, node, 0, INT32_MAX, &count);
    *(uint32_t *)to = (uint32_t)count;
    return status;
}

attn_status step_behavior(struct reading *reading, const struct node *node, void *to)
{
    static const char *const words[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    size_t index = 0;
    attn_status status = node_decode_word(reading, node, words, ARRAY_LENGTH(words), &index);
    *(enum draft_behavior *)to = (enum draft_behavior)index;
    return status;
}

attn_status step_pattern(struct reading *reading, const struct node *node, void *to)
{
    char field[JSON_POINTER_MAX];
    const struct node literal = node_member(node, "String"), regex = node_member(node, "Regex");
    const bool is_regex = regex.json != NULL;
    struct text_span text = {NULL, 0};
    if (!json_is_object(node->json) || json_object_size(node->json) != 1 || (literal.json == NULL && !is_regex))
        return node_fail_value(reading, node, "{\"String\": …} or {\"Regex\": …}");
    if (step_text(reading, is_regex ? &regex : &literal, &text) != ATTN_OK)
        return reading->status;
    node_pointer(node, field);
    return node_note(reading,
                     pattern_compile(text, is_regex, field, reading->arena, (const struct pattern **)to, reading->err));
}

attn_status step_token(struct reading *reading, const struct node *node, void *to)
{
    const struct node id = node_element(node, 1);
    if (json_array_size(node->json) != 2 || !json_is_string(json_array_get(node->json, 0)))
        return node_fail_value(reading, node, "a token and its id, as [\"[SEP]\", 3]");
    return step_count(reading, &id, &((struct step_token_id *)to)->id);
}

attn_status step_needs(struct loading *loading, const struct node *node, bool is_there, const char *what)
{
    return is_there ? ATTN_OK : node_fail(&loading->reading, node, ATTN_ERR_FIELD, "needs %s", what);
}

const struct member step_replace_members[2] = {
    {"pattern", step_pattern, offsetof(struct step_replace, pattern), MEMBER_ALWAYS},
    {"content", step_text, offsetof(struct step_replace, content), MEMBER_ALWAYS},
};

attn_status step_settle_replace(struct loading *loading, const struct node *node, void *options)
{
    const struct step_replace *replace = options;
    return step_needs(loading, node, replace->pattern != NULL && replace->content.at != NULL,
                      "\"pattern\" and \"content\"");
}

attn_status step_ignored(struct reading *reading, const struct node *node, void *to)
{
    (void)reading, (void)node, (void)to;
    return ATTN_OK;
}

/* ---- steps ---- */

static bool is_usable(const struct loading *loading, const struct step_kind *kind)
{
    return kind->scope == MEMBER_ALWAYS || loading->reading.scopes >> kind->scope & 1;
}

static attn_status fail_kind(struct loading *loading, const struct node *node, const struct step_table *table,
                             const char *name)
{
    char known[400] = "Sequence";
    size_t used = strlen(known);
    for (size_t i = 0; i < table->count; i++) {
        if (!is_usable(loading, &table->kinds[i]))
            continue;
        const int written = snprintf(known + used, sizeof known - used, ", %s", table->kinds[i].name);
        used += written > 0 && (size_t)written < sizeof known - used ? (size_t)written : 0;
    }
    return node_fail(&loading->reading, node, ATTN_ERR_VALUE,
                     "is a %s of the kind \"%.60s\", which is not supported; "
                     "supported kinds: %s",
                     table->what, name, known);
}

static attn_status load_step(struct loading *loading, const struct node *node, const struct step_kind *kind,
                             struct step *step)
{
    void *options = attn_arena_take_zeroed(loading->reading.arena, 1, kind->bytes);
    if (options == NULL)
        return node_fail_memory(&loading->reading, node);
    *step = (struct step){kind, options};
    struct reading *reading = &loading->reading;
    if (node_decode_members(reading, node, kind->members, kind->member_count, options) == ATTN_OK &&
        kind->settle != NULL)
        node_note(reading, kind->settle(loading, node, options));
    return reading->status;
}

static attn_status load_steps(struct loading *loading, const struct node *node, const struct step_table *table,
                              unsigned depth, struct steps *steps);

static attn_status load_sequence(struct loading *loading, const struct node *node, const struct step_table *table,
                                 unsigned depth, struct steps *steps)
{
    const struct node list = node_member(node, table->list);
    if (!json_is_array(list.json))
        return node_fail(&loading->reading, node, ATTN_ERR_FIELD, "is a Sequence without the list \"%s\"", table->list);
    if (depth == SEQUENCES_MAX)
        return node_fail(&loading->reading, node, ATTN_ERR_VALUE, "is the %uth Sequence within another", depth);
    for (size_t i = 0; i < json_array_size(list.json); i++) {
        const struct node element = node_element(&list, i);
        if (load_steps(loading, &element, table, depth + 1, steps) != ATTN_OK)
            return loading->reading.status;
    }
    return ATTN_OK;
}

static attn_status load_steps(struct loading *loading, const struct node *node, const struct step_table *table,
                              unsigned depth, struct steps *steps)
{
    const char *name = json_tree_word(json_object_get(node->json, "type"));
    if (name == NULL)
        return node_fail(&loading->reading, node, ATTN_ERR_FIELD, "has no \"type\"");
    if (strcmp(name, "Sequence") == 0)
        return load_sequence(loading, node, table, depth, steps);
    if (steps->count == STEPS_MAX)
        return node_fail(&loading->reading, node, ATTN_ERR_TOO_LARGE, "is one of more than %d steps", STEPS_MAX);
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->kinds[i].name, name) != 0 || !is_usable(loading, &table->kinds[i]))
            continue;
        (void)json_object_del(node->json, "type");
        return load_step(loading, node, &table->kinds[i], &steps->items[steps->count++]);
    }
    return fail_kind(loading, node, table, name);
}

attn_status steps_load(struct loading *loading, const struct node *node, const struct step_table *table,
                       struct steps *steps)
{
    *steps = (struct steps){0};
    if (node->json == NULL || node_has_failed(&loading->reading))
        return loading->reading.status;
    steps->items = node_take(&loading->reading, node, STEPS_MAX, sizeof *steps->items);
    return steps->items != NULL ? load_steps(loading, node, table, 0, steps) : loading->reading.status;
}

void steps_edit(const struct steps *steps, struct draft *draft)
{
    for (size_t i = 0; i < steps->count && !draft_has_failed(draft); i++) {
        const struct step *step = &steps->items[i];
        if (step->kind->rewrite != NULL)
            draft_rewrite(draft, step->kind->rewrite, step->options);
        else if (step->kind->remove != NULL)
            draft_split(draft, step->kind->remove, step->options, DRAFT_REMOVED);
        else
            step->kind->edit(draft, step->options);
    }
}

/* ---- what the models share ---- */

void model_add_token(struct model_run *run, struct model_token token)
{
    void *tokens = run->tokens;
    if (!draft_grow(run->draft, &tokens, &run->capacity, run->count + 1, sizeof token))
        return;
    run->tokens = tokens;
    run->tokens[run->count++] = token;
}

uint32_t model_find_token(const struct loading *loading, struct text_span text)
{
    return text.at != NULL ? vocabulary_find(loading->vocabulary, text.at, text.length) : VOCABULARY_NONE;
}

void model_find_bytes(const struct vocabulary *vocabulary, struct model_bytes *bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[] = "<0x00>";
    for (unsigned byte = 0; byte < 256; byte++) {
        text[3] = digits[byte >> 4];
        text[4] = digits[byte & 15];
        bytes->ids[byte] = vocabulary_find(vocabulary, text, sizeof text - 1);
    }
}

bool model_has_bytes(const struct model_bytes *bytes, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes->ids[(unsigned char)text[i]] == VOCABULARY_NONE)
            return false;
    return true;
}

void model_fail_unknown(struct model_run *run)
{
    outcome_fail(&run->draft->outcome, ATTN_ERR_VALUE, NULL,
                 "the text holds characters that the tokenizer has no token for, and it has no unknown token");
}

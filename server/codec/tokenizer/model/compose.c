/* compose.c: the vocabulary, the added tokens and the merges of a tokenizer.json, made of a list of tokens. */
#include "codec/tokenizer/model/compose.h"

#include <stdlib.h>
#include <string.h>

#include "codec/bytes/outcome.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/model/vocabulary.h"

enum {
    MERGED_BYTES_MAX = 512,  /* longer tokens come from no text: a list of all pairs would be long */
    MERGE_WORK_MAX = 1 << 27 /* squares of the bytes of tokens: a bound for the search and for the bytes of all pairs */
};

/* ---- tokens around texts ---- */

static const struct compose_special *find_special(const struct compose_special *specials, size_t count, char letter)
{
    for (size_t i = 0; i < count; i++)
        if (specials[i].letter == letter)
            return &specials[i];
    return NULL;
}

static void write_parts(const char *name, const char *parts, const struct compose_special *specials, size_t count,
                        struct chunks *out)
{
    const char *separator = "";
    chunks_format(out, ",\"%s\":[", name);
    for (; *parts != '\0'; parts++) {
        const struct compose_special *special = find_special(specials, count, *parts);
        const bool is_text = *parts == 'A' || *parts == 'B';
        if (special == NULL && !is_text)
            continue;
        chunks_format(out, "%s{\"%s\":{\"id\":", separator, is_text ? "Sequence" : "SpecialToken");
        if (is_text)
            chunks_format(out, "\"%c\"", *parts);
        else
            chunks_json_span(out, special->text);
        chunks_format(out, ",\"type_id\":%d}}", parts[1] == '1');
        separator = ",";
    }
    chunks_text(out, "]");
}

void compose_template(const char *single, const char *pair, const struct compose_special *specials, size_t count,
                      struct chunks *out)
{
    chunks_text(out, "{\"type\":\"TemplateProcessing\"");
    write_parts("single", single, specials, count, out);
    write_parts("pair", pair, specials, count, out);
    chunks_text(out, ",\"special_tokens\":{");
    for (size_t i = 0; i < count; i++) {
        bool is_written = false; /* one token may have several letters */
        for (size_t k = 0; k < i; k++)
            is_written |= specials[k].text.at == specials[i].text.at;
        if (is_written)
            continue;
        chunks_text(out, i > 0 ? "," : "");
        chunks_json_span(out, specials[i].text);
        chunks_text(out, ":{\"id\":");
        chunks_json_span(out, specials[i].text);
        chunks_format(out, ",\"ids\":[%u],\"tokens\":[", (unsigned)specials[i].id);
        chunks_json_span(out, specials[i].text);
        chunks_text(out, "]}");
    }
    chunks_text(out, "}}");
}

/* ---- tokens ---- */

void compose_vocabulary(const struct compose_token *tokens, size_t count, struct chunks *out)
{
    chunks_text(out, "{");
    for (size_t i = 0; i < count && out->is_ok; i++) {
        chunks_text(out, i > 0 ? "," : "");
        chunks_json_span(out, tokens[i].text);
        chunks_text(out, ":");
        chunks_count(out, i);
    }
    chunks_text(out, "}");
}

void compose_added_tokens(const struct compose_token *tokens, size_t count, struct chunks *out)
{
    const char *separator = "[";
    for (size_t i = 0; i < count && out->is_ok; i++) {
        const enum compose_kind kind = tokens[i].kind;
        if (kind != COMPOSE_UNKNOWN && kind != COMPOSE_CONTROL && kind != COMPOSE_USER_DEFINED)
            continue;
        chunks_text(out, separator);
        chunks_text(out, "{\"id\":");
        chunks_count(out, i);
        chunks_text(out, ",\"content\":");
        chunks_json_span(out, tokens[i].text);
        chunks_text(out, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":");
        chunks_text(out, kind == COMPOSE_USER_DEFINED ? "false}" : "true}");
        separator = ",";
    }
    chunks_text(out, separator[0] == '[' ? "[]" : "]");
}

/* ---- merges ---- */

struct pair {
    float score;
    uint32_t whole, left, right;        /* ids */
    uint32_t left_length, right_length; /* characters */
};

static int compare_counts(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_pairs(const void *first, const void *second)
{
    const struct pair *a = first, *b = second;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->left_length != b->left_length)
        return compare_counts(b->left_length, a->left_length);
    if (a->right_length != b->right_length)
        return compare_counts(b->right_length, a->right_length);
    return compare_counts(a->whole, b->whole); /* another pair of the same token has another length */
}

/* Finds the pairs that make the token of that id. Stores them at pairs, if that is not NULL. Returns how many. */
static size_t find_pairs(const struct vocabulary *vocabulary, const struct compose_token *tokens, uint32_t id,
                         struct pair *pairs)
{
    const struct text_span text = tokens[id].text;
    const uint32_t length = pairs != NULL ? (uint32_t)utf8_count(text.at, text.length) : 0;
    size_t found = 0;
    uint32_t left_length = 1;
    if (tokens[id].kind != COMPOSE_NORMAL || text.length > MERGED_BYTES_MAX)
        return 0;
    for (size_t i = 1; i < text.length; i++) {
        if (!utf8_begins(text.at[i]))
            continue;
        const uint32_t left = vocabulary_find(vocabulary, text.at, i),
                       right = left != VOCABULARY_NONE ? vocabulary_find(vocabulary, text.at + i, text.length - i)
                                                       : VOCABULARY_NONE;
        if (right != VOCABULARY_NONE && pairs != NULL)
            pairs[found] = (struct pair){tokens[id].score, id, left, right, left_length, length - left_length};
        found += right != VOCABULARY_NONE;
        left_length++;
    }
    return found;
}

static bool make_vocabulary(const struct compose_token *tokens, size_t count, struct vocabulary *vocabulary,
                            struct outcome *outcome)
{
    bool is_well = outcome_note(outcome, vocabulary_create(vocabulary, count, count, outcome->arena, outcome->err));
    for (size_t i = 0; i < count && is_well; i++)
        is_well = outcome_note(outcome, vocabulary_add(vocabulary, tokens[i].text, (uint32_t)i, outcome->err));
    return is_well;
}

attn_status compose_merges(const struct compose_token *tokens, size_t count, attn_arena *scratch, struct chunks *out,
                           attn_error *err)
{
    struct vocabulary vocabulary;
    struct outcome outcome = {.arena = scratch, .err = err};
    size_t pairs = 0, found = 0, work = 0;
    if (!make_vocabulary(tokens, count, &vocabulary, &outcome))
        return outcome.status;
    for (size_t i = 0; i < count; i++)
        work += tokens[i].text.length <= MERGED_BYTES_MAX ? tokens[i].text.length * tokens[i].text.length : 0;
    if (work > MERGE_WORK_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, NULL, "the tokens are too long to list the merges that make them");
    for (uint32_t i = 0; i < count; i++)
        pairs += find_pairs(&vocabulary, tokens, i, NULL);
    struct pair *all = attn_arena_take(scratch, pairs + 1, sizeof *all);
    if (all == NULL)
        return attn_fail_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        found += find_pairs(&vocabulary, tokens, i, all + found);
    qsort(all, found, sizeof *all, compare_pairs);
    chunks_text(out, "[");
    for (size_t i = 0; i < found && out->is_ok; i++) {
        chunks_text(out, i > 0 ? ",[" : "[");
        chunks_json_span(out, tokens[all[i].left].text);
        chunks_text(out, ",");
        chunks_json_span(out, tokens[all[i].right].text);
        chunks_text(out, "]");
    }
    chunks_text(out, "]");
    return ATTN_OK;
}

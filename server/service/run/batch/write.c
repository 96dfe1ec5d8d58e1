/* write.c: writes what an answer says about the tokens of its batch. */
#include <stdio.h>

#include "codec/answer/forms.h"
#include "codec/bytes/bound.h"
#include "codec/bytes/pace.h"
#include "codec/bytes/utf8.h"
#include "service/run/batch/batch.h"

/* ---- rows ---- */

/* The spelling of token i of the item: its own where the tokenizer made it, else that of its id. */
struct text_span model_batch_word(const struct model_batch *batch, size_t stack, size_t item, size_t i)
{
    const struct tokenizer_token *tokens = batch->tokens[stack][item];
    const int64_t id = batch->items[item].of[stack].ids[i];
    return tokens != NULL ? tokens[i].text : tokenizer_token(batch->version->tokenizer, (uint32_t)id);
}

static void write_text(struct text_span word, struct chunks *out)
{
    if (word.at != NULL)
        chunks_json_span(out, word);
    else
        chunks_text(out, "null");
}

/* What is told of each token. */
enum column { IDS, WORDS, SHOWN, OFFSETS, SPECIAL, TYPES, SEGMENTS };

/* The segment of a token that the post-processor added is null. */
static void write_cell(const struct model_batch *batch, size_t stack, size_t item, size_t i, enum column column,
                       struct chunks *out)
{
    static const char *const segments[] = {"0", "1", "null"};
    const struct tokenizer_token *token = column < OFFSETS ? NULL : &batch->tokens[stack][item][i];
    if (column == IDS)
        chunks_count(out, (uint64_t)batch->items[item].of[stack].ids[i]);
    else if (column == WORDS)
        write_text(model_batch_word(batch, stack, item, i), out);
    else if (column == SHOWN)
        write_text(batch->shown[stack][item][i], out);
    else if (column == TYPES)
        chunks_count(out, token->type_id);
    else if (column == SPECIAL)
        chunks_text(out, token->is_special ? "true" : "false");
    else if (column == SEGMENTS)
        chunks_text(out, segments[token->segment]);
    else {
        chunks_text(out, "[");
        chunks_count(out, token->begin);
        chunks_text(out, ",");
        chunks_count(out, token->end);
        chunks_text(out, "]");
    }
}

/* ,"name":[row of the first item, …]; nothing more once the request is cancelled. */
static void write_rows(const struct model_batch *batch, size_t stack, const char *name, enum column column,
                       struct chunks *out)
{
    struct pace pace = pace_begin(out->arena);
    chunks_format(out, "%s\"%s\":[", column == IDS ? "" : ",", name);
    for (size_t item = 0; item < batch->inputs->batch; item++) {
        chunks_text(out, item > 0 ? ",[" : "[");
        for (size_t i = 0; i < batch->items[item].of[stack].count && out->is_ok; i++) {
            chunks_text(out, i > 0 ? "," : "");
            write_cell(batch, stack, item, i, column, out);
            if (pace_stops(&pace, sizeof(struct tokenizer_token)))
                out->is_ok = false;
        }
        chunks_text(out, "]");
    }
    chunks_text(out, "]");
}

/* Whether the tokenizer made the tokens of the stack. */
static bool are_encoded(const struct model_batch *batch, size_t stack)
{
    return batch->tokens[stack][0] != NULL;
}

/* ---- the answer of a run ---- */

bool model_batch_has_tokens(const struct model_batch *batch)
{
    return batch->items[0].of[0].ids != NULL || batch->items[0].of[1].ids != NULL;
}

static void write_stack(const struct model_batch *batch, size_t stack, struct chunks *out)
{
    if (batch->items[0].of[stack].ids == NULL) {
        chunks_text(out, "null");
        return;
    }
    chunks_text(out, "{");
    write_rows(batch, stack, "ids", IDS, out);
    if (batch->version->tokenizer != NULL) {
        write_rows(batch, stack, "text", WORDS, out);
        write_rows(batch, stack, "shown", SHOWN, out);
    }
    if (are_encoded(batch, stack))
        write_rows(batch, stack, "offsets", OFFSETS, out);
    chunks_text(out, "}");
}

static void write_lengths(const struct model_batch *batch, size_t stack, struct chunks *out)
{
    chunks_text(out, "[");
    for (size_t item = 0; item < batch->inputs->batch; item++) {
        chunks_text(out, item > 0 ? "," : "");
        chunks_count(out, batch->items[item].of[stack].count);
    }
    chunks_text(out, "]");
}

/* Calls write for the only stack, or for a member of an object for each stack that runs. */
static void write_stacks(const struct model_batch *batch,
                         void (*write)(const struct model_batch *batch, size_t stack, struct chunks *out),
                         struct chunks *out)
{
    const bool has_target = model_batch_has_target(batch->version, batch->inputs);
    if (batch->version->model.stack_count < 2) {
        write(batch, 0, out);
        return;
    }
    chunks_text(out, "{\"encoder\":");
    write(batch, 0, out);
    if (has_target) {
        chunks_text(out, ",\"decoder\":");
        write(batch, 1, out);
    }
    chunks_text(out, "}");
}

void model_batch_write_tokens(const struct model_batch *batch, struct chunks *out)
{
    write_stacks(batch, write_stack, out);
}

void model_batch_write_lengths(const struct model_batch *batch, struct chunks *out)
{
    write_stacks(batch, write_lengths, out);
}

/* ---- the answer to a request for tokens ---- */

void model_batch_write_columns(const struct model_batch *batch, struct chunks *out)
{
    write_rows(batch, 0, "ids", IDS, out);
    write_rows(batch, 0, "tokens", WORDS, out);
    write_rows(batch, 0, "shown", SHOWN, out);
    chunks_text(out, ",\"lengths\":");
    write_lengths(batch, 0, out);
    if (!are_encoded(batch, 0))
        return;
    write_rows(batch, 0, "offsets", OFFSETS, out);
    write_rows(batch, 0, "special", SPECIAL, out);
    write_rows(batch, 0, "type_ids", TYPES, out);
    write_rows(batch, 0, "segments", SEGMENTS, out);
}

size_t model_batch_tokens_bound(const struct model_batch *batch)
{
    enum { FRAME_BYTES = 256, ITEM_BYTES = 64, TOKEN_BYTES = 80, BYTE_BYTES = 6 /* \u001f */ };
    size_t bound = FRAME_BYTES;
    for (size_t item = 0; item < batch->inputs->batch; item++)
        for (size_t stack = 0; stack < 2; stack++) {
            const struct model_sequence *sequence = &batch->items[item].of[stack];
            bound = bound_add(bound, 1, ITEM_BYTES);
            for (size_t i = 0; sequence->ids != NULL && i < sequence->count; i++) {
                const bool has_text = batch->version->tokenizer != NULL;
                const size_t bytes =
                    has_text ? model_batch_word(batch, stack, item, i).length + batch->shown[stack][item][i].length : 0;
                bound = bound_add(bound_add(bound, 1, TOKEN_BYTES), bytes, BYTE_BYTES);
            }
        }
    return bound;
}

/* ---- hints ---- */

/* One text of an item, and its place in the tokens. */
struct told_text {
    const char *member;
    size_t stack, item;
    unsigned segment;
};

/* Letters of scripts that put a space or a sign between words. Thai and the scripts of East Asia begin behind them. */
static bool is_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= 0xC0 && c < 0xE00);
}

/*
 * Counts the words, runs of letters, and those of three or more tokens of at most two letters on average: the model has
 * no words for them, so its maps are about letters. Words that were cut off have no tokens.
 */
static void count_words(const struct model_batch *batch, const struct told_text *told, struct text_span text,
                        size_t *words, size_t *spelt)
{
    const struct tokenizer_token *tokens = batch->tokens[told->stack][told->item];
    const size_t count = batch->items[told->item].of[told->stack].count;
    const char *at = text.at;
    size_t token = 0;
    for (uint32_t begin = 0, end; at < text.at + text.length; begin = end) {
        for (end = begin; at < text.at + text.length && is_letter(utf8_next(&at)); end++)
            ;
        size_t pieces = 0;
        while (token < count && (tokens[token].segment != told->segment || tokens[token].end <= begin))
            token++;
        for (size_t i = token; i < count && tokens[i].segment == told->segment && tokens[i].begin < end; i++)
            pieces++;
        *words += end > begin && pieces > 0;
        *spelt += end > begin && pieces >= 3 && end - begin <= 2 * pieces;
        end++; /* the character behind the word */
    }
}

/* Adds the hint of one text, if there is one. */
static void add_hint(const struct model_batch *batch, const struct told_text *told, struct text_span text,
                     size_t *count, struct chunks *out)
{
    char pointer[48], message[192];
    const struct tokenizer_token *tokens = batch->tokens[told->stack][told->item], *first = NULL;
    size_t unknown = 0, words = 0, spelt = 0;
    for (size_t i = 0; tokens != NULL && i < batch->items[told->item].of[told->stack].count; i++)
        if (tokens[i].is_unknown && tokens[i].segment == told->segment && unknown++ == 0)
            first = &tokens[i];
    if (tokens != NULL && first == NULL)
        count_words(batch, told, text, &words, &spelt);
    if (first == NULL && 2 * spelt <= words)
        return;
    snprintf(pointer, sizeof pointer, batch->inputs->batch > 1 ? "/inputs/%s/%zu" : "/inputs/%s", told->member,
             told->item);
    if (first != NULL)
        snprintf(message, sizeof message,
                 "the tokenizer does not know %zu %s of this text, the first at characters %u to %u: its token for "
                 "unknown words stands there",
                 unknown, unknown == 1 ? "word" : "words", first->begin, first->end);
    else
        snprintf(message, sizeof message,
                 "%zu of %zu words of this text fall into pieces of one or two letters: the model has no tokens for "
                 "them, so its maps may mean little",
                 spelt, words);
    hints_add(pointer, message, count, out);
}

void model_batch_add_hints(const struct model_batch *batch, size_t *count, struct chunks *out)
{
    enum { HINTS_MAX = 20, TEXTS = 3 };
    const struct text_span *const texts[TEXTS] = {batch->inputs->text, batch->inputs->pair, batch->inputs->target};
    for (size_t item = 0; item < batch->inputs->batch; item++) {
        const struct told_text told[TEXTS] = {{"text", 0, item, 0}, {"pair", 0, item, 1}, {"target", 1, item, 0}};
        for (size_t i = 0; i < TEXTS && *count < HINTS_MAX; i++)
            if (texts[i] != NULL)
                add_hint(batch, &told[i], texts[i][item], count, out);
    }
}

const char *model_batch_label(struct text_span shown, attn_arena *arena)
{
    struct chunks text = chunks_begin(arena);
    for (size_t i = 0; i < shown.length; i++)
        chunks_bytes(&text, shown.at[i] != '\0' ? shown.at + i : "\xEF\xBF\xBD", shown.at[i] != '\0' ? 1 : 3);
    return chunks_join(&text);
}

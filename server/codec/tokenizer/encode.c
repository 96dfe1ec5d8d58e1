/* encode.c: from text to tokens and back, through the parts of a tokenizer. */
#include "codec/tokenizer/parts.h"

#include <string.h>

uint32_t tokenizer_vocabulary_size(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.size;
}

struct text_span tokenizer_token(const struct tokenizer *tokenizer, uint32_t id)
{
    return vocabulary_text(&tokenizer->vocabulary, id);
}

static bool fail_cancelled(struct outcome *outcome)
{
    return outcome_fail(outcome, ATTN_ERR_CANCELLED, NULL, "cancelled while the text was tokenized");
}

/* ---- one text ---- */

/* The tokens of one text, in scratch; their texts may lie in the draft. */
struct segment {
    struct tokenizer_token *tokens;
    size_t count;
};

static void tokenize_pieces(const struct tokenizer *tokenizer, struct model_run *run)
{
    struct draft *draft = run->draft;
    for (size_t i = 0; i < draft->pieces.count && !draft_stops(draft, 1); i++) {
        const struct piece *piece = &draft->pieces.items[i];
        if (piece->id == PIECE_IS_TEXT)
            tokenizer->model_kind->tokenize(tokenizer->model, run, piece->begin, piece->end);
        else
            model_add_token(run, (struct model_token){
                                     .id = piece->id, .begin = piece->begin, .end = piece->end, .is_surface = true});
    }
}

static void finish(const struct tokenizer *tokenizer, const struct model_run *run, uint8_t number,
                   struct segment *segment)
{
    struct draft *draft = run->draft;
    segment->count = run->count;
    segment->tokens = outcome_take(&draft->outcome, run->count, sizeof *segment->tokens);
    for (size_t i = 0; i < run->count && !draft_stops(draft, sizeof *segment->tokens); i++) {
        const struct model_token *token = &run->tokens[i];
        const struct text_span surface = {draft->text.bytes + token->begin, token->end - token->begin};
        segment->tokens[i] = (struct tokenizer_token){
            .id = token->id,
            .begin = draft->text.origins[token->begin].begin,
            .end = draft->text.origins[token->end - 1].end,
            .segment = number,
            .is_unknown = token->is_unknown,
            .text = token->is_surface ? surface : vocabulary_text(&tokenizer->vocabulary, token->id)};
    }
    if (!draft_has_failed(draft))
        postprocess_trim(&tokenizer->postprocessor, draft, segment->tokens, segment->count);
}

static bool encode_text(const struct tokenizer *tokenizer, struct text_span text, uint8_t number, attn_arena *scratch,
                        struct segment *segment, struct outcome *outcome)
{
    struct draft draft;
    struct model_run run = {.draft = &draft, .vocabulary = &tokenizer->vocabulary};
    const char *name = number == 0 ? "the text" : "the pair";
    if (!outcome_note(outcome, draft_begin(&draft, name, text.at, text.length, scratch, outcome->err)))
        return false;
    steps_edit(&tokenizer->before, &draft);
    added_split(&draft, &tokenizer->added, false);
    steps_edit(&tokenizer->normalizers, &draft);
    added_split(&draft, &tokenizer->added, true);
    steps_edit(&tokenizer->pre_tokenizers, &draft);
    tokenize_pieces(tokenizer, &run);
    if (!draft_has_failed(&draft))
        finish(tokenizer, &run, number, segment);
    return outcome_note(outcome, draft.outcome.status);
}

/* ---- length ---- */

/* As transformers' "longest_first": both get half, except what a shorter one leaves. */
static void truncate_longest(struct segment *text, struct segment *pair, size_t max)
{
    struct segment *shorter = text->count <= pair->count ? text : pair, *longer = shorter == text ? pair : text;
    size_t low = shorter->count, high = low > max ? low : low > max - low ? low : max - low;
    if (low + high > max) {
        low = max / 2;
        high = low + max % 2;
    }
    shorter->count = low < shorter->count ? low : shorter->count;
    longer->count = high < longer->count ? high : longer->count;
}

static bool fit(const struct tokenizer_input *input, size_t added, struct segment segments[2], struct outcome *outcome)
{
    const size_t count = segments[0].count + segments[1].count + added, max = input->max_length;
    if (max == 0 || count <= max)
        return true;
    if (added > max)
        return outcome_fail(outcome, ATTN_ERR_VALUE, NULL,
                            "at most %zu tokens have no place for the %zu that the tokenizer adds", max, added);
    if (!input->truncate)
        return outcome_fail(outcome, ATTN_ERR_TOO_LARGE, NULL, "the text has %zu tokens; at most %zu are allowed",
                            count, max);
    truncate_longest(&segments[0], &segments[1], max - added);
    return true;
}

/* ---- both texts ---- */

/* Adds the bytes of texts that are not the vocabulary's spelling, with their NULs. False: the work must stop. */
static bool count_surface(const struct tokenizer *tokenizer, const struct segment *segment, struct pace *pace,
                          size_t *bytes)
{
    for (size_t i = 0; i < segment->count; i++) {
        if (pace_stops(pace, sizeof *segment->tokens))
            return false;
        const struct text_span text = segment->tokens[i].text;
        const struct text_span spelling = vocabulary_text(&tokenizer->vocabulary, segment->tokens[i].id);
        const bool is_spelling = text.at == spelling.at ||
                                 (text.length == spelling.length && memcmp(text.at, spelling.at, text.length) == 0);
        if (is_spelling)
            segment->tokens[i].text = spelling;
        else
            *bytes += text.length + 1;
    }
    return true;
}

/*
 * Copies the tokens to the output, and texts that are not the vocabulary's to *to, which moves behind them. False: the
 * work must stop.
 */
static bool add_segment(const struct tokenizer *tokenizer, const struct segment *segment, uint32_t type_id, char **to,
                        struct pace *pace, struct tokenizer_output *output)
{
    for (size_t i = 0; i < segment->count; i++) {
        if (pace_stops(pace, sizeof *segment->tokens))
            return false;
        struct tokenizer_token *token = &output->tokens[output->count++];
        *token = segment->tokens[i];
        token->type_id = type_id;
        if (token->text.at == vocabulary_text(&tokenizer->vocabulary, token->id).at)
            continue;
        memcpy(*to, token->text.at, token->text.length);
        token->text.at = *to;
        *to += token->text.length;
        *(*to)++ = '\0';
    }
    return true;
}

static bool assemble(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                     const struct template *template, const struct segment segments[2], struct tokenizer_output *output,
                     struct outcome *outcome)
{
    size_t count = 0, bytes = 0;
    struct pace pace = pace_begin(outcome->arena);
    for (size_t i = 0; i < template->count; i++) {
        const uint8_t what = template->parts[i].what;
        count += what == PART_SPECIAL ? 1 : segments[what].count;
        if (what != PART_SPECIAL && !count_surface(tokenizer, &segments[what], &pace, &bytes))
            return fail_cancelled(outcome);
    }
    output->count = 0;
    output->tokens = outcome_take(outcome, count, sizeof *output->tokens);
    char *texts = outcome_take(outcome, bytes, 1);
    if (texts == NULL)
        return false;
    for (size_t i = 0; i < template->count; i++) {
        const struct template_part *part = &template->parts[i];
        if (part->what != PART_SPECIAL) {
            if (!add_segment(tokenizer, &segments[part->what], part->type_id, &texts, &pace, output))
                return fail_cancelled(outcome);
        } else if (input->add_special) {
            output->tokens[output->count++] =
                (struct tokenizer_token){.id = part->id,
                                         .type_id = part->type_id,
                                         .segment = TOKENIZER_NO_SEGMENT,
                                         .is_special = true,
                                         .text = vocabulary_text(&tokenizer->vocabulary, part->id)};
        }
    }
    return true;
}

attn_status tokenizer_encode(const struct tokenizer *tokenizer, const struct tokenizer_input *input, attn_arena *arena,
                             attn_arena *scratch, struct tokenizer_output *output, attn_error *err)
{
    const bool has_pair = input->pair.at != NULL;
    const struct template *template = has_pair ? &tokenizer->postprocessor.pair : &tokenizer->postprocessor.single;
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    struct outcome outcome = {.arena = arena, .err = err};
    struct segment segments[2] = {{0}};
    (void)(encode_text(tokenizer, input->text, 0, scratch, &segments[0], &outcome) &&
           (!has_pair || encode_text(tokenizer, input->pair, 1, scratch, &segments[1], &outcome)) &&
           fit(input, input->add_special ? template->added : 0, segments, &outcome) &&
           assemble(tokenizer, input, template, segments, output, &outcome));
    if (scratch != arena)
        attn_arena_release(scratch, mark);
    return outcome.status;
}

/* ---- decoding ---- */

/* The spellings of the tokens. Normalized added tokens are spelled as the normalizers leave them, for the decoder. */
static void collect(const struct tokenizer *tokenizer, const uint32_t *ids, size_t count, bool skip_special,
                    struct decoding *decoding)
{
    for (size_t i = 0; i < count; i++) {
        if (pace_stops(&decoding->pace, sizeof *decoding->texts)) {
            fail_cancelled(&decoding->outcome);
            return;
        }
        const struct added_token *added = added_find(&tokenizer->added, ids[i]);
        const struct text_span text =
            added != NULL ? added->normalized_text : vocabulary_text(&tokenizer->vocabulary, ids[i]);
        if (text.at != NULL && !(skip_special && added != NULL && added->special))
            decoding->texts[decoding->count++] = text;
    }
}

static void join(struct decoding *decoding, bool has_decoder, attn_arena *arena, struct text_span *text)
{
    size_t bytes = 1;
    for (size_t i = 0; i < decoding->count; i++)
        bytes += decoding->texts[i].length + 1;
    decoding->outcome.arena = arena;
    char *joined = outcome_take(&decoding->outcome, bytes, 1), *to = joined;
    if (joined == NULL)
        return;
    for (size_t i = 0; i < decoding->count; i++) {
        if (pace_stops(&decoding->pace, sizeof *decoding->texts + decoding->texts[i].length)) {
            fail_cancelled(&decoding->outcome);
            return;
        }
        if (i > 0 && !has_decoder)
            *to++ = ' ';
        memcpy(to, decoding->texts[i].at, decoding->texts[i].length);
        to += decoding->texts[i].length;
    }
    *to = '\0';
    *text = (struct text_span){joined, (size_t)(to - joined)};
}

attn_status tokenizer_decode(const struct tokenizer *tokenizer, const uint32_t *ids, size_t count, bool skip_special,
                             attn_arena *arena, attn_arena *scratch, struct text_span *text, attn_error *err)
{
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    struct decoding decoding = {
        .outcome = {.arena = scratch, .err = err}, .pace = pace_begin(scratch), .search.arena = scratch};
    decoding.texts = outcome_take(&decoding.outcome, count, sizeof *decoding.texts);
    if (decoding.texts != NULL)
        collect(tokenizer, ids, count, skip_special, &decoding);
    decoders_run(&tokenizer->decoders, &decoding);
    if (!outcome_has_failed(&decoding.outcome))
        join(&decoding, tokenizer->decoders.count > 0, arena, text);
    if (scratch != arena)
        attn_arena_release(scratch, mark);
    return decoding.outcome.status;
}

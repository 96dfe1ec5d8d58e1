/*
 * show.c: what a reader should see of a token, where the vocabulary's spelling cannot be read ("ÐŁÑĢ", "▁the", "<0xE4>").
 */
#include <string.h>

#include "codec/bytes/bound.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/pace.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/encoding.h"
#include "codec/tokenizer/parts.h"
#include "codec/tokenizer/text/unicode.h"

enum {
    ESCAPE_BYTES = 4, /* \xE4 */
    SPELLED_MAX = TOKENIZER_SHOWN_MAX / ESCAPE_BYTES,
    DECODED_TIMES = 2, /* a decoded token that takes more than so many times its spelling is shown as spelled */
};

/* ---- bytes ---- */

static bool has_decoder(const struct tokenizer *tokenizer, const char *name)
{
    for (size_t i = 0; i < tokenizer->decoders.count; i++)
        if (strcmp(tokenizer->decoders.items[i].kind->name, name) == 0)
            return true;
    return false;
}

/* Reads a text of GPT-2's alphabet. Returns the number of bytes; 0: it is none. */
static size_t read_alphabet(struct text_span spelling, char bytes[SPELLED_MAX + 1])
{
    size_t count = 0;
    for (const char *at = spelling.at; at < spelling.at + spelling.length; count++) {
        const int byte = unicode_to_byte(utf8_next(&at));
        if (byte < 0 || count == SPELLED_MAX)
            return 0;
        bytes[count] = (char)byte;
    }
    return count;
}

/* The spelling without the mark of the end of a word, which stands for no byte. */
static struct text_span without_suffix(const struct tokenizer *tokenizer, struct text_span spelling)
{
    const struct text_span none = {"", 0};
    const struct text_span suffix =
        tokenizer->model_kind->suffix != NULL ? tokenizer->model_kind->suffix(tokenizer->model) : none;
    if (spelling.length > suffix.length &&
        memcmp(spelling.at + spelling.length - suffix.length, suffix.at, suffix.length) == 0)
        spelling.length -= suffix.length;
    return spelling;
}

/* The bytes that a spelling stands for, with a NUL behind them. Returns their number; 0: it stands for no bytes. */
static size_t read_bytes(const struct tokenizer *tokenizer, struct text_span spelling, char bytes[SPELLED_MAX + 1])
{
    size_t count = 0;
    if (has_decoder(tokenizer, "ByteLevel"))
        count = read_alphabet(without_suffix(tokenizer, spelling), bytes);
    else if (has_decoder(tokenizer, "ByteFallback") && decoder_read_byte(spelling, bytes))
        count = 1;
    bytes[count] = '\0';
    return count;
}

/* The bytes of the character at text; 0: there is none, but a part of one. */
static size_t character_bytes(const char *text)
{
    return *text == '\0' ? 1 : utf8_length(text);
}

/* Characters as they are, bytes of a part of one as \xE4. A NUL stands behind the bytes. Returns the length. */
static size_t write_bytes(const char *bytes, size_t count, char room[TOKENIZER_SHOWN_MAX])
{
    char *to = room;
    for (size_t at = 0; at < count;) {
        const size_t length = character_bytes(bytes + at);
        if (length > 0) {
            memcpy(to, bytes + at, length);
            to += length;
        } else {
            static const char digits[] = "0123456789ABCDEF";
            const unsigned char byte = (unsigned char)bytes[at];
            memcpy(to, (const char[]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, ESCAPE_BYTES);
            to += ESCAPE_BYTES;
        }
        at += length > 0 ? length : 1;
    }
    return (size_t)(to - room);
}

/* ---- ids ---- */

static bool begins_with(struct text_span text, struct text_span beginning)
{
    return text.length >= beginning.length && memcmp(text.at, beginning.at, beginning.length) == 0;
}

/* What the decoder makes of the token, behind itself unless it is the first. */
static attn_status decode(const struct tokenizer *tokenizer, uint32_t id, bool is_first, attn_arena *scratch,
                          struct text_span *text)
{
    struct text_span two = {NULL, 0};
    const uint32_t ids[] = {id, id};
    const attn_status status = tokenizer_decode(tokenizer, ids, 1, false, scratch, scratch, text, NULL);
    if (status != ATTN_OK || is_first)
        return status;
    const attn_status again = tokenizer_decode(tokenizer, ids, 2, false, scratch, scratch, &two, NULL);
    if (two.at != NULL && begins_with(two, *text))
        *text = (struct text_span){two.at + text->length, two.length - text->length};
    return again;
}

/* WordPiece sets a space between words, which belongs to no token. */
static struct text_span without_join(struct text_span text, struct text_span spelling)
{
    if (text.length != spelling.length + 1 || text.at[0] != ' ' ||
        memcmp(text.at + 1, spelling.at, spelling.length) != 0)
        return text;
    return spelling;
}

bool tokenizer_show_id(const struct tokenizer *tokenizer, uint32_t id, bool is_first, attn_arena *scratch,
                       char room[TOKENIZER_SHOWN_MAX], struct text_span *shown)
{
    const struct text_span spelling = *shown = tokenizer_token(tokenizer, id);
    char bytes[SPELLED_MAX + 1];
    if (spelling.at == NULL || added_find(&tokenizer->added, id) != NULL)
        return true;
    const size_t count = read_bytes(tokenizer, spelling, bytes);
    if (count > 0) {
        *shown = (struct text_span){room, write_bytes(bytes, count, room)};
        return true;
    }
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    struct text_span text = {NULL, 0};
    const attn_status status = decode(tokenizer, id, is_first, scratch, &text);
    if (status == ATTN_OK && text.length > 0 && text.length <= TOKENIZER_SHOWN_MAX &&
        chunks_json_bytes(text) <= DECODED_TIMES * chunks_json_bytes(spelling)) {
        *shown = without_join(text, spelling);
        if (shown->at == text.at)
            shown->at = memcpy(room, text.at, text.length);
    }
    attn_arena_release(scratch, mark);
    return status != ATTN_ERR_NO_MEMORY;
}

/* ---- lengths ---- */

enum { NULL_BYTES = sizeof "null" - 1 };

/* What is shown of bytes is known. A decoder's text is not: tokenizer_show_id bounds it. */
static size_t shown_bytes(const struct tokenizer *tokenizer, uint32_t id, struct text_span spelling)
{
    char bytes[SPELLED_MAX + 1], room[TOKENIZER_SHOWN_MAX];
    const bool is_added = added_find(&tokenizer->added, id) != NULL;
    const size_t count = is_added ? 0 : read_bytes(tokenizer, spelling, bytes);
    if (count > 0)
        return chunks_json_bytes((struct text_span){room, write_bytes(bytes, count, room)});
    return (is_added ? 1 : DECODED_TIMES) * chunks_json_bytes(spelling);
}

static void count_length(struct token_lengths *lengths, size_t bytes)
{
    lengths->counts[bytes < LENGTHS_MAX ? bytes : LENGTHS_MAX]++;
    lengths->longest = bytes > lengths->longest ? bytes : lengths->longest;
}

void show_count(struct tokenizer *tokenizer)
{
    tokenizer->spelled = tokenizer->shown = (struct token_lengths){.longest = NULL_BYTES};
    for (uint32_t id = 0; id < tokenizer_vocabulary_size(tokenizer); id++) {
        const struct text_span spelling = tokenizer_token(tokenizer, id);
        if (spelling.at == NULL)
            continue;
        count_length(&tokenizer->spelled, chunks_json_bytes(spelling));
        count_length(&tokenizer->shown, shown_bytes(tokenizer, id, spelling));
    }
}

size_t tokenizer_words_bound(const struct tokenizer *tokenizer, bool are_shown, size_t count)
{
    enum { COMMA = 1 };
    const struct token_lengths *lengths = are_shown ? &tokenizer->shown : &tokenizer->spelled;
    size_t bound = 0;
    for (size_t length = LENGTHS_MAX; length > NULL_BYTES; length--) {
        const size_t taken = lengths->counts[length] < count ? lengths->counts[length] : count;
        bound = bound_add(bound, taken, (length < LENGTHS_MAX ? length : lengths->longest) + COMMA);
        count -= taken;
    }
    return bound_add(bound, count, NULL_BYTES + COMMA);
}

/* ---- tokens of a text ---- */

/* A place in a text: a code point and its byte. */
struct place {
    struct text_span text;
    size_t byte;
    uint32_t point;
};

/* Tokens follow each other, so that a place moves by a few characters. */
static void move_to(struct place *place, uint32_t point)
{
    const char *text = place->text.at;
    while (place->point < point && place->byte < place->text.length) {
        const char *at = text + place->byte;
        (void)utf8_next(&at);
        place->byte = (size_t)(at - text);
        place->point++;
    }
    while (place->point > point && place->byte > 0) {
        do
            place->byte--;
        while (place->byte > 0 && !utf8_begins(text[place->byte]));
        place->point--;
    }
}

static struct text_span cut(struct place *place, uint32_t begin, uint32_t end)
{
    move_to(place, begin);
    const size_t from = place->byte;
    move_to(place, end);
    return (struct text_span){place->text.at + from, place->byte - from};
}

/* Whether the token stands for bytes of which some are no character. */
static bool is_broken(const struct tokenizer *tokenizer, uint32_t id)
{
    char bytes[SPELLED_MAX + 1];
    const size_t count = read_bytes(tokenizer, tokenizer_token(tokenizer, id), bytes);
    return !utf8_is_valid(bytes, count);
}

/* False: there is not enough memory. */
static bool keep_id(const struct tokenizer *tokenizer, uint32_t id, bool is_first, attn_arena *arena,
                    struct text_span *shown)
{
    char room[TOKENIZER_SHOWN_MAX];
    if (!tokenizer_show_id(tokenizer, id, is_first, arena, room, shown))
        return false;
    if (shown->at == room)
        shown->at = attn_arena_copy_text(arena, room, shown->length);
    return shown->at != NULL || tokenizer_token(tokenizer, id).at == NULL;
}

static bool keep_token(const struct tokenizer *tokenizer, const struct tokenizer_token *token, struct place places[2],
                       attn_arena *arena, struct text_span *shown)
{
    const bool is_added = !token->is_unknown && added_find(&tokenizer->added, token->id) != NULL;
    *shown = tokenizer_token(tokenizer, token->id);
    if (token->segment == TOKENIZER_NO_SEGMENT || is_added)
        return true;
    if (is_broken(tokenizer, token->id))
        return keep_id(tokenizer, token->id, false, arena, shown);
    *shown = cut(&places[token->segment], token->begin, token->end);
    return shown->length > 0 || keep_id(tokenizer, token->id, false, arena, shown);
}

/* Whether the loop over the tokens may go on. */
static bool goes_on(bool is_kept, struct pace *pace, struct outcome *outcome)
{
    if (!is_kept)
        outcome_no_memory(outcome);
    else if (pace_stops(pace, sizeof(struct tokenizer_token)))
        outcome_fail(outcome, ATTN_ERR_CANCELLED, NULL, "cancelled while tokens were labelled");
    return !outcome_has_failed(outcome);
}

attn_status tokenizer_show_text(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                                const struct tokenizer_token *tokens, size_t count, attn_arena *arena,
                                struct text_span *shown, attn_error *err)
{
    struct place places[2] = {{.text = input->text}, {.text = input->pair}};
    struct outcome outcome = {.arena = arena, .err = err};
    struct pace pace = pace_begin(arena);
    for (size_t i = 0; i < count; i++)
        if (!goes_on(keep_token(tokenizer, &tokens[i], places, arena, &shown[i]), &pace, &outcome))
            break;
    return outcome.status;
}

attn_status tokenizer_show_ids(const struct tokenizer *tokenizer, const int64_t *ids, size_t count, attn_arena *arena,
                               struct text_span *shown, attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    struct pace pace = pace_begin(arena);
    for (size_t i = 0; i < count; i++)
        if (!goes_on(keep_id(tokenizer, (uint32_t)ids[i], i == 0, arena, &shown[i]), &pace, &outcome))
            break;
    return outcome.status;
}

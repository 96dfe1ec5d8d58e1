/* skim.c: splits the body of a request into lifted pieces and the envelope, in one pass. */
#include "codec/json/skim.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/text.h"
#include "codec/bytes/pace.h"
#include "codec/number/number.h"

enum {
    FIRST_TEXT_MAX = 8192,
    FIRST_TABLE_CAPACITY = 32,
    PLAIN_BLOCK = 64,
    TOKEN_BYTES = 64 /* the cost of a token beside its bytes */
};

struct skimmer {
    struct skim *skim;
    attn_arena *arena;
    attn_error *err;
    const char *at, *end;
    const char *undecided; /* arrays that begin before this byte are not lifted */
    size_t text_max, text_first, text_capacity;
    size_t lifted_capacity, anchor_capacity;
    size_t depth, depth_max;
    struct pace pace;
    bool is_stopped; /* cancelled: results after that are not valid */
};

/* Counts bytes of work, and checks the deadline when a check is due. True: the work must stop. */
static bool stops(struct skimmer *s, size_t bytes)
{
    s->is_stopped = s->is_stopped || pace_stops(&s->pace, bytes);
    return s->is_stopped;
}

/* Where a loop over bytes must stop for the next check of the deadline. */
static const char *stretch_end(const struct skimmer *s, const char *at)
{
    return s->end - at > PACE_BYTES ? at + PACE_BYTES : s->end;
}

static attn_status fail_syntax(struct skimmer *s, const char *at, const char *message)
{
    attn_status status = attn_fail(s->err, ATTN_ERR_SYNTAX, NULL, "%s", message);
    return s->is_stopped ? status : skim_place(s->skim, (size_t)(at - s->skim->body), status, s->err);
}

/* Makes room for one more item than count. Moved items leave their old memory in the arena. */
static bool grow(attn_arena *arena, void **items, size_t item_bytes, size_t count, size_t *capacity)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity == 0 ? FIRST_TABLE_CAPACITY : *capacity * 2;
    void *larger = attn_arena_take(arena, wanted, item_bytes);
    if (!larger)
        return false;
    if (count > 0)
        memcpy(larger, *items, count * item_bytes);
    *items = larger;
    *capacity = wanted;
    return true;
}

static attn_status append(struct skimmer *s, const char *bytes, size_t length)
{
    struct skim *skim = s->skim;
    if (length > s->text_max - skim->length)
        return attn_fail(s->err, ATTN_ERR_TOO_LARGE, NULL, "the request without its tensors is longer than %zu bytes",
                         s->text_max);
    if (length > s->text_capacity - skim->length) {
        size_t wanted = s->text_capacity == 0 ? s->text_first : s->text_capacity * 2;
        if (wanted < skim->length + length)
            wanted = skim->length + length;
        char *larger = attn_arena_take(s->arena, wanted, 1);
        if (!larger)
            return attn_fail_no_memory(s->err);
        if (skim->length > 0)
            memcpy(larger, skim->text, skim->length);
        skim->text = larger;
        s->text_capacity = wanted;
    }
    memcpy(skim->text + skim->length, bytes, length);
    skim->length += length;
    return ATTN_OK;
}

/* Records that the next byte of the envelope is the byte of the body at s->at. */
static attn_status anchor(struct skimmer *s)
{
    struct skim *skim = s->skim;
    void *items = skim->anchors;
    if (!grow(s->arena, &items, sizeof *skim->anchors, skim->anchor_count, &s->anchor_capacity))
        return attn_fail_no_memory(s->err);
    skim->anchors = items;
    skim->anchors[skim->anchor_count++] = (struct skim_anchor){skim->length, (size_t)(s->at - skim->body)};
    return ATTN_OK;
}

/* Lifts text[0 .. length), which starts at s->at, and leaves a marker. */
static attn_status lift(struct skimmer *s, size_t length, size_t commas)
{
    struct skim *skim = s->skim;
    void *items = skim->lifted;
    if (!grow(s->arena, &items, sizeof *skim->lifted, skim->lifted_count, &s->lifted_capacity))
        return attn_fail_no_memory(s->err);
    skim->lifted = items;
    char marker[1 + TEXT_COUNT_MAX + 1] = "[";
    char *marker_end = text_write_count(marker + 1, skim->lifted_count);
    *marker_end++ = ']';
    skim->lifted[skim->lifted_count++] = (struct lifted_text){s->at, length, commas};
    s->at += length;
    attn_status status = append(s, marker, (size_t)(marker_end - marker));
    return status == ATTN_OK ? anchor(s) : status;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/*
 * Words for numbers without quotes are not JSON. They are lifted all the same: the reader of the array words the error.
 */
static bool is_tensor_leaf(const char *at, const char *end)
{
    double word;
    return *at == '-' || (*at >= '0' && *at <= '9') || *at == 't' || *at == 'f' || *at == 'n' || *at == ']' ||
           number_word_is_bare(at, end) || number_word_read(at, end, &word) != NULL;
}

/*
 * Whether the array at s->at is lifted. The first character after its opening brackets decides. The answer is the same
 * for all arrays that these brackets open, so no byte is read twice at any depth.
 */
static bool begins_tensor(struct skimmer *s)
{
    if (s->at < s->undecided)
        return false;
    const char *leaf = s->at, *stretch = s->at;
    while (leaf == stretch && leaf < s->end && !stops(s, leaf > s->at ? PACE_BYTES : 0)) {
        stretch = stretch_end(s, leaf);
        while (leaf < stretch && (*leaf == '[' || is_space(*leaf)))
            leaf++;
    }
    if (leaf < s->end && is_tensor_leaf(leaf, s->end))
        return true;
    s->undecided = leaf;
    return false;
}

static attn_status enter(struct skimmer *s)
{
    if (++s->depth > s->depth_max) {
        char message[80];
        snprintf(message, sizeof message, "nested more than %zu levels deep", s->depth_max);
        return fail_syntax(s, s->at, message);
    }
    return append(s, s->at++, 1);
}

static attn_status leave(struct skimmer *s)
{
    if (s->depth > 0)
        s->depth--;
    return append(s, s->at++, 1);
}

static attn_status skim_array(struct skimmer *s)
{
    if (!begins_tensor(s))
        return enter(s);
    size_t commas;
    const char *array_end = array_end_find(s->at, s->end, &s->pace, &commas);
    s->is_stopped = s->is_stopped || (!array_end && attn_arena_is_cancelled(s->arena));
    if (!array_end)
        return fail_syntax(s, s->at, "the array that begins here has no end: a ] is missing");
    return lift(s, (size_t)(array_end - s->at), commas);
}

static bool is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* Without a branch in the loop, so that the compiler compares many bytes at once. */
static bool is_plain_block(const char *block)
{
    unsigned plain = 1;
    for (int i = 0; i < PLAIN_BLOCK; i++)
        plain &= (unsigned)(block[i] >= ' ') & (unsigned)(block[i] <= '~') & (unsigned)(block[i] != '"') &
                 (unsigned)(block[i] != '\\');
    return plain;
}

/* The first byte at or after at that is not printable ASCII, or is a quote or backslash. */
static const char *plain_text_end(struct skimmer *s, const char *at)
{
    while (s->end - at >= PLAIN_BLOCK && is_plain_block(at) && !stops(s, PLAIN_BLOCK))
        at += PLAIN_BLOCK;
    while (at < s->end && is_plain(*at) && !s->is_stopped)
        at++;
    return at;
}

/* The byte after the quote that ends the string; NULL when there is none. */
static const char *string_end(struct skimmer *s, const char *at)
{
    const char *stretch = stretch_end(s, at);
    for (; at < s->end && *at != '"'; at++) {
        if (*at == '\\' && ++at == s->end)
            return NULL;
        if (at < stretch)
            continue;
        if (stops(s, PACE_BYTES))
            return NULL;
        stretch = stretch_end(s, at);
    }
    return at < s->end ? at + 1 : NULL;
}

/* The first byte at or after at that is no white space. */
static const char *space_end(struct skimmer *s, const char *at)
{
    const char *from = at, *stretch = at;
    while (at == stretch && at < s->end && !stops(s, at > from ? PACE_BYTES : 0)) {
        stretch = stretch_end(s, at);
        while (at < stretch && is_space(*at))
            at++;
    }
    return at;
}

static bool is_followed_by_colon(struct skimmer *s, const char *at)
{
    at = space_end(s, at);
    return at < s->end && *at == ':';
}

/* Lifts a long string. Names of members stay, and so do strings with escapes or UTF-8, which jansson decodes. */
static attn_status skim_string(struct skimmer *s)
{
    const char *plain_end = plain_text_end(s, s->at + 1);
    const char *after = string_end(s, plain_end);
    if (!after)
        return fail_syntax(s, s->at, "the string that begins here has no end: a \" is missing");
    size_t length = (size_t)(after - s->at);
    if (length > SKIM_LONG_STRING && plain_end + 1 == after && !is_followed_by_colon(s, after))
        return lift(s, length, 0);
    const char *from = s->at;
    s->at = after;
    return append(s, from, length);
}

static attn_status skim_space(struct skimmer *s)
{
    const char *from = s->at;
    s->at = space_end(s, from);
    size_t length = (size_t)(s->at - from);
    if (length <= SKIM_LONG_SPACE)
        return append(s, from, length);
    attn_status status = append(s, " ", 1);
    return status == ATTN_OK ? anchor(s) : status;
}

static bool is_structure(char c)
{
    return c == '"' || c == '[' || c == ']' || c == '{' || c == '}';
}

static attn_status skim_plain(struct skimmer *s)
{
    const char *from = s->at++, *stretch = s->at;
    while (s->at == stretch && s->at < s->end && !stops(s, s->at > from + 1 ? PACE_BYTES : 0)) {
        stretch = stretch_end(s, s->at);
        while (s->at < stretch && !is_space(*s->at) && !is_structure(*s->at))
            s->at++;
    }
    return append(s, from, (size_t)(s->at - from));
}

static attn_status skim_next(struct skimmer *s)
{
    switch (*s->at) {
    case '"':
        return skim_string(s);
    case '[':
        return skim_array(s);
    case '{':
        return enter(s);
    case ']':
    case '}':
        return leave(s);
    default:
        return is_space(*s->at) ? skim_space(s) : skim_plain(s);
    }
}

attn_status skim_body(const char *body, size_t length, size_t text_max, size_t depth_max, attn_arena *arena,
                      struct skim *skim, attn_error *err)
{
    *skim = (struct skim){.body = body, .body_length = length, .arena = arena};
    struct skimmer s = {.skim = skim,
                        .arena = arena,
                        .err = err,
                        .at = body,
                        .end = body + length,
                        .undecided = body,
                        .text_max = text_max,
                        .text_first = length < FIRST_TEXT_MAX ? length : FIRST_TEXT_MAX,
                        .depth_max = depth_max,
                        .pace = pace_begin(arena)};
    attn_status status = anchor(&s);
    while (status == ATTN_OK && s.at < s.end && !stops(&s, TOKEN_BYTES))
        status = skim_next(&s);
    return s.is_stopped ? attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while the request was read") : status;
}

size_t skim_body_offset(const struct skim *skim, size_t envelope_offset)
{
    size_t low = 0, high = skim->anchor_count; /* anchors[low] is at or before the offset, anchors[high] after */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (skim->anchors[middle].envelope_at <= envelope_offset)
            low = middle;
        else
            high = middle;
    }
    size_t offset = skim->anchors[low].body_at + (envelope_offset - skim->anchors[low].envelope_at);
    return offset < skim->body_length ? offset : skim->body_length;
}

attn_status skim_place(const struct skim *skim, size_t body_offset, attn_status status, attn_error *err)
{
    const char *place = skim->body + body_offset, *line = skim->body;
    struct pace pace = pace_begin(skim->arena);
    size_t lines = 1;
    if (!err)
        return status;
    for (const char *at = skim->body, *stretch; at < place; at = stretch) {
        stretch = place - at > PACE_BYTES ? at + PACE_BYTES : place;
        if (pace_stops(&pace, (size_t)(stretch - at)))
            return attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while the request was read");
        const char *newline = memrchr(at, '\n', (size_t)(stretch - at));
        for (line = newline ? newline + 1 : line; at < stretch; at++) /* the compiler compares many bytes at once */
            lines += *at == '\n';
    }
    err->line = lines;
    err->column = (size_t)(place - line) + 1;
    return status;
}

/*
 * ---- the end of an array, 64 bytes at a time ----
 *
 * Every block becomes five bit masks with one bit per byte: quotes, backslashes, opening brackets, closing brackets,
 * commas. A prefix XOR over the quotes clears the bits inside strings (Langdale and Lemire, "Parsing Gigabytes of JSON
 * per Second", 2019). The remaining brackets and commas are counted. Only a block that may hold the last bracket is
 * searched bit by bit.
 */

enum { BLOCK = 64 };

struct marks {
    uint64_t quote, backslash, open, close, comma;
};

struct state {
    size_t depth, commas;
    bool is_in_string, is_escaped;
};

#if defined(__SSE2__)
static uint64_t equal_bits(const __m128i part[4], char byte)
{
    const __m128i wanted = _mm_set1_epi8(byte);
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(part[i], wanted)) << (16 * i);
    return bits;
}

static struct marks read_marks(const char *block)
{
    __m128i part[4];
    memcpy(part, block, sizeof part);
    return (struct marks){equal_bits(part, '"'), equal_bits(part, '\\'), equal_bits(part, '['), equal_bits(part, ']'),
                          equal_bits(part, ',')};
}
#else
static uint64_t equal_bits(const char *block, char byte)
{
    const uint64_t low_bits = 0x7f7f7f7f7f7f7f7fU;
    const uint64_t wanted = 0x0101010101010101U * (unsigned char)byte;
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK / 8; i++) {
        uint64_t differs = number_load_word(block + 8 * i) ^ wanted;
        /* The high bit of each byte becomes 1 where the byte is 0; no carry crosses bytes. */
        uint64_t zero = ~(((differs & low_bits) + low_bits) | differs | low_bits);
        bits |= ((zero >> 7) * 0x0102040810204080U >> 56) << (8 * i);
    }
    return bits;
}

static struct marks read_marks(const char *block)
{
    return (struct marks){equal_bits(block, '"'), equal_bits(block, '\\'), equal_bits(block, '['),
                          equal_bits(block, ']'), equal_bits(block, ',')};
}
#endif

static size_t count_bits(uint64_t bits)
{
    bits -= bits >> 1 & 0x5555555555555555U;
    bits = (bits & 0x3333333333333333U) + (bits >> 2 & 0x3333333333333333U);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fU;
    return (size_t)(bits * 0x0101010101010101U >> 56);
}

/* Bit i of the result is the XOR of bits 0 … i: 1 from an opening quote up to the byte before the closing one. */
static uint64_t prefix_xor(uint64_t bits)
{
    for (int shift = 1; shift < BLOCK; shift *= 2)
        bits ^= bits << shift;
    return bits;
}

/* Clears the quotes that a backslash escapes. This goes bit by bit, because arrays of numbers have no backslash. */
static uint64_t unescaped_quotes(const struct marks *marks, struct state *state)
{
    uint64_t quotes = marks->quote;
    bool is_in_string = state->is_in_string;
    for (int i = 0; i < BLOCK; i++) {
        uint64_t bit = (uint64_t)1 << i;
        if (state->is_escaped) {
            quotes &= ~bit;
            state->is_escaped = false;
        } else if (quotes & bit) {
            is_in_string = !is_in_string;
        } else if (is_in_string && (marks->backslash & bit)) {
            state->is_escaped = true;
        }
    }
    return quotes;
}

static void drop_strings(struct marks *marks, struct state *state)
{
    uint64_t quotes = marks->quote;
    if (marks->backslash || state->is_escaped)
        quotes = unescaped_quotes(marks, state);
    uint64_t inside = prefix_xor(quotes) ^ (state->is_in_string ? UINT64_MAX : 0);
    state->is_in_string = inside >> 63;
    marks->open &= ~inside;
    marks->close &= ~inside;
    marks->comma &= ~inside;
}

/* The offset in the block of the bracket that closes the array. BLOCK when the array does not end in this block. */
static int find_last_bracket(const struct marks *marks, struct state *state)
{
    for (uint64_t rest = marks->open | marks->close; rest; rest &= rest - 1) {
        uint64_t bit = rest & (~rest + 1);
        if (marks->open & bit)
            state->depth++;
        else if (--state->depth == 0)
            return __builtin_ctzll(bit);
    }
    return BLOCK;
}

/* Counts one block. Returns the offset of the closing bracket in the block, or BLOCK. */
static int take_block(const char *block, struct state *state)
{
    struct marks marks = read_marks(block);
    if (marks.quote || state->is_in_string)
        drop_strings(&marks, state);
    int last = BLOCK;
    if (marks.close) {
        size_t closes = count_bits(marks.close);
        if (closes < state->depth) /* too few brackets close here to end the array */
            state->depth += count_bits(marks.open) - closes;
        else
            last = find_last_bracket(&marks, state);
    } else {
        state->depth += count_bits(marks.open);
    }
    if (last < BLOCK)
        marks.comma &= ((uint64_t)1 << last) - 1;
    state->commas += count_bits(marks.comma);
    return last;
}

const char *array_end_find(const char *text, const char *end, struct pace *pace, size_t *commas)
{
    struct state state = {0};
    for (; end - text >= BLOCK; text += BLOCK) {
        int last = take_block(text, &state);
        *commas = state.commas;
        if (last < BLOCK)
            return text + last + 1;
        if (pace_stops(pace, BLOCK))
            return NULL;
    }
    char tail[BLOCK];
    memset(tail, ' ', sizeof tail);
    memcpy(tail, text, (size_t)(end - text));
    int last = take_block(tail, &state);
    *commas = state.commas;
    return last < BLOCK ? text + last + 1 : NULL;
}

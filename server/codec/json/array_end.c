/*
 * array_end.c: finds the end of a JSON array, 64 bytes at a time.
 *
 * Every block becomes five bit masks with one bit per byte: quotes, backslashes, opening brackets, closing brackets,
 * commas. A prefix XOR over the quotes clears the bits inside strings (Langdale and Lemire, "Parsing Gigabytes of JSON
 * per Second", 2019). The remaining brackets and commas are counted. Only a block that may hold the last bracket is
 * searched bit by bit.
 */
#include "codec/json/array_end.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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
/* Loads eight bytes as a word. Byte 0 is the lowest. */
static uint64_t load_word(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint64_t equal_bits(const char *block, char byte)
{
    const uint64_t low_bits = 0x7f7f7f7f7f7f7f7fU;
    const uint64_t wanted = 0x0101010101010101U * (unsigned char)byte;
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK / 8; i++) {
        uint64_t differs = load_word(block + 8 * i) ^ wanted;
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

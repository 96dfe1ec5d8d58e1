/* base64.c: encodes and decodes base64. Every three bytes become four characters of six bits each. */
#include "codec/bytes/base64.h"

#include <stdint.h>

static const char ALPHABET[64] = {'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P',
                                  'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'a', 'b', 'c', 'd', 'e', 'f',
                                  'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
                                  'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '/'};

/* The value of each character of the alphabet plus 1; 0 for every other byte. */
static const uint8_t VALUE_PLUS_1[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64};

size_t base64_encoded_length(size_t bytes)
{
    return bytes / 3 * 4 + (bytes % 3 != 0 ? 4 : 0);
}

static void encode_group(char *to, uint32_t bits)
{
    to[0] = ALPHABET[bits >> 18 & 63];
    to[1] = ALPHABET[bits >> 12 & 63];
    to[2] = ALPHABET[bits >> 6 & 63];
    to[3] = ALPHABET[bits & 63];
}

void base64_encode(char *to, const void *from, size_t bytes)
{
    const uint8_t *at = from;
    for (; bytes >= 3; bytes -= 3, at += 3, to += 4)
        encode_group(to, (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]);
    if (bytes == 0)
        return;
    encode_group(to, (uint32_t)at[0] << 16 | (bytes == 2 ? (uint32_t)at[1] << 8 : 0));
    to[3] = '=';
    if (bytes == 1)
        to[2] = '=';
}

/* Counts the '=' at the end of a text whose length is a multiple of 4. */
static size_t count_padding(const char *text, size_t length)
{
    if (length == 0 || text[length - 1] != '=')
        return 0;
    return text[length - 2] == '=' ? 2 : 1;
}

bool base64_decoded_length(const char *text, size_t length, size_t *bytes)
{
    if (length % 4 != 0)
        return false;
    size_t padding = count_padding(text, length);
    if (padding > 0 && length >= 4 && text[length - 1 - padding] == '=')
        return false;
    *bytes = length / 4 * 3 - padding;
    return true;
}

/* The offset of the first of count characters that is not in the alphabet. count when all are in it. */
static size_t find_stranger(const char *text, size_t count)
{
    size_t i = 0;
    while (i < count && VALUE_PLUS_1[(uint8_t)text[i]] != 0)
        i++;
    return i;
}

/* Reads the 24 bits of four characters. False when a character is not in the alphabet. */
static bool decode_group(const char *text, uint32_t *bits)
{
    uint32_t a = VALUE_PLUS_1[(uint8_t)text[0]] - 1u, b = VALUE_PLUS_1[(uint8_t)text[1]] - 1u;
    uint32_t c = VALUE_PLUS_1[(uint8_t)text[2]] - 1u, d = VALUE_PLUS_1[(uint8_t)text[3]] - 1u;
    *bits = a << 18 | b << 12 | c << 6 | d;
    return (a | b | c | d) < 64; /* a byte outside of the alphabet gives 0 - 1: all bits set */
}

/* Decodes the last group, which ends in padding '='. *wrong is the offset of the first wrong character. */
static bool decode_last(uint8_t *to, const char *text, size_t padding, size_t *wrong)
{
    size_t count = 4 - padding;
    *wrong = find_stranger(text, count);
    if (*wrong < count)
        return false;
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++)
        bits = bits << 6 | (i < count ? VALUE_PLUS_1[(uint8_t)text[i]] - 1u : 0);
    to[0] = (uint8_t)(bits >> 16);
    if (padding == 1)
        to[1] = (uint8_t)(bits >> 8);
    *wrong = count - 1;
    return (bits & (padding == 1 ? 0xFFu : 0xFFFFu)) == 0;
}

bool base64_decode(void *to, const char *text, size_t length, struct pace *pace, size_t *bad)
{
    size_t bytes;
    if (!base64_decoded_length(text, length, &bytes)) {
        *bad = find_stranger(text, length);
        return false;
    }
    size_t padding = count_padding(text, length);
    size_t whole = padding == 0 ? length : length - 4;
    uint8_t *out = to;
    for (size_t i = 0; i < whole; i += 4, out += 3) {
        uint32_t bits;
        if (!decode_group(text + i, &bits)) {
            *bad = i + find_stranger(text + i, 4);
            return false;
        }
        out[0] = (uint8_t)(bits >> 16);
        out[1] = (uint8_t)(bits >> 8);
        out[2] = (uint8_t)bits;
        if (i % PACE_BYTES == 0 && i > 0 && pace_stops(pace, PACE_BYTES)) {
            *bad = i;
            return false;
        }
    }
    size_t wrong = 0;
    if (padding > 0 && !decode_last(out, text + whole, padding, &wrong)) {
        *bad = whole + wrong;
        return false;
    }
    return true;
}

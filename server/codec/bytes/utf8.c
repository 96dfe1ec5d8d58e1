/* utf8.c: reads and writes characters of UTF-8. */
#include "codec/bytes/utf8.h"

size_t utf8_length(const char *at)
{
    const unsigned char *text = (const unsigned char *)at;
    if (text[0] < 0x80)
        return 1;
    size_t length = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    if (text[0] < 0xC2 || text[0] > 0xF4)
        return 0;
    unsigned char low = 0x80, high = 0xBF;
    if (text[0] == 0xE0)
        low = 0xA0;
    if (text[0] == 0xED)
        high = 0x9F;
    if (text[0] == 0xF0)
        low = 0x90;
    if (text[0] == 0xF4)
        high = 0x8F;
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    return length;
}

uint32_t utf8_next(const char **text)
{
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07}; /* of the first byte, by length */
    const size_t length = utf8_length(*text);
    const unsigned char *at = (const unsigned char *)*text;
    *text += length > 0 ? length : 1;
    if (length == 0)
        return UTF8_REPLACEMENT;
    uint32_t character = at[0] & first_bits[length];
    for (size_t i = 1; i < length; i++)
        character = character << 6 | (at[i] & 0x3F);
    return character;
}

char *utf8_write(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

size_t utf8_count(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += utf8_begins(text[i]);
    return count;
}

bool utf8_is_valid(const char *text, size_t length)
{
    size_t bytes = 1;
    for (size_t at = 0; at < length && bytes > 0; at += bytes)
        bytes = text[at] == '\0' ? 1 : utf8_length(text + at);
    return bytes > 0;
}

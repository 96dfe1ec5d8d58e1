/*
 * picture_text.c: labels made fit to be drawn.
 */
#include "codec/picture/picture_text.h"

#include <assert.h>
#include <stdbool.h>

enum { REPLACEMENT = 0xFFFD, OPEN_BOX = 0x2423 };

/* How many bytes the first one announces, and its share of the code point; 0 when none begins so. */
static size_t first_byte(unsigned char byte, uint32_t *character)
{
    size_t length = byte < 0x80 ? 1 : byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0;
    *character = length == 1 ? byte : byte & (0xFFU >> (length + 1));
    return length;
}

uint32_t label_next_character(const char **text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)*text;
    uint32_t character = 0;
    size_t length = first_byte(at[0], &character), i = 1;
    for (; i < length && (at[i] & 0xC0) == 0x80; i++)
        character = character << 6 | (at[i] & 0x3F);
    bool is_valid = length > 0 && i == length && character >= least[length] && character <= 0x10FFFF &&
                    (character < 0xD800 || character > 0xDFFF);
    *text += is_valid ? length : 1;
    return is_valid ? character : REPLACEMENT;
}

/* Zero-width spaces and joiners, directional marks, embeddings and isolates, variation selectors, tags, BOM. */
static bool has_no_picture(uint32_t c)
{
    return c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x206F) || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF ||
           (c >= 0xE0000 && c <= 0xE0FFF);
}

static uint32_t shown_as(uint32_t c)
{
    if (c == '\n')
        return 0x21B5;
    if (c == '\t')
        return 0x21E5;
    if (c == '\r')
        return 0x21A4;
    if (c < 0x20)
        return 0x2400 + c;
    if (c == 0x7F)
        return 0x2421;
    if (c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F)
        return ' ';
    bool is_noncharacter = (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
    bool breaks_lines = (c >= 0x80 && c < 0xA0) || c == 0x2028 || c == 0x2029;
    return is_noncharacter || breaks_lines ? REPLACEMENT : c;
}

static char *put_utf8(char *to, uint32_t c)
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

static void write_text(struct label *label)
{
    char *to = label->text;
    for (size_t i = 0; i < label->count; i++)
        to = put_utf8(to, label->character[i]);
    *to = '\0';
}

void label_clean(struct label *label, const char *text)
{
    bool is_blank = true;
    label->count = 0;
    while (*text != '\0' && label->count <= LABEL_CHARACTERS_MAX) {
        uint32_t character = label_next_character(&text);
        if (has_no_picture(character))
            continue;
        character = shown_as(character);
        is_blank = is_blank && character == ' ';
        label->character[label->count++] = character;
    }
    if (label->count > LABEL_CHARACTERS_MAX) {
        label_cut(label, LABEL_CHARACTERS_MAX - 1);
        return;
    }
    for (size_t i = 0; is_blank && i < label->count; i++)
        label->character[i] = OPEN_BOX;
    write_text(label);
}

void label_cut(struct label *label, size_t count)
{
    assert(count < label->count && count <= LABEL_CHARACTERS_MAX - 1);
    while (count > 0 && label->character[count - 1] == ' ')
        count--;
    label->character[count] = LABEL_ELLIPSIS;
    label->count = count + 1;
    write_text(label);
}

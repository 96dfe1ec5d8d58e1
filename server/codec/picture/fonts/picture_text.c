/* picture_text.c: makes text from a client fit to be drawn. */
#include "codec/picture/fonts/picture_text.h"

#include <assert.h>
#include <stdbool.h>

#include "codec/bytes/utf8.h"

enum { OPEN_BOX = 0x2423 };

/*
 * Whether c is invisible: a zero-width space or joiner, a directional mark, embedding or isolate, a variation selector,
 * a tag, or a byte order mark.
 */
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
    return is_noncharacter || breaks_lines ? UTF8_REPLACEMENT : c;
}

static void write_text(struct label *label)
{
    char *to = label->text;
    for (size_t i = 0; i < label->count; i++)
        to = utf8_write(to, label->character[i]);
    *to = '\0';
}

void picture_text_clean(struct label *label, const char *text)
{
    bool is_blank = true;
    label->count = 0;
    while (*text != '\0' && label->count <= LABEL_CHARACTERS_MAX) {
        uint32_t character = utf8_next(&text);
        if (has_no_picture(character))
            continue;
        character = shown_as(character);
        is_blank = is_blank && character == ' ';
        label->character[label->count++] = character;
    }
    if (label->count > LABEL_CHARACTERS_MAX) {
        picture_text_cut(label, LABEL_CHARACTERS_MAX - 1);
        return;
    }
    for (size_t i = 0; is_blank && i < label->count; i++)
        label->character[i] = OPEN_BOX;
    write_text(label);
}

void picture_text_cut(struct label *label, size_t count)
{
    assert(count < label->count && count <= LABEL_CHARACTERS_MAX - 1);
    while (count > 0 && label->character[count - 1] == ' ')
        count--;
    label->character[count] = LABEL_ELLIPSIS;
    label->count = count + 1;
    write_text(label);
}

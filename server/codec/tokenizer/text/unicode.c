/*
 * unicode.c: properties of characters, by utf8proc.
 */
#include "codec/tokenizer/text/unicode.h"

#include <utf8proc.h>

#include "base/array.h"

enum { ASCII_END = 0x80, FIRST_COMBINING = 0x300, CAPITAL_I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool unicode_is_space(uint32_t c)
{
    if (c < ASCII_END)
        return (c >= '\t' && c <= '\r') || c == ' ';
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool unicode_is_punctuation(uint32_t c)
{
    if (c < ASCII_END)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    const utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_PC && is <= UTF8PROC_CATEGORY_PO;
}

bool unicode_is_numeric(uint32_t c)
{
    const utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_ND && is <= UTF8PROC_CATEGORY_NO;
}

bool unicode_is_mark(uint32_t c)
{
    const utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_MN && is <= UTF8PROC_CATEGORY_ME;
}

bool unicode_is_nonspacing(uint32_t c)
{
    return c >= FIRST_COMBINING && category(c) == UTF8PROC_CATEGORY_MN;
}

/* Letters in circles and squares are symbols with the property Alphabetic. */
static bool is_letter_symbol(uint32_t c)
{
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
           (c >= 0x1F170 && c <= 0x1F189);
}

bool unicode_is_word(uint32_t c)
{
    if (c < ASCII_END)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    const utf8proc_category_t is = category(c);
    return (is >= UTF8PROC_CATEGORY_LU && is <= UTF8PROC_CATEGORY_NL) || is == UTF8PROC_CATEGORY_PC || c == 0x200C ||
           c == 0x200D || is_letter_symbol(c);
}

bool unicode_is_control(uint32_t c)
{
    const utf8proc_category_t is = category(c);
    return is == UTF8PROC_CATEGORY_CC || is == UTF8PROC_CATEGORY_CF || is == UTF8PROC_CATEGORY_CO;
}

size_t unicode_lower(uint32_t c, uint32_t to[UNICODE_LOWER_MAX])
{
    if (c == CAPITAL_I_WITH_DOT) {
        to[0] = 'i';
        to[1] = DOT_ABOVE;
        return 2;
    }
    to[0] = c >= 'A' && c <= 'Z' ? c + 32 : c < ASCII_END ? c : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

/*
 * The tables of Hugging Face's tokenizers are those of Unicode 9. These characters came later, with a decomposition that
 * the vocabulary of a model cannot know.
 */
static bool is_later(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},   {0xAB69, 0xAB69},   {0x105C9, 0x105E4}, {0x10781, 0x107BA},
                  {0x11380, 0x113FF}, {0x11938, 0x11938}, {0x16120, 0x16128}, {0x16D60, 0x16D6A}, {0x1CCD6, 0x1CCF9},
                  {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};
    for (size_t i = 0; i < ARRAY_LENGTH(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

size_t unicode_decompose(uint32_t c, bool is_compatible, uint32_t to[UNICODE_PARTS_MAX])
{
    utf8proc_int32_t parts[UNICODE_PARTS_MAX];
    int last = 0;
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (is_compatible ? UTF8PROC_COMPAT : 0);
    const utf8proc_ssize_t count =
        c < ASCII_END ? 0 : utf8proc_decompose_char((utf8proc_int32_t)c, parts, UNICODE_PARTS_MAX, options, &last);
    if (count <= 0 || count > UNICODE_PARTS_MAX || (parts[0] != (utf8proc_int32_t)c && is_later(c))) {
        to[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; i++)
        to[i] = (uint32_t)parts[i];
    return (size_t)count;
}

unsigned unicode_combining_class(uint32_t c)
{
    return c < FIRST_COMBINING ? 0u : (unsigned)utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

bool unicode_compose(uint32_t first, uint32_t second, uint32_t *composed)
{
    utf8proc_int32_t pair[] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second};
    if (second < FIRST_COMBINING || utf8proc_normalize_utf32(pair, 2, UTF8PROC_STABLE | UTF8PROC_COMPOSE) != 1)
        return false;
    *composed = (uint32_t)pair[0];
    return true;
}

bool unicode_breaks(uint32_t a, uint32_t b, int32_t *state)
{
    return utf8proc_grapheme_break_stateful((utf8proc_int32_t)a, (utf8proc_int32_t)b, state);
}

/* ---- GPT-2's alphabet ---- */

/* Visible bytes of Latin-1 stand for themselves. The others, in order, are the characters from U+0100 on. */
uint32_t unicode_of_byte(unsigned char byte)
{
    if (byte <= ' ')
        return 0x100u + byte;
    if (byte < 0x7F)
        return byte;
    if (byte <= 0xA0)
        return 0x100u + 33 + (byte - 0x7Fu);
    return byte == 0xAD ? 0x100u + 67 : byte;
}

int unicode_to_byte(uint32_t c)
{
    if (c <= ' ' || c == 0xAD || (c >= 0x7F && c <= 0xA0))
        return -1;
    if (c < 0x100)
        return (int)c;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c <= 0x142)
        return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

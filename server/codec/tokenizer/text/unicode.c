/* unicode.c: properties of characters, by utf8proc. */
#include "codec/tokenizer/text/unicode.h"

#include <utf8proc.h>

#include "base/array.h"

enum { ASCII_END = 0x80, FIRST_COMBINING = 0x300, CAPITAL_I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

/* ---- what Hugging Face's tables do not have ---- */

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *ranges, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/*
 * Hugging Face's tokenizers take categories from crates whose tables are old: unicode_categories has Unicode 8 (P*, Mn,
 * Cf), unicode-normalization-alignments has Unicode 9 (M*). These ranges hold the characters of Unicode 17 that got such
 * a category later. A range goes on as long as none in it has one there. Tokenizers 0.22.2 was asked about every
 * character.
 */
static const struct range after_unicode_8[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},     {0x9FD, 0x9FE},     {0xA76, 0xA76},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x180F, 0x1886},   {0x1ABF, 0x1AEB},   {0x1B4E, 0x1B4F},   {0x1B7D, 0x1B7F},   {0x1DF6, 0x1DFB},
    {0x2E43, 0x2E5D},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},
    {0x10D24, 0x10F89}, {0x11070, 0x11074}, {0x110C2, 0x110CD}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF},
    {0x1123E, 0x11241}, {0x1133B, 0x1133B}, {0x113BB, 0x1145E}, {0x11660, 0x1166C}, {0x116B9, 0x116B9},
    {0x1182F, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x13430, 0x13455}, {0x1611E, 0x1612F}, {0x16D6D, 0x16F4F},
    {0x16FE2, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E6F5}, {0x1E944, 0x1E95F}};
static const struct range after_unicode_9[] = {
    {0x7FD, 0x7FD},     {0x897, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},     {0xB55, 0xB55},
    {0xC04, 0xC3C},     {0xCF3, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},
    {0xECE, 0xECE},     {0x1715, 0x1715},   {0x180F, 0x180F},   {0x1ABF, 0x1AEB},   {0x1CF7, 0x1CF7},
    {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},   {0x10D24, 0x10F85}, {0x11070, 0x11074},
    {0x110C2, 0x110C2}, {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241},
    {0x1133B, 0x1133B}, {0x113B8, 0x113E2}, {0x1145E, 0x1145E}, {0x1182C, 0x11B67}, {0x11D31, 0x11F5A},
    {0x13440, 0x13455}, {0x1611E, 0x1612F}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FF1},
    {0x1CF00, 0x1CF46}, {0x1E08F, 0x1E6F5}};

/* These characters have changed their category since. */
enum { CHI_SIGN = 0x166D, SANDHI_MARK = 0x111C9, PAMUDPOD = 0x1734, MEDIAL_RA = 0x1171E, ARDHAVISARGA = 0x1CF2 };

/* ---- categories ---- */

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
    if (c == CHI_SIGN || c == SANDHI_MARK)
        return true;
    return is >= UTF8PROC_CATEGORY_PC && is <= UTF8PROC_CATEGORY_PO &&
           !is_in(after_unicode_8, ARRAY_LENGTH(after_unicode_8), c);
}

bool unicode_is_numeric(uint32_t c)
{
    const utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_ND && is <= UTF8PROC_CATEGORY_NO;
}

bool unicode_is_mark(uint32_t c)
{
    const utf8proc_category_t is = category(c);
    if (c == ARDHAVISARGA || c == ARDHAVISARGA + 1)
        return true;
    return is >= UTF8PROC_CATEGORY_MN && is <= UTF8PROC_CATEGORY_ME &&
           !is_in(after_unicode_9, ARRAY_LENGTH(after_unicode_9), c);
}

bool unicode_is_nonspacing(uint32_t c)
{
    if (c == PAMUDPOD || c == MEDIAL_RA)
        return true;
    return c >= FIRST_COMBINING && category(c) == UTF8PROC_CATEGORY_MN &&
           !is_in(after_unicode_8, ARRAY_LENGTH(after_unicode_8), c);
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
    return is == UTF8PROC_CATEGORY_CC || is == UTF8PROC_CATEGORY_CO ||
           (is == UTF8PROC_CATEGORY_CF && !is_in(after_unicode_8, ARRAY_LENGTH(after_unicode_8), c));
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
    static const struct range ranges[] = {
        {0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},   {0xAB69, 0xAB69},   {0x105C9, 0x105E4}, {0x10781, 0x107BA},
        {0x11380, 0x113FF}, {0x11938, 0x11938}, {0x16120, 0x16128}, {0x16D60, 0x16D6A}, {0x1CCD6, 0x1CCF9},
        {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};
    return is_in(ranges, ARRAY_LENGTH(ranges), c);
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

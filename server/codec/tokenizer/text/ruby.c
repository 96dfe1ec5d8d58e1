/*
 * ruby.c: rewrites a regular expression of Oniguruma's Ruby syntax for PCRE2.
 */
#include "codec/tokenizer/text/ruby.h"

#include <ctype.h>
#include <string.h>

struct translation {
    const char *at, *end; /* what is left to read; a NUL stands at end */
    char *to;
    unsigned depth;      /* of classes */
    const char *refused; /* what has no counterpart */
};

static void copy(struct translation *t, size_t bytes)
{
    memcpy(t->to, t->at, bytes);
    t->to += bytes;
    t->at += bytes;
}

static void copy_through(struct translation *t, const char *closing)
{
    const char *found = strstr(t->at, closing);
    copy(t, found != NULL ? (size_t)(found - t->at) + strlen(closing) : (size_t)(t->end - t->at));
}

static bool is_hex(const char *text, size_t digits)
{
    for (size_t i = 0; i < digits; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

static void translate_escape(struct translation *t)
{
    const char c = t->at + 1 < t->end ? t->at[1] : '\0';
    if (c == 'h' || c == 'H') {
        t->refused = "\\h";
    } else if (c == 'u' && t->end - t->at >= 6 && is_hex(t->at + 2, 4)) {
        memcpy(t->to, "\\x{", 3);
        memcpy(t->to + 3, t->at + 2, 4);
        t->to[7] = '}';
        t->to += 8;
        t->at += 6;
    } else if (c != '\0' && strchr("pPxokg", c) != NULL && t->at[2] == '{') {
        copy_through(t, "}");
    } else {
        copy(t, c != '\0' ? 2 : 1);
    }
}

static void translate_in_class(struct translation *t)
{
    if (*t->at == '\\') {
        translate_escape(t);
    } else if (t->at[0] == '[' && t->at[1] == ':') {
        copy_through(t, ":]");
    } else if (t->at[0] == '[' && t->at[1] == '^') {
        t->refused = "a negated class within a class";
    } else if (t->at[0] == '&' && t->at[1] == '&') {
        t->refused = "&& within a class";
    } else if (*t->at == '[') {
        t->depth++;
        t->at++;
    } else if (*t->at == ']' && --t->depth > 0) {
        t->at++;
    } else {
        copy(t, 1);
    }
}

/* "{2,}" and the like; other braces are characters. */
static void translate_brace(struct translation *t)
{
    const char *close = t->at + 1 + strspn(t->at + 1, "0123456789,");
    if (*close == '}' && close[1] == '+') {
        t->refused = "{n,m}+";
        return;
    }
    copy(t, 1);
    if (*t->at == ',' && *close == '}')
        *t->to++ = '0';
}

static void translate_group(struct translation *t)
{
    const size_t options = t->at[1] == '?' ? strspn(t->at + 2, "abcdefghijklmnopqrstuvwxyz-") : 0;
    const bool are_options = options > 0 && (t->at[2 + options] == ':' || t->at[2 + options] == ')');
    for (size_t i = 0; are_options && i < options; i++)
        if (strchr("madu", t->at[2 + i]) != NULL)
            t->refused = "an option of (?m), (?a), (?d), (?u)";
    copy(t, 1);
}

static void translate_outside(struct translation *t)
{
    if (*t->at == '\\') {
        translate_escape(t);
    } else if (*t->at == '{') {
        translate_brace(t);
    } else if (*t->at == '(') {
        translate_group(t);
    } else {
        const bool opens = *t->at == '[';
        copy(t, opens && t->at[1] == '^' ? 2 : 1);
        t->depth += opens;
    }
}

attn_status ruby_translate(struct text_span regex, const char *field, attn_arena *arena, struct text_span *translated,
                           attn_error *err)
{
    char *text = attn_arena_take(arena, 2 * regex.length + 1, 1);
    if (text == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory left for a pattern of the tokenizer");
    struct translation t = {.at = regex.at, .end = regex.at + regex.length, .to = text};
    while (t.at < t.end && t.refused == NULL) {
        if (t.depth > 0)
            translate_in_class(&t);
        else
            translate_outside(&t);
    }
    if (t.refused != NULL)
        return attn_fail(err, ATTN_ERR_VALUE, field, "%s has %s, which is not supported in patterns: \"%.200s\"", field,
                         t.refused, regex.at);
    *t.to = '\0';
    *translated = (struct text_span){text, (size_t)(t.to - text)};
    return ATTN_OK;
}

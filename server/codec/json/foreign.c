/* foreign.c: finds a word in a list of words of other programs. */
#include "codec/json/foreign.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t joint_length(struct text_span word)
{
    size_t length = 0;
    while (length < word.length && (word.at[length] == '_' || word.at[length] == '-'))
        length++;
    return length;
}

static bool is_same(struct text_span a, struct text_span b)
{
    for (;;) {
        const size_t skip_a = joint_length(a), skip_b = joint_length(b);
        a = (struct text_span){a.at + skip_a, a.length - skip_a};
        b = (struct text_span){b.at + skip_b, b.length - skip_b};
        if (a.length == 0 || b.length == 0)
            return a.length == b.length;
        if (lower(*a.at++) != lower(*b.at++))
            return false;
        a.length--;
        b.length--;
    }
}

/* The module in the name of a tensor: "q_proj" of "layers.0.q_proj.weight". */
static struct text_span last_part(const char *name)
{
    static const char *const ends[] = {".weight", ".bias"};
    struct text_span part = text_span_of(name);
    for (size_t i = 0; i < 2; i++) {
        const size_t length = strlen(ends[i]);
        if (part.length > length && memcmp(part.at + part.length - length, ends[i], length) == 0)
            part.length -= length;
    }
    const char *dot = memrchr(part.at, '.', part.length);
    return dot == NULL ? part : (struct text_span){dot + 1, part.length - (size_t)(dot + 1 - part.at)};
}

bool foreign_has(const char *list, const char *word)
{
    const struct text_span wanted = last_part(word);
    struct text_span rest = text_span_of(list), each;
    while (text_next(&rest, ' ', &each))
        if (is_same(each, wanted))
            return true;
    return false;
}

/*
 * values.h: the kinds of values that settings have: how the text of a value is read, and how a valid value is
 * described.
 *
 * Each kind writes a member of one type:
 *
 *     count, bytes            uint64_t from rule.min to rule.max; bytes take K, M, G or T for powers of 1024
 *     count_or_auto, bytes_or_auto   the same; "auto" is VALUE_AUTO
 *     real                    double from rule.min to rule.max
 *     text                    const char *; not empty
 *     optional                const char *; not empty; "none" is NULL
 *     path                    const char *; "none" and the empty text are NULL
 *     origins, names, networks   const char *, a list separated by commas; "none" is the empty list, ""
 *     address                 struct value_address
 *     models                  struct value_list: each text is added; "none" removes all
 *     word                    an enum: the index of the word in rule.words
 *     toggle                  an enum: "off" or "0" is 0, "on" or "1" is 1
 */
#ifndef CONFIG_VALUES_H
#define CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"

#define VALUE_AUTO MEMORY_AUTO

struct value_address {
    char host[112]; /* "": every address */
    char port[8];
};

enum { VALUE_LIST_MAX = 64 };

/* The values of a setting that may be given several times. */
struct value_list {
    const char *items[VALUE_LIST_MAX];
    size_t count;
};

struct value_kind;

struct value_rule {
    const struct value_kind *kind;
    double min, max;          /* for kinds with a range; others have 0 */
    const char *const *words; /* for the kind word; NULL at the end */
};

extern const struct value_kind value_count, value_count_or_auto, value_bytes, value_bytes_or_auto, value_real,
    value_text, value_optional, value_path, value_origins, value_names, value_networks, value_models, value_address,
    value_word, value_toggle;

/* Reads text into *member. Texts are borrowed. False: *member is unchanged. */
bool value_read(const struct value_rule *rule, const char *text, void *member);
/* Describes a valid value: "a whole number from 1 to 64". */
void value_describe(const struct value_rule *rule, char *text, size_t size);

#endif

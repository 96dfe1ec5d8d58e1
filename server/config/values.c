/* values.c: a reader and a description for each kind of value, in a table (struct value_kind). */
#include "config/values.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/network.h"
#include "base/text.h"

struct value_kind {
    bool (*read)(const struct value_rule *rule, const char *text, void *member);
    void (*describe)(const struct value_rule *rule, char *text, size_t size); /* NULL: description has it */
    const char *description;
    bool (*is_right)(struct text_span element); /* of a list */
};

bool value_read(const struct value_rule *rule, const char *text, void *member)
{
    return rule->kind->read(rule, text, member);
}

void value_describe(const struct value_rule *rule, char *text, size_t size)
{
    if (rule->kind->describe != NULL)
        rule->kind->describe(rule, text, size);
    else
        snprintf(text, size, "%s", rule->kind->description);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool in_range(const struct value_rule *rule, double value)
{
    return value >= rule->min && value <= rule->max;
}

static bool store_number(const struct value_rule *rule, uint64_t value, void *member)
{
    if (!in_range(rule, (double)value))
        return false;
    memcpy(member, &value, sizeof value);
    return true;
}

static bool store_auto(const char *text, void *member)
{
    const uint64_t later = VALUE_AUTO;
    if (strcmp(text, "auto") != 0)
        return false;
    memcpy(member, &later, sizeof later);
    return true;
}

static bool read_count(const struct value_rule *rule, const char *text, void *member)
{
    uint64_t value = 0;
    return text_read_count(text, &value) && store_number(rule, value, member);
}

static bool read_bytes(const struct value_rule *rule, const char *text, void *member)
{
    uint64_t value = 0;
    return text_read_bytes(text, &value) && store_number(rule, value, member);
}

static bool read_count_or_auto(const struct value_rule *rule, const char *text, void *member)
{
    return store_auto(text, member) || read_count(rule, text, member);
}

static bool read_bytes_or_auto(const struct value_rule *rule, const char *text, void *member)
{
    return store_auto(text, member) || read_bytes(rule, text, member);
}

static bool read_real(const struct value_rule *rule, const char *text, void *member)
{
    double value = 0;
    if (!text_read_real(text, &value) || !in_range(rule, value))
        return false;
    memcpy(member, &value, sizeof value);
    return true;
}

static void describe_count(const struct value_rule *rule, char *text, size_t size)
{
    snprintf(text, size, "%sa whole number from %.0f to %.0f", rule->kind == &value_count_or_auto ? "auto, or " : "",
             rule->min, rule->max);
}

static void describe_bytes(const struct value_rule *rule, char *text, size_t size)
{
    char min[32], max[32];
    snprintf(text, size, "%sbytes from %s to %s, with K, M, G or T for powers of 1024",
             rule->kind == &value_bytes_or_auto ? "auto, or " : "",
             text_write_bytes(min, sizeof min, (uint64_t)rule->min),
             text_write_bytes(max, sizeof max, (uint64_t)rule->max));
}

static void describe_real(const struct value_rule *rule, char *text, size_t size)
{
    snprintf(text, size, "a number from %g to %g", rule->min, rule->max);
}

const struct value_kind value_count = {read_count, .describe = describe_count};
const struct value_kind value_count_or_auto = {read_count_or_auto, .describe = describe_count};
const struct value_kind value_bytes = {read_bytes, .describe = describe_bytes};
const struct value_kind value_bytes_or_auto = {read_bytes_or_auto, .describe = describe_bytes};
const struct value_kind value_real = {read_real, .describe = describe_real};

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void store_text(const char *text, void *member)
{
    memcpy(member, &text, sizeof text);
}

static bool is_none(const char *text)
{
    return strcmp(text, "none") == 0;
}

static bool read_text(const struct value_rule *rule, const char *text, void *member)
{
    (void)rule;
    if (*text == '\0')
        return false;
    store_text(text, member);
    return true;
}

static bool read_optional(const struct value_rule *rule, const char *text, void *member)
{
    (void)rule;
    if (*text == '\0')
        return false;
    store_text(is_none(text) ? NULL : text, member);
    return true;
}

static bool read_path(const struct value_rule *rule, const char *text, void *member)
{
    (void)rule;
    store_text(*text == '\0' || is_none(text) ? NULL : text, member);
    return true;
}

const struct value_kind value_text = {read_text, .description = "a text that is not empty"};
const struct value_kind value_optional = {read_optional, .description = "a text that is not empty"};
const struct value_kind value_path = {read_path, .description = "none or a path"};

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Whether text is "scheme://host[:port]", as browsers write an origin, or a star, for all origins. */
static bool is_origin(struct text_span text)
{
    static const char mark[] = "://";
    if (text_equal(text, "*"))
        return true;
    const char *at = memmem(text.at, text.length, mark, sizeof mark - 1);
    if (at == NULL || at == text.at)
        return false;
    const char *host = at + sizeof mark - 1, *end = text.at + text.length;
    for (const char *c = host; c < end; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr("/?#@", *c) != NULL)
            return false;
    return host < end;
}

/* Whether text is the name of a host, without a port. */
static bool is_host_name(struct text_span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!isalnum((unsigned char)text.at[i]) && strchr("-._", text.at[i]) == NULL)
            return false;
    return !text_equal(text, "none");
}

static bool read_list(const struct value_rule *rule, const char *text, void *member)
{
    struct text_span rest = text_span_of(is_none(text) ? "" : text), element;
    size_t count = 0;
    for (; text_next(&rest, ',', &element); count++)
        if (!rule->kind->is_right(element))
            return false;
    if (count == 0 && !is_none(text))
        return false;
    store_text(count > 0 ? text : "", member);
    return true;
}

/* Whether text is NAME=DIR. */
static bool is_model(struct text_span text)
{
    const char *equals = memchr(text.at, '=', text.length);
    return equals != NULL && equals > text.at && equals + 1 < text.at + text.length;
}

static bool read_models(const struct value_rule *rule, const char *text, void *member)
{
    struct value_list *list = member;
    const char *value = NULL;
    if (!read_list(rule, text, &value) || (value[0] != '\0' && list->count == VALUE_LIST_MAX))
        return false;
    if (value[0] != '\0')
        list->items[list->count++] = value;
    else
        list->count = 0;
    return true;
}

_Static_assert(VALUE_LIST_MAX == 64, "the description of value_models names it");

const struct value_kind value_origins = {
    read_list, .is_right = is_origin,
    .description = "none, *, or origins such as https://a.example,https://b.example:8443; null cannot be named"};
const struct value_kind value_names = {read_list, .is_right = is_host_name,
                                       .description = "none, or names such as attnd.example,proxy.example"};
const struct value_kind value_networks = {read_list, .is_right = network_is_valid,
                                          .description = "none, or addresses and networks such as 10.0.0.0/8,::1"};
const struct value_kind value_models = {
    read_models, .is_right = is_model, .description = "none, or NAME=DIR, such as bert=/models/bert, at most 64 times"};

/* ---- address ----------------------------------------------------------------------------------------------------- */

/* Splits "[::1]:8080" at its last colon. Brackets separate the colons of the address from that of the port. */
static bool read_address(const struct value_rule *rule, const char *text, void *member)
{
    struct value_address *address = member;
    uint64_t port = 0;
    const char *colon = strrchr(text, ':');
    (void)rule;
    if (colon == NULL || !text_read_count(colon + 1, &port) || port > 65535)
        return false;
    struct text_span host = {text, (size_t)(colon - text)};
    const bool is_bracketed = host.length >= 2 && host.at[0] == '[' && host.at[host.length - 1] == ']';
    if (is_bracketed)
        host = (struct text_span){host.at + 1, host.length - 2};
    if (host.length >= sizeof address->host || strcspn(host.at, is_bracketed ? "[]/ " : "[]:/ ") < host.length)
        return false;
    snprintf(address->host, sizeof address->host, "%.*s", (int)host.length, host.at);
    snprintf(address->port, sizeof address->port, "%u", (unsigned)port);
    return true;
}

const struct value_kind value_address = {read_address,
                                         .description = "address:port, such as 127.0.0.1:8080, [::1]:8080 or :0"};

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Stores the index of text in words as an int, which is the type of an enum here. */
static bool store_place(const char *const *words, const char *text, void *member)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) {
            memcpy(member, &i, sizeof i);
            return true;
        }
    return false;
}

static bool read_word(const struct value_rule *rule, const char *text, void *member)
{
    return store_place(rule->words, text, member);
}

/* Writes "debug, info or off". */
static void describe_word(const struct value_rule *rule, char *text, size_t size)
{
    size_t length = 0;
    *text = '\0';
    for (const char *const *word = rule->words; *word != NULL && length < size; word++) {
        const char *joint = word == rule->words ? "" : word[1] == NULL ? " or " : ", ";
        length += (size_t)snprintf(text + length, size - length, "%s%s", joint, *word);
    }
}

static bool read_toggle(const struct value_rule *rule, const char *text, void *member)
{
    static const char *const words[] = {"off", "on", NULL}, *const digits[] = {"0", "1", NULL};
    (void)rule;
    return store_place(words, text, member) || store_place(digits, text, member);
}

const struct value_kind value_word = {read_word, .describe = describe_word};
const struct value_kind value_toggle = {read_toggle, .description = "on or off"};

/* status.c: names of outcomes, and the record of the first failure. */
#include "attn/status.h"

#include <stdio.h>
#include <string.h>

const char *attn_status_name(attn_status status)
{
    switch (status) {
#define STATUS_CASE(code, name)                                                                                        \
    case code:                                                                                                         \
        return name;
        ATTN_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown";
}

/* The number of bytes of a UTF-8 character that starts with first. */
static size_t character_length(unsigned char first)
{
    if (first >= 0xF0)
        return 4;
    if (first >= 0xE0)
        return 3;
    return first >= 0xC0 ? 2 : 1;
}

/* Removes a last character that the end of the buffer has truncated, so that the text stays valid UTF-8. */
static void drop_cut_character(char *text)
{
    size_t length = strlen(text);
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start > 0 && start - 1 + character_length((unsigned char)text[start - 1]) > length)
        text[start - 1] = '\0';
}

attn_status attn_fail(attn_error *err, attn_status status, const char *field, const char *format, ...)
{
    if (err == NULL)
        return status;
    /* The arguments may point into the old record, so the new record is completed before it replaces the old one. */
    attn_error fresh = {.status = status};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fresh.message, sizeof fresh.message, format, arguments);
    va_end(arguments);
    snprintf(fresh.field, sizeof fresh.field, "%s", field == NULL ? "" : field);
    drop_cut_character(fresh.message);
    drop_cut_character(fresh.field);
    *err = fresh;
    return status;
}

attn_status attn_fail_no_memory(attn_error *err)
{
    return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "there is not enough memory");
}

/* A fragment that does not fit is omitted, because a truncated one would not be JSON. */
static void copy_fragment(char *to, size_t size, const char *fragment)
{
    size_t length = fragment == NULL ? 0 : strlen(fragment);
    if (length >= size)
        length = 0;
    if (length > 0)
        memmove(to, fragment, length);
    to[length] = '\0';
}

attn_status attn_expect(attn_error *err, const char *expected, const char *received)
{
    copy_fragment(err->expected, sizeof err->expected, expected);
    copy_fragment(err->received, sizeof err->received, received);
    return err->status;
}

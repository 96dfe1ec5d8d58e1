/* guard.c: refuses requests that a strict HTTP/1.1 server refuses. */
#include "http/wire/guard.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/text.h"

/* RFC 9110, section 5.6.2. A name in which the library left a space ("Content-Length :") fails here. */
static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0' || (!isalnum((unsigned char)text[i]) && strchr("!#$%&'*+-.^_`|~", text[i]) == NULL))
            return false;
    return length > 0;
}

static bool has_control(const char *value, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
            return true;
    return false;
}

/*
 * Whether value has only letters, digits and the punctuation of addresses. A list, a path and a user have other
 * characters.
 */
static bool is_host(const char *value)
{
    for (const char *c = value; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-._~:[]%!$&'()*+;=", *c) == NULL)
            return false;
    return true;
}

static void refuse(struct guard_fields *fields, const char *refusal)
{
    if (fields->refusal == NULL)
        fields->refusal = refusal;
}

static void read_length(struct guard_fields *fields, const char *value)
{
    fields->content_lengths++;
    if (!text_read_count(value, &fields->content_length))
        refuse(fields, "Content-Length must be a decimal number");
}

static void read_host(struct guard_fields *fields, const char *value)
{
    fields->hosts++;
    fields->host = value;
    if (!is_host(value))
        refuse(fields, "Host must be a name or an address, with an optional port");
}

struct kept_field {
    const char *name;
    size_t length;
    size_t at; /* the offset in struct guard_fields of the pointer to the value */
};

#define KEPT(name, field)                                                                                              \
    {                                                                                                                  \
        name, sizeof name - 1, offsetof(struct guard_fields, field)                                                    \
    }

static const struct kept_field kept_fields[] = {
    KEPT("Expect", expect),
    KEPT("Content-Type", content_type),
    KEPT("Content-Encoding", content_encoding),
    KEPT("Accept-Encoding", accept_encoding),
    KEPT("Origin", origin),
    KEPT("Sec-Fetch-Site", fetch_site),
    KEPT("X-Request-Id", request_id),
    KEPT("Inference-Header-Content-Length", json_bytes),
    KEPT("Authorization", authorization),
    KEPT("X-API-Key", api_key),
    KEPT("traceparent", traceparent),
    KEPT("X-Priority", priority),
    KEPT("Request-Timeout", request_timeout),
    KEPT("If-Match", if_match),
    KEPT("If-None-Match", if_none_match),
    KEPT("Access-Control-Request-Method", asked_method),
};

/* Fields that only change how an answer is sent or logged. When one is sent twice, the last counts. */
static bool may_repeat(const char *name)
{
    static const char *const names[] = {"Accept-Encoding", "X-Request-Id", "traceparent"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static void keep_one(struct guard_fields *fields, const struct kept_field *field, const char *value)
{
    char *at = (char *)fields + field->at;
    const char *before;
    memcpy(&before, at, sizeof before);
    if (before != NULL && !may_repeat(field->name) && fields->refusal == NULL) {
        snprintf(fields->repeated, sizeof fields->repeated, "a request may have one %s field only", field->name);
        fields->refusal = fields->repeated;
    }
    memcpy(at, &value, sizeof value);
}

static void keep(struct guard_fields *fields, const char *name, size_t length, const char *value)
{
    for (size_t i = 0; i < ARRAY_LENGTH(kept_fields); i++)
        if (length == kept_fields[i].length && strcasecmp(name, kept_fields[i].name) == 0)
            keep_one(fields, &kept_fields[i], value);
}

static enum MHD_Result read_field(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                  const char *value, size_t value_length)
{
    struct guard_fields *fields = cls;
    (void)kind;
    assert(value != NULL); /* every field of a header has a value, which may be empty */
    if (!is_token(name, name_length))
        refuse(fields, "a header name holds a byte that no name may hold");
    else if (has_control(value, value_length))
        refuse(fields, "a header value holds a control byte");
    else if (strcasecmp(name, "Content-Length") == 0)
        read_length(fields, value);
    else if (strcasecmp(name, "Host") == 0)
        read_host(fields, value);
    else if (strcasecmp(name, "Accept") == 0)
        negotiate_add(&fields->accept, value);
    else
        keep(fields, name, name_length, value);
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        fields->transfer_encodings++;
        fields->transfer_encoding = value;
    }
    return MHD_YES;
}

void guard_read_fields(struct MHD_Connection *connection, struct guard_fields *fields)
{
    memset(fields, 0, sizeof *fields);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    assert(info != NULL); /* the header has been read */
    fields->header_bytes = info->header_size;
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, read_field, fields);
}

const char *guard_refuses(const struct guard_fields *fields, const char *method, const char *version)
{
    const bool is_1_1 = strcmp(version, "HTTP/1.1") == 0;
    if (!is_1_1 && strcmp(version, "HTTP/1.0") != 0)
        return "this server speaks HTTP/1.1 and HTTP/1.0";
    if (!is_token(method, strlen(method)))
        return "the method holds a byte that no method may hold";
    if (fields->refusal != NULL)
        return fields->refusal;
    if (fields->hosts > 1 || (is_1_1 && fields->hosts == 0))
        return "a request needs exactly one Host field";
    if (fields->content_lengths > 1)
        return "a request may have one Content-Length field only";
    if (fields->transfer_encodings > 1)
        return "a request may have one Transfer-Encoding field only";
    if (fields->transfer_encodings > 0 && fields->content_lengths > 0)
        return "a request may have Content-Length or Transfer-Encoding, not both";
    if (fields->transfer_encodings > 0 && (!is_1_1 || strcasecmp(fields->transfer_encoding, "chunked") != 0))
        return "the only Transfer-Encoding understood is chunked, in HTTP/1.1";
    return NULL;
}

bool guard_is_chunked(const struct guard_fields *fields)
{
    return fields->transfer_encodings > 0;
}

bool guard_has_body(const struct guard_fields *fields)
{
    return guard_is_chunked(fields) || fields->content_length > 0;
}

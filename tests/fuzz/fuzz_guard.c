/*
 * fuzz_guard.c: bytes on a connection: what the HTTP library takes and the guard lets pass is a request that a strict
 * reader of RFC 9112 takes too, with the same target, length and framing.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "http/wire/cors.h"
#include "http/wire/guard.h"
#include "http/wire/wire.h"

enum { INPUT_MAX = 8 << 10, ROUNDS_MAX = 50, CONNECTION_MEMORY = 128 << 10 };

#if MHD_VERSION >= 0x00097701
#define STRICT_OPTION MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICT_OPTION MHD_OPTION_STRICT_FOR_CLIENT
#endif

/* The one connection of an input. */
static struct {
    const char *bytes;
    size_t length;
    char *target;
    bool is_closed;
} now;

static struct MHD_Daemon *library;

/*
 * ---- what leaves no trace ----
 *
 * No guard behind libmicrohttpd 0.9.75 can refuse the forms that framing.c lists. Each is put right here, and nothing
 * else is: then the request must be a strict one.
 */

enum { LIBRARY_IS_KIND = MHD_VERSION < FRAMING_IS_THE_LIBRARYS };

/* Two ends of lines, of one to three bytes, the second with nothing before it that could be seen. */
static bool ends_header(const char at[4])
{
    const bool is_1_and_3 = at[0] == '\n' && (at[1] == ':' || at[1] == '\0') && (at[2] == '\r' || at[2] == '\0');
    const bool is_2_and_2 =
        (at[0] == '\r' || at[0] == '\0') && at[1] == '\n' && (at[2] == '\r' || at[2] == ':' || at[2] == '\0');
    const bool is_3_and_1 = at[0] == '\0' && (at[1] == '\r' || at[1] == '\0') && at[2] == '\n';
    return at[3] == '\n' && (is_1_and_3 || is_2_and_2 || is_3_and_1);
}

/* from: where the first line of the request ends. What follows the header stays as it is. */
static void restore_line_ends(char *from, const char *end)
{
    for (char *at = from; end - at >= 2; at++) {
        if (end - at >= 4 && ends_header(at)) {
            memcpy(at, "\r\n\r\n", 4);
            return;
        }
        if (at[0] == '\0' && at[1] == '\n')
            *at = '\r';
    }
}

/* The bytes of the connection, put right. */
static struct text_span restore(void)
{
    static char bytes[INPUT_MAX];
    char *at = bytes, *end = bytes + now.length, *line_end;
    memcpy(bytes, now.bytes, now.length);
    if (!LIBRARY_IS_KIND)
        return (struct text_span){bytes, now.length};
    while ((line_end = memchr(at, '\n', (size_t)(end - at))) != NULL &&
           (*at == '\0' || *at == '\n' || (*at == '\r' && line_end == at + 1)))
        at = line_end + 1;
    if (line_end != NULL)
        restore_line_ends(line_end - (line_end[-1] == '\r'), end);
    return (struct text_span){at, (size_t)(end - at)};
}

/* ---- a strict reader, which shares nothing with the guard ---- */

struct strict_request {
    struct text_span target;
    unsigned hosts, lengths, codings;
    uint64_t content_length;
    bool is_chunked, is_1_1;
};

static bool is_token_byte(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_named(struct text_span name, const char *word)
{
    return name.length == strlen(word) && strncasecmp(name.at, word, name.length) == 0;
}

static bool read_count(struct text_span digits, uint64_t *count)
{
    *count = 0;
    for (size_t i = 0; i < digits.length; i++)
        if (!isdigit((unsigned char)digits.at[i]) || __builtin_mul_overflow(*count, UINT64_C(10), count) ||
            __builtin_add_overflow(*count, (uint64_t)(digits.at[i] - '0'), count))
            return false;
    return digits.length > 0;
}

static bool read_first_line(struct text_span line, struct strict_request *request)
{
    const char *at = line.at, *end = line.at + line.length;
    while (at < end && is_token_byte(*at))
        at++;
    if (at == line.at || at == end || *at++ != ' ')
        return false;
    const char *target = at;
    while (at<end && * at> ' ' && *at < 0x7f)
        at++;
    request->target = (struct text_span){target, (size_t)(at - target)};
    request->is_1_1 = end - at == 9 && memcmp(at, " HTTP/1.1", 9) == 0;
    return at > target && (request->is_1_1 || (end - at == 9 && memcmp(at, " HTTP/1.0", 9) == 0));
}

static bool read_field(struct text_span line, struct strict_request *request)
{
    size_t name = 0;
    while (name < line.length && is_token_byte(line.at[name]))
        name++;
    if (name == 0 || name == line.length || line.at[name] != ':')
        return false;
    for (size_t i = name + 1; i < line.length; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7f)
            return false;
    const struct text_span field = {line.at, name};
    const struct text_span value = text_trim((struct text_span){line.at + name + 1, line.length - name - 1});
    request->hosts += is_named(field, "Host");
    if (is_named(field, "Content-Length")) {
        request->lengths++;
        return read_count(value, &request->content_length);
    }
    if (is_named(field, "Transfer-Encoding")) {
        request->codings++;
        request->is_chunked = is_named(value, "chunked");
        return request->is_chunked;
    }
    return true;
}

/* The next line, which ends in CR LF and holds neither. */
static bool next_line(struct text_span *rest, struct text_span *line)
{
    const char *end = memchr(rest->at, '\n', rest->length);
    if (end == NULL || end == rest->at || end[-1] != '\r')
        return false;
    *line = (struct text_span){rest->at, (size_t)(end - 1 - rest->at)};
    *rest = (struct text_span){end + 1, rest->length - (size_t)(end + 1 - rest->at)};
    return memchr(line->at, '\r', line->length) == NULL;
}

/* Reads what was sent, but for what leaves no trace. */
static bool read_strictly(struct strict_request *request)
{
    struct text_span rest = restore(), line;
    *request = (struct strict_request){.hosts = 0};
    while (rest.length > 0 && (*rest.at == '\r' || *rest.at == '\n')) /* empty lines before a request */
        rest = (struct text_span){rest.at + 1, rest.length - 1};
    if (!next_line(&rest, &line) || !read_first_line(line, request))
        return false;
    while (next_line(&rest, &line)) {
        if (line.length == 0)
            return request->lengths <= 1 && request->codings <= 1 && request->lengths + request->codings <= 1 &&
                   request->hosts <= 1 && (request->hosts == 1 || !request->is_1_1) &&
                   (request->is_1_1 || !request->is_chunked);
        if (!read_field(line, request))
            return false;
    }
    return false;
}

/* ---- what the server sees ---- */

static void read_wishes(const struct guard_fields *fields)
{
    enum coding coding;
    (void)negotiate_choose(&fields->accept, (1u << MEDIA_COUNT) - 1);
    (void)negotiate_prefers_problem(&fields->accept);
    (void)negotiate_coding(fields->accept_encoding, CODING_ALL);
    (void)negotiate_body(fields->content_type, (1u << MEDIA_COUNT) - 1);
    (void)(fields->content_type != NULL && negotiate_is_unnamed(fields->content_type));
    (void)(fields->host != NULL && cors_host_is_ours(fields->host, "a.example,b"));
    fuzz_claim(fields->host == NULL || fields->origin == NULL || strchr(fields->origin, ':') != NULL ||
                   !cors_host_is_of_origin(fields->host, fields->origin),
               "an origin has a scheme");
    fuzz_claim(!negotiate_body_coding(fields->content_encoding, &coding) || coding <= CODING_IDENTITY,
               "a coding of the body is one of ours");
}

static void read_query(const struct target *target)
{
    struct text_span query = target->query, name, value;
    while (target_next_parameter(&query, &name, &value)) {
        char *decoded = malloc(value.length + 1);
        fuzz_claim(decoded != NULL, "the fuzzer has memory");
        if (target_decode(value, decoded))
            fuzz_claim(strlen(decoded) <= value.length, "decoding makes nothing longer");
        free(decoded);
    }
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **state)
{
    struct guard_fields fields;
    struct target target;
    struct strict_request strict;
    (void)cls, (void)url, (void)data, (void)size, (void)state;
    guard_read_fields(connection, &fields);
    read_wishes(&fields);
    const bool is_refused = framing_refuses(MHD_VERSION, connection, method, now.target, version) != NULL ||
                            guard_refuses(&fields, method, version) != NULL || target_read(now.target, &target) != NULL;
    if (is_refused)
        return MHD_NO;
    read_query(&target);
    fuzz_claim(read_strictly(&strict), "what passes the guard is a request of RFC 9112");
    fuzz_claim(strict.target.length == strlen(now.target) &&
                   memcmp(strict.target.at, now.target, strict.target.length) == 0,
               "the target is what was sent");
    fuzz_claim(guard_is_chunked(&fields) == strict.is_chunked, "who is chunked is the same to all");
    fuzz_claim(fields.content_length == strict.content_length, "the length is the same to all");
    return MHD_NO;
}

static void *begin(void *cls, const char *target, struct MHD_Connection *connection)
{
    (void)cls, (void)connection;
    free(now.target);
    now.target = strdup(target);
    return NULL;
}

static void notice(void *cls, struct MHD_Connection *connection, void **state, enum MHD_ConnectionNotificationCode code)
{
    (void)cls, (void)connection, (void)state;
    now.is_closed |= code == MHD_CONNECTION_NOTIFY_CLOSED;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    library =
        MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, handle, NULL, MHD_OPTION_URI_LOG_CALLBACK, begin,
                         NULL, MHD_OPTION_NOTIFY_CONNECTION, notice, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)CONNECTION_MEMORY, STRICT_OPTION, 1, MHD_OPTION_END);
    fuzz_claim(library != NULL, "the library starts");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int pair[2];
    if (size > INPUT_MAX)
        return 0;
    fuzz_claim(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0, "there is a connection");
    now.bytes = (const char *)data;
    now.length = size;
    now.is_closed = false;
    fuzz_claim(send(pair[1], data, size, MSG_NOSIGNAL) == (ssize_t)size, "the bytes fit the connection");
    shutdown(pair[1], SHUT_WR);
    fuzz_claim(MHD_add_connection(library, pair[0], (const struct sockaddr *)&address, sizeof address) == MHD_YES,
               "the library takes the connection");
    for (int i = 0; i < ROUNDS_MAX && !now.is_closed; i++)
        MHD_run(library);
    fuzz_claim(now.is_closed, "a connection whose client is gone ends");
    close(pair[1]);
    free(now.target);
    now.target = NULL;
    return 0;
}

/*
 * test_guard.c: tests of server/http/wire/guard.c, and of framing.c on a connection: headers as bytes on the wire, and
 * why they are refused.
 *
 * The library reads them from one end of a pair of sockets. Its newer version refuses some headers by itself. Then no
 * request reaches the guard, and the test accepts that.
 */
#include "http/wire/guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check_main.h"

enum { ROUNDS_MAX = 50, CONNECTION_MEMORY = 128 << 10 };

#if MHD_VERSION >= 0x00097701
#define STRICT_OPTION MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICT_OPTION MHD_OPTION_STRICT_FOR_CLIENT
#endif

/* What the handler saw of the one request. */
static struct {
    char target[256];
    bool is_seen, is_closed;
    const char *refusal;
    struct guard_fields fields;
    char content_type[64];
} seen;

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **state)
{
    (void)cls, (void)url, (void)data, (void)size, (void)state;
    seen.is_seen = true;
    guard_read_fields(connection, &seen.fields);
    const char *lines = framing_refuses(MHD_VERSION, connection, method, seen.target, version);
    seen.refusal = lines != NULL ? lines : guard_refuses(&seen.fields, method, version);
    if (seen.fields.content_type != NULL)
        snprintf(seen.content_type, sizeof seen.content_type, "%s", seen.fields.content_type);
    return MHD_NO;
}

static void *note_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    (void)cls, (void)connection;
    snprintf(seen.target, sizeof seen.target, "%s", target);
    return NULL;
}

static void note_end(void *cls, struct MHD_Connection *connection, void **state,
                     enum MHD_ConnectionNotificationCode code)
{
    (void)cls, (void)connection, (void)state;
    seen.is_closed |= code == MHD_CONNECTION_NOTIFY_CLOSED;
}

static void send_request(const char *bytes, size_t length)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *library = MHD_start_daemon(
        MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, handle, NULL, MHD_OPTION_URI_LOG_CALLBACK, note_target, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, note_end, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        STRICT_OPTION, 1, MHD_OPTION_END);
    int pair[2];
    ck_assert_ptr_nonnull(library);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(send(pair[1], bytes, length, MSG_NOSIGNAL), (ssize_t)length);
    shutdown(pair[1], SHUT_WR);
    ck_assert_int_eq(MHD_add_connection(library, pair[0], (const struct sockaddr *)&address, sizeof address), MHD_YES);
    for (int i = 0; i < ROUNDS_MAX && !seen.is_closed; i++)
        MHD_run(library);
    ck_assert(seen.is_closed);
    close(pair[1]);
    MHD_stop_daemon(library);
}

#define BYTES(text) text, sizeof text - 1
#define GET(fields) BYTES("GET / HTTP/1.1\r\nHost: a\r\n" fields "\r\n")

static const char lines_wrong[] = "a line of the header does not end in CR LF, or holds a NUL or no name";
static const char value_wrong[] = "a header value holds a control byte";
static const char name_wrong[] = "a header name holds a byte that no name may hold";
static const char host_wrong[] = "Host must be a name or an address, with an optional port";
static const char length_wrong[] = "Content-Length must be a decimal number";
static const char coding_wrong[] = "the only Transfer-Encoding understood is chunked, in HTTP/1.1";
static const char spaces_wrong[] = "the first line holds more than one space between two words";
static const char target_wrong[] = "the first line holds a NUL, or more than one space between two words";

static const struct {
    const char *bytes;
    size_t length;
    const char *refusal; /* NULL: none */
} requests[] = {
    {GET(""), NULL},
    {GET("X:\r\n"), NULL},
    {GET("X: a\t\r\nY:\tb \t \r\nZ: \t\r\n"), NULL},
    {GET("X: a\t\n"), lines_wrong},
    {GET("X: a \t\nY: b\r\n"), lines_wrong},
    {GET("X: a\0\r\n"), lines_wrong},
    {GET("X: a \0 \r\n"), lines_wrong},
    {GET("X: a\r\r\n"), value_wrong},
    {GET("X-Y_z.0~!#$%&'*+^`|: a\tb \r\n"), NULL},
    {BYTES("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), NULL},
    {BYTES("GET http://a/ HTTP/1.1\r\nHost: a-b.c_d~%41!$&'()*+;=:1\r\n\r\n"), NULL},
    {BYTES("GET / HTTP/1.0\r\n\r\n"), NULL},
    {BYTES("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), NULL},
    {BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), NULL},
    /* The next number stands for an unknown length, which libmicrohttpd 1.0.1 refuses itself. */
    {BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551614\r\n\r\n"), NULL},
    {BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"), NULL},
    {GET("Accept: a/b\r\nAccept: c/d\r\nAccept-Encoding: gzip\r\nAccept-Encoding: zstd\r\n"), NULL},
    {GET("X-Request-Id: 1\r\nX-Request-Id: 2\r\ntraceparent: 1\r\nTraceParent: 2\r\n"), NULL},
    /* The first line */
    {BYTES("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), "this server speaks HTTP/1.1 and HTTP/1.0"},
    {BYTES("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), "this server speaks HTTP/1.1 and HTTP/1.0"},
    {BYTES("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"), "the method holds a byte that no method may hold"},
    {BYTES(" / HTTP/1.1\r\nHost: a\r\n\r\n"), "the method holds a byte that no method may hold"},
    {BYTES("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), spaces_wrong},
    {BYTES("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"), target_wrong},
    {BYTES("GET /\0a HTTP/1.1\r\nHost: a\r\n\r\n"), target_wrong},
    {BYTES("GET /\r\nHost: a\r\n\r\n"), "the first line must hold method, target and version"},
    /* Lines */
    {BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n"), lines_wrong},
    {BYTES("GET / HTTP/1.1\r\nHost: a\n\r\n"), lines_wrong},
    {BYTES("GET / HTTP/1.1\r\nHost: a\r\n\n"), lines_wrong},
    {GET("X: a\0b\r\n"), lines_wrong},
    {GET("X: a\r\n b\r\n"), "a line of the header is folded"},
    {GET("X: a\r\n\tb\r\nY: c\r\n"), "a line of the header is folded"},
    {GET(": a\r\n"), lines_wrong},
    {GET("X: a \n"), lines_wrong},
    /* Names and values */
    {GET("X : a\r\n"), name_wrong},
    {GET("X(: a\r\n"), name_wrong},
    {GET("X\x80: a\r\n"), name_wrong},
    {GET("X: a\x01\r\n"), value_wrong},
    {GET("X: a\x7f\r\n"), value_wrong},
    {GET("X: a\rb\r\n"), value_wrong},
    {GET("X: \x80\xff\r\n"), NULL},
    /* Host */
    {BYTES("GET / HTTP/1.1\r\n\r\n"), "a request needs exactly one Host field"},
    {GET("Host: a\r\n"), "a request needs exactly one Host field"},
    {GET("hOST: b\r\n"), "a request needs exactly one Host field"},
    {BYTES("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), "a request needs exactly one Host field"},
    {BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), host_wrong},
    {BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), host_wrong},
    {BYTES("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), host_wrong},
    /* Lengths and codings */
    {GET("Content-Length: +1\r\n"), length_wrong},
    {GET("Content-Length: 1a\r\n"), length_wrong},
    {GET("Content-Length: 1, 1\r\n"), length_wrong},
    {GET("Content-Length: -1\r\n"), length_wrong},
    {GET("Content-Length: 18446744073709551616\r\n"), length_wrong},
    {GET("Content-Length:\r\n"), length_wrong},
    {GET("Transfer-Encoding: chunked\r\nContent-Length: x\r\n"), length_wrong},
    {GET("Content-Length: x\r\nX: a\x01\r\nTransfer-Encoding: chunked\r\n"), length_wrong},
    {GET("X: a\x01\r\nX(: b\r\n"), value_wrong},
    {GET("Content-Length: 0\r\nContent-Length: 0\r\n"), "a request may have one Content-Length field only"},
    {GET("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
     "a request may have one Transfer-Encoding field only"},
    {GET("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
     "a request may have Content-Length or Transfer-Encoding, not both"},
    {GET("Transfer-Encoding: gzip, chunked\r\n"), coding_wrong},
    {GET("Transfer-Encoding: identity\r\n"), coding_wrong},
    {BYTES("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), coding_wrong},
    /* Fields that may stand once. Of several mistakes, the first is reported */
    {GET("Content-Type: a\r\nContent-Type: b\r\n"), "a request may have one Content-Type field only"},
    {GET("Expect: a\r\nexpect: a\r\n"), "a request may have one Expect field only"},
    {GET("X-API-Key: a\r\nX-API-Key: a\r\n"), "a request may have one X-API-Key field only"},
    {GET("If-Match: a\r\nIf-Match: a\r\nOrigin: a\r\nOrigin: a\r\n"), "a request may have one If-Match field only"},
    {GET("Content-Length: x\r\nX: a\x01\r\n"), length_wrong},
};

START_TEST(a_header_is_refused_for_what_is_wrong_with_it)
{
    send_request(requests[_i].bytes, requests[_i].length);
    const char *expected = requests[_i].refusal;
    if (expected == NULL) {
        ck_assert_msg(seen.is_seen && seen.refusal == NULL, "%s: %s", requests[_i].bytes,
                      seen.is_seen ? seen.refusal : "the library refuses it");
        return;
    }
    ck_assert_msg(!seen.is_seen || seen.refusal != NULL, "%s: passes", requests[_i].bytes);
    ck_assert_msg(!seen.is_seen || strcmp(seen.refusal, expected) == 0, "%s: \"%s\"", requests[_i].bytes, seen.refusal);
}
END_TEST

#define UNSEEN(end) BYTES("GET / HTTP/1.1\r\nHost: a" end)

/* The list of framing.c: when the guard looks, these headers have the same bytes as CR LF or CR LF CR LF. */
static const struct {
    const char *bytes;
    size_t length;
} unseen[] = {
    {UNSEEN("\0\nX: b\r\n\r\n")},
    {UNSEEN("\r\n\0\n")},
    {UNSEEN("\r\n:\n")},
    {UNSEEN("\0\n\r\n")},
    {UNSEEN("\0\n\0\n")},
    {UNSEEN("\0\n:\n")},
    {UNSEEN("\n:\r\n")},
    {UNSEEN("\n:\0\n")},
    {UNSEEN("\n\0\r\n")},
    {UNSEEN("\n\0\0\n")},
    {UNSEEN("\0\r\n\n")},
    {UNSEEN("\0\0\n\n")},
    {BYTES("\0 POST\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")},
};

START_TEST(only_an_older_library_takes_what_leaves_no_trace)
{
    send_request(unseen[_i].bytes, unseen[_i].length);
    const bool passes = seen.is_seen && seen.refusal == NULL;
    ck_assert_msg(passes == (MHD_VERSION < FRAMING_IS_THE_LIBRARYS), "%d %s", _i, passes ? "passes" : "is refused");
}
END_TEST

START_TEST(what_the_fields_say_is_kept)
{
    static const char request[] =
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\ncontent-type: text/plain\r\n\r\n";
    send_request(BYTES(request));
    ck_assert(seen.is_seen && seen.refusal == NULL);
    ck_assert_uint_eq(seen.fields.content_length, 12);
    ck_assert_uint_eq(seen.fields.header_bytes, sizeof request - 1);
    ck_assert_str_eq(seen.content_type, "text/plain");
    ck_assert(guard_has_body(&seen.fields) && !guard_is_chunked(&seen.fields));
    send_request(GET("Content-Length: 0\r\n"));
    ck_assert(!guard_has_body(&seen.fields));
    send_request(GET("Transfer-Encoding: chunked\r\n"));
    ck_assert(guard_has_body(&seen.fields) && guard_is_chunked(&seen.fields));
}
END_TEST

CHECK_MAIN("guard")
{
    tcase_add_loop_test(tests, a_header_is_refused_for_what_is_wrong_with_it, 0, COUNT(requests));
    tcase_add_loop_test(tests, only_an_older_library_takes_what_leaves_no_trace, 0, COUNT(unseen));
    tcase_add_test(tests, what_the_fields_say_is_kept);
}

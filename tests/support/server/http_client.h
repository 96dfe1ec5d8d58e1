/*
 * http_client.h: a small HTTP client that sends exactly the bytes it is given, right or wrong, and reads answers.
 */
#ifndef SUPPORT_HTTP_CLIENT_H
#define SUPPORT_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_HEAD_MAX = 8192 };

/* A connection to 127.0.0.1, with the bytes that were received but not read yet. */
struct http_client {
    int fd;
    char *pending;
    size_t pending_bytes, pending_room;
};

struct http_answer {
    int status;               /* 0: the connection ended, or was silent too long, before a whole answer came; body may
                                 then hold its beginning, when it came in chunks */
    char head[HTTP_HEAD_MAX]; /* first line and fields */
    char *body;               /* NUL-terminated */
    size_t body_bytes;
};

struct http_client http_open(unsigned port);
void http_close(struct http_client *client);
/* Sends all bytes; false when the peer has closed the connection. */
bool http_send(struct http_client *client, const char *text);
bool http_send_bytes(struct http_client *client, const char *bytes, size_t count);
/* Sends text in pieces of that many bytes, with a short pause after each. */
bool http_send_slowly(struct http_client *client, const char *text, size_t piece);
/* Reads the next answer (a 100 Continue counts as one); is_head: it has no body whatever its length field says. */
struct http_answer http_read(struct http_client *client, bool is_head);
void http_free(struct http_answer *answer);
/* Whether the peer closes the connection within a short time; bytes received before are dropped. */
bool http_is_closed(struct http_client *client);
/* The value of a field in head, copied into a buffer of the thread; NULL when there is none. */
const char *http_field(const struct http_answer *answer, const char *name);

/* One request on a connection of its own. */
struct http_answer http_ask(unsigned port, const char *request);

#endif

/*
 * http_client.c: a small HTTP client that sends exactly the bytes it is given.
 */
#include "http_client.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* A busy machine with instrumented code may be silent for long. */
enum { SILENCE_MS = 120000 };

struct http_client http_open(unsigned port)
{
    const int yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct http_client client = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
    setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(client.fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(client.fd);
        client.fd = -1;
    }
    return client;
}

void http_close(struct http_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    free(client->pending);
    *client = (struct http_client){.fd = -1};
}

bool http_send_bytes(struct http_client *client, const char *bytes, size_t count)
{
    while (count > 0) {
        const ssize_t sent = send(client->fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

bool http_send(struct http_client *client, const char *text)
{
    return http_send_bytes(client, text, strlen(text));
}

bool http_send_slowly(struct http_client *client, const char *text, size_t piece)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i += piece) {
        if (!http_send_bytes(client, text + i, length - i < piece ? length - i : piece))
            return false;
        usleep(500);
    }
    return true;
}

/* Reads more bytes after the pending ones; false at the end of the connection, or after a time-out. */
static bool receive(struct http_client *client, int silence_ms)
{
    struct pollfd poller = {.fd = client->fd, .events = POLLIN};
    if (poll(&poller, 1, silence_ms) != 1)
        return false;
    if (client->pending_room - client->pending_bytes < 4096) {
        client->pending_room = 2 * client->pending_room + 8192;
        client->pending = realloc(client->pending, client->pending_room);
    }
    const ssize_t got =
        recv(client->fd, client->pending + client->pending_bytes, client->pending_room - client->pending_bytes, 0);
    if (got <= 0)
        return false;
    client->pending_bytes += (size_t)got;
    return true;
}

/* A copy of the first count pending bytes as a text. */
static char *take(struct http_client *client, size_t count)
{
    char *text = malloc(count + 1);
    if (count > 0)
        memcpy(text, client->pending, count);
    text[count] = '\0';
    client->pending_bytes -= count;
    if (client->pending_bytes > 0)
        memmove(client->pending, client->pending + count, client->pending_bytes);
    return text;
}

static size_t head_bytes(const struct http_client *client)
{
    const char *end = client->pending_bytes > 0 ? memmem(client->pending, client->pending_bytes, "\r\n\r\n", 4) : NULL;
    return end != NULL ? (size_t)(end - client->pending) + 4 : 0;
}

static bool read_head(struct http_client *client, struct http_answer *answer)
{
    while (head_bytes(client) == 0)
        if (!receive(client, SILENCE_MS))
            return false;
    char *head = take(client, head_bytes(client));
    snprintf(answer->head, sizeof answer->head, "%s", head);
    free(head);
    return true;
}

/* A line without its line break; NULL when the connection ends first. */
static char *take_line(struct http_client *client)
{
    const char *end;
    while (client->pending_bytes == 0 || (end = memmem(client->pending, client->pending_bytes, "\r\n", 2)) == NULL)
        if (!receive(client, SILENCE_MS))
            return NULL;
    char *line = take(client, (size_t)(end - client->pending) + 2);
    line[strlen(line) - 2] = '\0';
    return line;
}

/* Appends all chunks to the body of answer; false when the last chunk is missing. */
static bool read_chunks(struct http_client *client, struct http_answer *answer)
{
    for (size_t room = 0;;) {
        char *line = take_line(client);
        const size_t length = line != NULL ? strtoul(line, NULL, 16) : 0;
        const bool is_there = line != NULL;
        free(line);
        while (is_there && client->pending_bytes < length + 2)
            if (!receive(client, SILENCE_MS))
                return false;
        if (!is_there)
            return false;
        char *data = take(client, length + 2);
        if (answer->body_bytes + length + 1 > room) { /* twofold: instrumented, every step copies all of it */
            room = 2 * (answer->body_bytes + length + 1);
            answer->body = realloc(answer->body, room);
        }
        memcpy(answer->body + answer->body_bytes, data, length);
        answer->body_bytes += length;
        answer->body[answer->body_bytes] = '\0';
        free(data);
        if (length == 0)
            return true;
    }
}

struct http_answer http_read(struct http_client *client, bool is_head)
{
    struct http_answer answer = {.status = 0};
    if (client->fd < 0 || !read_head(client, &answer))
        return answer;
    if (http_field(&answer, "Transfer-Encoding") != NULL && !is_head) {
        if (read_chunks(client, &answer))
            sscanf(answer.head, "HTTP/1.%*c %d", &answer.status);
        return answer;
    }
    const char *length = http_field(&answer, "Content-Length");
    answer.body_bytes = length != NULL && !is_head ? strtoul(length, NULL, 10) : 0;
    while (client->pending_bytes < answer.body_bytes)
        if (!receive(client, SILENCE_MS))
            return answer;
    answer.body = take(client, answer.body_bytes);
    sscanf(answer.head, "HTTP/1.%*c %d", &answer.status);
    return answer;
}

void http_free(struct http_answer *answer)
{
    free(answer->body);
    *answer = (struct http_answer){.status = 0};
}

bool http_is_closed(struct http_client *client)
{
    struct pollfd poller = {.fd = client->fd, .events = POLLIN};
    char rest[1024];
    while (poll(&poller, 1, SILENCE_MS) == 1)
        if (recv(client->fd, rest, sizeof rest, 0) <= 0)
            return true;
    return false;
}

const char *http_field(const struct http_answer *answer, const char *name)
{
    static _Thread_local char value[1024];
    const size_t length = strlen(name);
    for (const char *line = strstr(answer->head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, length) == 0 && line[2 + length] == ':') {
            const char *from = line + 3 + length + strspn(line + 3 + length, " ");
            snprintf(value, sizeof value, "%.*s", (int)strcspn(from, "\r"), from);
            return value;
        }
    return NULL;
}

struct http_answer http_ask(unsigned port, const char *request)
{
    struct http_client client = http_open(port);
    http_send(&client, request);
    const bool is_head = strncmp(request, "HEAD ", 5) == 0;
    struct http_answer answer = http_read(&client, is_head);
    http_close(&client);
    return answer;
}

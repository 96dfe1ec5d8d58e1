/*
 * http_load.c: sends one request over and over on some connections, and tells how many answers came and how soon.
 *
 *     http_load PORT FILE CONNECTIONS SECONDS
 *
 * FILE is a whole HTTP/1.1 request, its head included, to a server on 127.0.0.1. Each connection is kept and sends the
 * next request when the answer to the last one is complete. Printed are one line of
 *
 *     answers COUNT seconds S p50_us T p99_us T answer_bytes N
 *
 * where N is the body of an answer, with the framing of its chunks when it comes in chunks. Any status but 200 ends the
 * program. One thread, epoll, and no work on the bytes of an answer: it costs as little of the machine that it shares
 * with the server as it can.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16 << 10, DRAIN_BYTES = 512 << 10, EVENTS = 64, LATENCIES_FIRST = 1 << 16 };

struct connection {
    int fd;
    size_t sent;     /* of the request */
    size_t left;     /* of the body of the answer, or of its chunk with the line feed behind it */
    size_t body;     /* bytes of the body so far */
    size_t head;     /* bytes of the head so far */
    double begun_us; /* when the request was begun */
    int is_in_body, is_chunked, waits_to_send;
    int is_in_size; /* of a chunk: in the line before it */
    size_t size;    /* of the chunk, as far as that line has been read */
    char text[HEAD_MAX + 1];
};

struct load {
    const char *request;
    size_t request_bytes;
    int epoll;
    double end_us; /* no request begins after it */
    size_t at_work;
    uint32_t *latency_us10; /* tenths of a microsecond */
    size_t answers, capacity;
    size_t answer_bytes;
    char *drain;
};

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void read_request(struct load *load, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail(path);
    load->request_bytes = (size_t)ftell(file);
    char *text = malloc(load->request_bytes + 1);
    rewind(file);
    if (text == NULL || fread(text, 1, load->request_bytes, file) != load->request_bytes)
        fail(path);
    fclose(file);
    load->request = text;
}

static void watch(const struct load *load, struct connection *connection, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(load->epoll, operation, connection->fd, &event) != 0)
        fail("epoll_ctl");
}

static void send_more(const struct load *load, struct connection *connection)
{
    while (connection->sent < load->request_bytes) {
        const ssize_t sent = send(connection->fd, load->request + connection->sent,
                                  load->request_bytes - connection->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            fail("send");
        if (sent < 0)
            break;
        connection->sent += (size_t)sent;
    }
    const int waits = connection->sent < load->request_bytes;
    if (waits != connection->waits_to_send)
        watch(load, connection, EPOLL_CTL_MOD, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    connection->waits_to_send = waits;
}

static void begin_request(struct load *load, struct connection *connection)
{
    connection->begun_us = now_us();
    if (connection->begun_us >= load->end_us) {
        watch(load, connection, EPOLL_CTL_DEL, 0);
        load->at_work--;
        return;
    }
    connection->sent = connection->head = connection->left = connection->body = connection->size = 0;
    connection->is_in_body = connection->is_in_size = connection->is_chunked = 0;
    send_more(load, connection);
}

static void note_answer(struct load *load, struct connection *connection)
{
    if (load->answers == load->capacity) {
        load->capacity *= 2;
        load->latency_us10 = realloc(load->latency_us10, load->capacity * sizeof *load->latency_us10);
        if (load->latency_us10 == NULL)
            fail("memory");
    }
    load->answer_bytes = connection->body;
    load->latency_us10[load->answers++] = (uint32_t)((now_us() - connection->begun_us) * 10);
    begin_request(load, connection);
}

/* A byte of the line "SIZE[;extension]CRLF" before a chunk; the last chunk has size 0 and one more empty line. */
static void take_size_byte(struct connection *connection, char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit = byte != '\0' ? strchr(digits, byte | 0x20) : NULL;
    if (byte == '\n') {
        connection->is_in_size = 0;
        connection->left = connection->size + 2;
        connection->is_chunked = connection->size > 0 ? 1 : 2; /* 2: what is left is the end */
    } else if (digit != NULL) {
        connection->size = 16 * connection->size + (size_t)(digit - digits);
    }
}

/* Bytes of the body; true when it is complete. */
static int take_body(struct connection *connection, const char *bytes, size_t count)
{
    connection->body += count;
    while (count > 0) {
        if (connection->is_in_size) {
            take_size_byte(connection, *bytes++);
            count--;
            continue;
        }
        const size_t step = count < connection->left ? count : connection->left;
        connection->left -= step;
        bytes += step;
        count -= step;
        if (connection->left == 0 && connection->is_chunked == 1) {
            connection->is_in_size = 1;
            connection->size = 0;
        } else if (connection->left == 0) {
            return 1;
        }
    }
    return connection->left == 0 && !connection->is_in_size;
}

/* The head is there, and perhaps some of the body behind it; true when all of that. */
static int take_head(struct connection *connection, const char *head_end)
{
    const char *length = strcasestr(connection->text, "\r\nContent-Length:");
    const char *chunked = strcasestr(connection->text, "\r\nTransfer-Encoding: chunked");
    connection->is_chunked = connection->is_in_size = chunked != NULL && chunked < head_end;
    if (strncmp(connection->text, "HTTP/1.1 200", 12) != 0 ||
        (!connection->is_chunked && (length == NULL || length > head_end))) {
        fprintf(stderr, "http_load: not an answer with status 200 and a length:\n%.600s\n", connection->text);
        exit(EXIT_FAILURE);
    }
    connection->left = connection->is_chunked ? 0 : strtoull(length + strlen("\r\nContent-Length:"), NULL, 10);
    connection->is_in_body = 1;
    return take_body(connection, head_end + 4, connection->head - (size_t)(head_end + 4 - connection->text));
}

/* Once at a time: with more to come, epoll says so again, and other connections have their turn. */
static void receive(struct load *load, struct connection *connection)
{
    char *to = connection->is_in_body ? load->drain : connection->text + connection->head;
    const size_t most = connection->is_in_body ? DRAIN_BYTES : HEAD_MAX - connection->head;
    const ssize_t got = recv(connection->fd, to, most, 0);
    if (got == 0)
        errno = ECONNRESET;
    if (got == 0 || (got < 0 && errno != EAGAIN))
        fail("recv");
    if (got < 0)
        return;
    int is_complete = 0;
    if (connection->is_in_body) {
        is_complete = take_body(connection, load->drain, (size_t)got);
    } else {
        connection->head += (size_t)got;
        connection->text[connection->head] = '\0';
        const char *head_end = strstr(connection->text, "\r\n\r\n");
        is_complete = head_end != NULL && take_head(connection, head_end);
    }
    if (is_complete)
        note_answer(load, connection);
}

static struct connection *connect_to(const struct load *load, int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int yes = 1;
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        fail("memory");
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection->fd, (const struct sockaddr *)&address, sizeof address) != 0)
        fail("connect");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    watch(load, connection, EPOLL_CTL_ADD, EPOLLIN);
    return connection;
}

static int order(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(struct load *load, double seconds)
{
    if (load->answers == 0) {
        fprintf(stderr, "http_load: no answer in time\n");
        exit(EXIT_FAILURE);
    }
    qsort(load->latency_us10, load->answers, sizeof *load->latency_us10, order);
    printf("answers %zu seconds %.4f p50_us %.1f p99_us %.1f answer_bytes %zu\n", load->answers, seconds,
           load->latency_us10[load->answers / 2] * 0.1, load->latency_us10[load->answers * 99 / 100] * 0.1,
           load->answer_bytes);
}

static void run(struct load *load)
{
    struct epoll_event events[EVENTS];
    while (load->at_work > 0) {
        const int count = epoll_wait(load->epoll, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < count; i++) {
            if (events[i].events & EPOLLOUT)
                send_more(load, events[i].data.ptr);
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                receive(load, events[i].data.ptr);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: http_load PORT FILE CONNECTIONS SECONDS\n");
        return EXIT_FAILURE;
    }
    struct load load = {.epoll = epoll_create1(0), .capacity = LATENCIES_FIRST, .drain = malloc(DRAIN_BYTES)};
    load.latency_us10 = malloc(load.capacity * sizeof *load.latency_us10);
    if (load.epoll < 0 || load.drain == NULL || load.latency_us10 == NULL)
        fail("start");
    read_request(&load, argv[2]);
    load.at_work = strtoull(argv[3], NULL, 10);
    const size_t connections = load.at_work;
    struct connection **all = calloc(connections + 1, sizeof *all);
    for (size_t i = 0; all != NULL && i < connections; i++)
        all[i] = connect_to(&load, atoi(argv[1]));
    const double begun_us = now_us();
    load.end_us = begun_us + strtod(argv[4], NULL) * 1e6;
    for (size_t i = 0; all != NULL && i < connections; i++)
        begin_request(&load, all[i]);
    run(&load);
    report(&load, (now_us() - begun_us) * 1e-6);
    for (size_t i = 0; all != NULL && i < connections; i++)
        free(all[i]);
    free(all);
    return EXIT_SUCCESS;
}

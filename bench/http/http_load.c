/*
 * http_load.c: sends one request over and over on some connections, and tells how many answers came and how soon.
 *
 *     http_load PORT FILE CONNECTIONS SECONDS [RATE [poll]]
 *
 * FILE is a whole HTTP/1.1 request, its head included, to a server on 127.0.0.1. Each connection is kept and sends the
 * next request when the answer to the last one is complete. Printed are one line of
 *
 *     answers COUNT seconds S p50_us T p99_us T answer_bytes N
 *
 * where N is the body of an answer, with the framing of its chunks when it comes in chunks. Any status but 200 ends the
 * program. One thread, epoll, and no work on the bytes of an answer: it costs as little of the machine that it shares
 * with the server as it can.
 *
 * With a RATE, requests a second, it sends that many whatever is answered, as long as a connection is free. Then 503
 * with Retry-After is an answer too, told by a second line
 *
 *     refusals COUNT seconds S p50_us T p99_us T requests COUNT late COUNT
 *
 * and what comes after the SECONDS counts as late only. With poll it never sleeps, for a processor of its own: so the
 * server, as if the client were on another machine, spends nothing on waking it.
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
enum { ANSWERED = 200, REFUSED = 503 };

struct connection {
    int fd;
    size_t sent;     /* of the request */
    size_t left;     /* of the body of the answer, or of its chunk with the line feed behind it */
    size_t body;     /* bytes of the body so far */
    size_t head;     /* bytes of the head so far */
    double begun_us; /* when the request was begun */
    int is_in_body, is_chunked, waits_to_send;
    int is_in_size; /* of a chunk: in the line before it */
    int status;
    struct connection *next; /* of those that are free */
    size_t size;             /* of the chunk, as far as that line has been read */
    char text[HEAD_MAX + 1];
};

struct latencies {
    uint32_t *us10; /* tenths of a microsecond */
    size_t count, capacity;
};

struct load {
    const char *request;
    size_t request_bytes;
    int epoll;
    double begun_us, end_us; /* no request begins after the end */
    double rate;             /* 0: each connection goes on when it is answered */
    int pause_ms;            /* how long at most it sleeps while requests are due */
    size_t requests, late;
    size_t at_work;
    struct connection *free;
    struct latencies answers, refusals;
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
    load->requests++;
    send_more(load, connection);
}

static void note_latency(struct latencies *latencies, double us)
{
    if (latencies->count == latencies->capacity) {
        latencies->capacity = latencies->capacity == 0 ? LATENCIES_FIRST : 2 * latencies->capacity;
        latencies->us10 = realloc(latencies->us10, latencies->capacity * sizeof *latencies->us10);
        if (latencies->us10 == NULL)
            fail("memory");
    }
    latencies->us10[latencies->count++] = (uint32_t)(us * 10);
}

static void set_free(struct load *load, struct connection *connection)
{
    connection->next = load->free;
    load->free = connection;
    load->at_work--;
}

static void note_answer(struct load *load, struct connection *connection)
{
    const double now = now_us();
    if (load->rate == 0 || now < load->end_us)
        note_latency(connection->status == REFUSED ? &load->refusals : &load->answers, now - connection->begun_us);
    else
        load->late++;
    if (connection->status == ANSWERED)
        load->answer_bytes = connection->body;
    if (load->rate > 0)
        set_free(load, connection);
    else
        begin_request(load, connection);
}

/* As many as are due by now; returns how soon there will be more to do, in milliseconds. */
static int begin_due(struct load *load)
{
    const double now = now_us();
    const double due = (now < load->end_us ? now - load->begun_us : 0) * 1e-6 * load->rate;
    if (load->rate == 0)
        return -1;
    while (load->free != NULL && (double)load->requests < due) {
        struct connection *connection = load->free;
        load->free = connection->next;
        load->at_work++;
        begin_request(load, connection);
    }
    return now < load->end_us ? load->pause_ms : -1;
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

/* Who is refused must be told when to come again. */
static int is_welcome(const struct load *load, const struct connection *connection)
{
    return connection->status == ANSWERED || (load->rate > 0 && connection->status == REFUSED &&
                                              strcasestr(connection->text, "\r\nRetry-After:") != NULL);
}

/* The head is there, and perhaps some of the body behind it; true when all of that. */
static int take_head(const struct load *load, struct connection *connection, const char *head_end)
{
    const char *length = strcasestr(connection->text, "\r\nContent-Length:");
    const char *chunked = strcasestr(connection->text, "\r\nTransfer-Encoding: chunked");
    connection->is_chunked = connection->is_in_size = chunked != NULL && chunked < head_end;
    connection->status = strncmp(connection->text, "HTTP/1.1 ", 9) == 0 ? atoi(connection->text + 9) : 0;
    if (!is_welcome(load, connection) || (!connection->is_chunked && (length == NULL || length > head_end))) {
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
        is_complete = head_end != NULL && take_head(load, connection, head_end);
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

static void report(const char *what, struct latencies *latencies, double seconds)
{
    const size_t count = latencies->count;
    qsort(latencies->us10, count, sizeof *latencies->us10, order);
    printf("%s %zu seconds %.4f p50_us %.1f p99_us %.1f", what, count, seconds,
           count > 0 ? latencies->us10[count / 2] * 0.1 : 0, count > 0 ? latencies->us10[count * 99 / 100] * 0.1 : 0);
}

static void report_all(struct load *load)
{
    const double seconds = ((load->rate > 0 ? load->end_us : now_us()) - load->begun_us) * 1e-6;
    if (load->answers.count == 0) {
        fprintf(stderr, "http_load: no answer in time\n");
        exit(EXIT_FAILURE);
    }
    report("answers", &load->answers, seconds);
    printf(" answer_bytes %zu\n", load->answer_bytes);
    if (load->rate == 0)
        return;
    report("refusals", &load->refusals, seconds);
    printf(" requests %zu late %zu\n", load->requests, load->late);
}

static void run(struct load *load)
{
    struct epoll_event events[EVENTS];
    for (;;) {
        const int wait_ms = begin_due(load);
        if (load->at_work == 0 && wait_ms < 0)
            return;
        const int count = epoll_wait(load->epoll, events, EVENTS, wait_ms);
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
    if (argc < 5 || argc > 7) {
        fprintf(stderr, "usage: http_load PORT FILE CONNECTIONS SECONDS [RATE [poll]]\n");
        return EXIT_FAILURE;
    }
    struct load load = {.epoll = epoll_create1(0), .drain = malloc(DRAIN_BYTES)};
    if (load.epoll < 0 || load.drain == NULL)
        fail("start");
    read_request(&load, argv[2]);
    load.rate = argc > 5 ? strtod(argv[5], NULL) : 0;
    load.pause_ms = argc > 6 && strcmp(argv[6], "poll") == 0 ? 0 : 1;
    load.at_work = strtoull(argv[3], NULL, 10);
    const size_t connections = load.at_work;
    struct connection **all = calloc(connections + 1, sizeof *all);
    for (size_t i = 0; all != NULL && i < connections; i++)
        all[i] = connect_to(&load, atoi(argv[1]));
    load.begun_us = now_us();
    load.end_us = load.begun_us + strtod(argv[4], NULL) * 1e6;
    for (size_t i = 0; all != NULL && i < connections; i++) {
        if (load.rate > 0)
            set_free(&load, all[i]);
        else
            begin_request(&load, all[i]);
    }
    run(&load);
    report_all(&load);
    for (size_t i = 0; all != NULL && i < connections; i++)
        free(all[i]);
    free(all);
    return EXIT_SUCCESS;
}

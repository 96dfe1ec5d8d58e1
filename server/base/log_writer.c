/*
 * log_writer.c: the thread that writes the log. Of two buffers one is filled while the other is written.
 */
#include "base/log_writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum { ROOM = 4 << 20, GATHER_MS = 4 };

_Static_assert((int)LOG_LINE_MAX <= (int)PIPE_BUF, "a line is written whole");

struct log_writer {
    struct log log; /* whose lines are written at once: for what the thread has to say itself */
    pthread_t thread;
    sem_t wake; /* once for each time that the buffer gets its first line, and to end */
    atomic_bool is_ending, is_ended;
    atomic_size_t written; /* bytes, of those put */
    pthread_mutex_t lock;  /* for what follows */
    char *filled;
    size_t put, used, lost_lines;
    char *other; /* the thread's own */
};

static struct timespec of_ms(unsigned ms)
{
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
}

/* The length of the whole lines at the beginning of text that one write takes. */
static size_t lines_of_a_write(const char *text, size_t length)
{
    if (length <= PIPE_BUF)
        return length;
    const char *last = memrchr(text, '\n', PIPE_BUF);
    return last != NULL ? (size_t)(last - text) + 1 : PIPE_BUF;
}

/* A log that cannot be written must not stop the work that it tells about: what fails for good is left out. */
static void write_whole(int fd, const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(fd, text, length);
        if (written > 0) {
            text += written;
            length -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (written == 0 || errno != EINTR) {
            return;
        }
    }
}

static void write_lines(int fd, const char *text, size_t length)
{
    for (size_t part; length > 0; text += part, length -= part) {
        part = lines_of_a_write(text, length);
        write_whole(fd, text, part);
    }
}

static void say_lost(const struct log *log, size_t lines)
{
    struct log_line line;
    struct pollfd room = {.fd = log->fd, .events = POLLOUT}; /* the one write of a line does not wait */
    (void)poll(&room, 1, -1);
    log_begin(&line, log, LOG_WARN, "lines of the log were lost, as it was not written fast enough");
    log_count(&line, "lines", lines);
    log_end(&line);
}

/* What was put until now. */
static void write_batch(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    char *text = writer->filled;
    const size_t length = writer->used, lost = writer->lost_lines;
    writer->filled = writer->other;
    writer->used = writer->lost_lines = 0;
    pthread_mutex_unlock(&writer->lock);
    writer->other = text;
    write_lines(writer->log.fd, text, length);
    if (lost > 0)
        say_lost(&writer->log, lost);
    atomic_fetch_add(&writer->written, length);
}

static void *run(void *argument)
{
    struct log_writer *writer = argument;
    const struct timespec gather = of_ms(GATHER_MS);
    bool is_ending = false;
    while (!is_ending) {
        while (sem_wait(&writer->wake) != 0)
            continue;
        if (!atomic_load(&writer->is_ending))
            nanosleep(&gather, NULL);
        is_ending = atomic_load(&writer->is_ending);
        write_batch(writer);
    }
    atomic_store(&writer->is_ended, true);
    return NULL;
}

static void writer_free(struct log_writer *writer)
{
    pthread_mutex_destroy(&writer->lock);
    sem_destroy(&writer->wake);
    free(writer->filled);
    free(writer->other);
    free(writer);
}

struct log_writer *log_writer_start(const struct log *log)
{
    struct log_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return NULL;
    writer->log = (struct log){.fd = log->fd, .format = log->format, .level = log->level};
    pthread_mutex_init(&writer->lock, NULL);
    sem_init(&writer->wake, 0, 0);
    writer->filled = malloc(ROOM);
    writer->other = malloc(ROOM);
    if (writer->filled != NULL && writer->other != NULL && pthread_create(&writer->thread, NULL, run, writer) == 0)
        return writer;
    writer_free(writer);
    return NULL;
}

void log_writer_put(struct log_writer *writer, const char *line, size_t length)
{
    pthread_mutex_lock(&writer->lock);
    const bool is_first = writer->used == 0;
    if (length <= ROOM - writer->used) {
        memcpy(writer->filled + writer->used, line, length);
        writer->used += length;
        writer->put += length;
    } else {
        writer->lost_lines++;
    }
    pthread_mutex_unlock(&writer->lock);
    if (is_first)
        sem_post(&writer->wake);
}

void log_writer_flush(struct log_writer *writer, unsigned patience_ms)
{
    const struct timespec step = of_ms(1);
    if (writer == NULL)
        return;
    pthread_mutex_lock(&writer->lock);
    const size_t put = writer->put;
    pthread_mutex_unlock(&writer->lock);
    for (; patience_ms > 0 && atomic_load(&writer->written) < put; patience_ms--)
        nanosleep(&step, NULL);
}

bool log_writer_stop(struct log_writer *writer, unsigned patience_ms)
{
    if (writer == NULL)
        return true;
    log_writer_finish(writer, patience_ms);
    if (!atomic_load(&writer->is_ended))
        return false;
    pthread_join(writer->thread, NULL);
    writer_free(writer);
    return true;
}

/* Nothing here but what a handler may call. */
void log_writer_finish(struct log_writer *writer, unsigned patience_ms)
{
    const struct timespec step = of_ms(1);
    atomic_store(&writer->is_ending, true);
    sem_post(&writer->wake);
    for (; patience_ms > 0 && !atomic_load(&writer->is_ended); patience_ms--)
        nanosleep(&step, NULL);
}

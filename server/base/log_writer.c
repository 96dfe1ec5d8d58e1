/*
 * log_writer.c: a thread that writes bytes to a descriptor. Callers fill one buffer while the thread writes the other.
 */
#include "base/log_writer.h"

#include <assert.h>
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

enum { ROOM = 4 << 20, GATHER_MS = 4 };

struct log_writer {
    int fd;
    pthread_t thread;
    sem_t wake; /* posted when the buffer gets its first piece, and at the end */
    atomic_bool is_ending, is_ended;
    atomic_size_t written; /* the number of bytes written, of those that were put */
    pthread_mutex_t lock;  /* guards filled, put, used and lost_lines */
    char *filled;
    size_t put, used, lost_lines;
    char *other; /* the buffer that the thread writes; only the thread uses it */
};

static struct timespec of_ms(unsigned ms)
{
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
}

/* The length of the whole pieces at the beginning of text that fit into one write. */
static size_t pieces_of_a_write(const char *text, size_t length)
{
    if (length <= PIPE_BUF)
        return length;
    const char *last = memrchr(text, '\n', PIPE_BUF);
    return last != NULL ? (size_t)(last - text) + 1 : PIPE_BUF;
}

/*
 * Writes everything. The rest is dropped when write fails for good, because a log that cannot be written must not stop
 * the server.
 */
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

static void write_pieces(int fd, const char *text, size_t length)
{
    for (size_t part; length > 0; text += part, length -= part) {
        part = pieces_of_a_write(text, length);
        write_whole(fd, text, part);
    }
}

/* Writes all pieces that were put so far. */
static void write_batch(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    char *text = writer->filled;
    const size_t length = writer->used;
    writer->filled = writer->other;
    writer->used = 0;
    pthread_mutex_unlock(&writer->lock);
    writer->other = text;
    write_pieces(writer->fd, text, length);
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

struct log_writer *log_writer_start(int fd)
{
    struct log_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return NULL;
    writer->fd = fd;
    pthread_mutex_init(&writer->lock, NULL);
    sem_init(&writer->wake, 0, 0);
    writer->filled = malloc(ROOM);
    writer->other = malloc(ROOM);
    if (writer->filled != NULL && writer->other != NULL && pthread_create(&writer->thread, NULL, run, writer) == 0)
        return writer;
    writer_free(writer);
    return NULL;
}

/* Copies the piece into the buffer. False when the buffer has no room. *is_first: the buffer was empty. */
static bool append(struct log_writer *writer, const char *bytes, size_t length, bool *is_first)
{
    *is_first = writer->used == 0;
    if (length > ROOM - writer->used)
        return false;
    memcpy(writer->filled + writer->used, bytes, length);
    writer->used += length;
    writer->put += length;
    return true;
}

size_t log_writer_put(struct log_writer *writer, const char *bytes, size_t length, size_t lines)
{
    bool is_first;
    assert(length <= PIPE_BUF);
    pthread_mutex_lock(&writer->lock);
    const bool has_room = append(writer, bytes, length, &is_first);
    const size_t lost = has_room ? writer->lost_lines : 0;
    writer->lost_lines = has_room ? 0 : writer->lost_lines + lines;
    pthread_mutex_unlock(&writer->lock);
    if (is_first)
        sem_post(&writer->wake);
    return lost;
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

/* This calls only functions that a signal handler may call. */
void log_writer_finish(struct log_writer *writer, unsigned patience_ms)
{
    const struct timespec step = of_ms(1);
    atomic_store(&writer->is_ending, true);
    sem_post(&writer->wake);
    for (; patience_ms > 0 && !atomic_load(&writer->is_ended); patience_ms--)
        nanosleep(&step, NULL);
}

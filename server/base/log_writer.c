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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 4 << 20, GATHER_MS = 4 };

struct buffer {
    char *text;
    size_t used;
    size_t notice, notice_end; /* the number in the notice of lost lines, and the notice's end; 0: there is none */
};

/* A line of which the file has only the beginning, because the disk is full. */
struct torn_line {
    char rest[PIPE_BUF];
    size_t length;         /* 0: no line is torn */
    size_t notice;         /* as in log_writer_put */
    struct stat beginning; /* the file that has the beginning */
};

struct log_writer {
    int fd;
    pthread_t thread;
    sem_t wake; /* posted when the buffer gets its first piece, and at the end */
    atomic_bool is_ending, is_ended;
    atomic_size_t written; /* the number of bytes written or dropped, of those that were put */
    pthread_mutex_t lock;  /* guards what follows, up to lost_total */
    struct buffer filled;
    size_t put, lost_lines; /* lost_lines: those that no notice reports yet */
    uint64_t lost_total;
    struct buffer other; /* the buffer that the thread writes; only the thread uses it and torn */
    struct torn_line torn;
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
 * Writes the text. Returns how many bytes were written: fewer than length when write fails for good, because a log that
 * cannot be written must not stop the server.
 */
static size_t write_most(int fd, const char *text, size_t length)
{
    size_t done = 0;
    while (done < length) {
        const ssize_t written = write(fd, text + done, length - done);
        if (written > 0)
            done += (size_t)written;
        else if (written < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (written == 0 || errno != EINTR)
            break;
    }
    return done;
}

/* Counts a line, or a notice, that is not written. The caller holds the lock. */
static void lose_line(struct log_writer *writer, size_t notice)
{
    writer->lost_lines += notice > 0 ? notice : 1;
    writer->lost_total += notice > 0 ? 0 : 1;
}

/* The number in the notice if the line that ends there is the notice. */
static size_t notice_at(const struct buffer *buffer, const char *end)
{
    return buffer->notice_end == (size_t)(end - buffer->text) ? buffer->notice : 0;
}

/* Drops the lines of the buffer from text on. */
static void lose_lines(struct log_writer *writer, const struct buffer *buffer, const char *text, const char *end)
{
    pthread_mutex_lock(&writer->lock);
    for (; text < end; text++)
        if (*text == '\n')
            lose_line(writer, notice_at(buffer, text + 1));
    pthread_mutex_unlock(&writer->lock);
}

/* Keeps the rest of a line whose beginning was written. Returns the end of that line. */
static const char *keep_rest(struct log_writer *writer, const struct buffer *buffer, const char *text, const char *end)
{
    const char *line_end = memchr(text, '\n', (size_t)(end - text));
    struct torn_line *torn = &writer->torn;
    line_end = line_end != NULL ? line_end + 1 : end;
    torn->length = (size_t)(line_end - text);
    memcpy(torn->rest, text, torn->length);
    torn->notice = notice_at(buffer, line_end);
    if (fstat(writer->fd, &torn->beginning) != 0)
        torn->beginning = (struct stat){0};
    return line_end;
}

/* Whether the log has another file than the one with the beginning of the line, or was truncated. */
static bool has_lost_beginning(const struct log_writer *writer)
{
    const struct stat *then = &writer->torn.beginning;
    struct stat now;
    return fstat(writer->fd, &now) == 0 &&
           (now.st_dev != then->st_dev || now.st_ino != then->st_ino || now.st_size < then->st_size);
}

/* Writes the rest of a torn line, or drops it without its beginning. False: the line is still torn. */
static bool finish_torn_line(struct log_writer *writer)
{
    struct torn_line *torn = &writer->torn;
    if (torn->length == 0)
        return true;
    if (has_lost_beginning(writer)) {
        pthread_mutex_lock(&writer->lock);
        lose_line(writer, torn->notice);
        pthread_mutex_unlock(&writer->lock);
        torn->length = 0;
        return true;
    }
    const size_t done = write_most(writer->fd, torn->rest, torn->length);
    torn->length -= done;
    memmove(torn->rest, torn->rest + done, torn->length);
    return torn->length == 0;
}

/* Writes the lines from text on, or counts those that are lost. */
static void write_lines(struct log_writer *writer, const struct buffer *buffer, const char *text, size_t length)
{
    const char *end = text + length, *done = text;
    if (finish_torn_line(writer))
        done += write_most(writer->fd, text, length);
    if (done > text && done < end && done[-1] != '\n')
        done = keep_rest(writer, buffer, done, end);
    if (done < end)
        lose_lines(writer, buffer, done, end);
}

static void write_pieces(struct log_writer *writer, const struct buffer *buffer)
{
    size_t part;
    for (size_t at = 0; at < buffer->used; at += part) {
        part = pieces_of_a_write(buffer->text + at, buffer->used - at);
        write_lines(writer, buffer, buffer->text + at, part);
    }
}

/* Writes all pieces that were put so far. */
static void write_batch(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    const struct buffer batch = writer->filled;
    writer->filled = (struct buffer){.text = writer->other.text};
    pthread_mutex_unlock(&writer->lock);
    writer->other = batch;
    write_pieces(writer, &batch);
    atomic_fetch_add(&writer->written, batch.used);
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
    free(writer->filled.text);
    free(writer->other.text);
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
    writer->filled.text = malloc(ROOM);
    writer->other.text = malloc(ROOM);
    if (writer->filled.text != NULL && writer->other.text != NULL &&
        pthread_create(&writer->thread, NULL, run, writer) == 0)
        return writer;
    writer_free(writer);
    return NULL;
}

/* Copies the piece into the buffer. False when the buffer has no room. *is_first: the buffer was empty. */
static bool append(struct buffer *buffer, const char *bytes, size_t length, bool *is_first)
{
    *is_first = buffer->used == 0;
    if (length > ROOM - buffer->used)
        return false;
    memcpy(buffer->text + buffer->used, bytes, length);
    buffer->used += length;
    return true;
}

/* Takes the number of lines lost for a notice. A batch has at most one, which is put again if the batch is lost. */
static size_t take_lost(struct log_writer *writer)
{
    const size_t lost = writer->filled.notice == 0 ? writer->lost_lines : 0;
    writer->lost_lines -= lost;
    return lost;
}

size_t log_writer_put(struct log_writer *writer, const char *bytes, size_t length, size_t notice)
{
    bool is_first = false;
    size_t lost = 0;
    assert(length <= PIPE_BUF);
    pthread_mutex_lock(&writer->lock);
    struct buffer *buffer = &writer->filled;
    const bool is_second = notice > 0 && buffer->notice > 0;
    if (is_second || !append(buffer, bytes, length, &is_first)) {
        lose_line(writer, notice);
    } else {
        writer->put += length;
        if (notice > 0)
            *buffer = (struct buffer){buffer->text, buffer->used, notice, buffer->used};
        else
            lost = take_lost(writer);
    }
    pthread_mutex_unlock(&writer->lock);
    if (is_first)
        sem_post(&writer->wake);
    return lost;
}

uint64_t log_writer_lost(struct log_writer *writer)
{
    if (writer == NULL)
        return 0;
    pthread_mutex_lock(&writer->lock);
    const uint64_t lost = writer->lost_total;
    pthread_mutex_unlock(&writer->lock);
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

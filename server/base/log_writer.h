/*
 * log_writer.h: a thread that writes bytes to a descriptor, for the log (log.c).
 *
 * The writer gathers pieces for some milliseconds and writes them together, in the order in which they were put. A
 * caller makes no system call per piece, and never waits for a slow reader. Up to 4 MiB of pieces wait for a slow
 * reader; the writer drops further pieces and counts them. It also counts lines that cannot be written, because the
 * disk is full. A line of which only the beginning was written is finished first when writing works again.
 *
 * A piece ends with a line feed. One write(2) writes whole pieces of at most PIPE_BUF bytes together. A pipe takes so
 * many bytes at once, so the pieces of several processes do not mix.
 */
#ifndef BASE_LOG_WRITER_H
#define BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_writer;

/* Starts a writer to fd, which the caller still owns. NULL: there is no memory, or no thread. */
struct log_writer *log_writer_start(int fd);

/*
 * Takes one piece of at most PIPE_BUF bytes. notice is 0, or the number that this piece reports, which is reported
 * again if the piece is lost. Returns the number of lost lines that the caller should report now; each is returned once. Safe
 * from several threads.
 */
size_t log_writer_put(struct log_writer *writer, const char *bytes, size_t length, size_t notice);

/* The number of lines lost since the start, without notices. writer may be NULL. */
uint64_t log_writer_lost(struct log_writer *writer);

/* Waits until all pieces put so far are written, at most patience_ms. writer may be NULL. */
void log_writer_flush(struct log_writer *writer, unsigned patience_ms);

/*
 * Writes all pieces and ends the thread. No piece may be put any more. False: that took longer than patience_ms, and
 * the thread goes on; the caller may call again. writer may be NULL.
 */
bool log_writer_stop(struct log_writer *writer, unsigned patience_ms);

/*
 * Writes all pieces, for at most patience_ms. This is for the handler of a signal that ends the process, while other
 * threads still put pieces.
 */
void log_writer_finish(struct log_writer *writer, unsigned patience_ms);

#endif

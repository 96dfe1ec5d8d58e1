/*
 * log_writer.h: a thread that writes bytes to a descriptor, for the log (log.c).
 *
 * The writer gathers pieces for some milliseconds and writes them together, in the order in which they were put. A
 * caller makes no system call per piece, and never waits for a slow reader. Pieces of 4 MiB wait for a slow reader;
 * the writer drops further ones and counts them.
 *
 * A piece ends with a line feed. One write(2) has whole pieces, and at most PIPE_BUF bytes, which a pipe takes at once:
 * the pieces of several processes do not mix.
 */
#ifndef BASE_LOG_WRITER_H
#define BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>

struct log_writer;

/* Writes to fd, which stays the caller's. NULL: there is no memory, or no thread. */
struct log_writer *log_writer_start(int fd);

/*
 * Takes one piece of at most PIPE_BUF bytes. lines is how many lines are lost when the piece finds no room: 1, or the
 * lines that a notice of lost ones stands for. Returns the lines that were lost before this piece, once; 0 when the
 * piece itself found no room. Safe from several threads.
 */
size_t log_writer_put(struct log_writer *writer, const char *bytes, size_t length, size_t lines);

/* Waits until all that was put by now is written, patience_ms at most. writer may be NULL. */
void log_writer_flush(struct log_writer *writer, unsigned patience_ms);

/*
 * Writes all that was put and ends the thread; nobody may put pieces any more. False: that took longer than
 * patience_ms, and the thread goes on; the call may be repeated. writer may be NULL.
 */
bool log_writer_stop(struct log_writer *writer, unsigned patience_ms);

/*
 * Writes all that was put, patience_ms at most. For the handler of a signal that ends the process, while other threads
 * go on putting pieces.
 */
void log_writer_finish(struct log_writer *writer, unsigned patience_ms);

#endif

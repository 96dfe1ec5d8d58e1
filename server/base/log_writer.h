/*
 * log_writer.h: the thread that writes the log.
 *
 * Lines are gathered for some milliseconds and written together, in the order in which they were put. So a line costs
 * who puts it no call to the system, and a log that nobody reads holds up no request. The lines of 4 MiB wait for such
 * a reader; further ones are lost, and a line says how many as soon as one can be written again.
 *
 * One write(2) is whole lines, and no more than a pipe takes at once (PIPE_BUF): lines of several processes do not mix.
 */
#ifndef BASE_LOG_WRITER_H
#define BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>

struct log;
struct log_writer;

/* Writes to the descriptor of log, which is copied. NULL: no memory, or no thread. */
struct log_writer *log_writer_start(const struct log *log);

/* Takes a whole line, line feed included; never waits for the log. Safe from several threads. */
void log_writer_put(struct log_writer *writer, const char *line, size_t length);

/* Waits until all that was put by now is written, patience_ms at most. writer may be NULL. */
void log_writer_flush(struct log_writer *writer, unsigned patience_ms);

/*
 * Writes all that was put and ends the thread; nobody may put lines any more. False: that took longer than patience_ms,
 * so the process ends without. writer may be NULL.
 */
bool log_writer_stop(struct log_writer *writer, unsigned patience_ms);

/* From a handler of a signal that ends the process, while others go on putting lines: what was put is written. */
void log_writer_finish(struct log_writer *writer, unsigned patience_ms);

#endif

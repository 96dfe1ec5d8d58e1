/*
 * log.h: log lines for people (text) or for machines (one JSON object per line).
 *
 *     2026-01-31T12:00:00.000Z info request id=5f… method=POST path=/v1/attention status=200 total_ms=1.25
 *     {"time":"2026-01-31T12:00:00.000Z","level":"info","message":"request","id":"5f…","status":200,"total_ms":1.25}
 *
 * A line is built on the stack. The log's writer takes the whole line, or one write(2) does, so lines of several
 * threads never mix. Controls, quotes and bytes that are not ASCII are escaped, so a value cannot end its line or begin
 * another field.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_writer; /* log_writer.h */

typedef enum { LOG_TEXT, LOG_JSON } log_format;
typedef enum { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF } log_level;

/* The destination of lines, and the least level. It must not change once threads run. */
struct log {
    int fd;
    log_format format;
    log_level level;           /* lines of this level and above are written */
    struct log_writer *writer; /* NULL: the calling thread writes each line */
};

enum { LOG_LINE_MAX = 2048 }; /* bytes; longer values are cut, and the line stays whole */

struct log_line {
    const struct log *log; /* NULL: the line is below the level and is not written */
    size_t length;
    char text[LOG_LINE_MAX];
};

/* Begins a line. message is escaped like every value. */
void log_begin(struct log_line *line, const struct log *log, log_level level, const char *message);
/* Adds a field. Keys are words of the program and are not escaped. */
void log_text(struct log_line *line, const char *key, const char *value);
void log_count(struct log_line *line, const char *key, uint64_t value);
void log_ms(struct log_line *line, const char *key, double value);
void log_end(struct log_line *line);

/*
 * Opens the file at path for appending. Only its owner and its group can read a new file. -1: errno says why it failed.
 */
int log_open(const char *path);
/*
 * Makes the descriptor fd refer to the file at path, opened as by log_open. Use it after a log file was moved away. A
 * line of another thread goes to the old file or to the new one; none is lost. False: errno says why, and fd is
 * unchanged.
 */
bool log_open_again(int fd, const char *path);

/* Writes a line with a message and no fields. */
void log_say(const struct log *log, log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif

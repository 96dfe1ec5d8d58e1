/*
 * log.h: lines for people (text) or for machines (one JSON object a line).
 *
 *     2026-01-31T12:00:00.000Z info request id=5f… method=POST path=/v1/attention status=200 total_ms=1.25
 *     {"time":"2026-01-31T12:00:00.000Z","level":"info","message":"request","id":"5f…","status":200,"total_ms":1.25}
 *
 * A line is built on the stack and given to the log's writer, or written by one write(2): lines of several threads
 * never mix. Whatever a value holds, it stays one line and one value: controls, quotes and bytes that are not ASCII are
 * escaped.
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

/* Where lines go and which; read only once threads run. */
struct log {
    int fd;
    log_format format;
    log_level level;           /* and above */
    struct log_writer *writer; /* NULL: each line is written at once, by who has it to say */
};

enum { LOG_LINE_MAX = 2048 }; /* longer values are cut, the line stays whole */

struct log_line {
    const struct log *log; /* NULL: below the level, nothing is written */
    size_t length;
    char text[LOG_LINE_MAX];
};

/* message is ours, or formatted elsewhere; it is escaped like every value. */
void log_begin(struct log_line *line, const struct log *log, log_level level, const char *message);
/* Keys are ours and need no escape. */
void log_text(struct log_line *line, const char *key, const char *value);
void log_count(struct log_line *line, const char *key, uint64_t value);
void log_ms(struct log_line *line, const char *key, double value);
void log_end(struct log_line *line);

/*
 * A descriptor of the file at path, to append to; the file is created, for its owner and group alone, when there is
 * none. -1: errno tells.
 */
int log_open(const char *path);
/*
 * Makes descriptor fd the file at path, which log_open opens. A log that was moved away goes on here: each line of
 * another thread goes to the one file or the other, and none is lost. False: errno tells, and fd is as before.
 */
bool log_open_again(int fd, const char *path);

/* A line of one message. */
void log_say(const struct log *log, log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif

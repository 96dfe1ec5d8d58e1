/* log.c: writes log lines for people (text) or for machines (one JSON object per line). */
#include "base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_writer.h"
#include "base/text.h"

enum { END_ROOM = 4 }; /* bytes that stay free to close a value and the line: quote, brace, line feed */

_Static_assert((int)LOG_LINE_MAX <= (int)PIPE_BUF, "the writer takes a line as one piece");

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static size_t room_left(const struct log_line *line)
{
    return line->length < LOG_LINE_MAX - END_ROOM ? LOG_LINE_MAX - END_ROOM - line->length : 0;
}

static void put(struct log_line *line, const char *text, size_t length)
{
    const size_t room = room_left(line);
    if (length > room)
        length = room;
    memcpy(line->text + line->length, text, length);
    line->length += length;
}

static void put_text(struct log_line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Writes a character into END_ROOM, which put leaves free. */
static void put_closing(struct log_line *line, char c)
{
    line->text[line->length++] = c;
}

/* Writes an escape whole or not at all, so that a cut value stays a valid string. */
static void put_escaped_byte(struct log_line *line, unsigned char c)
{
    const bool is_quoted = c == '"' || c == '\\', is_coded = c < 0x20 || c >= 0x7f;
    const char coded[] = {'\\', 'u', '0', '0', text_hex_digit(c >> 4), text_hex_digit(c & 15)};
    const char quoted[] = {'\\', (char)c};
    const char *escape = is_coded ? coded : is_quoted ? quoted : &quoted[1];
    const size_t length = is_coded ? sizeof coded : is_quoted ? sizeof quoted : 1;
    if (length <= room_left(line))
        put(line, escape, length);
}

/* Always closes the quote: one byte of END_ROOM is for the quote, two are for the end of the line. */
static void put_quoted(struct log_line *line, const char *value)
{
    put_text(line, "\"");
    for (; *value != '\0' && room_left(line) > 0; value++)
        put_escaped_byte(line, (unsigned char)*value);
    put_closing(line, '"');
}

static bool is_plain(const char *value)
{
    for (const char *c = value; *c != '\0'; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '"' || *c == '=' || *c == '\\')
            return false;
    return *value != '\0';
}

/*
 * Writes the key. False when the line has no room for the key and need bytes of value, because a line is cut between
 * fields.
 */
static bool put_key(struct log_line *line, const char *key, size_t need)
{
    if (line->log == NULL || strlen(key) + need + 8 > room_left(line))
        return false;
    const bool is_json = line->log->format == LOG_JSON;
    put_text(line, is_json ? ",\"" : " ");
    put_text(line, key);
    put_text(line, is_json ? "\":" : "=");
    return true;
}

static void put_time(struct log_line *line)
{
    struct timespec now;
    char text[CLOCK_TIME_TEXT];
    clock_gettime(CLOCK_REALTIME, &now);
    put_text(line, clock_write_time((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, text));
}

static void begin_text(struct log_line *line, log_level level, const char *message)
{
    put_time(line);
    put_text(line, " ");
    put_text(line, level_names[level]);
    put_text(line, " ");
    for (; *message != '\0'; message++)
        put_escaped_byte(line, (unsigned char)*message);
}

static void begin_json(struct log_line *line, log_level level, const char *message)
{
    put_text(line, "{\"time\":\"");
    put_time(line);
    put_text(line, "\",\"level\":\"");
    put_text(line, level_names[level]);
    put_text(line, "\",\"message\":");
    put_quoted(line, message);
}

void log_begin(struct log_line *line, const struct log *log, log_level level, const char *message)
{
    line->log = level >= log->level && level < LOG_OFF ? log : NULL;
    line->length = 0;
    if (line->log == NULL)
        return;
    if (log->format == LOG_JSON)
        begin_json(line, level, message);
    else
        begin_text(line, level, message);
}

void log_text(struct log_line *line, const char *key, const char *value)
{
    if (!put_key(line, key, 2))
        return;
    if (line->log->format == LOG_TEXT && is_plain(value))
        put_text(line, value);
    else
        put_quoted(line, value);
}

void log_count(struct log_line *line, const char *key, uint64_t value)
{
    char text[TEXT_COUNT_MAX];
    text_write_count(text, value);
    if (put_key(line, key, strlen(text)))
        put_text(line, text);
}

void log_ms(struct log_line *line, const char *key, double value)
{
    char text[TEXT_MS_MAX];
    text_write_ms(text, value);
    if (put_key(line, key, strlen(text)))
        put_text(line, text);
}

/* Closes the line and writes it. notice, and the number of lost lines that is returned: as of log_writer_put. */
static size_t write_line(struct log_line *line, size_t notice)
{
    if (line->log == NULL)
        return 0;
    if (line->log->format == LOG_JSON)
        put_closing(line, '}');
    put_closing(line, '\n');
    if (line->log->writer != NULL)
        return log_writer_put(line->log->writer, line->text, line->length, notice);
    /* A log that cannot be written must not stop the server, so the result is ignored. */
    (void)!write(line->log->fd, line->text, line->length);
    return 0;
}

void log_end(struct log_line *line)
{
    const size_t lost = write_line(line, 0);
    if (lost == 0)
        return;
    struct log_line notice;
    log_begin(&notice, line->log, LOG_WARN,
              "lines of the log were lost: its reader was too slow, or its disk was full");
    log_count(&notice, "lines", lost);
    (void)write_line(&notice, lost);
}

int log_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

bool log_open_again(int fd, const char *path)
{
    const int opened = log_open(path);
    if (opened < 0)
        return false;
    const bool is_placed = dup3(opened, fd, O_CLOEXEC) == fd;
    close(opened);
    return is_placed;
}

void log_say(const struct log *log, log_level level, const char *format, ...)
{
    char message[LOG_LINE_MAX / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    struct log_line line;
    log_begin(&line, log, level, message);
    log_end(&line);
}

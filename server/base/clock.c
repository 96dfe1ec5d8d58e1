/*
 * clock.c: the time of day as text.
 */
#include "base/clock.h"

#include <stdbool.h>
#include <string.h>

/* To write a second takes as long as half of a line of the log, and many lines have the same one. */
static const char *second_text(time_t second)
{
    static _Thread_local struct {
        bool is_written;
        time_t second;
        char text[CLOCK_TIME_TEXT - sizeof ".123Z"];
    } last;
    struct tm utc;
    if (!last.is_written || last.second != second) {
        if (gmtime_r(&second, &utc) == NULL || strftime(last.text, sizeof last.text, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
            last.text[0] = '\0';
        last.second = second;
        last.is_written = true;
    }
    return last.text;
}

const char *clock_write_time(int64_t since_1970_ns, char text[CLOCK_TIME_TEXT])
{
    const int64_t all_ms = since_1970_ns / 1000000, ms = (all_ms % 1000 + 1000) % 1000; /* before 1970, too */
    const char *of_second = second_text((time_t)((all_ms - ms) / 1000));
    const size_t length = strlen(of_second);
    memcpy(text, of_second, length);
    memcpy(text + length,
           (char[]){'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z', 0},
           sizeof ".123Z");
    return text;
}

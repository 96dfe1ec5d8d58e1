/*
 * clock.h: reads the monotonic clock, which does not move when somebody sets the time of day; and writes the time of
 * day as text.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Milliseconds since a fixed point before the process began. */
static inline double clock_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Returns the milliseconds since *since_ms, and sets *since_ms to now. */
static inline double clock_lap_ms(double *since_ms)
{
    const double now_ms = clock_now_ms(), passed_ms = now_ms - *since_ms;
    *since_ms = now_ms;
    return passed_ms;
}

/* The time that many milliseconds from now, for pthread_cond_timedwait on a condition of CLOCK_MONOTONIC. */
static inline struct timespec clock_after_ms(unsigned long ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    at.tv_sec += (time_t)(ms / 1000) + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

/* Makes a condition of CLOCK_MONOTONIC, for times of clock_after_ms. */
void clock_init_condition(pthread_cond_t *condition);

enum { CLOCK_TIME_TEXT = 32 };

/* Writes a time in nanoseconds since 1970 in the format of RFC 3339: 2026-01-31T12:00:00.123Z. Returns text. */
const char *clock_write_time(int64_t since_1970_ns, char text[CLOCK_TIME_TEXT]);

#endif

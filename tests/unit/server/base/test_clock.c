/*
 * test_clock.c: tests of server/base/clock.c: the time of day as text.
 */
#include "base/clock.h"

#include <string.h>

#include "check_main.h"

START_TEST(a_moment_is_written_as_rfc_3339_has_it)
{
    static const struct {
        int64_t ns;
        const char *text;
    } moments[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {INT64_C(1769860800123000000), "2026-01-31T12:00:00.123Z"},
        {INT64_C(1769860800007999999), "2026-01-31T12:00:00.007Z"},
        {INT64_C(1709251199999000000), "2024-02-29T23:59:59.999Z"},
        {INT64_C(951782400000000000), "2000-02-29T00:00:00.000Z"},
        {-1000000, "1969-12-31T23:59:59.999Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854Z"},
        {INT64_MIN, "1677-09-21T00:12:43.145Z"},
    };
    char text[CLOCK_TIME_TEXT];
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++)
        ck_assert_str_eq(clock_write_time(moments[i].ns, text), moments[i].text);
}
END_TEST

START_TEST(every_day_has_the_date_that_the_library_gives_it)
{
    enum { DAYS = 106000 /* before and after 1970, as far as nanoseconds reach */ };
    const int64_t day_ns = INT64_C(86400000000000);
    for (int64_t day = -DAYS; day < DAYS; day++) {
        char text[CLOCK_TIME_TEXT], expected[CLOCK_TIME_TEXT];
        const time_t second = (time_t)(day * 86400);
        struct tm date;
        strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&second, &date));
        if (strcmp(clock_write_time(day * day_ns, text), expected) != 0)
            ck_abort_msg("%s is written as %s", expected, text);
    }
}
END_TEST

CHECK_MAIN("clock")
{
    tcase_add_test(tests, every_day_has_the_date_that_the_library_gives_it);
    tcase_add_test(tests, a_moment_is_written_as_rfc_3339_has_it);
}

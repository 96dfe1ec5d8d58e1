/*
 * test_clock.c: tests of server/base/clock.c: the time of day as text.
 */
#include "base/clock.h"

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

CHECK_MAIN("clock")
{
    tcase_add_test(tests, a_moment_is_written_as_rfc_3339_has_it);
}

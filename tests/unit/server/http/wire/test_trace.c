/* test_trace.c: which trace contexts are continued, and with which span. */
#include <string.h>

#include "check_main.h"
#include "http/wire/wire.h"

#define ID   "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

START_TEST(a_valid_context_gets_a_span_of_its_own)
{
    struct trace trace;
    char text[TRACE_PARENT_TEXT];
    ck_assert(trace_begin(&trace, "00-" ID "-" SPAN "-01", 0x123));
    ck_assert_str_eq(trace.parent, SPAN);
    ck_assert_str_eq(trace_write(&trace, text), "00-" ID "-0000000000000123-01");
    ck_assert(trace_begin(&trace, "cc-" ID "-" SPAN "-00-what a later version adds", 0));
    ck_assert_str_eq(trace_write(&trace, text), "00-" ID "-0000000000000001-00"); /* a span of zeros is not valid */
}
END_TEST

START_TEST(what_is_not_valid_is_not_traced)
{
    static const char *const fields[] = {
        "",
        "00",
        "00-" ID "-" SPAN,
        "00-" ID "-" SPAN "-0",
        "00-" ID "-" SPAN "-011",
        "00-" ID "-" SPAN "-01-more",
        "cc-" ID "-" SPAN "-01.more",
        "ff-" ID "-" SPAN "-01",
        "0x-" ID "-" SPAN "-01",
        "00-4BF92f3577b34da6a3ce929d0e0e4736-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" ID "-0000000000000000-01",
        "00_" ID "-" SPAN "-01",
        "00-" ID "_" SPAN "-01",
        "00-" ID "-" SPAN "_01",
        "00-" ID "-" SPAN "-0g",
        " 00-" ID "-" SPAN "-01",
    };
    struct trace trace;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        ck_assert_msg(!trace_begin(&trace, fields[i], 1), "taken: %s", fields[i]);
        ck_assert_str_eq(trace.id, "");
    }
    ck_assert(!trace_begin(&trace, NULL, 1));
}
END_TEST

CHECK_MAIN("trace")
{
    tcase_add_test(tests, a_valid_context_gets_a_span_of_its_own);
    tcase_add_test(tests, what_is_not_valid_is_not_traced);
}

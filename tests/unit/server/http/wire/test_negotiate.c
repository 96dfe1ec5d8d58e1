/* test_negotiate.c: Accept and Content-Type, and the parts of a request target. */
#include "check_main.h"
#include "http/wire/negotiate.h"
#include "http/wire/wire.h"

#define JSON MEDIA_BIT(MEDIA_JSON)
#define PNG  MEDIA_BIT(MEDIA_PNG)
#define HTML MEDIA_BIT(MEDIA_HTML)

static const struct {
    const char *accept; /* NULL: no such field */
    unsigned offered;
    enum media chosen;
} wishes[] = {
    {NULL, JSON | PNG, MEDIA_JSON},
    {"*/*", JSON | PNG, MEDIA_JSON},
    {"image/png", JSON | PNG, MEDIA_PNG},
    {"image/png", JSON, MEDIA_COUNT},
    {"image/*, */*", JSON | PNG, MEDIA_PNG},
    {"image/*;q=0.5, application/json", JSON | PNG, MEDIA_JSON},
    {"application/json;q=0.2, image/png;q=0.3", JSON | PNG, MEDIA_PNG},
    {"application/json;q=0, */*", JSON | PNG, MEDIA_PNG},
    {"application/json;q=0, */*", JSON, MEDIA_COUNT},
    {"IMAGE/PNG", JSON | PNG, MEDIA_PNG},
    {"image/pngs, imagine/png", JSON | PNG, MEDIA_COUNT},
    {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON | HTML, MEDIA_HTML},
    {"application/problem+json", JSON | PNG, MEDIA_JSON},
    {"application/json;q=2", JSON, MEDIA_COUNT},
    {"application/json;q=0.5x", JSON, MEDIA_COUNT},
    {"application/json;q=1.5", JSON, MEDIA_COUNT},
    {"application/json;q=1.000", JSON, MEDIA_JSON},
    {"application/json;q=1.", JSON, MEDIA_JSON},
    {"application/json;q=0,5", JSON, MEDIA_COUNT},
    {"application/json;q=0x5", JSON, MEDIA_COUNT},
    {"application/json;q=", JSON, MEDIA_COUNT},
    {"application/json;q=0.12345", JSON, MEDIA_COUNT},
    {"application/json;Q=0.5;level=1", JSON, MEDIA_JSON},
    {"application/json;quiet=1;q", JSON, MEDIA_JSON},
    {";q=1, ,image/png", JSON | PNG, MEDIA_PNG},
    {"application/*;q=0.3, image/*;q=0.2", JSON | PNG, MEDIA_JSON},
    {"*/png", JSON | PNG, MEDIA_COUNT},
    {"application/", JSON, MEDIA_COUNT},
};

START_TEST(accept_chooses_among_what_is_offered)
{
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        struct negotiation negotiation = {0};
        const char *accept = wishes[i].accept == NULL ? "nothing" : wishes[i].accept;
        if (wishes[i].accept != NULL)
            negotiate_add(&negotiation, wishes[i].accept);
        enum media chosen = negotiate_choose(&negotiation, wishes[i].offered);
        ck_assert_msg(chosen == wishes[i].chosen, "Accept: %s chose %d", accept, (int)chosen);
    }
}
END_TEST

START_TEST(several_accept_lines_count_as_one)
{
    struct negotiation negotiation = {0};
    negotiate_add(&negotiation, "application/json;q=0.1");
    negotiate_add(&negotiation, "image/png;q=0.2");
    ck_assert_int_eq(negotiate_choose(&negotiation, JSON | PNG), MEDIA_PNG);
}
END_TEST

START_TEST(content_type_is_read_within_what_the_route_reads)
{
    const unsigned reads = JSON | MEDIA_BIT(MEDIA_SAFETENSORS);
    ck_assert_int_eq(negotiate_body(NULL, reads), MEDIA_JSON);
    ck_assert_int_eq(negotiate_body(NULL, PNG), MEDIA_COUNT);
    ck_assert_int_eq(negotiate_body("application/json; charset=\"UTF-8\"", reads), MEDIA_JSON);
    ck_assert_int_eq(negotiate_body("application/json; charset=latin1", reads), MEDIA_COUNT);
    ck_assert_int_eq(negotiate_body("application/vnd.attnd.safetensors", reads), MEDIA_SAFETENSORS);
    ck_assert_int_eq(negotiate_body("text/csv", reads), MEDIA_COUNT);
    ck_assert_int_eq(negotiate_body("", reads), MEDIA_COUNT);
    ck_assert(negotiate_is_unnamed("application/x-www-form-urlencoded"));
    ck_assert(negotiate_is_unnamed("Application/X-WWW-form-urlencoded; charset=UTF-8"));
    ck_assert(negotiate_is_unnamed("text/plain;charset=UTF-8"));
    ck_assert(!negotiate_is_unnamed("text/plain; charset=latin1"));
    ck_assert(!negotiate_is_unnamed("text/html"));
    ck_assert(!negotiate_is_unnamed("multipart/form-data"));
    ck_assert(!negotiate_is_unnamed(""));
}
END_TEST

START_TEST(names_are_listed)
{
    char text[64];
    ck_assert_str_eq(negotiate_names(JSON | PNG, text, sizeof text), "application/json, image/png");
}
END_TEST

START_TEST(parameters_come_one_by_one)
{
    struct text_span query = text_span_of("&a=1&&b&c=x=y"), name, value;
    ck_assert(target_next_parameter(&query, &name, &value));
    ck_assert(text_equal(name, "a") && text_equal(value, "1"));
    ck_assert(target_next_parameter(&query, &name, &value));
    ck_assert(text_equal(name, "b") && text_equal(value, ""));
    ck_assert(target_next_parameter(&query, &name, &value));
    ck_assert(text_equal(name, "c") && text_equal(value, "x=y"));
    ck_assert(!target_next_parameter(&query, &name, &value));
}
END_TEST

START_TEST(percent_encoding_is_undone_or_refused)
{
    static const char *const wrong[] = {"%", "%4", "%zz", "%00", "%0a", "a%7F"};
    char text[32];
    ck_assert(target_decode(text_span_of("a+%41%c3%A7"), text));
    ck_assert_str_eq(text, "a A\xc3\xa7");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!target_decode(text_span_of(wrong[i]), text), "%s is taken", wrong[i]);
}
END_TEST

CHECK_MAIN("negotiate")
{
    tcase_add_test(tests, accept_chooses_among_what_is_offered);
    tcase_add_test(tests, several_accept_lines_count_as_one);
    tcase_add_test(tests, content_type_is_read_within_what_the_route_reads);
    tcase_add_test(tests, names_are_listed);
    tcase_add_test(tests, parameters_come_one_by_one);
    tcase_add_test(tests, percent_encoding_is_undone_or_refused);
}

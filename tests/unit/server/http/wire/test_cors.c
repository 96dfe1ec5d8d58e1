/*
 * test_cors.c: tests of server/http/wire/cors.c: the origin of a request, and whether Host names this
 * server.
 */
#include "http/wire/cors.h"

#include "check_main.h"
#include "http/route.h"

static const struct {
    const char *setting, *origin, *fetch_site, *host;
    bool is_foreign;
} pages[] = {
    {"*", NULL, NULL, "127.0.0.1:8080", false},
    {"*", NULL, NULL, NULL, false},
    {"*", NULL, "same-origin", "127.0.0.1:8080", false},
    {"*", NULL, "none", "127.0.0.1:8080", false},
    {"*", NULL, "same-site", "127.0.0.1:8080", true},
    {"*", NULL, "cross-site", "127.0.0.1:8080", true},
    {"*", NULL, "", "127.0.0.1:8080", true},
    /* Sec-Fetch-Site decides before the names are compared. */
    {"*", "https://a.example", "same-origin", "127.0.0.1:8080", false},
    {"*", "http://127.0.0.1:8080", "cross-site", "127.0.0.1:8080", true},
    {"*", "http://127.0.0.1:8080", NULL, "127.0.0.1:8080", false},
    {"*", "http://127.0.0.1:9090", NULL, "127.0.0.1:8080", true},
    {"*", "http://localhost:8080", NULL, "127.0.0.1:8080", true},
    {"*", "null", NULL, "127.0.0.1:8080", true},
    {"*", "http://127.0.0.1:8080", NULL, NULL, true},
    /* The list decides before everything else. */
    {"https://a.example", "https://a.example", "cross-site", "b.example", false},
    {"*, https://a.example", "https://a.example", "cross-site", "b.example", false},
    {"https://a.example,*", "https://b.example", "cross-site", "c.example", true},
    {"https://a.example", "http://a.example", NULL, "b.example", true},
    {"null", "null", NULL, "b.example", true},
    {"", "none", NULL, "b.example", true},
    {"*", "*", NULL, "b.example", true},
    {"", NULL, NULL, "b.example", false},
};

START_TEST(a_page_is_foreign_by_list_site_and_name_in_this_order)
{
    const struct cors_page page = {pages[_i].origin, pages[_i].fetch_site, pages[_i].host};
    ck_assert_int_eq(cors_is_foreign(pages[_i].setting, &page), pages[_i].is_foreign);
}
END_TEST

static const struct {
    const char *setting, *origin;
    bool is_open;
    const char *allowed;
} answers[] = {
    {"*", NULL, true, "*"},
    {"*", "https://a.example", true, "*"},
    {"*", "https://a.example", false, NULL},
    {"*", "null", true, "*"},
    {"", "https://a.example", true, NULL},
    {"https://a.example", "https://a.example", true, "https://a.example"},
    {"https://a.example", "https://a.example", false, "https://a.example"},
    {"https://a.example", "https://b.example", true, NULL},
    {"https://a.example, *", "https://a.example", false, "https://a.example"},
    {"https://a.example, *", "https://b.example", true, "*"},
    {"https://a.example, *", "https://b.example", false, NULL},
    {"https://a.example, *", NULL, false, NULL},
};

START_TEST(open_answers_are_for_all_and_guarded_ones_for_named_origins)
{
    const char *allowed = cors_allowed_origin(answers[_i].setting, answers[_i].origin, answers[_i].is_open);
    if (answers[_i].allowed == NULL)
        ck_assert_ptr_null(allowed);
    else
        ck_assert_str_eq(allowed, answers[_i].allowed);
}
END_TEST

START_TEST(only_a_list_makes_answers_differ_by_origin)
{
    ck_assert(!cors_varies("*"));
    ck_assert(!cors_varies(""));
    ck_assert(cors_varies("https://a.example"));
    ck_assert(cors_varies("*,https://a.example"));
}
END_TEST

static const struct {
    const char *host;
    bool is_ours;
} hosts[] = {
    {"127.0.0.1", true},
    {"127.0.0.1:8080", true},
    {"10.1.2.3:1", true},
    {"127.1", true},
    {"[::1]", true},
    {"[::1]:8080", true},
    {"[fd00::1:2]:8080", true},
    {"localhost", true},
    {"localhost:8080", true},
    {"LocalHost.:8080", true},
    {"a.localhost", true},
    {"a.b.LOCALHOST.", true},
    {"attnd.example", true},
    {"ATTND.Example.:443", true},
    {"second.example", true},
    {"evil.example", false},
    {"evil.example:8080", false},
    {"attnd.example.evil.example", false},
    {"xattnd.example", false},
    {"localhost.evil.example", false},
    {"evillocalhost", false},
    {".localhost", false},
    {"127.0.0.1.evil.example", false},
    {"1.2.3.4.5", false},
    {"", false},
    {".", false},
    {":8080", false},
    {"[::1", false},
    {"[::1]x", false},
    {"[localhost]", false},
    {"::1", false},
    {"localhost:80x", false},
    {"localhost:123456", false},
    {"none", false},
};

START_TEST(host_is_an_address_localhost_or_a_name_of_the_list)
{
    ck_assert_msg(cors_host_is_ours(hosts[_i].host, "attnd.example, second.example") == hosts[_i].is_ours, "%s",
                  hosts[_i].host);
    ck_assert(!cors_host_is_ours("attnd.example", ""));
    ck_assert(!cors_host_is_ours("none", ""));
}
END_TEST

START_TEST(a_name_that_no_dns_has_is_not_ours)
{
    char host[400];
    for (size_t i = 0; i < sizeof host - 1; i++)
        host[i] = 'a';
    host[sizeof host - 1] = '\0';
    ck_assert(!cors_host_is_ours(host, host));
}
END_TEST

static const struct {
    const char *host, *origin;
    bool is_same;
} authorities[] = {
    {"a.example", "http://a.example", true},
    {"a.example", "https://a.example", true}, /* TLS ends in front of the server */
    {"A.example", "https://a.example", true},
    {"a.example:443", "https://a.example", true},
    {"a.example:80", "http://a.example", true},
    {"a.example:8080", "https://a.example:8080", true},
    {"[::1]:8080", "http://[::1]:8080", true},
    {"a.example:80", "https://a.example", false},
    {"a.example:8080", "https://a.example", false},
    {"a.example:8080", "https://a.example:8081", false},
    {"b.example", "https://a.example", false},
    {"a.example", "https://a.example.evil", false},
    {"a.example", "null", false},
    {"a.example", "a.example", false},
    {"a.example", "https://", false},
    {"a.example", "https://a.example/", false},
    {"", "https://a.example", false},
    {"::1", "http://[::1]", false},
};

START_TEST(an_origin_is_ours_by_name_and_port_whatever_its_scheme)
{
    ck_assert_msg(cors_host_is_of_origin(authorities[_i].host, authorities[_i].origin) == authorities[_i].is_same,
                  "%s, %s", authorities[_i].host, authorities[_i].origin);
}
END_TEST

static const char *const open_paths[] = {"/",
                                         "/docs",
                                         "/openapi.json",
                                         "/livez",
                                         "/readyz",
                                         "/version",
                                         "/v2/health/live",
                                         "/v2/health/ready",
                                         "/v1/attention",
                                         "/v1/attention/gradients",
                                         "/v1/multi-head-attention",
                                         "/v1/multi-head-attention/gradients",
                                         "/v2/models/attention",
                                         "/v2/models/attention/infer",
                                         "/v2/models/attention/versions/1/infer",
                                         "/v2/models/attention/ready"};
static const char *const guarded_paths[] = {"/v1/layers",
                                            "/v1/layers/a",
                                            "/v1/layers/attention",
                                            "/v1/layers/a/attention",
                                            "/v1/caches",
                                            "/v1/caches/a",
                                            "/metrics",
                                            "/v2",
                                            "/v2/",
                                            "/v2/models",
                                            "/v2/models/stats",
                                            "/v2/models/a",
                                            "/v2/models/a/infer",
                                            "/v2/models/attention2/infer",
                                            "/v2/repository/index",
                                            "/v2/repository/models/attention/load",
                                            "/v2/repository/models/a/unload",
                                            "/nothing",
                                            "*"};

START_TEST(the_table_of_routes_says_which_paths_are_open)
{
    for (size_t i = 0; i < COUNT(open_paths); i++)
        ck_assert_msg(routes_are_open(text_span_of(open_paths[i])), "%s", open_paths[i]);
    for (size_t i = 0; i < COUNT(guarded_paths); i++)
        ck_assert_msg(!routes_are_open(text_span_of(guarded_paths[i])), "%s", guarded_paths[i]);
}
END_TEST

CHECK_MAIN("cors")
{
    tcase_add_loop_test(tests, a_page_is_foreign_by_list_site_and_name_in_this_order, 0, COUNT(pages));
    tcase_add_loop_test(tests, open_answers_are_for_all_and_guarded_ones_for_named_origins, 0, COUNT(answers));
    tcase_add_test(tests, only_a_list_makes_answers_differ_by_origin);
    tcase_add_loop_test(tests, host_is_an_address_localhost_or_a_name_of_the_list, 0, COUNT(hosts));
    tcase_add_test(tests, a_name_that_no_dns_has_is_not_ours);
    tcase_add_loop_test(tests, an_origin_is_ours_by_name_and_port_whatever_its_scheme, 0, COUNT(authorities));
    tcase_add_test(tests, the_table_of_routes_says_which_paths_are_open);
}

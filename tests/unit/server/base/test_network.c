/* test_network.c: addresses as texts, and which of them a list of networks has. */
#include <string.h>

#include "base/network.h"
#include "check_main.h"

static const char *written(const char *text)
{
    static char out[INET6_ADDRSTRLEN];
    struct in6_addr address;
    return network_read_address(text_span_of(text), &address) ? network_write_address(&address, out) : "none";
}

START_TEST(addresses_are_read_and_written)
{
    static const char *const cases[][2] = {
        {"10.0.0.1", "10.0.0.1"},
        {"10.0.0.1:80", "10.0.0.1"},
        {"::1", "::1"},
        {"[::1]", "::1"},
        {"[::1]:80", "::1"},
        {"2001:DB8::1", "2001:db8::1"},
        {"::ffff:1.2.3.4", "1.2.3.4"},
        {"", "none"},
        {"unknown", "none"},
        {"10.0.0", "none"},
        {"[::1", "none"},
        {"_hidden:80", "none"},
        {"10.0.0.1/8", "none"},
        {"1:2:3", "none"},
        {"a-text-that-is-longer-than-every-address-that-there-is", "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(written(cases[i][0]), cases[i][1]);
}
END_TEST

static bool has(const char *list, const char *text)
{
    struct in6_addr address;
    return network_read_address(text_span_of(text), &address) && network_list_has(list, &address);
}

START_TEST(lists_have_the_addresses_of_their_networks)
{
    static const char list[] = "10.0.0.0/8, 192.168.4.0/22,2001:db8::/33,127.0.0.1";
    static const char *const in[] = {"10.0.0.0", "10.255.255.255", "192.168.7.255", "2001:db8:7fff::1", "127.0.0.1"};
    static const char *const out[] = {"11.0.0.0",         "9.255.255.255", "192.168.8.0",
                                      "2001:db8:8000::1", "127.0.0.2",     "::1"};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        ck_assert_msg(has(list, in[i]), "%s", in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        ck_assert_msg(!has(list, out[i]), "%s", out[i]);
    ck_assert(has("0.0.0.0/0", "203.0.113.7") && !has("0.0.0.0/0", "::1") && has("::/0", "203.0.113.7"));
    ck_assert(!has("", "127.0.0.1"));
}
END_TEST

START_TEST(what_is_no_network_is_known)
{
    static const char *const wrong[] = {"",         "10.0.0.0/33", "10.0.0.0/",     "10.0.0.0/-1", "::/129",
                                        "10.0.0/8", "example",     "10.0.0.0:80/8", "/8",          "10.0.0.0/8/8"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!network_is_valid(text_span_of(wrong[i])), "%s", wrong[i]);
    ck_assert(network_is_valid(text_span_of("10.0.0.0/8")) && network_is_valid(text_span_of("::1")));
}
END_TEST

CHECK_MAIN("network")
{
    tcase_add_test(tests, addresses_are_read_and_written);
    tcase_add_test(tests, lists_have_the_addresses_of_their_networks);
    tcase_add_test(tests, what_is_no_network_is_known);
}

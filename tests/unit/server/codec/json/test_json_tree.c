/*
 * test_json_tree.c: tests of server/codec/json/tree.c: a parse whose memory runs out at any allocation.
 */
#include "codec/json/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "failing_json.h"

enum { ROOM = 64 << 20 };

static attn_arena *arena;

static void prepare(void)
{
    json_tree_prepare();
    arena = attn_arena_create(ROOM);
}

static void tear_down(void)
{
    attn_arena_destroy(arena);
}

static json_t *load(const char *text, json_error_t *error)
{
    return json_tree_load(text, strlen(text), arena, error);
}

/* Every allocation of the parse in turn fails. */
static void starve(const char *text)
{
    json_error_t error;
    json_t *whole = load(text, &error), *tree = NULL;
    ck_assert_msg(whole != NULL, "%s: %s", text, error.text);
    for (size_t tries = 0; tree == NULL; tries++) {
        fail_json_begin();
        json_allocations_left = tries;
        json_fails_for_good = true;
        tree = load(text, &error);
        fail_json_end();
        ck_assert_msg((tree == NULL) == json_tree_is_starved(), "%s, allocation %zu: %s", text, tries, error.text);
    }
    ck_assert_msg(json_equal(tree, whole), "%s", text);
    json_decref(tree);
    json_decref(whole);
}

/* A token is copied while it is read, into room that doubles: its end falls into each place of that. */
START_TEST(a_parse_that_finds_no_memory_ends)
{
    static const struct {
        const char *before, *behind;
        int longest;
    } tokens[] = {
        {"[\"", "\"]", 70},   {"[\"", "\\n\"]", 70}, {"[\"\\u00e7", "\"]", 70}, {"{\"", "\":[true,{\"a\":0.5}]}", 70},
        {"[0.", "1e-5]", 70}, {"[1", "]", 17}, /* as much as an integer holds */
    };
    static const char digits[] = "1234567890123456789012345678901234567890123456789012345678901234567890";
    for (size_t i = 0; i < COUNT(tokens); i++)
        for (int length = 0; length <= tokens[i].longest; length++) {
            char text[160];
            snprintf(text, sizeof text, "%s%.*s%s", tokens[i].before, length, digits, tokens[i].behind);
            starve(text);
        }
}
END_TEST

/* Later additions use malloc, which the sanitizers check. */
START_TEST(a_tree_outlives_others_of_its_thread)
{
    json_error_t error;
    json_t *first = load("{\"a\":[\"b\"]}", &error), *second = load("[{}]", &error);
    ck_assert(first != NULL && second != NULL);
    json_decref(first);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(json_array_append_new(second, json_string("more")), 0);
    char *text = json_dumps(second, JSON_COMPACT);
    ck_assert_ptr_nonnull(strstr(text, "[{},\"more\",\"more\","));
    json_decref(second);
    json_tree_give_text(text);
    json_tree_give_text(NULL);
}
END_TEST

/*
 * A tree needs many times the memory of its text. The limit of the arena and the shared budget bound it, and count it.
 */
START_TEST(a_tree_is_counted_and_bounded)
{
    enum { ITEMS = 100000, TEXT = 3 * ITEMS + 1 };
    char *text = malloc(TEXT);
    text[0] = '[';
    for (size_t i = 0; i < ITEMS; i++)
        memcpy(text + 1 + 3 * i, "{},", 3);
    text[TEXT - 1] = ']';
    json_error_t error;
    json_t *tree = json_tree_load(text, TEXT, arena, &error);
    ck_assert_uint_eq(json_array_size(tree), ITEMS);
    const size_t bytes = attn_arena_bytes(arena);
    ck_assert_uint_gt(bytes, 20 * TEXT);
    json_decref(tree);
    attn_budget *budget = attn_budget_create(bytes / 2);
    attn_arena *small = attn_arena_create(bytes / 2), *shared = attn_arena_create_within(budget, ROOM);
    ck_assert_ptr_null(json_tree_load(text, TEXT, small, &error));
    ck_assert(json_tree_is_starved() && attn_arena_hit_limit(small));
    ck_assert_ptr_null(json_tree_load(text, TEXT, shared, &error));
    ck_assert(json_tree_is_starved() && !attn_arena_hit_limit(shared));
    attn_arena_destroy(small);
    attn_arena_destroy(shared);
    attn_budget_destroy(budget);
    free(text);
}
END_TEST

START_TEST(what_is_no_json_is_told)
{
    static const char *const texts[] = {"", "[", "[1,]", "{\"a\":1,\"a\":2}", "[\"\\ud800\"]", "[1e999]"};
    json_error_t error;
    for (size_t i = 0; i < COUNT(texts); i++) {
        ck_assert_ptr_null(load(texts[i], &error));
        ck_assert(!json_tree_is_starved() && error.text[0] != '\0');
    }
}
END_TEST

CHECK_MAIN("json_tree")
{
    tcase_add_checked_fixture(tests, prepare, tear_down);
    tcase_add_test(tests, a_parse_that_finds_no_memory_ends);
    tcase_add_test(tests, a_tree_outlives_others_of_its_thread);
    tcase_add_test(tests, a_tree_is_counted_and_bounded);
    tcase_add_test(tests, what_is_no_json_is_told);
}

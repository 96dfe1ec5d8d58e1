/*
 * test_json_tree.c: tests of server/codec/json_tree.c: what becomes of a parse whose memory ends anywhere.
 */
#include "codec/json_tree.h"

#include <stdio.h>
#include <string.h>

#include "check_main.h"

/* What the JSON library asks for; nobody looks at what the tests themselves do. */
static bool is_watched;
static size_t granted; /* allocations before one fails */
static size_t refused; /* as many fail then */
static size_t alive;   /* blocks that have not been given back */

void *__real_malloc(size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size)
{
    if (!is_watched)
        return __real_malloc(size);
    if (granted == 0 && refused > 0) {
        refused--;
        return NULL;
    }
    granted -= granted > 0;
    void *block = __real_malloc(size);
    alive += block != NULL;
    return block;
}

void __wrap_free(void *block)
{
    alive -= is_watched && block != NULL;
    __real_free(block);
}

static json_t *load(const char *text, json_error_t *error)
{
    is_watched = true;
    json_t *tree = json_tree_load(text, strlen(text), error);
    is_watched = false;
    return tree;
}

static void release(json_t *tree)
{
    is_watched = true;
    json_decref(tree);
    is_watched = false;
}

static void prepare(void)
{
    json_tree_prepare();
}

/* Every allocation of the parse in turn fails, alone or with all that follow. */
static void starve(const char *text, size_t failures)
{
    json_error_t error;
    json_t *whole = load(text, &error), *tree = NULL;
    ck_assert_msg(whole != NULL, "%s: %s", text, error.text);
    const size_t before = alive;
    for (size_t tries = 0; tree == NULL; tries++) {
        granted = tries;
        refused = failures;
        tree = load(text, &error);
        ck_assert_msg((tree == NULL) == json_tree_is_starved(), "%s, allocation %zu: %s", text, tries, error.text);
        ck_assert_msg(tree != NULL || alive == before, "%s, allocation %zu", text, tries);
    }
    refused = 0;
    ck_assert_msg(json_equal(tree, whole), "%s", text);
    release(tree);
    release(whole);
    ck_assert_uint_eq(alive, 0);
}

/* A token is copied while it is read, into room that doubles: its end falls into each place of that. */
START_TEST(a_parse_that_finds_no_memory_ends_and_gives_back_what_it_had)
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
            starve(text, 1);
            starve(text, SIZE_MAX);
        }
}
END_TEST

START_TEST(a_tree_outlives_others_of_its_thread)
{
    json_error_t error;
    json_t *first = load("{\"a\":[\"b\"]}", &error), *second = load("[{}]", &error);
    ck_assert(first != NULL && second != NULL);
    release(first);
    is_watched = true;
    const int appended = json_array_append_new(second, json_string("more"));
    char *text = json_dumps(second, JSON_COMPACT);
    is_watched = false;
    ck_assert_int_eq(appended, 0);
    ck_assert_str_eq(text, "[{},\"more\"]");
    release(second);
    ck_assert_uint_eq(alive, 1);
    is_watched = true;
    json_tree_give_text(text);
    json_tree_give_text(NULL);
    is_watched = false;
    ck_assert_uint_eq(alive, 0);
}
END_TEST

/* Of a text that needs more than the thread's own memory, so that some blocks are of it and some are not. */
START_TEST(a_near_tree_whose_memory_ends_leaves_nothing_behind)
{
    enum { ITEMS = 600 };
    char text[4 * ITEMS + 2] = "[";
    for (size_t i = 0; i < ITEMS; i++)
        strcat(text, i == 0 ? "\"a\"" : ",\"a\"");
    strcat(text, "]");
    json_error_t error;
    json_t *tree = NULL;
    size_t tries = 0;
    for (; tree == NULL; tries++) {
        granted = tries;
        refused = SIZE_MAX;
        is_watched = true;
        tree = json_tree_load_near(text, strlen(text), &error);
        is_watched = false;
        ck_assert((tree == NULL) == json_tree_is_starved());
        ck_assert_uint_eq(alive, tree == NULL ? 0 : tries - 1);
    }
    refused = 0;
    ck_assert_uint_gt(tries, 1);
    ck_assert_uint_eq(json_array_size(tree), ITEMS);
    release(tree);
    ck_assert_uint_eq(alive, 0);
}
END_TEST

START_TEST(what_is_no_json_gives_back_what_it_had)
{
    static const char *const texts[] = {"", "[", "[1,]", "{\"a\":1,\"a\":2}", "[\"\\ud800\"]", "[1e999]"};
    json_error_t error;
    for (size_t i = 0; i < COUNT(texts); i++) {
        ck_assert_ptr_null(load(texts[i], &error));
        ck_assert(!json_tree_is_starved() && error.text[0] != '\0');
        ck_assert_uint_eq(alive, 0);
    }
}
END_TEST

int main(void)
{
    TCase *tests = check_case("json_tree");
    tcase_add_checked_fixture(tests, prepare, NULL);
    tcase_add_test(tests, a_parse_that_finds_no_memory_ends_and_gives_back_what_it_had);
    tcase_add_test(tests, a_tree_outlives_others_of_its_thread);
    tcase_add_test(tests, a_near_tree_whose_memory_ends_leaves_nothing_behind);
    tcase_add_test(tests, what_is_no_json_gives_back_what_it_had);
    return check_run("json_tree", tests);
}

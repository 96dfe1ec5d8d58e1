/*
 * test_store.c: tests of server/service/registry/store.c and version.c: layers by name, the versions that stay, and the
 * conditions of changes.
 */
#include "service/registry/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/layer/version.h"

enum { ARENA_BYTES = 1 << 20, MANY = 200 };

static const struct kept_layer_facts facts;
static attn_arena *arena;

/* A version of that many letters, mapped from that file. */
static struct layer_version *make_of(const char *name, const char *letters, const struct file_identity *file)
{
    struct chunks content = chunks_begin(arena);
    struct file_bytes bytes;
    chunks_text(&content, letters);
    ck_assert_int_eq(file_bytes_copy(&content, &bytes), 0);
    struct layer_version *version = layer_version_create(name, bytes, file, &facts, NULL);
    ck_assert_ptr_nonnull(version);
    return version;
}

static struct layer_version *make(const char *name, const char *letters)
{
    return make_of(name, letters, NULL);
}

static void install(struct registry *store, const char *name, const char *letters)
{
    ck_assert(registry_install(store, &make(name, letters)->common));
}

static struct registry *create(size_t count, size_t bytes, size_t older)
{
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
    struct registry *store = registry_create(count, bytes, older);
    ck_assert_ptr_nonnull(store);
    return store;
}

static void destroy(struct registry *store)
{
    registry_destroy(store);
    attn_arena_destroy(arena);
}

static struct registry_row look(struct registry *store, const char *name)
{
    struct registry_row row;
    registry_look(store, KIND_LAYER, name, &row);
    ck_assert_str_eq(row.name, name);
    return row;
}

/* The digest of the present version, which is computed for it. */
static void digest_of_present(struct registry *store, const char *name, char text[DIGEST_TEXT])
{
    struct registry_row row = look(store, name);
    ck_assert_ptr_nonnull(row.layer);
    memcpy(text, layer_version_digest(row.layer, NULL), DIGEST_TEXT);
    layer_version_release(row.layer);
}

START_TEST(names_are_kept_in_their_order_whatever_the_order_they_came_in)
{
    struct registry *store = create(MANY, 1 << 20, 0);
    struct registry_row rows[MANY];
    char name[16];
    size_t count, bytes;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%03zu", i * 77 % MANY);
        install(store, name, "ab");
    }
    registry_totals(store, KIND_LAYER, &count, &bytes);
    ck_assert(count == MANY && bytes == 2 * MANY);
    ck_assert_uint_eq(registry_page(store, KIND_LAYER, "", MANY, rows), MANY);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%03zu", i);
        ck_assert_str_eq(rows[i].name, name);
        ck_assert_int_eq(rows[i].state, REGISTRY_READY);
        layer_version_release(rows[i].layer);
    }
    ck_assert_uint_eq(registry_page(store, KIND_LAYER, "n197", MANY, rows), 2);
    ck_assert_str_eq(rows[0].name, "n198");
    layer_version_release(rows[0].layer);
    layer_version_release(rows[1].layer);
    ck_assert_uint_eq(registry_page(store, KIND_LAYER, "n1975", 1, rows), 1); /* behind a name that is not there */
    ck_assert_str_eq(rows[0].name, "n198");
    layer_version_release(rows[0].layer);
    registry_remove(store, KIND_LAYER, "n000");
    registry_remove(store, KIND_LAYER, "n000");
    registry_totals(store, KIND_LAYER, &count, &bytes);
    ck_assert(count == MANY - 1 && bytes == 2 * (MANY - 1));
    destroy(store);
}
END_TEST

START_TEST(what_is_absent_has_a_row_too)
{
    struct registry *store = create(4, 100, 2);
    char digests[4][DIGEST_TEXT];
    ck_assert_int_eq(look(store, "a").state, REGISTRY_ABSENT);
    ck_assert(!registry_set_loaded(store, "a", false));
    ck_assert_ptr_null(registry_older(store, "a", ""));
    ck_assert_uint_eq(registry_digests(store, "a", digests, 4), 0);
    ck_assert(version_keep(NULL) == NULL);
    layer_version_release(NULL);
    registry_destroy(NULL);
    destroy(store);
}
END_TEST

START_TEST(a_name_keeps_as_many_replaced_versions_as_it_may)
{
    struct registry *store = create(4, 100, 2);
    static const char *const contents[] = {"one", "two", "three", "four"};
    char known[4][DIGEST_TEXT], listed[8][DIGEST_TEXT];
    for (size_t i = 0; i < 4; i++) {
        install(store, "a", contents[i]);
        digest_of_present(store, "a", known[i]);
    }
    ck_assert_uint_eq(registry_digests(store, "a", listed, 8), 3);
    ck_assert_str_eq(listed[0], known[3]);
    ck_assert_str_eq(listed[1], known[2]);
    ck_assert_str_eq(listed[2], known[1]);
    ck_assert_uint_eq(registry_digests(store, "a", listed, 2), 2);
    ck_assert_uint_eq(registry_digests(store, "a", listed, 0), 0);
    struct layer_version *older = layer_version_of(registry_older(store, "a", known[1]));
    ck_assert(older != NULL && older->bytes.size == 3 && memcmp(older->bytes.at, "two", 3) == 0);
    layer_version_release(older);
    ck_assert_ptr_null(registry_older(store, "a", known[0])); /* gave way */
    ck_assert_ptr_null(registry_older(store, "a", known[3])); /* is the present one */
    install(store, "a", "five");
    ck_assert_uint_eq(registry_digests(store, "a", listed, 8), 3); /* nothing is computed for a list */
    ck_assert(listed[0][0] == '\0' && strcmp(listed[1], known[3]) == 0);
    ck_assert(registry_set_loaded(store, "a", false));
    ck_assert_int_eq(look(store, "a").state, REGISTRY_UNLOADED);
    ck_assert_ptr_null(registry_older(store, "a", known[2]));
    ck_assert(registry_set_loaded(store, "a", true));
    destroy(store);
}
END_TEST

START_TEST(without_older_versions_the_replaced_one_lives_as_long_as_somebody_holds_it)
{
    struct registry *store = create(4, 100, 0);
    install(store, "a", "one");
    struct registry_row row = look(store, "a");
    install(store, "a", "two");
    ck_assert_mem_eq(row.layer->bytes.at, "one", 3);
    ck_assert_ptr_null(registry_older(store, "a", layer_version_digest(row.layer, NULL)));
    layer_version_release(row.layer);
    destroy(store);
}
END_TEST

START_TEST(replaced_versions_give_way_to_present_ones)
{
    struct registry *store = create(4, 10, 4);
    char digests[MANY][DIGEST_TEXT];
    size_t count, bytes;
    install(store, "a", "1234");
    install(store, "a", "5678");
    ck_assert_uint_eq(registry_digests(store, "a", digests, MANY), 2);
    install(store, "b", "1234");
    ck_assert_uint_eq(registry_digests(store, "a", digests, MANY), 1);
    registry_totals(store, KIND_LAYER, &count, &bytes);
    ck_assert(count == 2 && bytes == 8);
    install(store, "b", "12");
    ck_assert_uint_eq(registry_digests(store, "b", digests, MANY), 2);
    destroy(store);
    store = create(4, 100, 99); /* more than a name can keep */
    for (int i = 0; i < REGISTRY_OLDER_MAX + 3; i++)
        install(store, "a", "1");
    ck_assert_uint_eq(registry_digests(store, "a", digests, MANY), REGISTRY_OLDER_MAX + 1);
    destroy(store);
}
END_TEST

START_TEST(room_is_counted_by_layers_and_by_bytes)
{
    struct registry *store = create(2, 10, 1);
    ck_assert(registry_has_room(store, "a", 10) && !registry_has_room(store, "a", 11));
    install(store, "a", "12345678");
    ck_assert(registry_has_room(store, "a", 10)); /* in the place of what is there */
    ck_assert(registry_has_room(store, "b", 2) && !registry_has_room(store, "b", 3));
    install(store, "b", "1");
    ck_assert(registry_has_room(store, "b", 2) && !registry_has_room(store, "c", 0));
    install(store, "b", "12345678"); /* a file that others made may be over it */
    ck_assert(!registry_has_room(store, "c", 0) && registry_has_room(store, "a", 2));
    install(store, "c", "123");
    ck_assert(!registry_has_room(store, "a", 0));
    destroy(store);
}
END_TEST

START_TEST(layers_of_models_take_no_room)
{
    struct registry *store = create(1, 10, 1);
    for (int again = 0; again < 2; again++) {
        struct layer_version *fixed = make("model.layer", "123456789");
        version_fix(&fixed->common);
        ck_assert(registry_install(store, &fixed->common));
        ck_assert(registry_has_room(store, "a", 10));
    }
    install(store, "a", "12345678");
    ck_assert(registry_has_room(store, "a", 10) && !registry_has_room(store, "b", 0));
    const struct registry_room room = registry_room(store);
    ck_assert(room.count == 2 && room.count_limit == 2 && room.bytes == 8 && room.bytes_limit == 10);
    registry_remove(store, KIND_LAYER, "model.layer");
    ck_assert(registry_has_room(store, "a", 10) && !registry_has_room(store, "b", 0));
    destroy(store);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_leaves_what_was_there)
{
    struct registry *store = create(4, 100, 1);
    const struct file_identity seen = {.bytes = 5, .modified_ns = 7};
    char digests[2][DIGEST_TEXT];
    ck_assert(registry_note(store, KIND_LAYER, "a", &seen, NULL));
    struct registry_row row = look(store, "a");
    ck_assert(row.state == REGISTRY_UNREAD && row.layer == NULL && file_identity_equal(&row.seen, &seen));
    ck_assert(registry_has_room(store, "a", 100)); /* its name is taken, none of the bytes */
    ck_assert_uint_eq(registry_digests(store, "a", digests, 2), 0);
    ck_assert(registry_note(store, KIND_LAYER, "a", &seen, "no layer"));
    row = look(store, "a");
    ck_assert_int_eq(row.state, REGISTRY_BROKEN);
    ck_assert_str_eq(row.reason, "no layer");
    install(store, "a", "one");
    row = look(store, "a");
    ck_assert(row.state == REGISTRY_READY && row.reason[0] == '\0');
    layer_version_release(row.layer);
    ck_assert(registry_note(store, KIND_LAYER, "a", &seen, "no layer"));
    row = look(store, "a");
    ck_assert(row.state == REGISTRY_READY && strcmp(row.reason, "no layer") == 0);
    layer_version_release(row.layer);
    destroy(store);
}
END_TEST

/* All versions of a name, and what the digests of those that are left are. */
static size_t versions(struct registry *store, const char *name)
{
    char digests[8][DIGEST_TEXT];
    return registry_digests(store, name, digests, 8);
}

START_TEST(versions_of_a_file_that_was_written_to_in_its_place_are_let_go)
{
    struct registry *store = create(4, 100, 4);
    const struct file_identity file = {.device = 1, .inode = 2, .bytes = 3, .modified_ns = 4};
    const struct file_identity others[] = {
        file, /* as it was */
        {.device = 1, .inode = 3, .bytes = 9, .modified_ns = 9},
        {.device = 2, .inode = 2, .bytes = 9, .modified_ns = 9},
        {.device = 0, .inode = 0, .bytes = 9, .modified_ns = 9}, /* of no file, as those are that came with no file */
    };
    const struct file_identity written = {.device = 1, .inode = 2, .bytes = 3, .modified_ns = 5};
    size_t count, bytes;
    ck_assert(registry_install(store, &make_of("a", "old", &file)->common));
    install(store, "a", "none");
    ck_assert(registry_install(store, &make_of("a", "present", &file)->common));
    for (size_t i = 0; i < COUNT(others); i++) {
        registry_forget(store, KIND_LAYER, "a", &others[i]);
        ck_assert_uint_eq(versions(store, "a"), 3);
    }
    struct registry_row row = look(store, "a");
    registry_forget(store, KIND_LAYER, "a", &written);
    registry_forget(store, KIND_LAYER, "absent", &written);
    ck_assert_uint_eq(versions(store, "a"), 1);
    ck_assert_mem_eq(row.layer->bytes.at, "present", 7); /* whoever computes with it goes on */
    layer_version_release(row.layer);
    registry_totals(store, KIND_LAYER, &count, &bytes);
    ck_assert(count == 1 && bytes == 0);
    ck_assert(registry_has_room(store, "b", 100));
    row = look(store, "a");
    ck_assert(row.layer == NULL && row.state == REGISTRY_UNREAD);
    destroy(store);
}
END_TEST

START_TEST(requests_are_counted_by_name)
{
    struct registry *store = create(4, 100, 1);
    const struct registry_statistics one = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct registry_statistics built_in;
    install(store, "a", "one");
    registry_count(store, KIND_LAYER, "a", &one);
    registry_count(store, KIND_LAYER, "a", &one);
    registry_count(store, KIND_LAYER, "gone", &one);
    registry_count(store, KIND_LAYER, NULL, &one);
    const struct registry_row row = look(store, "a");
    ck_assert(row.statistics.successes == 2 && row.statistics.failures == 4 && row.statistics.items == 6);
    ck_assert(row.statistics.success_ms == 8 && row.statistics.failure_ms == 10 && row.statistics.queue_ms == 12);
    ck_assert(row.statistics.parse_ms == 14 && row.statistics.compute_ms == 16 && row.statistics.write_ms == 18);
    ck_assert_int_eq(row.statistics.last_ms, 10);
    layer_version_release(row.layer);
    registry_built_in(store, &built_in);
    ck_assert(built_in.successes == 1 && built_in.last_ms == 10);
    destroy(store);
}
END_TEST

/* ---- refusals ---- */

START_TEST(conditions_are_those_of_entity_tags)
{
    struct registry *store = create(4, 100, 1);
    struct layer_version *version = make("a", "one");
    const char *digest = layer_version_digest(version, NULL);
    char exact[80], weak[80], list[120];
    snprintf(exact, sizeof exact, "\"%s\"", digest);
    snprintf(weak, sizeof weak, "W/\"%s\"", digest);
    snprintf(list, sizeof list, "\"x\", %s", exact);
    const struct {
        const char *if_match, *if_none_match;
        bool holds, holds_when_absent;
    } conditions[] = {
        {NULL, NULL, true, true},      {exact, NULL, true, false},   {list, NULL, true, false},
        {weak, NULL, false, false}, /* section 13.1.1: a strong comparison */
        {"\"x\"", NULL, false, false}, {"*", NULL, true, false},     {"x", NULL, false, false},
        {"\"", NULL, false, false},    {"\"x", NULL, false, false},  {"x\"", NULL, false, false},
        {"W/", NULL, false, false},    {"", NULL, false, false},     {NULL, exact, false, true},
        {NULL, weak, false, true}, /* section 13.1.2: a weak one */
        {NULL, "W/x", true, true},     {NULL, "Wx\"", true, true},   {NULL, "\"x\"", true, true},
        {NULL, "*", false, true},      {exact, exact, false, false}, /* section 13.2.2: both */
    };
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++)
        for (int is_there = 0; is_there < 2; is_there++) {
            attn_error err = {.status = ATTN_OK};
            struct call call = {
                .in.if_match = conditions[i].if_match, .in.if_none_match = conditions[i].if_none_match, .err = &err};
            const bool holds = layer_check_conditions(is_there ? version : NULL, &call) == ATTN_OK;
            ck_assert_msg(holds == (is_there ? conditions[i].holds : conditions[i].holds_when_absent),
                          "condition %zu, %d: %s", i, is_there, err.message);
            if (holds)
                continue;
            ck_assert_int_eq(call.refusal, CALL_PRECONDITION);
            ck_assert_msg(strstr(err.message, is_there ? digest : "there is no such layer") != NULL, "%s", err.message);
        }
    layer_version_release(version);
    destroy(store);
}
END_TEST

START_TEST(an_errno_of_the_directory_says_whose_fault_it_is)
{
    static const struct {
        int error;
        attn_status status;
        enum call_refusal refusal;
        const char *fragment;
    } cases[] = {
        {ENOSPC, ATTN_ERR_VALUE, CALL_STORE_FULL, "no room left"},
        {EDQUOT, ATTN_ERR_VALUE, CALL_STORE_FULL, "no room left"},
        {EFBIG, ATTN_ERR_VALUE, CALL_STORE_FULL, "no room left"},
        {EROFS, ATTN_ERR_VALUE, CALL_READ_ONLY, "cannot be written to"},
        {EACCES, ATTN_ERR_VALUE, CALL_READ_ONLY, "cannot be written to"},
        {EPERM, ATTN_ERR_VALUE, CALL_READ_ONLY, "cannot be written to"},
        {ENOMEM, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to keep the layer"},
        {EMFILE, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to keep the layer"},
        {ENFILE, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to keep the layer"},
        {EIO, ATTN_ERR_VALUE, CALL_STORE_FAILED, "failed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_error err = {.status = ATTN_OK};
        struct call call = {.err = &err};
        ck_assert_int_eq(layer_refuse_errno(&call, cases[i].error), cases[i].status);
        ck_assert_int_eq(call.refusal, cases[i].refusal);
        ck_assert_msg(strstr(err.message, cases[i].fragment) != NULL, "%s", err.message);
        ck_assert_msg(strstr(err.message, strerror(cases[i].error)) != NULL, "%s", err.message);
    }
}
END_TEST

CHECK_MAIN("layer_store")
{
    tcase_add_test(tests, names_are_kept_in_their_order_whatever_the_order_they_came_in);
    tcase_add_test(tests, what_is_absent_has_a_row_too);
    tcase_add_test(tests, a_name_keeps_as_many_replaced_versions_as_it_may);
    tcase_add_test(tests, without_older_versions_the_replaced_one_lives_as_long_as_somebody_holds_it);
    tcase_add_test(tests, replaced_versions_give_way_to_present_ones);
    tcase_add_test(tests, room_is_counted_by_layers_and_by_bytes);
    tcase_add_test(tests, layers_of_models_take_no_room);
    tcase_add_test(tests, a_file_that_cannot_be_read_leaves_what_was_there);
    tcase_add_test(tests, versions_of_a_file_that_was_written_to_in_its_place_are_let_go);
    tcase_add_test(tests, requests_are_counted_by_name);
    tcase_add_test(tests, conditions_are_those_of_entity_tags);
    tcase_add_test(tests, an_errno_of_the_directory_says_whose_fault_it_is);
}

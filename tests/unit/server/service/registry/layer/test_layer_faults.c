/*
 * test_layer_faults.c: makes each system call of server/service/registry fail in turn: the client gets the right error,
 * no file remains, and the next request is served.
 */
#include "adopt_file.h"
#include "stage.h"

/* ---- what fails while a layer is put ---- */

static const struct failing puts_failing[] = {
    {"openat", 0, ENOSPC, ATTN_ERR_VALUE, CALL_STORE_FULL, "No space left"},
    {"openat", 0, EMFILE, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to keep the layer"},
    {"openat", 0, EACCES, ATTN_ERR_VALUE, CALL_READ_ONLY, "cannot be written to"},
    {"write", 0, ENOSPC, ATTN_ERR_VALUE, CALL_STORE_FULL, "No space left"},
    {"write", 0, 0, ATTN_ERR_VALUE, CALL_STORE_FAILED, "Input/output error"},
    {"mmap", 0, ENOMEM, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to keep the layer"},
    {"fsync", 0, EIO, ATTN_ERR_VALUE, CALL_STORE_FAILED, "Input/output error"},
    {"renameat", 0, EIO, ATTN_ERR_VALUE, CALL_STORE_FAILED, "Input/output error"},
#if HAS_OWN_MALLOC
    {"calloc", 0, ENOMEM, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to look into the layer"}, /* the arena */
    {"calloc", 1, ENOMEM, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to look into the layer"}, /* the version */
    {"calloc", 2, ENOMEM, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to keep the layer"},      /* the name */
    {"realloc", 0, ENOMEM, ATTN_ERR_NO_MEMORY, CALL_FAILED, "no memory to keep the layer"},
#endif
};

START_TEST(a_put_that_fails_says_why_and_the_next_is_kept)
{
    const struct failing *failing = &puts_failing[_i];
    fault.call = failing->call;
    fault.skip = failing->skip;
    fault.reason = failing->reason;
    const struct asked asked = put("a");
    ck_assert_msg(fault.skip < 0, "%s was not called", failing->call);
    fault.call = NULL;
    ck_assert_msg(asked.status == failing->status && asked.refusal == failing->refusal, "%s: %d, %d: %s", failing->call,
                  asked.status, asked.refusal, asked.err.message);
    ck_assert_msg(strstr(asked.err.message, failing->fragment) != NULL, "%s: %s", failing->call, asked.err.message);
    (void)remove_layer("a"); /* a layer that was renamed although it could not be recorded */
    ck_assert_uint_eq(entries(), 0);
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_eq(find("a").status, ATTN_OK);
}
END_TEST

/* The file has its name, and only its durability is unknown. */
START_TEST(a_put_whose_directory_is_not_synchronised_is_served_and_refused)
{
    fault.call = "fsync";
    fault.skip = 1;
    fault.reason = EIO;
    const struct asked asked = put("a");
    fault.call = NULL;
    ck_assert(asked.status == ATTN_ERR_VALUE && asked.refusal == CALL_STORE_FAILED);
    ck_assert_int_eq(find("a").status, ATTN_OK);
}
END_TEST

START_TEST(a_draft_whose_lock_or_state_fails_is_tried_again)
{
    static const char *const calls[] = {"flock", "fstat", "openat", "sweep"};
    fault.call = calls[_i];
    fault.reason = _i == 2 ? EEXIST : EIO;
    const struct asked asked = put("a");
    ck_assert_msg(fault.skip < 0, "%s was not called", calls[_i]);
    fault.call = NULL;
    ck_assert_msg(asked.status == ATTN_OK, "%s: %s", calls[_i], asked.err.message);
    ck_assert_uint_eq(entries(), _i == 3 ? 2 : 1); /* the sweep was none */
}
END_TEST

/* If other programs take every name of a draft, the number of tries is limited. */
START_TEST(a_draft_whose_names_are_all_taken_is_given_up)
{
    fault.call = "openat";
    fault.reason = EEXIST;
    fault.is_for_good = true;
    const struct asked asked = put("a");
    fault.call = NULL;
    ck_assert_int_lt(fault.skip, 0);
    ck_assert(asked.status == ATTN_ERR_VALUE && asked.refusal == CALL_STORE_FAILED);
    ck_assert_msg(strstr(asked.err.message, "File exists") != NULL, "%s", asked.err.message);
    ck_assert_uint_eq(entries(), 0);
    ck_assert_int_eq(put("a").status, ATTN_OK);
}
END_TEST

START_TEST(a_write_that_is_interrupted_goes_on)
{
    fault.call = "write";
    fault.reason = EINTR;
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_lt(fault.skip, 0);
    fault.call = NULL;
    ck_assert_int_eq(find("a").status, ATTN_OK);
}
END_TEST

/* ---- what fails while one is looked for or removed ---- */

static const struct failing finds_failing[] = {
    {"openat", 0, EMFILE, ATTN_ERR_VALUE, CALL_CONFLICT, "Too many open files"},
    {"fstat", 0, EIO, ATTN_ERR_VALUE, CALL_CONFLICT, "Input/output error"},
    {"mmap", 0, ENOMEM, ATTN_ERR_VALUE, CALL_CONFLICT, "Cannot allocate memory"},
    {"openat", 0, ENOENT, ATTN_ERR_VALUE, CALL_NOT_FOUND, "there is no layer"}, /* removed this very moment */
#if HAS_OWN_MALLOC
    {"calloc", 0, ENOMEM, ATTN_ERR_VALUE, CALL_CONFLICT, "no memory to look into the layer"},
#endif
};

START_TEST(a_file_that_cannot_be_read_is_a_conflict_until_it_changes)
{
    const struct failing *failing = &finds_failing[_i];
    ck_assert_int_eq(put("a").status, ATTN_OK);
    layer_keeper_close(keeper);
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL, "%s", message);
    fault.call = failing->call;
    fault.skip = failing->skip;
    fault.reason = failing->reason;
    const struct asked asked = find("a");
    ck_assert_msg(fault.skip < 0, "%s was not called", failing->call);
    fault.call = NULL;
    ck_assert_msg(asked.status == failing->status && asked.refusal == failing->refusal, "%s: %d, %d: %s", failing->call,
                  asked.status, asked.refusal, asked.err.message);
    ck_assert_msg(strstr(asked.err.message, failing->fragment) != NULL, "%s: %s", failing->call, asked.err.message);
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_eq(find("a").status, ATTN_OK);
}
END_TEST

START_TEST(a_removal_that_fails_says_so)
{
    static const struct failing removals[] = {
        {"unlinkat", 0, EACCES, ATTN_ERR_VALUE, CALL_READ_ONLY, "Permission denied"},
        {"fsync", 0, EIO, ATTN_ERR_VALUE, CALL_STORE_FAILED, "Input/output error"},
    };
    const struct failing *failing = &removals[_i];
    ck_assert_int_eq(put("a").status, ATTN_OK);
    fault.call = failing->call;
    fault.skip = 0;
    fault.reason = failing->reason;
    const struct asked asked = remove_layer("a");
    fault.call = NULL;
    ck_assert(asked.status == failing->status && asked.refusal == failing->refusal);
    ck_assert_msg(strstr(asked.err.message, failing->fragment) != NULL, "%s", asked.err.message);
}
END_TEST

/* ---- without a directory ---- */

START_TEST(what_is_kept_in_memory_is_refused_as_cleanly)
{
    struct chunks wrong = chunks_begin(arena), right = content;
    struct layer_draft draft = {.fd = -1};
    const struct layer_upload upload = {.name = {"a", 1}, .total_bytes = 3};
    chunks_text(&wrong, "no layer");
    layer_keeper_close(keeper);
    settings.directory = NULL;
    settings.max_count = 2;
    keeper = open_keeper();
    ck_assert_ptr_nonnull(keeper);
    ck_assert(!layer_keeper_write_ahead(keeper, &upload, &draft, "abc", 3) && draft.fd == -1);
    fault.call = "mmap";
    fault.reason = ENOMEM;
    ck_assert_int_eq(put("a").status, ATTN_ERR_NO_MEMORY);
    fault.call = NULL;
    content = wrong;
    ck_assert_int_eq(put("a").status, ATTN_ERR_SYNTAX);
    content = right;
#if HAS_OWN_MALLOC
    fault.call = "calloc";
    fault.skip = 2; /* the arena, the version, the name */
    ck_assert_int_eq(adopt_file(keeper, "a", &right), ATTN_ERR_NO_MEMORY);
    ck_assert_int_lt(fault.skip, 0);
    fault.call = NULL;
#endif
    ck_assert_int_eq(adopt_file(keeper, "a", &right), ATTN_OK);
    ck_assert_int_eq(put("a").refusal, CALL_CONFLICT); /* nobody can change it */
    ck_assert_int_eq(put("b").status, ATTN_OK);        /* of the two places, "a" takes none */
    ck_assert_int_eq(put("d").status, ATTN_OK);
    ck_assert_int_eq(put("c").refusal, CALL_STORE_FULL);
    ck_assert_int_eq(remove_layer("b").status, ATTN_OK);
    layer_keeper_rescan(keeper);
}
END_TEST

START_TEST(what_cannot_be_a_name_is_refused_everywhere)
{
    attn_error err = {.status = ATTN_OK};
    struct call call = {.err = &err};
    const struct text_span wrong = text_span_of("a/b"), absent = text_span_of("absent");
    ck_assert_int_eq(find("a/b").status, ATTN_ERR_VALUE);
    ck_assert_int_eq(put("a/b").status, ATTN_ERR_VALUE);
    ck_assert_int_eq(remove_layer("a/b").status, ATTN_ERR_VALUE);
    ck_assert_int_eq(layer_keeper_load(keeper, wrong, &call), ATTN_ERR_VALUE);
    ck_assert_int_eq(layer_keeper_unload(keeper, wrong, &call), ATTN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(err.message, "\"a/b\" cannot name a layer"));
    ck_assert_int_eq(layer_keeper_unload(keeper, absent, &call), ATTN_ERR_VALUE);
    ck_assert_int_eq(call.refusal, CALL_NOT_FOUND);
}
END_TEST

/* Another program may change the layer between the check of the condition and the put. */
START_TEST(a_put_whose_condition_fails_at_the_end_leaves_nothing)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err, .in.if_none_match = "*"};
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_eq(layer_keeper_put(keeper, text_span_of("a"), &content, &call), ATTN_ERR_VALUE);
    ck_assert_int_eq(call.refusal, CALL_PRECONDITION);
    ck_assert_ptr_null(call.version);
    ck_assert_uint_eq(entries(), 1);
}
END_TEST

CHECK_MAIN("layer_faults")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, a_put_that_fails_says_why_and_the_next_is_kept, 0, COUNT(puts_failing));
    tcase_add_test(tests, a_put_whose_directory_is_not_synchronised_is_served_and_refused);
    tcase_add_loop_test(tests, a_draft_whose_lock_or_state_fails_is_tried_again, 0, 4);
    tcase_add_test(tests, a_draft_whose_names_are_all_taken_is_given_up);
    tcase_add_test(tests, a_write_that_is_interrupted_goes_on);
    tcase_add_loop_test(tests, a_file_that_cannot_be_read_is_a_conflict_until_it_changes, 0, COUNT(finds_failing));
    tcase_add_loop_test(tests, a_removal_that_fails_says_so, 0, 2);
    tcase_add_test(tests, a_put_whose_condition_fails_at_the_end_leaves_nothing);
    tcase_add_test(tests, what_cannot_be_a_name_is_refused_everywhere);
    tcase_add_test(tests, what_is_kept_in_memory_is_refused_as_cleanly);
}

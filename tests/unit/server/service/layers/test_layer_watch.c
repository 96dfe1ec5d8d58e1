/*
 * test_layer_watch.c: the calls that fail while a directory of layers is opened and watched: what is still served, and
 * what is made up for.
 */
#include "layer_stage.h"

/* A file of the name that is made by somebody else; what it holds is taken from a layer that was put. */
static void copy_file(const char *from, const char *to)
{
    char path[128], bytes[4096];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, from);
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    const size_t length = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, to);
    stream = fopen(path, "wb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(bytes, 1, length, stream), length);
    fclose(stream);
}

static enum layer_state state_of(const char *name)
{
    struct layer_row row;
    layer_store_look(layer_keeper_store(keeper), name, &row);
    layer_version_release(row.version);
    return row.state;
}

/* Of the version that is served. */
static uint64_t number_of(const char *name)
{
    struct layer_row row;
    layer_store_look(layer_keeper_store(keeper), name, &row);
    ck_assert_ptr_nonnull(row.version);
    const uint64_t number = row.version->number;
    layer_version_release(row.version);
    return number;
}

static void wait_for(const char *name, enum layer_state state)
{
    for (int i = 0; i < 2000 && state_of(name) != state; i++)
        usleep(1000);
    ck_assert_int_eq(state_of(name), state);
}

/* Too many events to tell of each: all names are looked at. */
START_TEST(events_that_were_lost_are_made_up_for)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_eq(put("gone").status, ATTN_OK);
    char path[128];
    snprintf(path, sizeof path, "%s/gone.safetensors", folder);
    usleep(100000); /* what the puts themselves made known */
    fault.reason = 0;
    fault.call = "events";
    copy_file("a", "new");
    wait_for("new", LAYER_UNREAD);
    ck_assert_int_lt(fault.skip, 0);
    ck_assert_int_eq(unlink(path), 0);
    wait_for("gone", LAYER_ABSENT);
    ck_assert_int_eq(find("new").status, ATTN_OK);
}
END_TEST

/* Neither an event of its own nor the one that stands for those that were lost touches what nobody may change. */
START_TEST(a_layer_that_nobody_may_change_stays_when_a_file_gets_its_name)
{
    attn_error err = {.status = ATTN_OK};
    struct call call = {.err = &err};
    ck_assert_int_eq(layer_keeper_adopt(keeper, "fixed", &content, &call), ATTN_OK);
    const uint64_t number = number_of("fixed");
    ck_assert_int_eq(put("a").status, ATTN_OK);
    copy_file("a", "fixed");
    copy_file("a", "then"); /* what is told of it comes after what is told of the other */
    wait_for("then", LAYER_UNREAD);
    ck_assert_uint_eq(number_of("fixed"), number);
    fault.reason = 0;
    fault.call = "events";
    copy_file("a", "new");
    wait_for("new", LAYER_UNREAD);
    ck_assert_int_lt(fault.skip, 0);
    fault.call = NULL;
    ck_assert_uint_eq(number_of("fixed"), number);
    ck_assert_int_eq(put("fixed").refusal, CALL_CONFLICT);
}
END_TEST

/* Names that were not told of are found when they are asked for. */
START_TEST(events_that_cannot_be_read_cost_no_layer)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    usleep(100000); /* what the put itself made known */
    fault.reason = EIO;
    fault.call = "read";
    copy_file("a", "b");
    for (int i = 0; i < 2000 && fault.skip >= 0; i++)
        usleep(1000);
    fault.call = NULL;
    ck_assert_int_lt(fault.skip, 0);
    ck_assert_int_eq(find("b").status, ATTN_OK);
}
END_TEST

/* A draft that nobody could open is not swept; the next start tries again. */
START_TEST(a_sweep_passes_over_what_it_cannot_open)
{
    char path[128];
    snprintf(path, sizeof path, "%s/.attnd-1-1", folder);
    ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    layer_keeper_close(keeper);
    fault.call = "openat";
    fault.skip = 1; /* the listing, the draft */
    fault.reason = EMFILE;
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL && fault.skip < 0, "%s", message);
    fault.call = NULL;
    ck_assert_uint_eq(entries(), 1);
    layer_keeper_close(keeper);
    keeper = open_keeper();
    ck_assert_uint_eq(entries(), 0);
}
END_TEST

/* The watch ends, or goes on; requests look at the files themselves. */
START_TEST(a_watch_that_cannot_wait_costs_no_layer)
{
    fault.call = "poll";
    fault.reason = _i == 0 ? EINTR : EINVAL;
    ck_assert_int_eq(put("a").status, ATTN_OK);
    copy_file("a", "b");
    ck_assert_int_eq(find("b").status, ATTN_OK);
    fault.call = NULL;
}
END_TEST

#if HAS_OWN_MALLOC
START_TEST(a_file_of_others_that_cannot_be_noted_is_found_later)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    layer_keeper_close(keeper);
    fault.call = "inotify_init1";
    fault.reason = EMFILE;
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL, "%s", message);
    copy_file("a", "b");
    fault.call = "calloc";
    fault.skip = 2; /* the arena, the version, the name */
    fault.reason = ENOMEM;
    ck_assert_int_eq(find("b").refusal, CALL_NOT_FOUND);
    ck_assert_int_lt(fault.skip, 0);
    char path[128];
    snprintf(path, sizeof path, "%s/broken.safetensors", folder);
    ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    fault.skip = 1; /* the arena, the name */
    ck_assert_int_eq(find("broken").refusal, CALL_NOT_FOUND);
    fault.skip = 0;
    layer_keeper_rescan(keeper); /* which says so in the log */
    ck_assert_int_lt(fault.skip, 0);
    fault.call = NULL;
    ck_assert_int_eq(find("b").status, ATTN_OK);
    ck_assert_int_eq(find("broken").refusal, CALL_CONFLICT);
}
END_TEST
#endif

START_TEST(a_directory_that_cannot_be_listed_any_more_serves_what_it_has)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    fault.call = "openat";
    fault.reason = EMFILE;
    layer_keeper_rescan(keeper);
    ck_assert_int_lt(fault.skip, 0);
    fault.call = NULL;
    ck_assert_int_eq(find("a").status, ATTN_OK);
}
END_TEST

/* ---- what fails at the start ---- */

START_TEST(a_directory_that_cannot_be_opened_or_listed_is_said)
{
    static const struct failing opens[] = {
        {"openat", 0, EACCES, 0, 0, "Permission denied"}, /* the listing */
#if HAS_OWN_MALLOC
        {"malloc", 0, ENOMEM, 0, 0, "Cannot allocate memory"},
        {"malloc", 1, ENOMEM, 0, 0, "Cannot allocate memory"}, /* the listing */
        {"calloc", 0, ENOMEM, 0, 0, "no memory for layers"},
        {"calloc", 1, ENOMEM, 0, 0, "no memory for layers"},
        {"calloc", 2, ENOMEM, 0, 0, "no memory for layers"}, /* the wide weights */
#endif
    };
    layer_keeper_close(keeper);
    keeper = NULL;
    settings.is_read_only = true; /* no sweep, which lists the directory too */
    for (size_t i = 0; i < sizeof opens / sizeof opens[0]; i++) {
        fault.call = opens[i].call;
        fault.skip = opens[i].skip;
        fault.reason = opens[i].reason;
        struct layer_keeper *opened = open_keeper();
        fault.call = NULL;
        ck_assert_msg(opened == NULL, "%s %d did not fail", opens[i].call, opens[i].skip);
        ck_assert_msg(strstr(message, opens[i].fragment) != NULL, "%s %d: %s", opens[i].call, opens[i].skip, message);
    }
    settings.directory = "/nowhere/at/all";
    ck_assert_ptr_null(open_keeper());
    ck_assert_str_eq(message, "layers: /nowhere/at/all: No such file or directory");
}
END_TEST

/* Without a watch, files of others are still found. */
START_TEST(without_a_watch_files_are_looked_at)
{
    static const char *const calls[] = {"eventfd", "inotify_init1", "inotify_add_watch"};
    ck_assert_int_eq(put("a").status, ATTN_OK);
    layer_keeper_close(keeper);
    fault.call = calls[_i];
    fault.reason = EMFILE;
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL && fault.skip < 0, "%s: %s", calls[_i], message);
    fault.call = NULL;
    ck_assert_int_eq(find("a").status, ATTN_OK);
    char path[128];
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(find("a").refusal, CALL_NOT_FOUND);
}
END_TEST

#if HAS_OWN_MALLOC
/* Without one of them it does not open, and says why; without another it serves. */
START_TEST(each_allocation_of_the_opening_may_fail)
{
    bool was_given = true;
    int opened = 0, refused = 0;
    ck_assert_int_eq(put("a").status, ATTN_OK);
    for (int call = 0; was_given; call++) {
        layer_keeper_close(keeper);
        message[0] = '\0';
        fault.call = "calloc";
        fault.skip = call;
        fault.reason = ENOMEM;
        keeper = open_keeper();
        was_given = fault.skip < 0;
        fault.call = NULL;
        ck_assert_msg(keeper != NULL || message[0] != '\0', "call %d: no message", call);
        if (keeper != NULL)
            ck_assert_int_eq(find("a").status, ATTN_OK);
        opened += keeper != NULL;
        refused += keeper == NULL;
    }
    ck_assert_int_ge(opened, 2); /* one of them without its watch */
    ck_assert_int_ge(refused, 2);
}
END_TEST
#endif

int main(void)
{
    TCase *tests = check_case("layer_watch");
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, events_that_were_lost_are_made_up_for);
    tcase_add_test(tests, a_layer_that_nobody_may_change_stays_when_a_file_gets_its_name);
    tcase_add_test(tests, events_that_cannot_be_read_cost_no_layer);
    tcase_add_test(tests, a_sweep_passes_over_what_it_cannot_open);
    tcase_add_loop_test(tests, a_watch_that_cannot_wait_costs_no_layer, 0, 2);
#if HAS_OWN_MALLOC
    tcase_add_test(tests, a_file_of_others_that_cannot_be_noted_is_found_later);
#endif
    tcase_add_test(tests, a_directory_that_cannot_be_listed_any_more_serves_what_it_has);
    tcase_add_test(tests, a_directory_that_cannot_be_opened_or_listed_is_said);
    tcase_add_loop_test(tests, without_a_watch_files_are_looked_at, 0, 3);
#if HAS_OWN_MALLOC
    tcase_add_test(tests, each_allocation_of_the_opening_may_fail);
#endif
    return check_run("layer_watch", tests);
}

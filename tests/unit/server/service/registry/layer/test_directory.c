/*
 * test_directory.c: tests of server/service/registry/layer/directory.c: changes by other programs are noticed, and failing
 * calls during opening and listing lose no layer.
 */
#include "adopt_file.h"
#include "stage.h"

#include <sys/stat.h>

/* A file of that name from another program, with the content of a stored layer. */
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

static enum registry_state state_of(const char *name)
{
    struct registry_row row;
    registry_look(layer_keeper_registry(keeper), KIND_LAYER, name, &row);
    layer_version_release(row.layer);
    return row.state;
}

/* Of the version that is served. */
static uint64_t number_of(const char *name)
{
    struct registry_row row;
    registry_look(layer_keeper_registry(keeper), KIND_LAYER, name, &row);
    ck_assert_ptr_nonnull(row.layer);
    const uint64_t number = row.layer->number;
    layer_version_release(row.layer);
    return number;
}

static void remove_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    ck_assert_int_eq(unlink(path), 0);
}

/* Replaces a file as other programs do: renames another file over it. */
static void replace_file(const char *name, const char *with)
{
    char from[128], to[128];
    snprintf(from, sizeof from, "%s/%s.safetensors", folder, with);
    snprintf(to, sizeof to, "%s/%s.safetensors", folder, name);
    ck_assert_int_eq(rename(from, to), 0);
}

START_TEST(a_rescan_notices_what_others_added_replaced_and_removed)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_eq(put("gone").status, ATTN_OK);
    const uint64_t number = number_of("a");
    copy_file("a", "new");
    copy_file("a", "other");
    replace_file("a", "other");
    remove_file("gone");
    layer_keeper_rescan(keeper);
    ck_assert_int_eq(state_of("new"), REGISTRY_UNREAD);
    ck_assert_int_eq(state_of("gone"), REGISTRY_ABSENT);
    ck_assert_uint_ne(number_of("a"), number);
    ck_assert_int_eq(find("new").status, ATTN_OK);
    remove_file("new");
    copy_file("a", "unread");
    layer_keeper_rescan(keeper);
    remove_file("unread");
    layer_keeper_rescan(keeper);
    ck_assert_int_eq(state_of("new"), REGISTRY_ABSENT);
    ck_assert_int_eq(state_of("unread"), REGISTRY_ABSENT);
}
END_TEST

/* Without a rescan: the request itself checks the file. */
START_TEST(a_request_notices_what_others_did_to_its_layer)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    copy_file("a", "new");
    copy_file("a", "other");
    ck_assert_int_eq(find("new").status, ATTN_OK);
    const uint64_t number = number_of("new");
    replace_file("new", "other");
    ck_assert_int_eq(find("new").status, ATTN_OK);
    ck_assert_uint_ne(number_of("new"), number);
    remove_file("new");
    ck_assert_int_eq(find("new").refusal, CALL_NOT_FOUND);
    ck_assert_int_eq(state_of("new"), REGISTRY_ABSENT);
}
END_TEST

/* Without a request or a rescan: the thread checks. */
START_TEST(a_thread_notices_what_others_did)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    layer_keeper_close(keeper);
    settings.look_ms = 1;
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL, "%s", message);
    copy_file("a", "new");
    for (int i = 0; i < 10000 && state_of("new") == REGISTRY_ABSENT; i++)
        usleep(1000);
    ck_assert_int_eq(state_of("new"), REGISTRY_UNREAD);
    remove_file("new");
    for (int i = 0; i < 10000 && state_of("new") != REGISTRY_ABSENT; i++)
        usleep(1000);
    ck_assert_int_eq(state_of("new"), REGISTRY_ABSENT);
}
END_TEST

/* Neither a rescan nor a list says of them, again and again, that a layer came and went. */
START_TEST(what_is_no_file_is_no_layer_of_the_directory)
{
    char path[128], said[256];
    FILE *stream = tmpfile();
    const struct log log = {.fd = fileno(stream), .format = LOG_TEXT, .level = LOG_INFO};
    layer_keeper_close(keeper);
    keeper = layer_keeper_open(&settings, &log, message, sizeof message);
    ck_assert_msg(keeper != NULL, "%s", message);
    snprintf(path, sizeof path, "%s/pipe.safetensors", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/nowhere.safetensors", folder);
    ck_assert_int_eq(symlink("not-there", path), 0);
    layer_keeper_rescan(keeper);
    ck_assert_int_eq(state_of("pipe"), REGISTRY_ABSENT);
    ck_assert_int_eq(state_of("nowhere"), REGISTRY_ABSENT);
    rewind(stream);
    while (fgets(said, sizeof said, stream) != NULL)
        ck_assert_msg(strstr(said, "file of a layer") == NULL, "%s", said);
    layer_keeper_close(keeper);
    fclose(stream);
    keeper = open_keeper();
}
END_TEST

/* With --layers-verify at-start, a file is read once it is found. */
START_TEST(a_rescan_reads_what_it_finds_when_every_file_is_read)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
    layer_keeper_close(keeper);
    settings.verifies_at_start = true;
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL, "%s", message);
    ck_assert_int_eq(state_of("a"), REGISTRY_READY);
    copy_file("a", "new");
    layer_keeper_rescan(keeper);
    ck_assert_int_eq(state_of("new"), REGISTRY_READY);
}
END_TEST

START_TEST(a_layer_that_nobody_may_change_stays_when_a_file_gets_its_name)
{
    ck_assert_int_eq(adopt_file(keeper, "fixed", &content), ATTN_OK);
    const uint64_t number = number_of("fixed");
    ck_assert_int_eq(put("a").status, ATTN_OK);
    copy_file("a", "fixed");
    layer_keeper_rescan(keeper);
    ck_assert_int_eq(find("fixed").status, ATTN_OK);
    ck_assert_uint_eq(number_of("fixed"), number);
    remove_file("fixed");
    layer_keeper_rescan(keeper);
    ck_assert_uint_eq(number_of("fixed"), number);
    ck_assert_int_eq(put("fixed").refusal, CALL_CONFLICT);
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

START_TEST(a_file_of_others_that_cannot_be_noted_is_found_later)
{
    ck_assert_int_eq(put("a").status, ATTN_OK);
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

/*
 * If one of these calls fails, the directory does not open, with a message. If another fails, the layer is read later.
 */
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
    ck_assert_int_ge(opened, 1);
    ck_assert_int_ge(refused, 2);
}
END_TEST

CHECK_MAIN("layer_directory")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, a_rescan_notices_what_others_added_replaced_and_removed);
    tcase_add_test(tests, a_request_notices_what_others_did_to_its_layer);
    tcase_add_test(tests, a_thread_notices_what_others_did);
    tcase_add_test(tests, what_is_no_file_is_no_layer_of_the_directory);
    tcase_add_test(tests, a_rescan_reads_what_it_finds_when_every_file_is_read);
    tcase_add_test(tests, a_layer_that_nobody_may_change_stays_when_a_file_gets_its_name);
    tcase_add_test(tests, a_sweep_passes_over_what_it_cannot_open);
    tcase_add_loop_test(tests, a_file_of_others_that_cannot_be_noted_is_found_later, 0, HAS_OWN_MALLOC);
    tcase_add_test(tests, a_directory_that_cannot_be_listed_any_more_serves_what_it_has);
    tcase_add_test(tests, a_directory_that_cannot_be_opened_or_listed_is_said);
    tcase_add_loop_test(tests, each_allocation_of_the_opening_may_fail, 0, HAS_OWN_MALLOC);
}

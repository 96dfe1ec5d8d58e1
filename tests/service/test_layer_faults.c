/*
 * test_layer_faults.c: each call of the system that server/service/layer_*.c make, failing: what a client and the log
 * are told, that nothing stays behind, and that the next request is served.
 *
 * The calls are defined here, in the place of the C library's, and do what it does unless one is to fail.
 */
#undef _FORTIFY_SOURCE /* whose forms of these calls are inline, and could not be defined anew */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check_main.h"
#include "codec/envelope.h"
#include "service/layer_keeper.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 0 /* the sanitizer has taken it */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 0
#endif
#endif
#ifndef HAS_OWN_MALLOC
#define HAS_OWN_MALLOC 1
#endif

/* ---- the system ---- */

static struct {
    const char *call; /* NULL: none is to fail */
    int skip;         /* as many pass before */
    int reason;
} fault;

static bool fails(const char *call)
{
    if (fault.call == NULL || strcmp(fault.call, call) != 0 || fault.skip-- != 0)
        return false;
    errno = fault.reason;
    return true;
}

int openat(int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return fails("openat") ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

int fstat(int fd, struct stat *about)
{
    return fails("fstat") ? -1 : fstatat(fd, "", about, AT_EMPTY_PATH);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails("mmap") ? MAP_FAILED : (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* With reason 0 nothing is written. */
ssize_t write(int fd, const void *from, size_t bytes)
{
    if (fails("write"))
        return fault.reason == 0 ? 0 : -1;
    return syscall(SYS_write, fd, from, bytes);
}

int flock(int fd, int operation)
{
    return fails("flock") ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int fsync(int fd)
{
    return fails("fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return fails("renameat") ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int unlinkat(int folder, const char *path, int flags)
{
    return fails("unlinkat") ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

int poll(struct pollfd *waits, nfds_t count, int timeout)
{
    return fails("poll") ? -1 : (int)syscall(SYS_poll, waits, count, timeout);
}

/* What is read of an inotify descriptor tells of too many events instead, when that is to fail. */
ssize_t read(int fd, void *to, size_t bytes)
{
    const ssize_t got = syscall(SYS_read, fd, to, bytes);
    if (got < (ssize_t)sizeof(struct inotify_event) || !fails("events"))
        return got;
    const struct inotify_event overflow = {.wd = -1, .mask = IN_Q_OVERFLOW};
    memcpy(to, &overflow, sizeof overflow);
    return sizeof overflow;
}

int eventfd(unsigned count, int flags)
{
    return fails("eventfd") ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

int inotify_init1(int flags)
{
    return fails("inotify_init1") ? -1 : (int)syscall(SYS_inotify_init1, flags);
}

int inotify_add_watch(int fd, const char *path, uint32_t events)
{
    return fails("inotify_add_watch") ? -1 : (int)syscall(SYS_inotify_add_watch, fd, path, events);
}

#if HAS_OWN_MALLOC
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

void *malloc(size_t bytes)
{
    return fails("malloc") ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails("calloc") ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails("realloc") ? NULL : __libc_realloc(block, bytes);
}
#endif

/* ---- the stage ---- */

enum { ARENA_BYTES = 1 << 20 };

static const char layer_text[] = "{\"weights\":{\"query\":{\"weight\":[[1]]},\"key\":{\"weight\":[[1]]},"
                                 "\"value\":{\"weight\":[[1]]}}}";
static const struct log silence = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF};
static char folder[64];
static struct layer_settings settings;
static struct layer_keeper *keeper;
static attn_arena *arena;
static struct chunks content;
static char message[320];

static struct layer_keeper *open_keeper(void)
{
    return layer_keeper_open(&settings, &silence, message, sizeof message);
}

static void prepare(void)
{
    attn_error err = {.status = ATTN_OK};
    envelope_prepare();
    snprintf(folder, sizeof folder, "/tmp/layer_faults_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    settings = (struct layer_settings){.directory = folder, .max_count = 4, .max_bytes = 1 << 20, .older = 1};
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
    content = chunks_begin(arena);
    ck_assert_int_eq(kept_layer_write(layer_text, strlen(layer_text), arena, &content, &err), ATTN_OK);
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL, "%s", message);
}

static size_t entries(void)
{
    DIR *directory = opendir(folder);
    size_t count = 0;
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 2; /* "." and ".." */
}

static void release(void)
{
    DIR *directory = opendir(folder);
    fault.call = NULL;
    layer_keeper_close(keeper);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    ck_assert_int_eq(rmdir(folder), 0);
    attn_arena_destroy(arena);
}

/* One request to the keeper: its status, and what it says. */
struct asked {
    attn_status status;
    enum call_refusal refusal;
    attn_error err;
};

static struct asked put(const char *name)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err};
    struct layer_version *version;
    bool created;
    asked.status = layer_keeper_put(keeper, text_span_of(name), &content, &call, &version, &created);
    asked.refusal = call.refusal;
    ck_assert((asked.status == ATTN_OK) == (version != NULL));
    layer_version_release(version);
    return asked;
}

static struct asked find(const char *name)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err};
    struct layer_version *version;
    asked.status = layer_keeper_find(keeper, text_span_of(name), &call, &version);
    asked.refusal = call.refusal;
    layer_version_release(version);
    return asked;
}

static struct asked remove_layer(const char *name)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err};
    asked.status = layer_keeper_remove(keeper, text_span_of(name), &call);
    asked.refusal = call.refusal;
    return asked;
}

/* ---- what fails while a layer is put ---- */

struct failing {
    const char *call;
    int skip, reason;
    attn_status status;
    enum call_refusal refusal;
    const char *fragment;
};

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
    (void)remove_layer("a"); /* one that got its name although nobody could note it */
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
    static const char *const calls[] = {"flock", "fstat", "openat"};
    fault.call = calls[_i];
    fault.reason = _i == 2 ? EEXIST : EIO;
    const struct asked asked = put("a");
    ck_assert_msg(fault.skip < 0, "%s was not called", calls[_i]);
    fault.call = NULL;
    ck_assert_msg(asked.status == ATTN_OK, "%s: %s", calls[_i], asked.err.message);
    ck_assert_uint_eq(entries(), 1);
}
END_TEST

START_TEST(a_write_that_is_interrupted_goes_on)
{
    fault.call = "write";
    fault.reason = EINTR;
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_lt(fault.skip, 0);
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
    struct layer_settings unwatched = settings;
    ck_assert_int_eq(put("a").status, ATTN_OK);
    layer_keeper_close(keeper);
    fault.call = "inotify_init1";
    fault.reason = EMFILE;
    keeper = layer_keeper_open(&unwatched, &silence, message, sizeof message);
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

/* ---- without a directory ---- */

static struct asked adopt(const char *name, const struct chunks *text)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err};
    asked.status = layer_keeper_adopt(keeper, name, text, &call);
    asked.refusal = call.refusal;
    return asked;
}

START_TEST(what_is_kept_in_memory_is_refused_as_cleanly)
{
    struct chunks wrong = chunks_begin(arena), right = content;
    chunks_text(&wrong, "no layer");
    layer_keeper_close(keeper);
    settings.directory = NULL;
    settings.max_count = 2;
    keeper = open_keeper();
    ck_assert_ptr_nonnull(keeper);
    fault.call = "mmap";
    fault.reason = ENOMEM;
    ck_assert_int_eq(put("a").status, ATTN_ERR_NO_MEMORY);
    fault.skip = 0;
    ck_assert_int_eq(adopt("a", &content).status, ATTN_ERR_NO_MEMORY);
    fault.call = NULL;
    content = wrong;
    ck_assert_int_eq(put("a").status, ATTN_ERR_SYNTAX);
    ck_assert_int_eq(adopt("a", &wrong).status, ATTN_ERR_SYNTAX);
    content = right;
    ck_assert_int_eq(adopt("a/b", &right).status, ATTN_ERR_VALUE);
    ck_assert_int_eq(adopt("stats", &right).refusal, CALL_CONFLICT);
#if HAS_OWN_MALLOC
    fault.call = "calloc";
    fault.skip = 2; /* the arena, the version, the name */
    ck_assert_int_eq(adopt("a", &right).status, ATTN_ERR_NO_MEMORY);
    ck_assert_int_lt(fault.skip, 0);
    fault.call = NULL;
#endif
    ck_assert_int_eq(adopt("a", &right).status, ATTN_OK);
    ck_assert_int_eq(put("a").refusal, CALL_CONFLICT); /* nobody can change it */
    ck_assert_int_eq(put("b").status, ATTN_OK);
    ck_assert_int_eq(adopt("c", &right).refusal, CALL_STORE_FULL);
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

/* Between the question whether it may and the put itself others may have changed it. */
START_TEST(a_put_whose_condition_fails_at_the_end_leaves_nothing)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err, .if_none_match = "*"};
    struct layer_version *version;
    bool created;
    ck_assert_int_eq(put("a").status, ATTN_OK);
    ck_assert_int_eq(layer_keeper_put(keeper, text_span_of("a"), &content, &call, &version, &created), ATTN_ERR_VALUE);
    ck_assert_int_eq(call.refusal, CALL_PRECONDITION);
    ck_assert_ptr_null(version);
    ck_assert_uint_eq(entries(), 1);
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

int main(void)
{
    Suite *suite = suite_create("layer_faults");
    TCase *tests = tcase_create("layer_faults");
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, a_put_that_fails_says_why_and_the_next_is_kept, 0,
                        (int)(sizeof puts_failing / sizeof puts_failing[0]));
    tcase_add_test(tests, a_put_whose_directory_is_not_synchronised_is_served_and_refused);
    tcase_add_loop_test(tests, a_draft_whose_lock_or_state_fails_is_tried_again, 0, 3);
    tcase_add_test(tests, a_write_that_is_interrupted_goes_on);
    tcase_add_loop_test(tests, a_file_that_cannot_be_read_is_a_conflict_until_it_changes, 0,
                        (int)(sizeof finds_failing / sizeof finds_failing[0]));
    tcase_add_loop_test(tests, a_removal_that_fails_says_so, 0, 2);
    tcase_add_test(tests, events_that_were_lost_are_made_up_for);
    tcase_add_loop_test(tests, a_watch_that_cannot_wait_costs_no_layer, 0, 2);
#if HAS_OWN_MALLOC
    tcase_add_test(tests, a_file_of_others_that_cannot_be_noted_is_found_later);
#endif
    tcase_add_test(tests, a_directory_that_cannot_be_listed_any_more_serves_what_it_has);
    tcase_add_test(tests, what_is_kept_in_memory_is_refused_as_cleanly);
    tcase_add_test(tests, what_cannot_be_a_name_is_refused_everywhere);
    tcase_add_test(tests, a_put_whose_condition_fails_at_the_end_leaves_nothing);
    tcase_add_test(tests, a_directory_that_cannot_be_opened_or_listed_is_said);
    tcase_add_loop_test(tests, without_a_watch_files_are_looked_at, 0, 3);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

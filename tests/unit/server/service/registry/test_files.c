/*
 * test_files.c: tests of server/service/registry/files.c: refusals of a directory of layers, and the files that remain in
 * it.
 */
#include "service/registry/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_main.h"

static char folder[] = "/tmp/layer_files_XXXXXX";
static struct layer_files *files;
static attn_arena *arena;

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(layer_files_open(folder, true, &files), 0);
    arena = attn_arena_create(1 << 20);
    ck_assert_ptr_nonnull(arena);
}

static void remove_folder(void)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    ck_assert_int_eq(rmdir(folder), 0);
    layer_files_close(files);
    attn_arena_destroy(arena);
}

static struct chunks content_of(const char *text)
{
    struct chunks content = chunks_begin(arena);
    chunks_text(&content, text);
    return content;
}

/* A draft of that text, mapped. */
static int write_draft(const char *text, struct layer_draft *draft)
{
    char digest[DIGEST_TEXT];
    const struct chunks content = content_of(text);
    *draft = (struct layer_draft){.fd = -1};
    return layer_files_write(files, &content, NULL, draft, digest);
}

static int keep(const char *name, const char *text)
{
    struct layer_draft draft;
    struct file_identity identity;
    bool is_renamed = false;
    int outcome = write_draft(text, &draft);
    if (outcome == 0)
        outcome = layer_files_commit(files, &draft, name, &identity, &is_renamed);
    file_bytes_release(&draft.bytes);
    return outcome;
}

static size_t entries(void)
{
    DIR *directory = opendir(folder);
    size_t count = 0;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 2; /* "." and ".." */
}

static int count_name(void *context, const char *name)
{
    size_t *count = context;
    ck_assert(layer_name_is_valid(name, strlen(name)));
    return ++*count == 100 ? ECANCELED : 0;
}

START_TEST(what_is_kept_is_found_whole)
{
    struct file_bytes bytes;
    struct file_identity first, second, mapped;
    size_t count = 0;
    ck_assert_int_eq(keep("a", "one"), 0);
    ck_assert_int_eq(layer_files_look(files, "a", &first), 0);
    ck_assert_int_eq(keep("a", "other"), 0);
    ck_assert_int_eq(layer_files_look(files, "a", &second), 0);
    ck_assert(!file_identity_equal(&first, &second));
    ck_assert_int_eq(layer_files_map(files, "a", &bytes, &mapped), 0);
    ck_assert(file_identity_equal(&second, &mapped));
    ck_assert(bytes.size == 5 && memcmp(bytes.at, "other", 5) == 0);
    file_bytes_release(&bytes);
    ck_assert_ptr_null(bytes.at);
    ck_assert_int_eq(layer_files_each(files, count_name, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(layer_files_remove(files, "a"), 0);
    ck_assert_int_eq(layer_files_remove(files, "a"), ENOENT);
    ck_assert_int_eq(layer_files_look(files, "a", &first), ENOENT);
    ck_assert_int_eq(layer_files_map(files, "a", &bytes, &mapped), ENOENT);
    ck_assert_uint_eq(entries(), 0);
}
END_TEST

START_TEST(what_is_no_layer_is_passed_over)
{
    struct file_identity identity;
    struct file_bytes bytes;
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/folder.safetensors", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(layer_files_look(files, "folder", &identity), ENOENT);
    ck_assert_int_eq(layer_files_map(files, "folder", &bytes, &identity), ENOENT);
    ck_assert_int_eq(rmdir(path), 0);
    snprintf(path, sizeof path, "%s/pipe.safetensors", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(layer_files_map(files, "pipe", &bytes, &identity), ENOENT);
    ck_assert_int_eq(unlink(path), 0);
    snprintf(path, sizeof path, "%s/notes.txt", folder);
    ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    ck_assert_int_eq(layer_files_each(files, count_name, &count), 0);
    ck_assert_uint_eq(count, 0);
    ck_assert(!layer_name_is_valid("", 0) && !layer_name_is_valid(".a", 2) && !layer_name_is_valid("a/b", 3) &&
              !layer_name_is_valid("a\0b", 3) && layer_name_is_valid("A.b_c-9", 7));
}
END_TEST

/* The caller may cancel each of these. */
START_TEST(a_search_ends_when_it_is_told_to)
{
    size_t count = 99;
    ck_assert_int_eq(keep("a", "1"), 0);
    ck_assert_int_eq(keep("b", "2"), 0);
    ck_assert_int_eq(layer_files_each(files, count_name, &count), ECANCELED);
    ck_assert_uint_eq(count, 100);
}
END_TEST

START_TEST(only_who_may_write_writes)
{
    struct layer_files *readers;
    struct layer_draft draft;
    ck_assert_int_eq(keep("a", "1"), 0);
    ck_assert_int_eq(layer_files_open(folder, false, &readers), 0);
    ck_assert_int_eq(layer_files_begin(readers, &draft), EROFS);
    ck_assert_int_eq(layer_files_remove(readers, "a"), EROFS);
    ck_assert_uint_eq(layer_files_sweep(readers), 0);
    layer_files_close(readers);
    ck_assert_int_eq(layer_files_open("/nowhere/at/all", true, &readers), ENOENT);
    layer_files_close(NULL);
    ck_assert_uint_eq(entries(), 1);
}
END_TEST

START_TEST(drafts_of_writers_that_are_gone_are_swept_and_no_others)
{
    struct layer_draft draft;
    struct file_identity identity;
    bool is_renamed;
    char path[64];
    snprintf(path, sizeof path, "%s/.attnd-1-1", folder);
    ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    ck_assert_int_eq(write_draft("text", &draft), 0);
    ck_assert(draft.bytes.size == 4 && memcmp(draft.bytes.at, "text", 4) == 0);
    ck_assert_uint_eq(entries(), 2);
    ck_assert_uint_eq(layer_files_sweep(files), 1);
    ck_assert_uint_eq(entries(), 1);
    ck_assert_int_eq(layer_files_commit(files, &draft, "kept", &identity, &is_renamed), 0);
    ck_assert(is_renamed);
    file_bytes_release(&draft.bytes);
    ck_assert_int_eq(layer_files_look(files, "kept", &identity), 0);
    ck_assert_uint_eq(entries(), 1);
}
END_TEST

START_TEST(a_draft_that_cannot_get_its_name_leaves_nothing)
{
    struct layer_draft draft;
    struct file_identity identity;
    bool is_renamed = true;
    char path[64];
    snprintf(path, sizeof path, "%s/taken.safetensors", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0); /* which no file can be renamed over */
    ck_assert_int_eq(write_draft("text", &draft), 0);
    ck_assert_int_ne(layer_files_commit(files, &draft, "taken", &identity, &is_renamed), 0);
    ck_assert(!is_renamed);
    file_bytes_release(&draft.bytes);
    ck_assert_uint_eq(entries(), 1);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(write_draft("text", &draft), 0);
    file_bytes_release(&draft.bytes);
    layer_files_discard(files, &draft);
    ck_assert_uint_eq(entries(), 0);
}
END_TEST

/* For any division into pieces, digest and file are those of the whole. */
START_TEST(pieces_of_a_draft_make_one_file_and_one_digest)
{
    enum { BYTES = 9 << 20, FIRST = 5000001 };
    struct layer_draft draft;
    uint8_t sum[DIGEST_BYTES];
    char digest[DIGEST_TEXT], wanted[DIGEST_TEXT], *content = malloc(BYTES);
    ck_assert_ptr_nonnull(content);
    for (size_t i = 0; i < BYTES; i++)
        content[i] = (char)(i * 2654435761u >> 13);
    struct chunks whole = chunks_begin(arena);
    chunks_borrow(&whole, content, 1000);
    chunks_borrow(&whole, content + 1000, FIRST);
    chunks_borrow(&whole, content + 1000 + FIRST, BYTES - 1000 - FIRST);
    ck_assert_int_eq(layer_files_begin(files, &draft), 0);
    ck_assert_int_eq(layer_files_append(&draft, content, FIRST), 0);
    ck_assert_int_eq(layer_files_append(&draft, content + FIRST, 0), 0);
    ck_assert_int_eq(layer_files_write(files, &whole, NULL, &draft, digest), 0);
    ck_assert(draft.bytes.size == BYTES && memcmp(draft.bytes.at, content, BYTES) == 0);
    digest_of(content, BYTES, sum);
    ck_assert_str_eq(digest, digest_write(sum, wanted));
    file_bytes_release(&draft.bytes);
    layer_files_discard(files, &draft);
    ck_assert_uint_eq(entries(), 0);
    free(content);
}
END_TEST

START_TEST(a_copy_in_memory_is_as_long_as_its_content)
{
    struct file_bytes bytes;
    struct chunks content = content_of("one");
    chunks_borrow(&content, "two", 3);
    ck_assert_int_eq(file_bytes_copy(&content, &bytes), 0);
    ck_assert(bytes.size == 6 && memcmp(bytes.at, "onetwo", 6) == 0);
    file_bytes_release(&bytes);
}
END_TEST

CHECK_MAIN("layer_files")
{
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, what_is_kept_is_found_whole);
    tcase_add_test(tests, what_is_no_layer_is_passed_over);
    tcase_add_test(tests, a_search_ends_when_it_is_told_to);
    tcase_add_test(tests, only_who_may_write_writes);
    tcase_add_test(tests, drafts_of_writers_that_are_gone_are_swept_and_no_others);
    tcase_add_test(tests, a_draft_that_cannot_get_its_name_leaves_nothing);
    tcase_add_test(tests, pieces_of_a_draft_make_one_file_and_one_digest);
    tcase_add_test(tests, a_copy_in_memory_is_as_long_as_its_content);
}

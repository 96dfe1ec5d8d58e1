/*
 * test_mapping.c: a mapped file that is truncated reads as zeros and is torn; pages that rest are read again; any
 * other fault ends the process.
 */
#include "base/mapping.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"
#include "check_main.h"

enum { PAGE = 4096, PAGES = 16, BYTES = PAGES * PAGE };

/* A file whose bytes are all 1. */
static int make_file(void)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    char ones[PAGE];
    memset(ones, 1, sizeof ones);
    for (int i = 0; i < PAGES; i++)
        ck_assert_uint_eq(fwrite(ones, 1, sizeof ones, file), sizeof ones);
    ck_assert_int_eq(fflush(file), 0);
    return fileno(file); /* open until the test ends */
}

static struct mapping *map(int fd)
{
    struct mapping *mapping;
    ck_assert_int_eq(mapping_add(fd, BYTES, &mapping), 0);
    return mapping;
}

static size_t sum_of(const struct mapping *mapping)
{
    const volatile unsigned char *bytes = mapping_bytes(mapping);
    size_t sum = 0;
    for (size_t i = 0; i < BYTES; i++)
        sum += bytes[i];
    return sum;
}

START_TEST(a_whole_file_reads_as_it_is)
{
    struct mapping *mapping = map(make_file());
    ck_assert_uint_eq(sum_of(mapping), BYTES);
    ck_assert(!mapping_is_torn(mapping));
    mapping_remove(mapping);
}
END_TEST

START_TEST(a_truncated_file_reads_as_zeros_and_is_torn)
{
    const int fd = make_file(), other = make_file();
    struct mapping *mapping = map(fd), *untouched = map(other);
    crash_report_to(NULL);
    ck_assert_int_eq(ftruncate(fd, PAGE), 0);
    ck_assert_uint_le(sum_of(mapping), PAGE); /* the page that is left was read before the fault */
    ck_assert(mapping_is_torn(mapping));
    ck_assert_uint_eq(sum_of(mapping), 0);
    ck_assert_int_eq(ftruncate(fd, BYTES), 0);
    ck_assert_uint_eq(sum_of(mapping), 0);
    ck_assert(!mapping_is_torn(untouched));
    ck_assert_uint_eq(sum_of(untouched), BYTES);
    mapping_remove(mapping);
    mapping_remove(untouched);
}
END_TEST

START_TEST(pages_that_rest_are_read_again)
{
    struct mapping *mapping = map(make_file());
    const char *bytes = mapping_bytes(mapping);
    const struct {
        size_t at, bytes;
    } parts[] = {{0, BYTES}, {3 * PAGE + 100, 2 * PAGE}, {BYTES - 1, 1}, {BYTES, 0}};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        mapping_rest(mapping, bytes + parts[i].at, parts[i].bytes);
        ck_assert_uint_eq(sum_of(mapping), BYTES);
    }
    mapping_remove(mapping);
}
END_TEST

START_TEST(an_entry_that_is_used_again_is_whole)
{
    const int fd = make_file();
    crash_report_to(NULL);
    for (int i = 0; i < 3; i++) {
        struct mapping *mapping = map(fd);
        ck_assert(!mapping_is_torn(mapping));
        ck_assert_uint_eq(sum_of(mapping), BYTES);
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        ck_assert_uint_eq(sum_of(mapping), 0);
        ck_assert(mapping_is_torn(mapping));
        mapping_remove(mapping);
        char ones[BYTES];
        memset(ones, 1, sizeof ones);
        ck_assert_int_eq(pwrite(fd, ones, sizeof ones, 0), BYTES);
    }
}
END_TEST

START_TEST(more_files_than_a_block_of_the_table_has_are_mended)
{
    enum { MANY = 600 };
    static struct mapping *mappings[MANY];
    const int fd = make_file();
    crash_report_to(NULL);
    for (size_t i = 0; i < MANY; i++)
        mappings[i] = map(fd);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    for (size_t i = 0; i < MANY; i++) {
        if (mapping_is_torn(mappings[i]))
            ck_abort_msg("mapping %zu is torn before it was read", i);
        if (sum_of(mappings[i]) != 0 || !mapping_is_torn(mappings[i]))
            ck_abort_msg("mapping %zu is not mended", i);
    }
    for (size_t i = 0; i < MANY; i++)
        mapping_remove(mappings[i]);
}
END_TEST

static void *read_whole(void *mapping)
{
    return (void *)(uintptr_t)sum_of(mapping);
}

START_TEST(threads_that_read_at_once_all_go_on)
{
    enum { THREADS = 8, ROUNDS = 20 };
    const int fd = make_file();
    crash_report_to(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        struct mapping *mapping = map(fd);
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, read_whole, mapping), 0);
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        for (size_t i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_eq(sum_of(mapping), 0);
        ck_assert(mapping_is_torn(mapping));
        mapping_remove(mapping);
        ck_assert_int_eq(ftruncate(fd, BYTES), 0);
    }
}
END_TEST

START_TEST(a_file_that_cannot_be_mapped_says_why)
{
    struct mapping *mapping;
    ck_assert_int_eq(mapping_add(-1, BYTES, &mapping), EBADF);
    ck_assert(!mapping_mend(NULL));
    ck_assert(!mapping_mend(&mapping));
}
END_TEST

/* ---- faults that are none of a mapped file ---- */

static int words[2];
/* Runs the function in a process of its own. Returns the signal that ended it, or 0 when a sanitizer reported it. */
static int death_of(void (*function)(void))
{
    char said[128] = "";
    int status;
    ck_assert_int_eq(pipe(words), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const struct log log = {.fd = words[1], .format = LOG_TEXT, .level = LOG_INFO};
        crash_report_to(&log);
        function();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    close(words[1]);
    ck_assert_int_gt(read(words[0], said, sizeof said - 1), 0);
    ck_assert_ptr_nonnull(strstr(said, "error crash signal=SIG"));
    close(words[0]);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_another_file(void)
{
    const int fd = make_file();
    const volatile char *bytes = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (ftruncate(fd, 0) == 0)
        (void)bytes[0];
}

static void read_a_file_that_is_unmapped(void)
{
    struct mapping *mapping = map(make_file());
    const volatile char *bytes = mapping_bytes(mapping);
    mapping_remove(mapping);
    (void)bytes[0];
}

static void raise_sigbus(void)
{
    raise(SIGBUS);
}

START_TEST(any_other_fault_ends_the_process_after_its_last_words)
{
    const int of_another = death_of(read_another_file), of_unmapped = death_of(read_a_file_that_is_unmapped),
              of_sent = death_of(raise_sigbus), of_abort = death_of(abort);
    ck_assert(of_another == SIGBUS || of_another == 0);
    ck_assert(of_unmapped == SIGSEGV || of_unmapped == 0);
    ck_assert(of_sent == SIGBUS || of_sent == 0);
    ck_assert(of_abort == SIGABRT || of_abort == 0);
}
END_TEST

CHECK_MAIN("mapping")
{
    tcase_add_test(tests, a_whole_file_reads_as_it_is);
    tcase_add_test(tests, a_truncated_file_reads_as_zeros_and_is_torn);
    tcase_add_test(tests, pages_that_rest_are_read_again);
    tcase_add_test(tests, an_entry_that_is_used_again_is_whole);
    tcase_add_test(tests, more_files_than_a_block_of_the_table_has_are_mended);
    tcase_add_test(tests, threads_that_read_at_once_all_go_on);
    tcase_add_test(tests, a_file_that_cannot_be_mapped_says_why);
    tcase_add_test(tests, any_other_fault_ends_the_process_after_its_last_words);
}

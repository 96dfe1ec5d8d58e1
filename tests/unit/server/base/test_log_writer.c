/*
 * test_log_writer.c: a separate thread writes every line, complete and in order; and a log without a reader delays
 * nothing.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_writer.h"
#include "check_main.h"

enum { PATIENCE_MS = 30000, SHORT_MS = 20 };

static struct log log_to(int fd)
{
    struct log log = {.fd = fd, .format = LOG_TEXT, .level = LOG_INFO};
    log.writer = log_writer_start(fd);
    ck_assert_ptr_nonnull(log.writer);
    return log;
}

static void make_pipe(int ends[2])
{
    ck_assert_int_eq(pipe(ends), 0);
}

/* The next line; false at the end. */
static bool next_line(FILE *lines, char line[LOG_LINE_MAX])
{
    if (fgets(line, LOG_LINE_MAX, lines) == NULL)
        return false;
    ck_assert_ptr_nonnull(strchr(line, '\n'));
    return true;
}

/* ---- order ---- */

enum { TELLERS = 4, TOLD = 3000 };

struct teller {
    const struct log *log;
    unsigned number;
};

static void *tell(void *argument)
{
    const struct teller *teller = argument;
    for (unsigned i = 0; i < TOLD; i++)
        log_say(teller->log, LOG_INFO, "teller %u line %u", teller->number, i);
    return NULL;
}

START_TEST(lines_of_several_threads_are_all_there_each_in_its_order)
{
    FILE *file = tmpfile();
    const struct log log = log_to(fileno(file));
    struct teller tellers[TELLERS];
    pthread_t threads[TELLERS];
    for (unsigned t = 0; t < TELLERS; t++) {
        tellers[t] = (struct teller){&log, t};
        ck_assert_int_eq(pthread_create(&threads[t], NULL, tell, &tellers[t]), 0);
    }
    for (unsigned t = 0; t < TELLERS; t++)
        pthread_join(threads[t], NULL);
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    unsigned next[TELLERS] = {0}, teller, number;
    char line[LOG_LINE_MAX];
    rewind(file);
    while (next_line(file, line)) {
        ck_assert_int_eq(sscanf(line, "%*s info teller %u line %u", &teller, &number), 2);
        ck_assert_uint_lt(teller, TELLERS);
        ck_assert_uint_eq(number, next[teller]++);
    }
    for (unsigned t = 0; t < TELLERS; t++)
        ck_assert_uint_eq(next[t], TOLD);
    fclose(file);
}
END_TEST

START_TEST(a_line_does_not_wait_for_another)
{
    int ends[2];
    char text[LOG_LINE_MAX] = "";
    make_pipe(ends);
    const struct log log = log_to(ends[1]);
    log_say(&log, LOG_INFO, "alone");
    ck_assert_int_gt(read(ends[0], text, sizeof text - 1), 0); /* returns as soon as there is something */
    ck_assert_ptr_nonnull(strstr(text, " info alone\n"));
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(what_was_put_is_written_after_a_flush)
{
    FILE *file = tmpfile();
    const struct log log = log_to(fileno(file));
    log_writer_flush(NULL, PATIENCE_MS);
    for (long before = 0, i = 0; i < 20; i++) {
        log_say(&log, LOG_INFO, "once more");
        log_writer_flush(log.writer, PATIENCE_MS);
        const long now = lseek(fileno(file), 0, SEEK_END);
        ck_assert_int_gt(now, before);
        before = now;
    }
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    fclose(file);
}
END_TEST

/* Each write arrives as one packet. */
START_TEST(a_write_is_whole_lines_and_no_more_than_a_pipe_takes_at_once)
{
    enum { LINES = 1000 };
    int ends[2];
    size_t lines = 0, packets = 0;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const struct log log = log_to(ends[1]);
    for (unsigned i = 0; i < LINES; i++)
        log_say(&log, LOG_INFO, "%*u", (int)(i % 700), i);
    for (char packet[2 * PIPE_BUF]; lines < LINES; packets++) {
        const ssize_t length = recv(ends[0], packet, sizeof packet, 0);
        ck_assert_int_gt(length, 0);
        ck_assert_int_le(length, PIPE_BUF);
        ck_assert_int_eq(packet[length - 1], '\n');
        for (ssize_t at = 0; at < length; at++)
            lines += packet[at] == '\n';
    }
    ck_assert_uint_eq(lines, LINES);
    ck_assert_uint_lt(packets, LINES);
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- a log that is not read ---- */

struct found {
    int fd;
    unsigned lines, lost;
};

/* Lines in rising order, and in the end how many of those between are missing. */
static void *read_on(void *argument)
{
    struct found *found = argument;
    FILE *lines = fdopen(found->fd, "r");
    char line[LOG_LINE_MAX];
    for (unsigned number, next = 0; next_line(lines, line);) {
        const char *lost = strstr(line, " warn lines of the log were lost");
        if (lost != NULL && sscanf(strchr(lost, '='), "=%u", &number) == 1) {
            found->lost += number;
            continue;
        }
        ck_assert_int_eq(sscanf(line, "%*s info line %u", &number), 1);
        ck_assert_uint_ge(number, next);
        next = number + 1;
        found->lines++;
    }
    fclose(lines);
    return NULL;
}

START_TEST(a_log_that_is_not_read_holds_up_nobody_and_says_what_is_missing)
{
    enum { LINES = 40000 };
    int ends[2];
    pthread_t reader;
    make_pipe(ends);
    const struct log log = log_to(ends[1]);
    for (unsigned i = 0; i < LINES; i++) /* much more than what waits for a reader: this returns all the same */
        log_say(&log, LOG_INFO, "line %u %500s", i, "");
    struct found found = {.fd = ends[0]};
    ck_assert_int_eq(pthread_create(&reader, NULL, read_on, &found), 0);
    log_writer_flush(log.writer, PATIENCE_MS);
    log_say(&log, LOG_INFO, "line %u", LINES); /* the next line that finds room brings the notice */
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    close(ends[1]);
    pthread_join(reader, NULL);
    ck_assert_uint_gt(found.lost, 0);
    ck_assert_uint_eq(found.lines + found.lost, LINES + 1);
}
END_TEST

START_TEST(the_end_does_not_wait_for_ever_for_a_reader)
{
    enum { LINES = 1000 };
    int ends[2];
    pthread_t reader;
    make_pipe(ends);
    const struct log log = log_to(ends[1]);
    for (unsigned i = 0; i < LINES; i++)
        log_say(&log, LOG_INFO, "line %u %500s", i, "");
    log_writer_flush(log.writer, SHORT_MS);
    ck_assert(!log_writer_stop(log.writer, SHORT_MS));
    struct found found = {.fd = ends[0]};
    ck_assert_int_eq(pthread_create(&reader, NULL, read_on, &found), 0);
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS)); /* once it is read, nothing was lost */
    close(ends[1]);
    pthread_join(reader, NULL);
    ck_assert_uint_eq(found.lines, LINES);
}
END_TEST

START_TEST(a_log_that_cannot_be_written_is_done_without)
{
    const int fd = open("/dev/full", O_WRONLY);
    ck_assert_int_ge(fd, 0);
    const struct log log = log_to(fd);
    for (unsigned i = 0; i < 100; i++)
        log_say(&log, LOG_INFO, "line %u", i);
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    ck_assert(log_writer_stop(NULL, PATIENCE_MS));
    close(fd);
}
END_TEST

/* ---- a full disk ---- */

enum { FULL_AT = 5000, LINES_TOLD = 200 };

/* Files end at that many bytes, as on a full disk. Until then, a write is short. */
static void files_end_at(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void tell_lines(const struct log *log, unsigned first)
{
    for (unsigned i = first; i < first + LINES_TOLD; i++)
        log_say(log, LOG_INFO, "line %u", i);
    log_writer_flush(log->writer, PATIENCE_MS);
}

/* Reads the lines of the file, which are whole and in order, and adds them to found. */
static void read_file(int fd, struct found *found)
{
    found->fd = dup(fd);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    read_on(found);
}

START_TEST(lines_that_a_full_disk_does_not_take_are_counted_and_none_is_torn)
{
    FILE *file = tmpfile();
    struct found found = {.lines = 0};
    ck_assert_int_eq(fcntl(fileno(file), F_SETFL, O_APPEND), 0);
    const struct log log = log_to(fileno(file));
    for (unsigned round = 0; round < 3; round++) {
        const long size = lseek(fileno(file), 0, SEEK_END);
        files_end_at((rlim_t)(size + FULL_AT + round));
        tell_lines(&log, 2 * round * LINES_TOLD);
        ck_assert_uint_gt(log_writer_lost(log.writer), 0);
        files_end_at(RLIM_INFINITY);
        tell_lines(&log, (2 * round + 1) * LINES_TOLD);
    }
    const uint64_t lost = log_writer_lost(log.writer);
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    read_file(fileno(file), &found);
    ck_assert_uint_eq(found.lost, lost);
    ck_assert_uint_eq(found.lines + found.lost, 6 * LINES_TOLD);
    fclose(file);
}
END_TEST

/* The log continues in another file, or in the same one, which was truncated. */
START_TEST(a_new_file_does_not_begin_with_the_rest_of_a_line)
{
    char paths[2][32] = {"/tmp/attnd-log-XXXXXX", "/tmp/attnd-log-XXXXXX"};
    close(mkstemp(paths[0]));
    close(mkstemp(paths[1]));
    for (unsigned round = 0; round < 2; round++) {
        struct found found = {.lines = 0};
        const int fd = open(paths[0], O_RDWR | O_APPEND), other = open(paths[round], O_RDWR);
        const struct log log = log_to(fd);
        files_end_at(FULL_AT);
        tell_lines(&log, 0);
        files_end_at(RLIM_INFINITY);
        ck_assert_int_eq(lseek(fd, 0, SEEK_END), FULL_AT);
        ck_assert_int_eq(ftruncate(other, 0), 0);
        ck_assert(log_open_again(fd, paths[round]));
        tell_lines(&log, LINES_TOLD);
        ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
        read_file(other, &found);
        ck_assert_uint_eq(found.lines, LINES_TOLD);
        ck_assert_uint_gt(found.lost, 0);
        close(fd);
        close(other);
        ck_assert_int_eq(truncate(paths[0], 0), 0);
    }
    unlink(paths[0]);
    unlink(paths[1]);
}
END_TEST

/* Also where writing says "not now": a pipe that somebody else has made so. */
START_TEST(a_log_that_does_not_block_is_waited_for)
{
    enum { LINES = 3000 };
    int ends[2];
    pthread_t reader;
    make_pipe(ends);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    const struct log log = log_to(ends[1]);
    for (unsigned i = 0; i < LINES; i++)
        log_say(&log, LOG_INFO, "line %u %500s", i, "");
    struct found found = {.fd = ends[0]};
    ck_assert_int_eq(pthread_create(&reader, NULL, read_on, &found), 0);
    ck_assert(log_writer_stop(log.writer, PATIENCE_MS));
    close(ends[1]);
    pthread_join(reader, NULL);
    ck_assert_uint_eq(found.lines, LINES);
}
END_TEST

CHECK_MAIN("log_writer")
{
    tcase_add_test(tests, lines_of_several_threads_are_all_there_each_in_its_order);
    tcase_add_test(tests, a_line_does_not_wait_for_another);
    tcase_add_test(tests, what_was_put_is_written_after_a_flush);
    tcase_add_test(tests, a_write_is_whole_lines_and_no_more_than_a_pipe_takes_at_once);
    tcase_add_test(tests, a_log_that_is_not_read_holds_up_nobody_and_says_what_is_missing);
    tcase_add_test(tests, the_end_does_not_wait_for_ever_for_a_reader);
    tcase_add_test(tests, a_log_that_cannot_be_written_is_done_without);
    tcase_add_test(tests, lines_that_a_full_disk_does_not_take_are_counted_and_none_is_torn);
    tcase_add_test(tests, a_new_file_does_not_begin_with_the_rest_of_a_line);
    tcase_add_test(tests, a_log_that_does_not_block_is_waited_for);
}

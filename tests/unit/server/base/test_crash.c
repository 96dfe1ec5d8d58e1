/*
 * test_crash.c: a process that dies of a fault writes the signal and the request of the thread with the fault.
 */
#include "base/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log_writer.h"
#include "check_main.h"

static struct log log_of_child = {.level = LOG_INFO};

/* Runs the function in a process of its own, with a log to a pipe. said receives the whole log. */
static int death_of(void (*function)(void), log_format format, char said[LOG_LINE_MAX])
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        log_of_child.fd = ends[1];
        log_of_child.format = format;
        log_of_child.writer = log_writer_start(ends[1]);
        crash_report_to(&log_of_child);
        log_say(&log_of_child, LOG_INFO, "before");
        function();
        _exit(0);
    }
    close(ends[1]);
    FILE *log = fdopen(ends[0], "r");
    said[fread(said, 1, LOG_LINE_MAX - 1, log)] = '\0';
    fclose(log);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) != 0); /* a sanitizer exits */
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void ends_with(const char *said, const char *end)
{
    const size_t length = strlen(said), more = strlen(end);
    ck_assert_msg(length >= more && strcmp(said + length - more, end) == 0, "%s", said);
}

static void die_in_a_request(void)
{
    crash_request_begins("5f", "/v1/attention?key=secret");
    raise(SIGSEGV);
}

static void die_after_a_request(void)
{
    crash_request_begins("5f", "/v1/attention");
    crash_request_ends();
    abort();
}

static void *raise_fpe(void *unused)
{
    raise(SIGFPE);
    return unused;
}

static void die_in_another_thread(void)
{
    pthread_t thread;
    crash_request_begins("5f", "/v1/attention");
    if (pthread_create(&thread, NULL, raise_fpe, NULL) == 0)
        pthread_join(thread, NULL);
}

static int overflow(size_t depth)
{
    volatile char room[4096];
    room[depth % sizeof room] = 1;
    return depth > 0 ? overflow(depth - 1) + room[depth % sizeof room] : 0;
}

static void *overflow_in_a_request(void *unused)
{
    crash_request_begins("a1", "/v1/models/m/tokens");
    (void)overflow(SIZE_MAX);
    return unused;
}

static void die_of_a_full_stack(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, overflow_in_a_request, NULL) == 0)
        pthread_join(thread, NULL);
}

START_TEST(the_line_has_the_signal_and_the_request)
{
    char said[LOG_LINE_MAX];
    const int signal_number = death_of(die_in_a_request, LOG_TEXT, said);
    ck_assert(signal_number == SIGSEGV || signal_number == 0);
    ck_assert_ptr_nonnull(strstr(said, " info before\n")); /* lines before it are not lost */
    ends_with(said, " error crash signal=SIGSEGV id=5f path=/v1/attention\n");
    death_of(die_in_a_request, LOG_JSON, said);
    ends_with(said, "\"level\":\"error\",\"message\":\"crash\",\"signal\":\"SIGSEGV\",\"id\":\"5f\","
                    "\"path\":\"/v1/attention\"}\n");
}
END_TEST

START_TEST(a_thread_without_a_request_names_none)
{
    char said[LOG_LINE_MAX];
    const int signal_number = death_of(die_after_a_request, LOG_TEXT, said);
    ck_assert(signal_number == SIGABRT || signal_number == 0);
    ends_with(said, " error crash signal=SIGABRT\n");
    death_of(die_in_another_thread, LOG_TEXT, said);
    ends_with(said, " error crash signal=SIGFPE\n");
}
END_TEST

START_TEST(a_full_stack_has_its_line)
{
    char said[LOG_LINE_MAX];
    const int signal_number = death_of(die_of_a_full_stack, LOG_TEXT, said);
    ck_assert(signal_number == SIGSEGV || signal_number == 0);
    ends_with(said, " error crash signal=SIGSEGV id=a1 path=/v1/models/m/tokens\n");
}
END_TEST

CHECK_MAIN("crash")
{
    tcase_add_test(tests, the_line_has_the_signal_and_the_request);
    tcase_add_test(tests, a_thread_without_a_request_names_none);
    tcase_add_test(tests, a_full_stack_has_its_line);
}

/*
 * test_machine.c: tests of server/base/machine.c and memory.c, and of server/program/supervisor.c: the limits of the
 * machine and its control groups, and messages to the service manager. Files of the system are simulated: fopen and
 * sched_getaffinity replace those of the C library.
 */
#undef _FORTIFY_SOURCE /* whose forms of these calls are inline, and could not be defined anew */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "check_main.h"
#include "program/commands.h"

enum { FILES_MAX = 6, MACHINE_CPUS = 8 };

struct file {
    const char *path, *text; /* text NULL: there is no such file */
};

static struct file files[FILES_MAX];
static int affinity = MACHINE_CPUS; /* negative: it cannot be told */

FILE *fopen(const char *path, const char *mode)
{
    for (size_t i = 0; i < FILES_MAX && files[i].path != NULL; i++)
        if (strcmp(files[i].path, path) == 0)
            return files[i].text != NULL ? fmemopen((void *)(size_t)files[i].text, strlen(files[i].text), "r") : NULL;
    if (strncmp(path, "/sys/", 5) == 0 || strncmp(path, "/proc/", 6) == 0)
        return NULL;
    const int fd = open(path, mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT, 0600);
    return fd >= 0 ? fdopen(fd, mode) : NULL;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    (void)process;
    errno = EINVAL;
    if (affinity > 8 * (int)size)
        return -1;
    errno = EPERM;
    memset(set, 0, size);
    for (size_t i = 0; affinity > 0 && i < (size_t)affinity; i++)
        CPU_SET_S(i, size, set);
    return affinity < 0 ? -1 : 0;
}

#define GROUP "/proc/self/cgroup"
#define V2    "/sys/fs/cgroup"
#define V1    "/sys/fs/cgroup/cpu"

static const struct {
    int affinity;
    struct file files[FILES_MAX];
    size_t cpus;
} machines[] = {
    {8, {{NULL, NULL}}, 8},
    {-1, {{NULL, NULL}}, 1},
    {0, {{NULL, NULL}}, 1},
    {8, {{GROUP, "0::/a/b\n"}, {V2 "/a/b/cpu.max", "max 100000\n"}}, 8},
    {8, {{GROUP, "0::/a/b\n"}, {V2 "/a/b/cpu.max", "150000 100000\n"}}, 2},
    {8, {{GROUP, "0::/a/b\n"}, {V2 "/a/cpu.max", "100000 100000\n"}, {V2 "/a/b/cpu.max", "300000 100000\n"}}, 1},
    {8, {{GROUP, "0::/\n"}, {V2 "/cpu.max", "300000 100000\n"}}, 3},
    {2, {{GROUP, "0::/a\n"}, {V2 "/a/cpu.max", "300000 100000\n"}}, 2},
    {8, {{GROUP, "0::/a\n"}, {V2 "/a/cpu.max", "0 100000\n"}}, 8},
    {8, {{GROUP, "0::/a\n"}, {V2 "/a/cpu.max", "100000 0\n"}}, 8},
    {8, {{GROUP, "0::/a\n"}, {V2 "/a/cpu.max", ""}}, 8},
    {8,
     {{GROUP, "3:cpuset:/a\n2:cpu,cpuacct:/a\n"},
      {V1 "/a/cpu.cfs_quota_us", "250000\n"},
      {V1 "/a/cpu.cfs_period_us", "100000\n"}},
     3},
    {8,
     {{GROUP, "2:cpu,cpuacct:/a\n"}, {V1 "/a/cpu.cfs_quota_us", "-1\n"}, {V1 "/a/cpu.cfs_period_us", "100000\n"}},
     8},
    {8, {{GROUP, "2:cpu:/a\n"}, {V1 "/a/cpu.cfs_quota_us", "100000\n"}}, 8},
    {8, {{GROUP, "2:cpu:/a\n"}, {V1 "/a/cpu.cfs_quota_us", "many\n"}}, 8},
    {8, {{GROUP, "2:cpu:/a\n"}, {V1 "/a/cpu.cfs_quota_us", "1\n"}, {V1 "/a/cpu.cfs_period_us", "x\n"}}, 8},
    {8, {{GROUP, "nonsense\n1:half\n"}}, 8},
};

START_TEST(processors_are_those_of_the_scheduler_within_every_quota)
{
    memcpy(files, machines[_i].files, sizeof files);
    affinity = machines[_i].affinity;
    ck_assert_uint_eq(machine_processors(), machines[_i].cpus);
}
END_TEST

START_TEST(a_machine_may_have_more_processors_than_a_set_of_the_usual_size)
{
    files[0].path = NULL;
    affinity = 3000;
    ck_assert_uint_eq(machine_processors(), 3000);
}
END_TEST

#define V1_MEMORY "/sys/fs/cgroup/memory"

static const struct {
    struct file files[FILES_MAX];
    uint64_t bytes; /* 0: the machine's */
} memories[] = {
    {{{NULL, NULL}}, 0},
    {{{GROUP, "0::/a\n"}, {V2 "/a/memory.max", "max\n"}}, 0},
    {{{GROUP, "0::/a\n"}, {V2 "/a/memory.max", "0\n"}}, 0},
    {{{GROUP, "0::/a\n"}, {V2 "/a/memory.max", "18446744073709551615\n"}}, 0},
    {{{GROUP, "0::/\n"}, {V2 "/memory.max", "1048576\n"}}, 1 << 20},
    {{{GROUP, "0::/a/b\n"}, {V2 "/a/b/memory.max", "1048576\n"}}, 1 << 20},
    {{{GROUP, "0::/a/b\n"}, {V2 "/a/memory.max", "1048576\n"}, {V2 "/a/b/memory.max", "2097152\n"}}, 1 << 20},
    {{{GROUP, "0::/a/b\n"}, {V2 "/a/memory.max", "2097152\n"}, {V2 "/a/b/memory.max", "1048576\n"}}, 1 << 20},
    /* A container sees the path of its host, and its own group as the root. */
    {{{GROUP, "4:memory:/docker/x\n"}, {V1_MEMORY "/memory.limit_in_bytes", "2097152\n"}}, 2 << 20},
    {{{GROUP, "5:cpu:/b\n4:memory:/a\n0::/\n"},
      {V1_MEMORY "/a/memory.limit_in_bytes", "1048576\n"},
      {V1_MEMORY "/b/memory.limit_in_bytes", "4096\n"},
      {V1_MEMORY "/memory.limit_in_bytes", "9223372036854771712\n"}},
     1 << 20},
    {{{GROUP, "nonsense\n4:memory\n"}, {V1_MEMORY "/memory.limit_in_bytes", "1048576\n"}}, 0},
};

START_TEST(memory_is_that_of_the_machine_within_every_limit)
{
    files[0].path = NULL;
    const uint64_t machine = machine_memory_bytes();
    ck_assert_uint_gt(machine, 1 << 24);
    memcpy(files, memories[_i].files, sizeof files);
    ck_assert_uint_eq(machine_memory_bytes(), memories[_i].bytes > 0 ? memories[_i].bytes : machine);
}
END_TEST

static struct memory_division divided(struct memory_division division)
{
    char message[320] = "";
    ck_assert_msg(memory_divide(&division, message, sizeof message), "%s", message);
    ck_assert_uint_le(division.process_bytes + division.heap_bytes + division.connections_bytes +
                          division.layers_bytes + division.caches_bytes + division.prepared_bytes +
                          division.models_bytes + division.requests_bytes,
                      division.total);
    ck_assert_uint_lt(division.largest_request_bytes, division.requests_bytes);
    return division;
}

START_TEST(the_parts_of_the_memory_are_never_more_than_the_whole)
{
    static const uint64_t mib = 1 << 20;
    struct memory_division asked = {.io_threads = 2,
                                    .compute_threads = 2,
                                    .connections = 1000,
                                    .layers_bytes = MEMORY_AUTO,
                                    .caches_bytes = MEMORY_AUTO,
                                    .prepared_bytes = MEMORY_AUTO};
    for (asked.total = 48 * mib; asked.total < (uint64_t)1 << 44; asked.total += asked.total / 3) {
        const struct memory_division division = divided(asked);
        ck_assert_uint_ge(division.requests_bytes,
                          (division.total - division.process_bytes - division.models_bytes) / 2);
        ck_assert_uint_le(division.connections, 1000);
        ck_assert_uint_ge(division.connections_bytes, memory_places(division.connections) * MEMORY_CONNECTION_BYTES);
    }
    asked.total = 256 * mib;
    ck_assert_uint_lt(divided(asked).connections, 300);
    asked.caches_bytes = 100 * mib;
    ck_assert_uint_eq(divided(asked).caches_bytes, 100 * mib);
    asked.total = 1024 * mib;
    ck_assert_uint_eq(divided(asked).connections, 1000);
    const struct memory_division without = divided(asked);
    asked.has_models = true;
    const struct memory_division with = divided(asked);
    ck_assert_uint_ge(with.models_bytes, 240 * mib);
    ck_assert_uint_eq(with.models_bytes + with.requests_bytes, without.models_bytes + without.requests_bytes);
    ck_assert_uint_eq(with.caches_bytes, without.caches_bytes);
}
END_TEST

START_TEST(memory_that_leaves_nothing_for_requests_is_refused)
{
    char message[320] = "";
    struct memory_division division = {
        .total = 256 << 20, .io_threads = 2, .compute_threads = 2, .connections = 1, .caches_bytes = 250 << 20};
    ck_assert(!memory_divide(&division, message, sizeof message));
    ck_assert_msg(strstr(message, "256 MiB are too few: the process takes 28 MiB with 4 threads") != NULL &&
                      strstr(message, "caches 250 MiB") != NULL,
                  "%s", message);
    division = (struct memory_division){.total = 1, .io_threads = 1, .compute_threads = 1, .connections = 1};
    ck_assert(!memory_divide(&division, message, sizeof message));
}
END_TEST

START_TEST(compute_threads_have_a_quarter_of_the_memory)
{
    ck_assert_uint_eq(memory_compute_threads(256 << 20), 32);
    ck_assert_uint_eq(memory_compute_threads(1), 1);
}
END_TEST

START_TEST(memory_that_comes_and_is_not_in_use_is_noticed)
{
    static struct file statm = {"/proc/self/statm", "9000 3000 1000 1 0 5000 0\n"};
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct memory_growth growth = {.bound_bytes = 500 * page};
    files[0] = statm;
    files[1].path = NULL;
    ck_assert(!memory_has_grown(&growth, 0));
    files[0].text = "9000 3500 1000 1 0 5000 0\n";
    ck_assert(!memory_has_grown(&growth, 0));
    files[0].text = "9000 3501 1000 1 0 5000 0\n";
    ck_assert(memory_has_grown(&growth, 0));
    ck_assert(!memory_has_grown(&growth, page)); /* a page of it is in use */
    memory_growth_is_dealt_with(&growth, 0);
    ck_assert(!memory_has_grown(&growth, 0));
    files[0].text = "9000 1000 1000 1 0 5000 0\n";
    ck_assert(!memory_has_grown(&growth, 0)); /* from here on */
    files[0].text = "9000 1501 1000 1 0 5000 0\n";
    ck_assert(memory_has_grown(&growth, 0));
    files[0].text = "nonsense";
    ck_assert(!memory_has_grown(&growth, 0));
}
END_TEST

/* ---- the service manager ---- */

/* A socket of that name, "@…" an abstract one. */
static int listen_as(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(fd, 0);
    memcpy(address.sun_path, name, strlen(name));
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

static void expect_said(int fd, const char *begin)
{
    char text[128] = "";
    ck_assert_int_gt(recv(fd, text, sizeof text - 1, 0), 0);
    ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
}

START_TEST(a_manager_is_told_how_the_service_is)
{
    char path[64];
    snprintf(path, sizeof path, _i == 0 ? "/tmp/notify_%ld" : "@notify_%ld", (long)getpid());
    const int fd = listen_as(path);
    supervisor_ready();
    expect_said(fd, "READY=1\n");
    supervisor_reloading();
    expect_said(fd, "RELOADING=1\nMONOTONIC_USEC=");
    supervisor_alive();
    expect_said(fd, "WATCHDOG=1\n");
    supervisor_stopping();
    expect_said(fd, "STOPPING=1\n");
    close(fd);
    if (_i == 0)
        ck_assert_int_eq(unlink(path), 0);
    supervisor_ready(); /* nobody listens */
}
END_TEST

START_TEST(where_no_manager_can_listen_nothing_is_said)
{
    char too_long[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "/";
    memset(too_long + 1, 'a', sizeof too_long - 2);
    const char *const names[] = {"relative", "vsock:2:1234", too_long};
    unsetenv("NOTIFY_SOCKET");
    supervisor_ready();
    for (size_t i = 0; i < COUNT(names); i++) {
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", names[i], 1), 0);
        supervisor_ready();
    }
}
END_TEST

START_TEST(a_sign_of_life_is_given_twice_as_often_as_asked)
{
    static const struct {
        const char *interval, *pid; /* pid "" : ours */
        int every_ms;
    } cases[] = {
        {NULL, NULL, -1},        {"0", NULL, -1},       {"soon", NULL, -1},
        {"2000000", NULL, 1000}, {"2000000", "", 1000}, {"2000000", "1", -1},
        {"2000000", "x", -1},    {"100", NULL, 1},      {"18446744073709551615", NULL, INT_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char own[32];
        snprintf(own, sizeof own, "%ld", (long)getpid());
        unsetenv("WATCHDOG_USEC");
        unsetenv("WATCHDOG_PID");
        if (cases[i].interval != NULL)
            ck_assert_int_eq(setenv("WATCHDOG_USEC", cases[i].interval, 1), 0);
        if (cases[i].pid != NULL)
            ck_assert_int_eq(setenv("WATCHDOG_PID", cases[i].pid[0] == '\0' ? own : cases[i].pid, 1), 0);
        ck_assert_int_eq(supervisor_alive_every_ms(), cases[i].every_ms);
    }
}
END_TEST

CHECK_MAIN("machine")
{
    tcase_add_loop_test(tests, processors_are_those_of_the_scheduler_within_every_quota, 0, COUNT(machines));
    tcase_add_loop_test(tests, memory_is_that_of_the_machine_within_every_limit, 0, COUNT(memories));
    tcase_add_test(tests, the_parts_of_the_memory_are_never_more_than_the_whole);
    tcase_add_test(tests, memory_that_leaves_nothing_for_requests_is_refused);
    tcase_add_test(tests, compute_threads_have_a_quarter_of_the_memory);
    tcase_add_test(tests, memory_that_comes_and_is_not_in_use_is_noticed);
    tcase_add_test(tests, a_machine_may_have_more_processors_than_a_set_of_the_usual_size);
    tcase_add_loop_test(tests, a_manager_is_told_how_the_service_is, 0, 2);
    tcase_add_test(tests, where_no_manager_can_listen_nothing_is_said);
    tcase_add_test(tests, a_sign_of_life_is_given_twice_as_often_as_asked);
}

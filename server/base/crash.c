/*
 * crash.c: takes faults, and writes the last line of a process that dies of one. What runs in the handler calls only
 * functions that a signal handler may call.
 */
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log_writer.h"
#include "base/mapping.h"
#include "base/text.h"

enum { PATIENCE_MS = 2000, STACK_BYTES = 64 << 10 };

/* The request of a thread. The handler reads it in the same thread. */
static _Thread_local struct {
    volatile sig_atomic_t is_running;
    bool has_stack;
    char id[160], path[512];
} request;

/* The log that gets the line; NULL: none. A handler has no argument, so this is static. */
static const struct log *reported;

static struct {
    int number;
    const char *name;
    struct sigaction before; /* the default, or the handler of a sanitizer */
} faults[] = {{.number = SIGABRT, .name = "SIGABRT"},
              {.number = SIGSEGV, .name = "SIGSEGV"},
              {.number = SIGBUS, .name = "SIGBUS"},
              {.number = SIGFPE, .name = "SIGFPE"},
              {.number = SIGILL, .name = "SIGILL"}};

static size_t place_of(int number)
{
    size_t i = 0;
    while (i + 1 < ARRAY_LENGTH(faults) && faults[i].number != number)
        i++;
    return i;
}

/* No other thread changes the log any more: its writer has ended, or is stuck with a slow reader. */
static void say_crash(const struct log *log, int number)
{
    struct log direct = *log;
    struct log_line line;
    if (log->writer != NULL)
        log_writer_finish(log->writer, PATIENCE_MS);
    direct.writer = NULL;
    log_begin(&line, &direct, LOG_ERROR, "crash");
    log_text(&line, "signal", faults[place_of(number)].name);
    if (request.is_running) {
        log_text(&line, "id", request.id);
        log_text(&line, "path", request.path);
    }
    if (poll(&(struct pollfd){.fd = log->fd, .events = POLLOUT}, 1, PATIENCE_MS) == 1)
        log_end(&line);
}

/*
 * The first thread that fails writes the line; other threads wait until the process ends. Then the signal comes again
 * and ends the process as usual: the processor runs the instruction with the fault once more, and a signal that a
 * program sent is raised.
 */
static void die(int number, bool is_sent)
{
    static atomic_flag is_dying = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&is_dying))
        pause();
    if (reported != NULL)
        say_crash(reported, number);
    (void)sigaction(number, &faults[place_of(number)].before, NULL);
    if (is_sent)
        raise(number);
}

static void take_fault(int number, siginfo_t *info, void *context)
{
    const int saved = errno;
    const bool is_sent = info->si_code <= 0;
    (void)context;
    if (number != SIGBUS || is_sent || !mapping_mend(info->si_addr))
        die(number, is_sent);
    errno = saved;
}

static void take_faults(void)
{
    struct sigaction action = {.sa_sigaction = take_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask); /* a fault in the handler ends the process at once */
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        sigaddset(&action.sa_mask, faults[i].number);
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        (void)sigaction(faults[i].number, &action, &faults[i].before);
}

void crash_report_to(const struct log *log)
{
    static bool has_taken;
    reported = log;
    if (!has_taken)
        take_faults();
    has_taken = true;
}

/* The stack is never given back: threads that compute live as long as the process. A sanitizer's stack is kept. */
static void give_stack(void)
{
    stack_t stack;
    request.has_stack = true;
    if (sigaltstack(NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0)
        return;
    void *at = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    stack = (stack_t){.ss_sp = at, .ss_size = STACK_BYTES};
    (void)sigaltstack(&stack, NULL);
}

void crash_request_begins(const char *id, const char *path)
{
    const size_t length = strcspn(path, "?") + 1;
    if (!request.has_stack)
        give_stack();
    text_copy(request.id, sizeof request.id, id);
    text_copy(request.path, length < sizeof request.path ? length : sizeof request.path, path);
    request.is_running = true;
}

void crash_request_ends(void)
{
    request.is_running = false;
}

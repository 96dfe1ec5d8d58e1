/*
 * crash.c: writes the last line of a process that dies of a fault. What runs in the handler calls only functions that a
 * signal handler may call.
 */
#include "base/crash.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log_writer.h"
#include "base/signals.h"
#include "base/text.h"

enum { PATIENCE_MS = 2000, STACK_BYTES = 64 << 10 };

/* The request of a thread. The handler reads it in the same thread. */
static _Thread_local struct {
    volatile sig_atomic_t is_running;
    bool has_stack;
    char id[160], path[512];
} request;

/* No other thread changes the log any more: its writer has ended, or is stuck with a slow reader. */
static void say_crash(void *context, int number)
{
    const struct log *log = context;
    struct log direct = *log;
    struct log_line line;
    if (log->writer != NULL)
        log_writer_finish(log->writer, PATIENCE_MS);
    direct.writer = NULL;
    log_begin(&line, &direct, LOG_ERROR, "crash");
    log_text(&line, "signal", signals_name(number));
    if (request.is_running) {
        log_text(&line, "id", request.id);
        log_text(&line, "path", request.path);
    }
    if (poll(&(struct pollfd){.fd = log->fd, .events = POLLOUT}, 1, PATIENCE_MS) == 1)
        log_end(&line);
}

void crash_report_to(const struct log *log)
{
    signals_before_death(log != NULL ? say_crash : NULL, (void *)(uintptr_t)log);
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

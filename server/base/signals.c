/* signals.c: a handler that writes into a descriptor, and the wait for it. */
#include "base/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/array.h"

/*
 * Blocking the signals in main and calling sigwait would not do: the BLAS starts a thread before main, which does not
 * block them, and there they would end the process. A handler runs in whatever thread; it can reach a static alone.
 */
static int stop_event = -1, reload_event = -1;

static void note_signal(int number)
{
    const int saved = errno;
    const uint64_t one = 1;
    (void)!write(number == SIGHUP ? reload_event : stop_event, &one, sizeof one);
    errno = saved;
}

/* Every SIGTERM counts, since a second one cuts the first one's patience short; several SIGHUP are one wish. */
bool signals_take(void)
{
    stop_event = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
    reload_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop_event < 0 || reload_event < 0)
        return false;
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return true;
}

static bool take_event(int event)
{
    uint64_t count;
    return read(event, &count, sizeof count) == (ssize_t)sizeof count;
}

signal_wish signals_wait(int timeout_ms)
{
    struct pollfd wanted[] = {{.fd = stop_event, .events = POLLIN}, {.fd = reload_event, .events = POLLIN}};
    int ready = poll(wanted, 2, timeout_ms);
    while (ready < 0 && errno == EINTR)
        ready = poll(wanted, 2, timeout_ms);
    if (take_event(stop_event))
        return SIGNAL_STOP;
    return take_event(reload_event) ? SIGNAL_RELOAD : SIGNAL_NONE;
}

static void (*say_last_words)(void *context);
static void *last_context;

/*
 * The first thread that fails says the last words; others wait for its end, which is theirs. Raised again without a
 * handler, the signal ends the process as it would have without us.
 */
static void die(int number)
{
    static atomic_flag is_dying = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&is_dying))
        pause();
    if (say_last_words != NULL)
        say_last_words(last_context);
    signal(number, SIG_DFL);
    raise(number);
}

void signals_before_death(void (*last_words)(void *context), void *context)
{
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    say_last_words = last_words;
    last_context = context;
    struct sigaction before, action = {.sa_handler = die};
    sigemptyset(&action.sa_mask); /* a fault in the handler ends the process at once */
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        sigaddset(&action.sa_mask, faults[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        if (sigaction(faults[i], NULL, &before) == 0 && (before.sa_flags & SA_SIGINFO) == 0 &&
            before.sa_handler == SIG_DFL)
            (void)sigaction(faults[i], &action, NULL);
}

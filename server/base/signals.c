/* signals.c: a signal handler that writes to a descriptor, and a function that waits for it. */
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * The state of the handlers. A handler has no argument, so this object is static; the process has one set of signals.
 *
 * Blocking the signals in main and calling sigwait does not work. The BLAS starts a thread before main that does not
 * block them, and a signal in that thread would end the process.
 */
static struct {
    int stop_event, reload_event;
} reached = {.stop_event = -1, .reload_event = -1};

static void note_signal(int number)
{
    const int saved = errno;
    const uint64_t one = 1;
    (void)!write(number == SIGHUP ? reached.reload_event : reached.stop_event, &one, sizeof one);
    errno = saved;
}

/* Every SIGTERM counts, because a second one cuts the delay of the first one short. Several SIGHUP count as one. */
bool signals_take(void)
{
    reached.stop_event = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
    reached.reload_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reached.stop_event < 0 || reached.reload_event < 0)
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

bool signals_ask_to_stop(void)
{
    struct pollfd wanted = {.fd = reached.stop_event, .events = POLLIN};
    return poll(&wanted, 1, 0) > 0;
}

signal_wish signals_wait(int timeout_ms)
{
    struct pollfd wanted[] = {{.fd = reached.stop_event, .events = POLLIN},
                              {.fd = reached.reload_event, .events = POLLIN}};
    int ready = poll(wanted, 2, timeout_ms);
    while (ready < 0 && errno == EINTR)
        ready = poll(wanted, 2, timeout_ms);
    if (take_event(reached.stop_event))
        return SIGNAL_STOP;
    return take_event(reached.reload_event) ? SIGNAL_RELOAD : SIGNAL_NONE;
}

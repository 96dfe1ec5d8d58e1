/* signals.c: a handler that writes into an eventfd, and the wait for it. */
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * Blocking the signals in main and calling sigwait would not do: the BLAS starts a thread before main, which does not
 * block them, and there they would end the process. A handler runs in whatever thread; it can reach a static alone.
 */
static int event = -1;

static void note_signal(int number)
{
    const int saved = errno;
    const uint64_t one = 1;
    (void)number;
    (void)!write(event, &one, sizeof one);
    errno = saved;
}

bool signals_take(void)
{
    event = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (event < 0)
        return false;
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return true;
}

bool signals_wait(int timeout_s)
{
    struct pollfd wanted = {.fd = event, .events = POLLIN};
    int ready = poll(&wanted, 1, timeout_s < 0 ? -1 : timeout_s * 1000);
    while (ready < 0 && errno == EINTR)
        ready = poll(&wanted, 1, timeout_s < 0 ? -1 : timeout_s * 1000);
    uint64_t one;
    return ready > 0 && read(event, &one, sizeof one) == (ssize_t)sizeof one;
}

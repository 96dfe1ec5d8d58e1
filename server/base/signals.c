/* signals.c: a signal handler that writes to a descriptor, and a function that waits for it. */
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
#include "base/mapping.h"

/*
 * The state of the handlers. A handler has no argument, so this object is static; the process has one set of signals.
 *
 * Blocking the signals in main and calling sigwait does not work. The BLAS starts a thread before main that does not
 * block them, and a signal in that thread would end the process.
 */
static struct {
    int stop_event, reload_event;
    void (*last_words)(void *context, int number);
    void *context;
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

/* ---- faults ---- */

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

const char *signals_name(int number)
{
    return faults[place_of(number)].name;
}

/*
 * The first thread that fails calls last_words; other threads wait until the process ends. Then the signal comes again
 * and ends the process as usual: the processor runs the instruction with the fault once more, and a signal that a
 * program sent is raised.
 */
static void die(int number, bool is_sent)
{
    static atomic_flag is_dying = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&is_dying))
        pause();
    if (reached.last_words != NULL)
        reached.last_words(reached.context, number);
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

void signals_before_death(void (*last_words)(void *context, int number), void *context)
{
    static bool has_taken;
    reached.last_words = last_words;
    reached.context = context;
    if (!has_taken)
        take_faults();
    has_taken = true;
}

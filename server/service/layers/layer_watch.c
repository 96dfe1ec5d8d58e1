/*
 * layer_watch.c: what happens to the files of a directory, by inotify.
 */
#include "service/layers/layer_watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

/* A file that is being written counts when its writer closes it. */
enum { EVENTS = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE, BUFFER_BYTES = 64 << 10 };

struct layer_watch {
    struct layer_watch_target target;
    int events, stop; /* descriptors */
    pthread_t thread;
    _Alignas(struct inotify_event) char buffer[BUFFER_BYTES];
};

static void tell(const struct layer_watch *watch, size_t length)
{
    const struct inotify_event *event;
    for (size_t at = 0; at < length; at += sizeof *event + event->len) {
        event = (const struct inotify_event *)(const void *)(watch->buffer + at);
        if (event->mask & IN_Q_OVERFLOW)
            watch->target.changed(watch->target.context, NULL);
        else if (event->len > 0)
            watch->target.changed(watch->target.context, event->name);
    }
}

static void *run(void *context)
{
    struct layer_watch *watch = context;
    struct pollfd waits[] = {{.fd = watch->stop, .events = POLLIN}, {.fd = watch->events, .events = POLLIN}};
    while (waits[0].revents == 0) {
        if (poll(waits, 2, -1) < 0 && errno != EINTR)
            break;
        if ((waits[1].revents & POLLIN) == 0)
            continue;
        const ssize_t length = read(watch->events, watch->buffer, sizeof watch->buffer);
        if (length > 0)
            tell(watch, (size_t)length);
    }
    return NULL;
}

static void destroy(struct layer_watch *watch)
{
    if (watch->events >= 0)
        close(watch->events);
    if (watch->stop >= 0)
        close(watch->stop);
    free(watch);
}

int layer_watch_start(const char *directory, const struct layer_watch_target *target, struct layer_watch **watch)
{
    struct layer_watch *made = calloc(1, sizeof *made);
    *watch = NULL;
    if (made == NULL)
        return ENOMEM;
    made->target = *target;
    made->stop = eventfd(0, EFD_CLOEXEC);
    made->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int outcome = made->stop < 0 || made->events < 0 ? errno : 0;
    if (outcome == 0 && inotify_add_watch(made->events, directory, EVENTS | IN_ONLYDIR) < 0)
        outcome = errno;
    if (outcome == 0)
        outcome = pthread_create(&made->thread, NULL, run, made);
    if (outcome != 0) {
        destroy(made);
        return outcome;
    }
    *watch = made;
    return 0;
}

void layer_watch_stop(struct layer_watch *watch)
{
    const uint64_t one = 1;
    if (watch == NULL)
        return;
    while (write(watch->stop, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_join(watch->thread, NULL);
    destroy(watch);
}

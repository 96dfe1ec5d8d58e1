/* watch.c: a thread that looks at files at regular times. */
#include "service/registry/watch.h"

#include <errno.h>

#include "base/clock.h"

static void *look_at_times(void *context)
{
    struct watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_ending) {
        const struct timespec next = clock_after_ms(watch->every_ms);
        if (pthread_cond_timedwait(&watch->ending, &watch->lock, &next) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&watch->lock);
        watch->look(watch->context);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

static void release(struct watch *watch)
{
    pthread_cond_destroy(&watch->ending);
    pthread_mutex_destroy(&watch->lock);
}

int watch_begin(struct watch *watch, unsigned every_ms, void (*look)(void *context), void *context)
{
    *watch = (struct watch){.every_ms = every_ms, .look = look, .context = context};
    if (every_ms == 0)
        return 0;
    clock_init_condition(&watch->ending);
    pthread_mutex_init(&watch->lock, NULL);
    const int outcome = pthread_create(&watch->thread, NULL, look_at_times, watch);
    watch->is_running = outcome == 0;
    if (outcome != 0)
        release(watch);
    return outcome;
}

void watch_end(struct watch *watch)
{
    if (!watch->is_running)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->is_ending = true;
    pthread_cond_signal(&watch->ending);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch->is_running = false;
    release(watch);
}

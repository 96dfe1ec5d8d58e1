/* watch.h: a thread that looks at files at regular times. */
#ifndef SERVICE_REGISTRY_WATCH_H
#define SERVICE_REGISTRY_WATCH_H

#include <pthread.h>
#include <stdbool.h>

/* All zero at first. */
struct watch {
    unsigned every_ms;
    void (*look)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    bool is_running, is_ending;
};

/* Calls look every so many milliseconds until watch_end; 0: never. Returns an errno: there is no thread then. */
int watch_begin(struct watch *watch, unsigned every_ms, void (*look)(void *context), void *context);
/* Waits for the end of a look. */
void watch_end(struct watch *watch);

#endif

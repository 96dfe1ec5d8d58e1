/*
 * layer_watch.h: a thread that tells of files that were added to a directory, replaced in it or removed from it.
 */
#ifndef SERVICE_LAYERS_LAYER_WATCH_H
#define SERVICE_LAYERS_LAYER_WATCH_H

/* changed is called in the watch's own thread, with the file's name, or NULL: anything may have changed. */
struct layer_watch_target {
    void (*changed)(void *context, const char *file);
    void *context;
};

struct layer_watch;

/* 0, or an errno: what the system has no watch for can still be looked for. */
int layer_watch_start(const char *directory, const struct layer_watch_target *target, struct layer_watch **watch);
/* After it, changed is not called any more. NULL is fine. */
void layer_watch_stop(struct layer_watch *watch);

#endif

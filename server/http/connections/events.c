/* events.c: sends progress while a computation runs, and then its result. */
#include "http/connections/events.h"

#include <stdio.h>

#include "base/clock.h"

/* At most ten events a second; the same progress is told again after a while, so that a client that left is noticed. */
static const double EVERY_MS = 100, AGAIN_MS = 1000;

enum { BLOCK_BYTES = 16 << 10 };

struct events *events_create(struct connection *connection, attn_arena *arena, void (*begin)(void *context),
                             void *context)
{
    struct events *events = attn_arena_take_zeroed(arena, 1, sizeof *events);
    if (events == NULL)
        return NULL;
    events->connection = connection;
    events->server = connection->server;
    events->begin = begin;
    events->context = context;
    return events;
}

/* ---- the threads of the computation ------------------------------------------------------------------------------ */

/* While the stream has not begun, the connection is suspended, and watch.c looks whether the client is there. */
static void become_due(struct events *events)
{
    pthread_mutex_lock(&events->server->lock);
    if (!events->has_begun && atomic_load(&events->connection->is_abandoned))
        atomic_store(&events->is_gone, true);
    const bool wakes = events->has_begun && events->is_waiting;
    events->is_due = events->has_begun;
    events->is_waiting = false;
    pthread_mutex_unlock(&events->server->lock);
    if (wakes)
        MHD_resume_connection(events->connection->mhd);
}

bool events_goes_on(struct events *events, double now_ms)
{
    double next_ms = atomic_load_explicit(&events->next_ms, memory_order_relaxed);
    if (progress_of(atomic_load_explicit(&events->progress.word, memory_order_relaxed)).of > 0 &&
        !atomic_load_explicit(&events->is_beginning, memory_order_relaxed) &&
        !atomic_exchange(&events->is_beginning, true)) {
        atomic_store(&events->next_ms, now_ms + EVERY_MS);
        events->begin(events->context);
    } else if (now_ms >= next_ms && atomic_compare_exchange_strong(&events->next_ms, &next_ms, now_ms + EVERY_MS)) {
        become_due(events);
    }
    return !atomic_load_explicit(&events->is_gone, memory_order_relaxed);
}

void events_begin(struct events *events)
{
    pthread_mutex_lock(&events->server->lock);
    events->has_begun = events->is_due = true;
    pthread_mutex_unlock(&events->server->lock);
    MHD_resume_connection(events->connection->mhd);
}

bool events_end(struct events *events, const struct chunk *last)
{
    pthread_mutex_lock(&events->server->lock);
    const bool has_left = events->has_left, wakes = events->is_waiting;
    events->last = last;
    events->is_done = true;
    events->is_waiting = false;
    struct MHD_Connection *mhd = wakes ? events->connection->mhd : NULL;
    pthread_mutex_unlock(&events->server->lock);
    if (wakes)
        MHD_resume_connection(mhd);
    return has_left;
}

/* ---- the I/O thread ---------------------------------------------------------------------------------------------- */

/* Whether the progress is worth an event now. */
static bool write_progress(struct events *events)
{
    const uint64_t word = atomic_load_explicit(&events->progress.word, memory_order_relaxed);
    const struct progress_read now = progress_of(word);
    const double now_ms = clock_now_ms();
    if (word == events->told && now_ms - events->told_ms < AGAIN_MS)
        return false;
    events->told = word;
    events->told_ms = now_ms;
    const int length = snprintf(events->text, sizeof events->text,
                                "event: progress\ndata: {\"done\":%llu,\"of\":%llu,\"what\":\"%s\"}\n\n",
                                (unsigned long long)now.done, (unsigned long long)now.of, progress_name(now.what));
    events->event = (struct chunk){.data = events->text, .length = (size_t)length};
    events->at = &events->event;
    return true;
}

enum turn { TURN_SEND, TURN_WAIT, TURN_OVER };

static enum turn take_turn(struct events *events)
{
    enum turn turn = TURN_SEND;
    pthread_mutex_lock(&events->server->lock);
    const bool is_due = events->is_due;
    events->is_due = false;
    if (events->is_done) {
        turn = events->is_over ? TURN_OVER : TURN_SEND;
        events->at = events->is_over ? NULL : events->last;
        events->is_over = true;
    } else if (!is_due || !write_progress(events)) {
        events->is_waiting = true;
        turn = TURN_WAIT;
        MHD_suspend_connection(events->connection->mhd);
    }
    pthread_mutex_unlock(&events->server->lock);
    return turn;
}

/* The library calls this for the next bytes. Returning 0 means that the connection is suspended. */
static ssize_t read_next(void *cls, uint64_t position, char *to, size_t most)
{
    struct events *events = cls;
    (void)position;
    for (;;) {
        const size_t copied = chunks_copy(&events->at, &events->offset, to, most);
        events->sent_bytes += copied;
        if (copied > 0)
            return (ssize_t)copied;
        switch (take_turn(events)) {
        case TURN_SEND:
            break;
        case TURN_WAIT:
            return 0;
        case TURN_OVER:
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
    }
}

struct MHD_Response *events_response(struct events *events)
{
    events->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_next, events, NULL);
    return events->response;
}

bool events_leave(struct events *events)
{
    pthread_mutex_lock(&events->server->lock);
    const bool is_at_work = events->has_begun && !events->is_done;
    events->has_left = is_at_work;
    if (is_at_work)
        atomic_store(&events->is_gone, true);
    pthread_mutex_unlock(&events->server->lock);
    return is_at_work;
}

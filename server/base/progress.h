/*
 * progress.h: how far a computation is. Its threads write, and any thread may read: all of it is one word, so no reader
 * sees the count of one thing with the name of another. Each function takes NULL for a computation that nobody follows.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What is counted. A task is a piece of a stage of a computation, such as some rows of a head; stages to come add theirs. */
#define PROGRESS_LIST(X)                                                                                               \
    X(PROGRESS_NOTHING, "") /* nothing is computed yet */                                                              \
    X(PROGRESS_TASK, "task")                                                                                           \
    X(PROGRESS_LAYER, "layer")                                                                                         \
    X(PROGRESS_PREPARING, "preparation") /* of weights at their first use, before the next layer or token */           \
    X(PROGRESS_TOKEN, "token")

typedef enum {
#define PROGRESS_ENUM(code, name) code,
    PROGRESS_LIST(PROGRESS_ENUM)
#undef PROGRESS_ENUM
        PROGRESS_COUNT
} progress_what;

enum { PROGRESS_BITS = 28 };
#define PROGRESS_MAX (((uint64_t)1 << PROGRESS_BITS) - 1)

/* The lowest bits hold done, the next ones of, the highest ones what. Zero is PROGRESS_NOTHING. */
struct progress {
    atomic_uint_fast64_t word;
};

struct progress_read {
    uint64_t done, of;
    progress_what what;
};

static inline struct progress_read progress_of(uint64_t word)
{
    return (struct progress_read){word & PROGRESS_MAX, word >> PROGRESS_BITS & PROGRESS_MAX,
                                  (progress_what)(word >> 2 * PROGRESS_BITS)};
}

static inline const char *progress_name(progress_what what)
{
#define PROGRESS_NAME(code, name) name,
    static const char *const names[] = {PROGRESS_LIST(PROGRESS_NAME)};
#undef PROGRESS_NAME
    return names[what];
}

/* Begins to count another thing. More than PROGRESS_MAX of it are not counted. */
static inline void progress_set(struct progress *progress, progress_what what, uint64_t done, uint64_t of)
{
    const uint64_t most = of < PROGRESS_MAX ? of : PROGRESS_MAX;
    if (progress != NULL)
        atomic_store_explicit(&progress->word,
                              (uint64_t)what << 2 * PROGRESS_BITS | most << PROGRESS_BITS | (done < most ? done : most),
                              memory_order_relaxed);
}

/* Adds to both numbers, if what is counted; done never passes of. Safe from several threads. */
static inline void progress_add(struct progress *progress, progress_what what, uint64_t done, uint64_t of)
{
    uint64_t word = progress != NULL ? atomic_load_explicit(&progress->word, memory_order_relaxed) : 0, next;
    do {
        const struct progress_read now = progress_of(word);
        if (progress == NULL || now.what != what)
            return;
        const uint64_t more = now.of + of < PROGRESS_MAX ? now.of + of : PROGRESS_MAX;
        next = (uint64_t)what << 2 * PROGRESS_BITS | more << PROGRESS_BITS |
               (now.done + done < more ? now.done + done : more);
    } while (!atomic_compare_exchange_weak_explicit(&progress->word, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* Counts the same under another name. */
static inline void progress_rename(struct progress *progress, progress_what what)
{
    if (progress == NULL)
        return;
    const struct progress_read now = progress_of(atomic_load_explicit(&progress->word, memory_order_relaxed));
    progress_set(progress, what, now.done, now.of);
}

#endif

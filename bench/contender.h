/*
 * contender.h: the library as it is timed. Part of bench/.
 *
 * A process measures one contender, because memory and threads of one would disturb another.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include "bench_case.h"

typedef struct {
    const char *name;
    attn_tensor tensor;
} bench_result;

/* Data, threads and whatever a caller would keep between two calls. */
struct contender;

/* NULL: no memory, or the library refuses the case. */
struct contender *contender_prepare(const bench_case *c);
/* Calls work once, in the thread that computes for callers of the library. false: it could not be called. */
bool contender_enter(struct contender *own, void (*work)(void *argument), void *argument);
/* One computation, from such a thread: this is what is timed. false: it failed. */
bool contender_run(struct contender *own);
/* Views of the results of the last run, with names that all contenders use; returns how many. */
size_t contender_results(const struct contender *own, bench_result result[BENCH_RESULTS_MAX]);
void contender_release(struct contender *own); /* NULL is fine */

/* The name of the kernel. */
const char *contender_description(void);
/* The kernel that it computes with from now on. false: this processor has none of that name. */
bool contender_use(const char *kernel);

#endif

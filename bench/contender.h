/*
 * contender.h: something that computes a case, so that it can be timed: the library, or the plain way to do it.
 *
 * A process measures one contender: the BLAS threads of one would disturb the other, and so would its memory.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include "bench_case.h"

typedef struct {
    const char *name;
    attn_tensor tensor;
} bench_result;

typedef struct {
    /* Data, threads and whatever a caller would keep between two calls; NULL: no memory, or no way to do the case. */
    void *(*prepare)(const bench_case *c);
    /* Calls work once, in the thread that computes for this contender's callers. false: it could not be called. */
    bool (*enter)(void *state, void (*work)(void *argument), void *argument);
    /* One computation, from such a thread: this is what is timed. false: it failed. */
    bool (*run)(void *state);
    /* Views of the results of the last run, with names that all contenders use; returns how many. */
    size_t (*results)(const void *state, bench_result result[BENCH_RESULTS_MAX]);
    void (*release)(void *state); /* NULL is fine */
    const char *(*description)(void);
} contender;

/* This project's library, through its public headers, as a service would use it: an arena that is reset, a pool. */
extern const contender contender_attnd;
/* The kernel that it computes with from now on; NULL: the best. false: this processor has none of that name. */
bool contender_attnd_use(const char *kernel);
/* The straightforward way: for each head a product, a softmax with expf, a product; threads are those of OpenBLAS. */
extern const contender contender_plain;

#endif

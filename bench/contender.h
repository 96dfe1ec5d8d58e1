/*
 * contender.h: something that computes a case, so that it can be timed: the library, or the plain way to do it.
 *
 * A process measures one contender: the BLAS threads of one would disturb the other, and so would its memory.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include "bench_case.h"

typedef struct {
    /* Data, threads and whatever a caller would keep between two calls; NULL without memory. */
    void *(*prepare)(const bench_case *c);
    /* Calls work once, in the thread that computes for this contender's callers. false: it could not be called. */
    bool (*enter)(void *state, void (*work)(void *argument), void *argument);
    /* One computation, from such a thread: this is what is timed. false: it failed. */
    bool (*run)(void *state);
    /* Views of the results of the last run; maps->data is NULL when there are none. */
    void (*results)(const void *state, attn_tensor *output, attn_tensor *maps);
    void (*release)(void *state); /* NULL is fine */
    const char *(*description)(void);
} contender;

/* This project's library, through its public headers, as a service would use it: an arena that is reset, a pool. */
extern const contender contender_attnd;
/* The straightforward way: for each head a product, a softmax with expf, a product; threads are those of OpenBLAS. */
extern const contender contender_plain;

#endif

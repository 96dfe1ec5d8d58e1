/*
 * feature_keys.h: the features of keys and queries for linear and performer, and the running sums over keys
 * (attn/mechanism.h has the equations).
 */
#ifndef ATTN_ATTENTION_FEATURE_KEYS_H
#define ATTN_ATTENTION_FEATURE_KEYS_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "kernel/job.h"
#include "mask/resolved.h"

enum { FEATURE_KEYS = 256 /* keys per block of sums: the bits of a result depend on it */ };

struct attn_feature_keys {
    const attn_plan *plan;
    const attn_mechanism *mechanism;
    const struct attn_heads_job *job;
    const attn_runtime *runtime;
    size_t m, width;    /* features of phi; numbers of a row of sums: d_v, and 1 for the denominator */
    size_t key_blocks;  /* of FEATURE_KEYS */
    bool is_running;    /* the mask is a range from key 0 for every query, and padding */
    double *projection; /* performer: (d_k, m) */
    double *phi;        /* (batch, kv_heads, kv_len, m), for keys that some query may attend to */
    double *largest;    /* performer: (batch, kv_heads): the largest P s of these keys, */
    size_t *largest_at; /* and its index in phi of the head */
    uint8_t *is_seen;   /* (batch, kv_heads, kv_len): whether any query may attend to the key */
    double *sums;       /* is_running: (batch, kv_heads, key_blocks + 1, m, width): of all keys before the block */
};

/* The sizes for a request's keys, before any memory is allocated. */
struct attn_feature_keys attn_feature_keys_describe(const attn_plan *plan, const attn_request *request,
                                                    const struct attn_heads_job *job, const attn_runtime *runtime);
/* Arena bytes that attn_feature_keys_prepare takes. */
size_t attn_feature_keys_bytes(const attn_plan *plan, const attn_request *request);
/* ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED, without a message. */
ATTN_MUST_CHECK attn_status attn_feature_keys_prepare(struct attn_feature_keys *keys, attn_arena *arena);

/*
 * *is_running: the mask is a range from key 0 for every query, and padding. Only then are there running sums.
 * *is_prefix: besides, the ranges of an item end at different keys. watch as in attn_mask_pairs.
 */
void attn_find_running_sums(const attn_mask *mask, const attn_runtime *watch, bool *is_running, bool *is_prefix);
/* Whether padding leaves key j of item b visible. */
bool attn_feature_is_real(const attn_mask *mask, size_t b, size_t j);
/*
 * P of performer, given or drawn: (m, d_k), and d_k numbers of scratch memory behind it. False when the run was
 * cancelled.
 */
bool attn_feature_projection(const attn_mechanism *mechanism, attn_dtype compute, size_t d_k,
                             const attn_runtime *runtime, double *projection);

/* The features of a query: m numbers. */
void attn_feature_map_query(const struct attn_feature_keys *keys, size_t b, size_t h, size_t i, double *phi);
/* Keys and queries are multiplied by these before the projection; the factor of queries is negative for a negative
 * scale. */
double attn_feature_key_factor(const struct attn_feature_keys *keys);
double attn_feature_query_factor(const struct attn_feature_keys *keys);

/* A cached lookup of the mask for one query and a range of keys; zero-initialised it is empty. */
struct attn_feature_look {
    size_t b, h, i, from, to; /* keys */
    uint8_t allow[FEATURE_KEYS];
};

/* Whether the query may attend to a key of its span. look belongs to the calling thread. */
bool attn_feature_allows(const struct attn_feature_keys *keys, struct attn_feature_look *look, size_t b, size_t h,
                         size_t i, size_t j);
/* Whether the query may attend to any key of its span. */
bool attn_feature_sees(const struct attn_feature_keys *keys, struct attn_feature_look *look, size_t b, size_t h,
                       size_t i, attn_span span);

/* The divisor of the sums of values, from the sum of the weights. */
static inline double attn_feature_divisor(const attn_mechanism *mechanism, double sum)
{
    return mechanism->is_unnormalised ? 1 : mechanism->type == ATTN_LINEAR ? sum + mechanism->eps : sum;
}

/* The sums of all keys before at. head counts key heads over all items; at SIZE_MAX: no sums yet. */
struct attn_feature_sums {
    size_t head, at;
    double *sums; /* (m, width) */
};

/* Advances to->sums to all keys before end: starts from the sums of whole blocks, and adds the rest key by key. */
void attn_feature_advance(const struct attn_feature_keys *keys, struct attn_feature_sums *to, size_t end);

static inline double attn_feature_dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

#endif

/*
 * feature_keys.h: what linear and performer make of keys and queries: features, and the running sums of keys
 * (attn/mechanism.h has the equations).
 */
#ifndef ATTN_ATTENTION_FEATURE_KEYS_H
#define ATTN_ATTENTION_FEATURE_KEYS_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "kernel/job.h"

enum { FEATURE_KEYS = 256 /* of a block whose sums are taken together: part of the result's bits */ };

struct attn_feature_keys {
    const attn_plan *plan;
    const attn_mechanism *mechanism;
    const struct attn_heads_job *job;
    const attn_runtime *runtime;
    size_t m, width;    /* features of phi; numbers of a row of sums: d_v, and 1 for the denominator */
    size_t key_blocks;  /* of FEATURE_KEYS */
    bool is_running;    /* the mask leaves every query a run from key 0, and padding */
    double *projection; /* performer: (d_k, m) */
    double *phi;        /* (batch, kv_heads, kv_len, m), of keys that are seen */
    double *largest;    /* performer: (batch, kv_heads): the largest P s of keys that are seen, */
    size_t *largest_at; /* and its place in phi of the head */
    uint8_t *is_seen;   /* (batch, kv_heads, kv_len): by any query */
    double *sums;       /* is_running: (batch, kv_heads, key_blocks + 1, m, width): of all keys before the block */
};

/* The sizes of a request's keys, before there is memory. */
struct attn_feature_keys attn_feature_keys_describe(const attn_plan *plan, const attn_request *request,
                                                    const struct attn_heads_job *job, const attn_runtime *runtime);
/* Arena bytes that attn_feature_keys_prepare takes. */
size_t attn_feature_keys_bytes(const attn_plan *plan, const attn_request *request);
/* ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED, without a message. */
ATTN_MUST_CHECK attn_status attn_feature_keys_prepare(struct attn_feature_keys *keys, attn_arena *arena);

/* Whether the mask is a run of keys from the first one on for every query, and padding: then there are sums. */
bool attn_has_running_sums(const attn_mask *mask);

/* The features of a query: m numbers. */
void attn_feature_map_query(const struct attn_feature_keys *keys, size_t b, size_t h, size_t i, double *phi);
/* Keys and queries are multiplied by these before the projection; the factor of queries is negative for a negative
 * scale. */
double attn_feature_key_factor(const struct attn_feature_keys *keys);
double attn_feature_query_factor(const struct attn_feature_keys *keys);

/* What the mask says of a range of keys of one query, looked up together; zero-initialised it is empty. */
struct attn_feature_look {
    size_t b, h, i, from, to; /* keys */
    uint8_t allow[FEATURE_KEYS];
};

/* For a key of the query's span. look belongs to the calling thread. */
bool attn_feature_allows(const struct attn_feature_keys *keys, struct attn_feature_look *look, size_t b, size_t h,
                         size_t i, size_t j);
/* Whether the query may see any key of its span. */
bool attn_feature_sees(const struct attn_feature_keys *keys, struct attn_feature_look *look, size_t b, size_t h,
                       size_t i, attn_span span);

/* What sums of values are divided by, from the sum of the weights. */
static inline double attn_feature_divisor(const attn_mechanism *mechanism, double sum)
{
    return mechanism->is_unnormalised ? 1 : mechanism->type == ATTN_LINEAR ? sum + mechanism->eps : sum;
}

/* The sums of all keys before at. head counts key heads over all items; at SIZE_MAX: of none yet. */
struct attn_feature_sums {
    size_t head, at;
    double *sums; /* (m, width) */
};

/* Makes to->sums the sums of all keys before end: those of the blocks before it, and then key by key. */
void attn_feature_advance(const struct attn_feature_keys *keys, struct attn_feature_sums *to, size_t end);

static inline double attn_feature_dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

#endif

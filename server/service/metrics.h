/*
 * metrics.h: the server's counters, and their text for Prometheus (GET /metrics).
 *
 * Any thread adds to a counter without a lock, and counters never decrease. Routes and reasons are numbers here, and
 * tables give their names when the text is written, so no client can make a new series.
 *
 * https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4)
 */
#ifndef SERVICE_METRICS_H
#define SERVICE_METRICS_H

#include <stdatomic.h>

#include "codec/bytes/chunks.h"
#include "service/cache/cache.h"
#include "service/keys.h"
#include "service/registry/store.h"

enum { METRICS_ROUTES_MAX = 64, METRICS_REASONS_MAX = 48, METRICS_BUCKETS = 18, METRICS_MODELS_MAX = 256 };
enum { METRICS_STATUS_FROM = 100, METRICS_STATUS_TO = 600 };

typedef enum {
    METRICS_RECEIVE,
    METRICS_QUEUE,
    METRICS_PARSE,
    METRICS_COMPUTE,
    METRICS_WRITE,
    METRICS_TOTAL,
    METRICS_STAGES
} metrics_stage;

/* Reasons for stopping accepted work. */
typedef enum { METRICS_CLIENT_GONE, METRICS_DEADLINE, METRICS_SHUTDOWN, METRICS_CANCELS } metrics_cancel;

struct metrics_histogram {
    atomic_uint_fast64_t buckets[METRICS_BUCKETS + 1]; /* the last bucket has the times beyond every bound */
    atomic_uint_fast64_t sum_ns;
};

/* All zero at first. */
struct metrics {
    atomic_uint_fast64_t requests[METRICS_ROUTES_MAX][METRICS_STATUS_TO - METRICS_STATUS_FROM];
    atomic_uint_fast64_t rejected[METRICS_REASONS_MAX];
    atomic_uint_fast64_t cancelled[METRICS_CANCELS];
    atomic_uint_fast64_t received_bytes, sent_bytes, connections_begun, connections_evicted;
    atomic_int_fast64_t connections;
    struct metrics_histogram stages[METRICS_STAGES],
        routes[METRICS_ROUTES_MAX]; /* routes: the whole time of a request */
};

/* Counts a request of that route, which took ms; a status outside of HTTP's range is not counted. */
void metrics_count_request(struct metrics *metrics, size_t route, unsigned status, double ms);
void metrics_observe(struct metrics_histogram *histogram, double ms);
void metrics_add(atomic_uint_fast64_t *counter, uint64_t more);

struct metrics_route {
    const char *method, *path;
};

/* Values that are read at the moment when the text is written. */
struct metrics_now {
    size_t queue_jobs, running_jobs, queue_limit, running_limit, connections_limit;
    uint64_t memory_bytes, memory_limit_bytes, models_memory_bytes, models_memory_limit_bytes, log_lines_lost;
    bool is_ready, has_layers;
    struct registry_room layers; /* if has_layers, as the next two */
    size_t layers_prepared_bytes, layers_prepared_limit_bytes;
    const char *kernel, *http_library;
    const struct registry_use *models; /* the built-in model, and layers and whole models that had requests */
    size_t model_count;
    size_t model_states[REGISTRY_STATES];
    struct cache_share caches, caches_limit;
    const struct keys_quota *quotas; /* of all API keys */
    size_t quota_count;
    double started_s; /* when the process began, in seconds since 1970 */
};

struct metrics_labels {
    const struct metrics_route *routes;
    size_t route_count;
    const char *const *reasons;
    size_t reason_count;
};

/* Appends the text. Without memory out->is_ok becomes false. */
void metrics_write(const struct metrics *metrics, const struct metrics_now *now, const struct metrics_labels *labels,
                   struct chunks *out);

#endif

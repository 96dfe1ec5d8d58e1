/* metrics.c: counts events, and writes the counters as text for Prometheus. */
#include "service/metrics.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attn/runtime.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/process.h"

/* Upper bounds in seconds, from the time of one decoding step to the longest usual deadline. */
static const double bounds_s[METRICS_BUCKETS] = {0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                 0.25,    0.5,    1,     2.5,    5,     10,   30,    60,   300};
static const char *const stage_names[METRICS_STAGES] = {"receive", "queue", "parse", "compute", "write", "total"};
static const char *const cancel_names[METRICS_CANCELS] = {"client_gone", "deadline", "shutdown"};

/* ---- counting ---- */

void metrics_add(atomic_uint_fast64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void metrics_count_request(struct metrics *metrics, size_t route, unsigned status, double ms)
{
    if (route >= METRICS_ROUTES_MAX || status < METRICS_STATUS_FROM || status >= METRICS_STATUS_TO)
        return;
    metrics_add(&metrics->requests[route][status - METRICS_STATUS_FROM], 1);
    metrics_observe(&metrics->routes[route], ms);
}

void metrics_observe(struct metrics_histogram *histogram, double ms)
{
    size_t bucket = 0;
    const double s = ms > 0 ? ms / 1e3 : 0;
    while (bucket < METRICS_BUCKETS && s > bounds_s[bucket])
        bucket++;
    metrics_add(&histogram->buckets[bucket], 1);
    metrics_add(&histogram->sum_ns, (uint64_t)(s * 1e9 + 0.5));
}

static unsigned long long value_of(const atomic_uint_fast64_t *counter)
{
    return (unsigned long long)atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- writing ---- */

static void begin(struct chunks *out, const char *name, const char *type, const char *help)
{
    chunks_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_one(struct chunks *out, const char *name, const char *type, const char *help,
                      unsigned long long value)
{
    begin(out, name, type, help);
    chunks_format(out, "%s %llu\n", name, value);
}

static void write_requests(const struct metrics *metrics, const struct metrics_labels *labels, struct chunks *out)
{
    begin(out, "attnd_requests_total", "counter", "Requests answered, by route and status.");
    for (size_t route = 0; route < labels->route_count && route < METRICS_ROUTES_MAX; route++)
        for (unsigned status = 0; status < METRICS_STATUS_TO - METRICS_STATUS_FROM; status++) {
            const unsigned long long count = value_of(&metrics->requests[route][status]);
            if (count > 0)
                chunks_format(out, "attnd_requests_total{method=\"%s\",route=\"%s\",status=\"%u\"} %llu\n",
                              labels->routes[route].method, labels->routes[route].path, status + METRICS_STATUS_FROM,
                              count);
        }
}

/* Every reason is written from the start, so Prometheus sees the first refusal as an increase. */
static void write_rejected(const struct metrics *metrics, const struct metrics_labels *labels, struct chunks *out)
{
    begin(out, "attnd_rejected_total", "counter", "Requests refused, by reason.");
    for (size_t i = 0; i < labels->reason_count && i < METRICS_REASONS_MAX; i++)
        if (labels->reasons[i] != NULL)
            chunks_format(out, "attnd_rejected_total{reason=\"%s\"} %llu\n", labels->reasons[i],
                          value_of(&metrics->rejected[i]));
}

static void write_cancelled(const struct metrics *metrics, struct chunks *out)
{
    begin(out, "attnd_cancelled_total", "counter", "Requests whose work was stopped, by reason.");
    for (size_t i = 0; i < METRICS_CANCELS; i++)
        chunks_format(out, "attnd_cancelled_total{reason=\"%s\"} %llu\n", cancel_names[i],
                      value_of(&metrics->cancelled[i]));
}

/* labels is "stage=\"total\"", without braces. */
static void write_histogram(const struct metrics_histogram *histogram, const char *name, const char *labels,
                            struct chunks *out)
{
    unsigned long long count = 0;
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        count += value_of(&histogram->buckets[i]);
        chunks_format(out, "%s_bucket{%s,le=\"%g\"} %llu\n", name, labels, bounds_s[i], count);
    }
    count += value_of(&histogram->buckets[METRICS_BUCKETS]);
    chunks_format(out, "%s_bucket{%s,le=\"+Inf\"} %llu\n%s_sum{%s} %.9f\n%s_count{%s} %llu\n", name, labels, count,
                  name, labels, (double)value_of(&histogram->sum_ns) / 1e9, name, labels, count);
}

static bool has_seen(const struct metrics_histogram *histogram)
{
    for (size_t i = 0; i <= METRICS_BUCKETS; i++)
        if (value_of(&histogram->buckets[i]) > 0)
            return true;
    return false;
}

static void write_times(const struct metrics *metrics, const struct metrics_labels *labels, struct chunks *out)
{
    char label[256];
    begin(out, "attnd_request_seconds", "histogram",
          "Time of a request by stage; total is from its first line to the last byte sent.");
    for (size_t i = 0; i < METRICS_STAGES; i++) {
        snprintf(label, sizeof label, "stage=\"%s\"", stage_names[i]);
        write_histogram(&metrics->stages[i], "attnd_request_seconds", label, out);
    }
    begin(out, "attnd_route_seconds", "histogram",
          "Time of a request by route, from its first line to the last byte sent; routes that had requests.");
    for (size_t i = 0; i < labels->route_count && i < METRICS_ROUTES_MAX; i++) {
        snprintf(label, sizeof label, "method=\"%s\",route=\"%s\"", labels->routes[i].method, labels->routes[i].path);
        if (has_seen(&metrics->routes[i]))
            write_histogram(&metrics->routes[i], "attnd_route_seconds", label, out);
    }
}

static void write_gauges(const struct metrics *metrics, const struct metrics_now *now, struct chunks *out)
{
    const long long connections = (long long)atomic_load_explicit(&metrics->connections, memory_order_relaxed);
    write_one(out, "attnd_ready", "gauge", "1 while /readyz says 200.", now->is_ready);
    write_one(out, "attnd_queue_jobs", "gauge", "Requests that wait for a compute thread.", now->queue_jobs);
    write_one(out, "attnd_queue_limit", "gauge", "Requests that may wait (--queue).", now->queue_limit);
    write_one(out, "attnd_running_jobs", "gauge", "Requests that a compute thread works on.", now->running_jobs);
    write_one(out, "attnd_running_limit", "gauge", "Compute threads (--compute-threads).", now->running_limit);
    write_one(out, "attnd_connections", "gauge", "Open connections.",
              connections > 0 ? (unsigned long long)connections : 0);
    write_one(out, "attnd_connections_limit", "gauge", "Connections that may be open (--connections).",
              now->connections_limit);
    write_one(out, "attnd_memory_bytes", "gauge", "Memory of bodies, work and unsent answers.", now->memory_bytes);
    write_one(out, "attnd_memory_limit_bytes", "gauge", "Memory that all requests may take: their part of --memory.",
              now->memory_limit_bytes);
    write_one(out, "attnd_models_memory_bytes", "gauge", "Memory of models: tables, tokenizers, and reading them.",
              now->models_memory_bytes);
    write_one(out, "attnd_models_memory_limit_bytes", "gauge",
              "Memory that all models may take: their part of --memory.", now->models_memory_limit_bytes);
    if (now->has_layers) {
        write_one(out, "attnd_layers", "gauge", "Layers kept, and those of models.", now->layers.count);
        write_one(out, "attnd_layers_limit", "gauge", "Layers that there may be: --layers-max, and those of models.",
                  now->layers.count_limit);
        write_one(out, "attnd_layers_bytes", "gauge", "Bytes of the kept layers that are served.", now->layers.bytes);
        write_one(out, "attnd_layers_limit_bytes", "gauge", "Bytes that kept layers may have (--layers-bytes).",
                  now->layers.bytes_limit);
        write_one(out, "attnd_layers_prepared_bytes", "gauge",
                  "Memory of weights of kept layers and of models that stay packed or widened (--layers-prepared).",
                  now->layers_prepared_bytes);
        write_one(out, "attnd_layers_prepared_limit_bytes", "gauge",
                  "Memory that prepared weights may take (--layers-prepared).", now->layers_prepared_limit_bytes);
    }
}

static void write_things(const struct metrics_now *now, struct chunks *out)
{
    static const char *const states[REGISTRY_STATES] = {[REGISTRY_READY] = "ready",
                                                        [REGISTRY_UNREAD] = "unread",
                                                        [REGISTRY_BROKEN] = "broken",
                                                        [REGISTRY_UNLOADED] = "unloaded"};
    write_one(out, "attnd_caches", "gauge", "Caches of keys and values (options.cache).", now->caches.count);
    write_one(out, "attnd_caches_limit", "gauge", "Caches that there may be (--cache-max).", now->caches_limit.count);
    write_one(out, "attnd_caches_bytes", "gauge", "Memory of caches.", now->caches.bytes);
    write_one(out, "attnd_caches_limit_bytes", "gauge", "Memory that caches may take (--cache-bytes).",
              now->caches_limit.bytes);
    begin(out, "attnd_models", "gauge", "Models by state, the built-in demo included.");
    for (size_t i = 0; i < REGISTRY_STATES; i++)
        if (states[i] != NULL)
            chunks_format(out, "attnd_models{state=\"%s\"} %zu\n", states[i], now->model_states[i]);
}

/* Names of keys are letters, digits, dots, underscores and hyphens: nothing in them needs an escape. */
static void write_quotas(const struct metrics_now *now, struct chunks *out)
{
    if (now->quota_count == 0)
        return;
    begin(out, "attnd_quota_limit", "gauge", "What an idle API key may use at once, and each second.");
    for (size_t i = 0; i < now->quota_count; i++)
        chunks_format(out, "attnd_quota_limit{key=\"%s\",quota=\"%s\"} %.17g\n", now->quotas[i].key,
                      now->quotas[i].name, now->quotas[i].limit);
    begin(out, "attnd_quota_left", "gauge", "What an API key may use now; below 0 it has to wait.");
    for (size_t i = 0; i < now->quota_count; i++)
        chunks_format(out, "attnd_quota_left{key=\"%s\",quota=\"%s\"} %.17g\n", now->quotas[i].key, now->quotas[i].name,
                      now->quotas[i].left);
}

static void write_counters(const struct metrics *metrics, const struct metrics_now *now, struct chunks *out)
{
    write_one(out, "attnd_received_bytes_total", "counter", "Bytes of request bodies received.",
              value_of(&metrics->received_bytes));
    write_one(out, "attnd_sent_bytes_total", "counter", "Bytes of response bodies sent.",
              value_of(&metrics->sent_bytes));
    write_one(out, "attnd_connections_total", "counter", "Connections accepted.",
              value_of(&metrics->connections_begun));
    write_one(out, "attnd_connections_evicted_total", "counter", "Connections closed to make room for others.",
              value_of(&metrics->connections_evicted));
    write_one(out, "attnd_log_lines_lost_total", "counter",
              "Lines that the log did not take, because its reader was too slow or its disk was full.",
              now->log_lines_lost);
}

/* Escapes quotes and backslashes, which names of compilers and libraries may have. */
static void write_label(struct chunks *out, const char *name, const char *value)
{
    chunks_format(out, "%s=\"", name);
    for (; *value != '\0'; value++)
        if (*value == '"' || *value == '\\')
            chunks_format(out, "\\%c", *value);
        else
            chunks_bytes(out, value, 1);
    chunks_text(out, "\"");
}

static void write_build(const struct metrics_now *now, struct chunks *out)
{
    begin(out, "attnd_build_info", "gauge", "What this server is made of; always 1.");
    chunks_text(out, "attnd_build_info{version=\"" ATTN_VERSION "\",");
    write_label(out, "kernel", now->kernel);
    chunks_text(out, ",");
    write_label(out, "blas", attn_blas_description());
    chunks_text(out, ",");
    write_label(out, "http", now->http_library);
    chunks_text(out, "} 1\n");
}

/* ---- the process, under the names that all exporters use ---- */

static void write_process(const struct metrics_now *now, struct chunks *out)
{
    struct timespec used;
    uint64_t of_files;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    begin(out, "process_cpu_seconds_total", "counter", "Processor time, user and system.");
    chunks_format(out, "process_cpu_seconds_total %.6f\n", (double)used.tv_sec + (double)used.tv_nsec / 1e9);
    write_one(out, "process_resident_memory_bytes", "gauge", "Resident memory.", memory_resident_bytes(&of_files));
    write_one(out, "process_virtual_memory_bytes", "gauge", "Address space.", memory_virtual_bytes());
    write_one(out, "process_open_fds", "gauge", "Open file descriptors.", machine_open_descriptors());
    write_one(out, "process_max_fds", "gauge", "File descriptors that may be open.", machine_most_descriptors());
    begin(out, "process_start_time_seconds", "gauge", "When the process began, in seconds since 1970.");
    chunks_format(out, "process_start_time_seconds %.3f\n", now->started_s);
}

/* ---- metrics under the names of Triton's dashboards ---- */

static unsigned long long us(double ms)
{
    return (unsigned long long)(ms * 1e3);
}

/* Names of models are letters, digits, dots, underscores and hyphens: nothing in them needs an escape. */
static void write_models(const struct metrics_now *now, struct chunks *out)
{
    static const char *const series[][2] = {
        {"nv_inference_request_success", "Successful requests to a model."},
        {"nv_inference_request_failure", "Failed requests to a model."},
        {"nv_inference_count", "Batch items of successful requests."},
        {"nv_inference_exec_count", "Executions of the model; requests are not batched together."},
        {"nv_inference_request_duration_us", "Time of requests, from the queue on."},
        {"nv_inference_queue_duration_us", "Time in the queue."},
        {"nv_inference_compute_input_duration_us", "Time of reading inputs."},
        {"nv_inference_compute_infer_duration_us", "Time of computing."},
        {"nv_inference_compute_output_duration_us", "Time of writing outputs."},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(series); i++) {
        begin(out, series[i][0], "counter", series[i][1]);
        for (size_t model = 0; model < now->model_count; model++) {
            const struct registry_statistics *of = &now->models[model].statistics;
            /* in the order of series */
            const unsigned long long values[ARRAY_LENGTH(series)] = {of->successes,
                                                                     of->failures,
                                                                     of->items,
                                                                     of->successes,
                                                                     us(of->success_ms + of->failure_ms),
                                                                     us(of->queue_ms),
                                                                     us(of->parse_ms),
                                                                     us(of->compute_ms),
                                                                     us(of->write_ms)};
            chunks_format(out, "%s{model=\"%s\",version=\"1\"} %llu\n", series[i][0], now->models[model].name,
                          values[i]);
        }
    }
}

void metrics_write(const struct metrics *metrics, const struct metrics_now *now, const struct metrics_labels *labels,
                   struct chunks *out)
{
    write_build(now, out);
    write_gauges(metrics, now, out);
    write_things(now, out);
    write_quotas(now, out);
    write_requests(metrics, labels, out);
    write_times(metrics, labels, out);
    write_rejected(metrics, labels, out);
    write_cancelled(metrics, out);
    write_counters(metrics, now, out);
    write_process(now, out);
    write_models(now, out);
}

/*
 * test_metrics.c: what is counted, and how Prometheus is told.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/arena.h"
#include "check_main.h"
#include "service/metrics.h"

static const struct metrics_route routes[] = {{"GET", "/a"}, {"POST", "/b/{name}"}};
static const char *const reasons[] = {"busy", NULL, "quota"};
static const struct metrics_labels labels = {routes, 2, reasons, 3};
static const struct registry_use models[] = {
    {"attention", {.successes = 0}},
    {"kept.a", {.successes = 2, .failures = 1, .items = 5, .success_ms = 2.5, .failure_ms = 0.5, .compute_ms = 1.25}}};
static const struct keys_quota quotas[] = {{"a", "requests", 0.5, 1, 0.25}, {"b", "flops", 1e9, 1e9, -5}};
static const struct metrics_now now = {.models = models,
                                       .model_count = 2,
                                       .model_states = {[REGISTRY_READY] = 3, [REGISTRY_BROKEN] = 1},
                                       .caches = {4096, 2},
                                       .caches_limit = {1 << 20, 7},
                                       .quotas = quotas,
                                       .quota_count = 2,
                                       .started_s = 1.5e9,
                                       .queue_jobs = 3,
                                       .running_jobs = 2,
                                       .running_limit = 4,
                                       .connections_limit = 512,
                                       .layers = {5, 10000, 2048, 1 << 30},
                                       .layers_prepared_limit_bytes = 1 << 20,
                                       .kernel = "a \"quoted\\ one",
                                       .http_library = "h"};

static char *text_at(const struct metrics *metrics, const struct metrics_now *at)
{
    attn_arena *arena = attn_arena_create(1 << 20);
    struct chunks out = chunks_begin(arena);
    metrics_write(metrics, at, &labels, &out);
    char *text = chunks_join(&out);
    ck_assert_ptr_nonnull(text);
    char *copy = strdup(text);
    attn_arena_destroy(arena);
    return copy;
}

static char *text_of(const struct metrics *metrics)
{
    return text_at(metrics, &now);
}

static void check_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    ck_assert_msg(at != NULL && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n', "no line %s in\n%.3000s",
                  line, text);
}

START_TEST(requests_are_counted_by_route_and_status)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    metrics_count_request(metrics, 0, 200, 2);
    metrics_count_request(metrics, 1, 404, 2);
    metrics_count_request(metrics, 1, 404, 2);
    metrics_count_request(metrics, 1, 0, 2);
    metrics_count_request(metrics, 1, 600, 2);
    metrics_count_request(metrics, METRICS_ROUTES_MAX, 200, 2);
    char *text = text_of(metrics);
    check_line(text, "attnd_requests_total{method=\"GET\",route=\"/a\",status=\"200\"} 1");
    check_line(text, "attnd_requests_total{method=\"POST\",route=\"/b/{name}\",status=\"404\"} 2");
    check_line(text, "attnd_route_seconds_bucket{method=\"POST\",route=\"/b/{name}\",le=\"0.0025\"} 2");
    check_line(text, "attnd_route_seconds_count{method=\"GET\",route=\"/a\"} 1");
    ck_assert_ptr_null(strstr(text, "status=\"0\""));
    ck_assert_ptr_null(strstr(text, "status=\"600\""));
    free(text);
    free(metrics);
}
END_TEST

START_TEST(buckets_are_cumulative_and_hold_their_bounds)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    static const double times_ms[] = {1, 1.001, 40, 1e6, -1};
    for (size_t i = 0; i < sizeof times_ms / sizeof times_ms[0]; i++)
        metrics_observe(&metrics->stages[METRICS_COMPUTE], times_ms[i]);
    char *text = text_of(metrics);
    check_line(text, "attnd_request_seconds_bucket{stage=\"compute\",le=\"0.00025\"} 1"); /* no time at all */
    check_line(text, "attnd_request_seconds_bucket{stage=\"compute\",le=\"0.001\"} 2");
    check_line(text, "attnd_request_seconds_bucket{stage=\"compute\",le=\"0.0025\"} 3");
    check_line(text, "attnd_request_seconds_bucket{stage=\"compute\",le=\"0.05\"} 4");
    check_line(text, "attnd_request_seconds_bucket{stage=\"compute\",le=\"300\"} 4");
    check_line(text, "attnd_request_seconds_bucket{stage=\"compute\",le=\"+Inf\"} 5");
    check_line(text, "attnd_request_seconds_count{stage=\"compute\"} 5");
    check_line(text, "attnd_request_seconds_sum{stage=\"compute\"} 1000.042001000");
    check_line(text, "attnd_request_seconds_count{stage=\"parse\"} 0");
    free(text);
    free(metrics);
}
END_TEST

START_TEST(reasons_gauges_and_labels_are_told)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    metrics_add(&metrics->rejected[2], 7);
    metrics_add(&metrics->cancelled[METRICS_DEADLINE], 1);
    char *text = text_of(metrics);
    check_line(text, "attnd_rejected_total{reason=\"busy\"} 0");
    check_line(text, "attnd_rejected_total{reason=\"quota\"} 7");
    check_line(text, "attnd_cancelled_total{reason=\"deadline\"} 1");
    check_line(text, "attnd_queue_jobs 3");
    check_line(text, "attnd_running_jobs 2");
    check_line(text, "attnd_running_limit 4");
    check_line(text, "attnd_connections_limit 512");
    check_line(text, "attnd_caches 2");
    check_line(text, "attnd_caches_limit 7");
    check_line(text, "attnd_caches_bytes 4096");
    check_line(text, "attnd_caches_limit_bytes 1048576");
    check_line(text, "attnd_models{state=\"ready\"} 3");
    check_line(text, "attnd_models{state=\"broken\"} 1");
    check_line(text, "attnd_quota_limit{key=\"a\",quota=\"requests\"} 1");
    check_line(text, "attnd_quota_left{key=\"a\",quota=\"requests\"} 0.25");
    check_line(text, "attnd_quota_left{key=\"b\",quota=\"flops\"} -5");
    check_line(text, "process_start_time_seconds 1500000000.000");
    ck_assert_ptr_null(strstr(text, "attnd_route_seconds_count"));
    ck_assert_ptr_nonnull(strstr(text, "kernel=\"a \\\"quoted\\\\ one\""));
    ck_assert_ptr_null(strstr(text, "attnd_layers"));
    free(text);
    free(metrics);
}
END_TEST

START_TEST(layers_are_told_beside_their_limits)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    struct metrics_now with_layers = now;
    with_layers.has_layers = true;
    char *text = text_at(metrics, &with_layers);
    check_line(text, "attnd_layers 5");
    check_line(text, "attnd_layers_limit 10000");
    check_line(text, "attnd_layers_bytes 2048");
    check_line(text, "attnd_layers_limit_bytes 1073741824");
    check_line(text, "attnd_layers_prepared_limit_bytes 1048576");
    free(text);
    free(metrics);
}
END_TEST

START_TEST(models_are_told_each_by_its_name)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    char *text = text_of(metrics);
    check_line(text, "nv_inference_request_success{model=\"attention\",version=\"1\"} 0");
    check_line(text, "nv_inference_request_success{model=\"kept.a\",version=\"1\"} 2");
    check_line(text, "nv_inference_request_failure{model=\"kept.a\",version=\"1\"} 1");
    check_line(text, "nv_inference_count{model=\"kept.a\",version=\"1\"} 5");
    check_line(text, "nv_inference_request_duration_us{model=\"kept.a\",version=\"1\"} 3000");
    check_line(text, "nv_inference_compute_infer_duration_us{model=\"kept.a\",version=\"1\"} 1250");
    free(text);
    free(metrics);
}
END_TEST

START_TEST(without_memory_the_text_is_not_whole_and_says_so)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    attn_arena *arena = attn_arena_create(4096);
    struct chunks out = chunks_begin(arena);
    metrics_write(metrics, &now, &labels, &out);
    ck_assert(!out.is_ok);
    attn_arena_destroy(arena);
    free(metrics);
}
END_TEST

CHECK_MAIN("metrics")
{
    tcase_add_test(tests, requests_are_counted_by_route_and_status);
    tcase_add_test(tests, buckets_are_cumulative_and_hold_their_bounds);
    tcase_add_test(tests, reasons_gauges_and_labels_are_told);
    tcase_add_test(tests, layers_are_told_beside_their_limits);
    tcase_add_test(tests, models_are_told_each_by_its_name);
    tcase_add_test(tests, without_memory_the_text_is_not_whole_and_says_so);
}

/* probes.c: answers at once from the state of the server. */
#include <stdatomic.h>

#include "base/log_writer.h"
#include "http/steps.h"
#include "service/endpoints.h"
#include "service/infer/model.h"
#include "service/registry/layer/keeper.h"

void probes_answer_live(struct request *request)
{
    health_write_live(reply_begin(request, MHD_HTTP_OK, MEDIA_JSON));
}

/* Whether so little memory is left that the next request would probably be refused. */
static bool is_memory_short(const struct http_setup *setup)
{
    return setup->budget != NULL && attn_budget_bytes(setup->budget) > setup->budget_bytes / 20 * 19;
}

static bool is_useless(const struct http_setup *setup)
{
    return setup->layers != NULL && layer_keeper_is_useless(setup->layers);
}

static unsigned reasons_against(const struct http_server *server)
{
    return (atomic_load(&server->is_ready) ? 0u : HEALTH_STARTING) |
           (atomic_load(&server->is_draining) ? HEALTH_DRAINING : 0u) |
           (executor_is_full(server->setup.executor, EXECUTOR_NORMAL) ? HEALTH_QUEUE_FULL : 0u) |
           (is_memory_short(&server->setup) ? HEALTH_MEMORY : 0u) | (is_useless(&server->setup) ? HEALTH_USELESS : 0u);
}

void probes_answer_ready(struct request *request)
{
    const unsigned reasons = reasons_against(request->server);
    health_write_ready(reasons,
                       reply_begin(request, reasons != 0 ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, MEDIA_JSON));
}

void probes_answer_version(struct request *request)
{
    health_write_version(&request->server->setup.facts, reply_begin(request, MHD_HTTP_OK, MEDIA_JSON));
}

void probes_answer_v2(struct request *request)
{
    infer_write_server(reply_begin(request, MHD_HTTP_OK, MEDIA_JSON));
}

void probes_answer_v2_ready(struct request *request)
{
    const bool is_ready = reasons_against(request->server) == 0;
    infer_write_ready(is_ready,
                      reply_begin(request, is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, MEDIA_JSON));
}

/* Lists the built-in model, and the layers and whole models that had requests. NULL without memory. */
static const struct registry_use *list_models(const struct request *request, size_t *count)
{
    struct layer_keeper *layers = request->server->setup.layers;
    struct registry_use *models = NULL;
    *count = 0;
    if (layers != NULL)
        models = attn_arena_take_zeroed(request->arena, METRICS_MODELS_MAX, sizeof *models);
    if (models == NULL)
        return NULL;
    text_copy(models[0].name, sizeof models[0].name, MODEL_BUILT_IN);
    registry_built_in(layer_keeper_registry(layers), &models[0].statistics);
    *count = 1 + registry_used(layer_keeper_registry(layers), METRICS_MODELS_MAX - 1, models + 1);
    return models;
}

/* Fills in what is kept, and what the keys have left. */
static void look_at_things(const struct request *request, struct metrics_now *now)
{
    enum { QUOTAS_MAX = 256 * KEYS_QUOTAS };
    const struct http_setup *setup = &request->server->setup;
    if (setup->layers != NULL) {
        struct prepared_store *prepared = layer_keeper_prepared(setup->layers);
        registry_states(layer_keeper_registry(setup->layers), KIND_MODEL, now->model_states);
        now->layers = registry_room(layer_keeper_registry(setup->layers));
        now->layers_prepared_bytes = prepared_store_bytes(prepared);
        now->layers_prepared_limit_bytes = prepared_store_limit_bytes(prepared);
    }
    if (setup->caches != NULL) {
        now->caches = cache_store_held(setup->caches);
        now->caches_limit = cache_store_share(setup->caches, "");
    }
    struct keys_quota *quotas =
        setup->keys != NULL ? attn_arena_take(request->arena, QUOTAS_MAX, sizeof *quotas) : NULL;
    now->quota_count = quotas != NULL ? keys_quotas(setup->keys, NULL, quotas, QUOTAS_MAX) : 0;
    now->quotas = quotas;
}

void probes_answer_metrics(struct request *request)
{
    const struct http_setup *setup = &request->server->setup;
    const struct route *routes = request->server->routes;
    const size_t route_count = request->server->route_count;
    struct metrics_route names[METRICS_ROUTES_MAX];
    for (size_t i = 0; i < route_count; i++)
        names[i] = (struct metrics_route){routes[i].method, routes[i].path};
    names[route_count] = (struct metrics_route){"other", "other"};
    struct metrics_labels labels = {.routes = names, .route_count = route_count + 1};
    labels.reasons = problems_types(&labels.reason_count);
    attn_budget *models_budget = setup->models_budget;
    size_t model_count;
    const struct registry_use *models = list_models(request, &model_count);
    struct metrics_now now = {
        .queue_jobs = executor_waiting(setup->executor),
        .running_jobs = executor_running(setup->executor),
        .queue_limit = executor_queue_limit(setup->executor),
        .running_limit = executor_threads(setup->executor),
        .connections_limit = setup->connections,
        .memory_bytes = setup->budget != NULL ? attn_budget_bytes(setup->budget) : 0,
        .memory_limit_bytes = setup->budget_bytes,
        .log_lines_lost = log_writer_lost(setup->log->writer),
        .models_memory_bytes = models_budget != NULL ? attn_budget_bytes(models_budget) : 0,
        .models_memory_limit_bytes = models_budget != NULL ? attn_budget_limit_bytes(models_budget) : 0,
        .has_layers = setup->layers != NULL,
        .is_ready = reasons_against(request->server) == 0,
        .kernel = setup->facts.kernel,
        .http_library = setup->facts.http_library,
        .models = models,
        .model_count = model_count,
        .started_s = setup->started_s,
    };
    look_at_things(request, &now);
    metrics_write(setup->metrics, &now, &labels, reply_begin(request, MHD_HTTP_OK, MEDIA_METRICS));
}

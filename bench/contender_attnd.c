/* contender_attnd.c: the library of this project, through its public headers. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "attn/gradient.h"
#include "attn/multihead.h"
#include "attn/panels.h"
#include "contender.h"

struct attnd {
    attn_tensor stream[STREAM_COUNT];
    attn_tensor sinks, documents, padding;   /* where the case has them */
    struct attn_panels panels[STREAM_COUNT]; /* of the weights of a layer, which is kept: packed before it is used */
    attn_request request;
    attn_pool *pool;
    attn_runtime runtime;
    attn_arena *arena, *kept; /* kept: for the panels */
    attn_result result;
    bool is_gradients;
    attn_gradient_result gradients;
};

static attn_request make_request(const bench_case *c, const attn_tensor *stream)
{
    attn_request request = {.is_layer = c->is_layer, .options.compute = c->dtype};
    request.inputs.query = &stream[STREAM_Q];
    if (c->is_layer) {
        request.weights.query.weight = &stream[STREAM_W_Q];
        request.weights.key.weight = &stream[STREAM_W_K];
        request.weights.value.weight = &stream[STREAM_W_V];
        request.weights.output.weight = &stream[STREAM_W_O];
        request.options.num_heads = c->heads;
    } else {
        request.inputs.key = &stream[STREAM_K];
        request.inputs.value = &stream[STREAM_V];
    }
    request.masks.causal = c->is_causal;
    request.masks.has_window = c->window != 0;
    request.masks.window_left = (int64_t)c->window - 1;
    request.masks.window_right = ATTN_WINDOW_OPEN;
    request.options.want = c->is_gradients ? 0 : 1U << ATTN_STEP_OUTPUT;
    if (c->variant == VARIANT_ROPE)
        request.options.rope.layout = ATTN_ROPE_HALF;
    if (c->with_maps)
        request.options.want |= 1U << ATTN_STEP_ATTENTION;
    return request;
}

/* Hides every fourth key of each item; under the variant odd the values behind are NaN. */
static bool add_padding(const bench_case *c, struct attnd *attnd)
{
    attn_tensor *value = &attnd->stream[STREAM_V];
    attnd->padding = attn_tensor_view(malloc(c->batch * c->kv_len), ATTN_BOOL, 2, (size_t[]){c->batch, c->kv_len});
    attnd->request.masks.padding = &attnd->padding;
    for (size_t at = 0; attnd->padding.data != NULL && at < c->batch * c->kv_len; at++)
        ((uint8_t *)attnd->padding.data)[at] = at % c->kv_len % BENCH_PADDING != 0;
    for (size_t at = 0; c->variant == VARIANT_ODD && at < attn_tensor_count(value); at++)
        if (at / c->dim % c->kv_len % BENCH_PADDING == 0) {
            if (c->dtype == ATTN_F32)
                ((float *)value->data)[at] = NAN;
            else
                ((double *)value->data)[at] = (double)NAN;
        }
    return attnd->padding.data != NULL;
}

/* What a variant has beside the streams, in memory of its own. */
static bool add_variant(const bench_case *c, struct attnd *attnd)
{
    attn_request *request = &attnd->request;
    const size_t heads[] = {c->heads}, len[] = {c->kv_len};
    request->options.alibi = c->variant == VARIANT_ALIBI;
    if (c->variant == VARIANT_SINKS) {
        attnd->sinks = attn_tensor_view(calloc(c->heads, sizeof(double)), c->dtype, 1, heads);
        for (size_t h = 0; attnd->sinks.data != NULL && h < c->heads; h++)
            if (c->dtype == ATTN_F32)
                ((float *)attnd->sinks.data)[h] = (float)bench_sink_of(h);
            else
                ((double *)attnd->sinks.data)[h] = bench_sink_of(h);
        request->options.sinks = &attnd->sinks;
        return attnd->sinks.data != NULL;
    }
    if (c->variant == VARIANT_DOCUMENTS) {
        attnd->documents = attn_tensor_view(calloc(c->kv_len, sizeof(int64_t)), ATTN_I64, 1, len);
        for (size_t j = 0; attnd->documents.data != NULL && j < c->kv_len; j++)
            ((int64_t *)attnd->documents.data)[j] = (int64_t)bench_document_of(j, c->kv_len);
        request->masks.documents_query = request->masks.documents_key = &attnd->documents;
        return attnd->documents.data != NULL;
    }
    if (c->variant == VARIANT_PADDED || c->variant == VARIANT_ODD)
        return add_padding(c, attnd);
    return true;
}

static void release(void *state)
{
    struct attnd *attnd = state;
    if (attnd == NULL)
        return;
    attn_arena_destroy(attnd->arena);
    attn_pool_destroy(attnd->pool);
    attn_arena_destroy(attnd->kept);
    for (int s = 0; s < STREAM_COUNT; s++)
        free(attnd->stream[s].data);
    free(attnd->sinks.data);
    free(attnd->documents.data);
    free(attnd->padding.data);
    free(attnd);
}

static bool make_streams(const bench_case *c, attn_tensor *stream)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        if (!bench_stream_is_used(c, (bench_stream)s))
            continue;
        stream[s] = bench_stream_make(c, (bench_stream)s);
        if (stream[s].data == NULL)
            return false;
    }
    return true;
}

static bool pack_weights(struct attnd *attnd)
{
    for (int s = STREAM_W_Q; s <= STREAM_W_O; s++) {
        attn_tensor *weight = &attnd->stream[s];
        const attn_kernel *kernel = attnd->runtime.kernel;
        const size_t bytes = weight->data == NULL ? 0 : attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, weight);
        if (bytes == 0)
            continue;
        void *data = attn_arena_take(attnd->kept, 1, bytes);
        if (data == NULL)
            return false;
        attn_panels_write(&attnd->runtime, ATTN_LAYOUT_IN_OUT, weight, data);
        attnd->panels[s] = (struct attn_panels){kernel, ATTN_LAYOUT_IN_OUT, data};
        weight->panels = &attnd->panels[s];
    }
    return true;
}

static void *prepare(const bench_case *c)
{
    struct attnd *attnd = calloc(1, sizeof *attnd);
    if (attnd == NULL)
        return NULL;
    attn_blas_prepare();
    attnd->pool = attn_pool_create(c->threads, NULL);
    attnd->arena = attn_arena_create(SIZE_MAX);
    attnd->kept = attn_arena_create(SIZE_MAX);
    if (attnd->pool == NULL || attnd->arena == NULL || attnd->kept == NULL || !make_streams(c, attnd->stream)) {
        release(attnd);
        return NULL;
    }
    attnd->runtime = attn_pool_runtime(attnd->pool, NULL);
    attnd->request = make_request(c, attnd->stream);
    attnd->is_gradients = c->is_gradients;
    if (pack_weights(attnd) && add_variant(c, attnd))
        return attnd;
    release(attnd);
    return NULL;
}

static attn_status differentiate(struct attnd *attnd, attn_error *error)
{
    const attn_gradient_request request = {&attnd->request, &attnd->stream[STREAM_GRAD_OUTPUT], 0};
    attn_gradient_plan plan;
    attn_status status = attn_gradient_plan_make(&request, &plan, error);
    if (status == ATTN_OK)
        status = attn_gradient_run(&plan, &request, &attnd->runtime, attnd->arena, &attnd->gradients, error);
    return status;
}

static attn_status attend(struct attnd *attnd, attn_error *error)
{
    attn_plan plan;
    attn_status status = attn_plan_make(&attnd->request, &plan, error);
    if (status == ATTN_OK)
        status = attn_plan_run(&plan, &attnd->request, &attnd->runtime, attnd->arena, &attnd->result, error);
    return status;
}

struct job {
    void (*work)(void *argument);
    void *argument;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
};

static void run_job(void *argument)
{
    struct job *job = argument;
    job->work(job->argument);
    pthread_mutex_lock(&job->lock);
    job->has_ended = true;
    pthread_cond_signal(&job->ended);
    pthread_mutex_unlock(&job->lock);
}

/* A thread of the pool, as for a request: a caller from outside would be woken after every part of a computation. */
static bool enter(void *state, void (*work)(void *argument), void *argument)
{
    struct attnd *attnd = state;
    struct job job = {.work = work, .argument = argument};
    pthread_mutex_init(&job.lock, NULL);
    pthread_cond_init(&job.ended, NULL);
    const bool is_queued = attn_pool_submit(attnd->pool, run_job, &job);
    pthread_mutex_lock(&job.lock);
    while (is_queued && !job.has_ended)
        pthread_cond_wait(&job.ended, &job.lock);
    pthread_mutex_unlock(&job.lock);
    pthread_cond_destroy(&job.ended);
    pthread_mutex_destroy(&job.lock);
    return is_queued;
}

static bool run(void *state)
{
    struct attnd *attnd = state;
    attn_error error;
    attn_arena_reset(attnd->arena);
    if ((attnd->is_gradients ? differentiate : attend)(attnd, &error) == ATTN_OK)
        return true;
    fprintf(stderr, "attnd: %s\n", error.message);
    return false;
}

static void results(const void *state, attn_tensor *output, attn_tensor *maps)
{
    const struct attnd *attnd = state;
    *output =
        attnd->is_gradients ? attnd->gradients.gradient[ATTN_GRADIENT_QUERY] : attnd->result.step[ATTN_STEP_OUTPUT];
    *maps = attnd->result.step[ATTN_STEP_ATTENTION];
}

static const char *description(void)
{
    return attn_kernel_name(attn_kernel_best());
}

const contender contender_attnd = {prepare, enter, run, results, release, description};

/* contender_attnd.c: the library of this project, through its public headers. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/gradient.h"
#include "attn/multihead.h"
#include "attn/panels.h"
#include "contender.h"

static const attn_kernel *chosen_kernel; /* NULL: the best */

struct attnd {
    attn_tensor stream[STREAM_COUNT];
    attn_tensor past[2];                     /* keys and values of the cache, and behind it those of the request */
    attn_tensor sinks, documents, padding;   /* where the case has them */
    struct attn_panels panels[STREAM_COUNT]; /* of the weights of a layer, which is kept: packed before it is used */
    attn_request request;
    attn_pool *pool;
    attn_runtime runtime;
    attn_arena *arena, *kept; /* kept: for the panels */
    attn_result result;
    bench_case c;
    attn_gradient_result gradients;
};

static void add_weights(attn_weights *weights, const attn_tensor *stream)
{
    const attn_tensor *gate = &stream[STREAM_W_GATE], *up = &stream[STREAM_W_UP];
    weights->query.weight = &stream[STREAM_W_Q];
    weights->key.weight = &stream[STREAM_W_K];
    weights->value.weight = &stream[STREAM_W_V];
    weights->output.weight = &stream[STREAM_W_O];
    weights->gate.weight = gate->data != NULL ? gate : NULL;
    weights->feed_forward.up.weight = up->data != NULL ? up : NULL;
    weights->feed_forward.down.weight = up->data != NULL ? &stream[STREAM_W_DOWN] : NULL;
}

static void add_norms(const bench_case *c, attn_options *options)
{
    attn_feed_forward_options *feed_forward = &options->feed_forward;
    const bool is_rms = bench_has(c, WORD_RMSNORM), is_pre = bench_has(c, WORD_PRENORM);
    if (c->is_block)
        feed_forward->activation = bench_has(c, WORD_BARE) ? ATTN_ACTIVATION_RELU : ATTN_ACTIVATION_GELU;
    if (bench_has(c, WORD_BARE) || !(c->is_block || is_rms || is_pre || bench_has(c, WORD_LAYERNORM)))
        return;
    options->residual = true;
    options->norm = is_rms ? ATTN_NORM_RMS : ATTN_NORM_LAYER;
    options->norm_position = is_pre ? ATTN_NORM_PRE : ATTN_NORM_POST;
    options->norm_eps = BENCH_NORM_EPS;
    if (c->is_block) {
        feed_forward->residual = true;
        feed_forward->norm = options->norm;
        feed_forward->position = options->norm_position;
        feed_forward->norm_eps = BENCH_NORM_EPS;
    }
}

static attn_steps wanted_steps(const bench_case *c)
{
    if (bench_has(c, WORD_GRADIENTS))
        return 0;
    return ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | (c->with_maps ? ATTN_STEP_BIT(ATTN_STEP_ATTENTION) : 0) |
           (bench_has(c, WORD_MEAN) ? ATTN_STEP_BIT(ATTN_STEP_ATTENTION_MEAN) : 0);
}

static attn_request make_request(const bench_case *c, const attn_tensor *stream)
{
    attn_request request = {.is_layer = c->is_layer, .options.compute = c->dtype};
    attn_options *options = &request.options;
    request.inputs.query = &stream[STREAM_Q];
    if (c->is_layer) {
        add_weights(&request.weights, stream);
        options->num_heads = c->heads;
    } else {
        request.inputs.key = &stream[STREAM_K];
        request.inputs.value = &stream[STREAM_V];
    }
    request.masks.causal = c->is_causal;
    request.masks.has_window = c->window != 0;
    request.masks.window_left = (int64_t)c->window - 1;
    request.masks.window_right = ATTN_WINDOW_OPEN;
    options->want = wanted_steps(c);
    options->bf16_products = bench_has(c, WORD_BF16_PRODUCTS);
    options->alibi = bench_has(c, WORD_ALIBI);
    if (bench_has(c, WORD_ROPE))
        options->rope.layout = ATTN_ROPE_HALF;
    if (bench_has(c, WORD_LINEAR))
        options->mechanism.type = ATTN_LINEAR;
    if (bench_has(c, WORD_PERFORMER))
        options->mechanism = (attn_mechanism){.type = ATTN_PERFORMER, .eps = BENCH_PERFORMER_EPS};
    if (bench_has(c, WORD_DROPOUT)) {
        options->dropout = BENCH_DROPOUT;
        options->dropout_attention = true;
    }
    add_norms(c, options);
    return request;
}

/* Takes rows [from, to) of every head into memory of its own: a cache and a request do not lie side by side. */
static attn_tensor take_rows(const attn_tensor *whole, size_t from, size_t to)
{
    const size_t heads = whole->shape[0] * whole->shape[1], row = whole->shape[3] * attn_dtype_bytes(whole->dtype);
    const size_t shape[] = {whole->shape[0], whole->shape[1], to - from, whole->shape[3]};
    char *data = malloc(heads * (to - from) * row);
    for (size_t h = 0; data != NULL && h < heads; h++)
        memcpy(data + h * (to - from) * row, (const char *)whole->data + (h * whole->shape[2] + from) * row,
               (to - from) * row);
    return attn_tensor_view(data, whole->dtype, 4, shape);
}

/* Of a layer, the streams of keys and values are the cache; of attention, its first rows are. */
static bool add_past(const bench_case *c, struct attnd *attnd)
{
    for (int i = 0; i < 2; i++) {
        attn_tensor *stream = &attnd->stream[STREAM_K + i], *past = &attnd->past[i];
        const size_t past_len = bench_past_len(c);
        *past = take_rows(stream, 0, past_len);
        if (!c->is_layer) {
            const attn_tensor latest = take_rows(stream, past_len, c->kv_len);
            free(stream->data);
            *stream = latest;
        }
        if (past->data == NULL || stream->data == NULL)
            return false;
    }
    attnd->request.inputs.past_key = &attnd->past[0];
    attnd->request.inputs.past_value = &attnd->past[1];
    return true;
}

/* Hides every fourth key of each item; under the word odd the values behind are NaN. */
static bool add_padding(const bench_case *c, struct attnd *attnd)
{
    attn_tensor *value = &attnd->stream[STREAM_V];
    attnd->padding = attn_tensor_view(malloc(c->batch * c->kv_len), ATTN_BOOL, 2, (size_t[]){c->batch, c->kv_len});
    attnd->request.masks.padding = &attnd->padding;
    for (size_t at = 0; attnd->padding.data != NULL && at < c->batch * c->kv_len; at++)
        ((uint8_t *)attnd->padding.data)[at] = at % c->kv_len % BENCH_PADDING != 0;
    for (size_t at = 0; bench_has(c, WORD_ODD) && at < attn_tensor_count(value); at++)
        if (at / c->dim % c->kv_len % BENCH_PADDING == 0) {
            if (c->dtype == ATTN_F32)
                ((float *)value->data)[at] = NAN;
            else
                ((double *)value->data)[at] = (double)NAN;
        }
    return attnd->padding.data != NULL;
}

/* What words add to the streams, in memory of its own. */
static bool add_words(const bench_case *c, struct attnd *attnd)
{
    attn_request *request = &attnd->request;
    const size_t heads[] = {c->heads}, len[] = {c->kv_len};
    if (bench_has(c, WORD_SINKS)) {
        attnd->sinks = attn_tensor_view(calloc(c->heads, sizeof(double)), c->dtype, 1, heads);
        for (size_t h = 0; attnd->sinks.data != NULL && h < c->heads; h++)
            if (c->dtype == ATTN_F32)
                ((float *)attnd->sinks.data)[h] = (float)bench_sink_of(h);
            else
                ((double *)attnd->sinks.data)[h] = bench_sink_of(h);
        request->options.sinks = &attnd->sinks;
        return attnd->sinks.data != NULL;
    }
    if (bench_has(c, WORD_DOCUMENTS)) {
        attnd->documents = attn_tensor_view(calloc(c->kv_len, sizeof(int64_t)), ATTN_I64, 1, len);
        for (size_t j = 0; attnd->documents.data != NULL && j < c->kv_len; j++)
            ((int64_t *)attnd->documents.data)[j] = (int64_t)bench_document_of(j, c->kv_len);
        request->masks.documents_query = request->masks.documents_key = &attnd->documents;
        return attnd->documents.data != NULL;
    }
    if (bench_has(c, WORD_PADDED) || bench_has(c, WORD_ODD))
        return add_padding(c, attnd);
    return !bench_has(c, WORD_PAST) || add_past(c, attnd);
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
    free(attnd->past[0].data);
    free(attnd->past[1].data);
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
        stream[s] = bench_stream_make(c, (bench_stream)s, false);
        if (stream[s].data == NULL)
            return false;
    }
    return true;
}

static bool pack_weights(struct attnd *attnd)
{
    for (int s = STREAM_W_Q; s < STREAM_COUNT; s++) {
        attn_tensor *weight = &attnd->stream[s];
        const attn_kernel *kernel = attnd->runtime.kernel;
        const size_t bytes =
            weight->data == NULL || s == STREAM_GRAD_OUTPUT ? 0 : attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, weight);
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

/* What this version of the library refuses is no failure of the measurement. */
static bool is_possible(const struct attnd *attnd)
{
    attn_plan plan;
    attn_error error;
    return attn_plan_make(&attnd->request, &plan, &error) == ATTN_OK;
}

static void *prepare(const bench_case *c)
{
    struct attnd *attnd = calloc(1, sizeof *attnd);
    if (attnd == NULL)
        return NULL;
    attn_blas_use_one_thread();
    attnd->pool = attn_pool_create(&(attn_pool_options){.threads = c->threads, .pin = true}, NULL);
    attnd->arena = attn_arena_create(SIZE_MAX);
    attnd->kept = attn_arena_create(SIZE_MAX);
    if (attnd->pool == NULL || attnd->arena == NULL || attnd->kept == NULL || !make_streams(c, attnd->stream)) {
        release(attnd);
        return NULL;
    }
    attnd->runtime = attn_pool_runtime(attnd->pool, chosen_kernel);
    attnd->request = make_request(c, attnd->stream);
    attnd->c = *c;
    if (pack_weights(attnd) && add_words(c, attnd) && is_possible(attnd))
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
        status = attn_gradient_run(&plan, NULL, &attnd->runtime, attnd->arena, &attnd->gradients, error);
    return status;
}

static attn_status attend(struct attnd *attnd, attn_error *error)
{
    attn_plan plan;
    attn_status status = attn_plan_make(&attnd->request, &plan, error);
    if (status == ATTN_OK)
        status = attn_plan_run(&plan, NULL, &attnd->runtime, attnd->arena, &attnd->result, error);
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
    if ((bench_has(&attnd->c, WORD_GRADIENTS) ? differentiate : attend)(attnd, &error) == ATTN_OK)
        return true;
    fprintf(stderr, "attnd: %s\n", error.message);
    return false;
}

static size_t results(const void *state, bench_result result[BENCH_RESULTS_MAX])
{
    const struct attnd *attnd = state;
    const attn_tensor *gradient = attnd->gradients.gradient, *step = attnd->result.step;
    if (bench_has(&attnd->c, WORD_GRADIENTS)) {
        const bool is_layer = attnd->c.is_layer;
        result[0] = (bench_result){"output", gradient[ATTN_GRADIENT_QUERY]};
        result[1] = (bench_result){"key", gradient[is_layer ? ATTN_GRADIENT_KEY_WEIGHT : ATTN_GRADIENT_KEY]};
        result[2] = (bench_result){"value", gradient[is_layer ? ATTN_GRADIENT_VALUE_WEIGHT : ATTN_GRADIENT_VALUE]};
        return 3;
    }
    result[0] = (bench_result){"output", step[ATTN_STEP_OUTPUT]};
    if (bench_has_maps(&attnd->c))
        result[1] = (bench_result){
            "maps", step[bench_has(&attnd->c, WORD_MEAN) ? ATTN_STEP_ATTENTION_MEAN : ATTN_STEP_ATTENTION]};
    return bench_has_maps(&attnd->c) ? 2 : 1;
}

static const char *description(void)
{
    return attn_kernel_name(chosen_kernel != NULL ? chosen_kernel : attn_kernel_best());
}

bool contender_attnd_use(const char *kernel)
{
    chosen_kernel = attn_kernel_by_name(kernel);
    return chosen_kernel != NULL;
}

const contender contender_attnd = {prepare, enter, run, results, release, description};

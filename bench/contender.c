/* contender.c: the library, through its public headers, as a service would use it: an arena that is reset, a pool. */
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

struct contender {
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
        request.weights.layout = bench_has(c, WORD_UNPACKED) ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT;
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
static bool add_past(const bench_case *c, struct contender *own)
{
    for (int i = 0; i < 2; i++) {
        attn_tensor *stream = &own->stream[STREAM_K + i], *past = &own->past[i];
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
    own->request.inputs.past_key = &own->past[0];
    own->request.inputs.past_value = &own->past[1];
    return true;
}

/* Hides every fourth key of each item; under the word odd the values behind are NaN. */
static bool add_padding(const bench_case *c, struct contender *own)
{
    attn_tensor *value = &own->stream[STREAM_V];
    own->padding = attn_tensor_view(malloc(c->batch * c->kv_len), ATTN_BOOL, 2, (size_t[]){c->batch, c->kv_len});
    own->request.masks.padding = &own->padding;
    for (size_t at = 0; own->padding.data != NULL && at < c->batch * c->kv_len; at++)
        ((uint8_t *)own->padding.data)[at] = at % c->kv_len % BENCH_PADDING != 0;
    for (size_t at = 0; bench_has(c, WORD_ODD) && at < attn_tensor_count(value); at++)
        if (at / c->dim % c->kv_len % BENCH_PADDING == 0) {
            if (c->dtype == ATTN_F32)
                ((float *)value->data)[at] = NAN;
            else
                ((double *)value->data)[at] = (double)NAN;
        }
    return own->padding.data != NULL;
}

/* What words add to the streams, in memory of its own. */
static bool add_words(const bench_case *c, struct contender *own)
{
    attn_request *request = &own->request;
    const size_t heads[] = {c->heads}, len[] = {c->kv_len};
    if (bench_has(c, WORD_SINKS)) {
        own->sinks = attn_tensor_view(calloc(c->heads, sizeof(double)), c->dtype, 1, heads);
        for (size_t h = 0; own->sinks.data != NULL && h < c->heads; h++)
            if (c->dtype == ATTN_F32)
                ((float *)own->sinks.data)[h] = (float)bench_sink_of(h);
            else
                ((double *)own->sinks.data)[h] = bench_sink_of(h);
        request->options.sinks = &own->sinks;
        return own->sinks.data != NULL;
    }
    if (bench_has(c, WORD_DOCUMENTS)) {
        own->documents = attn_tensor_view(calloc(c->kv_len, sizeof(int64_t)), ATTN_I64, 1, len);
        for (size_t j = 0; own->documents.data != NULL && j < c->kv_len; j++)
            ((int64_t *)own->documents.data)[j] = (int64_t)bench_document_of(j, c->kv_len);
        request->masks.documents_query = request->masks.documents_key = &own->documents;
        return own->documents.data != NULL;
    }
    if (bench_has(c, WORD_PADDED) || bench_has(c, WORD_ODD))
        return add_padding(c, own);
    return !bench_has(c, WORD_PAST) || add_past(c, own);
}

void contender_release(struct contender *own)
{
    if (own == NULL)
        return;
    attn_arena_destroy(own->arena);
    attn_pool_destroy(own->pool);
    attn_arena_destroy(own->kept);
    for (int s = 0; s < STREAM_COUNT; s++)
        free(own->stream[s].data);
    free(own->past[0].data);
    free(own->past[1].data);
    free(own->sinks.data);
    free(own->documents.data);
    free(own->padding.data);
    free(own);
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

static bool pack_weights(struct contender *own)
{
    for (int s = STREAM_W_Q; s < STREAM_COUNT; s++) {
        attn_tensor *weight = &own->stream[s];
        const attn_kernel *kernel = own->runtime.kernel;
        const size_t bytes =
            weight->data == NULL || s == STREAM_GRAD_OUTPUT ? 0 : attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, weight);
        if (bytes == 0)
            continue;
        void *data = attn_arena_take(own->kept, 1, bytes);
        if (data == NULL)
            return false;
        attn_panels_write(&own->runtime, ATTN_LAYOUT_IN_OUT, weight, data);
        own->panels[s] = (struct attn_panels){kernel, ATTN_LAYOUT_IN_OUT, data};
        weight->panels = &own->panels[s];
    }
    return true;
}

/* What this version of the library refuses is no failure of the measurement. */
static bool is_possible(const struct contender *own)
{
    attn_plan plan;
    attn_error error;
    return attn_plan_make(&own->request, &plan, &error) == ATTN_OK;
}

struct contender *contender_prepare(const bench_case *c)
{
    struct contender *own = calloc(1, sizeof *own);
    if (own == NULL)
        return NULL;
    attn_blas_use_one_thread();
    own->pool = attn_pool_create(&(attn_pool_options){.threads = c->threads, .pin = true}, NULL);
    own->arena = attn_arena_create(SIZE_MAX);
    own->kept = attn_arena_create(SIZE_MAX);
    if (own->pool == NULL || own->arena == NULL || own->kept == NULL || !make_streams(c, own->stream)) {
        contender_release(own);
        return NULL;
    }
    own->runtime = attn_pool_runtime(own->pool, chosen_kernel);
    own->request = make_request(c, own->stream);
    own->c = *c;
    if ((bench_has(c, WORD_UNPACKED) || pack_weights(own)) && add_words(c, own) && is_possible(own))
        return own;
    contender_release(own);
    return NULL;
}

static attn_status differentiate(struct contender *own, attn_error *error)
{
    const attn_gradient_request request = {&own->request, &own->stream[STREAM_GRAD_OUTPUT], 0};
    attn_gradient_plan plan;
    attn_status status = attn_gradient_plan_make(&request, &plan, error);
    if (status == ATTN_OK)
        status = attn_gradient_run(&plan, NULL, &own->runtime, own->arena, &own->gradients, error);
    return status;
}

static attn_status attend(struct contender *own, attn_error *error)
{
    attn_plan plan;
    attn_status status = attn_plan_make(&own->request, &plan, error);
    if (status == ATTN_OK && !bench_has(&own->c, WORD_PLAN))
        status = attn_plan_run(&plan, NULL, &own->runtime, own->arena, &own->result, error);
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
bool contender_enter(struct contender *own, void (*work)(void *argument), void *argument)
{
    struct job job = {.work = work, .argument = argument};
    pthread_mutex_init(&job.lock, NULL);
    pthread_cond_init(&job.ended, NULL);
    const bool is_queued = attn_pool_submit(own->pool, run_job, &job);
    pthread_mutex_lock(&job.lock);
    while (is_queued && !job.has_ended)
        pthread_cond_wait(&job.ended, &job.lock);
    pthread_mutex_unlock(&job.lock);
    pthread_cond_destroy(&job.ended);
    pthread_mutex_destroy(&job.lock);
    return is_queued;
}

bool contender_run(struct contender *own)
{
    attn_error error;
    attn_arena_reset(own->arena);
    if ((bench_has(&own->c, WORD_GRADIENTS) ? differentiate : attend)(own, &error) == ATTN_OK)
        return true;
    fprintf(stderr, "attnd: %s\n", error.message);
    return false;
}

size_t contender_results(const struct contender *own, bench_result result[BENCH_RESULTS_MAX])
{
    const attn_tensor *gradient = own->gradients.gradient, *step = own->result.step;
    if (bench_has(&own->c, WORD_PLAN))
        return 0;
    if (bench_has(&own->c, WORD_GRADIENTS)) {
        const bool is_layer = own->c.is_layer;
        result[0] = (bench_result){"output", gradient[ATTN_GRADIENT_QUERY]};
        result[1] = (bench_result){"key", gradient[is_layer ? ATTN_GRADIENT_KEY_WEIGHT : ATTN_GRADIENT_KEY]};
        result[2] = (bench_result){"value", gradient[is_layer ? ATTN_GRADIENT_VALUE_WEIGHT : ATTN_GRADIENT_VALUE]};
        return 3;
    }
    result[0] = (bench_result){"output", step[ATTN_STEP_OUTPUT]};
    if (bench_has_maps(&own->c))
        result[1] = (bench_result){
            "maps", step[bench_has(&own->c, WORD_MEAN) ? ATTN_STEP_ATTENTION_MEAN : ATTN_STEP_ATTENTION]};
    return bench_has_maps(&own->c) ? 2 : 1;
}

const char *contender_description(void)
{
    return attn_kernel_name(chosen_kernel != NULL ? chosen_kernel : attn_kernel_best());
}

bool contender_use(const char *kernel)
{
    chosen_kernel = attn_kernel_by_name(kernel);
    return chosen_kernel != NULL;
}

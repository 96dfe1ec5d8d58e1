/*
 * scene.c: requests, runs and byte comparisons for the tests of the core.
 */
#include "scene.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene_block {
    scene_block *next;
    void *memory;
};

const scene_size scene_paths[SCENE_PATHS] = {
    {1, 2, 2, 1, 1100, 64, 64},  /* decoding of one query */
    {2, 4, 2, 3, 37, 16, 24},    /* fewer keys than a tile */
    {1, 4, 1, 2, 2070, 7, 5},    /* heads narrower than a vector, two splits */
    {1, 2, 1, 8, 90, 130, 150},  /* wide heads */
    {1, 2, 1, 60, 1040, 20, 33}, /* packed */
    {2, 1, 1, 9, 33, 5, 3},
};

/* ---- memory and tensors ---- */

test_scene scene_create(attn_dtype type, uint64_t seed)
{
    test_scene made = {.type = type, .random = random_seeded(seed)};
    made.request.options.compute = type;
    return made;
}

void scene_destroy(test_scene *scene)
{
    for (scene_block *block = scene->blocks; block != NULL;) {
        scene_block *next = block->next;
        free(block->memory);
        free(block);
        block = next;
    }
    scene->blocks = NULL;
}

void *scene_memory(test_scene *scene, size_t bytes)
{
    scene_block *block = malloc(sizeof *block);
    if (block == NULL)
        abort();
    block->memory = calloc(1, bytes > 0 ? bytes : 1);
    if (block->memory == NULL)
        abort();
    block->next = scene->blocks;
    scene->blocks = block;
    return block->memory;
}

static attn_tensor *keep_tensor(test_scene *scene, attn_tensor tensor)
{
    attn_tensor *kept = scene_memory(scene, sizeof *kept);
    *kept = tensor;
    return kept;
}

attn_tensor *scene_tensor(test_scene *scene, attn_dtype dtype, int rank, const size_t *shape)
{
    size_t count = 1;
    for (int r = 0; r < rank; r++)
        count *= shape[r];
    void *data = scene_memory(scene, count * attn_dtype_bytes(dtype));
    return keep_tensor(scene, attn_tensor_view(data, dtype, rank, shape));
}

static ptrdiff_t flat_offset(const attn_tensor *tensor, size_t flat)
{
    ptrdiff_t at = 0;
    for (int r = tensor->rank - 1; r >= 0; r--) {
        at += (ptrdiff_t)(flat % tensor->shape[r]) * tensor->stride[r];
        flat /= tensor->shape[r];
    }
    return at;
}

double tensor_get(const attn_tensor *tensor, size_t flat)
{
    ptrdiff_t at = flat_offset(tensor, flat);
    if (tensor->dtype == ATTN_F32)
        return (double)((const float *)tensor->data)[at];
    if (tensor->dtype == ATTN_F64)
        return ((const double *)tensor->data)[at];
    if (tensor->dtype == ATTN_I64)
        return (double)((const int64_t *)tensor->data)[at];
    return (double)((const uint8_t *)tensor->data)[at];
}

void tensor_set(attn_tensor *tensor, size_t flat, double value)
{
    ptrdiff_t at = flat_offset(tensor, flat);
    if (tensor->dtype == ATTN_F32)
        ((float *)tensor->data)[at] = (float)value;
    else if (tensor->dtype == ATTN_F64)
        ((double *)tensor->data)[at] = value;
    else if (tensor->dtype == ATTN_I64)
        ((int64_t *)tensor->data)[at] = (int64_t)value;
    else
        ((uint8_t *)tensor->data)[at] = (uint8_t)value;
}

attn_tensor *scene_normal(test_scene *scene, double deviation, int rank, const size_t *shape)
{
    attn_tensor *made = scene_tensor(scene, scene->type, rank, shape);
    for (size_t at = 0; at < attn_tensor_count(made); at++)
        tensor_set(made, at, deviation * random_normal(&scene->random));
    return made;
}

attn_tensor *scene_coins(test_scene *scene, double probability, int rank, const size_t *shape)
{
    attn_tensor *made = scene_tensor(scene, ATTN_BOOL, rank, shape);
    for (size_t at = 0; at < attn_tensor_count(made); at++)
        tensor_set(made, at, random_uniform(&scene->random) < probability);
    return made;
}

attn_tensor *scene_integers(test_scene *scene, const int64_t *values, int rank, const size_t *shape)
{
    attn_tensor *made = scene_tensor(scene, ATTN_I64, rank, shape);
    if (values != NULL)
        memcpy(made->data, values, attn_tensor_count(made) * sizeof *values);
    return made;
}

attn_tensor *scene_copy(test_scene *scene, const attn_tensor *tensor)
{
    attn_tensor *made = scene_tensor(scene, tensor->dtype, tensor->rank, tensor->shape);
    for (size_t at = 0; at < attn_tensor_count(tensor); at++)
        tensor_set(made, at, tensor_get(tensor, at));
    return made;
}

attn_tensor *scene_transposed(test_scene *scene, const attn_tensor *tensor)
{
    attn_tensor *made = keep_tensor(scene, *tensor);
    int last = tensor->rank - 1;
    made->shape[last] = tensor->shape[last - 1];
    made->shape[last - 1] = tensor->shape[last];
    made->stride[last] = tensor->stride[last - 1];
    made->stride[last - 1] = tensor->stride[last];
    return made;
}

attn_tensor *scene_strided(test_scene *scene, const attn_tensor *tensor)
{
    size_t shape[ATTN_MAX_RANK];
    int last = tensor->rank - 1;
    memcpy(shape, tensor->shape, sizeof shape);
    shape[last - 1] = tensor->shape[last];
    shape[last] = tensor->shape[last - 1] + 3;
    attn_tensor *made = scene_transposed(scene, scene_tensor(scene, tensor->dtype, tensor->rank, shape));
    made->shape[last - 1] -= 3;
    for (size_t at = 0; at < attn_tensor_count(tensor); at++)
        tensor_set(made, at, tensor_get(tensor, at));
    return made;
}

attn_tensor *scene_item(test_scene *scene, const attn_tensor *tensor, size_t b)
{
    attn_tensor *made = keep_tensor(scene, *tensor);
    made->data = (char *)tensor->data + (ptrdiff_t)b * tensor->stride[0] * (ptrdiff_t)attn_dtype_bytes(tensor->dtype);
    made->shape[0] = 1;
    return made;
}

/* ---- requests ---- */

void scene_attention(test_scene *scene, const scene_size *n)
{
    attn_inputs *in = &scene->request.inputs;
    in->query = scene_normal(scene, 1, SHAPE(n->batch, n->heads, n->q_len, n->d_k));
    in->key = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads, n->kv_len, n->d_k));
    in->value = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads, n->kv_len, n->d_v));
}

/* A deviation of 1 / sqrt(d_in) keeps the results of a layer near 1. */
static attn_affine make_linear(test_scene *scene, size_t d_in, size_t d_out)
{
    return (attn_affine){.weight = scene_normal(scene, 1 / sqrt((double)d_in), SHAPE(d_in, d_out)),
                         .bias = scene_normal(scene, 0.5, SHAPE(d_out))};
}

void scene_layer(test_scene *scene, const scene_size *n, size_t d_model)
{
    attn_request *request = &scene->request;
    request->is_layer = true;
    request->options.num_heads = n->heads;
    request->options.kv_num_heads = n->kv_heads;
    request->inputs.query = scene_normal(scene, 1, SHAPE(n->batch, n->q_len, d_model));
    request->inputs.key = scene_normal(scene, 1, SHAPE(n->batch, n->kv_len, d_model));
    request->weights.query = make_linear(scene, d_model, n->heads * n->d_k);
    request->weights.key = make_linear(scene, d_model, n->kv_heads * n->d_k);
    request->weights.value = make_linear(scene, d_model, n->kv_heads * n->d_v);
    request->weights.output = make_linear(scene, n->heads * n->d_v, d_model);
}

void scene_feed_forward(test_scene *scene, size_t d_model, size_t d_ff, attn_activation activation, bool is_gated)
{
    attn_feed_forward_weights *w = &scene->request.weights.feed_forward;
    w->up = make_linear(scene, d_model, d_ff);
    w->down = make_linear(scene, d_ff, d_model);
    w->gate = is_gated ? make_linear(scene, d_model, d_ff) : (attn_affine){0};
    w->norm =
        (attn_affine){.weight = scene_normal(scene, 1, SHAPE(d_model)), .bias = scene_normal(scene, 1, SHAPE(d_model))};
    scene->request.options.feed_forward = (attn_feed_forward_options){.activation = activation,
                                                                      .norm = ATTN_NORM_LAYER,
                                                                      .norm_eps = 1e-5,
                                                                      .position = ATTN_NORM_PRE,
                                                                      .residual = true};
}

/* A layer has weights of both kinds in its own layout, of attention the tables are given. */
static void add_relative_position(test_scene *scene, const scene_size *n, unsigned variant)
{
    enum { ROWS = 40, WIDTH = 6 };
    attn_weights *weights = &scene->request.weights;
    attn_relative_position *own = &scene->request.options.relative_position;
    const size_t of_keys = n->kv_heads * n->d_k, of_queries = n->heads * n->d_k;
    const bool is_in_out = weights->layout == ATTN_LAYOUT_IN_OUT;
    if ((variant & 1) == 0)
        *own = (attn_relative_position){.buckets = ROWS / 2, .max_distance = 300};
    if (scene->request.is_layer)
        own->embedding = scene_normal(scene, 1, SHAPE(ROWS, WIDTH));
    if ((variant & 32) != 0 && scene->request.is_layer)
        weights->relative_key.weight =
            scene_normal(scene, 0.4, SHAPE(is_in_out ? WIDTH : of_keys, is_in_out ? of_keys : WIDTH));
    else if ((variant & 32) != 0)
        own->key = scene_normal(scene, 1, SHAPE(ROWS, of_keys));
    if ((variant & 64) != 0 && scene->request.is_layer) {
        weights->relative_query.weight =
            scene_normal(scene, 0.4, SHAPE(is_in_out ? WIDTH : of_queries, is_in_out ? of_queries : WIDTH));
        weights->relative_query.bias = scene_normal(scene, 1, SHAPE(of_queries));
    } else if ((variant & 64) != 0) {
        own->query = scene_normal(scene, 1, SHAPE(ROWS, of_queries));
    }
}

void scene_biases(test_scene *scene, const scene_size *n, unsigned variant)
{
    attn_options *options = &scene->request.options;
    options->alibi = (variant & 1) != 0;
    if (variant & 2)
        options->alibi_slopes = scene_normal(scene, 0.1, SHAPE(n->heads));
    if (variant & 12)
        options->relative_bias = (attn_relative_bias){.table = scene_normal(scene, 1, SHAPE(10, n->heads)),
                                                      .bidirectional = (variant & 4) != 0,
                                                      .max_distance = 40};
    if (variant & 16)
        options->sinks = scene_normal(scene, 2, SHAPE(n->heads));
    if (variant & 96)
        add_relative_position(scene, n, variant);
}

static attn_steps steps_that_starts_lack(const attn_inputs *inputs)
{
    attn_steps lacking = ATTN_STEP_BIT(ATTN_STEP_Q) | ATTN_STEP_BIT(ATTN_STEP_K) |
                         ATTN_STEP_BIT(ATTN_STEP_PRESENT_KEY) | ATTN_STEP_BIT(ATTN_STEP_PRESENT_VALUE);
    if (inputs->scores == NULL && inputs->attention == NULL)
        return 0;
    if (inputs->attention != NULL)
        lacking |= ATTN_STEP_BIT(ATTN_STEP_SCORES) | ATTN_STEP_BIT(ATTN_STEP_SCALED) | ATTN_STEP_BIT(ATTN_STEP_MASKED) |
                   ATTN_STEP_BIT(ATTN_STEP_LSE) | ATTN_STEP_BIT(ATTN_STEP_LSE_KEYS);
    if (inputs->value == NULL)
        lacking |= ATTN_STEP_BIT(ATTN_STEP_V) | ATTN_STEP_BIT(ATTN_STEP_CONTEXT) | ATTN_STEP_BIT(ATTN_STEP_CONCAT) |
                   ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    return lacking;
}

attn_steps scene_every_step(const attn_request *request)
{
    attn_steps all = ATTN_STEP_BIT(ATTN_STEP_COUNT) - 1;
    if (request->options.rope.layout == ATTN_ROPE_NONE && request->options.qk_norm == ATTN_NORM_NONE)
        all &= ~(ATTN_STEP_BIT(ATTN_STEP_Q_ROTATED) | ATTN_STEP_BIT(ATTN_STEP_K_ROTATED));
    if (request->weights.query_latent.weight == NULL)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_QUERY_LATENT);
    if (request->weights.key_latent.weight == NULL)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_KEY_LATENT);
    if (request->weights.gate.weight == NULL)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_GATED);
    if (request->options.mechanism.type != ATTN_SOFTMAX)
        all &= ~(ATTN_STEP_BIT(ATTN_STEP_SCORES) | ATTN_STEP_BIT(ATTN_STEP_SCALED) | ATTN_STEP_BIT(ATTN_STEP_MASKED) |
                 ATTN_STEP_BIT(ATTN_STEP_LSE) | ATTN_STEP_BIT(ATTN_STEP_LSE_KEYS) | ATTN_STEP_BIT(ATTN_STEP_ENTROPY));
    all &= request->options.mechanism.update_rule == ATTN_RULE_NONE
               ? ~ATTN_STEP_BIT(ATTN_STEP_PRESENT_STATE)
               : ~(ATTN_STEP_BIT(ATTN_STEP_PRESENT_KEY) | ATTN_STEP_BIT(ATTN_STEP_PRESENT_VALUE));
    if (request->weights.output.weight == NULL)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_PROJECTED);
    if (request->weights.output.weight == NULL || request->weights.gate.weight != NULL)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_CONTRIBUTION);
    if (!request->options.residual)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_RESIDUAL);
    if (request->weights.feed_forward.up.weight == NULL && request->weights.feed_forward.experts.count == 0)
        all &= ~(ATTN_STEP_BIT(ATTN_STEP_ATTENTION_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_FEED_FORWARD));
    if (!(request->options.dropout > 0 && request->options.dropout_attention))
        all &= ~ATTN_STEP_BIT(ATTN_STEP_DROPPED);
    if (request->options.sinks == NULL)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_SINK);
    if (request->options.differential == NULL)
        all &= ~ATTN_STEP_BIT(ATTN_STEP_DIFFERENCE);
    return all & ~steps_that_starts_lack(&request->inputs);
}

static attn_tensor *matrix(test_scene *scene, size_t in, size_t out)
{
    return scene_normal(scene, 1 / sqrt((double)in), SHAPE(in, out));
}

void scene_latents(test_scene *scene, const scene_size *n, size_t d_model, size_t parts)
{
    enum { QUERY_LATENT = 5, KEY_LATENT = 3 };
    attn_weights *w = &scene->request.weights;
    attn_options *options = &scene->request.options;
    const size_t shared = parts & 4 ? n->d_k - 1 : 0, inner = parts & 2 ? KEY_LATENT : d_model;
    if (parts & 1) {
        w->query_latent.weight = matrix(scene, d_model, QUERY_LATENT);
        w->query = (attn_affine){.weight = matrix(scene, QUERY_LATENT, n->heads * n->d_k)};
        w->query_latent_norm.weight = scene_normal(scene, 1, SHAPE(QUERY_LATENT));
    }
    if (parts & 2) {
        w->key_latent = (attn_affine){.weight = matrix(scene, d_model, KEY_LATENT),
                                      .bias = scene_normal(scene, 1, SHAPE(KEY_LATENT))};
        w->key_latent_norm.bias = scene_normal(scene, 1, SHAPE(KEY_LATENT));
        w->value = (attn_affine){.weight = matrix(scene, KEY_LATENT, n->kv_heads * n->d_v)};
    }
    if (parts & 4) {
        w->key_shared.weight = matrix(scene, d_model, shared);
        options->rope = (attn_rope){.layout = ATTN_ROPE_INTERLEAVED, .dim = 2};
    }
    if (parts & 6)
        w->key = (attn_affine){.weight = matrix(scene, inner, n->kv_heads * (n->d_k - shared))};
    options->num_heads = n->heads;
    options->kv_num_heads = n->kv_heads;
    options->latent_norm = parts & 3 ? ATTN_NORM_RMS : ATTN_NORM_NONE;
    options->latent_norm_eps = 1e-6;
}

/* The last rows of a tensor (…, len, d) alone. */
static const attn_tensor *last_rows(test_scene *scene, const attn_tensor *tensor, size_t rows)
{
    size_t shape[ATTN_MAX_RANK];
    memcpy(shape, tensor->shape, sizeof shape);
    shape[tensor->rank - 2] = rows;
    return scene_normal(scene, 1, tensor->rank, shape);
}

void scene_past(test_scene *scene, const scene_size *n, size_t past_len)
{
    attn_inputs *in = &scene->request.inputs;
    const attn_tensor *value = in->value != NULL ? in->value : NULL;
    in->key = last_rows(scene, in->key != NULL ? in->key : in->query, n->kv_len - past_len);
    in->value = value != NULL ? last_rows(scene, value, n->kv_len - past_len) : NULL;
    in->past_key = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads, past_len, n->d_k));
    in->past_value = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads, past_len, n->d_v));
}

void scene_scale_heads(test_scene *scene, size_t heads)
{
    attn_tensor *factors = scene_normal(scene, 1, SHAPE(heads));
    if (heads > 1)
        tensor_set(factors, heads - 1, 0);
    scene->request.options.head_scale = factors;
}

void scene_turn(test_scene *scene, const scene_size *n, size_t variant)
{
    attn_request *request = &scene->request;
    attn_options *options = &request->options;
    if (n->d_k >= 2 && variant % 3 != 2) {
        options->rope.layout = (attn_rope_layout)(1 + variant % 3);
        options->rope.dim = variant % 2 == 0 || n->d_k < 4 ? n->d_k / 2 * 2 : n->d_k / 4 * 2;
    }
    options->qk_norm = (attn_norm_type)(variant % 4);
    options->qk_norm_eps = 1e-5;
    if (variant % 4 == 3 && n->kv_len > 1)
        scene_past(scene, n, n->kv_len / 3 + 1);
    if (variant % 5 == 3)
        scene_scale_heads(scene, n->heads);
    if (!request->is_layer)
        return;
    if (options->qk_norm != ATTN_NORM_NONE && variant % 2 == 1) {
        request->weights.query_norm.weight = scene_normal(scene, 1, SHAPE(n->heads * n->d_k));
        request->weights.key_norm.weight = scene_normal(scene, 1, SHAPE(n->d_k));
        request->weights.key_norm.bias = scene_normal(scene, 1, SHAPE(n->d_k));
    }
    const size_t d_model = request->inputs.query->shape[2], gates = n->heads * (variant % 2 == 0 ? n->d_v : 1);
    if (variant % 3 != 1)
        request->weights.gate = make_linear(scene, d_model, gates);
}

/* ---- runs ---- */

test_run run_request(const attn_request *request, const attn_runtime *runtime)
{
    test_run made = {0};
    attn_error err = {0};
    attn_status planned = attn_plan_make(request, &made.plan, &err);
    ck_assert_msg(planned == ATTN_OK, "plan: %s at %s", err.message, err.field);
    made.arena = attn_arena_create(attn_plan_bytes(&made.plan, runtime->threads));
    ck_assert_ptr_nonnull(made.arena);
    attn_status ran = attn_plan_run(&made.plan, NULL, runtime, made.arena, &made.result, &err);
    ck_assert_msg(ran == ATTN_OK, "run: %s: %s", attn_status_name(ran), err.message);
    return made;
}

test_run run_kernel(const attn_request *request, const attn_kernel *kernel, attn_steps want)
{
    attn_request asked = *request;
    asked.options.want = want;
    attn_runtime runtime = attn_runtime_serial(kernel);
    return run_request(&asked, &runtime);
}

void run_release(test_run *run)
{
    attn_arena_destroy(run->arena);
    run->arena = NULL;
}

static void run_backwards(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    for (size_t t = tasks; t-- > 0;)
        task(argument, t, t % 5);
}

attn_runtime backward_runtime(void)
{
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.threads = 5;
    runtime.run = run_backwards;
    return runtime;
}

void expect_refusal(const attn_request *request, attn_status status, const char *field, const char *fragment)
{
    attn_plan plan;
    attn_error err = {0};
    attn_status got = attn_plan_make(request, &plan, &err);
    ck_assert_msg(got == status, "%s: status %s, not %s: %s", field, attn_status_name(got), attn_status_name(status),
                  err.message);
    ck_assert_msg(err.status == status, "%s: the record says %s", field, attn_status_name(err.status));
    ck_assert_msg(strcmp(err.field, field) == 0, "field %s, not %s: %s", err.field, field, err.message);
    ck_assert_msg(strstr(err.message, fragment) != NULL, "%s: \"%s\" lacks \"%s\"", field, err.message, fragment);
}

/* ---- bytes ---- */

/* NaN equals NaN whatever its sign and payload: arithmetic promises neither. */
static bool same_element(const attn_tensor *a, const attn_tensor *b, size_t at)
{
    double x = tensor_get(a, at), y = tensor_get(b, at);
    return isnan(x) ? (bool)isnan(y) : x == y && signbit(x) == signbit(y);
}

void expect_same_bytes(const attn_tensor *a, const attn_tensor *b, const char *what)
{
    ck_assert_msg(a->dtype == b->dtype && a->rank == b->rank, "%s: dtype or rank", what);
    for (int r = 0; r < a->rank; r++)
        ck_assert_msg(a->shape[r] == b->shape[r], "%s: dimension %d is %zu and %zu", what, r, a->shape[r], b->shape[r]);
    for (size_t at = 0; at < attn_tensor_count(a); at++)
        if (!same_element(a, b, at))
            ck_abort_msg("%s: element %zu is %.17g and %.17g", what, at, tensor_get(a, at), tensor_get(b, at));
}

void expect_same_steps(const test_run *a, const test_run *b, attn_steps steps, const char *what)
{
    for (attn_step step = 0; step < ATTN_STEP_COUNT; step++) {
        char name[160];
        if (!(steps & a->plan.want & b->plan.want & ATTN_STEP_BIT(step)))
            continue;
        snprintf(name, sizeof name, "%s: %s", what, attn_step_name(step));
        expect_same_bytes(&a->result.step[step], &b->result.step[step], name);
    }
    ck_assert_msg(a->result.rows_without_keys == b->result.rows_without_keys, "%s: rows without keys", what);
}

/* gradient_cases.c: scenes for tests of gradients, their runs, and central differences. */
#include "gradient_cases.h"

#include <assert.h>
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "mask_cases.h"

/* ---- scenes ---- */

const scene_size gradient_sizes[] = {
    {1, 1, 1, 1, 1, 1, 1},  {2, 4, 2, 5, 7, 3, 2},     {3, 2, 1, 9, 9, 4, 5},
    {1, 6, 3, 11, 3, 2, 7}, {1, 2, 1, 131, 259, 3, 2}, {2, 2, 2, 3, 523, 2, 3},
};
static_assert(sizeof gradient_sizes / sizeof *gradient_sizes == GRADIENT_SIZES, "as the header says");

static attn_tensor *normal(test_scene *scene, double deviation, size_t a, size_t b, size_t c)
{
    return a == 0 ? scene_normal(scene, deviation, SHAPE(b, c)) : scene_normal(scene, deviation, SHAPE(a, b, c));
}

static void attention_by_heads(test_scene *scene, const scene_size *n)
{
    scene_attention(scene, n);
}

/* One tensor is all three: gradients of three roles add up. */
static void attention_of_self(test_scene *scene, const scene_size *n)
{
    scene->request.options.num_heads = n->heads;
    scene->request.inputs.query = normal(scene, 1, n->batch, n->q_len, n->heads * n->d_k);
}

/* The value is the key. */
static void attention_of_keys(test_scene *scene, const scene_size *n)
{
    scene->request.options.num_heads = n->heads;
    scene->request.options.kv_num_heads = n->kv_heads;
    scene->request.inputs.query = normal(scene, 1, n->batch, n->q_len, n->heads * n->d_k);
    scene->request.inputs.key = normal(scene, 1, n->batch, n->kv_len, n->kv_heads * n->d_k);
}

static void layer_across(test_scene *scene, const scene_size *n)
{
    scene_layer(scene, n, 5);
}

/* With another width for values, and weights of rank 3 in the layout out_in. */
void gradient_layer_by_heads(test_scene *scene, const scene_size *n)
{
    attn_weights *w = &scene->request.weights;
    scene_layer(scene, n, 5);
    w->layout = ATTN_LAYOUT_OUT_IN;
    scene->request.inputs.value = normal(scene, 1, n->batch, n->kv_len, 4);
    w->query.weight = scene_normal(scene, 0.5, SHAPE(n->heads, n->d_k, 5));
    w->query.bias = scene_normal(scene, 0.5, SHAPE(n->heads, n->d_k));
    w->key.weight = scene_normal(scene, 0.5, SHAPE(n->kv_heads, n->d_k, 5));
    w->value.weight = scene_normal(scene, 0.5, SHAPE(n->kv_heads, n->d_v, 4));
    w->output.weight = scene_normal(scene, 0.5, SHAPE(6, n->heads * n->d_v));
    w->output.bias = scene_normal(scene, 0.5, SHAPE(6));
}

static void layer_of_self(test_scene *scene, const scene_size *n)
{
    attn_options *options = &scene->request.options;
    scene_layer(scene, n, 6);
    scene->request.inputs.key = NULL;
    options->residual = true;
    options->norm = ATTN_NORM_LAYER;
    options->norm_eps = 1e-3;
    options->norm_position = ATTN_NORM_PRE;
    scene->request.weights.norm.weight = scene_normal(scene, 1, SHAPE(6));
    scene->request.weights.norm.bias = scene_normal(scene, 1, SHAPE(6));
}

static void layer_with_post_norm(test_scene *scene, const scene_size *n)
{
    layer_of_self(scene, n);
    scene->request.options.norm = ATTN_NORM_RMS;
    scene->request.options.norm_position = ATTN_NORM_POST;
    scene->request.weights.output.weight = scene_normal(scene, 0.5, SHAPE(n->heads, n->d_v, 6));
}

/* Neither an output projection nor a residual: the norm is right behind the heads. */
static void layer_of_bare_heads(test_scene *scene, const scene_size *n)
{
    layer_across(scene, n);
    scene->request.weights.output = (attn_affine){NULL, NULL};
    scene->request.options.norm = ATTN_NORM_LAYER;
    scene->request.options.norm_eps = 1e-3;
    scene->request.weights.norm.weight = scene_normal(scene, 1, SHAPE(n->heads * n->d_v));
}

static void fused(test_scene *scene, const scene_size *n, attn_qkv_order order, attn_layout layout, size_t kv_heads)
{
    attn_request *request = &scene->request;
    const size_t columns = (n->heads + 2 * kv_heads) * n->d_k, rows = 5;
    request->is_layer = true;
    request->options.num_heads = n->heads;
    request->options.kv_num_heads = kv_heads;
    request->inputs.query = normal(scene, 1, n->batch, n->q_len, rows);
    if (order == ATTN_QKV_STACKED)
        request->inputs.key = normal(scene, 1, n->batch, n->kv_len, rows);
    request->weights.layout = layout;
    request->weights.qkv_order = order;
    request->weights.qkv.weight =
        layout == ATTN_LAYOUT_IN_OUT ? normal(scene, 0.5, 0, rows, columns) : normal(scene, 0.5, 0, columns, rows);
    request->weights.qkv.bias = scene_normal(scene, 0.5, SHAPE(columns));
    request->options.residual = false;
}

static void layer_fused_stacked(test_scene *scene, const scene_size *n)
{
    fused(scene, n, ATTN_QKV_STACKED, ATTN_LAYOUT_IN_OUT, n->kv_heads);
}

static void layer_fused_per_head(test_scene *scene, const scene_size *n)
{
    fused(scene, n, ATTN_QKV_PER_HEAD, ATTN_LAYOUT_OUT_IN, n->heads);
}

static void layer_fused_per_group(test_scene *scene, const scene_size *n)
{
    fused(scene, n, ATTN_QKV_PER_GROUP, ATTN_LAYOUT_IN_OUT, n->kv_heads);
}

static const struct {
    const char *name;
    void (*build)(test_scene *scene, const scene_size *size);
    bool is_self; /* as many keys as queries */
} kinds[] = {
    {"attention by heads", attention_by_heads, false},      {"attention of self", attention_of_self, true},
    {"attention of keys", attention_of_keys, false},        {"layer across", layer_across, false},
    {"layer by heads", gradient_layer_by_heads, false},     {"layer of self", layer_of_self, true},
    {"layer with post norm", layer_with_post_norm, true},   {"layer of bare heads", layer_of_bare_heads, false},
    {"layer fused stacked", layer_fused_stacked, false},    {"layer fused per head", layer_fused_per_head, true},
    {"layer fused per group", layer_fused_per_group, true},
};
static_assert(sizeof kinds / sizeof *kinds == GRADIENT_KINDS, "as the header says");

attn_gradient_request gradient_ask(test_scene *scene)
{
    attn_plan plan;
    attn_error err = {0};
    attn_status status = attn_plan_make(&scene->request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "plan: %s at %s", err.message, err.field);
    const attn_tensor *output = &plan.step[ATTN_STEP_OUTPUT];
    return (attn_gradient_request){.request = &scene->request,
                                   .grad_output = scene_normal(scene, 1, output->rank, output->shape)};
}

void gradient_add_to_scores(test_scene *scene, size_t heads, size_t turn)
{
    attn_options *options = &scene->request.options;
    options->alibi = turn % 11 == 4;
    if (turn % 6 == 1)
        options->alibi_slopes = scene_normal(scene, 0.2, SHAPE(heads));
    if (turn % 4 == 3)
        options->relative_bias = (attn_relative_bias){scene_normal(scene, 1, SHAPE(8, heads)), turn % 8 == 3, 20};
    if (turn % 5 > 2)
        options->sinks = scene_normal(scene, 1, SHAPE(heads));
}

/* The sizes of a request, including those that default to others. */
static scene_size size_of(const test_scene *scene)
{
    attn_plan plan;
    attn_error err = {0};
    attn_status status = attn_plan_make(&scene->request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "plan: %s at %s", err.message, err.field);
    const attn_dims *d = &plan.dims;
    return (scene_size){d->batch, d->heads, d->kv_heads, d->q_len, d->kv_len, d->d_k, d->d_v};
}

/* The positions, or cosines and sines, of len tokens. */
static attn_rope_side side_of(test_scene *scene, size_t batch, size_t len, size_t pairs, bool has_positions)
{
    attn_rope_side side = {NULL, NULL, NULL};
    if (has_positions) {
        attn_tensor *positions = scene_integers(scene, NULL, SHAPE(len));
        for (size_t i = 0; i < len; i++)
            ((int64_t *)positions->data)[i] = (int64_t)((len - i) * 3 % 17);
        side.positions = positions;
        return side;
    }
    side.cos = scene_normal(scene, 1, SHAPE(batch, len, pairs));
    side.sin = scene_normal(scene, 1, SHAPE(batch, len, pairs));
    return side;
}

/* All of a head; a part of it, by frequencies with a factor; by positions; by given numbers, which are no rotation. */
static void add_rope(test_scene *scene, const scene_size *n, size_t turn)
{
    const attn_tensor *past = scene->request.inputs.past_key;
    const size_t new_len = n->kv_len - (past == NULL ? 0 : past->shape[2]), pairs = n->d_k / 2;
    attn_rope *rope = &scene->request.options.rope;
    *rope = (attn_rope){.layout = (attn_rope_layout)(1 + turn % 3), .dim = pairs * 2};
    if (turn / 3 % 4 == 1) {
        rope->dim = n->d_k < 4 ? 2 : n->d_k / 4 * 2;
        rope->scaling.type = ATTN_ROPE_YARN;
        rope->scaling.factor = 4;
        rope->scaling.original_max_position_embeddings = 32;
    } else if (turn / 3 % 4 > 1) {
        rope->query = side_of(scene, n->batch, n->q_len, pairs, turn / 3 % 4 == 2);
        rope->key = side_of(scene, n->batch, new_len, pairs, turn / 3 % 4 == 2);
    }
}

/* Gain and shift of every shape that they may have: of all heads, of each its own, of a whole token. */
static attn_affine norm_of(test_scene *scene, size_t heads, size_t d_k, size_t turn)
{
    attn_affine norm = {NULL, NULL};
    const size_t of_each[2] = {heads, d_k}, of_all[1] = {turn % 3 == 0 ? d_k : heads * d_k};
    const int rank = turn % 3 == 1 ? 2 : 1;
    if (turn % 4 != 3)
        norm.weight = scene_normal(scene, 1, rank, rank == 2 ? of_each : of_all);
    if (turn % 4 != 1)
        norm.bias = scene_normal(scene, 1, rank, rank == 2 ? of_each : of_all);
    return norm;
}

/* An eps that counts beside heads of few features. */
void gradient_add_qk_norm(test_scene *scene, const scene_size *n, size_t turn)
{
    attn_request *request = &scene->request;
    request->options.qk_norm = (attn_norm_type)(ATTN_NORM_LAYER + turn % 3);
    request->options.qk_norm_eps = 0.05;
    if (!request->is_layer)
        return;
    request->weights.query_norm = norm_of(scene, n->heads, n->d_k, turn);
    request->weights.key_norm = norm_of(scene, n->kv_heads, n->d_k, turn + 1);
}

/* A gate for each feature or for each head, with or without a bias, its weight of either rank. */
void gradient_add_gate(test_scene *scene, const scene_size *n, size_t turn)
{
    attn_weights *w = &scene->request.weights;
    const size_t d_query = scene->request.inputs.query->shape[2], d_gate = turn % 2 == 0 ? n->d_v : 1;
    const bool in_out = w->layout == ATTN_LAYOUT_IN_OUT;
    const size_t rows = in_out ? d_query : d_gate, columns = in_out ? d_gate : d_query;
    if (turn % 4 < 2)
        w->gate.weight = scene_normal(scene, 0.5, SHAPE(n->heads, rows, columns));
    else
        w->gate.weight = normal(scene, 0.5, 0, in_out ? rows : n->heads * rows, in_out ? n->heads * columns : columns);
    if (turn % 3 != 0)
        w->gate.bias = scene_normal(scene, 0.5, SHAPE(n->heads * d_gate));
}

/* The options that only softmax has. */
static void add_softmax(test_scene *scene, size_t heads, size_t turn)
{
    attn_options *options = &scene->request.options;
    if (turn % 3 == 1) {
        options->has_scale = true;
        options->scale = turn % 2 ? 0.7 : -0.4;
    }
    options->softcap = turn % 4 == 2 ? 1.5 : 0;
    if (turn % 5 == 3) {
        options->dropout = 0.4;
        options->dropout_seed = turn;
        options->dropout_attention = true;
        options->dropout_residual = scene->request.is_layer;
    }
    gradient_add_to_scores(scene, heads, turn);
}

void gradient_add_mechanism(test_scene *scene, size_t turn)
{
    attn_options *options = &scene->request.options;
    attn_mechanism *mechanism = &options->mechanism;
    mechanism->type = turn % 2 ? ATTN_PERFORMER : ATTN_LINEAR;
    mechanism->features = 5;
    mechanism->seed = turn;
    mechanism->is_unnormalised = turn % 4 == 2;
    mechanism->eps = turn % 3 == 0 || mechanism->is_unnormalised ? 0 : 0.1;
    mechanism->is_identity = turn % 8 == 2;
    if (mechanism->is_unnormalised || mechanism->type == ATTN_PERFORMER) {
        options->has_scale = turn % 3 != 1;
        options->scale = turn % 5 == 0 ? -0.4 : 0.7;
    }
    scene->request.masks.bias = NULL;
}

/* Every kind with every size, with masks and options in turn. */
static void make_case(gradient_case *made, attn_dtype type, bool is_softmax, size_t kind, size_t size, size_t turn)
{
    scene_size n = gradient_sizes[size];
    n.kv_len = kinds[kind].is_self ? n.q_len : n.kv_len;
    made->scene = scene_create(type, 31 * kind + size + 1);
    const mask_case *mask = mask_case_at(turn % mask_case_count());
    kinds[kind].build(&made->scene, &n);
    mask->apply(&made->scene, &n);
    snprintf(made->name, sizeof made->name, "%s, size %zu, turn %zu, mask %s", kinds[kind].name, size, turn,
             mask->name);
    if (is_softmax)
        add_softmax(&made->scene, n.heads, turn);
    else
        gradient_add_mechanism(&made->scene, turn / 2);
    n = size_of(&made->scene);
    if (turn % 3 == 0 && n.kv_len > 1)
        scene_past(&made->scene, &n, n.kv_len / 3 + 1);
    if (turn % 2 == 0 && n.d_k > 1)
        add_rope(&made->scene, &n, turn / 2);
    if (turn % 5 == 0 || turn % 7 == 2)
        gradient_add_qk_norm(&made->scene, &n, turn / 2);
    if (made->scene.request.is_layer && (turn % 5 == 1 || turn % 7 == 3))
        gradient_add_gate(&made->scene, &n, turn / 3);
    if (turn % 4 == 1)
        scene_scale_heads(&made->scene, n.heads);
    made->wanted = gradient_ask(&made->scene);
}

void gradient_case_release(gradient_case *made)
{
    scene_destroy(&made->scene);
}

bool gradient_case_at(gradient_case *made, attn_dtype type, size_t number)
{
    if (number >= GRADIENT_CASES)
        return false;
    const size_t size = number / GRADIENT_KINDS;
    *made = (gradient_case){0};
    make_case(made, type, number < GRADIENT_CASES_OF_SOFTMAX, number % GRADIENT_KINDS, size % GRADIENT_SIZES,
              number * 7 + size);
    made->wanted.request = &made->scene.request;
    return true;
}

/* ---- runs ---- */

gradient_run gradient_run_on(const attn_gradient_request *request, const attn_runtime *runtime)
{
    gradient_run made = {0};
    attn_error err = {0};
    attn_status status = attn_gradient_plan_make(request, &made.plan, &err);
    ck_assert_msg(status == ATTN_OK, "plan: %s at %s", err.message, err.field);
    made.arena = attn_arena_create(attn_gradient_plan_bytes(&made.plan, runtime->threads));
    ck_assert_ptr_nonnull(made.arena);
    status = attn_gradient_run(&made.plan, NULL, runtime, made.arena, &made.result, &err);
    ck_assert_msg(status == ATTN_OK, "run: %s: %s", attn_status_name(status), err.message);
    return made;
}

gradient_run gradient_run_serial(const attn_gradient_request *request, const attn_kernel *kernel)
{
    const attn_runtime runtime = attn_runtime_serial(kernel);
    return gradient_run_on(request, &runtime);
}

void gradient_run_release(gradient_run *run)
{
    attn_arena_destroy(run->arena);
}

uint64_t gradient_all_of(const attn_gradient_request *request)
{
    attn_gradient_plan plan;
    ck_assert_int_eq(attn_gradient_plan_make(request, &plan, NULL), ATTN_OK);
    const attn_mechanism *mechanism = &request->request->options.mechanism;
    if (mechanism->type == ATTN_SOFTMAX)
        return plan.of | OF(SCALE) | OF(SCORES) | OF(ATTENTION);
    return mechanism->type == ATTN_PERFORMER || mechanism->is_unnormalised ? plan.of | OF(SCALE) : plan.of;
}

void expect_same_gradients(const gradient_run *a, const gradient_run *b, const char *what)
{
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++)
        if (a->plan.of & b->plan.of & (UINT64_C(1) << g)) {
            char name[200];
            snprintf(name, sizeof name, "%s: %s", what, attn_gradient_name((attn_gradient)g));
            expect_same_bytes(&a->result.gradient[g], &b->result.gradient[g], name);
        }
}

/* ---- against central differences ---- */

/* The number that is differentiated: the sum of grad_output * output. */
static double loss(const attn_gradient_request *wanted)
{
    attn_request request = *wanted->request;
    attn_runtime runtime = attn_runtime_serial(NULL);
    request.options.want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    test_run run = run_request(&request, &runtime);
    double sum = 0;
    for (size_t at = 0; at < attn_tensor_count(wanted->grad_output); at++)
        sum += tensor_get(wanted->grad_output, at) * tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at);
    run_release(&run);
    return sum;
}

/*
 * The step that balances rounding (eps / h) and truncation (h^2): the cube root of eps. The remaining error is about
 * eps^(2/3) = 4e-11 times the numbers in the sum and its third derivative. With a few hundred outputs of size 1 and the
 * derivatives of a steep softmax, it is at most 1e-7.
 */
static const double STEP = 6.0554544523933429e-06, TOLERANCE = 1e-7;

/* reach: the factor of x before it is added to a score. */
static double difference(const attn_gradient_request *wanted, attn_tensor *subject, size_t at, double reach)
{
    const double x = tensor_get(subject, at), h = STEP * (fabs(x) > 1 ? fabs(x) : 1) / reach;
    tensor_set(subject, at, x + h);
    const double above = loss(wanted);
    tensor_set(subject, at, x - h);
    const double below = loss(wanted);
    tensor_set(subject, at, x);
    return (above - below) / (2 * h);
}

static void expect_near(double got, double expected, double size, const char *name, const char *of, size_t at)
{
    ck_assert_msg(fabs(got - expected) <= TOLERANCE * size, "%s: %s[%zu] is %.12g, differences say %.12g", name, of, at,
                  got, expected);
}

/* Up to LOOKS elements of each tensor, spread over it. */
enum { LOOKS = 24 };

void expect_gradient(gradient_case *made, const gradient_run *run, attn_gradient g)
{
    attn_tensor *subject = (attn_tensor *)(uintptr_t)attn_gradient_subject(&made->scene.request, g);
    const attn_tensor *gradient = &run->result.gradient[g];
    const size_t count = attn_tensor_count(subject), looks = count < LOOKS ? count : LOOKS;
    const attn_dims *d = &run->plan.forward.dims;
    const double reach = g == ATTN_GRADIENT_ALIBI ? (double)(d->q_len + d->kv_len) : 1;
    ck_assert_uint_eq(count, attn_tensor_count(gradient));
    for (size_t look = 0; look < looks; look++) {
        const size_t at = looks == count ? look : look * 7919 % count;
        const double got = tensor_get(gradient, at);
        if (!isfinite(tensor_get(subject, at)))
            ck_assert_msg(got == 0, "%s: %s[%zu] is %g where the bias hides", made->name, attn_gradient_name(g), at,
                          got);
        else
            expect_near(got, difference(&made->wanted, subject, at, reach), reach + fabs(got), made->name,
                        attn_gradient_name(g), at);
    }
}

void expect_scale_gradient(gradient_case *made, const gradient_run *run)
{
    attn_options *options = &made->scene.request.options;
    const attn_options before = *options;
    const double scale = run->plan.forward.scale, got = tensor_get(&run->result.gradient[ATTN_GRADIENT_SCALE], 0);
    options->has_scale = true;
    options->scale = scale + STEP;
    const double above = loss(&made->wanted);
    options->scale = scale - STEP;
    const double below = loss(&made->wanted);
    *options = before;
    expect_near(got, (above - below) / (2 * STEP), 1 + fabs(got), made->name, "options.scale", 0);
}

void expect_gradients(gradient_case *made, const gradient_run *run)
{
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++)
        if (run->plan.of >> g & 1 && attn_gradient_subject(&made->scene.request, (attn_gradient)g) != NULL)
            expect_gradient(made, run, (attn_gradient)g);
    if (run->plan.of & OF(SCALE))
        expect_scale_gradient(made, run);
}

/*
 * test_gradient.c: gradients against central differences of the forward pass, and what algebra and the contract say.
 */
#include "attn/gradient.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "gradient_job.h"
#include "mask_cases.h"
#include "scene.h"

#define WANT(step) (UINT32_C(1) << ATTN_STEP_##step)
#define OF(name)   (UINT32_C(1) << ATTN_GRADIENT_##name)

/* ---- scenes ---- */

/* Odd sizes; the last two need several tiles of queries and of keys. */
static const scene_size sizes[] = {
    {1, 1, 1, 1, 1, 1, 1},  {2, 4, 2, 5, 7, 3, 2},     {3, 2, 1, 9, 9, 4, 5},
    {1, 6, 3, 11, 3, 2, 7}, {1, 2, 1, 131, 259, 3, 2}, {2, 2, 2, 3, 523, 2, 3},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

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

/* With a value of its own width, and weights by heads, the other way round. */
static void layer_by_heads(test_scene *scene, const scene_size *n)
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
    scene->request.weights.output = (attn_linear){NULL, NULL};
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
    {"attention by heads", attention_by_heads, false},
    {"attention of self", attention_of_self, true},
    {"attention of keys", attention_of_keys, false},
    {"layer across", layer_across, false},
    {"layer by heads", layer_by_heads, false},
    {"layer of self", layer_of_self, true},
    {"layer with post norm", layer_with_post_norm, true},
    {"layer of bare heads", layer_of_bare_heads, false},
    {"layer fused stacked", layer_fused_stacked, false},
    {"layer fused per head", layer_fused_per_head, true},
    {"layer fused per group", layer_fused_per_group, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static size_t count_masks(void)
{
    size_t masks = 0;
    while (mask_case_at(masks) != NULL)
        masks++;
    return masks;
}

/* What is differentiated, its name in messages, and the gradient of the output that it starts from. */
struct case_of {
    test_scene scene;
    attn_gradient_request wanted;
    char name[96];
};

static attn_gradient_request ask(test_scene *scene)
{
    attn_plan plan;
    attn_error err = {0};
    attn_status status = attn_plan_make(&scene->request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "plan: %s at %s", err.message, err.field);
    const attn_tensor *output = &plan.step[ATTN_STEP_OUTPUT];
    return (attn_gradient_request){.request = &scene->request,
                                   .grad_output = scene_normal(scene, 1, output->rank, output->shape)};
}

/* Biases by distance, and sinks. */
static void add_to_scores(test_scene *scene, size_t heads, size_t turn)
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

/* Every kind with every size; masks and options take turns. */
static void make_case(struct case_of *made, attn_dtype type, size_t kind, size_t size, size_t turn)
{
    scene_size n = sizes[size];
    n.kv_len = kinds[kind].is_self ? n.q_len : n.kv_len;
    made->scene = scene_create(type, 31 * kind + size + 1);
    attn_options *options = &made->scene.request.options;
    const mask_case *mask = mask_case_at(turn % count_masks());
    kinds[kind].build(&made->scene, &n);
    mask->apply(&made->scene, &n);
    snprintf(made->name, sizeof made->name, "%s, size %zu, turn %zu, mask %s", kinds[kind].name, size, turn,
             mask->name);
    if (turn % 3 == 1) {
        options->has_scale = true;
        options->scale = turn % 2 ? 0.7 : -0.4;
    }
    options->softcap = turn % 4 == 2 ? 1.5 : 0;
    if (turn % 5 == 3) {
        options->dropout = 0.4;
        options->dropout_seed = turn;
        options->dropout_attention = true;
        options->dropout_residual = made->scene.request.is_layer;
    }
    add_to_scores(&made->scene, n.heads, turn);
    if (turn % 2 == 0 && n.d_k > 1)
        options->rope = (attn_rope){.layout = (attn_rope_layout)(1 + turn / 2 % 3), .dim = n.d_k / 2 * 2};
    made->wanted = ask(&made->scene);
}

static void release_case(struct case_of *made)
{
    scene_destroy(&made->scene);
}

/* All cases, as numbers from 0 on; false past the end. */
static bool case_at(struct case_of *made, attn_dtype type, size_t number)
{
    if (number >= (size_t)KINDS * SIZES)
        return false;
    *made = (struct case_of){0};
    make_case(made, type, number % KINDS, number / KINDS, number * 7 + number / KINDS);
    made->wanted.request = &made->scene.request;
    return true;
}

/* ---- runs ---- */

typedef struct {
    attn_gradient_plan plan;
    attn_arena *arena;
    attn_gradient_result result;
} gradient_run;

static gradient_run run_gradients(const attn_gradient_request *request, const attn_runtime *runtime)
{
    gradient_run made = {0};
    attn_error err = {0};
    attn_status status = attn_gradient_plan_make(request, &made.plan, &err);
    ck_assert_msg(status == ATTN_OK, "plan: %s at %s", err.message, err.field);
    made.arena = attn_arena_create(attn_gradient_plan_bytes(&made.plan, runtime->threads));
    ck_assert_ptr_nonnull(made.arena);
    status = attn_gradient_run(&made.plan, request, runtime, made.arena, &made.result, &err);
    ck_assert_msg(status == ATTN_OK, "run: %s: %s", attn_status_name(status), err.message);
    return made;
}

static gradient_run run_serial(const attn_gradient_request *request, const attn_kernel *kernel)
{
    const attn_runtime runtime = attn_runtime_serial(kernel);
    return run_gradients(request, &runtime);
}

static void release_run(gradient_run *run)
{
    attn_arena_destroy(run->arena);
}

static uint32_t all_of(const attn_gradient_request *request)
{
    attn_gradient_plan plan;
    ck_assert_int_eq(attn_gradient_plan_make(request, &plan, NULL), ATTN_OK);
    return plan.of | OF(SCALE) | OF(SCORES);
}

static void expect_same_gradients(const gradient_run *a, const gradient_run *b, const char *what)
{
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++)
        if (a->plan.of & b->plan.of & (UINT32_C(1) << g)) {
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
    request.options.want = WANT(OUTPUT);
    test_run run = run_request(&request, &runtime);
    double sum = 0;
    for (size_t at = 0; at < attn_tensor_count(wanted->grad_output); at++)
        sum += tensor_get(wanted->grad_output, at) * tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at);
    run_release(&run);
    return sum;
}

/*
 * The step that balances rounding (eps / h) and truncation (h^2): the cube root of eps. What is left is about
 * eps^(2/3) = 4e-11 of the numbers in the sum and its third derivative; a few hundred outputs of size 1 and derivatives
 * of a steep softmax make it 1e-7 at the most.
 */
static const double STEP = 6.0554544523933429e-06, TOLERANCE = 1e-7;

/* reach: by what x is multiplied before it is added to a score. */
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

static void expect_tensor(struct case_of *made, const gradient_run *run, attn_gradient g)
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

static void expect_scale(struct case_of *made, const gradient_run *run)
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

START_TEST(gradients_are_what_central_differences_say)
{
    struct case_of made;
    if (!case_at(&made, ATTN_F64, (size_t)_i))
        return;
    made.wanted.of = all_of(&made.wanted);
    gradient_run run = run_serial(&made.wanted, NULL);
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++)
        if (made.wanted.of >> g & 1 && attn_gradient_subject(&made.scene.request, (attn_gradient)g) != NULL)
            expect_tensor(&made, &run, (attn_gradient)g);
    expect_scale(&made, &run);
    release_run(&run);
    release_case(&made);
}
END_TEST

/* Every mask, with the options that change what a mask meets. */
START_TEST(gradients_are_right_under_every_mask)
{
    const size_t mask = (size_t)_i / 2, size = _i % 2 == 0 ? 2 : 4;
    const scene_size *n = &sizes[size];
    struct case_of made = {.scene = scene_create(ATTN_F64, (uint64_t)_i)};
    attn_options *options = &made.scene.request.options;
    scene_attention(&made.scene, n);
    mask_case_at(mask)->apply(&made.scene, n);
    options->softcap = mask % 2 ? 2 : 0;
    options->dropout = mask % 3 == 0 ? 0.3 : 0;
    options->dropout_attention = true;
    snprintf(made.name, sizeof made.name, "mask %s", mask_case_at(mask)->name);
    add_to_scores(&made.scene, n->heads, (size_t)_i);
    made.wanted = ask(&made.scene);
    made.wanted.of = all_of(&made.wanted);
    gradient_run run = run_serial(&made.wanted, NULL);
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++)
        if (attn_gradient_subject(&made.scene.request, (attn_gradient)g) != NULL)
            expect_tensor(&made, &run, (attn_gradient)g);
    release_run(&run);
    release_case(&made);
}
END_TEST

/* ---- algebra ---- */

/* p (dP - delta) adds up to delta - delta over a row whose weights sum to 1: without sinks. */
START_TEST(the_gradient_of_a_row_of_scores_sums_to_nothing_and_hidden_scores_have_none)
{
    struct case_of made;
    for (size_t number = 0; case_at(&made, number % 2 ? ATTN_F64 : ATTN_F32, number); number++) {
        made.scene.request.options.sinks = NULL;
        made.wanted.of = OF(SCORES);
        gradient_run run = run_serial(&made.wanted, NULL);
        const attn_tensor *scores = &run.result.gradient[ATTN_GRADIENT_SCORES];
        const attn_plan *plan = &run.plan.forward;
        const double unit = plan->compute == ATTN_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
        const size_t kv_len = plan->dims.kv_len, rows = attn_tensor_count(scores) / (kv_len == 0 ? 1 : kv_len);
        for (size_t row = 0; row < rows; row++) {
            const size_t i = row % plan->dims.q_len, h = row / plan->dims.q_len % plan->dims.heads;
            const size_t b = row / plan->dims.q_len / plan->dims.heads;
            double sum = 0, size = 0;
            for (size_t j = 0; j < kv_len; j++) {
                const double x = tensor_get(scores, row * kv_len + j);
                sum += x;
                size += fabs(x);
                if (!attn_mask_allows(&plan->mask, plan->compute, b, h, i, j))
                    ck_assert_msg(x == 0, "%s: hidden score has gradient %g", made.name, x);
            }
            /* Rounding of the scores (up to about 10) and of their log-sum-exp, then of every term; values up to 4. */
            ck_assert_msg(fabs(sum) <= 40 * unit * (size + 4), "%s: row %zu sums to %g of %g", made.name, row, sum,
                          size);
        }
        release_run(&run);
        release_case(&made);
    }
}
END_TEST

/* ---- what is hidden ---- */

static bool is_seen(const attn_plan *plan, size_t b, size_t kv_head, size_t j)
{
    const size_t group = plan->dims.heads / plan->dims.kv_heads;
    for (size_t h = kv_head * group; h < (kv_head + 1) * group; h++)
        for (size_t i = 0; i < plan->dims.q_len; i++)
            if (attn_mask_allows(&plan->mask, plan->compute, b, h, i, j))
                return true;
    return false;
}

static bool sees_any(const attn_plan *plan, size_t b, size_t h, size_t i)
{
    for (size_t j = 0; j < plan->dims.kv_len; j++)
        if (attn_mask_allows(&plan->mask, plan->compute, b, h, i, j))
            return true;
    return false;
}

static void fill_row(const attn_tensor *tensor, size_t row, double value)
{
    const size_t d = tensor->shape[tensor->rank - 1];
    for (size_t f = 0; f < d; f++)
        tensor_set((attn_tensor *)(uintptr_t)tensor, row * d + f, value);
}

static void expect_zero_row(const attn_tensor *tensor, size_t row, const char *name)
{
    const size_t d = tensor->shape[tensor->rank - 1];
    for (size_t f = 0; f < d; f++)
        ck_assert_msg(tensor_get(tensor, row * d + f) == 0, "%s: row %zu is hidden and has %g", name, row,
                      tensor_get(tensor, row * d + f));
}

/* Puts value into keys and values that no query sees, and into queries that see no key. */
static void plant(struct case_of *made, const attn_plan *plan, double value)
{
    const attn_inputs *in = &made->scene.request.inputs;
    const attn_dims *d = &plan->dims;
    for (size_t row = 0; row < d->batch * d->kv_heads * d->kv_len; row++)
        if (!is_seen(plan, row / d->kv_len / d->kv_heads, row / d->kv_len % d->kv_heads, row % d->kv_len)) {
            fill_row(in->key, row, value);
            fill_row(in->value, row, value);
        }
    for (size_t row = 0; row < d->batch * d->heads * d->q_len; row++)
        if (!sees_any(plan, row / d->q_len / d->heads, row / d->q_len % d->heads, row % d->q_len))
            fill_row(in->query, row, value);
}

static void expect_hidden_zero(const struct case_of *made, const gradient_run *run)
{
    const attn_dims *d = &run->plan.forward.dims;
    const attn_tensor *gradient = run->result.gradient;
    for (size_t row = 0; row < d->batch * d->kv_heads * d->kv_len; row++)
        if (!is_seen(&run->plan.forward, row / d->kv_len / d->kv_heads, row / d->kv_len % d->kv_heads,
                     row % d->kv_len)) {
            expect_zero_row(&gradient[ATTN_GRADIENT_KEY], row, made->name);
            expect_zero_row(&gradient[ATTN_GRADIENT_VALUE], row, made->name);
        }
    for (size_t row = 0; row < d->batch * d->heads * d->q_len; row++)
        if (!sees_any(&run->plan.forward, row / d->q_len / d->heads, row / d->q_len % d->heads, row % d->q_len))
            expect_zero_row(&gradient[ATTN_GRADIENT_QUERY], row, made->name);
}

START_TEST(what_is_hidden_is_never_read_and_has_no_gradient)
{
    const size_t masks = count_masks();
    for (size_t size = 1; size < SIZES; size++) {
        const size_t mask = (size_t)_i;
        struct case_of made = {.scene = scene_create(mask % 2 ? ATTN_F64 : ATTN_F32, mask)};
        ck_assert_uint_lt(mask, masks);
        scene_attention(&made.scene, &sizes[size]);
        mask_case_at(mask)->apply(&made.scene, &sizes[size]);
        made.wanted = ask(&made.scene);
        made.wanted.of = all_of(&made.wanted);
        snprintf(made.name, sizeof made.name, "mask %s, size %zu", mask_case_at(mask)->name, size);
        gradient_run plain = run_serial(&made.wanted, NULL);
        expect_hidden_zero(&made, &plain);
        plant(&made, &plain.plan.forward, mask % 3 ? (double)NAN : (double)INFINITY);
        gradient_run planted = run_serial(&made.wanted, NULL);
        expect_same_gradients(&plain, &planted, made.name);
        release_run(&plain);
        release_run(&planted);
        release_case(&made);
    }
}
END_TEST

/* A query with NaN spoils what it sees, and nothing else: causal, so key 7 is beyond query 3. */
START_TEST(a_spoilt_query_reaches_only_the_keys_it_sees)
{
    struct case_of made = {.scene = scene_create(ATTN_F32, 5)};
    scene_attention(&made.scene, &(scene_size){1, 1, 1, 9, 9, 4, 5});
    made.scene.request.masks.causal = true;
    fill_row(made.scene.request.inputs.query, 3, (double)NAN);
    made.wanted = ask(&made.scene);
    gradient_run run = run_serial(&made.wanted, NULL);
    for (size_t j = 0; j < 9; j++)
        for (size_t f = 0; f < 4; f++) {
            ck_assert_int_eq(isnan(tensor_get(&run.result.gradient[ATTN_GRADIENT_KEY], j * 4 + f)) != 0, j <= 3);
            ck_assert_int_eq(isnan(tensor_get(&run.result.gradient[ATTN_GRADIENT_QUERY], j * 4 + f)) != 0, j == 3);
        }
    release_run(&run);
    release_case(&made);
}
END_TEST

/* A spoilt key likewise, and one number of dO: keys that the query sees, and they alone. */
START_TEST(a_spoilt_key_reaches_only_the_queries_that_see_it)
{
    struct case_of made = {.scene = scene_create(ATTN_F64, 6)};
    scene_attention(&made.scene, &(scene_size){1, 1, 1, 9, 9, 4, 5});
    made.scene.request.masks.causal = true;
    fill_row(made.scene.request.inputs.key, 6, (double)NAN);
    made.wanted = ask(&made.scene);
    gradient_run run = run_serial(&made.wanted, NULL);
    for (size_t i = 0; i < 9; i++)
        ck_assert_int_eq(isnan(tensor_get(&run.result.gradient[ATTN_GRADIENT_QUERY], i * 4)) != 0, i >= 6);
    release_run(&run);
    fill_row(made.scene.request.inputs.key, 6, 1);
    tensor_set((attn_tensor *)(uintptr_t)made.wanted.grad_output, 2 * 5 + 1, (double)INFINITY);
    run = run_serial(&made.wanted, NULL);
    for (size_t j = 0; j < 9; j++) {
        ck_assert_int_eq(isfinite(tensor_get(&run.result.gradient[ATTN_GRADIENT_VALUE], j * 5 + 1)) == 0, j <= 2);
        ck_assert(isfinite(tensor_get(&run.result.gradient[ATTN_GRADIENT_VALUE], j * 5)) != 0);
    }
    release_run(&run);
    release_case(&made);
}
END_TEST

/* Padded tokens of a layer hold NaN: no weight hears of it. */
START_TEST(padding_of_a_layer_reaches_no_weight)
{
    for (int layout = 0; layout < 2; layout++) {
        struct case_of made = {.scene = scene_create(ATTN_F64, 9)};
        const scene_size n = {2, 2, 1, 5, 7, 3, 2};
        (layout ? layer_by_heads : layer_across)(&made.scene, &n);
        attn_tensor *padding = scene_coins(&made.scene, 1, SHAPE(2, 7));
        made.scene.request.masks.padding = padding;
        made.wanted = ask(&made.scene);
        tensor_set(padding, 6, 0);
        tensor_set(padding, 9, 0);
        gradient_run plain = run_serial(&made.wanted, NULL);
        fill_row(made.scene.request.inputs.key, 6, (double)NAN);
        fill_row(made.scene.request.inputs.key, 9, (double)NAN);
        gradient_run planted = run_serial(&made.wanted, NULL);
        for (int g = ATTN_GRADIENT_QUERY_WEIGHT; g <= ATTN_GRADIENT_OUTPUT_BIAS; g++)
            if (plain.plan.of >> g & 1)
                expect_same_bytes(&plain.result.gradient[g], &planted.result.gradient[g], "weights beside padding");
        expect_same_bytes(&plain.result.gradient[ATTN_GRADIENT_KEY], &planted.result.gradient[ATTN_GRADIENT_KEY],
                          "key");
        release_run(&plain);
        release_run(&planted);
        release_case(&made);
    }
}
END_TEST

/* ---- the same bytes ---- */

START_TEST(threads_do_not_change_a_byte)
{
    const size_t threads[] = {1, 2, 3, 8};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        attn_pool *pool = attn_pool_create(threads[t]);
        ck_assert_ptr_nonnull(pool);
        const attn_runtime runtime = attn_pool_runtime(pool, NULL);
        struct case_of made;
        for (size_t number = 0; case_at(&made, number % 2 ? ATTN_F64 : ATTN_F32, number); number++) {
            made.wanted.of = all_of(&made.wanted);
            gradient_run serial = run_serial(&made.wanted, NULL), spread = run_gradients(&made.wanted, &runtime);
            expect_same_gradients(&serial, &spread, made.name);
            release_run(&serial);
            release_run(&spread);
            release_case(&made);
        }
        attn_pool_destroy(pool);
    }
}
END_TEST

/* Tasks in reverse order, by workers in turn: what a pool may do but seldom does. */
static void run_backwards(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    for (size_t t = tasks; t-- > 0;)
        task(argument, t, t % 5);
}

START_TEST(the_order_of_tasks_does_not_change_a_byte)
{
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.threads = 5;
    runtime.run = run_backwards;
    struct case_of made;
    for (size_t number = 0; case_at(&made, number % 2 ? ATTN_F32 : ATTN_F64, number); number++) {
        made.wanted.of = all_of(&made.wanted);
        gradient_run serial = run_serial(&made.wanted, NULL), backwards = run_gradients(&made.wanted, &runtime);
        expect_same_gradients(&serial, &backwards, made.name);
        release_run(&serial);
        release_run(&backwards);
        release_case(&made);
    }
}
END_TEST

START_TEST(each_gradient_alone_is_as_among_all)
{
    struct case_of made;
    for (size_t number = 0; case_at(&made, ATTN_F32, number); number++) {
        const uint32_t every = all_of(&made.wanted);
        made.wanted.of = every;
        made.scene.request.options.want = WANT(OUTPUT) | WANT(ATTENTION) | WANT(Q);
        gradient_run all = run_serial(&made.wanted, NULL);
        made.scene.request.options.want = 0;
        for (uint32_t one = 1; one <= every; one <<= 1)
            if (every & one) {
                made.wanted.of = one;
                gradient_run alone = run_serial(&made.wanted, NULL);
                expect_same_gradients(&all, &alone, made.name);
                release_run(&alone);
            }
        release_run(&all);
        release_case(&made);
    }
}
END_TEST

START_TEST(the_forward_steps_are_those_of_a_plain_run)
{
    struct case_of made;
    for (size_t number = 0; case_at(&made, ATTN_F32, number); number++) {
        made.scene.request.options.want = WANT(OUTPUT) | WANT(ATTENTION) | WANT(LSE) | WANT(Q);
        gradient_run run = run_serial(&made.wanted, NULL);
        test_run plain = run_kernel(&made.scene.request, NULL, made.scene.request.options.want);
        const test_run forward = {.plan = run.plan.forward, .result = run.result.forward};
        ck_assert_uint_eq(run.plan.want, made.scene.request.options.want);
        expect_same_steps(&plain, &forward, made.scene.request.options.want, made.name);
        run_release(&plain);
        release_run(&run);
        release_case(&made);
    }
}
END_TEST

START_TEST(selections_of_the_scores_are_slices_of_the_whole)
{
    static const size_t heads[] = {1, 0}, queries[] = {130, 0, 7}, keys[] = {258, 3};
    struct case_of made = {.scene = scene_create(ATTN_F32, 2)};
    const scene_size *n = &sizes[4];
    scene_attention(&made.scene, n);
    made.scene.request.options.softcap = 2;
    made.wanted = ask(&made.scene);
    made.wanted.of = OF(SCORES);
    gradient_run whole = run_serial(&made.wanted, NULL);
    made.scene.request.options.heads = (attn_selection){heads, 2};
    made.scene.request.options.queries = (attn_selection){queries, 3};
    made.scene.request.options.keys = (attn_selection){keys, 2};
    gradient_run part = run_serial(&made.wanted, NULL);
    const attn_tensor *all = &whole.result.gradient[ATTN_GRADIENT_SCORES];
    const attn_tensor *some = &part.result.gradient[ATTN_GRADIENT_SCORES];
    ck_assert_uint_eq(attn_tensor_count(some), 2 * 3 * 2);
    for (size_t at = 0; at < attn_tensor_count(some); at++) {
        const size_t row = heads[at / 6] * n->q_len + queries[at / 2 % 3];
        ck_assert(tensor_get(some, at) == tensor_get(all, row * n->kv_len + keys[at % 2]));
    }
    release_run(&whole);
    release_run(&part);
    release_case(&made);
}
END_TEST

/* ---- both types, all kernels ---- */

static double largest_size(const attn_tensor *tensor)
{
    double largest = 0;
    for (size_t at = 0; at < attn_tensor_count(tensor); at++)
        largest = fmax(largest, fabs(tensor_get(tensor, at)));
    return largest;
}

/* A copy of the case in double, with the very same numbers. */
static attn_tensor *widen(test_scene *scene, const attn_tensor *tensor)
{
    if (tensor == NULL || tensor->dtype != ATTN_F32)
        return (attn_tensor *)(uintptr_t)tensor;
    attn_tensor *made = scene_tensor(scene, ATTN_F64, tensor->rank, tensor->shape);
    for (size_t at = 0; at < attn_tensor_count(tensor); at++)
        tensor_set(made, at, tensor_get(tensor, at));
    return made;
}

static void widen_linear(test_scene *scene, attn_linear *linear)
{
    linear->weight = widen(scene, linear->weight);
    linear->bias = widen(scene, linear->bias);
}

static attn_request widened(test_scene *scene)
{
    attn_request wide = scene->request;
    wide.options.compute = ATTN_F64;
    wide.inputs.query = widen(scene, wide.inputs.query);
    wide.inputs.key = widen(scene, wide.inputs.key);
    wide.inputs.value = widen(scene, wide.inputs.value);
    wide.masks.bias = widen(scene, wide.masks.bias);
    wide.options.alibi_slopes = widen(scene, wide.options.alibi_slopes);
    wide.options.relative_bias.table = widen(scene, wide.options.relative_bias.table);
    wide.options.sinks = widen(scene, wide.options.sinks);
    attn_linear *const linears[] = {&wide.weights.query, &wide.weights.key,    &wide.weights.value,
                                    &wide.weights.qkv,   &wide.weights.output, &wide.weights.norm};
    for (size_t l = 0; l < sizeof linears / sizeof *linears; l++)
        widen_linear(scene, linears[l]);
    return wide;
}

/* Every number within error times the largest of its gradient. */
static void expect_near_gradients(const gradient_run *run, const gradient_run *reference, double error,
                                  const char *name)
{
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++) {
        const attn_tensor *got = &run->result.gradient[g], *expected = &reference->result.gradient[g];
        if (!(run->plan.of >> g & 1))
            continue;
        const double bound = error * (largest_size(expected) + 1);
        for (size_t at = 0; at < attn_tensor_count(got); at++)
            ck_assert_msg(fabs(tensor_get(got, at) - tensor_get(expected, at)) <= bound,
                          "%s: %s[%zu] is %.17g, not %.17g", name, attn_gradient_name((attn_gradient)g), at,
                          tensor_get(got, at), tensor_get(expected, at));
    }
}

/*
 * Sums of up to 2 x 131 x 259 terms of mixed signs, through norms that divide by small deviations: relative to the
 * largest number of a gradient, a few thousand roundings.
 */
START_TEST(float32_is_float64_rounded)
{
    const attn_kernel *kernel;
    struct case_of made;
    for (size_t number = 0; case_at(&made, ATTN_F32, number); number++) {
        attn_request wide = widened(&made.scene);
        attn_gradient_request exact = {&wide, widen(&made.scene, made.wanted.grad_output), all_of(&made.wanted)};
        made.wanted.of = exact.of;
        gradient_run reference = run_serial(&exact, NULL);
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            gradient_run run = run_serial(&made.wanted, kernel);
            expect_near_gradients(&run, &reference, 2000 * (double)FLT_EPSILON, made.name);
            release_run(&run);
        }
        release_run(&reference);
        release_case(&made);
    }
}
END_TEST

START_TEST(kernels_agree_in_double)
{
    const attn_kernel *kernel;
    struct case_of made;
    for (size_t number = 0; case_at(&made, ATTN_F64, number); number++) {
        made.wanted.of = all_of(&made.wanted);
        gradient_run first = run_serial(&made.wanted, attn_kernel_at(0));
        for (size_t k = 1; (kernel = attn_kernel_at(k)) != NULL; k++) {
            gradient_run run = run_serial(&made.wanted, kernel);
            expect_near_gradients(&run, &first, 2000 * DBL_EPSILON, made.name);
            release_run(&run);
        }
        release_run(&first);
        release_case(&made);
    }
}
END_TEST

/* ---- memory ---- */

static bool fits(const attn_gradient_request *wanted, const attn_gradient_plan *plan, size_t limit)
{
    attn_gradient_result result;
    attn_error err = {0};
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create(limit);
    if (arena == NULL)
        return false;
    const attn_status status = attn_gradient_run(plan, wanted, &runtime, arena, &result, &err);
    ck_assert_uint_le(attn_arena_peak_bytes(arena), limit);
    attn_arena_destroy(arena);
    ck_assert_msg(status == ATTN_OK || (status == ATTN_ERR_NO_MEMORY && err.status == status && err.message[0] != '\0'),
                  "%zu bytes: %s", limit, err.message);
    return status == ATTN_OK;
}

START_TEST(an_arena_too_small_is_a_clean_refusal)
{
    struct case_of made;
    for (size_t number = 0; case_at(&made, ATTN_F32, number); number += 5) {
        attn_gradient_plan plan;
        made.wanted.of = all_of(&made.wanted);
        ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plan, NULL), ATTN_OK);
        const size_t enough = attn_gradient_plan_bytes(&plan, 1), coarse = enough / 200 / 64 * 64 + 64;
        size_t limit = 0;
        while (!fits(&made.wanted, &plan, limit)) {
            limit += coarse;
            ck_assert_msg(limit < enough + coarse, "%s: %zu bytes are not enough", made.name, enough);
        }
        for (size_t fine = limit < coarse ? 0 : limit - coarse; fine < limit; fine += coarse / 64 / 20 * 64 + 64)
            (void)fits(&made.wanted, &plan, fine);
        ck_assert_msg(fits(&made.wanted, &plan, enough), "%s: not within what the plan says", made.name);
        release_case(&made);
    }
}
END_TEST

START_TEST(without_maps_no_memory_grows_with_queries_times_keys)
{
    attn_gradient_plan plans[2];
    for (size_t p = 0; p < 2; p++) {
        struct case_of made = {.scene = scene_create(ATTN_F32, 1)};
        const size_t length = p == 0 ? 4096 : 8192;
        scene_attention(&made.scene, &(scene_size){1, 1, 1, length, length, 16, 16});
        made.wanted = ask(&made.scene);
        ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plans[p], NULL), ATTN_OK);
        release_case(&made);
    }
    const double growth =
        (double)attn_gradient_plan_bytes(&plans[1], 2) / (double)attn_gradient_plan_bytes(&plans[0], 2);
    ck_assert_msg(growth <= 2, "twice the length takes %g times the memory", growth);
}
END_TEST

/* ---- refusals and stopping ---- */

static void expect_gradient_refusal(const attn_gradient_request *request, attn_status status, const char *field,
                                    const char *fragment)
{
    attn_gradient_plan plan;
    attn_error err = {0};
    const attn_status got = attn_gradient_plan_make(request, &plan, &err);
    ck_assert_msg(got == status && err.status == status, "%s: %s: %s", field, attn_status_name(got), err.message);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.message, fragment) != NULL, "\"%s\" lacks \"%s\"", err.message, fragment);
}

START_TEST(what_cannot_be_differentiated_is_refused)
{
    struct case_of made;
    ck_assert(case_at(&made, ATTN_F32, 2 + KINDS)); /* attention of keys */
    attn_gradient_request bad = made.wanted;
    bad.grad_output = NULL;
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "/inputs/grad_output", "missing");
    bad.grad_output = scene_tensor(&made.scene, ATTN_F64, 3, made.wanted.grad_output->shape);
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "/inputs/grad_output", "must be float32");
    bad.grad_output = scene_normal(&made.scene, 1, SHAPE(2, 2));
    expect_gradient_refusal(&bad, ATTN_ERR_SHAPE, "/inputs/grad_output", "the output has");
    bad = made.wanted;
    bad.of = OF(VALUE);
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "/options/return", "it is inputs.key");
    bad.of = OF(QKV_WEIGHT);
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "/options/return", "weights.qkv.weight");
    release_case(&made);
}
END_TEST

/* Their backward pass is not written: a wrong gradient would be worse than none. */
START_TEST(what_has_no_gradient_yet_is_refused_by_name)
{
    struct case_of made;
    ck_assert(case_at(&made, ATTN_F32, 3 + KINDS)); /* a layer across */
    attn_request *request = &made.scene.request;
    const attn_request plain = *request;
    request->options.mechanism.type = ATTN_LINEAR;
    request->options.sinks = NULL;
    request->options.softcap = 0;
    request->options.alibi_slopes = request->options.relative_bias.table = NULL;
    request->options.alibi = false;
    request->options.dropout = 0;
    request->masks = (attn_masks){0};
    expect_gradient_refusal(&made.wanted, ATTN_ERR_FIELD, "/options/mechanism", "has no gradient here yet");
    *request = plain;
    request->options.qk_norm = ATTN_NORM_RMS;
    request->options.qk_norm_eps = 1e-5;
    expect_gradient_refusal(&made.wanted, ATTN_ERR_FIELD, "/options/qk_norm", "has no gradient here yet");
    *request = plain;
    request->weights.gate.weight = scene_normal(&made.scene, 1, SHAPE(5, 4));
    expect_gradient_refusal(&made.wanted, ATTN_ERR_FIELD, "/weights/gate", "has no gradient here yet");
    *request = plain;
    release_case(&made);
}
END_TEST

START_TEST(names_lead_to_their_gradients_and_back)
{
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++)
        ck_assert_int_eq((int)attn_gradient_from_name(attn_gradient_name((attn_gradient)g)), g);
    ck_assert_int_eq((int)attn_gradient_from_name("inputs"), ATTN_GRADIENT_COUNT);
}
END_TEST

static bool after_some_looks(void *context)
{
    size_t *left = context;
    return *left == 0 || --*left == 0;
}

START_TEST(a_run_cancelled_midway_says_so_or_has_finished)
{
    struct case_of made;
    ck_assert(case_at(&made, ATTN_F32, 5 + 4 * KINDS)); /* a layer with everything, several tiles */
    gradient_run whole = run_serial(&made.wanted, NULL);
    size_t finished = 0, cancelled = 0;
    for (size_t looks = 1; finished == 0; looks += 1 + looks / 8) {
        size_t left = looks;
        attn_runtime runtime = attn_runtime_serial(NULL);
        runtime.is_cancelled = after_some_looks;
        runtime.cancel_context = &left;
        gradient_run run = {.plan = whole.plan, .arena = attn_arena_create(attn_gradient_plan_bytes(&whole.plan, 1))};
        attn_error err = {0};
        const attn_status status = attn_gradient_run(&run.plan, &made.wanted, &runtime, run.arena, &run.result, &err);
        ck_assert(status == ATTN_OK || (status == ATTN_ERR_CANCELLED && err.status == status));
        if (status == ATTN_OK)
            expect_same_gradients(&whole, &run, "finished before it was cancelled");
        finished += status == ATTN_OK;
        cancelled += status == ATTN_ERR_CANCELLED;
        release_run(&run);
    }
    ck_assert_uint_gt(cancelled, 0);
    release_run(&whole);
    release_case(&made);
}
END_TEST

/* Neighbours in a batch change nothing of an item. */
START_TEST(a_batch_of_two_is_two_single_requests)
{
    const scene_size n = {2, 4, 2, 140, 300, 8, 5};
    struct case_of made = {.scene = scene_create(ATTN_F32, 3)};
    scene_attention(&made.scene, &n);
    made.wanted = ask(&made.scene);
    gradient_run both = run_serial(&made.wanted, NULL);
    const attn_inputs in = made.scene.request.inputs;
    const attn_tensor *grad = made.wanted.grad_output;
    for (size_t b = 0; b < 2; b++) {
        made.scene.request.inputs = (attn_inputs){.query = scene_item(&made.scene, in.query, b),
                                                  .key = scene_item(&made.scene, in.key, b),
                                                  .value = scene_item(&made.scene, in.value, b)};
        attn_gradient_request one = {&made.scene.request, scene_item(&made.scene, grad, b), 0};
        gradient_run single = run_serial(&one, NULL);
        for (int g = ATTN_GRADIENT_QUERY; g <= ATTN_GRADIENT_VALUE; g++)
            expect_same_bytes(scene_item(&made.scene, &both.result.gradient[g], b), &single.result.gradient[g], "item");
        release_run(&single);
    }
    release_run(&both);
    release_case(&made);
}
END_TEST

int main(void)
{
    attn_blas_prepare();
    Suite *suite = suite_create("gradient");
    TCase *tcase = tcase_create("gradient");
    tcase_set_timeout(tcase, 60);
    const int masks = (int)count_masks();
    tcase_add_loop_test(tcase, gradients_are_what_central_differences_say, 0, KINDS * SIZES);
    tcase_add_loop_test(tcase, gradients_are_right_under_every_mask, 0, 2 * masks);
    tcase_add_loop_test(tcase, what_is_hidden_is_never_read_and_has_no_gradient, 0, masks);
    const TTest *tests[] = {
        the_gradient_of_a_row_of_scores_sums_to_nothing_and_hidden_scores_have_none,
        a_spoilt_query_reaches_only_the_keys_it_sees,
        a_spoilt_key_reaches_only_the_queries_that_see_it,
        padding_of_a_layer_reaches_no_weight,
        threads_do_not_change_a_byte,
        the_order_of_tasks_does_not_change_a_byte,
        each_gradient_alone_is_as_among_all,
        the_forward_steps_are_those_of_a_plain_run,
        selections_of_the_scores_are_slices_of_the_whole,
        float32_is_float64_rounded,
        kernels_agree_in_double,
        an_arena_too_small_is_a_clean_refusal,
        without_maps_no_memory_grows_with_queries_times_keys,
        what_cannot_be_differentiated_is_refused,
        what_has_no_gradient_yet_is_refused_by_name,
        names_lead_to_their_gradients_and_back,
        a_run_cancelled_midway_says_so_or_has_finished,
        a_batch_of_two_is_two_single_requests,
    };
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
        tcase_add_test(tcase, tests[t]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

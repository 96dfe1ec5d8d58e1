/*
 * test_backward.c: compares gradients with central differences of the forward pass, and checks their algebra and
 * contract.
 */
#include "attn/gradient.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "check_main.h"
#include "gradient_cases.h"
#include "mask_cases.h"

START_TEST(gradients_are_what_central_differences_say)
{
    gradient_case made;
    ck_assert(gradient_case_at(&made, ATTN_F64, one_of(_i, one_in(3))));
    made.wanted.of = gradient_all_of(&made.wanted);
    gradient_run run = gradient_run_serial(&made.wanted, NULL);
    expect_gradients(&made, &run);
    gradient_run_release(&run);
    gradient_case_release(&made);
}
END_TEST

/* Heads of several vectors, with a part of one, and of more features than one sum of products takes. */
START_TEST(gradients_of_wide_heads_are_right_by_every_kernel)
{
    static const scene_size sizes[] = {{1, 2, 1, 101, 203, 41, 24}, {1, 1, 1, 30, 50, 300, 270}};
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
        gradient_case made = {.scene = scene_create(ATTN_F64, size)};
        const attn_kernel *kernel;
        scene_attention(&made.scene, &sizes[size]);
        made.scene.request.masks.causal = size == 0;
        made.wanted = gradient_ask(&made.scene);
        made.wanted.of = gradient_all_of(&made.wanted);
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            const attn_runtime runtime = attn_runtime_serial(kernel);
            snprintf(made.name, sizeof made.name, "%zu features, %s", sizes[size].d_k, attn_kernel_name(kernel));
            gradient_run run = gradient_run_on(&made.wanted, &runtime);
            expect_gradients(&made, &run);
            gradient_run_release(&run);
        }
        gradient_case_release(&made);
    }
}
END_TEST

/* Every mask, with the options that change what a mask meets. */
START_TEST(gradients_are_right_under_every_mask)
{
    const size_t mask = (size_t)_i / 2, size = _i % 2 == 0 ? 2 : 4;
    const scene_size *n = &gradient_sizes[size];
    if (size == 4 && mask % one_in(11) != 0) /* the large one */
        return;
    gradient_case made = {.scene = scene_create(ATTN_F64, (uint64_t)_i)};
    attn_options *options = &made.scene.request.options;
    scene_attention(&made.scene, n);
    mask_case_at(mask)->apply(&made.scene, n);
    options->softcap = mask % 2 ? 2 : 0;
    options->dropout = mask % 3 == 0 ? 0.3 : 0;
    options->dropout_attention = true;
    snprintf(made.name, sizeof made.name, "mask %s", mask_case_at(mask)->name);
    gradient_add_to_scores(&made.scene, n->heads, (size_t)_i);
    made.wanted = gradient_ask(&made.scene);
    made.wanted.of = gradient_all_of(&made.wanted);
    gradient_run run = gradient_run_serial(&made.wanted, NULL);
    expect_gradients(&made, &run);
    gradient_run_release(&run);
    gradient_case_release(&made);
}
END_TEST

/* ---- algebra ---- */

/* p (dP - delta) adds up to delta - delta over a row whose weights sum to 1: without sinks. */
START_TEST(the_gradient_of_a_row_of_scores_sums_to_nothing_and_hidden_scores_have_none)
{
    gradient_case made;
    for (size_t number = 0; number < GRADIENT_CASES_OF_SOFTMAX; number++) {
        ck_assert(gradient_case_at(&made, number % 2 ? ATTN_F64 : ATTN_F32, number));
        made.scene.request.options.sinks = NULL;
        made.wanted.of = OF(SCORES);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
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
                if (!attn_plan_allows(plan, b, h, i, j))
                    ck_assert_msg(x == 0, "%s: hidden score has gradient %g", made.name, x);
            }
            /* Rounding of the scores (up to about 10) and of their log-sum-exp, then of every term; values up to 4. */
            ck_assert_msg(fabs(sum) <= 40 * unit * (size + 4), "%s: row %zu sums to %g of %g", made.name, row, sum,
                          size);
        }
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

/* dS = p (dP - the sum of p dP over the row), where dP is 0 for hidden pairs, and behind dropout for those that it drops. */
START_TEST(the_gradient_of_the_scores_follows_from_that_of_the_weights)
{
    gradient_case made;
    for (size_t number = 0; number < GRADIENT_CASES_OF_SOFTMAX; number++) {
        ck_assert(gradient_case_at(&made, number % 2 ? ATTN_F64 : ATTN_F32, number));
        made.scene.request.options.want = ATTN_STEP_BIT(ATTN_STEP_ATTENTION);
        made.wanted.of = OF(SCORES) | OF(ATTENTION);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        const attn_plan *plan = &run.plan.forward;
        const attn_tensor *weights = &run.result.forward.step[ATTN_STEP_ATTENTION],
                          *dp = &run.result.gradient[ATTN_GRADIENT_ATTENTION],
                          *ds = &run.result.gradient[ATTN_GRADIENT_SCORES];
        const double unit = plan->compute == ATTN_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
        const size_t kv_len = plan->dims.kv_len, rows = attn_tensor_count(ds) / (kv_len == 0 ? 1 : kv_len);
        for (size_t row = 0; row < rows; row++) {
            const size_t i = row % plan->dims.q_len, h = row / plan->dims.q_len % plan->dims.heads;
            double delta = 0, size = 0;
            for (size_t j = 0; j < kv_len; j++) {
                delta += tensor_get(weights, row * kv_len + j) * tensor_get(dp, row * kv_len + j);
                size += fabs(tensor_get(dp, row * kv_len + j));
            }
            for (size_t j = 0; j < kv_len; j++) {
                const size_t at = row * kv_len + j;
                const double expected = tensor_get(weights, at) * (tensor_get(dp, at) - delta);
                ck_assert_msg(fabs(tensor_get(ds, at) - expected) <= 40 * unit * (size + 4), "%s: %zu is %g, not %g",
                              made.name, at, tensor_get(ds, at), expected);
                if (!attn_plan_allows(plan, row / plan->dims.q_len / plan->dims.heads, h, i, j))
                    ck_assert_msg(tensor_get(dp, at) == 0, "%s: a hidden weight has a gradient", made.name);
            }
        }
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

/* ---- what is hidden ---- */

static bool is_seen(const attn_plan *plan, size_t b, size_t kv_head, size_t j)
{
    const size_t group = plan->dims.heads / plan->dims.kv_heads;
    for (size_t h = kv_head * group; h < (kv_head + 1) * group; h++)
        for (size_t i = 0; i < plan->dims.q_len; i++)
            if (attn_plan_allows(plan, b, h, i, j))
                return true;
    return false;
}

static bool sees_any(const attn_plan *plan, size_t b, size_t h, size_t i)
{
    for (size_t j = 0; j < plan->dims.kv_len; j++)
        if (attn_plan_allows(plan, b, h, i, j))
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
static void plant(gradient_case *made, const attn_plan *plan, double value)
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

static void expect_hidden_zero(const gradient_case *made, const gradient_run *run)
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
    const size_t masks = mask_case_count();
    for (size_t size = 1; size < GRADIENT_SIZES; size++) {
        const size_t mask = (size_t)_i;
        gradient_case made = {.scene = scene_create(mask % 2 ? ATTN_F64 : ATTN_F32, mask)};
        ck_assert_uint_lt(mask, masks);
        scene_attention(&made.scene, &gradient_sizes[size]);
        mask_case_at(mask)->apply(&made.scene, &gradient_sizes[size]);
        if ((mask + size) % 3 == 0)
            gradient_add_mechanism(&made.scene, mask);
        made.wanted = gradient_ask(&made.scene);
        made.wanted.of = gradient_all_of(&made.wanted);
        snprintf(made.name, sizeof made.name, "mask %s, size %zu", mask_case_at(mask)->name, size);
        gradient_run plain = gradient_run_serial(&made.wanted, NULL);
        expect_hidden_zero(&made, &plain);
        plant(&made, &plain.plan.forward, mask % 3 ? (double)NAN : (double)INFINITY);
        gradient_run planted = gradient_run_serial(&made.wanted, NULL);
        expect_same_gradients(&plain, &planted, made.name);
        gradient_run_release(&plain);
        gradient_run_release(&planted);
        gradient_case_release(&made);
    }
}
END_TEST

/* A query with NaN spoils what it sees, and nothing else: causal, so key 7 is beyond query 3. */
START_TEST(a_spoilt_query_reaches_only_the_keys_it_sees)
{
    gradient_case made = {.scene = scene_create(ATTN_F32, 5)};
    scene_attention(&made.scene, &(scene_size){1, 1, 1, 9, 9, 4, 5});
    made.scene.request.masks.causal = true;
    fill_row(made.scene.request.inputs.query, 3, (double)NAN);
    made.wanted = gradient_ask(&made.scene);
    gradient_run run = gradient_run_serial(&made.wanted, NULL);
    for (size_t j = 0; j < 9; j++)
        for (size_t f = 0; f < 4; f++) {
            ck_assert_int_eq(isnan(tensor_get(&run.result.gradient[ATTN_GRADIENT_KEY], j * 4 + f)) != 0, j <= 3);
            ck_assert_int_eq(isnan(tensor_get(&run.result.gradient[ATTN_GRADIENT_QUERY], j * 4 + f)) != 0, j == 3);
        }
    gradient_run_release(&run);
    gradient_case_release(&made);
}
END_TEST

/* A spoilt key likewise, and one number of dO: keys that the query sees, and they alone. */
START_TEST(a_spoilt_key_reaches_only_the_queries_that_see_it)
{
    gradient_case made = {.scene = scene_create(ATTN_F64, 6)};
    scene_attention(&made.scene, &(scene_size){1, 1, 1, 9, 9, 4, 5});
    made.scene.request.masks.causal = true;
    fill_row(made.scene.request.inputs.key, 6, (double)NAN);
    made.wanted = gradient_ask(&made.scene);
    gradient_run run = gradient_run_serial(&made.wanted, NULL);
    for (size_t i = 0; i < 9; i++)
        ck_assert_int_eq(isnan(tensor_get(&run.result.gradient[ATTN_GRADIENT_QUERY], i * 4)) != 0, i >= 6);
    gradient_run_release(&run);
    fill_row(made.scene.request.inputs.key, 6, 1);
    tensor_set((attn_tensor *)(uintptr_t)made.wanted.grad_output, 2 * 5 + 1, (double)INFINITY);
    run = gradient_run_serial(&made.wanted, NULL);
    for (size_t j = 0; j < 9; j++) {
        ck_assert_int_eq(isfinite(tensor_get(&run.result.gradient[ATTN_GRADIENT_VALUE], j * 5 + 1)) == 0, j <= 2);
        ck_assert(isfinite(tensor_get(&run.result.gradient[ATTN_GRADIENT_VALUE], j * 5)) != 0);
    }
    gradient_run_release(&run);
    gradient_case_release(&made);
}
END_TEST

/* Padded tokens of a layer are NaN: no gradient of a weight, a norm or a gate becomes NaN. */
START_TEST(padding_of_a_layer_reaches_no_weight)
{
    for (int variant = 0; variant < 4; variant++) {
        gradient_case made = {.scene = scene_create(ATTN_F64, 9)};
        const scene_size n = {2, 2, 1, 5, 7, 3, 2};
        if (variant % 2)
            gradient_layer_by_heads(&made.scene, &n);
        else
            scene_layer(&made.scene, &n, 5);
        if (variant / 2) {
            gradient_add_qk_norm(&made.scene, &n, 4);
            gradient_add_gate(&made.scene, &n, 1);
        }
        attn_tensor *padding = scene_coins(&made.scene, 1, SHAPE(2, 7));
        made.scene.request.masks.padding = padding;
        made.wanted = gradient_ask(&made.scene);
        tensor_set(padding, 6, 0);
        tensor_set(padding, 9, 0);
        gradient_run plain = gradient_run_serial(&made.wanted, NULL);
        fill_row(made.scene.request.inputs.key, 6, (double)NAN);
        fill_row(made.scene.request.inputs.key, 9, (double)NAN);
        gradient_run planted = gradient_run_serial(&made.wanted, NULL);
        for (int g = ATTN_GRADIENT_QUERY_WEIGHT; g <= ATTN_GRADIENT_GATE_BIAS; g++)
            if (plain.plan.of >> g & 1)
                expect_same_bytes(&plain.result.gradient[g], &planted.result.gradient[g], "weights beside padding");
        expect_same_bytes(&plain.result.gradient[ATTN_GRADIENT_KEY], &planted.result.gradient[ATTN_GRADIENT_KEY],
                          "key");
        gradient_run_release(&plain);
        gradient_run_release(&planted);
        gradient_case_release(&made);
    }
}
END_TEST

/* A query beyond its length is NaN, and through its gate so is its output. The gradient of that output is 0. */
START_TEST(a_query_whose_gradient_is_0_reaches_no_weight)
{
    const scene_size n = {1, 2, 1, 4, 6, 3, 2};
    for (size_t turn = 0; turn < 2; turn++) {
        gradient_case made = {.scene = scene_create(ATTN_F32, turn)};
        scene_layer(&made.scene, &n, 5);
        gradient_add_gate(&made.scene, &n, turn);
        made.scene.request.masks.query_lengths = scene_integers(&made.scene, (int64_t[]){3}, SHAPE(1));
        made.wanted = gradient_ask(&made.scene);
        fill_row(made.wanted.grad_output, 3, 0);
        gradient_run plain = gradient_run_serial(&made.wanted, NULL);
        fill_row(made.scene.request.inputs.query, 3, (double)NAN);
        gradient_run planted = gradient_run_serial(&made.wanted, NULL);
        expect_same_gradients(&plain, &planted, "a query that is not there");
        expect_zero_row(&planted.result.gradient[ATTN_GRADIENT_QUERY], 3, "a query that is not there");
        gradient_run_release(&plain);
        gradient_run_release(&planted);
        gradient_case_release(&made);
    }
}
END_TEST

/* ---- caches ---- */

/* rows from … to of a (batch, heads, len, d) tensor. */
static attn_tensor *rows_of(test_scene *scene, const attn_tensor *tensor, size_t from, size_t to)
{
    const size_t *all = tensor->shape, shape[4] = {all[0], all[1], to - from, all[3]}, run = shape[2] * shape[3];
    attn_tensor *made = scene_tensor(scene, tensor->dtype, 4, shape);
    for (size_t at = 0; at < attn_tensor_count(made); at++)
        tensor_set(made, at, tensor_get(tensor, at / run * all[2] * all[3] + from * all[3] + at % run));
    return made;
}

/* Keys from 200 on are new, which is within a tile: causal and a bias count all of them. */
START_TEST(a_cache_has_the_gradients_of_the_keys_it_stands_for)
{
    const scene_size n = {2, 4, 2, 140, 340, 8, 5};
    gradient_case made = {.scene = scene_create(ATTN_F32, 8)};
    attn_inputs *in = &made.scene.request.inputs;
    scene_attention(&made.scene, &n);
    made.scene.request.masks.causal = true;
    made.scene.request.masks.bias = scene_normal(&made.scene, 1, SHAPE(n.q_len, n.kv_len));
    made.wanted = gradient_ask(&made.scene);
    gradient_run whole = gradient_run_serial(&made.wanted, NULL);
    const attn_tensor *key = in->key, *value = in->value, *of = whole.result.gradient;
    in->past_key = rows_of(&made.scene, key, 0, 200);
    in->past_value = rows_of(&made.scene, value, 0, 200);
    in->key = rows_of(&made.scene, key, 200, n.kv_len);
    in->value = rows_of(&made.scene, value, 200, n.kv_len);
    gradient_run cached = gradient_run_serial(&made.wanted, NULL);
    const attn_tensor *got = cached.result.gradient;
    expect_same_bytes(&of[ATTN_GRADIENT_QUERY], &got[ATTN_GRADIENT_QUERY], "query");
    expect_same_bytes(&of[ATTN_GRADIENT_MASK_BIAS], &got[ATTN_GRADIENT_MASK_BIAS], "bias");
    for (int g = ATTN_GRADIENT_KEY; g <= ATTN_GRADIENT_VALUE; g++) {
        const int past = g - ATTN_GRADIENT_KEY + ATTN_GRADIENT_PAST_KEY;
        expect_same_bytes(rows_of(&made.scene, &of[g], 0, 200), &got[past], "the cache");
        expect_same_bytes(rows_of(&made.scene, &of[g], 200, n.kv_len), &got[g], "new keys and values");
    }
    gradient_run_release(&whole);
    gradient_run_release(&cached);
    gradient_case_release(&made);
}
END_TEST

/* ---- feature maps ---- */

static double largest_size(const attn_tensor *tensor)
{
    double largest = 0;
    for (size_t at = 0; at < attn_tensor_count(tensor); at++)
        largest = fmax(largest, fabs(tensor_get(tensor, at)));
    return largest;
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
            if (!(fabs(tensor_get(got, at) - tensor_get(expected, at)) <= bound))
                ck_abort_msg("%s: %s[%zu] is %.17g, not %.17g", name, attn_gradient_name((attn_gradient)g), at,
                             tensor_get(got, at), tensor_get(expected, at));
    }
}

/* A causal mask is a run of keys, whose sums are running ones; said as attend, every pair is looked up. */
START_TEST(running_sums_have_the_gradients_of_all_pairs)
{
    const scene_size n = {2, 4, 2, 530, 600, 3, 2};
    for (size_t turn = 0; turn < 4; turn++) {
        gradient_case made = {.scene = scene_create(ATTN_F64, turn)};
        attn_masks *masks = &made.scene.request.masks;
        scene_attention(&made.scene, &n);
        gradient_add_mechanism(&made.scene, turn);
        masks->causal = true;
        masks->padding = scene_coins(&made.scene, 0.8, SHAPE(n.batch, n.kv_len));
        made.wanted = gradient_ask(&made.scene);
        gradient_run running = gradient_run_serial(&made.wanted, NULL);
        attn_tensor *attend = scene_coins(&made.scene, 1, SHAPE(n.q_len, n.kv_len));
        for (size_t at = 0; at < n.q_len * n.kv_len; at++)
            tensor_set(attend, at, at % n.kv_len <= at / n.kv_len + n.kv_len - n.q_len);
        masks->causal = false;
        masks->attend = attend;
        gradient_run pairs = gradient_run_serial(&made.wanted, NULL);
        /* Sums of 600 terms in another order, and what quotients of them make of that. */
        expect_near_gradients(&running, &pairs, 1e4 * DBL_EPSILON, "running sums");
        gradient_run_release(&running);
        gradient_run_release(&pairs);
        gradient_case_release(&made);
    }
}
END_TEST

/* ---- both types, all kernels ---- */

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

static void widen_linear(test_scene *scene, attn_affine *linear)
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
    wide.inputs.past_key = widen(scene, wide.inputs.past_key);
    wide.inputs.past_value = widen(scene, wide.inputs.past_value);
    wide.masks.bias = widen(scene, wide.masks.bias);
    wide.options.alibi_slopes = widen(scene, wide.options.alibi_slopes);
    wide.options.relative_bias.table = widen(scene, wide.options.relative_bias.table);
    wide.options.sinks = widen(scene, wide.options.sinks);
    wide.options.head_scale = widen(scene, wide.options.head_scale);
    attn_rope_side *const sides[] = {&wide.options.rope.query, &wide.options.rope.key};
    for (size_t s = 0; s < COUNT(sides); s++) {
        sides[s]->cos = widen(scene, sides[s]->cos);
        sides[s]->sin = widen(scene, sides[s]->sin);
    }
    attn_affine *const linears[] = {&wide.weights.query, &wide.weights.key,        &wide.weights.value,
                                    &wide.weights.qkv,   &wide.weights.output,     &wide.weights.norm,
                                    &wide.weights.gate,  &wide.weights.query_norm, &wide.weights.key_norm};
    for (size_t l = 0; l < COUNT(linears); l++)
        widen_linear(scene, linears[l]);
    return wide;
}

/*
 * Sums of up to 2 x 131 x 259 terms of mixed signs, through norms that divide by small deviations: relative to the
 * largest number of a gradient, a few thousand roundings.
 */
START_TEST(float32_is_float64_rounded)
{
    const attn_kernel *kernel;
    gradient_case made;
    for (size_t number = 0; gradient_case_at(&made, ATTN_F32, number); number++) {
        attn_request wide = widened(&made.scene);
        attn_gradient_request exact = {&wide, widen(&made.scene, made.wanted.grad_output),
                                       gradient_all_of(&made.wanted)};
        made.wanted.of = exact.of;
        gradient_run reference = gradient_run_serial(&exact, NULL);
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            gradient_run run = gradient_run_serial(&made.wanted, kernel);
            expect_near_gradients(&run, &reference, 2000 * (double)FLT_EPSILON, made.name);
            gradient_run_release(&run);
        }
        gradient_run_release(&reference);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(kernels_agree_in_double)
{
    const attn_kernel *kernel;
    gradient_case made;
    for (size_t number = 0; gradient_case_at(&made, ATTN_F64, number); number++) {
        made.wanted.of = gradient_all_of(&made.wanted);
        gradient_run first = gradient_run_serial(&made.wanted, attn_kernel_at(0));
        for (size_t k = 1; (kernel = attn_kernel_at(k)) != NULL; k++) {
            gradient_run run = gradient_run_serial(&made.wanted, kernel);
            expect_near_gradients(&run, &first, 2000 * DBL_EPSILON, made.name);
            gradient_run_release(&run);
        }
        gradient_run_release(&first);
        gradient_case_release(&made);
    }
}
END_TEST

/* ---- latents ---- */

/* By bits of parts as scene_latents, and 8 a norm before, 16 a cache and a key of its own. */
static void make_latents(gradient_case *made, attn_dtype type, const scene_size *n, size_t parts)
{
    *made = (gradient_case){.scene = scene_create(type, 70 + parts)};
    test_scene *scene = &made->scene;
    attn_request *request = &scene->request;
    scene_layer(scene, n, 6);
    scene_latents(scene, n, 6, parts);
    if (parts & 8) {
        request->options.norm = ATTN_NORM_RMS;
        request->options.norm_position = ATTN_NORM_PRE;
        request->options.norm_eps = 1e-2;
    }
    if (parts & 16)
        scene_past(scene, n, 2);
    else if (n->q_len == n->kv_len)
        request->inputs.key = NULL;
    snprintf(made->name, sizeof made->name, "latents %zu, %zu keys", parts, n->kv_len);
    made->wanted = gradient_ask(scene);
    made->wanted.of = gradient_all_of(&made->wanted);
}

START_TEST(latents_have_the_gradients_of_central_differences)
{
    static const scene_size sizes[] = {{1, 1, 1, 1, 3, 3, 1}, {2, 4, 2, 5, 7, 4, 2}, {2, 2, 2, 6, 6, 3, 2}};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        gradient_case made;
        make_latents(&made, ATTN_F64, &sizes[s], (size_t)_i);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        expect_gradients(&made, &run);
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

/* More tokens than a task cuts. What is asked for alone needs fewer buffers. */
START_TEST(gradients_of_latents_alone_have_the_bytes_of_all)
{
    static const uint64_t alone[] = {OF(QUERY_LATENT_WEIGHT),
                                     OF(QUERY_LATENT_NORM_WEIGHT),
                                     OF(KEY_LATENT_BIAS),
                                     OF(KEY_SHARED_WEIGHT),
                                     OF(KEY_LATENT_NORM_BIAS),
                                     OF(VALUE_WEIGHT),
                                     OF(KEY),
                                     OF(QUERY)};
    const scene_size n = {2, 4, 2, 70, 75, 4, 2};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime shared = attn_pool_runtime(pool, NULL);
    gradient_case made;
    make_latents(&made, ATTN_F32, &n, 7);
    gradient_run all = gradient_run_serial(&made.wanted, NULL);
    for (size_t a = 0; a < COUNT(alone); a++) {
        made.wanted.of = alone[a];
        gradient_run one = gradient_run_on(&made.wanted, &shared);
        expect_same_gradients(&all, &one, made.name);
        gradient_run_release(&one);
    }
    gradient_run_release(&all);
    gradient_case_release(&made);
    attn_pool_destroy(pool);
}
END_TEST

CHECK_MAIN("gradient")
{
    tcase_add_loop_test(tests, latents_have_the_gradients_of_central_differences, 1, 32);
    tcase_add_test(tests, gradients_of_latents_alone_have_the_bytes_of_all);
    const int masks = (int)mask_case_count();
    tcase_add_loop_test(tests, gradients_are_what_central_differences_say, 0, (int)(GRADIENT_CASES / one_in(3)));
    tcase_add_loop_test(tests, gradients_are_right_under_every_mask, 0, 2 * masks);
    tcase_add_test(tests, gradients_of_wide_heads_are_right_by_every_kernel);
    tcase_add_loop_test(tests, what_is_hidden_is_never_read_and_has_no_gradient, 0, masks);
    tcase_add_test(tests, the_gradient_of_a_row_of_scores_sums_to_nothing_and_hidden_scores_have_none);
    tcase_add_test(tests, the_gradient_of_the_scores_follows_from_that_of_the_weights);
    tcase_add_test(tests, a_spoilt_query_reaches_only_the_keys_it_sees);
    tcase_add_test(tests, a_spoilt_key_reaches_only_the_queries_that_see_it);
    tcase_add_test(tests, padding_of_a_layer_reaches_no_weight);
    tcase_add_test(tests, a_query_whose_gradient_is_0_reaches_no_weight);
    tcase_add_test(tests, a_cache_has_the_gradients_of_the_keys_it_stands_for);
    tcase_add_test(tests, running_sums_have_the_gradients_of_all_pairs);
    tcase_add_test(tests, float32_is_float64_rounded);
    tcase_add_test(tests, kernels_agree_in_double);
}

/*
 * test_properties.c: properties of attention for any numbers, through attn_plan_run.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "closeness.h"
#include "mask_cases.h"
#include "scene.h"

static const scene_size medium = {2, 2, 1, 49, 517, 8, 5};

static double weight_at(const test_run *run, size_t at)
{
    return tensor_get(&run->result.step[ATTN_STEP_ATTENTION], at);
}

/* The tensors of a request are read-only to the core; tests change them between runs. */
static attn_tensor *writable(const attn_tensor *tensor)
{
    return (attn_tensor *)(uintptr_t)tensor;
}

START_TEST(rows_sum_to_one)
{
    for (size_t c = 0; mask_case_at(c) != NULL; c++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            test_scene scene = scene_create((attn_dtype)type, c);
            scene_attention(&scene, &medium);
            mask_case_at(c)->apply(&scene, &medium);
            test_run run = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(LSE));
            /* 4 units in the last place of 1 for each key: the interface promises it */
            double allowed = 4 * 2 * unit_roundoff((attn_dtype)type) * (double)medium.kv_len;
            for (size_t row = 0; row < medium.batch * medium.heads * medium.q_len; row++) {
                double sum = 0, lse = tensor_get(&run.result.step[ATTN_STEP_LSE], row);
                for (size_t j = 0; j < medium.kv_len; j++)
                    sum += weight_at(&run, row * medium.kv_len + j);
                if (lse > -HUGE_VAL)
                    ck_assert_msg(fabs(sum - 1) <= allowed, "%s: row %zu sums to %.9g", mask_case_at(c)->name, row,
                                  sum);
                else
                    ck_assert_msg(sum == 0, "%s: row %zu has no key and sums to %.9g", mask_case_at(c)->name, row, sum);
            }
            run_release(&run);
            scene_destroy(&scene);
        }
}
END_TEST

/* ---- hidden keys ---- */

/* Writes value over every key and value position that no query of any head of its key head may attend to. */
static size_t spoil_hidden_keys(test_scene *scene, const scene_size *n, double value)
{
    test_run run = run_kernel(&scene->request, NULL, WANT(MASK));
    const attn_tensor *mask = &run.result.step[ATTN_STEP_MASK];
    size_t spoiled = 0, group = n->heads / n->kv_heads;
    for (size_t head = 0; head < n->batch * n->kv_heads; head++)
        for (size_t j = 0; j < n->kv_len; j++) {
            bool is_seen = false;
            for (size_t row = 0; row < group * n->q_len; row++)
                is_seen |= tensor_get(mask, (head * group * n->q_len + row) * n->kv_len + j) != 0;
            if (is_seen)
                continue;
            spoiled++;
            for (size_t d = 0; d < n->d_k; d++)
                tensor_set(writable(scene->request.inputs.key), (head * n->kv_len + j) * n->d_k + d, value);
            for (size_t d = 0; d < n->d_v; d++)
                tensor_set(writable(scene->request.inputs.value), (head * n->kv_len + j) * n->d_v + d, value);
        }
    run_release(&run);
    return spoiled;
}

START_TEST(hidden_keys_have_no_influence_even_when_they_are_not_numbers)
{
    const double spoils[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, 1e30, 0};
    size_t spoiled = 0;
    for (size_t c = 0; mask_case_at(c) != NULL; c++)
        for (size_t s = c % one_in(5); s < sizeof spoils / sizeof *spoils; s += one_in(5)) {
            test_scene scene = scene_create(c % 2 ? ATTN_F64 : ATTN_F32, c);
            scene_attention(&scene, &medium);
            mask_case_at(c)->apply(&scene, &medium);
            attn_steps steps = scene_every_step(&scene.request) & ~(WANT(K) | WANT(V));
            const attn_kernel *kernel = attn_kernel_at(s % 3) != NULL ? attn_kernel_at(s % 3) : attn_kernel_best();
            test_run before = run_kernel(&scene.request, kernel, steps);
            spoiled += spoil_hidden_keys(&scene, &medium, spoils[s]);
            test_run after = run_kernel(&scene.request, kernel, steps);
            expect_same_steps(&before, &after, steps, mask_case_at(c)->name);
            run_release(&before);
            run_release(&after);
            scene_destroy(&scene);
        }
    ck_assert_uint_gt(spoiled, 1000);
}
END_TEST

/* Rows of output with a number that is not finite must be just those that attend to the spoiled key. */
static void expect_only_attending_rows_spoiled(const scene_size *n, size_t spoiled, const test_run *before,
                                               const test_run *after)
{
    for (size_t row = 0; row < n->batch * n->heads * n->q_len; row++) {
        size_t kv_head = row / n->q_len / (n->heads / n->kv_heads), j = spoiled % n->kv_len;
        bool attends = kv_head == spoiled / n->kv_len &&
                       tensor_get(&before->result.step[ATTN_STEP_MASK], row * n->kv_len + j) != 0;
        for (size_t d = 0; d < n->d_v; d++) {
            double was = tensor_get(&before->result.step[ATTN_STEP_OUTPUT], row * n->d_v + d);
            double is = tensor_get(&after->result.step[ATTN_STEP_OUTPUT], row * n->d_v + d);
            if (attends)
                ck_assert_msg(!isfinite(is), "row %zu attends to the spoiled key", row);
            else
                ck_assert_msg(is == was, "row %zu: %.9g became %.9g", row, was, is);
        }
    }
}

START_TEST(a_value_that_is_not_finite_reaches_the_rows_that_attend_to_it_and_no_other)
{
    const double spoils[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t c = 0; mask_case_at(c) != NULL; c++) {
            test_scene scene = scene_create(c % 2 ? ATTN_F64 : ATTN_F32, c);
            scene_attention(&scene, &medium);
            mask_case_at(c)->apply(&scene, &medium);
            test_run before = run_kernel(&scene.request, kernel, WANT(OUTPUT) | WANT(MASK));
            size_t spoiled = random_below(&scene.random, medium.batch * medium.kv_heads * medium.kv_len);
            for (size_t d = 0; d < medium.d_v; d++)
                tensor_set(writable(scene.request.inputs.value), spoiled * medium.d_v + d, spoils[c % 3]);
            test_run after = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            expect_only_attending_rows_spoiled(&medium, spoiled, &before, &after);
            run_release(&before);
            run_release(&after);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(a_key_of_nan_reaches_the_rows_that_attend_to_it_and_no_other)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t c = 0; mask_case_at(c) != NULL; c++) {
            test_scene scene = scene_create(c % 2 ? ATTN_F64 : ATTN_F32, c);
            scene_attention(&scene, &medium);
            mask_case_at(c)->apply(&scene, &medium);
            test_run before = run_kernel(&scene.request, kernel, WANT(OUTPUT) | WANT(MASK));
            size_t spoiled = random_below(&scene.random, medium.batch * medium.kv_heads * medium.kv_len);
            tensor_set(writable(scene.request.inputs.key), spoiled * medium.d_k + 3, (double)NAN);
            test_run after = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            expect_only_attending_rows_spoiled(&medium, spoiled, &before, &after);
            run_release(&before);
            run_release(&after);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(a_query_of_nan_spoils_its_own_row)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &medium);
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        double was = tensor_get(scene.request.inputs.query, 7 * medium.d_k);
        test_run before = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        tensor_set(writable(scene.request.inputs.query), 7 * medium.d_k, (double)NAN);
        test_run after = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        for (size_t at = 0; at < medium.batch * medium.heads * medium.q_len * medium.d_v; at++) {
            double is = tensor_get(&after.result.step[ATTN_STEP_OUTPUT], at);
            if (at / medium.d_v == 7)
                ck_assert(isnan(is));
            else
                ck_assert(is == tensor_get(&before.result.step[ATTN_STEP_OUTPUT], at));
        }
        tensor_set(writable(scene.request.inputs.query), 7 * medium.d_k, was);
        run_release(&before);
        run_release(&after);
    }
    scene_destroy(&scene);
}
END_TEST

/* In a layer: the padded token's own row of output is lost, those of all other tokens are as without it. */
START_TEST(nan_in_a_padded_token_stays_in_its_own_row_of_a_layer)
{
    const scene_size n = {2, 4, 4, 6, 6, 5, 5};
    test_scene scene = scene_create(ATTN_F32, 2);
    scene_layer(&scene, &n, 20);
    scene.request.inputs.key = NULL;
    scene.request.options.residual = true;
    scene.request.options.norm = ATTN_NORM_LAYER;
    attn_tensor *padding = scene_coins(&scene, 1, SHAPE(2, 6));
    tensor_set(padding, 4, 0);
    scene.request.masks.padding = padding;
    test_run before = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    tensor_set(writable(scene.request.inputs.query), 4 * 20 + 11, (double)NAN);
    test_run after = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    for (size_t at = 0; at < 2 * 6 * 20; at++) {
        double is = tensor_get(&after.result.step[ATTN_STEP_OUTPUT], at);
        if (at / 20 == 4)
            ck_assert(isnan(is));
        else
            ck_assert(is == tensor_get(&before.result.step[ATTN_STEP_OUTPUT], at));
    }
    run_release(&before);
    run_release(&after);
    scene_destroy(&scene);
}
END_TEST

/* ---- invariances ---- */

static void expect_weights_and_output_near(const test_run *a, const test_run *b, double allowed, const char *what)
{
    const attn_step steps[] = {ATTN_STEP_ATTENTION, ATTN_STEP_OUTPUT};
    for (size_t s = 0; s < 2; s++)
        for (size_t at = 0; at < attn_tensor_count(&a->result.step[steps[s]]); at++) {
            double x = tensor_get(&a->result.step[steps[s]], at), y = tensor_get(&b->result.step[steps[s]], at);
            if (!(fabs(x - y) <= allowed))
                ck_abort_msg("%s: %s[%zu] is %.9g and %.9g", what, attn_step_name(steps[s]), at, x, y);
        }
}

START_TEST(a_common_shift_of_the_scores_changes_nothing)
{
    const double shifts[] = {-8, 1, 8, 64};
    for (size_t s = 0; s < 4; s++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            test_scene scene = scene_create((attn_dtype)type, s);
            scene_attention(&scene, &medium);
            test_run before = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(OUTPUT));
            attn_tensor *bias = scene_tensor(&scene, scene.type, SHAPE(1, 1));
            tensor_set(bias, 0, shifts[s]);
            scene.request.masks.bias = bias;
            test_run after = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(OUTPUT));
            /* a shifted score is rounded to u |shift + score|; weights are at most 1, values at most 4 or so */
            double allowed = 8 * unit_roundoff(scene.type) * (8 + fabs(shifts[s]));
            expect_weights_and_output_near(&before, &after, allowed, "shift");
            run_release(&before);
            run_release(&after);
            scene_destroy(&scene);
        }
}
END_TEST

/* New position of key j: a permutation, since 7 and 517 share no factor. */
static size_t permuted(size_t j, size_t kv_len)
{
    return (7 * j + 3) % kv_len;
}

static attn_tensor *permuted_rows(test_scene *scene, const attn_tensor *tensor)
{
    attn_tensor *made = scene_copy(scene, tensor);
    size_t len = tensor->shape[2], width = tensor->shape[3];
    for (size_t head = 0; head < tensor->shape[0] * tensor->shape[1]; head++)
        for (size_t j = 0; j < len; j++)
            for (size_t d = 0; d < width; d++)
                tensor_set(made, (head * len + permuted(j, len)) * width + d,
                           tensor_get(tensor, (head * len + j) * width + d));
    return made;
}

START_TEST(permuted_keys_with_their_values_give_the_same_output)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 4);
        scene_attention(&scene, &medium);
        attn_tensor *padding = scene_coins(&scene, 0.5, SHAPE(medium.batch, medium.kv_len));
        scene.request.masks.padding = padding;
        test_run before = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(OUTPUT));
        scene.request.inputs.key = permuted_rows(&scene, scene.request.inputs.key);
        scene.request.inputs.value = permuted_rows(&scene, scene.request.inputs.value);
        attn_tensor *moved = scene_copy(&scene, padding);
        for (size_t at = 0; at < medium.batch * medium.kv_len; at++)
            tensor_set(moved, at / medium.kv_len * medium.kv_len + permuted(at % medium.kv_len, medium.kv_len),
                       tensor_get(padding, at));
        scene.request.masks.padding = moved;
        test_run after = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(OUTPUT));
        for (size_t at = 0; at < medium.batch * medium.heads * medium.q_len * medium.kv_len; at++) {
            size_t to = at / medium.kv_len * medium.kv_len + permuted(at % medium.kv_len, medium.kv_len);
            /* the sum of the row is added in another order */
            double p = weight_at(&before, at);
            ck_assert_double_le(fabs(p - weight_at(&after, to)), 16 * unit_roundoff(scene.type) * p);
        }
        for (size_t at = 0; at < attn_tensor_count(&before.result.step[ATTN_STEP_OUTPUT]); at++)
            ck_assert_double_le(fabs(tensor_get(&before.result.step[ATTN_STEP_OUTPUT], at) -
                                     tensor_get(&after.result.step[ATTN_STEP_OUTPUT], at)),
                                16 * unit_roundoff(scene.type));
        run_release(&before);
        run_release(&after);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- the same computation said in other words: the same bytes ---- */

/* A view of head h of a (batch, heads, len, width) tensor, copied. */
static attn_tensor *one_head(test_scene *scene, const attn_tensor *tensor, size_t h)
{
    size_t len = tensor->shape[2], width = tensor->shape[3];
    attn_tensor *made = scene_tensor(scene, tensor->dtype, SHAPE(tensor->shape[0], 1, len, width));
    for (size_t at = 0; at < attn_tensor_count(made); at++)
        tensor_set(made, at,
                   tensor_get(tensor, (at / width / len * tensor->shape[1] + h) * len * width + at % (len * width)));
    return made;
}

START_TEST(heads_are_independent_single_heads)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 5);
        scene_attention(&scene, &medium);
        scene.request.masks.causal = true;
        const attn_steps steps = scene_every_step(&scene.request) & ~(WANT(K) | WANT(V) | WANT(CONCAT));
        test_run all = run_kernel(&scene.request, NULL, steps);
        attn_inputs in = scene.request.inputs;
        for (size_t h = 0; h < medium.heads; h++) {
            scene.request.inputs = (attn_inputs){.query = one_head(&scene, in.query, h),
                                                 .key = one_head(&scene, in.key, h / 2),
                                                 .value = one_head(&scene, in.value, h / 2)};
            test_run one = run_kernel(&scene.request, NULL, steps);
            const attn_step same[] = {ATTN_STEP_ATTENTION, ATTN_STEP_SCORES, ATTN_STEP_CONTEXT, ATTN_STEP_OUTPUT};
            for (size_t s = 0; s < 4; s++)
                expect_same_bytes(one_head(&scene, &all.result.step[same[s]], h), &one.result.step[same[s]],
                                  attn_step_name(same[s]));
            run_release(&one);
        }
        run_release(&all);
        scene_destroy(&scene);
    }
}
END_TEST

/* The content of a column of a fused weight: its part and its head. */
static size_t fused_block(attn_qkv_order order, size_t heads, size_t kv_heads, int part, size_t h)
{
    size_t group = heads / kv_heads;
    if (order == ATTN_QKV_STACKED)
        return part == 0 ? h : heads + (part == 1 ? 0 : kv_heads) + h;
    if (order == ATTN_QKV_PER_HEAD)
        return 3 * h + (size_t)part;
    return part == 0 ? h / group * (group + 2) + h % group : h * (group + 2) + group + (part == 2);
}

static void copy_block(const attn_tensor *from, attn_tensor *to, size_t from_block, size_t to_block, size_t width)
{
    size_t rows = from->rank == 2 ? from->shape[0] : 1;
    size_t from_columns = from->shape[from->rank - 1], to_columns = to->shape[to->rank - 1];
    for (size_t f = 0; f < rows; f++)
        for (size_t d = 0; d < width; d++)
            tensor_set(to, f * to_columns + to_block * width + d,
                       tensor_get(from, f * from_columns + from_block * width + d));
}

static void fuse(test_scene *scene, const scene_size *n, size_t d_model, attn_qkv_order order)
{
    attn_weights *w = &scene->request.weights;
    size_t columns = (n->heads + 2 * n->kv_heads) * n->d_k;
    attn_tensor *weight = scene_tensor(scene, scene->type, SHAPE(d_model, columns));
    attn_tensor *bias = scene_tensor(scene, scene->type, SHAPE(columns));
    const attn_affine *parts[] = {&w->query, &w->key, &w->value};
    for (int part = 0; part < 3; part++)
        for (size_t h = 0; h < (part == 0 ? n->heads : n->kv_heads); h++) {
            size_t block = fused_block(order, n->heads, n->kv_heads, part, h);
            copy_block(parts[part]->weight, weight, h, block, n->d_k);
            copy_block(parts[part]->bias, bias, h, block, n->d_k);
        }
    *w = (attn_weights){.qkv = {weight, bias}, .qkv_order = order, .output = w->output};
}

START_TEST(a_fused_weight_is_its_three_parts)
{
    const attn_qkv_order orders[] = {ATTN_QKV_STACKED, ATTN_QKV_PER_HEAD, ATTN_QKV_PER_GROUP};
    for (size_t o = 0; o < 3; o++)
        for (size_t kv_heads = 1; kv_heads <= 4; kv_heads *= 2)
            for (int type = ATTN_F32; type <= ATTN_F64; type++) {
                const scene_size n = {2, 4, kv_heads, 7, 9, 5, 5};
                if (orders[o] == ATTN_QKV_PER_HEAD && kv_heads != 4)
                    continue;
                test_scene scene = scene_create((attn_dtype)type, o);
                scene_layer(&scene, &n, 12);
                attn_steps steps = scene_every_step(&scene.request);
                test_run separate = run_kernel(&scene.request, NULL, steps);
                fuse(&scene, &n, 12, orders[o]);
                test_run fused = run_kernel(&scene.request, NULL, steps);
                for (size_t s = 0; s < ATTN_STEP_COUNT; s++)
                    if (steps >> s & 1)
                        for (size_t at = 0; at < attn_tensor_count(&fused.result.step[s]); at++) {
                            double x = tensor_get(&separate.result.step[s], at);
                            double y = tensor_get(&fused.result.step[s], at);
                            /* the BLAS may add the columns of a wider matrix in another order */
                            ck_assert_msg(x == y || fabs(x - y) <= 512 * unit_roundoff(scene.type) * (1 + fabs(x)),
                                          "%s order %zu", attn_step_name((attn_step)s), o);
                        }
                run_release(&separate);
                run_release(&fused);
                scene_destroy(&scene);
            }
}
END_TEST

/* (d_in, heads * d) as (heads, d_in, d). */
static attn_tensor *per_head(test_scene *scene, const attn_tensor *weight, size_t heads)
{
    size_t d_in = weight->shape[0], d = weight->shape[1] / heads;
    attn_tensor *made = scene_tensor(scene, weight->dtype, SHAPE(heads, d_in, d));
    for (size_t at = 0; at < attn_tensor_count(made); at++)
        tensor_set(made, at, tensor_get(weight, at / d % d_in * heads * d + at / d / d_in * d + at % d));
    return made;
}

/* The last two dimensions swapped, in memory too. */
static attn_tensor *swapped(test_scene *scene, const attn_tensor *weight)
{
    return scene_copy(scene, scene_transposed(scene, weight));
}

static void expect_output_near(const test_run *a, const test_run *b, const char *what)
{
    const attn_tensor *x = &a->result.step[ATTN_STEP_OUTPUT], *y = &b->result.step[ATTN_STEP_OUTPUT];
    for (size_t at = 0; at < attn_tensor_count(x); at++)
        ck_assert_msg(fabs(tensor_get(x, at) - tensor_get(y, at)) <=
                          512 * unit_roundoff(x->dtype) * (1 + fabs(tensor_get(x, at))),
                      "%s: output[%zu] is %.9g and %.9g", what, at, tensor_get(x, at), tensor_get(y, at));
}

/* Layouts may reach the BLAS as other products, which may add in another order: hence not the same bytes. */
START_TEST(weights_in_every_layout_give_the_same_layer)
{
    const scene_size n = {2, 4, 2, 7, 9, 5, 3};
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 6);
        scene_layer(&scene, &n, 12);
        attn_weights *w = &scene.request.weights;
        const attn_weights flat = *w;
        test_run rank_2 = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        w->query.weight = per_head(&scene, flat.query.weight, 4);
        w->key.weight = per_head(&scene, flat.key.weight, 2);
        w->value.weight = per_head(&scene, flat.value.weight, 2);
        scene.request.options.num_heads = scene.request.options.kv_num_heads = 0; /* the weights tell */
        test_run rank_3 = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        expect_output_near(&rank_2, &rank_3, "per head");
        w->layout = ATTN_LAYOUT_OUT_IN;
        w->query.weight = swapped(&scene, w->query.weight);
        w->key.weight = swapped(&scene, w->key.weight);
        w->value.weight = swapped(&scene, w->value.weight);
        w->output.weight = swapped(&scene, flat.output.weight);
        test_run rank_3_out_in = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        expect_output_near(&rank_2, &rank_3_out_in, "per head, out_in");
        w->query.weight = swapped(&scene, flat.query.weight);
        w->key.weight = swapped(&scene, flat.key.weight);
        w->value.weight = swapped(&scene, flat.value.weight);
        scene.request.options.num_heads = 4;
        scene.request.options.kv_num_heads = 2;
        test_run out_in = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        expect_output_near(&rank_2, &out_in, "out_in");
        w->layout = ATTN_LAYOUT_IN_OUT;
        w->query.weight = flat.query.weight;
        w->key.weight = flat.key.weight;
        w->value.weight = flat.value.weight;
        const size_t per_head_output[] = {4, 3, 12};
        attn_tensor output = attn_tensor_view(flat.output.weight->data, flat.output.weight->dtype, 3, per_head_output);
        w->output.weight = &output;
        test_run output_rank_3 = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        expect_output_near(&rank_2, &output_rank_3, "output per head");
        run_release(&rank_2);
        run_release(&rank_3);
        run_release(&rank_3_out_in);
        run_release(&out_in);
        run_release(&output_rank_3);
        scene_destroy(&scene);
    }
}
END_TEST

CHECK_MAIN("properties")
{
    tcase_add_test(tests, rows_sum_to_one);
    tcase_add_test(tests, hidden_keys_have_no_influence_even_when_they_are_not_numbers);
    tcase_add_test(tests, a_value_that_is_not_finite_reaches_the_rows_that_attend_to_it_and_no_other);
    tcase_add_test(tests, a_key_of_nan_reaches_the_rows_that_attend_to_it_and_no_other);
    tcase_add_test(tests, a_query_of_nan_spoils_its_own_row);
    tcase_add_test(tests, nan_in_a_padded_token_stays_in_its_own_row_of_a_layer);
    tcase_add_test(tests, a_common_shift_of_the_scores_changes_nothing);
    tcase_add_test(tests, permuted_keys_with_their_values_give_the_same_output);
    tcase_add_test(tests, heads_are_independent_single_heads);
    tcase_add_test(tests, a_fused_weight_is_its_three_parts);
    tcase_add_test(tests, weights_in_every_layout_give_the_same_layer);
}

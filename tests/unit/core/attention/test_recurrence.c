/*
 * test_recurrence.c: tests core/src/attention/recurrence.c and core/src/request/recurrence.c: linear attention with an update
 * rule. The outputs are compared with the equations of the state, and the map with the triangular system that it solves.
 */
#include "attention/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "closeness.h"
#include "naive_attention.h"
#include "scene.h"

/* Going from double to more is what the reference does on purpose. */
#pragma GCC diagnostic ignored "-Wdouble-promotion"

static const scene_size sizes[] = {
    {1, 1, 1, 1, 1, 1, 1},     {2, 4, 2, 9, 9, 4, 3},   {1, 3, 3, 40, 40, 5, 33},
    {2, 6, 1, 17, 17, 16, 64}, {1, 2, 2, 33, 33, 1, 2},
};
enum { SIZES = sizeof sizes / sizeof *sizes, VARIANTS = 32 };

static bool has_decay(attn_update_rule rule)
{
    return rule == ATTN_RULE_GATED || rule == ATTN_RULE_GATED_DELTA;
}

static bool has_beta(attn_update_rule rule)
{
    return rule == ATTN_RULE_DELTA || rule == ATTN_RULE_GATED_DELTA;
}

static attn_update_rule rule_of(size_t variant)
{
    return (attn_update_rule)(ATTN_RULE_LINEAR + variant % 4);
}

static const attn_tensor *gates(test_scene *scene, const scene_size *n, size_t heads, size_t width, bool is_log)
{
    attn_tensor *x = scene_normal(scene, 1, SHAPE(n->batch, heads, n->kv_len, width));
    for (size_t at = 0; at < attn_tensor_count(x); at++) {
        const double drawn = fabs(tensor_get(x, at));
        tensor_set(x, at, is_log ? -drawn / 4 : 1 / (1 + drawn));
    }
    return x;
}

/* Rank 4. variant: the rule, and by bits 4 a decay a head, 8 one beta for all heads, 16 a state of before. */
static void make(test_scene *scene, const scene_size *n, size_t variant)
{
    attn_request *request = &scene->request;
    const attn_update_rule rule = rule_of(variant);
    scene_attention(scene, n);
    request->options.mechanism =
        (attn_mechanism){.type = ATTN_LINEAR, .is_identity = true, .is_unnormalised = true, .update_rule = rule};
    if (has_decay(rule))
        request->inputs.decay = gates(scene, n, n->kv_heads, variant & 4 ? 1 : n->d_k, true);
    if (has_beta(rule)) { /* keys of length below 1, as models have them: the state does not grow */
        attn_tensor *key = scene_copy(scene, request->inputs.key);
        for (size_t at = 0; at < attn_tensor_count(key); at++)
            tensor_set(key, at, tensor_get(key, at) / sqrt((double)n->d_k + 4));
        request->inputs.key = key;
        request->inputs.beta = gates(scene, n, variant & 8 ? 1 : n->kv_heads, 1, false);
    }
    if (variant & 16)
        request->inputs.past_state = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads, n->d_k, n->d_v));
    request->options.want = scene_every_step(request);
}

/* ---- the reference ---- */

struct reference {
    const attn_request *request;
    const scene_size *n;
    size_t b, h, kv_head;
};

static long double q_of(const struct reference *r, size_t t, size_t f)
{
    return naive_read(r->request->inputs.query, r->b, r->h, t, f);
}

static long double k_of(const struct reference *r, size_t t, size_t f)
{
    return naive_read(r->request->inputs.key, r->b, r->kv_head, t, f);
}

static long double gate_of(const struct reference *r, size_t t, size_t f)
{
    const attn_tensor *decay = r->request->inputs.decay;
    return decay == NULL ? 1 : expl(naive_read(decay, r->b, r->kv_head, t, f));
}

static long double beta_of(const struct reference *r, size_t t)
{
    const attn_tensor *beta = r->request->inputs.beta;
    return beta == NULL ? 1 : naive_read(beta, r->b, r->kv_head, t, 0);
}

static bool is_real(const struct reference *r, size_t t)
{
    const attn_tensor *padding = r->request->masks.padding;
    return padding == NULL || naive_read(padding, 0, 0, r->b, t) != 0;
}

/* One position of the state (d_k, d_v) of the key head, by the equation of its rule. */
static void update(const struct reference *r, size_t t, long double *state)
{
    const size_t d_k = r->n->d_k, d_v = r->n->d_v;
    for (size_t f = 0; f < d_k; f++)
        for (size_t c = 0; c < d_v; c++)
            state[f * d_v + c] *= gate_of(r, t, f);
    for (size_t c = 0; c < d_v; c++) {
        long double known = 0, value = naive_read(r->request->inputs.value, r->b, r->kv_head, t, c);
        for (size_t f = 0; f < d_k; f++)
            known += state[f * d_v + c] * k_of(r, t, f);
        value = r->request->inputs.beta == NULL ? value : beta_of(r, t) * (value - known);
        for (size_t f = 0; f < d_k; f++)
            state[f * d_v + c] += k_of(r, t, f) * value;
    }
}

/* What x asks at position i of what key j left there. */
static long double overlap(const struct reference *r, bool is_query, size_t i, size_t j)
{
    long double sum = 0;
    for (size_t f = 0; f < r->n->d_k; f++) {
        long double kept = 1;
        for (size_t t = j + 1; t <= i; t++)
            kept *= is_real(r, t) ? gate_of(r, t, f) : 1;
        sum += (is_query ? q_of(r, i, f) : k_of(r, i, f)) * kept * k_of(r, j, f);
    }
    return sum;
}

/* Row i of G (I + L)^-1 diag(beta). */
static void solve(const struct reference *r, size_t i, long double *row)
{
    for (size_t j = i + 1; j-- > 0;) {
        row[j] = is_real(r, j) ? overlap(r, true, i, j) : 0;
        for (size_t t = j + 1; t <= i && r->request->inputs.beta != NULL && is_real(r, j); t++)
            if (is_real(r, t))
                row[j] -= row[t] * beta_of(r, t) * overlap(r, false, t, j);
    }
    for (size_t j = 0; j <= i; j++)
        row[j] *= beta_of(r, j);
}

static void expect_near(const test_run *run, attn_step step, size_t at, long double expected, const char *what)
{
    /* Sums are in double, of some hundred terms below some hundred; then one rounding to the type. */
    const attn_tensor *tensor = &run->result.step[step];
    const double u = unit_roundoff(run->plan.compute), got = tensor_get(tensor, at), wanted = (double)expected;
    ck_assert_msg(fabs(got - wanted) <= u * fabs(wanted) * 2 + 1e-12, "%s: %s[%zu] is %.17g, not %.17g", what,
                  attn_step_name(step), at, got, wanted);
}

static void expect_state(const struct reference *r, const test_run *run, double scale, const char *what)
{
    const scene_size *n = r->n;
    const attn_tensor *past = r->request->inputs.past_state;
    long double *state = calloc(n->d_k * n->d_v, sizeof *state);
    for (size_t at = 0; past != NULL && at < n->d_k * n->d_v; at++)
        state[at] = naive_read(past, r->b, r->kv_head, at / n->d_v, at % n->d_v);
    for (size_t t = 0; t < n->kv_len; t++) {
        if (is_real(r, t))
            update(r, t, state);
        for (size_t c = 0; c < n->d_v; c++) {
            long double out = 0;
            for (size_t f = 0; f < n->d_k; f++)
                out += scale * state[f * n->d_v + c] * q_of(r, t, f);
            expect_near(run, ATTN_STEP_CONTEXT, ((r->b * n->heads + r->h) * n->q_len + t) * n->d_v + c, out, what);
        }
    }
    for (size_t at = 0; at < n->d_k * n->d_v; at++)
        expect_near(run, ATTN_STEP_PRESENT_STATE, (r->b * n->kv_heads + r->kv_head) * n->d_k * n->d_v + at, state[at],
                    what);
    free(state);
}

static void expect_map(const struct reference *r, const test_run *run, double scale, const char *what)
{
    const scene_size *n = r->n;
    long double *row = calloc(n->kv_len, sizeof *row);
    for (size_t i = 0; i < n->q_len; i++) {
        memset(row, 0, n->kv_len * sizeof *row);
        solve(r, i, row);
        for (size_t j = 0; j < n->kv_len; j++)
            expect_near(run, ATTN_STEP_ATTENTION, ((r->b * n->heads + r->h) * n->q_len + i) * n->kv_len + j,
                        scale * row[j], what);
    }
    free(row);
}

static void expect_equations(const attn_request *request, const scene_size *n, const test_run *run, const char *what)
{
    const double scale = request->options.has_scale ? request->options.scale : 1 / sqrt((double)n->d_k);
    for (size_t head = 0; head < n->batch * n->heads; head++) {
        const size_t h = head % n->heads;
        const struct reference r = {request, n, head / n->heads, h, h / (n->heads / n->kv_heads)};
        expect_state(&r, run, scale, what);
        expect_map(&r, run, scale, what);
    }
}

/* ---- numbers ---- */

START_TEST(the_equations_hold)
{
    char what[64];
    for (size_t s = 0; s < SIZES; s++) {
        test_scene scene = scene_create(_i % 3 == 0 ? ATTN_F32 : ATTN_F64, 100 * (size_t)_i + s);
        make(&scene, &sizes[s], (size_t)_i);
        scene.request.options.has_scale = _i % 5 == 0;
        scene.request.options.scale = -0.5;
        if (_i % 7 == 1)
            scene.request.masks.padding = scene_coins(&scene, 0.6, SHAPE(sizes[s].batch, sizes[s].kv_len));
        snprintf(what, sizeof what, "variant %d, size %zu", _i, s);
        test_run run = run_kernel(&scene.request, NULL, scene.request.options.want);
        expect_equations(&scene.request, &sizes[s], &run, what);
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* (batch, heads, len, width) as (batch, len, heads * width). */
static const attn_tensor *by_tokens(test_scene *scene, const attn_tensor *x)
{
    if (x == NULL)
        return NULL;
    const size_t heads = x->shape[1], len = x->shape[2], width = x->shape[3];
    attn_tensor *y = scene_tensor(scene, x->dtype, SHAPE(x->shape[0], len, heads * width));
    for (size_t at = 0; at < attn_tensor_count(x); at++) {
        const size_t f = at % width, t = at / width % len, h = at / width / len % heads, b = at / width / len / heads;
        tensor_set(y, ((b * len + t) * heads + h) * width + f, tensor_get(x, at));
    }
    return y;
}

START_TEST(ranks_threads_and_other_steps_change_no_byte)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    for (size_t variant = 0; variant < VARIANTS; variant++) {
        const scene_size *n = &sizes[1 + variant % 3];
        test_scene scene = scene_create(ATTN_F32, variant);
        make(&scene, n, variant);
        attn_request tokens = scene.request;
        attn_inputs *in = &tokens.inputs;
        const attn_tensor **each[] = {&in->query, &in->key, &in->value, &in->decay, &in->beta};
        for (size_t i = 0; i < COUNT(each); i++)
            *each[i] = by_tokens(&scene, *each[i]);
        tokens.options.num_heads = n->heads;
        tokens.options.kv_num_heads = n->kv_heads;
        const attn_runtime shared = attn_pool_runtime(pool, NULL);
        test_run whole = run_kernel(&scene.request, NULL, scene.request.options.want);
        test_run other = run_request(&tokens, &shared);
        expect_same_steps(&whole, &other, scene.request.options.want & ~WANT(OUTPUT), "tokens and threads");
        test_run one = run_kernel(&scene.request, NULL, WANT(ATTENTION_MEAN) | WANT(OUTPUT));
        expect_same_steps(&whole, &one, WANT(ATTENTION_MEAN) | WANT(OUTPUT), "two steps");
        run_release(&one);
        run_release(&other);
        run_release(&whole);
        scene_destroy(&scene);
    }
    attn_pool_destroy(pool);
}
END_TEST

/* Positions from … to of a tensor (batch, heads, len, width). */
static const attn_tensor *positions(test_scene *scene, const attn_tensor *x, size_t from, size_t to)
{
    if (x == NULL)
        return NULL;
    const size_t len = x->shape[2], width = x->shape[3];
    attn_tensor *part = scene_tensor(scene, x->dtype, SHAPE(x->shape[0], x->shape[1], to - from, width));
    for (size_t at = 0; at < attn_tensor_count(part); at++) {
        const size_t row = at / width;
        tensor_set(part, at, tensor_get(x, (row / (to - from) * len + from + row % (to - from)) * width + at % width));
    }
    return part;
}

static attn_request part_of(test_scene *scene, size_t from, size_t to, const attn_tensor *state)
{
    attn_request part = scene->request;
    attn_inputs *in = &part.inputs;
    const attn_tensor **each[] = {&in->query, &in->key, &in->value, &in->decay, &in->beta};
    for (size_t i = 0; i < COUNT(each); i++)
        *each[i] = positions(scene, *each[i], from, to);
    in->past_state = state;
    return part;
}

START_TEST(a_sequence_in_two_requests_ends_in_the_same_state)
{
    const scene_size *n = &sizes[2];
    for (size_t variant = 0; variant < VARIANTS; variant++) {
        test_scene scene = scene_create(ATTN_F64, variant);
        make(&scene, n, variant);
        test_run whole = run_kernel(&scene.request, NULL, WANT(OUTPUT) | WANT(PRESENT_STATE));
        attn_request first = part_of(&scene, 0, 23, scene.request.inputs.past_state);
        test_run before = run_kernel(&first, NULL, WANT(PRESENT_STATE));
        attn_request second = part_of(&scene, 23, n->q_len, &before.result.step[ATTN_STEP_PRESENT_STATE]);
        test_run behind = run_kernel(&second, NULL, WANT(OUTPUT) | WANT(PRESENT_STATE));
        expect_same_bytes(&whole.result.step[ATTN_STEP_PRESENT_STATE], &behind.result.step[ATTN_STEP_PRESENT_STATE],
                          "state");
        const attn_tensor *rest = positions(&scene, &whole.result.step[ATTN_STEP_OUTPUT], 23, n->q_len);
        expect_same_bytes(rest, &behind.result.step[ATTN_STEP_OUTPUT], "output");
        run_release(&behind);
        run_release(&before);
        run_release(&whole);
        scene_destroy(&scene);
    }
}
END_TEST

/* NaN at hidden keys reaches no other number, and queries before any key have none. */
START_TEST(hidden_keys_leave_the_state_as_it_is)
{
    const scene_size *n = &sizes[2];
    for (size_t variant = 0; variant < VARIANTS; variant++) {
        test_scene scene = scene_create(ATTN_F64, variant);
        make(&scene, n, variant);
        attn_tensor *padding = scene_tensor(&scene, ATTN_BOOL, SHAPE(1, n->kv_len));
        for (size_t t = 0; t < n->kv_len; t++)
            tensor_set(padding, t, t >= 3 && t < n->kv_len - 2);
        attn_tensor *key = scene_copy(&scene, scene.request.inputs.key);
        for (size_t head = 0; head < n->kv_heads; head++)
            tensor_set(key, (head * n->kv_len + 1) * n->d_k, (double)NAN);
        attn_request short_one = part_of(&scene, 3, n->kv_len - 2, scene.request.inputs.past_state);
        scene.request.inputs.key = key;
        scene.request.masks.padding = padding;
        test_run whole = run_kernel(&scene.request, NULL, scene.request.options.want);
        test_run rest = run_kernel(&short_one, NULL, WANT(OUTPUT) | WANT(PRESENT_STATE));
        expect_same_bytes(&whole.result.step[ATTN_STEP_PRESENT_STATE], &rest.result.step[ATTN_STEP_PRESENT_STATE],
                          "state");
        expect_same_bytes(positions(&scene, &whole.result.step[ATTN_STEP_OUTPUT], 3, n->kv_len - 2),
                          &rest.result.step[ATTN_STEP_OUTPUT], "output");
        const bool has_past = scene.request.inputs.past_state != NULL;
        ck_assert_uint_eq(whole.result.rows_without_keys, has_past ? 0 : 3 * n->batch * n->heads);
        ck_assert((tensor_get(&whole.result.step[ATTN_STEP_OUTPUT], 0) == 0) == !has_past);
        for (size_t at = 0; at < n->heads * n->q_len * n->kv_len; at++)
            ck_assert(isfinite(tensor_get(&whole.result.step[ATTN_STEP_ATTENTION], at)));
        run_release(&rest);
        run_release(&whole);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(selections_keep_a_part_of_the_map)
{
    static const size_t heads[] = {3, 0}, queries[] = {1, 2, 8};
    test_scene scene = scene_create(ATTN_F64, 6);
    make(&scene, &sizes[1], 3);
    attn_request request = scene.request;
    test_run whole = run_kernel(&request, NULL, WANT(ATTENTION));
    request.options.heads = (attn_selection){.items = heads, .count = 2};
    request.options.queries = (attn_selection){.items = queries, .count = 3};
    request.options.keys = (attn_selection){.first = 4, .count = 5};
    test_run part = run_kernel(&request, NULL, WANT(ATTENTION) | WANT(ATTENTION_MEAN));
    for (size_t at = 0; at < 2 * 2 * 3 * 5; at++) {
        const size_t b = at / 30, h = heads[at / 15 % 2], i = queries[at / 5 % 3], j = 4 + at % 5;
        ck_assert(tensor_get(&part.result.step[ATTN_STEP_ATTENTION], at) ==
                  tensor_get(&whole.result.step[ATTN_STEP_ATTENTION], ((b * 4 + h) * 9 + i) * 9 + j));
    }
    run_release(&part);
    run_release(&whole);
    scene_destroy(&scene);
}
END_TEST

static bool now(void *context)
{
    size_t *looks = context;
    return (*looks)++ > 0;
}

START_TEST(a_cancelled_run_says_so)
{
    static const scene_size large = {1, 1, 1, 600, 600, 64, 64};
    test_scene scene = scene_create(ATTN_F32, 1);
    make(&scene, &large, 3);
    size_t looks = 0;
    attn_plan plan;
    attn_error err = {0};
    attn_result result;
    ck_assert_int_eq(attn_plan_make(&scene.request, &plan, &err), ATTN_OK);
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = now;
    runtime.cancel_context = &looks;
    attn_arena *arena = attn_arena_create(attn_plan_bytes(&plan, 1));
    ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, arena, &result, &err), ATTN_ERR_CANCELLED);
    attn_arena_destroy(arena);
    scene_destroy(&scene);
}
END_TEST

/* ---- refusals ---- */

START_TEST(inputs_that_the_rule_does_not_have_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    const scene_size *n = &sizes[1];
    make(&scene, n, 3 + 16);
    attn_request request = scene.request;
    request.inputs.decay = NULL;
    expect_refusal(&request, ATTN_ERR_FIELD, "inputs.decay", "is missing");
    request = scene.request;
    request.inputs.beta = NULL;
    expect_refusal(&request, ATTN_ERR_FIELD, "inputs.beta", "delta and gated_delta needs it");
    request = scene.request;
    request.options.mechanism.update_rule = ATTN_RULE_GATED;
    expect_refusal(&request, ATTN_ERR_FIELD, "inputs.beta", "belongs to update_rule");
    request.options.mechanism.update_rule = ATTN_RULE_DELTA;
    expect_refusal(&request, ATTN_ERR_FIELD, "inputs.decay", "belongs to update_rule");
    request.inputs.decay = request.inputs.beta = NULL;
    request.options.mechanism.update_rule = ATTN_RULE_NONE;
    expect_refusal(&request, ATTN_ERR_FIELD, "inputs.past_state", "update_rule");
    request.inputs.past_state = NULL;
    request.options.want = WANT(PRESENT_STATE);
    expect_refusal(&request, ATTN_ERR_FIELD, "options.want", "update_rule");
    request = scene.request;
    request.options.mechanism.is_identity = false;
    expect_refusal(&request, ATTN_ERR_FIELD, "options.mechanism.update_rule", "feature_map");
    request = scene.request;
    request.options.mechanism.is_unnormalised = false;
    expect_refusal(&request, ATTN_ERR_FIELD, "options.mechanism.update_rule", "denominator");
    request = scene.request;
    request.inputs.key = scene_normal(&scene, 1, SHAPE(2, 2, 8, 4));
    request.inputs.value = scene_normal(&scene, 1, SHAPE(2, 2, 8, 3));
    expect_refusal(&request, ATTN_ERR_SHAPE, "inputs.key", "a query at every key");
    request = scene.request;
    scene_past(&scene, n, 2);
    request.inputs = scene.request.inputs;
    expect_refusal(&request, ATTN_ERR_FIELD, "inputs.past_key", "past_state");
    scene_destroy(&scene);
}
END_TEST

START_TEST(shapes_that_disagree_are_refused)
{
    static const struct {
        int rank;
        size_t shape[4];
    } decays[] = {{4, {2, 2, 9, 3}}, {4, {2, 4, 9, 4}}, {4, {2, 2, 8, 4}}, {4, {1, 2, 9, 4}}, {3, {2, 9, 8}}},
      betas[] = {{4, {2, 2, 9, 4}}, {4, {2, 4, 9, 1}}, {3, {2, 9, 2}}, {0, {0}}},
      states[] = {{4, {2, 2, 3, 4}}, {4, {2, 4, 4, 3}}, {3, {2, 4, 3}}, {4, {1, 2, 4, 3}}};
    test_scene scene = scene_create(ATTN_F32, 1);
    make(&scene, &sizes[1], 3);
    for (size_t n = 0; n < COUNT(decays); n++) {
        attn_request request = scene.request;
        request.inputs.decay = scene_normal(&scene, 1, decays[n].rank, decays[n].shape);
        expect_refusal(&request, ATTN_ERR_SHAPE, "inputs.decay", "expected [2,2,9,1], or d_k numbers");
    }
    for (size_t n = 0; n < COUNT(betas); n++) {
        attn_request request = scene.request;
        request.inputs.beta = scene_normal(&scene, 1, betas[n].rank, betas[n].shape);
        expect_refusal(&request, ATTN_ERR_SHAPE, "inputs.beta", "expected [2,2,9,1], or one number");
    }
    for (size_t n = 0; n < COUNT(states); n++) {
        attn_request request = scene.request;
        request.inputs.past_state = scene_normal(&scene, 1, states[n].rank, states[n].shape);
        expect_refusal(&request, ATTN_ERR_SHAPE, "inputs.past_state", "2, 2, 4, 3");
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(what_does_not_go_with_a_recurrence_is_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    make(&scene, &sizes[1], 3);
    attn_request request = scene.request;
    request.masks.attend = scene_coins(&scene, 0.5, SHAPE(9, 9));
    expect_refusal(&request, ATTN_ERR_FIELD, "masks.attend", "padding and key_lengths do");
    request = scene.request;
    request.masks.has_window = true;
    expect_refusal(&request, ATTN_ERR_FIELD, "masks.window_left", "padding and key_lengths do");
    request = scene.request;
    request.masks.bias = scene_normal(&scene, 1, SHAPE(9, 9));
    expect_refusal(&request, ATTN_ERR_FIELD, "masks.bias", "softmax");
    request = scene.request;
    request.options.softcap = 2;
    expect_refusal(&request, ATTN_ERR_FIELD, "options.softcap", "softmax");
    request = scene.request;
    request.options.bf16_products = true;
    expect_refusal(&request, ATTN_ERR_FIELD, "options.bf16_products", "softmax");
    request = scene.request;
    request.options.want = WANT(PRESENT_KEY);
    expect_refusal(&request, ATTN_ERR_FIELD, "options.want", "present_state");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("recurrence")
{
    tcase_add_loop_test(tests, the_equations_hold, 0, VARIANTS);
    tcase_add_test(tests, ranks_threads_and_other_steps_change_no_byte);
    tcase_add_test(tests, a_sequence_in_two_requests_ends_in_the_same_state);
    tcase_add_test(tests, hidden_keys_leave_the_state_as_it_is);
    tcase_add_test(tests, selections_keep_a_part_of_the_map);
    tcase_add_test(tests, a_cancelled_run_says_so);
    tcase_add_test(tests, inputs_that_the_rule_does_not_have_are_refused);
    tcase_add_test(tests, shapes_that_disagree_are_refused);
    tcase_add_test(tests, what_does_not_go_with_a_recurrence_is_refused);
}

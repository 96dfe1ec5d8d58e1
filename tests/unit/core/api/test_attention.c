/*
 * test_attention.c: tests core/src/api/attention.c, attention on plain arrays.
 */
#include "attn/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "closeness.h"
#include "naive_attention.h"
#include "scene.h"

enum { ROOM = 1 << 26 };

typedef struct {
    size_t batch, heads, q_len, kv_len, d_k, d_v;
} dimensions;

/* Arrays of one call, and the same as a request for the naive reference. */
typedef struct {
    test_scene scene;
    dimensions shape;
    float *q, *k, *v, *out, *weights;
    uint8_t *mask;
    size_t out_count, weights_count;
} call;

static call call_make(const dimensions *n, bool with_mask)
{
    call c = {.scene = scene_create(ATTN_F32, n->kv_len), .shape = *n};
    scene_attention(&c.scene, &(scene_size){n->batch, n->heads, n->heads, n->q_len, n->kv_len, n->d_k, n->d_v});
    c.q = c.scene.request.inputs.query->data;
    c.k = c.scene.request.inputs.key->data;
    c.v = c.scene.request.inputs.value->data;
    c.out_count = n->batch * n->heads * n->q_len * n->d_v;
    c.weights_count = n->batch * n->heads * n->q_len * n->kv_len;
    c.out = scene_memory(&c.scene, c.out_count * sizeof *c.out);
    c.weights = scene_memory(&c.scene, c.weights_count * sizeof *c.weights);
    if (with_mask) {
        attn_tensor *mask = scene_tensor(&c.scene, ATTN_U8, SHAPE(n->q_len, n->kv_len));
        for (size_t at = 0; at < n->q_len * n->kv_len; at++) /* any number but 0 is a yes */
            tensor_set(mask, at, (double)(random_below(&c.scene.random, 3) * 127));
        c.scene.request.masks.attend = mask;
        c.mask = mask->data;
    }
    return c;
}

static attn_attention_args call_args(const call *c)
{
    const dimensions *n = &c->shape;
    return (attn_attention_args){.batch = n->batch,
                                 .heads = n->heads,
                                 .q_len = n->q_len,
                                 .kv_len = n->kv_len,
                                 .d_k = n->d_k,
                                 .d_v = n->d_v,
                                 .q = c->q,
                                 .k = c->k,
                                 .v = c->v,
                                 .mask = c->mask,
                                 .out = c->out};
}

static attn_status call_run(const call *c, const attn_runtime *runtime, size_t room, float *weights, attn_error *err)
{
    attn_arena *scratch = attn_arena_create(room);
    attn_attention_args args = call_args(c);
    args.weights = weights;
    attn_status status = attn_attention(&args, runtime, scratch, err);
    attn_arena_destroy(scratch);
    return status;
}

static void expect_equation_1(const call *c, const char *kernel)
{
    naive_result naive = naive_attention(&c->scene.request, NULL);
    for (size_t at = 0; at < c->out_count; at++) {
        /* as for the context in closeness.c */
        double bound =
            8 * unit_roundoff(ATTN_F32) * (1 + naive.peak[at / c->shape.d_v]) * naive.terms[ATTN_STEP_CONTEXT][at];
        double off = fabs((double)c->out[at] - naive.step[ATTN_STEP_CONTEXT][at]);
        if (!(off <= bound))
            ck_abort_msg("%s: out[%zu] is off by %g, allowed %g", kernel, at, off, bound);
    }
    for (size_t at = 0; at < c->weights_count; at++) {
        double p = naive.step[ATTN_STEP_ATTENTION][at];
        double bound = 8 * unit_roundoff(ATTN_F32) * (1 + naive.peak[at / c->shape.kv_len]) * p;
        if (!(fabs((double)c->weights[at] - p) <= bound))
            ck_abort_msg("%s: weights[%zu]", kernel, at);
    }
    naive_release(&naive);
}

static const dimensions shapes[] = {
    {1, 1, 1, 1, 1, 1},       {1, 1, 1, 1, 64, 64},    {2, 3, 5, 7, 3, 9},      {1, 2, 47, 13, 17, 16},
    {2, 1, 3, 513, 7, 5},     {1, 1, 97, 511, 16, 3},  {1, 12, 9, 1030, 8, 65}, {3, 2, 48, 48, 80, 128},
    {1, 2, 20, 70, 300, 257}, {1, 1, 3, 70, 576, 300}, {1, 1, 60, 1100, 64, 5}, {1, 1, 60, 600, 5, 128},
};

START_TEST(out_and_weights_meet_equation_1)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int with_mask = 0; with_mask < 2; with_mask++) {
            const attn_kernel *kernel;
            call c = call_make(&shapes[s], with_mask);
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                attn_runtime runtime = attn_runtime_serial(kernel);
                ck_assert_int_eq(call_run(&c, &runtime, ROOM, c.weights, NULL), ATTN_OK);
                expect_equation_1(&c, attn_kernel_name(kernel));
            }
            scene_destroy(&c.scene);
        }
}
END_TEST

START_TEST(out_is_the_same_without_weights)
{
    call c = call_make(&shapes[4], true);
    attn_runtime runtime = attn_runtime_serial(NULL);
    ck_assert_int_eq(call_run(&c, &runtime, ROOM, c.weights, NULL), ATTN_OK);
    float *first = scene_memory(&c.scene, c.out_count * sizeof *first);
    memcpy(first, c.out, c.out_count * sizeof *first);
    memset(c.out, 0xff, c.out_count * sizeof *c.out);
    ck_assert_int_eq(call_run(&c, &runtime, ROOM, NULL, NULL), ATTN_OK);
    ck_assert_mem_eq(first, c.out, c.out_count * sizeof *first);
    scene_destroy(&c.scene);
}
END_TEST

/* Queries of 0 give equal weights and scores of 0: 8 u of the mean is all that the bound leaves to 16384 additions. */
static void expect_means(const call *c, const char *kernel)
{
    for (size_t d = 0; d < c->shape.d_v; d++) {
        double mean = 0;
        for (size_t j = 0; j < c->shape.kv_len; j++)
            mean += (double)c->v[j * c->shape.d_v + d] / (double)c->shape.kv_len;
        for (size_t i = 0; i < c->shape.q_len; i++) {
            double off = fabs((double)c->out[i * c->shape.d_v + d] - mean);
            ck_assert_msg(off <= 8 * unit_roundoff(ATTN_F32) * mean, "%s: out[%zu][%zu] is off by %g of %g", kernel, i,
                          d, off, mean);
        }
    }
}

START_TEST(a_mean_of_many_values_of_one_sign_is_exact_to_a_few_ulp)
{
    static const dimensions few_and_many[] = {{1, 1, 1, 16384, 4, 24}, {1, 1, 13, 16384, 4, 24}};
    for (size_t s = 0; s < 2; s++) {
        const attn_kernel *kernel;
        call c = call_make(&few_and_many[s], false);
        memset(c.q, 0, c.shape.q_len * c.shape.d_k * sizeof *c.q);
        for (size_t at = 0; at < c.shape.kv_len * c.shape.d_v; at++)
            c.v[at] = (float)random_uniform(&c.scene.random);
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            attn_runtime runtime = attn_runtime_serial(kernel);
            ck_assert_int_eq(call_run(&c, &runtime, ROOM, NULL, NULL), ATTN_OK);
            expect_means(&c, attn_kernel_name(kernel));
        }
        scene_destroy(&c.scene);
    }
}
END_TEST

START_TEST(a_query_with_every_key_hidden_gives_zeros)
{
    call c = call_make(&shapes[2], true);
    attn_runtime runtime = attn_runtime_serial(NULL);
    memset(c.mask + 2 * c.shape.kv_len, 0, c.shape.kv_len);
    memset(c.out, 0xff, c.out_count * sizeof *c.out);
    memset(c.weights, 0xff, c.weights_count * sizeof *c.weights);
    ck_assert_int_eq(call_run(&c, &runtime, ROOM, c.weights, NULL), ATTN_OK);
    for (size_t head = 0; head < c.shape.batch * c.shape.heads; head++) {
        for (size_t d = 0; d < c.shape.d_v; d++)
            ck_assert(c.out[(head * c.shape.q_len + 2) * c.shape.d_v + d] == 0);
        for (size_t j = 0; j < c.shape.kv_len; j++)
            ck_assert(c.weights[(head * c.shape.q_len + 2) * c.shape.kv_len + j] == 0);
    }
    scene_destroy(&c.scene);
}
END_TEST

static void expect_untouched(const call *c)
{
    for (size_t at = 0; at < c->out_count; at++)
        ck_assert(c->out[at] == -7);
    for (size_t at = 0; at < c->weights_count; at++)
        ck_assert(c->weights[at] == -7);
}

static void touch(const call *c)
{
    for (size_t at = 0; at < c->out_count; at++)
        c->out[at] = -7;
    for (size_t at = 0; at < c->weights_count; at++)
        c->weights[at] = -7;
}

/* Each dimension in turn has that size. */
static void expect_each_refused(size_t size, attn_status status, const char *part)
{
    call c = call_make(&shapes[2], true);
    const dimensions whole = c.shape;
    attn_runtime runtime = attn_runtime_serial(NULL);
    size_t *const each[] = {&c.shape.batch,  &c.shape.heads, &c.shape.q_len,
                            &c.shape.kv_len, &c.shape.d_k,   &c.shape.d_v};
    touch(&c);
    for (size_t d = 0; d < 6; d++) {
        attn_error err = {0};
        *each[d] = size;
        ck_assert_int_eq(call_run(&c, &runtime, ROOM, c.weights, &err), status);
        ck_assert_int_eq(err.status, status);
        ck_assert(err.message[0] != '\0' && strstr(err.message, part) != NULL);
        c.shape = whole;
    }
    expect_untouched(&c);
    scene_destroy(&c.scene);
}

START_TEST(a_dimension_of_zero_is_refused)
{
    expect_each_refused(0, ATTN_ERR_SHAPE, "at least 1");
}
END_TEST

START_TEST(dimensions_whose_product_does_not_fit_are_refused)
{
    expect_each_refused(SIZE_MAX / 2, ATTN_ERR_TOO_LARGE, "");
}
END_TEST

START_TEST(scratch_too_small_leaves_the_outputs_untouched)
{
    call c = call_make(&shapes[2], true);
    attn_runtime runtime = attn_runtime_serial(NULL);
    size_t room = 0, refused = 0;
    attn_status status;
    touch(&c);
    for (;; room += 8192, refused++) {
        attn_error err = {0};
        status = call_run(&c, &runtime, room, c.weights, &err);
        if (status == ATTN_OK)
            break;
        ck_assert_int_eq(status, ATTN_ERR_NO_MEMORY);
        ck_assert_int_eq(err.status, ATTN_ERR_NO_MEMORY);
        expect_untouched(&c);
        ck_assert_uint_lt(room, ROOM);
    }
    ck_assert_uint_gt(refused, 0);
    expect_equation_1(&c, "least scratch");
    scene_destroy(&c.scene);
}
END_TEST

static bool always(void *context)
{
    (void)context;
    return true;
}

START_TEST(a_cancelled_call_leaves_the_outputs_untouched)
{
    call c = call_make(&shapes[4], false);
    attn_runtime runtime = attn_runtime_serial(NULL);
    attn_error err = {0};
    runtime.is_cancelled = always;
    touch(&c);
    ck_assert_int_eq(call_run(&c, &runtime, ROOM, c.weights, &err), ATTN_ERR_CANCELLED);
    ck_assert_int_eq(err.status, ATTN_ERR_CANCELLED);
    expect_untouched(&c);
    scene_destroy(&c.scene);
}
END_TEST

START_TEST(scratch_is_given_back)
{
    call c = call_make(&shapes[2], false);
    attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *scratch = attn_arena_create(ROOM);
    char *mine = attn_arena_copy_text(scratch, "kept", 4);
    size_t before = attn_arena_bytes(scratch);
    const attn_attention_args args = call_args(&c);
    for (int n = 0; n < 100; n++)
        ck_assert_int_eq(attn_attention(&args, &runtime, scratch, NULL), ATTN_OK);
    ck_assert_uint_eq(attn_arena_bytes(scratch), before);
    ck_assert_str_eq(mine, "kept");
    attn_arena_destroy(scratch);
    scene_destroy(&c.scene);
}
END_TEST

/* ---- the members beside the arrays ---- */

/* The request that says the same as the members of args. */
static void ask_the_plan(test_scene *scene, const attn_attention_args *args)
{
    attn_options *options = &scene->request.options;
    attn_masks *masks = &scene->request.masks;
    options->has_scale = args->scale != 0;
    options->scale = args->scale;
    masks->causal = args->causal;
    masks->has_window = args->has_window;
    masks->window_left = (int64_t)args->window_left;
    masks->window_right = (int64_t)args->window_right;
}

static void expect_same_array(const attn_tensor *step, const void *array, const char *what)
{
    attn_tensor given = attn_tensor_view((void *)(uintptr_t)array, step->dtype, step->rank, step->shape);
    expect_same_bytes(step, &given, what);
}

START_TEST(every_member_means_what_the_plan_means)
{
    static const attn_attention_args members[] = {{.causal = true},
                                                  {.scale = 0.25},
                                                  {.has_window = true, .window_left = 3, .window_right = 1},
                                                  {.causal = true, .has_window = true, .window_left = SIZE_MAX},
                                                  {.compute = ATTN_F64, .causal = true, .scale = -2}};
    const scene_size n = {2, 4, 2, 13, 29, 8, 6};
    for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
        attn_attention_args args = members[m];
        test_scene scene = scene_create(args.compute, m);
        scene_attention(&scene, &n);
        ask_the_plan(&scene, &args);
        if (args.window_left == SIZE_MAX)
            scene.request.masks.window_left = ATTN_WINDOW_OPEN;
        test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT) | WANT(ATTENTION) | WANT(LSE));
        args.batch = n.batch, args.heads = n.heads, args.kv_heads = n.kv_heads;
        args.q_len = n.q_len, args.kv_len = n.kv_len, args.d_k = n.d_k, args.d_v = n.d_v;
        args.q = scene.request.inputs.query->data;
        args.k = scene.request.inputs.key->data;
        args.v = scene.request.inputs.value->data;
        args.out = scene_memory(&scene, n.batch * n.heads * n.q_len * n.d_v * sizeof(double));
        args.weights = scene_memory(&scene, n.batch * n.heads * n.q_len * n.kv_len * sizeof(double));
        args.lse = scene_memory(&scene, n.batch * n.heads * n.q_len * sizeof(double));
        ck_assert_int_eq(attn_attention(&args, NULL, NULL, NULL), ATTN_OK);
        expect_same_array(&run.result.step[ATTN_STEP_OUTPUT], args.out, "out");
        expect_same_array(&run.result.step[ATTN_STEP_ATTENTION], args.weights, "weights");
        expect_same_array(&run.result.step[ATTN_STEP_LSE], args.lse, "lse");
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(members_that_cannot_be_are_refused)
{
    call c = call_make(&shapes[2], false);
    const struct {
        attn_status status;
        const char *words;
        attn_attention_args args;
    } wrong[] = {{ATTN_ERR_VALUE, "scale", {.scale = (double)NAN}},
                 {ATTN_ERR_VALUE, "float32 or float64", {.compute = ATTN_F16}},
                 {ATTN_ERR_SHAPE, "key heads", {.kv_heads = 2}},
                 {ATTN_ERR_VALUE, "range of compute float32", {.scale = 1e300}},
                 {ATTN_ERR_FIELD, "stride", {.q_strides = {.batch = SIZE_MAX}}},
                 {ATTN_ERR_FIELD, "stride of out", {.out_strides = {.batch = SIZE_MAX}}},
                 {ATTN_ERR_FIELD, "stride of out", {.out_strides = {.head = SIZE_MAX / 2 + 1}}},
                 {ATTN_ERR_FIELD, "stride of out", {.out_strides = {.row = SIZE_MAX}}}};
    touch(&c);
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        attn_error err = {0};
        attn_attention_args args = call_args(&c);
        args.scale = wrong[w].args.scale;
        args.compute = wrong[w].args.compute;
        args.kv_heads = wrong[w].args.kv_heads;
        args.q_strides = wrong[w].args.q_strides;
        args.out_strides = wrong[w].args.out_strides;
        ck_assert_int_eq(attn_attention(&args, NULL, NULL, &err), wrong[w].status);
        ck_assert_msg(strstr(err.message, wrong[w].words) != NULL, "%s", err.message);
    }
    expect_untouched(&c);
    scene_destroy(&c.scene);
}
END_TEST

START_TEST(inputs_without_data_are_refused)
{
    call c = call_make(&shapes[2], false);
    touch(&c);
    for (int n = 0; n < 3; n++) {
        attn_error err = {0};
        attn_attention_args args = call_args(&c);
        *(const void **[]){&args.q, &args.k, &args.v}[n] = NULL;
        ck_assert_int_eq(attn_attention(&args, NULL, NULL, &err), ATTN_ERR_FIELD);
        ck_assert_ptr_nonnull(strstr(err.message, "no data"));
    }
    expect_untouched(&c);
    scene_destroy(&c.scene);
}
END_TEST

START_TEST(weights_are_the_same_without_out)
{
    call c = call_make(&shapes[4], true);
    attn_attention_args args = call_args(&c);
    args.weights = c.weights;
    ck_assert_int_eq(attn_attention(&args, NULL, NULL, NULL), ATTN_OK);
    float *first = scene_memory(&c.scene, c.weights_count * sizeof *first);
    memcpy(first, c.weights, c.weights_count * sizeof *first);
    memset(c.weights, 0xff, c.weights_count * sizeof *c.weights);
    args.out = NULL;
    ck_assert_int_eq(attn_attention(&args, NULL, NULL, NULL), ATTN_OK);
    ck_assert_mem_eq(first, c.weights, c.weights_count * sizeof *first);
    scene_destroy(&c.scene);
}
END_TEST

/* Tokens of (q, k, v) one behind the other, as a fused projection gives them; the output token by token, too. */
START_TEST(slices_of_a_fused_array_need_no_copy)
{
    enum { LEN = 21, HEADS = 3, D = 8, ROW = 3 * HEADS * D };
    test_scene scene = scene_create(ATTN_F32, 4);
    const float *fused = scene_normal(&scene, 1, SHAPE(2, LEN, ROW))->data;
    float packed[3][2][HEADS][LEN][D], whole[2][HEADS][LEN][D], out[2][LEN][HEADS][D];
    for (size_t at = 0; at < (size_t)2 * LEN * ROW; at++) {
        const size_t d = at % D, h = at / D % HEADS, role = at / D / HEADS % 3, i = at / ROW % LEN;
        packed[role][at / ROW / LEN][h][i][d] = fused[at];
    }
    attn_attention_args args = {.batch = 2, .heads = HEADS, .q_len = LEN, .kv_len = LEN, .d_k = D, .d_v = D};
    args.q = packed[0], args.k = packed[1], args.v = packed[2], args.out = whole;
    ck_assert_int_eq(attn_attention(&args, NULL, NULL, NULL), ATTN_OK);
    args.q = fused, args.k = fused + HEADS * D, args.v = fused + 2 * HEADS * D, args.out = out;
    args.q_strides = args.k_strides = args.v_strides = (attn_strides){.batch = LEN * ROW, .head = D, .row = ROW};
    args.out_strides = (attn_strides){.batch = LEN * HEADS * D, .head = D, .row = HEADS * D};
    ck_assert_int_eq(attn_attention(&args, NULL, NULL, NULL), ATTN_OK);
    for (size_t row = 0; row < 2 * HEADS * LEN; row++) {
        const size_t b = row / HEADS / LEN, h = row / LEN % HEADS, i = row % LEN;
        ck_assert_mem_eq(out[b][i][h], whole[b][h][i], sizeof out[b][i][h]);
    }
    scene_destroy(&scene);
}
END_TEST

/* ---- sums whose every addition rounds the same way ---- */

/* The bound of docs/accuracy.md, which has its derivation, for a row whose maximum rises in no tile but the first. */
static void expect_bound(const call *c, const char *kernel)
{
    naive_result naive = naive_attention(&c->scene.request, NULL);
    for (size_t at = 0; at < c->out_count; at++) {
        const double bound =
            unit_roundoff(ATTN_F32) * (176 * naive.peak[at / c->shape.d_v] + 105) * naive.terms[ATTN_STEP_CONTEXT][at];
        const double off = fabs((double)c->out[at] - naive.step[ATTN_STEP_CONTEXT][at]);
        if (!(off <= bound))
            ck_abort_msg("%s: out[%zu] is off by %g, allowed %g", kernel, at, off, bound);
    }
    naive_release(&naive);
}

/*
 * A large number and little ones behind it: each is half an ulp of it, or together with those of its sum, so that every
 * addition loses it; with a little more than half, every addition doubles it.
 */
static void fill_lost(float *numbers, size_t count, size_t step, float large, float part)
{
    enum { CHAIN = 64 };
    const float half = part * (nextafterf(large, INFINITY) - large) / 2;
    for (size_t at = 0; at < count; at++)
        numbers[at * step] = at == 0 ? large : at < CHAIN ? half : half / CHAIN;
}

static void run_and_expect_bound(const call *c)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        attn_runtime runtime = attn_runtime_serial(kernel);
        ck_assert_int_eq(call_run(c, &runtime, ROOM, NULL, NULL), ATTN_OK);
        expect_bound(c, attn_kernel_name(kernel));
    }
}

START_TEST(values_that_every_addition_loses_keep_to_the_bound)
{
    static const dimensions few_and_many[] = {{1, 1, 4, 512, 4, 24}, {1, 1, 16, 512, 4, 24}};
    for (size_t s = 0; s < 2; s++) {
        call c = call_make(&few_and_many[s], false);
        memset(c.q, 0, c.shape.q_len * c.shape.d_k * sizeof *c.q);
        for (size_t d = 0; d < c.shape.d_v; d++) /* the odd columns the other way round */
            fill_lost(c.v + d, c.shape.kv_len, c.shape.d_v, 1, d % 2 == 0 ? 1 : 1.01f);
        run_and_expect_bound(&c);
        scene_destroy(&c.scene);
    }
}
END_TEST

START_TEST(scores_that_every_addition_moves_apart_keep_to_the_bound)
{
    static const dimensions wide[] = {
        {1, 1, 16, 2, 64, 2}, {1, 1, 16, 2, 256, 2}, {1, 1, 16, 2, 1024, 2}, {1, 1, 4, 2, 256, 2}};
    for (size_t s = 0; s < sizeof wide / sizeof *wide; s++) {
        call c = call_make(&wide[s], false);
        const size_t d_k = c.shape.d_k;
        const float large = 32 * sqrtf((float)d_k);
        for (size_t at = 0; at < c.shape.q_len * d_k; at++)
            c.q[at] = 1;
        fill_lost(c.k, d_k, 1, large, 1);
        fill_lost(c.k + d_k, d_k, 1, large * 1.1f, 1.01f);
        memcpy(c.v, (float[]){1, 1, 0, -1}, 4 * sizeof *c.v);
        run_and_expect_bound(&c);
        scene_destroy(&c.scene);
    }
}
END_TEST

/* A map of 8 MiB and more is written past the caches. Half of a tile of keys, and a whole tile, are hidden from some rows. */
START_TEST(a_large_map_has_the_bits_of_small_ones)
{
    enum { HEADS = 2, LEN = 1024, D = 3 };
    call c = call_make(&(dimensions){1, HEADS, LEN, LEN, D, D}, true), part = c;
    for (size_t i = 0; i < LEN; i++)
        memset(c.mask + i * LEN + (i < LEN / 2 ? LEN / 4 : LEN), 0, i < LEN / 2 ? LEN - LEN / 4 : 0);
    memset(c.mask, 0, LEN); /* query 0 sees no key */
    part.shape.heads = 1;
    float *alone = scene_memory(&c.scene, (size_t)LEN * LEN * sizeof *alone);
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        attn_runtime runtime = attn_runtime_serial(kernel);
        memset(c.weights, 0xff, c.weights_count * sizeof *c.weights);
        ck_assert_int_eq(call_run(&c, &runtime, ROOM, c.weights, NULL), ATTN_OK);
        for (size_t h = 0; h < HEADS; h++) {
            part.q = c.q + h * LEN * D;
            part.k = c.k + h * LEN * D;
            part.v = c.v + h * LEN * D;
            ck_assert_int_eq(call_run(&part, &runtime, ROOM, alone, NULL), ATTN_OK);
            ck_assert_mem_eq(alone, c.weights + h * LEN * LEN, (size_t)LEN * LEN * sizeof *alone);
        }
    }
    scene_destroy(&c.scene);
}
END_TEST

/* A row without subnormal weights takes a shorter way to its exponentials: a last key of -95 forces the other one. */
START_TEST(a_subnormal_weight_changes_no_other)
{
    enum { QUERIES = 16, KEYS = 40 };
    call c = call_make(&(dimensions){1, 1, QUERIES, KEYS, 1, 1}, false);
    float before[QUERIES * KEYS];
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        attn_runtime runtime = attn_runtime_serial(kernel);
        for (size_t i = 0; i < QUERIES; i++)
            c.q[i] = 1;
        for (size_t j = 0; j < KEYS; j++)
            c.k[j] = -1.7f * (float)j;
        ck_assert_int_eq(call_run(&c, &runtime, ROOM, before, NULL), ATTN_OK);
        c.k[KEYS - 1] = -95;
        ck_assert_int_eq(call_run(&c, &runtime, ROOM, c.weights, NULL), ATTN_OK);
        for (size_t i = 0; i < QUERIES; i++)
            ck_assert_mem_eq(before + i * KEYS, c.weights + i * KEYS, (KEYS - 1) * sizeof *before);
        const double exact = exp(-95.0) * (1 - exp(-1.7));
        ck_assert_double_eq_tol((double)c.weights[KEYS - 1], exact, 2 * 0x1p-149);
    }
    scene_destroy(&c.scene);
}
END_TEST

CHECK_MAIN("attention")
{
    tcase_add_test(tests, out_and_weights_meet_equation_1);
    tcase_add_test(tests, out_is_the_same_without_weights);
    tcase_add_test(tests, a_mean_of_many_values_of_one_sign_is_exact_to_a_few_ulp);
    tcase_add_test(tests, a_query_with_every_key_hidden_gives_zeros);
    tcase_add_test(tests, a_dimension_of_zero_is_refused);
    tcase_add_test(tests, dimensions_whose_product_does_not_fit_are_refused);
    tcase_add_test(tests, scratch_too_small_leaves_the_outputs_untouched);
    tcase_add_test(tests, a_cancelled_call_leaves_the_outputs_untouched);
    tcase_add_test(tests, scratch_is_given_back);
    tcase_add_test(tests, every_member_means_what_the_plan_means);
    tcase_add_test(tests, members_that_cannot_be_are_refused);
    tcase_add_test(tests, inputs_without_data_are_refused);
    tcase_add_test(tests, weights_are_the_same_without_out);
    tcase_add_test(tests, slices_of_a_fused_array_need_no_copy);
    tcase_add_test(tests, values_that_every_addition_loses_keep_to_the_bound);
    tcase_add_test(tests, scores_that_every_addition_moves_apart_keep_to_the_bound);
    tcase_add_test(tests, a_subnormal_weight_changes_no_other);
    tcase_add_test(tests, a_large_map_has_the_bits_of_small_ones);
}

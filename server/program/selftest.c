/* selftest.c: checks that this build computes correctly on this machine. */
#include "program/commands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/attention.h"
#include "service/endpoints.h"

/* Queries of zeros attend to all keys equally. Under a causal mask, the first query attends to the first key alone. */
static const char known_request[] =
    "{\"inputs\":{\"query\":[[0,0],[0,0]],\"key\":[[1,2],[3,4]],\"value\":[[1,10],[3,30]]},"
    "\"masks\":{\"causal\":true},\"options\":{\"return\":[\"output\",\"attention\"]}}";
static const char known_output[] = "\"output\":[[1,10],[2,20]]",
                  known_attention[] = "\"attention\":[[[[1,0],[0.5,0.5]]]]";

static bool answers_as_known(attn_arena *arena, const attn_runtime *runtime, char *message, size_t message_size)
{
    attn_error error = {.status = ATTN_OK};
    struct chunks out = chunks_begin(arena);
    struct call call = {
        .in.body = known_request,
        .in.body_bytes = sizeof known_request - 1,
        .in.body_media = MEDIA_JSON,
        .in.answer_media = MEDIA_JSON,
        .in.limits = {.result_bytes = attn_arena_limit_bytes(arena),
                      .memory_bytes = attn_arena_limit_bytes(arena),
                      .flops = (double)INFINITY},
        .in.runtime = runtime,
        .out = &out,
        .err = &error,
    };
    const attn_status status = attend_attention(&call);
    const char *answer = status == ATTN_OK ? chunks_join(&out) : NULL;
    if (answer != NULL && strstr(answer, known_output) != NULL && strstr(answer, known_attention) != NULL)
        return true;
    snprintf(message, message_size, "self-test: a known request was answered with %.200s",
             answer != NULL ? answer : error.message);
    return false;
}

/* Odd sizes, so that every kind of block and of edge is used. */
enum { LENGTH = 67, WIDTH = 33, CELLS = LENGTH * WIDTH };

/* Fills in numbers between -2 and 2 without a pattern: fractional parts of multiples of the golden ratio. */
static void fill(float *cells, size_t offset)
{
    for (size_t i = 0; i < CELLS; i++)
        cells[i] = (float)(4 * fmod((double)(i + offset) * 0.6180339887498949, 1) - 2);
}

static attn_status attend_with(const attn_kernel *kernel, attn_arena *arena, const float *inputs, float *out,
                               attn_error *err)
{
    const attn_runtime runtime = attn_runtime_serial(kernel);
    return attn_attention(&(attn_attention_args){.batch = 1,
                                                 .heads = 1,
                                                 .q_len = LENGTH,
                                                 .kv_len = LENGTH,
                                                 .d_k = WIDTH,
                                                 .d_v = WIDTH,
                                                 .q = inputs,
                                                 .k = inputs + CELLS,
                                                 .v = inputs + 2 * (size_t)CELLS,
                                                 .out = out},
                          &runtime, arena, err);
}

/*
 * Whether two kernels agree. They may differ by rounding: some units in the last place of numbers below 2, after sums
 * of LENGTH terms.
 */
static bool kernels_agree(attn_arena *arena, const attn_kernel *kernel, char *message, size_t message_size)
{
    static const float tolerance = 1e-5f;
    attn_error error = {.status = ATTN_OK};
    float *inputs = attn_arena_take(arena, 3 * (size_t)CELLS, sizeof *inputs);
    float *out = attn_arena_take(arena, 2 * (size_t)CELLS, sizeof *out);
    if (inputs == NULL || out == NULL) {
        snprintf(message, message_size, "self-test: no memory");
        return false;
    }
    for (size_t i = 0; i < 3; i++)
        fill(inputs + i * CELLS, 7919 * i);
    if (attend_with(kernel, arena, inputs, out, &error) != ATTN_OK ||
        attend_with(attn_kernel_by_name("portable"), arena, inputs, out + CELLS, &error) != ATTN_OK) {
        snprintf(message, message_size, "self-test: %s", error.message);
        return false;
    }
    size_t i = 0;
    while (i < CELLS && fabsf(out[i] - out[CELLS + i]) <= tolerance) /* false for NaN */
        i++;
    if (i == CELLS)
        return true;
    snprintf(message, message_size, "self-test: kernel %s gives %g where the portable one gives %g",
             attn_kernel_name(kernel), (double)out[i], (double)out[CELLS + i]);
    return false;
}

bool selftest_run(const struct executor *executor, size_t memory_bytes, char *message, size_t message_size)
{
    const attn_runtime runtime = executor_runtime(executor);
    attn_arena *arena = attn_arena_create(memory_bytes);
    bool is_sound = false;
    if (arena == NULL)
        snprintf(message, message_size, "self-test: no memory");
    else
        is_sound = answers_as_known(arena, &runtime, message, message_size) &&
                   kernels_agree(arena, runtime.kernel, message, message_size);
    attn_arena_destroy(arena);
    return is_sound;
}

/* reduce.c: decides shape and type of each reduced map, and converts its numbers. */
#include "codec/answer/reduce.h"

#include <math.h>
#include <stdatomic.h>

#include "codec/answer/reduce_map.h"
#include "codec/bytes/pace.h"
#include "codec/tensor/write.h"

enum { TASK_ELEMENTS = 1 << 16, BLOCK = 1024 };

static bool is_wanted_map(const attn_plan *plan, int step)
{
    return plan->want >> step & 1 && attn_step_has_keys((attn_step)step);
}

bool reduce_keeps_top(const struct envelope_reduction *reduction, int step)
{
    return reduction->top_k > 0 && step == ATTN_STEP_ATTENTION;
}

static size_t at_most(size_t wanted, size_t length)
{
    return wanted > 0 && wanted < length ? wanted : length;
}

static attn_tensor shown_tensor(const struct envelope_reduction *reduction, int step, const attn_tensor *whole)
{
    attn_tensor shown = *whole;
    size_t *rows = &shown.shape[shown.rank - 2], *cols = &shown.shape[shown.rank - 1];
    if (reduction->has_pool) {
        *rows = at_most(reduction->pool_rows, *rows);
        *cols = at_most(reduction->pool_cols, *cols);
    }
    if (reduce_keeps_top(reduction, step))
        *cols = at_most(reduction->top_k, *cols);
    if (reduction->dtype != ATTN_DTYPE_COUNT && shown.dtype != ATTN_BOOL)
        shown.dtype = reduction->dtype;
    return attn_tensor_view(NULL, shown.dtype, shown.rank, shown.shape);
}

attn_status reduce_plan(const struct envelope *envelope, const attn_plan *plan, attn_steps steps, bool is_binary,
                        attn_plan *shown, attn_error *err)
{
    const struct envelope_reduction *reduction = &envelope->reduction;
    *shown = *plan;
    shown->want = steps;
    if (reduction->dtype != ATTN_DTYPE_COUNT && !is_binary)
        return attn_fail(
            err, ATTN_ERR_FIELD, "/options/dtype",
            "options.dtype says how the bytes of maps are stored, and this answer is text: ask for format "
            "base64 or for safetensors, or for fewer digits; options.compute is the type of the computation");
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!is_wanted_map(shown, step))
            continue;
        shown->step[step] = shown_tensor(reduction, step, &plan->step[step]);
        shown->step_bytes[step] = attn_tensor_count(&shown->step[step]) * attn_dtype_bytes(shown->step[step].dtype);
    }
    return ATTN_OK;
}

double reduce_bytes(const struct envelope *envelope, const attn_plan *shown, size_t threads)
{
    const struct envelope_reduction *reduction = &envelope->reduction;
    double bytes = 0;
    bool has_dtype = reduction->dtype != ATTN_DTYPE_COUNT;
    if (!reduction->has_pool && reduction->top_k == 0 && !has_dtype)
        return 0;
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!is_wanted_map(shown, step))
            continue;
        double count = (double)attn_tensor_count(&shown->step[step]);
        bool is_smaller = reduction->has_pool || reduce_keeps_top(reduction, step);
        bytes += count * 8 * (is_smaller + has_dtype) + 4 * ATTN_ALIGNMENT;
        if (reduce_keeps_top(reduction, step)) /* bytes of the positions, and of a heap per thread */
            bytes += count * 8 + (double)(threads * shown->step[step].shape[3]) * 16;
    }
    return bytes;
}

/* ---- conversion ---- */

struct conversion {
    const attn_tensor *from, *to;
    size_t count;
    const attn_runtime *runtime;
    atomic_bool has_failed;
};

/* Converts count numbers of dtype, float32 or float64. False when a number is not between 0 and 1. */
static bool to_bytes(uint8_t *to, const void *from, attn_dtype dtype, size_t count)
{
    const attn_tensor view = attn_tensor_view((void *)(uintptr_t)from, dtype, 1, &count);
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        double value = reduce_load(&view, (ptrdiff_t)i) * UINT8_MAX + 0.5;
        bool is_byte = value >= 0 && value < UINT8_MAX + 1;
        fits = fits && is_byte;
        to[i] = is_byte ? (uint8_t)value : 0;
    }
    return fits;
}

static void convert_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    struct conversion *conversion = argument;
    const attn_tensor *from = conversion->from, *to = conversion->to;
    size_t at = index * TASK_ELEMENTS;
    size_t end = conversion->count - at < TASK_ELEMENTS ? conversion->count : at + TASK_ELEMENTS;
    if (pace_is_cancelled(conversion->runtime))
        return;
    for (; at < end; at += BLOCK) {
        double block[BLOCK];
        size_t run = end - at < BLOCK ? end - at : BLOCK;
        char *out = (char *)to->data + at * attn_dtype_bytes(to->dtype);
        tensor_gather(block, from, at, run);
        bool fits = to->dtype == ATTN_U8 ? to_bytes((uint8_t *)out, block, from->dtype, run)
                                         : attn_convert(out, to->dtype, block, from->dtype, run, NULL) == ATTN_OK;
        if (!fits)
            atomic_store(&conversion->has_failed, true);
    }
}

/* Returns false when to cannot hold a number of from. */
static bool convert(const attn_tensor *from, const attn_tensor *to, const attn_runtime *runtime)
{
    struct conversion conversion = {.from = from, .to = to, .count = attn_tensor_count(from), .runtime = runtime};
    atomic_init(&conversion.has_failed, false);
    if (conversion.count > 0)
        runtime->run(runtime->context, (conversion.count - 1) / TASK_ELEMENTS + 1, convert_task, &conversion);
    return !atomic_load(&conversion.has_failed);
}

/* ---- maps, one by one ---- */

static attn_status fail_memory(attn_error *err)
{
    return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory to reduce the maps");
}

/* Takes a tensor of dtype with the shape of shown from the arena. */
static bool take_tensor(attn_arena *arena, attn_dtype dtype, const attn_tensor *shown, attn_tensor *tensor)
{
    void *data = attn_arena_take(arena, attn_tensor_count(shown), attn_dtype_bytes(dtype));
    *tensor = attn_tensor_view(data, dtype, shown->rank, shown->shape);
    return data != NULL;
}

static attn_status reduce_rows(struct envelope_reduction *reduction, struct reduce_map *map, const attn_tensor *shown,
                               const attn_runtime *runtime, attn_arena *arena, attn_error *err)
{
    if (!take_tensor(arena, map->from.dtype, shown, &map->to))
        return fail_memory(err);
    if (reduction->has_pool) {
        reduce_pool(map, reduction->pool_mean, runtime);
        return ATTN_OK;
    }
    if (!take_tensor(arena, ATTN_I64, shown, &reduction->top_indices))
        return fail_memory(err);
    return reduce_top_k(map, &reduction->top_indices, runtime, arena, err);
}

static attn_status convert_map(attn_step step, attn_dtype dtype, attn_tensor *map, const attn_runtime *runtime,
                               attn_arena *arena, attn_error *err)
{
    attn_tensor converted;
    if (!take_tensor(arena, dtype, map, &converted))
        return fail_memory(err);
    if (!convert(map, &converted, runtime))
        return attn_fail(err, ATTN_ERR_VALUE, "/options/dtype",
                         "\"%s\" holds a number that %s cannot: ask for another type, such as float32",
                         attn_step_name(step), attn_dtype_name(dtype));
    *map = converted;
    return ATTN_OK;
}

attn_status reduce_result(struct envelope *envelope, const attn_plan *plan, const attn_plan *shown,
                          const attn_runtime *runtime, attn_arena *arena, attn_result *result, attn_error *err)
{
    struct envelope_reduction *reduction = &envelope->reduction;
    const attn_options *options = &envelope->request.options;
    attn_status status = ATTN_OK;
    for (int step = 0; step < ATTN_STEP_COUNT && status == ATTN_OK; step++) {
        if (!is_wanted_map(shown, step))
            continue;
        struct reduce_map map = {.plan = plan,
                                 .heads = options->heads,
                                 .queries = options->queries,
                                 .keys = options->keys,
                                 .step = (attn_step)step,
                                 .from = result->step[step],
                                 .arena = arena};
        if (reduction->has_pool || reduce_keeps_top(reduction, step)) {
            status = reduce_rows(reduction, &map, &shown->step[step], runtime, arena, err);
            result->step[step] = map.to;
        }
        attn_dtype dtype = shown->step[step].dtype;
        if (status == ATTN_OK && result->step[step].dtype != dtype)
            status = convert_map((attn_step)step, dtype, &result->step[step], runtime, arena, err);
        if (status == ATTN_OK && pace_is_cancelled(runtime))
            status = attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled");
    }
    return status;
}

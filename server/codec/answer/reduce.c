/* reduce.c: the two reductions of a map: fewer rows and columns, or the largest weights of each row; and its shape and type. */
#include "codec/answer/reduce.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>

#include "codec/bytes/pace.h"
#include "codec/tensor/write.h"

/* A map to reduce, and the selection of heads, rows and columns that it has. */
struct reduce_map {
    const attn_plan *plan;
    attn_selection heads, queries, keys; /* the selections; count 0: all */
    attn_step step;
    attn_tensor from, to;    /* the memory of to is taken already */
    const attn_arena *arena; /* its watch is asked while a row is read */
};

/* Loads an element of a map of float32, float64 or bool. */
static inline double reduce_load(const attn_tensor *tensor, ptrdiff_t at)
{
    if (tensor->dtype == ATTN_F32)
        return (double)((const float *)tensor->data)[at];
    return tensor->dtype == ATTN_F64 ? ((const double *)tensor->data)[at] : ((const uint8_t *)tensor->data)[at];
}

static inline void reduce_store(const attn_tensor *tensor, ptrdiff_t at, double value)
{
    if (tensor->dtype == ATTN_F32)
        ((float *)tensor->data)[at] = (float)value;
    else if (tensor->dtype == ATTN_F64)
        ((double *)tensor->data)[at] = value;
    else
        ((uint8_t *)tensor->data)[at] = value != 0;
}

/* The numbers of a row of a float32 map that begins at row; NULL when they do not lie side by side, or are no floats. */
static inline const float *reduce_floats(const attn_tensor *tensor, ptrdiff_t row)
{
    assert(tensor->data != NULL);
    const bool is_plain = tensor->dtype == ATTN_F32 && tensor->stride[tensor->rank - 1] == 1;
    return is_plain ? (const float *)tensor->data + row : NULL;
}

/* ---- pool: each cell is the maximum or the mean of its source cells ---- */

struct pooling {
    const struct reduce_map *map;
    bool is_mean, has_lookup;
    double hidden; /* the value of a cell whose source cells are all hidden */
    const attn_runtime *runtime;
};

/* Views the map as (batch, heads, rows, columns), because attention_mean has no heads. */
static attn_tensor with_heads(const attn_tensor *map)
{
    if (map->rank == 4)
        return *map;
    attn_tensor tensor = *map;
    tensor.rank = 4;
    for (int d = 3; d > 1; d--) {
        tensor.shape[d] = map->shape[d - 1];
        tensor.stride[d] = map->stride[d - 1];
    }
    tensor.shape[1] = 1;
    tensor.stride[1] = 0;
    return tensor;
}

/* Whether the mask of a head allows a key within the span. attn_plan_span has decided all other keys. */
static bool is_allowed(const struct pooling *pooling, size_t b, size_t h, size_t i, size_t j, struct pace *pace)
{
    const attn_plan *plan = pooling->map->plan;
    const attn_axes axes = attn_step_axes((attn_step)pooling->map->step);
    if (!pooling->has_lookup)
        return true;
    if (axes == ATTN_AXES_MAP)
        return attn_plan_allows(plan, b, h, i, j);
    const size_t first = axes == ATTN_AXES_MEAN ? 0 : 2 * h,
                 end = axes == ATTN_AXES_MEAN ? plan->dims.heads : first + 2;
    for (h = first; h < end && !pace_stops(pace, 1); h++) {
        if (attn_plan_allows(plan, b, h, i, j))
            return true;
    }
    return false;
}

/* The sum or the maximum of the cells read so far. */
struct gathered {
    double value;
    size_t count;
};

static void gather_value(struct gathered *gathered, double value, bool is_mean)
{
    if (is_mean)
        gathered->value += value;
    else if (gathered->count == 0 || isnan(value) || value > gathered->value) /* once NaN, nothing is larger */
        gathered->value = value;
    gathered->count++;
}

/* The largest of n floats; NaN if one is NaN. Lanes keep the processor's vectors busy. */
static double largest_of(const float *x, size_t n)
{
    enum { LANES = 16 };
    float most[LANES];
    bool has_nan = false;
    size_t at = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        most[lane] = -INFINITY;
    for (; at + LANES <= n; at += LANES) {
        int odd = 0;
        for (size_t lane = 0; lane < LANES; lane++) {
            most[lane] = x[at + lane] > most[lane] ? x[at + lane] : most[lane];
            odd |= x[at + lane] != x[at + lane];
        }
        has_nan = has_nan || odd != 0;
    }
    for (; at < n; at++) {
        most[0] = x[at] > most[0] ? x[at] : most[0];
        has_nan = has_nan || isnan(x[at]);
    }
    for (size_t lane = 1; lane < LANES; lane++)
        most[0] = most[lane] > most[0] ? most[lane] : most[0];
    return has_nan ? (double)NAN : (double)most[0];
}

/* Gathers n cells that are all allowed. */
static void gather_floats(const struct pooling *pooling, const float *x, size_t n, struct gathered *gathered)
{
    if (n == 0)
        return;
    if (!pooling->is_mean) {
        gather_value(gathered, largest_of(x, n), false);
        return;
    }
    for (size_t at = 0; at < n; at++)
        gathered->value += (double)x[at];
    gathered->count += n;
}

/* Gathers cells [from, to) of one row of the whole map. The row begins at row. */
static void gather_run(const struct pooling *pooling, const attn_tensor *from, const size_t place[3], ptrdiff_t row,
                       size_t first, size_t end, struct pace *pace, struct gathered *gathered)
{
    const struct reduce_map *map = pooling->map;
    size_t b = place[0], h = place[1], i = place[2];
    attn_span span = attn_plan_span(map->plan, b, i);
    const float *floats = reduce_floats(from, row);
    if (floats != NULL && !pooling->has_lookup && attn_selects_all(&map->keys)) {
        const size_t begin = first > span.from ? first : span.from, last = end < span.to ? end : span.to;
        if (!pace_stops(pace, end - first))
            gather_floats(pooling, floats + (begin < last ? begin : 0), begin < last ? last - begin : 0, gathered);
        return;
    }
    for (size_t n = first; n < end && !pace_stops(pace, 1); n++) {
        size_t j = attn_selected(&map->keys, n);
        if (j < span.from || j >= span.to || !is_allowed(pooling, b, h, i, j, pace))
            continue;
        gather_value(gathered, reduce_load(from, row + (ptrdiff_t)n * from->stride[3]), pooling->is_mean);
    }
}

/*
 * The first source index of part index, when length is divided into parts. The product fits size_t, because both
 * factors are dimensions of maps in memory.
 */
static size_t part_start(size_t index, size_t parts, size_t length)
{
    return index * length / parts;
}

static double pool_cell(const struct pooling *pooling, const attn_tensor *from, const attn_tensor *to,
                        const size_t at[4], struct pace *pace)
{
    const struct reduce_map *map = pooling->map;
    size_t rows_end = part_start(at[2] + 1, to->shape[2], from->shape[2]);
    size_t first = part_start(at[3], to->shape[3], from->shape[3]);
    size_t end = part_start(at[3] + 1, to->shape[3], from->shape[3]);
    struct gathered gathered = {0};
    for (size_t r = part_start(at[2], to->shape[2], from->shape[2]); r < rows_end; r++) {
        const size_t place[3] = {at[0], attn_selected(&map->heads, at[1]), attn_selected(&map->queries, r)};
        ptrdiff_t row =
            (ptrdiff_t)at[0] * from->stride[0] + (ptrdiff_t)at[1] * from->stride[1] + (ptrdiff_t)r * from->stride[2];
        gather_run(pooling, from, place, row, first, end, pace, &gathered);
    }
    if (gathered.count == 0)
        return pooling->hidden;
    return pooling->is_mean ? gathered.value / (double)gathered.count : gathered.value;
}

static void pool_row(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct pooling *pooling = argument;
    if (pace_is_cancelled(pooling->runtime))
        return;
    const attn_tensor from = with_heads(&pooling->map->from), to = with_heads(&pooling->map->to);
    size_t heads = to.shape[1], rows = to.shape[2], cols = to.shape[3];
    struct pace pace = pace_begin(pooling->map->arena);
    for (size_t c = 0; c < cols; c++) {
        const size_t at[4] = {index / rows / heads, index / rows % heads, index % rows, c};
        reduce_store(&to, (ptrdiff_t)(index * cols + c), pool_cell(pooling, &from, &to, at, &pace));
    }
}

/* Fills map->to. It stops early when the runtime asks for it. */
static void reduce_pool(const struct reduce_map *map, bool is_mean, const attn_runtime *runtime)
{
    bool is_score = attn_step_values((attn_step)map->step) == ATTN_VALUES_SCORES;
    struct pooling pooling = {.map = map,
                              .is_mean = is_mean,
                              .has_lookup = map->plan->mask.has_lookup,
                              .hidden = is_score ? -(double)INFINITY : 0,
                              .runtime = runtime};
    size_t cols = map->to.shape[map->to.rank - 1], count = attn_tensor_count(&map->to);
    if (count > 0)
        runtime->run(runtime->context, count / cols, pool_row, &pooling);
}

/*
 * ---- top_k: the k largest weights of every row ----
 *
 * A row is read once. A heap holds the best k weights so far, with the worst of them on top. At the end the heap is
 * sorted.
 */

struct candidate {
    double weight;
    size_t column; /* of the map */
};

struct selecting {
    const struct reduce_map *map;
    const attn_tensor *indices;
    struct candidate *heaps; /* k candidates per worker */
    const attn_runtime *runtime;
};

/* NaN sorts first, so that clients notice it. */
static double order_of(struct candidate candidate)
{
    return isnan(candidate.weight) ? (double)INFINITY : candidate.weight;
}

/* Whether a comes later in the answer than b. */
static bool is_worse(struct candidate a, struct candidate b)
{
    double of_a = order_of(a), of_b = order_of(b);
    return of_a != of_b ? of_a < of_b : a.column > b.column;
}

/* Moves heap[0] down to its place among the first count. */
static void sift_down(struct candidate *heap, size_t count)
{
    struct candidate moved = heap[0];
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_worse(heap[child + 1], heap[child]))
            child++;
        if (!is_worse(heap[child], moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void sift_up(struct candidate *heap, size_t at)
{
    struct candidate moved = heap[at];
    for (; at > 0 && is_worse(moved, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moved;
}

static size_t offer(struct candidate *heap, size_t count, size_t k, struct candidate candidate)
{
    if (count < k) {
        heap[count] = candidate;
        sift_up(heap, count);
        return count + 1;
    }
    if (is_worse(heap[0], candidate)) {
        heap[0] = candidate;
        sift_down(heap, k);
    }
    return count;
}

enum { COMPARED = 16 }; /* weights that are compared at once */

/* The first weight from n on that is above most, or NaN; end if there is none. */
static size_t skip_worse(const float *weights, size_t n, size_t end, float most)
{
    for (; n + COMPARED <= end; n += COMPARED) {
        int better = 0;
        for (size_t i = 0; i < COMPARED; i++)
            better |= !(weights[n + i] <= most);
        if (better)
            break;
    }
    while (n < end && weights[n] <= most)
        n++;
    return n;
}

/* Fills the heap with the best weights of the row and returns their number. at: batch item, head, query. */
static size_t select_row(const struct selecting *selecting, const size_t at[3], ptrdiff_t row, struct candidate *heap,
                         size_t k)
{
    const struct reduce_map *map = selecting->map;
    const attn_plan *plan = map->plan;
    size_t count = 0;
    struct pace pace = pace_begin(map->arena);
    const float *weights = reduce_floats(&map->from, row);
    for (size_t n = 0; n < map->from.shape[3] && !pace_stops(&pace, 1); n++) {
        if (weights != NULL && count == k) { /* of equal weights the first is kept, so only larger ones are offered */
            const size_t next = skip_worse(weights, n, map->from.shape[3], (float)heap[0].weight);
            if (next == map->from.shape[3] || pace_stops(&pace, next - n))
                break;
            n = next;
        }
        double weight = reduce_load(&map->from, row + (ptrdiff_t)n * map->from.stride[3]);
        /* A weight above 0 belongs to an allowed key. A weight of 0 may be hidden or just very small. */
        bool is_allowed = weight > 0 || attn_plan_allows(plan, at[0], at[1], at[2], attn_selected(&map->keys, n));
        if (is_allowed)
            count = offer(heap, count, k, (struct candidate){weight, n});
    }
    return count;
}

static void top_k_row(void *argument, size_t index, size_t worker)
{
    const struct selecting *selecting = argument;
    const struct reduce_map *map = selecting->map;
    size_t heads = map->to.shape[1], rows = map->to.shape[2], k = map->to.shape[3];
    struct candidate *heap = selecting->heaps + worker * k;
    if (pace_is_cancelled(selecting->runtime))
        return;
    const size_t b = index / rows / heads, h = index / rows % heads, i = index % rows;
    const size_t at[3] = {b, attn_selected(&map->heads, h), attn_selected(&map->queries, i)};
    const ptrdiff_t *stride = map->from.stride;
    ptrdiff_t row = (ptrdiff_t)b * stride[0] + (ptrdiff_t)h * stride[1] + (ptrdiff_t)i * stride[2];
    size_t count = select_row(selecting, at, row, heap, k);
    int64_t *indices = (int64_t *)selecting->indices->data + index * k;
    for (size_t n = count; n < k; n++) {
        indices[n] = -1;
        reduce_store(&map->to, (ptrdiff_t)(index * k + n), 0);
    }
    while (count-- > 0) { /* the worst is on top, so it goes to the last place */
        indices[count] = (int64_t)attn_selected(&map->keys, heap[0].column);
        reduce_store(&map->to, (ptrdiff_t)(index * k + count), heap[0].weight);
        heap[0] = heap[count];
        sift_down(heap, count);
    }
}

/* The same; indices is an int64 tensor of the shape of map->to. */
static attn_status reduce_top_k(const struct reduce_map *map, const attn_tensor *indices, const attn_runtime *runtime,
                                attn_arena *arena, attn_error *err)
{
    size_t k = map->to.shape[3], count = attn_tensor_count(&map->to);
    struct selecting selecting = {.map = map, .indices = indices, .runtime = runtime};
    selecting.heaps = attn_arena_take(arena, runtime->threads * k, sizeof *selecting.heaps);
    if (selecting.heaps == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory to select weights");
    if (count > 0)
        runtime->run(runtime->context, count / k, top_k_row, &selecting);
    return ATTN_OK;
}

/* ---- shape and type ---- */

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
                                 .heads = attn_step_is_map((attn_step)step) ? options->heads : (attn_selection){0},
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

/*
 * reduce_top_k.c: finds the k largest weights of every row of the attention map.
 *
 * A row is read once. A heap holds the best k weights so far, with the worst of them on top. At the end the heap is
 * sorted.
 */
#include <math.h>

#include "codec/answer/reduce_map.h"
#include "codec/bytes/pace.h"

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

attn_status reduce_top_k(const struct reduce_map *map, const attn_tensor *indices, const attn_runtime *runtime,
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

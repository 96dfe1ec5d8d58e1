/* diagnose.c: findings about a result, for people who debug a model. */
#include "attn/diagnose.h"

#include <assert.h>
#include <math.h>

#include "base/check.h"
#include "base/number.h"
#include "base/parallel.h"
#include "kernel/entries.h"
#include "mask/resolved.h"
#include "request/request.h"

enum { BLOCK = 256 }; /* numbers looked at together */

static const double ONE_KEY = 0.99; /* a row with a larger weight than this attends to one key */

/* Sums over the rows of one head of one batch item. */
struct sums {
    double entropy, first;
    size_t rows, not_finite, on_one_key, underflowing;
};

struct diagnosis {
    const attn_plan *plan;
    const attn_request *request;
    const attn_kernel *kernel;
    const attn_result *result;
    const attn_runtime *runtime;
    struct sums *sums; /* (batch, kept heads) */
};

/* ---- numbers ---- */

/* Zeros are counted before the conversion, because a small double may become 0 as a float. */
static size_t load_block(const double *p, size_t n, float *block)
{
    size_t zeros = 0;
    for (size_t j = 0; j < n; j++) {
        block[j] = (float)p[j];
        zeros += p[j] == 0;
    }
    return zeros;
}

static struct attn_weight_row read_doubles(const attn_kernel *kernel, const double *p, size_t count)
{
    struct attn_weight_row row = {0}, part;
    float block[BLOCK];
    for (size_t from = 0; from < count; from += BLOCK) {
        const size_t n = count - from < BLOCK ? count - from : BLOCK;
        row.zeros += load_block(p + from, n, block);
        kernel->f32->weigh_row(block, n, &part);
        row.sum += part.sum;
        row.moment += part.moment;
        row.largest = part.largest > row.largest ? part.largest : row.largest;
    }
    return row;
}

static struct attn_weight_row read_row(const struct diagnosis *run, size_t first, size_t count)
{
    const attn_tensor *map = &run->result->step[ATTN_STEP_ATTENTION];
    struct attn_weight_row row;
    if (map->dtype != ATTN_F32)
        return read_doubles(run->kernel, (const double *)map->data + first, count);
    run->kernel->f32->weigh_row((const float *)map->data + first, count, &row);
    return row;
}

/* ---- rows of the weights ---- */

static size_t allowed_keys(const attn_plan *plan, size_t b, size_t h, size_t i)
{
    const attn_mask *mask = attn_mask_of(plan);
    const attn_span span = attn_mask_span(mask, b, i);
    if (!attn_mask_has_lookup(mask))
        return span.to - span.from;
    uint8_t allow[BLOCK];
    size_t count = 0;
    for (size_t from = span.from; from < span.to; from += BLOCK) {
        const size_t to = span.to - from < BLOCK ? span.to : from + BLOCK;
        (void)attn_mask_row(mask, plan->compute, b, h, i, span, from, to, allow);
        for (size_t j = 0; j < to - from; j++)
            count += allow[j] != 0;
    }
    return count;
}

/* The sink has the remaining weight, and contributes its term to the entropy. */
static double entropy_of(const struct attn_weight_row *row, bool has_sink)
{
    const double sink = has_sink ? 1 - (double)row->sum : 0;
    return -(double)row->moment - (sink > 0 ? sink * log(sink) : 0);
}

static void add_row(const struct diagnosis *run, size_t b, size_t h, size_t i, size_t first, struct sums *sums)
{
    const size_t kv_len = run->plan->dims.kv_len;
    const bool has_sink = run->request->options.sinks != NULL;
    const struct attn_weight_row row = read_row(run, first, kv_len);
    const bool is_all_sink = has_sink && row.sum == 0 && allowed_keys(run->plan, b, h, i) > 0;
    if (!isfinite(row.sum)) {
        sums->not_finite++;
        return;
    }
    if (row.sum <= 0 && !is_all_sink) /* no key */
        return;
    const struct attn_weight_row start = read_row(run, first, 1);
    sums->rows++;
    sums->first += (double)start.sum;
    sums->entropy += entropy_of(&row, has_sink);
    sums->on_one_key += (double)row.largest > ONE_KEY && row.zeros < kv_len - 1;
    sums->underflowing += row.zeros > 0 && kv_len - row.zeros < allowed_keys(run->plan, b, h, i);
}

static void map_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct diagnosis *run = argument;
    const attn_options *options = &run->request->options;
    const size_t heads = run->plan->selected_heads, queries = run->plan->selected_queries;
    const size_t b = index / heads, h = attn_selected(&options->heads, index % heads);
    const size_t kv_len = run->plan->dims.kv_len;
    struct attn_pace pace = attn_pace_begin(run->runtime);
    for (size_t slot = 0; slot < queries && !attn_pace_stops(&pace, kv_len); slot++)
        add_row(run, b, h, attn_selected(&options->queries, slot), (index * queries + slot) * kv_len,
                &run->sums[index]);
}

/* Rows without keys have entropy 0 and are not counted. The caller makes sure that all of them are listed. */
static void add_entropies(const struct diagnosis *run)
{
    const attn_tensor *entropy = &run->result->step[ATTN_STEP_ENTROPY];
    const attn_dims *d = &run->plan->dims;
    struct attn_pace pace = attn_pace_begin(run->runtime);
    for (size_t row = 0; row < d->batch * d->heads * d->q_len && !attn_pace_stops(&pace, 1); row++) {
        const size_t head = row / d->q_len;
        struct sums *sums = &run->sums[head];
        const ptrdiff_t at = (ptrdiff_t)(head / d->heads) * entropy->stride[0] +
                             (ptrdiff_t)(head % d->heads) * entropy->stride[1] +
                             (ptrdiff_t)(row % d->q_len) * entropy->stride[2];
        const double x = attn_number_at(entropy->data, entropy->dtype, at);
        sums->entropy += isfinite(x) ? x : 0;
        sums->rows += isfinite(x) ? 1 : 0;
        sums->not_finite += isfinite(x) ? 0 : 1;
    }
    for (size_t n = 0; n < run->result->empty_rows_listed; n++)
        run->sums[run->result->empty_rows[n].b * d->heads + run->result->empty_rows[n].h].rows--;
}

/* Without rows the mean is 0, or NaN if rows exist but none is finite. */
static double mean_of(double sum, const struct sums *sums)
{
    if (sums->rows > 0)
        return sum / (double)sums->rows;
    return sums->not_finite > 0 ? (double)NAN : 0;
}

/* Means over the batch and the rows, head by head. */
static attn_status add_up(const struct diagnosis *run, size_t heads, bool has_map, attn_arena *arena,
                          attn_findings *findings)
{
    double *entropy = attn_arena_take(arena, heads, sizeof *entropy),
           *first = attn_arena_take(arena, heads, sizeof *first);
    if (entropy == NULL || first == NULL)
        return ATTN_ERR_NO_MEMORY;
    for (size_t h = 0; h < heads; h++) {
        struct sums all = {0};
        for (size_t b = 0; b < run->plan->dims.batch; b++) {
            const struct sums *one = &run->sums[b * heads + h];
            all.entropy += one->entropy;
            all.first += one->first;
            all.rows += one->rows;
            all.not_finite += one->not_finite;
            findings->rows_on_one_key += one->on_one_key;
            findings->rows_underflowing += one->underflowing;
        }
        entropy[h] = mean_of(all.entropy, &all);
        first[h] = mean_of(all.first, &all);
        findings->rows_not_finite += all.not_finite;
    }
    findings->heads = heads;
    findings->entropy = entropy;
    findings->first_key_share = has_map ? first : NULL;
    findings->has_rows = has_map;
    return ATTN_OK;
}

/* The weights of feature maps, and given weights, need not be a distribution: they are skipped. */
static attn_status find_rows(struct diagnosis *run, attn_arena *arena, attn_findings *findings)
{
    const attn_plan *plan = run->plan;
    const bool has_map =
        attn_wants(&plan->request.options, ATTN_STEP_ATTENTION) && attn_selects_all(&run->request->options.keys);
    const bool has_entropy = attn_wants(&plan->request.options, ATTN_STEP_ENTROPY) &&
                             run->result->empty_rows_listed == run->result->rows_without_keys;
    if (run->request->options.mechanism.type != ATTN_SOFTMAX || run->request->inputs.attention != NULL ||
        (!has_map && !has_entropy))
        return ATTN_OK;
    assert(!has_map || attn_tensor_is_contiguous(&run->result->step[ATTN_STEP_ATTENTION]));
    const size_t heads = has_map ? plan->selected_heads : plan->dims.heads, tasks = plan->dims.batch * heads;
    run->sums = attn_arena_take_zeroed(arena, tasks, sizeof *run->sums);
    if (run->sums == NULL)
        return ATTN_ERR_NO_MEMORY;
    if (has_map)
        run->runtime->run(run->runtime->context, tasks, map_task, run);
    else
        add_entropies(run);
    return add_up(run, heads, has_map, arena, findings);
}

/* ---- numbers that are not finite ---- */

/* x - x is 0 for a finite number and NaN for any other. */
static size_t not_finite_of_block(const attn_tensor *tensor, ptrdiff_t at, size_t count, ptrdiff_t stride)
{
    size_t found = 0;
    if (tensor->dtype == ATTN_F32) {
        const float *x = (const float *)tensor->data + at;
        for (size_t n = 0; n < count; n++)
            found += !(x[(ptrdiff_t)n * stride] - x[(ptrdiff_t)n * stride] == 0);
    } else if (tensor->dtype != ATTN_F64) {
        for (size_t n = 0; n < count; n++) {
            const double x = attn_number_at(tensor->data, tensor->dtype, at + (ptrdiff_t)n * stride);
            found += !(x - x == 0);
        }
    } else {
        const double *x = (const double *)tensor->data + at;
        for (size_t n = 0; n < count; n++)
            found += !(x[(ptrdiff_t)n * stride] - x[(ptrdiff_t)n * stride] == 0);
    }
    return found;
}

static size_t not_finite_of_run(const attn_tensor *tensor, ptrdiff_t at, size_t count, ptrdiff_t stride,
                                struct attn_pace *pace)
{
    size_t found = 0;
    for (size_t from = 0; from < count && !attn_pace_stops(pace, BLOCK); from += BLOCK)
        found += not_finite_of_block(tensor, at + (ptrdiff_t)from * stride, count - from < BLOCK ? count - from : BLOCK,
                                     stride);
    return found;
}

static size_t not_finite(const attn_tensor *tensor, const attn_runtime *runtime)
{
    struct attn_pace pace = attn_pace_begin(runtime);
    const size_t count = attn_tensor_count(tensor);
    if (count == 0)
        return 0;
    if (attn_tensor_is_contiguous(tensor))
        return not_finite_of_run(tensor, 0, count, 1, &pace);
    const int last = tensor->rank - 1;
    size_t found = 0;
    for (size_t row = 0; row < count / tensor->shape[last]; row++) {
        ptrdiff_t at = 0;
        size_t rest = row;
        for (int axis = last - 1; axis >= 0; axis--) {
            at += (ptrdiff_t)(rest % tensor->shape[axis]) * tensor->stride[axis];
            rest /= tensor->shape[axis];
        }
        found += not_finite_of_run(tensor, at, tensor->shape[last], tensor->stride[last], &pace);
    }
    return found;
}

static void name_not_finite(const struct diagnosis *run, const char *field, const attn_tensor *tensor,
                            attn_findings *findings)
{
    const size_t found = tensor == NULL ? 0 : not_finite(tensor, run->runtime);
    if (found == 0)
        return;
    assert(findings->not_finite_fields < ATTN_FINDINGS_FIELDS);
    findings->not_finite[findings->not_finite_fields++] = (attn_field_count){.field = field, .count = found};
}

static void find_not_finite(const struct diagnosis *run, attn_findings *findings)
{
    /* Weights, each of which has its bias behind it. */
    static const attn_gradient affines[] = {ATTN_GRADIENT_QUERY_WEIGHT,
                                            ATTN_GRADIENT_KEY_WEIGHT,
                                            ATTN_GRADIENT_VALUE_WEIGHT,
                                            ATTN_GRADIENT_QKV_WEIGHT,
                                            ATTN_GRADIENT_GATE_WEIGHT,
                                            ATTN_GRADIENT_OUTPUT_WEIGHT,
                                            ATTN_GRADIENT_NORM_WEIGHT,
                                            ATTN_GRADIENT_QUERY_NORM_WEIGHT,
                                            ATTN_GRADIENT_KEY_NORM_WEIGHT,
                                            ATTN_GRADIENT_FEED_FORWARD_UP_WEIGHT,
                                            ATTN_GRADIENT_FEED_FORWARD_GATE_WEIGHT,
                                            ATTN_GRADIENT_FEED_FORWARD_DOWN_WEIGHT,
                                            ATTN_GRADIENT_FEED_FORWARD_NORM_WEIGHT};
    const attn_inputs *inputs = &run->request->inputs;
    if (attn_wants(&run->request->options, ATTN_STEP_OUTPUT))
        name_not_finite(run, "output", &run->result->step[ATTN_STEP_OUTPUT], findings);
    if (findings->not_finite_fields == 0 && findings->rows_not_finite == 0)
        return;
    name_not_finite(run, "inputs.query", inputs->query, findings);
    name_not_finite(run, "inputs.key", inputs->key, findings);
    name_not_finite(run, "inputs.value", inputs->value, findings);
    name_not_finite(run, "inputs.past_key", inputs->past_key, findings);
    name_not_finite(run, "inputs.past_value", inputs->past_value, findings);
    name_not_finite(run, "inputs.scores", inputs->scores, findings);
    name_not_finite(run, "inputs.attention", inputs->attention, findings);
    name_not_finite(run, "inputs.decay", inputs->decay, findings);
    name_not_finite(run, "inputs.beta", inputs->beta, findings);
    name_not_finite(run, "inputs.past_state", inputs->past_state, findings);
    for (size_t n = 0; n < 2 * (sizeof affines / sizeof *affines); n++) {
        const attn_gradient one = (attn_gradient)(affines[n / 2] + n % 2);
        name_not_finite(run, attn_gradient_name(one), attn_gradient_subject(run->request, one), findings);
    }
}

attn_status attn_diagnose(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                          attn_arena *arena, attn_result *result, attn_error *err)
{
    struct attn_bound bound;
    attn_status status = attn_bind(plan, bindings, &bound, err);
    if (status != ATTN_OK)
        return status;
    struct diagnosis run = {.plan = &bound.plan,
                            .request = &bound.plan.request,
                            .kernel = runtime->kernel,
                            .result = result,
                            .runtime = runtime};
    attn_findings findings = {0};
    status = find_rows(&run, arena, &findings);
    if (status != ATTN_OK)
        return attn_fail_no_memory(err);
    find_not_finite(&run, &findings);
    if (attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    result->findings = findings;
    return ATTN_OK;
}

/*
 * attribution.c: what the embedding, each head and each feed-forward network add to the scores of given words. While the
 * blocks run, a tape keeps what they gave. Behind the head, directions go back through them (attn/model.h).
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "attn/model.h"
#include "base/array.h"
#include "service/run/model/item.h"

static const struct model_stack *last_stack(const struct model_job *job)
{
    return &job->version->model.stacks[job->last_stack];
}

static struct model_tape *tape_of(const struct model_job *job, const struct model_block *block)
{
    return &job->attribution.tapes[2 * block->layer + (block->is_cross ? 1 : 0)];
}

static size_t heads_width(const struct model_block *block)
{
    return block->facts.dims.heads * block->facts.dims.d_v;
}

static bool has_network(const struct model_block *block)
{
    return block->facts.dims.d_ff > 0 || block->facts.dims.experts > 0;
}

/* ---- the plan ---- */

/* (layers, batch, heads, queries, words) and (layers, batch, queries, words), and the latter without layers. */
static void add_outputs(struct model_job *job)
{
    struct model_attribution *own = &job->attribution;
    const struct model_part *part = &job->parts[job->last_stack];
    const attn_selection *heads = &part->shown->heads;
    const attn_dtype compute = model_job_compute(job);
    const size_t layers = part->layer_count, batch = job->request->inputs.batch, words = job->given.count,
                 queries = model_head_rows(job, part->longest_queries);
    const size_t of_heads[] = {layers, batch,
                               attn_selects_all(heads) ? last_stack(job)->blocks[0].facts.dims.heads : heads->count,
                               queries, words};
    const size_t of_layers[] = {layers, batch, queries, words};
    model_add_output(job, &own->heads, compute, 5, of_heads, "attribution.heads");
    if (job->last_stack == 1)
        model_add_output(job, &own->cross_heads, compute, 5, of_heads, "attribution.cross_heads");
    model_add_output(job, &own->feed_forward, compute, 4, of_layers, "attribution.feed_forward");
    model_add_output(job, &own->embedding, compute, 3, of_layers + 1, "attribution.embedding");
    model_add_output(job, &own->bias, compute, 3, of_layers + 1, "attribution.bias");
}

bool model_attribution_plan(struct model_job *job)
{
    const struct checkpoint_model *model = &job->version->model;
    if (!model_job_wants(job, MODEL_ATTRIBUTION))
        return true;
    if (model_head_reads_one(job) || model->head.is_of_classes)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                            "\"attribution\" is of words, and %.80s ends in a head of classes", model->architecture);
    add_outputs(job);
    return !outcome_has_failed(&job->outcome);
}

/* The tapes, and for a block of tokens its directions at three places and their sums. */
double model_attribution_bytes(const struct model_job *job)
{
    const struct model_stack *stack = last_stack(job);
    const double rows = (double)model_head_rows(job, job->parts[job->last_stack].longest_queries),
                 element = (double)attn_dtype_bytes(model_job_compute(job)), width = (double)model_width(stack);
    double kept = rows * (width * element + sizeof(double)) + 8 * (double)job->parts[job->last_stack].longest_queries,
           most = width;
    if (job->attribution.bias == NULL)
        return 0;
    for (size_t i = 0; i < stack->block_count; i++) {
        const double of_heads = (double)heads_width(&stack->blocks[i]);
        kept += rows * ((of_heads + width) * element + 3 * sizeof(double)) + 8 * ATTN_ALIGNMENT;
        most = of_heads > most ? of_heads : most;
    }
    const double pairs = HEAD_ROWS * (double)job->given.count;
    return kept + (pairs + HEAD_ROWS) * 6 * most * element + pairs * (most + 4) * sizeof(double) +
           model_product_bytes(job, most) + (1 << 16);
}

double model_attribution_flops(const struct model_job *job)
{
    const struct model_stack *stack = last_stack(job);
    const double pairs = (double)job->request->inputs.batch * (double)job->given.count *
                         (double)model_head_rows(job, job->parts[job->last_stack].longest_queries),
                 width = (double)model_width(stack);
    double each = 2 * width * width;
    for (size_t i = 0; i < stack->block_count; i++)
        each += 2 * width * (double)heads_width(&stack->blocks[i]) + 32 * width;
    return job->attribution.bias != NULL ? pairs * each : 0;
}

/* ---- a block ---- */

/* What the output projection reads. */
static attn_step heads_step(const attn_request *request)
{
    return request->weights.gate.weight != NULL ? ATTN_STEP_GATED : ATTN_STEP_CONCAT;
}

static attn_token_norm norm_of(attn_norm_type type, double eps, const attn_affine *weights)
{
    return (attn_token_norm){.type = type, .eps = eps, .weights = *weights};
}

/* Of what the attention adds; behind the residual of the attention, and of the network. */
static attn_token_norm branch_norm(const attn_request *request)
{
    return norm_of(request->options.branch_norm, request->options.branch_norm_eps, &request->weights.branch_norm);
}

static attn_token_norm attention_norm(const attn_request *request)
{
    const attn_options *options = &request->options;
    return norm_of(options->norm_position == ATTN_NORM_POST ? options->norm : ATTN_NORM_NONE, options->norm_eps,
                   &request->weights.norm);
}

static attn_token_norm output_norm(const attn_request *request)
{
    const attn_feed_forward_options *options = &request->options.feed_forward;
    return norm_of(options->position == ATTN_NORM_POST ? options->norm : ATTN_NORM_NONE, options->norm_eps,
                   &request->weights.feed_forward.norm);
}

/* ---- the tapes ---- */

bool model_attribution_reads(const struct model_block_run *run)
{
    return run->job->attribution.bias != NULL && run->part->stack == run->job->last_stack;
}

attn_steps model_attribution_steps(const struct model_block_run *run)
{
    const attn_request *request = &run->envelope.request;
    attn_steps steps = ATTN_STEP_BIT(heads_step(request));
    if (!model_attribution_reads(run))
        return 0;
    if (branch_norm(request).type != ATTN_NORM_NONE)
        steps |= ATTN_STEP_BIT(ATTN_STEP_PROJECTED);
    if (attention_norm(request).type != ATTN_NORM_NONE)
        steps |= ATTN_STEP_BIT(ATTN_STEP_RESIDUAL);
    if (has_network(run->block) && output_norm(request).type != ATTN_NORM_NONE)
        steps |= ATTN_STEP_BIT(ATTN_STEP_ATTENTION_OUTPUT);
    return steps;
}

/* The selected rows of (…, tokens, width), contiguous. */
static void copy_rows(const struct model_job *job, const attn_tensor *from, char *to)
{
    const struct model_attribution *own = &job->attribution;
    const size_t tokens = from->shape[from->rank - 2],
                 bytes = from->shape[from->rank - 1] * attn_dtype_bytes(from->dtype);
    for (size_t token = 0; token < tokens; token++)
        if (own->slots[token] != SIZE_MAX)
            memcpy(to + own->slots[token] * bytes, (const char *)from->data + token * bytes, bytes);
}

static bool take_tapes(struct model_job *job)
{
    struct model_attribution *own = &job->attribution;
    const struct model_stack *stack = last_stack(job);
    const size_t element = attn_dtype_bytes(model_job_compute(job)), width = model_width(stack);
    own->embedded = outcome_take(&job->outcome, own->rows * width, element);
    own->factors = outcome_take(&job->outcome, own->rows, sizeof *own->factors);
    own->tapes = outcome_take_zeroed(&job->outcome, 2 * stack->layers, sizeof *own->tapes);
    for (size_t i = 0; i < stack->block_count && !outcome_has_failed(&job->outcome); i++) {
        const struct model_block *block = &stack->blocks[i];
        struct model_tape *tape = tape_of(job, block);
        double **const factors[] = {&tape->branch, &tape->attention, &tape->output};
        for (size_t norm = 0; norm < 3; norm++)
            *factors[norm] = outcome_take(&job->outcome, own->rows, sizeof **factors[norm]);
        tape->heads = outcome_take(&job->outcome, own->rows * heads_width(block), element);
        if (has_network(block))
            tape->network = outcome_take(&job->outcome, own->rows * width, element);
    }
    return !outcome_has_failed(&job->outcome);
}

bool model_attribution_begin(struct model_job *job, size_t stack, size_t item, const attn_tensor *hidden)
{
    struct model_attribution *own = &job->attribution;
    const attn_selection *queries = &job->parts[stack].shown->queries;
    const bool is_all = attn_selects_all(queries);
    const size_t tokens = job->items[item].of[stack].count;
    if (own->bias == NULL || stack != job->last_stack)
        return true;
    own->rows = 0;
    own->slots = outcome_take(&job->outcome, tokens, sizeof *own->slots);
    if (own->slots == NULL)
        return false;
    memset(own->slots, 0xff, tokens * sizeof *own->slots);
    for (size_t i = 0; i < (is_all ? tokens : queries->count); i++) {
        const size_t token = is_all ? i : attn_selected(queries, i);
        if (token < tokens)
            own->slots[token] = own->rows++;
    }
    if (!take_tapes(job))
        return false;
    copy_rows(job, hidden, own->embedded);
    return true;
}

void model_attribution_keep_network(const struct model_block_run *run, const attn_tensor *added)
{
    copy_rows(run->job, added, tape_of(run->job, run->block)->network);
}

/* The factors of the norm for the selected rows of (…, tokens, d), plus the rows of plus, which may be NULL. */
static bool keep_factors(struct model_job *job, const attn_token_norm *norm, const attn_tensor *from, const char *plus,
                         double *factors)
{
    if (norm->type == ATTN_NORM_NONE) /* then from may be a step that was not computed */
        return true;
    const size_t rows = job->attribution.rows, d = from->shape[from->rank - 1];
    char *data = outcome_take(&job->outcome, rows * d, attn_dtype_bytes(from->dtype));
    if (data == NULL)
        return false;
    copy_rows(job, from, data);
    for (size_t i = 0; i < rows * d && plus != NULL; i++)
        if (from->dtype == ATTN_F32)
            ((float *)data)[i] += ((const float *)plus)[i];
        else
            ((double *)data)[i] += ((const double *)plus)[i];
    const attn_tensor selected = attn_tensor_view(data, from->dtype, 2, (const size_t[]){rows, d});
    attn_norm_factors(norm, &selected, factors);
    return true;
}

bool model_attribution_keep(const struct model_block_run *run, const attn_result *result)
{
    struct model_job *job = run->job;
    const attn_request *request = &run->envelope.request;
    if (!model_attribution_reads(run))
        return true;
    const struct model_tape *tape = tape_of(job, run->block);
    const attn_token_norm branch = branch_norm(request), attention = attention_norm(request),
                          output = output_norm(request);
    copy_rows(job, &result->step[heads_step(request)], tape->heads);
    return keep_factors(job, &branch, &result->step[ATTN_STEP_PROJECTED], NULL, tape->branch) &&
           keep_factors(job, &attention, &result->step[ATTN_STEP_RESIDUAL], NULL, tape->attention) &&
           (tape->network == NULL ||
            keep_factors(job, &output, &result->step[ATTN_STEP_ATTENTION_OUTPUT], tape->network, tape->output));
}

bool model_attribution_end(struct model_job *job, size_t stack, const attn_tensor *hidden)
{
    const struct model_norm *norm = &last_stack(job)->norm;
    const attn_token_norm of_stack = {.type = norm->type, .eps = norm->eps};
    return job->attribution.bias == NULL || stack != job->last_stack ||
           keep_factors(job, &of_stack, hidden, NULL, job->attribution.factors);
}

/* ---- back through the blocks ---- */

/* The selected tokens of a block of the head, and the directions of their words. */
struct walk {
    const struct head_block *block;
    size_t slots[HEAD_ROWS]; /* in the tapes */
    attn_tensor directions;  /* (tokens * words, d) */
    double *left;            /* of each score, what is not yet explained */
};

/* What is kept of the tokens of the block, side by side. */
static void *gather(const struct walk *walk, const void *kept, size_t bytes)
{
    char *rows = outcome_take(&walk->block->job->outcome, walk->block->count, bytes);
    for (size_t i = 0; i < walk->block->count && rows != NULL; i++)
        memcpy(rows + i * bytes, (const char *)kept + walk->slots[i] * bytes, bytes);
    return rows;
}

static bool pass_norm(const struct walk *walk, const attn_token_norm *norm, const double *kept,
                      const attn_tensor *directions)
{
    const double *factors = gather(walk, kept, sizeof *kept);
    if (factors != NULL)
        attn_norm_directions(norm, walk->block->count, factors, directions, walk->block->job->runtime);
    return factors != NULL;
}

/* The address of to[layer][item][group][place of token i][0] in an output; without groups, of to[layer][item][place]. */
static void *place_at(const struct walk *walk, const struct model_output *output, size_t layer, size_t group, size_t i)
{
    const attn_tensor *to = &output->tensor;
    const size_t indices[] = {layer, walk->block->item, group};
    const int skip = to->rank == 3 ? 1 : 0;
    assert(to->rank - 2 + skip <= (int)ARRAY_LENGTH(indices));
    ptrdiff_t at = (ptrdiff_t)walk->block->places[i] * to->stride[to->rank - 2];
    for (int axis = 0; axis + 2 < to->rank; axis++)
        at += (ptrdiff_t)indices[axis + skip] * to->stride[axis];
    return (char *)to->data + at * (ptrdiff_t)attn_dtype_bytes(to->dtype);
}

/* Writes what a group adds to the scores of all words; added is (tokens, words, groups). */
static void put_group(const struct walk *walk, const double *added, size_t groups, size_t group,
                      const struct model_output *output, size_t layer, size_t shown)
{
    const size_t words = walk->block->job->given.count, bytes = attn_dtype_bytes(output->tensor.dtype);
    for (size_t i = 0; i < walk->block->count; i++) {
        char *place = place_at(walk, output, layer, shown, i);
        for (size_t w = 0; w < words; w++)
            model_put_numbers(&added[(i * words + w) * groups + group], 1, output->tensor.dtype, place + w * bytes);
    }
}

/* Adds the parts that a tape kept, (rows, width): groups of them, in the direction of each word. */
static bool add_parts(const struct walk *walk, const void *kept, size_t groups, const attn_tensor *directions,
                      const struct model_output *output, size_t layer)
{
    struct model_job *job = walk->block->job;
    const attn_selection *heads = &job->parts[job->last_stack].shown->heads;
    const size_t width = directions->shape[1], pairs = directions->shape[0];
    const attn_tensor parts = attn_tensor_view(gather(walk, kept, width * attn_dtype_bytes(directions->dtype)),
                                               directions->dtype, 2, (const size_t[]){walk->block->count, width});
    double *added = outcome_take(&job->outcome, pairs * groups, sizeof *added);
    if (outcome_has_failed(&job->outcome) ||
        !outcome_note(&job->outcome, attn_add_parts(&parts, groups, directions, added, job->runtime, job->outcome.err)))
        return false;
    for (size_t i = 0; i < pairs * groups; i++)
        walk->left[i / groups] -= added[i];
    const size_t shown = groups == 1 || attn_selects_all(heads) ? groups : heads->count;
    for (size_t i = 0; i < shown && layer != SIZE_MAX; i++)
        put_group(walk, added, groups, shown == groups ? i : attn_selected(heads, i), output, layer, i);
    return true;
}

/* Heads: back through the norm and the factor of the branch, and the output projection. */
static bool add_heads(const struct walk *walk, const struct model_block *block, const attn_request *request)
{
    struct model_job *job = walk->block->job;
    const struct model_attribution *own = &job->attribution;
    const struct model_tape *tape = tape_of(job, block);
    const attn_token_norm norm = branch_norm(request);
    const attn_tensor *weight = request->weights.output.weight;
    const double scale = request->options.residual_scale;
    attn_tensor branch = walk->directions, context;
    const size_t numbers = attn_tensor_count(&branch), bytes = numbers * attn_dtype_bytes(branch.dtype);
    branch.data = outcome_take(&job->outcome, bytes, 1);
    if (branch.data == NULL)
        return false;
    memcpy(branch.data, walk->directions.data, bytes);
    for (size_t i = 0; i < numbers && scale != 0; i++)
        if (branch.dtype == ATTN_F32)
            ((float *)branch.data)[i] = (float)(scale * (double)((float *)branch.data)[i]);
        else
            ((double *)branch.data)[i] *= scale;
    context = branch;
    return pass_norm(walk, &norm, tape->branch, &branch) &&
           (weight == NULL ||
            outcome_note(&job->outcome,
                         attn_weight_directions(weight, request->weights.layout, walk->block->count, &branch,
                                                job->runtime, job->outcome.arena, &context, job->outcome.err))) &&
           add_parts(walk, tape->heads, block->facts.dims.heads, &context,
                     block->is_cross ? own->cross_heads : own->heads,
                     model_part_place(&job->parts[job->last_stack], block->layer));
}

static bool pass_request(const struct walk *walk, const struct model_block *block, const attn_request *request)
{
    struct model_job *job = walk->block->job;
    const struct model_tape *tape = tape_of(job, block);
    const attn_token_norm output = output_norm(request), attention = attention_norm(request);
    return (tape->network == NULL ||
            (pass_norm(walk, &output, tape->output, &walk->directions) &&
             add_parts(walk, tape->network, 1, &walk->directions, job->attribution.feed_forward,
                       model_part_place(&job->parts[job->last_stack], block->layer)))) &&
           pass_norm(walk, &attention, tape->attention, &walk->directions) && add_heads(walk, block, request);
}

static bool pass_block(const struct walk *walk, const struct model_block *block)
{
    struct model_job *job = walk->block->job;
    struct envelope_source source = block->source;
    struct envelope envelope;
    struct prepared_weights *prepared = NULL;
    const attn_dtype compute = model_job_compute(job);
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    if (compute == block->facts.compute)
        prepared = prepared_weights_take(job->prepared, &job->version->slots[block->slot], &block->facts, job->runtime,
                                         job->outcome.arena, &source);
    const bool is_ok =
        outcome_note(&job->outcome, envelope_decode_base(&source, ENVELOPE_LAYER, compute, false, job->outcome.arena,
                                                         &envelope, job->outcome.err)) &&
        pass_request(walk, block, &envelope.request);
    prepared_weights_release(prepared);
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

/* ---- the tokens of the head ---- */

/* The words of the selected tokens, and their scores. A word that is absent has the score NaN. */
static void read_words(struct walk *walk, int64_t *words)
{
    const struct head_block *block = walk->block;
    const size_t n = block->job->given.count;
    for (size_t i = 0; i < block->count; i++) {
        int64_t next;
        const int64_t *of_row = model_words_of(block, block->rows[i], &next);
        walk->slots[i] = block->job->attribution.slots[block->first + block->rows[i]];
        for (size_t w = 0; w < n; w++) {
            const void *row = head_row(block, block->rows[i]);
            words[i * n + w] = of_row[w] < 0 ? 0 : of_row[w];
            walk->left[i * n + w] = of_row[w] < 0                      ? (double)NAN
                                    : block->scores->dtype == ATTN_F32 ? (double)((const float *)row)[of_row[w]]
                                                                       : ((const double *)row)[of_row[w]];
        }
    }
}

/* Nothing is added to a score that is NaN: the directions are NaN, too. */
static void hide_absent(const struct walk *walk)
{
    const attn_tensor *u = &walk->directions;
    const size_t d = u->shape[1];
    for (size_t i = 0; i < u->shape[0] * d; i++)
        if (isnan(walk->left[i / d]) && u->dtype == ATTN_F32)
            ((float *)u->data)[i] = NAN;
        else if (isnan(walk->left[i / d]))
            ((double *)u->data)[i] = (double)NAN;
}

static bool begin_walk(struct walk *walk, const attn_prediction_head *head, const attn_tensor *rows)
{
    const struct head_block *block = walk->block;
    struct model_job *job = block->job;
    const size_t n = job->given.count, bytes = rows->shape[1] * attn_dtype_bytes(rows->dtype);
    int64_t *words = outcome_take(&job->outcome, block->count * n, sizeof *words);
    char *read = outcome_take(&job->outcome, block->count, bytes);
    attn_token_norm norm;
    walk->left = outcome_take(&job->outcome, block->count * n, sizeof *walk->left);
    if (outcome_has_failed(&job->outcome) || !model_convert_norm(job, &last_stack(job)->norm, &norm))
        return false;
    read_words(walk, words);
    for (size_t i = 0; i < block->count; i++)
        memcpy(read + i * bytes, (const char *)rows->data + block->rows[i] * bytes, bytes);
    const attn_tensor input = attn_tensor_view(read, rows->dtype, 2, (const size_t[]){block->count, rows->shape[1]});
    if (!outcome_note(&job->outcome, attn_head_directions(head, &input, n, words, job->runtime, job->outcome.arena,
                                                          &walk->directions, job->outcome.err)))
        return false;
    hide_absent(walk);
    return pass_norm(walk, &norm, job->attribution.factors, &walk->directions);
}

bool model_attribution_put(const struct head_block *block, const attn_prediction_head *head, const attn_tensor *rows)
{
    struct model_job *job = block->job;
    const struct model_stack *stack = last_stack(job);
    const struct model_attribution *own = &job->attribution;
    struct walk walk = {.block = block};
    if (block->count == 0)
        return true;
    bool goes_on = begin_walk(&walk, head, rows);
    for (size_t i = stack->block_count; i-- > 0 && goes_on;)
        goes_on = model_job_goes_on(job) && pass_block(&walk, &stack->blocks[i]);
    if (!goes_on || !add_parts(&walk, own->embedded, 1, &walk.directions, own->embedding, 0))
        return false;
    put_group(&walk, walk.left, 1, 0, own->bias, 0, 0);
    return true;
}

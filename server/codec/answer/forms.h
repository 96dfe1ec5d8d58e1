/*
 * forms.h: writes a result in any media type but pictures: JSON, a view of options.view, safetensors, CSV; gradients
 * as JSON and safetensors; errors as JSON. Each form is a file.
 *
 *   JSON         outputs, shapes, effective, diagnostics, tokens
 *   safetensors  Every output is a tensor with the name of its step. top_k gives attention.indices and
 *                attention.weights. __metadata__ has "effective", "diagnostics" and "tokens", as JSON text.
 *   CSV          RFC 4180 with a header line. A single output that is a matrix (its leading dimensions are 1) is
 *                written as a matrix: column labels in the first line, row labels in the first column. Any other answer
 *                has one line per number: step,batch,head,query,key,feature,value. A field is empty when the step does
 *                not have that dimension. With tokens in the request, maps also have the columns query_token and
 *                key_token. Pooled rows and columns are numbered. A masked score is empty. A label that a spreadsheet
 *                might take for a formula gets an apostrophe before it.
 *   bertviz, circuitsvis, inspectus   the input of these programs, for one batch item
 *   rows         a list of objects, one per cell of the attention map, as Vega-Lite loads it
 *
 * Each function appends to out; without memory out->is_ok becomes false. A bound is the longest text in bytes; SIZE_MAX
 * when that exceeds size_t.
 */
#ifndef CODEC_ANSWER_FORMS_H
#define CODEC_ANSWER_FORMS_H

#include "attn/gradient.h"
#include "attn/multihead.h"
#include "attn/plan.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/media.h"
#include "codec/request/envelope.h"
#include "codec/tensor/safetensors.h"

/* ---- token_labels.c: the labels of tokens as texts, for answers that show labels beside numbers ---- */

/* Labels of one side; the texts live in the arena. */
struct labels {
    const char *const *texts; /* UTF-8, (batch, count) or (count); NULL: the request has none */
    size_t count;             /* labels of one batch item */
    bool is_per_item;         /* each batch item has a list in texts */
};

/* Reads the labels back from their JSON. A NUL in a label becomes U+FFFD. The only failure is ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK attn_status labels_read(const struct envelope_tokens *tokens, attn_arena *arena, struct labels *labels,
                                        attn_error *err);

/* The length of the longest label in bytes, as JSON text or as UTF-8. It is known without reading the labels. */
size_t labels_longest(const struct envelope_tokens *tokens);

/* The label of position i in batch item b. NULL when the side has no labels. */
const char *labels_at(const struct labels *labels, size_t b, size_t i);

/* ---- an answer ---- */

/* The data that an answer is made from. */
struct answer {
    const struct envelope *envelope;
    const attn_plan *plan;     /* the steps that the answer shows, as reduce_plan makes it */
    const attn_result *result; /* NULL before the computation; checks and bounds need no result */
};

/*
 * Checks, before anything runs, that the request can be answered in this media type.
 *   ATTN_ERR_FIELD a view in another type than JSON
 *   ATTN_ERR_SHAPE a view that cannot show these dimensions
 */
ATTN_MUST_CHECK attn_status answer_check(const struct answer *answer, enum media media, attn_error *err);
size_t answer_bound(const struct answer *answer, enum media media);
/* out may refer to data of the result. */
void answer_write(const struct answer *answer, enum media media, const attn_runtime *runtime, struct chunks *out);

/* ---- the forms ---- */

/*
 * Appends the whole answer to a request:
 *   {"outputs": {…}, "shapes": {…}, "effective": {…}, "diagnostics": {…}, "tokens": {…}}
 * Outputs come in the order of ATTN_STEP_LIST and have no leading dimensions that the request did not have, except the
 * maps, which are always (batch, heads, q_len, kv_len).
 */
void answer_write_json(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                       const attn_runtime *runtime, struct chunks *out);

size_t answer_bytes_bound(const struct envelope *envelope, const attn_plan *plan);

/* Tensors beside the outputs, at most ATTN_GRADIENT_COUNT. */
struct answer_tensors {
    const struct safetensors_entry *list;
    size_t count;
};
void answer_write_safetensors(const struct answer *answer, struct answer_tensors more, const attn_runtime *runtime,
                              struct chunks *out);
size_t answer_safetensors_bound(const struct answer *answer, struct answer_tensors more);

void answer_write_csv(const struct answer *answer, struct chunks *out);
size_t answer_csv_bound(const struct answer *answer);

/* ATTN_ERR_SHAPE: the view cannot show these dimensions. */
ATTN_MUST_CHECK attn_status answer_check_view(const struct answer *answer, attn_error *err);
void answer_write_view(const struct answer *answer, const attn_runtime *runtime, struct chunks *out);
size_t answer_view_bound(const struct answer *answer);

/*
 * Appends the whole answer, as answer_write_json does. The gradients stand between shapes and effective, nested like
 * the request:
 *   "gradients": {"inputs": {"query": …}, "weights": {"query": {"weight": …}}, "masks": {"bias": …}, "options": {…}}
 * The maps grad_scores and grad_attention are outputs. "shapes" has the shapes of the steps and, in "gradients", those of the
 * gradients. In safetensors, their names are paths: gradients.inputs.query.
 */
void answer_write_gradients(const struct envelope *envelope, const attn_gradient_plan *plan,
                            const attn_gradient_result *result, enum media media, const attn_runtime *runtime,
                            struct chunks *out);
size_t answer_gradients_bound(const struct envelope *envelope, const attn_gradient_plan *plan, enum media media);

/* {"error": …, "type": "/problems/shape", "title": …, "status": …, "detail": …, "pointer": …, …} */
void answer_write_error(const attn_error *error, const char *type, const char *title, int http_status,
                        const char *request_id, struct chunks *out);

/* ---- parts of an answer ---- */

/* Each function writes a JSON object. */
void answer_write_effective(const struct envelope *envelope, const attn_plan *plan, const attn_runtime *runtime,
                            struct chunks *out);
void answer_write_diagnostics(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                              struct chunks *out);
bool answer_has_tokens(const struct envelope *envelope);
void answer_write_tokens(const struct envelope *envelope, struct chunks *out);
/* The longest text of effective, diagnostics and tokens together, in bytes. */
size_t answer_facts_bound(const struct envelope *envelope, const attn_plan *plan);

/* A JSON number, or one of "NaN", "Infinity", "-Infinity". */
void answer_write_number(struct chunks *out, double value);

/* "name": for the next member of an object. */
void answer_begin_member(struct chunks *out, bool *is_first, const char *name);
void answer_write_sizes(struct chunks *out, const size_t *sizes, size_t count);

/* Results beside the steps: further members within "outputs" and within "shapes". */
struct answer_more {
    void (*write_outputs)(const void *context, bool *is_first, struct chunks *out);
    void (*write_shapes)(const void *context, bool *is_first, struct chunks *out);
    const void *context;
};

/*
 * Writes {"outputs": {…}, "shapes": {…} with the steps that plan wants, and with the members of more (NULL: no more).
 */
void answer_write_outputs(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                          const struct answer_more *more, const attn_runtime *runtime, struct chunks *out);
/* Writes , "effective": {…}, "diagnostics": {…}, "tokens": {…}} — the end of the answer. */
void answer_write_facts(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                        const attn_runtime *runtime, struct chunks *out);

/* Appends ,"hints":[{"pointer", "message"}, …] to the members of diagnostics; nothing when there is no hint. */
void hints_write(const struct envelope *envelope, const attn_plan *plan, const attn_result *result, struct chunks *out);

/* Appends "hints":[{"pointer", "message"}, or a comma and a further hint. The caller ends the list when *count > 0. */
void hints_add(const char *pointer, const char *message, size_t *count, struct chunks *out);

/*
 * ---- view.c ----
 *
 * Writes the maps of a layer (forms.h) and of a part of a whole model (codec/model/forms.h) as the input of a
 * front-end.
 *
 *   bertviz      https://github.com/jessevig/bertviz: the parameters of its head view and model view
 *   circuitsvis  https://github.com/TransformerLensOrg/CircuitsVis: the parameters of AttentionPatterns
 *   inspectus    https://github.com/labmlai/inspectus: the parameters of its attention chart
 *   rows         an object for each weight
 */

/* "bertviz", "circuitsvis", …, by envelope_view. */
extern const char *const view_names[];

bool view_is_same(const attn_selection *a, const attn_selection *b);

struct view_maps {
    bool is_of_model;
    const char *part;             /* "encoder", …; NULL: there is one part */
    attn_tensor maps;             /* (batch, heads, queries, keys), of a model (layers, heads, …) of one item */
    const attn_plan *plan;        /* of a layer: says which cells are allowed */
    attn_tensor allowed;          /* of a model: the same, of the shape of maps */
    const attn_selection *layers; /* of a model: the numbers of the layers; NULL: 0, 1, 2, … */
    const attn_selection *heads, *queries, *keys; /* those that maps has */
    const struct labels *query_labels, *key_labels;
    int digits; /* tensor/write.h */
    const attn_runtime *runtime;
    struct chunks *out;
};

/* An element of "attention", and what follows the last. layers and heads: so many there are, also those not shown. */
void view_write_bertviz(const struct view_maps *view);
void view_write_bertviz_end(const struct view_maps *view, size_t layers, size_t heads);
/* An object; of a model, one for each layer. */
void view_write_circuitsvis(const struct view_maps *view);
void view_write_inspectus(const struct view_maps *view);
/* The objects, with a comma between them. */
void view_write_rows(const struct view_maps *view);

/* The longest text of a weight of inspectus: 4 bytes take at most 6 characters of base64. */
enum { VIEW_VALUE_BYTES = 6 };
/* The longest text of a cell, without the numbers and the tokens. */
enum {
    VIEW_CELL_BYTES = sizeof "{\"batch\":,\"head\":,\"query\":,\"key\":,\"query_token\":\"\",\"key_token\":\"\","
                             "\"weight\":,\"allowed\":false},\n"
};

#endif

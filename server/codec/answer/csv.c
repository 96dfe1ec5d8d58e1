/* csv.c: writes a result as CSV: a matrix, or one line per number. */
#include "codec/answer/forms.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "codec/answer/reduce.h"
#include "codec/bytes/bound.h"
#include "codec/bytes/pace.h"
#include "codec/number/number.h"

/* The meaning of a dimension. These are the columns of the long form, in their order. */
enum column { COLUMN_BATCH, COLUMN_HEAD, COLUMN_QUERY, COLUMN_KEY, COLUMN_FEATURE, COLUMN_COUNT };

enum { VALUE_BYTES = NUMBER_TEXT_MAX, LINE_BYTES = 64 /* name of a step, commas, end of line */ };

static const char *const column_names[] = {"batch", "head", "query", "key", "feature"};

struct csv {
    const struct answer *answer;
    struct labels query, key;
    struct chunks *out;
};

/* Fills in the meaning of each dimension of a step that has rank dimensions. Tokens may lack the batch dimension. */
static void columns_of(attn_step step, int rank, enum column columns[ATTN_REQUEST_RANK])
{
    static const enum column maps[] = {COLUMN_BATCH, COLUMN_HEAD, COLUMN_QUERY, COLUMN_KEY},
                             means[ATTN_REQUEST_RANK] = {COLUMN_BATCH, COLUMN_QUERY, COLUMN_KEY},
                             keys[] = {COLUMN_BATCH, COLUMN_HEAD, COLUMN_KEY, COLUMN_FEATURE},
                             queries[] = {COLUMN_BATCH, COLUMN_HEAD, COLUMN_QUERY, COLUMN_FEATURE},
                             tokens[1 + ATTN_REQUEST_RANK] = {COLUMN_BATCH, COLUMN_QUERY, COLUMN_FEATURE},
                             key_tokens[1 + ATTN_REQUEST_RANK] = {COLUMN_BATCH, COLUMN_KEY, COLUMN_FEATURE};
    const enum column *found = queries;
    int skip = 0;
    switch (attn_step_axes(step)) {
    case ATTN_AXES_MAP:
    case ATTN_AXES_PAIRS: /* numbered in the place of heads */
    case ATTN_AXES_ROWS:
        found = maps;
        break;
    case ATTN_AXES_MEAN:
        found = means;
        break;
    case ATTN_AXES_NEW_K:
    case ATTN_AXES_NEW_V:
    case ATTN_AXES_K:
    case ATTN_AXES_V:
    case ATTN_AXES_STATE: /* the features of keys in the place of keys */
        found = keys;
        break;
    case ATTN_AXES_Q:
    case ATTN_AXES_CONTEXT:
        break;
    case ATTN_AXES_KEY_LATENT:
        found = key_tokens;
        skip = rank == 2 ? 1 : 0;
        break;
    case ATTN_AXES_QUERY_LATENT:
    case ATTN_AXES_CONCAT:
    case ATTN_AXES_TOKENS:
    case ATTN_AXES_OUTPUT:
        found = rank == 4 ? queries : tokens;
        skip = rank == 2 ? 1 : 0;
        break;
    }
    for (int d = 0; d < rank; d++)
        columns[d] = found[skip + d];
}

static bool is_wanted(const struct answer *answer, int step)
{
    return answer->plan->want >> step & 1;
}

/* ---- fields ---- */

/* The length of the first word that text begins with. 0 when text begins with none of the words. */
static size_t length_of_first(const char *text, const char *const words[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (text_begins(text, words[i]))
            return strlen(words[i]);
    }
    return 0;
}

/*
 * Whether a spreadsheet may run the label as a formula. Such a label begins with a sign of a formula, in ASCII or in
 * full width (U+FF1D, FF0B, FF0D, FF20). Some importers drop control characters, and some trim space (VT, FF, U+00A0,
 * 200B, 3000, FEFF), so these may come before the sign.
 */
static bool is_formula(const char *label)
{
    static const char *const signs[] = {
        "=", "+", "-", "@", "\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D", "\xEF\xBC\xA0", "\t", "\r", "\n"};
    static const char *const spaces[] = {" ", "\v", "\f", "\xC2\xA0", "\xE2\x80\x8B", "\xE3\x80\x80", "\xEF\xBB\xBF"};
    size_t length;
    while ((length = length_of_first(label, spaces, ARRAY_LENGTH(spaces))) > 0)
        label += length;
    return length_of_first(label, signs, ARRAY_LENGTH(signs)) > 0;
}

/* Quotes a label that has a comma, a quote or a line break (RFC 4180, section 2). */
static void write_label(struct chunks *out, const char *label)
{
    bool is_quoted = strpbrk(label, ",\"\r\n") != NULL || label[0] == ' ';
    chunks_text(out, is_quoted ? "\"" : "");
    chunks_text(out, is_formula(label) ? "'" : "");
    for (const char *quote = strchr(label, '"'); quote != NULL; quote = strchr(label, '"')) {
        chunks_bytes(out, label, (size_t)(quote - label) + 1);
        chunks_text(out, "\"");
        label = quote + 1;
    }
    chunks_text(out, label);
    chunks_text(out, is_quoted ? "\"" : "");
}

static void write_value(const struct csv *csv, attn_step step, const attn_tensor *tensor, ptrdiff_t at)
{
    char text[NUMBER_TEXT_MAX];
    int digits = csv->answer->envelope->digits;
    if (tensor->dtype == ATTN_BOOL) {
        chunks_text(csv->out, ((const uint8_t *)tensor->data)[at] != 0 ? "1" : "0");
        return;
    }
    bool is_single = tensor->dtype == ATTN_F32;
    double value = is_single ? (double)((const float *)tensor->data)[at] : ((const double *)tensor->data)[at];
    if (!isfinite(value)) {
        const char *below = attn_step_values(step) == ATTN_VALUES_SCORES ? "" : "-Infinity";
        chunks_text(csv->out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : below);
        return;
    }
    char *end =
        is_single && digits == 0 ? number_write_f32(text, (float)value) : number_write_digits(text, value, digits);
    chunks_bytes(csv->out, text, (size_t)(end - text));
}

/* ---- the place of a number in an output ---- */

/* The number in the whole map of the i-th head, query or key of the output. */
static size_t number_of(const struct csv *csv, attn_step step, enum column column, size_t i)
{
    const attn_options *options = &csv->answer->envelope->request.options;
    bool is_pooled = csv->answer->envelope->reduction.has_pool;
    if (!attn_step_has_keys(step))
        return i;
    if (column == COLUMN_HEAD)
        return attn_selected(&options->heads, i);
    if (column == COLUMN_QUERY && !is_pooled)
        return attn_selected(&options->queries, i);
    return column == COLUMN_KEY && !is_pooled ? attn_selected(&options->keys, i) : i;
}

/* The label of a query or key. NULL when it has none. */
static const char *label_of(const struct csv *csv, attn_step step, enum column column, size_t b, size_t number)
{
    if (attn_step_has_keys(step) && csv->answer->envelope->reduction.has_pool)
        return NULL;
    if (attn_step_axes(step) == ATTN_AXES_STATE)
        return NULL;
    if (column == COLUMN_QUERY)
        return labels_at(&csv->query, b, number);
    return column == COLUMN_KEY ? labels_at(&csv->key, b, number) : NULL;
}

/* ---- the matrix ---- */

/* The only output, when it is a matrix. ATTN_STEP_COUNT when there are several outputs or more dimensions. */
static attn_step matrix_step(const struct answer *answer)
{
    attn_step only = ATTN_STEP_COUNT;
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!is_wanted(answer, step))
            continue;
        const attn_tensor *tensor = &answer->plan->step[step];
        bool keeps_top = reduce_keeps_top(&answer->envelope->reduction, step);
        bool is_matrix = only == ATTN_STEP_COUNT && !keeps_top && tensor->rank >= 2;
        for (int d = 0; d + 2 < tensor->rank; d++)
            is_matrix = is_matrix && tensor->shape[d] == 1;
        if (!is_matrix)
            return ATTN_STEP_COUNT;
        only = (attn_step)step;
    }
    return only;
}

/* Writes the label of a row or column of the matrix, or its number. */
static void write_head(const struct csv *csv, attn_step step, enum column column, size_t i)
{
    size_t number = number_of(csv, step, column, i);
    const char *label = label_of(csv, step, column, 0, number);
    if (label != NULL)
        write_label(csv->out, label);
    else
        chunks_format(csv->out, "%zu", number);
}

static void write_matrix(const struct csv *csv, attn_step step)
{
    const attn_tensor *tensor = &csv->answer->result->step[step];
    int row_dim = tensor->rank - 2, col_dim = tensor->rank - 1;
    enum column columns[ATTN_REQUEST_RANK];
    columns_of(step, tensor->rank, columns);
    chunks_text(csv->out, column_names[columns[row_dim]]);
    for (size_t c = 0; c < tensor->shape[col_dim]; c++) {
        chunks_text(csv->out, ",");
        write_head(csv, step, columns[col_dim], c);
    }
    chunks_text(csv->out, "\r\n");
    for (size_t r = 0; r < tensor->shape[row_dim] && csv->out->is_ok; r++) {
        write_head(csv, step, columns[row_dim], r);
        for (size_t c = 0; c < tensor->shape[col_dim]; c++) {
            chunks_text(csv->out, ",");
            write_value(csv, step, tensor,
                        (ptrdiff_t)r * tensor->stride[row_dim] + (ptrdiff_t)c * tensor->stride[col_dim]);
        }
        chunks_text(csv->out, "\r\n");
    }
}

/* ---- one line for each number ---- */

static void write_long_header(const struct csv *csv)
{
    chunks_text(csv->out, "step");
    for (int column = 0; column < COLUMN_COUNT; column++)
        chunks_format(csv->out, ",%s", column_names[column]);
    chunks_text(csv->out, csv->query.texts != NULL ? ",query_token" : "");
    chunks_text(csv->out, csv->key.texts != NULL ? ",key_token" : "");
    chunks_text(csv->out, ",value\r\n");
}

static void write_token(const struct csv *csv, attn_step step, const struct labels *labels, enum column column,
                        const size_t *numbers)
{
    if (labels->texts == NULL)
        return;
    const char *label =
        numbers[column] != SIZE_MAX ? label_of(csv, step, column, numbers[COLUMN_BATCH], numbers[column]) : NULL;
    chunks_text(csv->out, ",");
    write_label(csv->out, label != NULL ? label : "");
}

/* Writes one line. A number is SIZE_MAX when the output does not have that dimension. */
static void write_line(const struct csv *csv, attn_step step, const size_t numbers[COLUMN_COUNT],
                       const attn_tensor *tensor, ptrdiff_t at)
{
    chunks_text(csv->out, attn_step_name(step));
    for (int column = 0; column < COLUMN_COUNT; column++) {
        chunks_text(csv->out, ",");
        if (numbers[column] != SIZE_MAX)
            chunks_format(csv->out, "%zu", numbers[column]);
    }
    write_token(csv, step, &csv->query, COLUMN_QUERY, numbers);
    write_token(csv, step, &csv->key, COLUMN_KEY, numbers);
    chunks_text(csv->out, ",");
    write_value(csv, step, tensor, at);
    chunks_text(csv->out, "\r\n");
}

static void write_long(const struct csv *csv, attn_step step)
{
    const attn_tensor *tensor = &csv->answer->result->step[step];
    const attn_tensor *indices = &csv->answer->envelope->reduction.top_indices;
    size_t count = attn_tensor_count(tensor);
    struct pace pace = pace_begin(csv->out->arena); /* of lines that are left out; writing checks the deadline itself */
    enum column columns[ATTN_REQUEST_RANK];
    columns_of(step, tensor->rank, columns);
    for (size_t n = 0; n < count && csv->out->is_ok; n++) {
        size_t numbers[COLUMN_COUNT] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}, rest = n;
        ptrdiff_t at = 0;
        for (int d = tensor->rank; d-- > 0; rest /= tensor->shape[d]) {
            size_t i = rest % tensor->shape[d];
            numbers[columns[d]] = number_of(csv, step, columns[d], i);
            at += (ptrdiff_t)i * tensor->stride[d];
        }
        if (reduce_keeps_top(&csv->answer->envelope->reduction, (int)step)) {
            int64_t key = ((const int64_t *)indices->data)[n];
            if (key < 0) {
                csv->out->is_ok = !pace_stops(&pace, 1);
                continue;
            }
            numbers[COLUMN_KEY] = (size_t)key;
        }
        if (numbers[COLUMN_BATCH] == SIZE_MAX) /* a single item has no number of its own */
            numbers[COLUMN_BATCH] = 0;
        write_line(csv, step, numbers, tensor, at);
    }
}

void answer_write_csv(const struct answer *answer, struct chunks *out)
{
    struct csv csv = {.answer = answer, .out = out};
    const struct envelope *envelope = answer->envelope;
    if (labels_read(&envelope->query_tokens, out->arena, &csv.query, NULL) != ATTN_OK ||
        labels_read(&envelope->key_tokens, out->arena, &csv.key, NULL) != ATTN_OK) {
        out->is_ok = false;
        return;
    }
    attn_step matrix = matrix_step(answer);
    if (matrix != ATTN_STEP_COUNT) {
        write_matrix(&csv, matrix);
        return;
    }
    write_long_header(&csv);
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (is_wanted(answer, step))
            write_long(&csv, (attn_step)step);
    }
}

/* ---- the length of the text ---- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t answer_csv_bound(const struct answer *answer)
{
    const attn_dims *dims = &answer->plan->dims;
    size_t query = labels_longest(&answer->envelope->query_tokens);
    size_t key = labels_longest(&answer->envelope->key_tokens);
    size_t labels = 2 * (query + key) + 6; /* every character of a label may be a quote, which is doubled */
    size_t longest = larger(larger(dims->batch, dims->heads), larger(dims->q_len, dims->kv_len));
    size_t bound = 256;
    bool is_matrix = matrix_step(answer) != ATTN_STEP_COUNT;
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!is_wanted(answer, step))
            continue;
        const attn_tensor *tensor = &answer->plan->step[step];
        size_t value = tensor->dtype == ATTN_BOOL ? 1 : VALUE_BYTES, line = LINE_BYTES + labels;
        for (int d = 0; d < tensor->rank; d++)
            line += bound_digits(larger(longest, tensor->shape[d]));
        size_t count = attn_tensor_count(tensor);
        if (!is_matrix) {
            bound = bound_add(bound, count, line + value);
            continue;
        }
        bound = bound_add(bound, count, value + 1);
        bound = bound_add(bound, tensor->shape[tensor->rank - 1], line);
        bound = bound_add(bound, tensor->shape[tensor->rank - 2], line);
    }
    return bound;
}

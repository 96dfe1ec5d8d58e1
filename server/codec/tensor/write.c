/*
 * write.c: writes tensors as JSON text.
 *
 * The row-major index of an element alone decides the brackets and commas around it. So the text of elements [from, to)
 * does not depend on the text before it. Large tensors are cut into pieces of a fixed number of elements, and all
 * threads format pieces. The text is the same for any number of threads.
 */
#include "codec/tensor/write.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "codec/bytes/base64.h"
#include "codec/bytes/bound.h"
#include "codec/number/number.h"

enum {
    BLOCK = 252,               /* elements copied at a time; a multiple of 3, for base64 */
    PIECE = 8 * BLOCK,         /* elements per task */
    PARALLEL_FROM = 8 * PIECE, /* elements from which several threads are faster than one */
    WAVE_PIECES_MAX = 64,
    STRETCH = 32 * PIECE, /* elements per chunk of base64 */
    SHAPE_TEXT_MAX = 21 * ATTN_MAX_RANK + 3,
    FRAME_BYTES_MAX = SHAPE_TEXT_MAX + 64 /* bytes for member names, quotes and outermost brackets */
};

/* What the text of an element depends on. It is the same for all pieces. */
struct writer {
    /* When a dimension is 0, elements has only the dimensions before it, and each element is "[]". */
    attn_tensor elements;
    bool is_hollow;
    size_t inner_levels; /* levels of brackets within the outermost */
    size_t count;
    struct tensor_style style;
};

/* The longest text of one element, in bytes, without the comma. */
static size_t element_bytes_max(attn_dtype dtype, const struct tensor_style *style)
{
    assert(dtype == ATTN_F32 || dtype == ATTN_F64 || dtype == ATTN_I64 || dtype == ATTN_BOOL);
    if (dtype == ATTN_BOOL)
        return sizeof "false" - 1;
    if (dtype == ATTN_I64)
        return sizeof "-9223372036854775808" - 1;
    /* "-0.0000", or "-." and "e-308", stand around the digits. An integer without an exponent has up to 16 digits. */
    size_t digits = style->digits > 0 ? (size_t)style->digits : dtype == ATTN_F32 ? 9 : 17;
    return digits < 10 ? 17 : digits + 7;
}

static char *put(char *to, const char *text)
{
    size_t length = strlen(text);
    memcpy(to, text, length);
    return to + length;
}

static char *put_special(char *to, double value, const struct tensor_style *style)
{
    if (isnan(value))
        return put(to, "\"NaN\"");
    if (value > 0)
        return put(to, "\"Infinity\"");
    return put(to, style->null_for_minus_infinity ? "null" : "\"-Infinity\"");
}

/* Counts the finite numbers at the beginning of values. */
static size_t count_finite(const float *values, size_t count)
{
    size_t i = 0;
    while (i < count && isfinite(values[i]))
        i++;
    return i;
}

/* Writes the shortest texts with commas between them. Finite numbers are written in runs. */
static char *put_shortest_f32(char *to, const float *values, size_t count, const struct tensor_style *style)
{
    for (size_t i = 0; i < count;) {
        *to = ',';
        to += i > 0;
        size_t finite = count_finite(values + i, count - i);
        to = finite > 0 ? number_write_f32_run(to, values + i, finite) : put_special(to, (double)values[i], style);
        i += finite > 0 ? finite : 1;
    }
    return to;
}

static char *put_f32_digits(char *to, float value, const struct tensor_style *style)
{
    return isfinite(value) ? number_write_digits(to, (double)value, style->digits)
                           : put_special(to, (double)value, style);
}

static char *put_f64(char *to, double value, const struct tensor_style *style)
{
    if (!isfinite(value))
        return put_special(to, value, style);
    return number_write_digits(to, value, style->digits);
}

static char *put_i64(char *to, int64_t value)
{
    *to = '-';
    return text_write_count(to + (value < 0), value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* A block of elements in their own type. */
union block {
    float f32[BLOCK];
    double f64[BLOCK];
    int64_t i64[BLOCK];
    uint8_t bytes[BLOCK * 8];
};

static char *put_comma(char *to, bool is_between)
{
    *to = ',';
    return to + is_between;
}

/*
 * Writes elements [from, end) of a block with commas between them. The type is examined once per run, not per element.
 */
static char *put_run(char *to, const struct writer *writer, const union block *block, size_t from, size_t end)
{
    const struct tensor_style *style = &writer->style;
    const attn_dtype dtype = writer->elements.dtype;
    if (!writer->is_hollow && dtype == ATTN_F32 && style->digits == 0)
        return put_shortest_f32(to, block->f32 + from, end - from, style);
    if (writer->is_hollow)
        for (size_t i = from; i < end; i++)
            to = put(put_comma(to, i > from), "[]");
    else if (dtype == ATTN_F32)
        for (size_t i = from; i < end; i++)
            to = put_f32_digits(put_comma(to, i > from), block->f32[i], style);
    else if (dtype == ATTN_F64)
        for (size_t i = from; i < end; i++)
            to = put_f64(put_comma(to, i > from), block->f64[i], style);
    else if (dtype == ATTN_I64)
        for (size_t i = from; i < end; i++)
            to = put_i64(put_comma(to, i > from), block->i64[i]);
    else
        for (size_t i = from; i < end; i++)
            to = put(put_comma(to, i > from), block->bytes[i] != 0 ? "true" : "false");
    return to;
}

/* How many of the inner brackets open before element index. The same number closes after the element before it. */
static size_t count_boundaries(const struct writer *writer, size_t index)
{
    size_t boundaries = 0;
    while (boundaries < writer->inner_levels) {
        size_t length = writer->elements.shape[(size_t)writer->elements.rank - 1 - boundaries];
        if (index % length != 0)
            break;
        index /= length;
        boundaries++;
    }
    return boundaries;
}

/* Writes elements [from, from + count), count <= BLOCK, with the commas and brackets before and between them. */
static char *put_block(char *to, const struct writer *writer, size_t from, size_t count)
{
    union block block;
    if (!writer->is_hollow)
        tensor_gather(&block, &writer->elements, from, count);
    size_t columns = writer->inner_levels > 0 ? writer->elements.shape[writer->elements.rank - 1] : writer->count;
    size_t column = from % columns;
    for (size_t i = 0; i < count;) {
        size_t boundaries = column == 0 ? count_boundaries(writer, from + i) : 0;
        memset(to, ']', boundaries);
        to += from + i > 0 ? boundaries : 0;
        *to = ',';
        to += from + i > 0;
        memset(to, '[', boundaries);
        size_t end = columns - column < count - i ? i + columns - column : count;
        to = put_run(to + boundaries, writer, &block, i, end);
        i = end;
        column = 0;
    }
    size_t closing = from + count == writer->count ? writer->inner_levels : 0;
    memset(to, ']', closing);
    return to + closing;
}

/* The longest text of any count elements; SIZE_MAX when that exceeds size_t. */
static size_t text_bytes_max(const struct writer *writer, size_t count)
{
    const attn_tensor *elements = &writer->elements;
    size_t element = writer->is_hollow ? 2 : element_bytes_max(elements->dtype, &writer->style);
    size_t bytes = bound_add(0, count, element + 1);
    size_t boundaries = count;
    for (size_t i = 1; i <= writer->inner_levels; i++) {
        boundaries = boundaries / elements->shape[(size_t)elements->rank - i] + 1;
        bytes = bound_add(bytes, 2, boundaries);
    }
    return bytes;
}

static void write_serial(const struct writer *writer, struct chunks *out)
{
    size_t room = text_bytes_max(writer, writer->count < BLOCK ? writer->count : BLOCK) + NUMBER_TEXT_MAX;
    for (size_t from = 0; from < writer->count && out->is_ok; from += BLOCK) {
        size_t count = writer->count - from < BLOCK ? writer->count - from : BLOCK;
        char *to = chunks_reserve(out, room);
        if (to != NULL)
            chunks_commit(out, (size_t)(put_block(to, writer, from, count) - to));
    }
}

/*
 * A wave of pieces. They are formatted together, each into its own part of scratch, and are then copied into the
 * answer.
 */
struct wave {
    const struct writer *writer;
    size_t first; /* the index of the wave's first element */
    size_t pieces;
    char *scratch;
    size_t piece_bytes;
    size_t length[WAVE_PIECES_MAX];
    char *to[WAVE_PIECES_MAX];
};

/* Writes at most PIECE elements and returns the length of the text. start needs room for one more number after them. */
static size_t put_piece(char *start, const struct writer *writer, size_t from)
{
    size_t end = writer->count - from < PIECE ? writer->count : from + PIECE;
    char *to = start;
    for (; from < end; from += BLOCK)
        to = put_block(to, writer, from, end - from < BLOCK ? end - from : BLOCK);
    return (size_t)(to - start);
}

static void format_piece(void *argument, size_t index, size_t worker)
{
    (void)worker;
    struct wave *wave = argument;
    wave->length[index] =
        put_piece(wave->scratch + index * wave->piece_bytes, wave->writer, wave->first + index * PIECE);
}

static void copy_piece(void *argument, size_t index, size_t worker)
{
    (void)worker;
    struct wave *wave = argument;
    memcpy(wave->to[index], wave->scratch + index * wave->piece_bytes, wave->length[index]);
}

static void run_wave(struct wave *wave, const attn_runtime *runtime, struct chunks *out)
{
    runtime->run(runtime->context, wave->pieces, format_piece, wave);
    size_t bytes = 0;
    for (size_t i = 0; i < wave->pieces; i++)
        bytes += wave->length[i];
    char *to = chunks_reserve(out, bytes);
    if (to == NULL)
        return;
    for (size_t i = 0; i < wave->pieces; i++) {
        wave->to[i] = to;
        to += wave->length[i];
    }
    runtime->run(runtime->context, wave->pieces, copy_piece, wave);
    chunks_commit(out, bytes);
}

/*
 * The longest possible text may be twice as long as the real text. Pieces formatted in place would therefore waste
 * memory in proportion to the tensor. So the pieces of a wave are formatted into scratch memory of fixed size, and then
 * copied.
 */
static void write_parallel(const struct writer *writer, const attn_runtime *runtime, struct chunks *out)
{
    size_t at_once = runtime->threads < WAVE_PIECES_MAX / 2 ? 2 * runtime->threads : WAVE_PIECES_MAX;
    struct wave wave = {.writer = writer, .piece_bytes = text_bytes_max(writer, PIECE) + NUMBER_TEXT_MAX};
    wave.scratch = attn_arena_take(out->arena, at_once, wave.piece_bytes);
    if (wave.scratch == NULL) {
        write_serial(writer, out);
        return;
    }
    for (; wave.first < writer->count && out->is_ok; wave.first += at_once * PIECE) {
        size_t left = (writer->count - wave.first - 1) / PIECE + 1;
        wave.pieces = left < at_once ? left : at_once;
        run_wave(&wave, runtime, out);
    }
}

static size_t write_deferred_piece(const void *context, size_t index, char *to)
{
    return put_piece(to, context, index * PIECE);
}

/* Appends a deferred part. The part and a copy of context live in the arena of out. */
static void defer(const struct deferred *part, const void *context, size_t context_bytes, struct chunks *out)
{
    struct deferred *copy = attn_arena_take(out->arena, 1, sizeof *copy);
    void *context_copy = attn_arena_take(out->arena, 1, context_bytes);
    out->is_ok = out->is_ok && copy != NULL && context_copy != NULL;
    if (!out->is_ok)
        return;
    memcpy(context_copy, context, context_bytes);
    *copy = *part;
    copy->context = context_copy;
    chunks_defer(out, copy);
}

static void defer_arrays(const struct writer *writer, struct chunks *out)
{
    defer(&(struct deferred){.write = write_deferred_piece,
                             .pieces = (writer->count - 1) / PIECE + 1,
                             .piece_bytes_max = text_bytes_max(writer, PIECE) + NUMBER_TEXT_MAX,
                             .total_bytes = CHUNKS_LENGTH_UNKNOWN},
          writer, sizeof *writer, out);
}

/* Plans the tensor as nested or flat arrays. False when an empty tensor has more "[]" than size_t can count. */
static bool plan_writer(const attn_tensor *tensor, const struct tensor_style *style, struct writer *writer)
{
    *writer = (struct writer){.elements = *tensor, .style = *style};
    int hollow = 0;
    while (hollow < tensor->rank && tensor->shape[hollow] != 0)
        hollow++;
    bool is_nested = style->form == TENSOR_FORM_NESTED;
    writer->is_hollow = is_nested && hollow < tensor->rank;
    if (writer->is_hollow)
        writer->elements.rank = hollow;
    int rank = writer->elements.rank;
    writer->inner_levels = is_nested && rank > 1 ? (size_t)rank - 1 : 0;
    return attn_shape_count(rank, tensor->shape, &writer->count);
}

static void write_arrays(const attn_tensor *tensor, const struct tensor_style *style, const attn_runtime *runtime,
                         struct chunks *out)
{
    struct writer writer;
    if (!plan_writer(tensor, style, &writer)) {
        out->is_ok = false;
        return;
    }
    bool has_outermost = style->form == TENSOR_FORM_FLAT || writer.elements.rank > 0;
    if (has_outermost)
        chunks_text(out, "[");
    if (out->may_defer && writer.count >= PARALLEL_FROM)
        defer_arrays(&writer, out);
    else if (runtime->threads > 1 && writer.count >= PARALLEL_FROM)
        write_parallel(&writer, runtime, out);
    else
        write_serial(&writer, out);
    if (has_outermost)
        chunks_text(out, "]");
}

/* Elements [first, first + count) to be encoded as base64 text at to. */
struct stretch {
    const attn_tensor *tensor;
    size_t first, count;
    char *to;
};

/* Converts elements to the form of the answer: bool as 0 or 1. Numbers are little-endian in both. */
static void make_portable(union block *block, attn_dtype dtype, size_t count)
{
    for (size_t i = 0; dtype == ATTN_BOOL && i < count; i++)
        block->bytes[i] = block->bytes[i] != 0;
}

/* Encodes elements [from, end) of one piece. Every block but the last consists of whole groups of 3 bytes. */
static void encode(char *to, const attn_tensor *tensor, size_t from, size_t end)
{
    size_t size = attn_dtype_bytes(tensor->dtype);
    for (; from < end; from += BLOCK) {
        union block block;
        size_t count = end - from < BLOCK ? end - from : BLOCK;
        tensor_gather(&block, tensor, from, count);
        make_portable(&block, tensor->dtype, count);
        base64_encode(to, &block, count * size);
        to += base64_encoded_length(count * size);
    }
}

/* Every piece but the last consists of whole groups of 3 bytes, so its text starts where the text before it ends. */
static void encode_piece(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct stretch *stretch = argument;
    size_t from = index * PIECE, end = stretch->count - from < PIECE ? stretch->count : from + PIECE;
    size_t before = base64_encoded_length(from * attn_dtype_bytes(stretch->tensor->dtype));
    encode(stretch->to + before, stretch->tensor, stretch->first + from, stretch->first + end);
}

static size_t encode_deferred_piece(const void *context, size_t index, char *to)
{
    const attn_tensor *tensor = context;
    size_t from = index * PIECE, count = attn_tensor_count(tensor) - from;
    count = count < PIECE ? count : PIECE;
    encode(to, tensor, from, from + count);
    return base64_encoded_length(count * attn_dtype_bytes(tensor->dtype));
}

static void write_base64(const attn_tensor *tensor, const attn_runtime *runtime, struct chunks *out)
{
    size_t total = attn_tensor_count(tensor), size = attn_dtype_bytes(tensor->dtype);
    if (out->may_defer && total >= PARALLEL_FROM) {
        defer(&(struct deferred){.write = encode_deferred_piece,
                                 .pieces = (total - 1) / PIECE + 1,
                                 .piece_bytes_max = base64_encoded_length(PIECE * size),
                                 .total_bytes = base64_encoded_length(total * size)},
              tensor, sizeof *tensor, out);
        return;
    }
    for (size_t first = 0; first < total && out->is_ok; first += STRETCH) {
        struct stretch stretch = {.tensor = tensor, .first = first};
        stretch.count = total - first < STRETCH ? total - first : STRETCH;
        size_t length = base64_encoded_length(stretch.count * size);
        stretch.to = chunks_reserve(out, length);
        if (stretch.to == NULL)
            return;
        runtime->run(runtime->context, (stretch.count - 1) / PIECE + 1, encode_piece, &stretch);
        chunks_commit(out, length);
    }
}

void tensor_write_json(const attn_tensor *tensor, const struct tensor_style *style, const attn_runtime *runtime,
                       struct chunks *out)
{
    if (style->form == TENSOR_FORM_NESTED) {
        write_arrays(tensor, style, runtime, out);
        return;
    }
    char shape[SHAPE_TEXT_MAX];
    attn_shape_text(shape, sizeof shape, tensor->rank, tensor->shape);
    if (style->form == TENSOR_FORM_FLAT) {
        chunks_format(out, "{\"shape\":%s,\"data\":", shape);
        write_arrays(tensor, style, runtime, out);
        chunks_text(out, "}");
    } else {
        chunks_format(out, "{\"shape\":%s,\"dtype\":\"%s\",\"base64\":\"", shape, attn_dtype_name(tensor->dtype));
        write_base64(tensor, runtime, out);
        chunks_text(out, "\"}");
    }
}

size_t tensor_write_bound(const attn_tensor *tensor, const struct tensor_style *style)
{
    if (style->form == TENSOR_FORM_BASE64) {
        size_t bytes = bound_add(0, attn_tensor_count(tensor), attn_dtype_bytes(tensor->dtype));
        return bytes > SIZE_MAX / 2 ? SIZE_MAX : base64_encoded_length(bytes) + FRAME_BYTES_MAX;
    }
    struct writer writer;
    if (!plan_writer(tensor, style, &writer))
        return SIZE_MAX;
    return bound_add(FRAME_BYTES_MAX, 1, text_bytes_max(&writer, writer.count));
}

/* ---- elements of any strides into contiguous memory ---- */

enum { COPY_ELEMENTS = 1 << 16 /* copied at a time from a tensor that is not contiguous */ };

void tensor_gather(void *to, const attn_tensor *tensor, size_t from, size_t count)
{
    size_t size = attn_dtype_bytes(tensor->dtype);
    size_t columns = tensor->rank == 0 ? 1 : tensor->shape[tensor->rank - 1];
    ptrdiff_t step = tensor->rank == 0 ? 1 : tensor->stride[tensor->rank - 1];
    char *out = to;
    while (count > 0) {
        size_t column = from % columns, row = from / columns;
        size_t run = columns - column < count ? columns - column : count;
        ptrdiff_t offset = (ptrdiff_t)column * step;
        for (int d = tensor->rank - 1; d-- > 0; row /= tensor->shape[d])
            offset += (ptrdiff_t)(row % tensor->shape[d]) * tensor->stride[d];
        const char *at = (const char *)tensor->data + offset * (ptrdiff_t)size;
        if (step == 1)
            memcpy(out, at, run * size);
        for (size_t i = 0; step != 1 && i < run; i++)
            memcpy(out + i * size, at + (ptrdiff_t)i * step * (ptrdiff_t)size, size);
        out += run * size;
        from += run;
        count -= run;
    }
}

void tensor_append(const attn_tensor *tensor, struct chunks *out)
{
    size_t count = attn_tensor_count(tensor), size = attn_dtype_bytes(tensor->dtype);
    if (attn_tensor_is_contiguous(tensor)) {
        chunks_borrow(out, tensor->data, count * size);
        return;
    }
    for (size_t from = 0; from < count; from += COPY_ELEMENTS) {
        size_t run = count - from < COPY_ELEMENTS ? count - from : COPY_ELEMENTS;
        char *to = chunks_reserve(out, run * size);
        if (to == NULL)
            return;
        tensor_gather(to, tensor, from, run);
        chunks_commit(out, run * size);
    }
}

/* answer.c: writes the answer of a whole model. */
#include "codec/model/answer.h"

#include <assert.h>
#include <string.h>

#include "codec/answer/forms.h"
#include "codec/bytes/bound.h"
#include "codec/tensor/safetensors.h"
#include "codec/tensor/write.h"

enum { FRAME_BYTES = 1024, OUTPUT_BYTES = 256 };

struct model_output *model_answer_add(struct model_answer *answer, const char *name)
{
    assert(answer->output_count < MODEL_OUTPUTS_MAX);
    struct model_output *output = &answer->outputs[answer->output_count++];
    *output = (struct model_output){.name = name};
    return output;
}

void model_answer_add_fact(struct model_answer *answer, const char *name, const char *json)
{
    assert(answer->fact_count < MODEL_FACTS_MAX);
    answer->facts[answer->fact_count++] = (struct model_fact){name, json};
}

const struct model_output *model_answer_largest(const struct model_answer *answer)
{
    const struct model_output *largest = NULL;
    for (size_t i = 0; i < answer->output_count; i++)
        if (largest == NULL || attn_tensor_count(&answer->outputs[i].tensor) > attn_tensor_count(&largest->tensor))
            largest = &answer->outputs[i];
    return largest;
}

/* ---- JSON ---- */

static struct tensor_style style_of(const struct model_answer *answer, const struct model_output *output)
{
    return (struct tensor_style){
        .form = answer->form, .digits = answer->digits, .null_for_minus_infinity = output->has_scores};
}

/* The length of the object's name; 0: the output is a member of outputs itself. */
static size_t object_length(const struct model_output *output)
{
    const char *dot = strchr(output->name, '.');
    return dot != NULL ? (size_t)(dot - output->name) : 0;
}

static bool are_of_one_object(const struct model_output *a, const struct model_output *b)
{
    const size_t length = object_length(a);
    return length > 0 && length == object_length(b) && strncmp(a->name, b->name, length) == 0;
}

static size_t spellings_of(const struct model_output *output)
{
    size_t count = 0;
    while (count < MODEL_SPELLINGS_MAX && output->spellings[count].name != NULL)
        count++;
    return count;
}

/* The words in the nesting of the ids, which are contiguous. */
static void write_words(const struct model_output *output, const struct model_spelling *spelling, int level,
                        const int64_t **ids, struct chunks *out)
{
    const attn_tensor *tensor = &output->tensor;
    if (level == tensor->rank) {
        const struct text_span word = spelling->spell(spelling->context, *(*ids)++);
        if (word.at != NULL)
            chunks_json_span(out, word);
        else
            chunks_text(out, "null");
        return;
    }
    chunks_text(out, "[");
    for (size_t i = 0; i < tensor->shape[level] && out->is_ok; i++) {
        chunks_text(out, i > 0 ? "," : "");
        write_words(output, spelling, level + 1, ids, out);
    }
    chunks_text(out, "]");
}

static void write_value(const struct model_answer *answer, const struct model_output *output,
                        const attn_runtime *runtime, struct chunks *out)
{
    const struct tensor_style style = style_of(answer, output);
    tensor_write_json(&output->tensor, &style, runtime, out);
    for (size_t i = 0; i < spellings_of(output); i++) {
        const int64_t *ids = output->tensor.data;
        chunks_format(out, ",\"%s\":", output->spellings[i].name + object_length(output) + 1);
        write_words(output, &output->spellings[i], 0, &ids, out);
    }
    if (output->beside.name == NULL)
        return;
    chunks_format(out, ",\"%s\":", output->beside.name + object_length(output) + 1);
    output->beside.write(output->beside.context, out);
}

static void write_outputs(const struct model_answer *answer, const attn_runtime *runtime, struct chunks *out)
{
    for (size_t i = 0; i < answer->output_count; i++) {
        const struct model_output *output = &answer->outputs[i];
        const size_t object = object_length(output);
        const bool begins = i == 0 || !are_of_one_object(output, output - 1);
        const bool ends = i + 1 == answer->output_count || !are_of_one_object(output, output + 1);
        chunks_text(out, i > 0 ? "," : "");
        if (object > 0 && begins)
            chunks_format(out, "\"%.*s\":{", (int)object, output->name);
        chunks_format(out, "\"%s\":", object > 0 ? output->name + object + 1 : output->name);
        write_value(answer, output, runtime, out);
        chunks_text(out, object > 0 && ends ? "}" : "");
    }
}

static bool have_one_shape(const attn_tensor *a, const attn_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* One shape for each member of outputs, and for each output of an object that has another shape than its first one. */
static void write_shapes(const struct model_answer *answer, struct chunks *out)
{
    const struct model_output *first = answer->outputs;
    for (size_t i = 0; i < answer->output_count; i++) {
        const struct model_output *output = &answer->outputs[i];
        const bool begins = i == 0 || !are_of_one_object(output, first);
        const size_t object = begins ? object_length(output) : 0;
        if (begins)
            first = output;
        else if (have_one_shape(&output->tensor, &first->tensor))
            continue;
        chunks_format(out, "%s\"%.*s\":", i > 0 ? "," : "", (int)(object > 0 ? object : strlen(output->name)),
                      output->name);
        answer_write_sizes(out, output->tensor.shape, (size_t)output->tensor.rank);
    }
}

static void write_json(const struct model_answer *answer, const attn_runtime *runtime, struct chunks *out)
{
    chunks_text(out, "{\"outputs\":{");
    write_outputs(answer, runtime, out);
    chunks_text(out, "},\"shapes\":{");
    write_shapes(answer, out);
    chunks_text(out, "}");
    for (size_t i = 0; i < answer->fact_count; i++) {
        chunks_format(out, ",\"%s\":", answer->facts[i].name);
        chunks_text(out, answer->facts[i].json);
    }
    chunks_text(out, "}");
}

/* ---- a file of tensors ---- */

enum { MODEL_TEXTS_MAX = MODEL_FACTS_MAX + MODEL_OUTPUTS_MAX * (MODEL_SPELLINGS_MAX + 1) };

static size_t list_entries(const struct model_answer *answer, struct safetensors_entry entries[MODEL_OUTPUTS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < answer->output_count; i++)
        entries[count++] = (struct safetensors_entry){answer->outputs[i].name, answer->outputs[i].tensor};
    return count;
}

static size_t list_facts(const struct model_answer *answer, struct safetensors_text texts[MODEL_TEXTS_MAX])
{
    for (size_t i = 0; i < answer->fact_count; i++) {
        const struct model_fact *fact = &answer->facts[i];
        texts[i] = (struct safetensors_text){fact->name, fact->json, strlen(fact->json)};
    }
    return answer->fact_count;
}

static struct safetensors_text text_named(const char *name, struct chunks *text, struct chunks *out)
{
    const char *json = chunks_join(text);
    out->is_ok = out->is_ok && json != NULL;
    return (struct safetensors_text){name, json != NULL ? json : "", text->total_bytes};
}

static struct safetensors_text text_of_words(const struct model_output *output, const struct model_spelling *spelling,
                                             struct chunks *out)
{
    struct chunks words = chunks_begin(out->arena);
    const int64_t *ids = output->tensor.data;
    write_words(output, spelling, 0, &ids, &words);
    return text_named(spelling->name, &words, out);
}

static struct safetensors_text text_beside(const struct model_beside *beside, struct chunks *out)
{
    struct chunks text = chunks_begin(out->arena);
    beside->write(beside->context, &text);
    return text_named(beside->name, &text, out);
}

/* The facts, and the words of ids, which are no tensors. */
static size_t list_texts(const struct model_answer *answer, struct safetensors_text texts[MODEL_TEXTS_MAX],
                         struct chunks *out)
{
    size_t count = list_facts(answer, texts);
    for (size_t i = 0; i < answer->output_count; i++) {
        const struct model_output *output = &answer->outputs[i];
        for (size_t s = 0; s < spellings_of(output); s++)
            texts[count++] = text_of_words(output, &output->spellings[s], out);
        if (output->beside.name != NULL)
            texts[count++] = text_beside(&output->beside, out);
    }
    return count;
}

void model_answer_write(const struct model_answer *answer, enum media media, const attn_runtime *runtime,
                        struct chunks *out)
{
    struct safetensors_entry entries[MODEL_OUTPUTS_MAX];
    struct safetensors_text texts[MODEL_TEXTS_MAX];
    if (media == MEDIA_SAFETENSORS)
        safetensors_write(entries, list_entries(answer, entries), texts, list_texts(answer, texts, out), out);
    else
        write_json(answer, runtime, out);
}

/* Of each axis there are at most as many lists as rows. times 2: quotes and backslashes are escaped once more. */
static size_t words_bound(const struct model_output *output, size_t times)
{
    const attn_tensor *ids = &output->tensor;
    size_t bound = 0;
    for (size_t i = 0; i < spellings_of(output); i++) {
        const size_t columns = ids->shape[ids->rank - 1], rows = columns > 0 ? attn_tensor_count(ids) / columns : 0,
                     lists = sizeof "[]," * (size_t)ids->rank;
        bound = bound_add(bound, rows, bound_add(lists, times, output->spellings[i].row_bytes));
    }
    return bound;
}

static size_t json_bound(const struct model_answer *answer)
{
    size_t bound = FRAME_BYTES;
    for (size_t i = 0; i < answer->output_count; i++) {
        const struct model_output *output = &answer->outputs[i];
        const struct tensor_style style = style_of(answer, output);
        bound = bound_add(bound, 1, OUTPUT_BYTES);
        bound = bound_add(bound, 1, tensor_write_bound(&output->tensor, &style));
        bound = bound_add(bound, 1, words_bound(output, 1));
        bound = bound_add(bound, 1, output->beside.bound);
    }
    for (size_t i = 0; i < answer->fact_count; i++)
        bound = bound_add(bound, 1, strlen(answer->facts[i].json));
    return bound;
}

static size_t file_bound(const struct model_answer *answer)
{
    struct safetensors_entry entries[MODEL_OUTPUTS_MAX];
    struct safetensors_text texts[MODEL_TEXTS_MAX];
    size_t bound = safetensors_write_bound(entries, list_entries(answer, entries), texts, list_facts(answer, texts));
    for (size_t i = 0; i < answer->output_count; i++) {
        bound = bound_add(bound, MODEL_SPELLINGS_MAX, OUTPUT_BYTES);
        bound = bound_add(bound, 1, words_bound(&answer->outputs[i], 2)); /* JSON in a string of JSON */
        bound = bound_add(bound, 2, answer->outputs[i].beside.bound);
    }
    return bound;
}

size_t model_answer_bound(const struct model_answer *answer, enum media media)
{
    return media == MEDIA_SAFETENSORS ? file_bound(answer) : json_bound(answer);
}

/* ---- parts ---- */

static const struct {
    const char *prefix, *name;
} parts[] = {
#define MODEL_PART_ROW(code, prefix, name) {prefix, name},
    MODEL_PART_LIST(MODEL_PART_ROW)
#undef MODEL_PART_ROW
};

const char *model_part_name(model_part_kind kind)
{
    return parts[kind].name;
}

const attn_tensor *model_part_output(const struct model_answer *answer, model_part_kind kind, const char *name)
{
    const size_t length = strlen(parts[kind].prefix);
    for (size_t i = 0; i < answer->output_count; i++) {
        const struct model_output *output = &answer->outputs[i];
        if (strncmp(output->name, parts[kind].prefix, length) == 0 && strcmp(output->name + length, name) == 0)
            return &output->tensor;
    }
    return NULL;
}

size_t model_part_query_stack(model_part_kind kind)
{
    return kind == MODEL_PART_DECODER || kind == MODEL_PART_CROSS ? 1 : 0;
}

size_t model_part_key_stack(model_part_kind kind)
{
    return kind == MODEL_PART_DECODER ? 1 : 0;
}

const struct model_selections *model_part_shown(const struct model_answer *answer, model_part_kind kind)
{
    return &answer->shown[model_part_query_stack(kind) + (kind == MODEL_PART_CROSS ? 1 : 0)];
}

attn_tensor model_part_first_item(const attn_tensor *output)
{
    assert(output->rank == 5);
    attn_tensor item = *output;
    item.rank = 4;
    for (int d = 1; d < 4; d++) {
        item.shape[d] = output->shape[d + 1];
        item.stride[d] = output->stride[d + 1];
    }
    return item;
}

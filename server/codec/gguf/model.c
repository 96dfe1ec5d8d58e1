/* model.c: the configuration of a model in a GGUF file, and its tensors by the names of transformers. */
#include "codec/gguf/gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/embedded_file.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/outcome.h"
#include "codec/json/tree.h"
#include "codec/number/number.h"

EMBEDDED_FILE(gguf_kinds, "server/codec/gguf/kinds.json");

enum { KEY_BYTES_MAX = 128, NAME_BYTES_MAX = 160, FACTORS_MAX = 4096 };

json_t *gguf_kinds(attn_arena *arena)
{
    json_error_t error;
    return json_tree_load(gguf_kinds_begin, (size_t)(gguf_kinds_end - gguf_kinds_begin), arena, &error);
}

/* The state of gguf_describe. */
struct describer {
    const struct gguf *file;
    const struct mapping *mapping;
    const json_t *kinds, *kind;
    char architecture[KEY_BYTES_MAX / 2];
    struct chunks config;
    struct outcome outcome;
};

/* ---- metadata ---- */

/* The value of the kind of model: "llama.block_count" for "block_count". */
static const struct gguf_value *find(const struct describer *describer, const char *name)
{
    char key[KEY_BYTES_MAX];
    snprintf(key, sizeof key, "%s.%s", describer->architecture, name);
    return gguf_find(describer->file, key);
}

/* Reads a number, which may be absent. *number stays what it is then. */
static bool read_number(struct describer *describer, const char *name, double *number)
{
    const struct gguf_value *value = find(describer, name);
    if (value == NULL || (gguf_number(value, number) && isfinite(*number)))
        return true;
    return outcome_fail(&describer->outcome, ATTN_ERR_VALUE, NULL,
                        "the metadata %s.%s is not one finite number, as attnd needs it", describer->architecture,
                        name);
}

/* ---- the configuration ---- */

/* Numbers of float32 in their shortest form: 1e-6, as the configuration had it. */
static void write_number(struct chunks *out, double number)
{
    char text[NUMBER_TEXT_MAX];
    const bool is_narrow = fabs(number) <= (double)HUGE_VALF && (double)(float)number == number;
    const char *end = is_narrow ? number_write_f32(text, (float)number) : number_write_f64(text, number);
    chunks_bytes(out, text, (size_t)(end - text));
}

static void write_member(struct describer *describer, const char *name, double number)
{
    chunks_format(&describer->config, ",\"%s\":", name);
    write_number(&describer->config, number);
}

/* Writes a member of kinds.json: a value, or that of "$key" if the file has it. No window is 0 in the file. */
static bool write_setting(struct describer *describer, const char *name, const json_t *value)
{
    const char *text = json_string_value(value);
    double number = (double)NAN;
    if (text != NULL && text[0] == '$') {
        if (!read_number(describer, text + 1, &number))
            return false;
        if (!isnan(number) && !(number == 0 && strcmp(name, "sliding_window") == 0))
            write_member(describer, name, number);
    } else if (text != NULL)
        chunks_format(&describer->config, ",\"%s\":\"%s\"", name, text);
    else if (json_is_number(value))
        write_member(describer, name, json_number_value(value));
    else
        chunks_format(&describer->config, ",\"%s\":%s", name, json_is_true(value) ? "true" : "false");
    return true;
}

static bool write_settings(struct describer *describer, json_t *settings)
{
    const char *name;
    json_t *value;
    bool ok = true;
    json_object_foreach(settings, name, value)
    {
        ok = ok && write_setting(describer, name, value);
    }
    return ok;
}

static const struct gguf_tensor *find_tensor(const struct gguf *file, const char *name)
{
    for (size_t i = 0; i < file->tensor_count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

/* ---- positions ---- */

/* Writes the list of factors that divide the frequencies of rope. */
static bool write_factors(struct describer *describer, const char *member, const struct gguf_tensor *tensor)
{
    chunks_format(&describer->config, ",\"%s\":[", member);
    bool is_ok = tensor->type->dtype == ATTN_F32 && tensor->count <= FACTORS_MAX;
    for (size_t i = 0; i < tensor->count && is_ok; i++) {
        float factor;
        memcpy(&factor, tensor->data + i * sizeof factor, sizeof factor);
        is_ok = isfinite(factor) && factor > 0;
        chunks_text(&describer->config, i > 0 ? "," : "");
        if (is_ok)
            write_number(&describer->config, (double)factor);
    }
    chunks_text(&describer->config, "]");
    return is_ok ||
           outcome_fail(&describer->outcome, ATTN_ERR_VALUE, NULL,
                        "the tensor %s is no list of at most %d float32 factors above 0", tensor->name, FACTORS_MAX);
}

/* Factors are written as longrope's, which has two lists: one for short texts, one for long ones. */
static bool write_longrope(struct describer *describer, const struct gguf_tensor *small,
                           const struct gguf_tensor *large)
{
    double attention = 1, length = 0, original = 0;
    bool ok = read_number(describer, "context_length", &length);
    original = length;
    ok = ok && read_number(describer, "rope.scaling.original_context_length", &original);
    ok = ok && read_number(describer, "rope.scaling.attn_factor", &attention);
    if (!ok)
        return false;
    chunks_text(&describer->config, ",\"rope_scaling\":{\"rope_type\":\"longrope\"");
    write_member(describer, "attention_factor", attention);
    write_member(describer, "original_max_position_embeddings", original);
    ok = write_factors(describer, "short_factor", small) && write_factors(describer, "long_factor", large);
    chunks_text(&describer->config, "}");
    return ok;
}

/* Scaling by a factor: linear or yarn. */
static bool write_scaling(struct describer *describer)
{
    const struct gguf_value *value = find(describer, "rope.scaling.type");
    struct text_span type = {"linear", 6}; /* as llama.cpp has it where the file names none */
    double factor = 1, original = 0, attention = 1;
    if ((value != NULL && !gguf_text(value, &type)) ||
        !(text_equal(type, "none") || text_equal(type, "linear") || text_equal(type, "yarn")))
        return outcome_fail(
            &describer->outcome, ATTN_ERR_VALUE, NULL,
            "the metadata %s.rope.scaling.type is %.*s; attnd has none, linear, yarn, and longrope with "
            "its tensors of factors",
            describer->architecture, (int)(type.length < 40 ? type.length : 40), type.at);
    if (!read_number(describer, "rope.scale_linear", &factor) || /* the older name */
        !read_number(describer, "rope.scaling.factor", &factor) ||
        !read_number(describer, "rope.scaling.original_context_length", &original) ||
        !read_number(describer, "rope.scaling.attn_factor", &attention))
        return false;
    if (attention != 1)
        return outcome_fail(
            &describer->outcome, ATTN_ERR_VALUE, NULL,
            "the metadata %s.rope.scaling.attn_factor is %g; attnd has it with tensors of factors alone",
            describer->architecture, attention);
    if (text_equal(type, "none") || factor == 1 || factor == 0)
        return true;
    chunks_format(&describer->config, ",\"rope_scaling\":{\"rope_type\":\"%.*s\"", (int)type.length, type.at);
    write_member(describer, "factor", factor);
    if (original > 0)
        write_member(describer, "original_max_position_embeddings", original);
    chunks_text(&describer->config, "}");
    return true;
}

static bool write_positions(struct describer *describer)
{
    const struct gguf_tensor *factors = find_tensor(describer->file, "rope_freqs.weight"),
                             *small = find_tensor(describer->file, "rope_factors_short.weight"),
                             *large = find_tensor(describer->file, "rope_factors_long.weight");
    if (factors != NULL)
        return write_longrope(describer, factors, factors);
    return small != NULL && large != NULL ? write_longrope(describer, small, large) : write_scaling(describer);
}

/* The width of heads, and the share of it that is rotated. */
static bool write_widths(struct describer *describer)
{
    double layers = 0, width = 0, heads = 0, head = 0, turning = 0;
    if (!read_number(describer, "block_count", &layers) || !read_number(describer, "embedding_length", &width) ||
        !read_number(describer, "attention.head_count", &heads) ||
        !read_number(describer, "attention.key_length", &head) ||
        !read_number(describer, "rope.dimension_count", &turning))
        return false;
    if (layers < 1 || width < 1 || heads < 1)
        return outcome_fail(&describer->outcome, ATTN_ERR_VALUE, NULL, "the metadata %s.%s is missing or not above 0",
                            describer->architecture,
                            layers < 1  ? "block_count"
                            : width < 1 ? "embedding_length"
                                        : "attention.head_count");
    if (head <= 0) {
        head = width / heads;
        write_member(describer, "head_dim", head);
    }
    if (turning > 0 && turning < head) /* a quarter more, because the product of share and width is rounded down */
        write_member(describer, "partial_rotary_factor", (turning + 0.25) / head);
    char text[32];
    snprintf(text, sizeof text, "%.0f", layers);
    return write_settings(describer, json_object_get(json_object_get(describer->kind, "of_layers"), text));
}

static bool check_causal(struct describer *describer)
{
    bool is_causal = true;
    return !gguf_bool(find(describer, "attention.causal"), &is_causal) || is_causal ||
           outcome_fail(&describer->outcome, ATTN_ERR_VALUE, NULL,
                        "the metadata %s.attention.causal is false; attnd runs this kind only as a causal one",
                        describer->architecture);
}

static bool write_config(struct describer *describer)
{
    static const char *const ids[][2] = {{"tokenizer.ggml.padding_token_id", "pad_token_id"},
                                         {"tokenizer.ggml.eos_token_id", "eos_token_id"}};
    uint64_t id;
    describer->config = chunks_begin(describer->outcome.arena);
    chunks_format(&describer->config, "{\"tie_word_embeddings\":%s",
                  find_tensor(describer->file, "output.weight") != NULL ? "false" : "true");
    for (size_t i = 0; i < ARRAY_LENGTH(ids); i++)
        if (gguf_count(gguf_find(describer->file, ids[i][0]), &id))
            write_member(describer, ids[i][1], (double)id);
    const bool ok = check_causal(describer) && write_settings(describer, json_object_get(describer->kinds, "config")) &&
                    write_settings(describer, json_object_get(describer->kind, "config")) && write_widths(describer) &&
                    write_positions(describer);
    chunks_text(&describer->config, "}");
    return ok;
}

/* ---- tensors ---- */

/* The name of transformers for "blk.3.attn_q.weight", whose entry is "blk.{n}.attn_q.weight". False: there is none. */
static bool translate(const struct describer *describer, const char *name, char to[NAME_BYTES_MAX])
{
    static const char block[] = "blk.";
    char pattern[NAME_BYTES_MAX];
    const size_t digits =
        strncmp(name, block, sizeof block - 1) == 0 ? strspn(name + sizeof block - 1, "0123456789") : 0;
    const char *number = name + sizeof block - 1;
    if (digits > 0)
        snprintf(pattern, sizeof pattern, "%s{n}%s", block, number + digits);
    else
        snprintf(pattern, sizeof pattern, "%s", name);
    const json_t *own = json_object_get(json_object_get(describer->kind, "tensors"), pattern);
    if (own == NULL)
        own = json_object_get(json_object_get(describer->kinds, "tensors"), pattern);
    const char *found = json_string_value(own), *place = found != NULL ? strstr(found, "{n}") : NULL;
    if (found == NULL)
        return false;
    if (place != NULL)
        snprintf(to, NAME_BYTES_MAX, "%.*s%.*s%s", (int)(place - found), found, (int)digits, number, place + 3);
    else
        snprintf(to, NAME_BYTES_MAX, "%s", found);
    return true;
}

/* Whether the configuration has what the tensor says. */
static bool is_of_config(const char *name)
{
    static const char *const names[] = {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The type that all quantised tensors of the file are widened to. */
static attn_dtype widened_type(const struct gguf *file)
{
    size_t numbers = 0;
    for (size_t i = 0; i < file->tensor_count; i++)
        if (file->tensors[i].type->widen != NULL && numbers <= GGUF_WIDE_MAX)
            numbers += file->tensors[i].count;
    return numbers <= GGUF_WIDE_MAX ? ATTN_F32 : ATTN_F16;
}

static bool add_tensor(struct describer *describer, const struct gguf_tensor *from, attn_dtype widened,
                       const attn_runtime *runtime, struct safetensors_tensor *to)
{
    struct outcome *outcome = &describer->outcome;
    const attn_dtype dtype = from->type->widen != NULL ? widened : from->type->dtype;
    char name[NAME_BYTES_MAX];
    const bool is_known = translate(describer, from->name, name);
    const char *const known = is_known ? name : from->name;
    if (!is_known && text_begins(from->name, "blk."))
        return outcome_fail(
            outcome, ATTN_ERR_VALUE, NULL,
            "the tensor %s has no place in a model of this kind: attnd would compute something else than "
            "the model does",
            from->name);
    size_t *shape = outcome_take(outcome, from->rank, sizeof *shape);
    *to = (struct safetensors_tensor){.name = outcome_copy_text(outcome, known, strlen(known)),
                                      .type = dtype == ATTN_F32   ? "F32"
                                              : dtype == ATTN_F16 ? "F16"
                                                                  : "BF16",
                                      .dtype = dtype,
                                      .rank = from->rank,
                                      .shape = shape,
                                      .data = from->data,
                                      .bytes = from->count * attn_dtype_bytes(dtype)};
    if (to->name == NULL || shape == NULL)
        return false;
    memcpy(shape, from->shape, from->rank * sizeof *shape);
    if (from->type->widen == NULL)
        return true;
    char *data = outcome_take(outcome, from->count, attn_dtype_bytes(dtype));
    to->data = data;
    if (data == NULL || !outcome_note(outcome, gguf_widen(from, dtype, runtime, data, outcome->err)))
        return false;
    if (describer->mapping != NULL) /* otherwise the whole file would be in memory beside its widened numbers */
        mapping_rest(describer->mapping, from->data, from->bytes);
    return true;
}

static bool add_tensors(struct describer *describer, const attn_runtime *runtime, struct checkpoint *checkpoint)
{
    const struct gguf *file = describer->file;
    const attn_dtype widened = widened_type(file);
    bool ok = true;
    checkpoint->tensors = outcome_take(&describer->outcome, file->tensor_count + 1, sizeof *checkpoint->tensors);
    if (checkpoint->tensors == NULL)
        return false;
    for (size_t i = 0; i < file->tensor_count && ok; i++) {
        if (is_of_config(file->tensors[i].name))
            continue;
        ok = add_tensor(describer, &file->tensors[i], widened, runtime, &checkpoint->tensors[checkpoint->tensor_count]);
        checkpoint->tensor_count += ok;
        checkpoint->is_widened |= file->tensors[i].type->widen != NULL;
        if (ok && attn_arena_is_cancelled(describer->outcome.arena))
            ok = outcome_fail(&describer->outcome, ATTN_ERR_CANCELLED, NULL, "cancelled while the file was read");
    }
    return ok;
}

/* ---- the model ---- */

static bool fail_kind(struct describer *describer, struct text_span name)
{
    struct chunks known = chunks_begin(describer->outcome.arena);
    const char *each, *separator = "";
    json_t *ignored;
    json_object_foreach(json_object_get(describer->kinds, "kinds"), each, ignored)
    {
        chunks_format(&known, "%s%s", separator, each);
        separator = ", ";
    }
    const char *text = chunks_join(&known);
    return outcome_fail(&describer->outcome, ATTN_ERR_VALUE, NULL,
                        "the metadata general.architecture is \"%.*s\"; of GGUF files, attnd has %s",
                        (int)(name.length < 40 ? name.length : 40), name.at, text != NULL ? text : "others");
}

static bool find_kind(struct describer *describer)
{
    struct text_span name = {"", 0};
    uint64_t parts;
    if (gguf_count(gguf_find(describer->file, "split.count"), &parts) && parts > 1)
        return outcome_fail(&describer->outcome, ATTN_ERR_VALUE, NULL,
                            "the file is one of %llu parts; llama-gguf-split --merge makes one file of them",
                            (unsigned long long)parts);
    if (!gguf_text(gguf_find(describer->file, "general.architecture"), &name))
        return outcome_fail(&describer->outcome, ATTN_ERR_VALUE, NULL,
                            "the metadata general.architecture, the kind of model, is missing");
    if (name.length < sizeof describer->architecture)
        snprintf(describer->architecture, sizeof describer->architecture, "%.*s", (int)name.length, name.at);
    describer->kind = json_object_get(json_object_get(describer->kinds, "kinds"), describer->architecture);
    return describer->kind != NULL || fail_kind(describer, name);
}

attn_status gguf_describe(const struct gguf *file, const struct mapping *mapping, const attn_runtime *runtime,
                          attn_arena *arena, struct checkpoint *checkpoint, attn_error *err)
{
    attn_arena *trees = attn_arena_create_beside(arena);
    json_t *kinds = trees != NULL ? gguf_kinds(trees) : NULL;
    struct describer describer = {
        .file = file, .mapping = mapping, .kinds = kinds, .outcome = {.arena = arena, .err = err}};
    *checkpoint = (struct checkpoint){.tensors = NULL};
    if (kinds == NULL)
        (void)outcome_no_memory(&describer.outcome);
    else if (find_kind(&describer) && write_config(&describer) && add_tensors(&describer, runtime, checkpoint)) {
        checkpoint->config = (struct text_span){chunks_join(&describer.config), describer.config.total_bytes};
        if (checkpoint->config.at == NULL)
            (void)outcome_no_memory(&describer.outcome);
    }
    json_decref(kinds);
    attn_arena_destroy(trees);
    return describer.outcome.status;
}

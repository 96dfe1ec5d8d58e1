/* request.c: decodes a request to a whole model. */
#include "codec/model/request.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/base64.h"
#include "codec/bytes/wav.h"
#include "codec/json/document.h"
#include "codec/json/tree.h"
#include "codec/request/decoder.h"
#include "codec/request/envelope.h"
#include "codec/words/words.h"

#define COMMON(field) offsetof(struct model_request, common.field)
#define INPUT(field)  offsetof(struct model_request, inputs.field)

enum {
    BATCH_MAX = 4096,
    PREDICTIONS_MAX = 1000,
    PREDICTIONS_K = 5,
    NEW_TOKENS_MAX = 4096,
    STEPS_MAX = 1000,
    STEPS = 50,
    ABLATIONS_MAX = 1 << 16,
    INDEX_MAX = 1 << 20
};

/* Scopes of members beside MEMBER_OF_GRADIENTS: requests that run the model, and of these those for attention. */
enum { MEMBER_OF_RUNS = MEMBER_OF_ATTENTION + 1, MEMBER_OF_MAPS };

static const char *const result_names[] = {
#define MODEL_RESULT_NAME(code, name) name,
    MODEL_RESULT_LIST(MODEL_RESULT_NAME)
#undef MODEL_RESULT_NAME
};

const char *model_result_name(model_result_kind result)
{
    return result_names[result];
}

bool model_result_belongs(model_result_kind result, model_request_kind kind)
{
    enum { ALONE = 1 << MODEL_ATTENTION_GRADIENT | 1 << MODEL_INTEGRATED };
    static const uint32_t results[] = {[MODEL_REQUEST_ATTENTION] = ~(uint32_t)ALONE,
                                       [MODEL_REQUEST_GRADIENTS] = ALONE | 1 << MODEL_EMBEDDING,
                                       [MODEL_REQUEST_TOKENS] = 0};
    return results[kind] >> result & 1;
}

/* ---- inputs ---- */

/* The state that the inputs need: the size of the batch, by those that were read. */
struct model_decoder {
    struct decoder common;
    size_t *batch;
};

/* Every list of a request has one element for each item of the batch. */
static attn_status set_batch(struct reading *reading, const struct node *node, size_t count)
{
    size_t *batch = ((struct model_decoder *)reading)->batch;
    if (count == 0)
        return node_fail(reading, node, ATTN_ERR_VALUE, "is empty");
    if (count > BATCH_MAX)
        return node_fail(reading, node, ATTN_ERR_TOO_LARGE, "has %zu items; at most %d are possible", count, BATCH_MAX);
    if (*batch != 0 && *batch != count)
        return node_fail(reading, node, ATTN_ERR_SHAPE, "has %zu items, and the inputs before it have %zu", count,
                         *batch);
    *batch = count;
    return ATTN_OK;
}

/* const struct text_span *: a text, or a list of one text for each item */
static attn_status decode_texts(struct reading *reading, const struct node *node, void *to)
{
    struct node list = *node;
    const char *at;
    size_t length;
    const bool is_one = node_string(reading, node, &at, &length);
    if (!is_one)
        node_decode_list(reading, node, "a text, or a list of texts, one for each item", &list);
    const size_t count = is_one ? 1 : json_array_size(list.json);
    set_batch(reading, node, count);
    struct text_span *spans = node_take(reading, node, count, sizeof *spans);
    for (size_t i = 0; i < count && !node_has_failed(reading); i++) {
        const struct node element = is_one ? *node : node_element(&list, i);
        decode_string(reading, &element, "a string of text", &spans[i]);
    }
    *(const struct text_span **)to = spans;
    if (!is_one)
        json_decref(list.json);
    return reading->status;
}

static void decode_row(struct reading *reading, const struct node *row, struct model_ids *ids)
{
    const size_t count = json_array_size(row->json);
    if (!json_is_array(row->json))
        node_fail_type(reading, row, "a list of ids");
    int64_t *items = node_take(reading, row, count, sizeof *items);
    for (size_t i = 0; i < count && !node_has_failed(reading); i++) {
        const struct node element = node_element(row, i);
        node_decode_integer(reading, &element, 0, INT32_MAX, &items[i]);
    }
    *ids = (struct model_ids){items, count};
}

/* const struct model_ids *: a list of ids, or a list of one such list for each item */
static attn_status decode_ids_lists(struct reading *reading, const struct node *node, void *to)
{
    struct node list;
    node_decode_list(reading, node, "a list of ids, or a list of such lists, one for each item", &list);
    const bool is_one = !json_is_array(json_array_get(list.json, 0));
    const size_t count = is_one ? 1 : json_array_size(list.json);
    set_batch(reading, node, count);
    struct model_ids *rows = node_take(reading, node, count, sizeof *rows);
    for (size_t i = 0; i < count && !node_has_failed(reading); i++) {
        const struct node row = is_one ? list : node_element(&list, i);
        decode_row(reading, &row, &rows[i]);
    }
    *(const struct model_ids **)to = rows;
    json_decref(list.json);
    return reading->status;
}

/* The tensor of one item gets the axis of the batch. */
static attn_status decode_batched(struct reading *reading, const struct node *node, int rank, const char *shape,
                                  const attn_tensor **tensor)
{
    decode_tensor(reading, node, tensor);
    attn_tensor *batched = node_take(reading, node, 1, sizeof *batched);
    if (node_has_failed(reading))
        return reading->status;
    size_t sizes[ATTN_MAX_RANK] = {1};
    const int missing = rank - (*tensor)->rank;
    if (missing != 0 && missing != 1)
        return node_fail(reading, node, ATTN_ERR_SHAPE, "must be %s, received %d dimensions", shape, (*tensor)->rank);
    memcpy(sizes + missing, (*tensor)->shape, (size_t)(*tensor)->rank * sizeof *sizes);
    *batched = attn_tensor_view((*tensor)->data, (*tensor)->dtype, rank, sizes);
    *tensor = batched;
    if (attn_tensor_count(batched) == 0)
        return node_fail(reading, node, ATTN_ERR_SHAPE, "has a dimension of 0");
    return set_batch(reading, node, sizes[0]);
}

static attn_status decode_pixels(struct reading *reading, const struct node *node, void *to)
{
    return decode_batched(reading, node, 4, "(batch, channels, height, width)", to);
}

/* The bytes that a text of base64 encodes; what says what they are. */
static attn_status decode_bytes(struct reading *reading, const struct node *node, const char *what, void **bytes,
                                size_t *count)
{
    const char *text;
    size_t length, bad;
    struct pace pace = pace_begin(reading->arena);
    if (!node_string(reading, node, &text, &length))
        return node_fail_type(reading, node, what);
    if (!base64_decoded_length(text, length, count))
        return node_fail(reading, node, ATTN_ERR_VALUE, "is not base64: its length or its padding is wrong");
    *bytes = node_take(reading, node, *count, 1);
    if (*bytes == NULL || base64_decode(*bytes, text, length, &pace, &bad))
        return reading->status;
    return attn_arena_is_cancelled(reading->arena)
               ? node_fail(reading, node, ATTN_ERR_CANCELLED, "was not read to its end: cancelled")
               : node_fail(reading, node, ATTN_ERR_VALUE, "is not base64: character %zu is wrong", bad);
}

static void decode_wav(struct reading *reading, const struct node *node, attn_tensor *samples)
{
    void *file = NULL;
    size_t bytes = 0;
    attn_error why = {.message = ""};
    if (decode_bytes(reading, node, "a WAV file as base64", &file, &bytes) != ATTN_OK)
        return;
    const attn_status status = wav_read(file, bytes, *decoder_of(reading)->compute, reading->arena, samples, &why);
    if (status != ATTN_OK)
        node_fail(reading, node, status, "%s", why.message);
}

/* One WAV file, or a list of one for each item. */
static attn_status decode_wavs(struct reading *reading, const struct node *node, bool is_one, const attn_tensor **audio)
{
    const size_t count = is_one ? 1 : json_array_size(node->json);
    set_batch(reading, node, count);
    attn_tensor *items = node_take(reading, node, count, sizeof *items);
    for (size_t i = 0; i < count && !node_has_failed(reading); i++) {
        const struct node element = is_one ? *node : node_element(node, i);
        decode_wav(reading, &element, &items[i]);
    }
    *audio = items;
    return reading->status;
}

/* {"dtype": "int16", "shape", "base64"}: samples of one item or of a batch, little-endian. */
static attn_status decode_samples_of_16_bits(struct reading *reading, const struct node *node,
                                             const attn_tensor **audio)
{
    static const struct member members[] = {{.name = "dtype"}, {.name = "shape"}, {.name = "base64"}};
    const struct node shape = node_member(node, "shape"), text = node_member(node, "base64");
    const attn_tensor *lengths;
    void *bytes = NULL;
    size_t count = 0;
    if (node_check_members(reading, node, members, ARRAY_LENGTH(members)) != ATTN_OK)
        return reading->status;
    if (shape.json == NULL || text.json == NULL)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"%s\": samples of 16 bits are shape, dtype and base64",
                         shape.json == NULL ? "shape" : "base64");
    if (decode_counts(reading, &shape, &lengths) != ATTN_OK ||
        decode_bytes(reading, &text, "samples of 16 bits as base64", &bytes, &count) != ATTN_OK)
        return reading->status;
    const int64_t *size = lengths->data, last = lengths->shape[0] > 0 ? size[lengths->shape[0] - 1] : 0;
    const size_t batch = lengths->shape[0] == 2 && size[0] > 0 ? (size_t)size[0] : 1;
    if (lengths->rank != 1 || lengths->shape[0] > 2 || last < 1 || count % (2 * batch) != 0 ||
        count / (2 * batch) != (size_t)last)
        return node_fail(reading, &shape, ATTN_ERR_SHAPE, "must be [samples] or [batch, samples] of %zu samples in all",
                         count / 2);
    set_batch(reading, node, batch);
    attn_tensor *items = node_take(reading, node, batch, sizeof *items);
    for (size_t i = 0; i < batch && !node_has_failed(reading); i++)
        node_note(reading, wav_samples((const char *)bytes + count / batch * i, (size_t)last,
                                       *decoder_of(reading)->compute, reading->arena, &items[i], reading->err));
    *audio = items;
    return reading->status;
}

static attn_status decode_audio(struct reading *reading, const struct node *node, void *to)
{
    const attn_tensor **audio = to, *all;
    const char *text;
    size_t length;
    const bool is_one = node_string(reading, node, &text, &length);
    if (is_one || (node_lifted(reading, node) == NULL && node_first_string(reading, node, &text, &length)))
        return decode_wavs(reading, node, is_one, audio);
    const struct node dtype = node_member(node, "dtype");
    if (json_tree_word(dtype.json) != NULL && strcmp(json_tree_word(dtype.json), "int16") == 0)
        return decode_samples_of_16_bits(reading, node, audio);
    decode_batched(reading, node, 2, "(samples) or (batch, samples)", &all);
    const size_t batch = *((struct model_decoder *)reading)->batch;
    attn_tensor *items = node_take(reading, node, batch, sizeof *items);
    for (size_t i = 0; i < batch && !node_has_failed(reading); i++)
        items[i] = attn_tensor_view((char *)all->data + i * all->shape[1] * attn_dtype_bytes(all->dtype), all->dtype, 1,
                                    &all->shape[1]);
    *audio = items;
    return reading->status;
}

static attn_status decode_features(struct reading *reading, const struct node *node, void *to)
{
    return decode_batched(reading, node, 3, "(mels, frames) or (batch, mels, frames)", to);
}

static attn_status decode_embeddings(struct reading *reading, const struct node *node, void *to)
{
    return decode_batched(reading, node, 3, "(len, d_model) or (batch, len, d_model)", to);
}

static const struct member input_members[] = {
    {"text", decode_texts, offsetof(struct model_inputs, text), MEMBER_ALWAYS},
    {"ids", decode_ids_lists, offsetof(struct model_inputs, ids), MEMBER_ALWAYS},
    {"pixels", decode_pixels, offsetof(struct model_inputs, pixels), MEMBER_OF_RUNS},
    {"audio", decode_audio, offsetof(struct model_inputs, audio), MEMBER_OF_RUNS},
    {"features", decode_features, offsetof(struct model_inputs, features), MEMBER_OF_RUNS},
    {"embeddings", decode_embeddings, offsetof(struct model_inputs, embeddings), MEMBER_OF_RUNS},
    {"pair", decode_texts, offsetof(struct model_inputs, pair), MEMBER_ALWAYS},
    {"target", decode_texts, offsetof(struct model_inputs, target), MEMBER_OF_RUNS},
    {"target_ids", decode_ids_lists, offsetof(struct model_inputs, target_ids), MEMBER_OF_RUNS},
};

static const struct member_table input_table = {"inputs", input_members, ARRAY_LENGTH(input_members)};

static attn_status check_inputs(struct reading *reading, const struct node *node, const struct model_inputs *inputs)
{
    const int given = (inputs->text != NULL) + (inputs->ids != NULL) + (inputs->pixels != NULL) +
                      (inputs->audio != NULL) + (inputs->features != NULL) + (inputs->embeddings != NULL);
    const bool is_run = reading->scopes >> MEMBER_OF_RUNS & 1;
    const struct node pair = node_member(node, "pair"), target_ids = node_member(node, "target_ids");
    if (given != 1)
        return node_fail(reading, node, ATTN_ERR_FIELD, "must have one of %s, and has %d",
                         is_run ? "\"text\", \"ids\", \"pixels\", \"audio\", \"features\" and \"embeddings\""
                                : "\"text\" and \"ids\"",
                         given);
    if (pair.json != NULL && inputs->text == NULL)
        return node_fail(reading, &pair, ATTN_ERR_FIELD, "is a second segment of \"text\", which is not given");
    if (inputs->target != NULL && inputs->target_ids != NULL)
        return node_fail(reading, &target_ids, ATTN_ERR_FIELD, "does not go with \"target\": give one of them");
    return reading->status;
}

static attn_status decode_model_inputs(struct reading *reading, const struct node *node, void *to)
{
    struct model_inputs *inputs = to;
    if (!json_is_object(node->json))
        return node_fail_type_with(reading, node, "an object", "a text is inputs.text, and ids are inputs.ids");
    node_decode_members(reading, node, input_members, ARRAY_LENGTH(input_members), inputs);
    return check_inputs(reading, node, inputs);
}

/* ---- options ---- */

/* struct model_request: a name of a result of the model, or of a step of its layers */
static attn_status decode_result(struct reading *reading, const struct node *node, struct model_request *request)
{
    const char *name = json_tree_word(node->json);
    if (name == NULL)
        return node_fail_type(reading, node, "the name of a result, such as \"attention\"");
    const bool differentiates = reading->scopes >> MEMBER_OF_GRADIENTS & 1;
    const model_request_kind kind = differentiates ? MODEL_REQUEST_GRADIENTS : MODEL_REQUEST_ATTENTION;
    const char *elsewhere = reading->elsewhere[differentiates ? MEMBER_OF_MAPS : MEMBER_OF_GRADIENTS];
    for (size_t i = 0; i < ARRAY_LENGTH(result_names); i++)
        if (strcmp(name, result_names[i]) == 0) {
            request->results |= (uint32_t)1 << i;
            return model_result_belongs((model_result_kind)i, kind)
                       ? ATTN_OK
                       : node_fail(reading, node, ATTN_ERR_FIELD, "is \"%s\", which %s", name, elsewhere);
        }
    const attn_step step = attn_step_from_name(name);
    if (differentiates && step != ATTN_STEP_ATTENTION)
        return node_fail_value(reading, node, "\"attention\", \"embedding\", \"attention_gradient\" or \"integrated\"");
    if (step == ATTN_STEP_COUNT)
        return node_fail_value(
            reading, node,
            "\"hidden\", \"output\", \"features\", \"logits\", \"classes\", \"embedding\", \"word_times\", \"rollout\", "
            "\"head_scores\", \"experts\", \"predictions\", \"logit_lens\", \"word_scores\", \"attribution\", \"sweep\", "
            "\"generated\", or the name of a "
            "step, such as \"attention\"");
    request->common.request.options.want |= ATTN_STEP_BIT(step);
    return ATTN_OK;
}

static attn_status decode_results(struct reading *reading, const struct node *node, void *to)
{
    struct model_request *request = to;
    struct node spelt = *node, list;
    short_form_spell(reading, &spelt, &names_form);
    node_decode_list(reading, &spelt, names_form.wanted, &list);
    request->common.request.options.want = 0;
    for (size_t i = 0; i < json_array_size(list.json) && !node_has_failed(reading); i++) {
        const struct node element = node_element(&list, i);
        decode_result(reading, &element, request);
    }
    if (request->common.request.options.want == 0 && request->results == 0)
        node_fail(reading, node, ATTN_ERR_VALUE, "is empty: name at least one result, such as \"attention\"");
    json_decref(list.json);
    return reading->status;
}

static attn_status decode_layers(struct reading *reading, const struct node *node, void *to)
{
    struct model_request *request = to;
    return decode_selection(reading, node, &request->layer_list, &request->layers);
}

static void decode_ablation(struct reading *reading, const struct node *node, struct model_ablation *ablation)
{
    const struct node first = node_element(node, 0), second = node_element(node, 1);
    if (!json_is_array(node->json) || json_array_size(node->json) != 2)
        node_fail_type(reading, node, "a pair [layer, head]");
    node_decode_integer(reading, &first, -INDEX_MAX, INDEX_MAX, &ablation->layer);
    node_decode_integer(reading, &second, -INDEX_MAX, INDEX_MAX, &ablation->head);
}

static attn_status decode_ablate(struct reading *reading, const struct node *node, void *to)
{
    struct model_request *request = to;
    struct node list;
    node_decode_list(reading, node, "a list of pairs [layer, head]", &list);
    const size_t count = json_array_size(list.json);
    if (count > ABLATIONS_MAX)
        node_fail(reading, node, ATTN_ERR_TOO_LARGE, "has %zu pairs; at most %d are possible", count, ABLATIONS_MAX);
    struct model_ablation *all = node_take(reading, node, count, sizeof *all);
    for (size_t i = 0; i < count && !node_has_failed(reading); i++) {
        const struct node element = node_element(&list, i);
        decode_ablation(reading, &element, &all[i]);
    }
    request->ablate = all;
    request->ablations = count;
    json_decref(list.json);
    return reading->status;
}

static attn_status decode_predictions_k(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, PREDICTIONS_MAX, to);
}

static attn_status decode_steps(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, STEPS_MAX, to);
}

static attn_status decode_new_tokens(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, NEW_TOKENS_MAX, to);
}

/* compute comes first: the inputs are read in this type. */
static const struct member option_members[] = {
    {"compute", decode_compute, COMMON(request.options), MEMBER_OF_RUNS},
    {"return", decode_results, 0, MEMBER_OF_RUNS},
    {"layers", decode_layers, 0, MEMBER_OF_RUNS},
    {"heads", decode_heads, offsetof(struct model_request, common), MEMBER_OF_RUNS},
    {"queries", decode_queries, offsetof(struct model_request, common), MEMBER_OF_RUNS},
    {"keys", decode_keys, offsetof(struct model_request, common), MEMBER_OF_RUNS},
    {"format", decode_format, COMMON(form), MEMBER_OF_RUNS},
    {"digits", decode_digits, COMMON(digits), MEMBER_OF_RUNS},
    {"pool", decode_pool, COMMON(reduction), MEMBER_OF_MAPS},
    {"top_k", decode_extent, COMMON(reduction.top_k), MEMBER_OF_MAPS},
    {"dtype", decode_map_dtype, COMMON(reduction), MEMBER_OF_MAPS},
    {"view", decode_view, offsetof(struct model_request, common), MEMBER_OF_MAPS},
    {"ablate", decode_ablate, 0, MEMBER_OF_MAPS},
    {"words", decode_given_words, offsetof(struct model_request, words), MEMBER_OF_MAPS},
    {"interventions", decode_interventions, offsetof(struct model_request, interventions), MEMBER_OF_MAPS},
    {"sweep", decode_sweep, offsetof(struct model_request, sweep), MEMBER_OF_MAPS},
    {"metric", decode_metric, offsetof(struct model_request, metric), MEMBER_OF_RUNS},
    {"steps", decode_steps, offsetof(struct model_request, steps), MEMBER_OF_GRADIENTS},
    {"baseline", decode_baseline, offsetof(struct model_request, baseline), MEMBER_OF_GRADIENTS},
    {"predictions_k", decode_predictions_k, offsetof(struct model_request, predictions_k), MEMBER_OF_MAPS},
    {"new_tokens", decode_new_tokens, offsetof(struct model_request, new_tokens), MEMBER_OF_MAPS},
    {"stop", decode_stops, offsetof(struct model_request, stop), MEMBER_OF_MAPS},
    {"truncate", node_decode_bool, offsetof(struct model_request, truncate), MEMBER_ALWAYS},
    {"special_tokens", node_decode_bool, offsetof(struct model_request, has_special_tokens), MEMBER_ALWAYS},
};

static const struct member_table option_table = {"options", option_members, ARRAY_LENGTH(option_members)};

/* Other programs call the number of predicted words top_k. */
static void check_top_k(struct reading *reading, const struct node *node, const struct model_request *request)
{
    const uint32_t words = 1U << MODEL_PREDICTIONS | 1U << MODEL_LOGIT_LENS;
    const struct node top_k = node_member(node, "top_k");
    if (top_k.json != NULL && (request->results & words) != 0 && request->common.request.options.want == 0)
        node_fail(reading, &top_k, ATTN_ERR_FIELD,
                  "selects weights of maps; options.predictions_k is the number of predicted words");
}

/* Words are an option of three results, two of which need them. */
static void check_words(struct reading *reading, const struct node *node, const struct model_request *request)
{
    const struct node words = node_member(node, "words"), wanted = node_member(node, "return");
    const bool has_words = request->words.items != NULL || request->words.is_next;
    const uint32_t need = 1U << MODEL_WORD_SCORES | 1U << MODEL_ATTRIBUTION;
    if (has_words && !(request->results & (need | 1U << MODEL_LOGIT_LENS)))
        node_fail(reading, &words, ATTN_ERR_FIELD,
                  "is for \"word_scores\", \"attribution\" and \"logit_lens\": name one of them in options.return");
    if (!has_words && request->results & need)
        node_fail(reading, &wanted, ATTN_ERR_FIELD,
                  "has \"%s\", which needs options.words: a list of texts or ids, or \"next\"",
                  result_names[request->results >> MODEL_WORD_SCORES & 1 ? MODEL_WORD_SCORES : MODEL_ATTRIBUTION]);
}

/* What is generated goes with the number of new tokens. */
static void check_new_tokens(struct reading *reading, const struct node *node, const struct model_request *request)
{
    const struct node stop = node_member(node, "stop"), wanted = node_member(node, "return");
    const struct node changes[] = {node_member(node, "ablate"), node_member(node, "interventions")};
    if (request->new_tokens == 0 && stop.json != NULL)
        node_fail(reading, &stop, ATTN_ERR_FIELD, "ends what options.new_tokens generates, which is not given");
    if (request->new_tokens == 0 && request->results >> MODEL_GENERATED & 1)
        node_fail(reading, &wanted, ATTN_ERR_FIELD, "has \"generated\", which needs options.new_tokens");
    for (size_t i = 0; i < ARRAY_LENGTH(changes); i++)
        if (request->new_tokens > 0 && (request->ablations > 0 || request->interventions.count > 0) &&
            changes[i].json != NULL)
            node_fail(reading, &changes[i], ATTN_ERR_FIELD,
                      "does not go with options.new_tokens: generate first, and send the ids with it");
}

/* A sweep, what it measures, and its result go together. */
static void check_sweep(struct reading *reading, const struct node *node, const struct model_request *request)
{
    const struct node sweep = node_member(node, "sweep"), metric = node_member(node, "metric"),
                      wanted = node_member(node, "return");
    const bool is_wanted = request->results >> MODEL_SWEEP & 1, has_metric = request->metric.words.items != NULL;
    if (is_wanted && !request->sweep.is_swept)
        node_fail(reading, &wanted, ATTN_ERR_FIELD, "has \"sweep\", which needs options.sweep");
    if (is_wanted && !has_metric)
        node_fail(reading, &wanted, ATTN_ERR_FIELD,
                  "has \"sweep\", which needs options.metric: the words that it measures");
    if (!is_wanted && request->sweep.is_swept)
        node_fail(reading, &sweep, ATTN_ERR_FIELD, "is for \"sweep\": name it in options.return");
    if (!is_wanted && has_metric)
        node_fail(reading, &metric, ATTN_ERR_FIELD, "is for \"sweep\": name it in options.return");
}

/* Steps and a baseline belong to one of the gradients. */
static void check_gradients(struct reading *reading, const struct node *node, const struct model_request *request)
{
    const struct node integrates[] = {node_member(node, "steps"), node_member(node, "baseline")};
    for (size_t i = 0; i < ARRAY_LENGTH(integrates); i++)
        if (integrates[i].json != NULL && !(request->results >> MODEL_INTEGRATED & 1))
            node_fail(reading, &integrates[i], ATTN_ERR_FIELD, "is for \"integrated\": name it in options.return");
}

static attn_status decode_model_options(struct reading *reading, const struct node *node, void *to)
{
    struct model_request *request = to;
    const struct node wanted = node_member(node, "return");
    node_decode_members(reading, node, option_members, ARRAY_LENGTH(option_members), request);
    if (request->common.view != ENVELOPE_VIEW_NONE && request->results != 0)
        node_fail(reading, &wanted, ATTN_ERR_FIELD, "does not go with options.view, which shows the attention");
    check_words(reading, node, request);
    check_new_tokens(reading, node, request);
    if (reading->scopes >> MEMBER_OF_GRADIENTS & 1)
        check_gradients(reading, node, request);
    else
        check_sweep(reading, node, request);
    check_top_k(reading, node, request);
    check_shown(reading, node, &request->common);
    return reading->status;
}

/* ---- the whole ---- */

static void decode_root(struct reading *reading, json_t *tree, struct model_request *request)
{
    static const struct member members[] = {
        {"options", decode_model_options, 0, MEMBER_ALWAYS},
        {"inputs", decode_model_inputs, INPUT(batch), MEMBER_ALWAYS},
    };
    const struct node root = {.json = tree};
    if (!json_is_object(tree))
        node_fail_type(reading, &root, "a JSON object");
    node_check_members(reading, &root, members, ARRAY_LENGTH(members));
    if (request->inputs.batch == 0 && !node_find(tree, "inputs"))
        node_fail(reading, &root, ATTN_ERR_FIELD, "has no \"inputs\"");
    node_decode_members(reading, &root, members, ARRAY_LENGTH(members), request);
    const struct node options = {.parent = &root, .name = "options"};
    if (reading->scopes >> MEMBER_OF_GRADIENTS & 1 && request->metric.words.items == NULL && !node_has_failed(reading))
        node_fail(reading, &options, ATTN_ERR_FIELD,
                  "has no \"metric\": the words whose score is differentiated, such as {\"words\": [\"Mary\"]}");
}

static attn_status decode_request(const struct envelope_source *source, model_request_kind kind,
                                  const struct model_inputs *inputs, attn_arena *arena, struct model_request *request,
                                  attn_error *err)
{
    static const struct member_table *const sections[] = {&input_table, &option_table, NULL};
    static const char *const elsewhere[] = {[MEMBER_OF_RUNS] = "belongs to /attention of the same model",
                                            [MEMBER_OF_MAPS] = "belongs to /attention of the same model",
                                            [MEMBER_OF_GRADIENTS] = "belongs to /gradients of the same model"};
    static const unsigned scopes[] = {
        [MODEL_REQUEST_ATTENTION] = 1U << MEMBER_OF_RUNS | 1U << MEMBER_OF_MAPS,
        [MODEL_REQUEST_GRADIENTS] = 1U << MEMBER_OF_RUNS | 1U << MEMBER_OF_GRADIENTS,
        [MODEL_REQUEST_TOKENS] = 0,
    };
    struct document document;
    *request = (struct model_request){
        .inputs = *inputs, .predictions_k = PREDICTIONS_K, .steps = STEPS, .has_special_tokens = true};
    envelope_set_defaults(&request->common, ENVELOPE_LAYER);
    request->common.request.options.want = ATTN_STEP_BIT(ATTN_STEP_ATTENTION);
    struct model_decoder decoder = {
        .common = decoder_begin(ENVELOPE_LAYER, &request->common.request.options.compute, arena, err),
        .batch = &request->inputs.batch};
    struct reading *reading = &decoder.common.reading;
    reading->sections = sections;
    reading->elsewhere = elsewhere;
    reading->foreign = model_words;
    reading->silent = "inputs";
    reading->scopes = scopes[kind];
    decoder.common.texts_place = "a text is inputs.text";
    if (decoder_open(&decoder.common, source, &document) == ATTN_OK)
        decode_root(reading, document.tree, request);
    document_close(&document);
    return reading->status;
}

attn_status model_request_decode(const char *text, size_t length, model_request_kind kind, attn_arena *arena,
                                 struct model_request *request, attn_error *err)
{
    const struct envelope_source source = {.text = text, .length = length};
    return decode_request(&source, kind, &(struct model_inputs){.batch = 0}, arena, request, err);
}

attn_status model_request_decode_safetensors(const char *body, size_t bytes, model_request_kind kind, attn_arena *arena,
                                             struct model_request *request, attn_error *err)
{
    struct envelope_source file;
    attn_status status = envelope_open_safetensors(body, bytes, arena, &file, err);
    if (status != ATTN_OK)
        return status;
    status = decode_request(&file, kind, &(struct model_inputs){.batch = 0}, arena, request, err);
    return envelope_name_text(status, err);
}

attn_status model_request_decode_options(const char *text, size_t length, const struct model_inputs *inputs,
                                         attn_arena *arena, struct model_request *request, attn_error *err)
{
    if (inputs->batch > BATCH_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, "/inputs", "/inputs has %zu items; at most %d are possible",
                         inputs->batch, BATCH_MAX);
    const struct envelope_source source = {.text = text, .length = length};
    return decode_request(&source, MODEL_REQUEST_ATTENTION, inputs, arena, request, err);
}

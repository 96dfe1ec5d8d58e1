/* make.c: turns the inputs of a request into what a model runs on. */
#include "service/run/batch/batch.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/model.h"

#include "codec/bytes/outcome.h"
#include "codec/bytes/pace.h"

/* A batch while it is made. */
struct making {
    struct model_batch *batch;
    const struct model_version *version;
    const struct model_request *request;
    model_request_kind kind;
    struct outcome *outcome;
};

/* ---- errors ---- */

enum { FIELD_MAX = 64 };

/* "/inputs/text", or "/inputs/text/2" in a batch. */
static const char *name_item(const struct making *making, const char *member, size_t item, char field[FIELD_MAX])
{
    if (making->request->inputs.batch > 1)
        snprintf(field, FIELD_MAX, "/inputs/%s/%zu", member, item);
    else
        snprintf(field, FIELD_MAX, "/inputs/%s", member);
    return field;
}

static bool fail_cancelled(const struct making *making)
{
    return outcome_fail(making->outcome, ATTN_ERR_CANCELLED, NULL, "cancelled while the inputs of the model were read");
}

/* Adds to the failure that was just recorded what was expected and what came. */
static bool expect(const struct making *making, const char *expected, const char *received)
{
    attn_expect(making->outcome->err, expected, received);
    return false;
}

static bool fail_length(const struct making *making, const char *field, size_t count)
{
    const size_t longest = making->version->model.longest;
    char expected[64], received[64];
    snprintf(expected, sizeof expected, "\"at most %zu tokens\"", longest);
    snprintf(received, sizeof received, "\"%zu tokens\"", count);
    outcome_fail(making->outcome, ATTN_ERR_VALUE, field,
                 "%s has %zu tokens, and the model takes at most %zu: send fewer, or set options.truncate to true",
                 field, count, longest);
    return expect(making, expected, received);
}

/* Checks the number of tokens of a sequence, and shortens it where the request allows it. */
static bool check_length(const struct making *making, const char *field, size_t *count)
{
    const size_t longest = making->version->model.longest;
    if (making->kind == MODEL_REQUEST_ATTENTION && *count == 0) {
        outcome_fail(making->outcome, ATTN_ERR_VALUE, field, "%s gives no token: a model needs at least one", field);
        return expect(making, "\"at least 1 token\"", "\"0 tokens\"");
    }
    if (longest == 0 || *count <= longest)
        return true;
    if (making->request->truncate)
        *count = longest;
    return making->request->truncate || making->kind == MODEL_REQUEST_TOKENS || fail_length(making, field, *count);
}

/* ---- what the model takes ---- */

static const struct model_embedding *first_embedding(const struct making *making)
{
    return &making->version->model.stacks[0].embedding;
}

static bool need_tokenizer(const struct making *making, const char *field)
{
    const struct model_version *version = making->version;
    const bool is_broken = version->tokenizer_reason[0] != '\0';
    if (version->tokenizer != NULL)
        return true;
    return outcome_fail(
        making->outcome, ATTN_ERR_FIELD, field, "%s needs a tokenizer, and the model \"%s\" has none%s%s: %s", field,
        version->common.name, is_broken ? " that can be used: " : "", version->tokenizer_reason,
        making->kind == MODEL_REQUEST_TOKENS ? "give the model its tokenizer (docs/models.md)" : "give inputs.ids");
}

static bool need_target_pieces(const struct making *making, const char *field)
{
    const struct model_version *version = making->version;
    return !version->lacks_target ||
           outcome_fail(making->outcome, ATTN_ERR_FIELD, field,
                        "%s is cut by target.spm, which the folder of the model \"%s\" lacks: download it beside "
                        "source.spm, or give inputs.target_ids",
                        field, version->common.name);
}

/* What the first stack reads. */
enum reads { READS_WORDS, READS_IMAGES, READS_AUDIO };

static enum reads reads_of(const struct model_embedding *embedding)
{
    return embedding->words.data != NULL           ? READS_WORDS
           : embedding->second_kernel.data != NULL ? READS_AUDIO
                                                   : READS_IMAGES;
}

static bool need(const struct making *making, enum reads wanted, const char *field)
{
    static const char *const reads[] = {"tokens: give inputs.text or inputs.ids", "images: give inputs.pixels",
                                        "audio: give inputs.audio or inputs.features"};
    const enum reads has = reads_of(first_embedding(making));
    return has == wanted ||
           outcome_fail(making->outcome, ATTN_ERR_FIELD, field, "%s does not go with the model \"%s\", which reads %s",
                        field, making->version->common.name, reads[has]);
}

/* Whether the kinds of inputs go with the model. */
static bool check_kinds(const struct making *making)
{
    const struct model_inputs *inputs = &making->request->inputs;
    const char *target = inputs->target != NULL ? "/inputs/target" : "/inputs/target_ids";
    const bool runs = making->kind == MODEL_REQUEST_ATTENTION, has_text = inputs->text != NULL;
    const bool has_ids = inputs->ids != NULL;
    const bool is_ok = (!has_text || !runs || need(making, READS_WORDS, "/inputs/text")) &&
                       (!has_ids || !runs || need(making, READS_WORDS, "/inputs/ids")) &&
                       (!has_text || need_tokenizer(making, "/inputs/text")) &&
                       (!has_ids || runs || need_tokenizer(making, "/inputs/ids"));
    if (!is_ok || (inputs->target == NULL && inputs->target_ids == NULL))
        return is_ok;
    if (making->version->model.stack_count < 2)
        return outcome_fail(
            making->outcome, ATTN_ERR_FIELD, target,
            "%s is the input of a decoder behind an encoder, and the model \"%s\" has none: leave it out", target,
            making->version->common.name);
    if (inputs->target == NULL)
        return true;
    if (making->version->model.decoder_start_id < 0)
        return outcome_fail(making->outcome, ATTN_ERR_FIELD, target,
                            "%s needs decoder_start_token_id, which the model's configuration does not have: give "
                            "inputs.target_ids",
                            target);
    return need_tokenizer(making, target) && need_target_pieces(making, target);
}

/* ---- texts ---- */

/* The refusal of the tokenizer, at the text that it names. */
static bool fail_encode(const struct making *making, attn_status status, const char *member, size_t item)
{
    static const char of_pair[] = "the pair";
    const char *message = making->outcome->err->message;
    char field[FIELD_MAX];
    if (status == ATTN_ERR_NO_MEMORY || status == ATTN_ERR_CANCELLED)
        return outcome_note(making->outcome, status);
    name_item(making, text_begins(message, of_pair) ? "pair" : member, item, field);
    return outcome_fail(making->outcome, ATTN_ERR_VALUE, field, "%s: %s", field, message);
}

/* The tokens as a decoder reads them: behind the first id, and without the last token, which mBART has as the first. */
static void move_right(const struct making *making, struct tokenizer_output *output, struct model_sequence *sequence)
{
    const struct checkpoint_model *model = &making->version->model;
    if (output->count == 0)
        return;
    sequence->has_label = true;
    sequence->label = output->tokens[output->count - 1].id;
    const uint32_t start =
        model->starts_with_last ? output->tokens[output->count - 1].id : (uint32_t)model->decoder_start_id;
    memmove(output->tokens + 1, output->tokens, (output->count - 1) * sizeof *output->tokens);
    output->tokens[0] = (struct tokenizer_token){.id = start,
                                                 .segment = TOKENIZER_NO_SEGMENT,
                                                 .is_special = true,
                                                 .text = tokenizer_token(making->version->tokenizer, start)};
}

/* As "deu_Latn", "de_DE" and "__de__" are spelled; no piece of a text and no other special token is. */
static bool is_language(const struct tokenizer_token *token)
{
    const struct text_span text = token->text;
    return memchr(text.at, '_', text.length) != NULL && (isalpha((unsigned char)text.at[0]) || text.at[0] == '_');
}

/* A target that begins with a language has it in place of the one that its tokenizer adds, before the text or behind. */
static void choose_language(struct tokenizer_output *output)
{
    struct tokenizer_token *tokens = output->tokens;
    size_t first = 0, added = 0;
    while (first < output->count && tokens[first].segment == TOKENIZER_NO_SEGMENT)
        first++;
    while (added < output->count && !(tokens[added].segment == TOKENIZER_NO_SEGMENT && is_language(&tokens[added])))
        added++;
    if (first == output->count || added == output->count || !is_language(&tokens[first]))
        return;
    tokens[added] = tokens[first];
    output->count--;
    memmove(tokens + first, tokens + first + 1, (output->count - first) * sizeof *tokens);
}

/*
 * The tokenizer of a model of audio adds the first id itself. A text that spells it out loses what was added before it.
 * The end that was added is no input, but the label of the last token.
 */
static void begin_speech(const struct making *making, struct tokenizer_output *output, struct model_sequence *sequence)
{
    const struct checkpoint_model *model = &making->version->model;
    const uint32_t start = (uint32_t)model->decoder_start_id;
    size_t added = 0, own = 0;
    bool has_start = false;
    while (added < output->count && output->tokens[added].segment == TOKENIZER_NO_SEGMENT)
        has_start |= output->tokens[added++].id == start;
    for (size_t i = added; i < output->count; i++)
        own += output->tokens[i].id == start;
    if (own > 0) {
        output->count -= added;
        memmove(output->tokens, output->tokens + added, output->count * sizeof *output->tokens);
    }
    if (own == 0 && !has_start)
        move_right(making, output, sequence);
    else if (output->tokens[output->count - 1].id == model->end_id) {
        sequence->has_label = true;
        sequence->label = output->tokens[--output->count].id;
    }
}

/* The ids or the types of the tokens. NULL: one of them is not below limit. */
static const int64_t *take_numbers(const struct making *making, const char *field, bool are_types,
                                   const struct tokenizer_output *output, size_t limit)
{
    int64_t *numbers = outcome_take(making->outcome, output->count, sizeof *numbers);
    struct pace pace = pace_begin(making->outcome->arena);
    for (size_t i = 0; numbers != NULL && i < output->count; i++) {
        numbers[i] = are_types ? output->tokens[i].type_id : output->tokens[i].id;
        if (pace_stops(&pace, sizeof *output->tokens))
            fail_cancelled(making);
        else if ((size_t)numbers[i] >= limit)
            outcome_fail(making->outcome, ATTN_ERR_VALUE, field,
                         are_types ? "%s: the tokenizer gives type %" PRId64 ", and the model has %zu types: its "
                                     "tokenizer belongs to another model"
                                   : "%s: the tokenizer gives the id %" PRId64 ", and the model has %zu words: its "
                                     "tokenizer belongs to another model",
                         field, numbers[i], limit);
        if (outcome_has_failed(making->outcome))
            return NULL;
    }
    return numbers;
}

/* A model with one row of types ignores them. */
static bool set_numbers(const struct making *making, const char *field, size_t stack,
                        const struct tokenizer_output *output, struct model_sequence *sequence)
{
    const attn_tensor *words = &making->version->model.stacks[stack].embedding.words;
    const attn_tensor *types = &first_embedding(making)->types;
    const size_t limit = making->kind == MODEL_REQUEST_ATTENTION ? words->shape[0] : SIZE_MAX;
    sequence->count = output->count;
    sequence->ids = take_numbers(making, field, false, output, limit);
    if (sequence->ids != NULL && stack == 0 && types->data != NULL && types->shape[0] > 1)
        sequence->types = take_numbers(making, field, true, output, types->shape[0]);
    return !outcome_has_failed(making->outcome);
}

/* Room for what a reader should see of each token. NULL: there is none. */
static struct text_span *take_shown(struct model_batch *batch, struct outcome *outcome, size_t stack, size_t item)
{
    struct text_span *shown = outcome_take(outcome, batch->items[item].of[stack].count, sizeof *shown);
    batch->shown[stack][item] = shown;
    return shown;
}

static bool encode(const struct making *making, size_t stack, size_t item)
{
    const struct model_inputs *inputs = &making->request->inputs;
    const char *member = stack == 0 ? "text" : "target";
    struct model_sequence *sequence = &making->batch->items[item].of[stack];
    const struct tokenizer_input input = {.text = stack == 0 ? inputs->text[item] : inputs->target[item],
                                          .pair = stack == 0 && inputs->pair != NULL ? inputs->pair[item]
                                                                                     : (struct text_span){NULL, 0},
                                          .add_special = making->request->has_special_tokens || stack == 1,
                                          .max_length = making->request->truncate ? making->version->model.longest : 0,
                                          .truncate = making->request->truncate};
    struct tokenizer_output output;
    char field[FIELD_MAX];
    struct outcome *outcome = making->outcome;
    const struct tokenizer *tokenizer = model_version_tokenizer(making->version, stack);
    const attn_status status =
        tokenizer_encode(tokenizer, &input, outcome->arena, outcome->arena, &output, outcome->err);
    if (status != ATTN_OK)
        return fail_encode(making, status, member, item);
    name_item(making, member, item, field);
    if (stack == 1 && reads_of(first_embedding(making)) == READS_AUDIO)
        begin_speech(making, &output, sequence);
    else if (stack == 1) {
        choose_language(&output);
        move_right(making, &output, sequence);
    }
    making->batch->tokens[stack][item] = output.tokens;
    if (!check_length(making, field, &output.count) || !set_numbers(making, field, stack, &output, sequence))
        return false;
    struct text_span *shown = take_shown(making->batch, outcome, stack, item);
    return shown != NULL && outcome_note(outcome, tokenizer_show_text(tokenizer, &input, output.tokens, output.count,
                                                                      outcome->arena, shown, outcome->err));
}

/* ---- ids ---- */

/* The ids that may be asked for: those of the model, and in a request for tokens those of the tokenizer, too. */
static size_t count_ids(const struct making *making, size_t stack)
{
    const attn_tensor *words = &making->version->model.stacks[stack].embedding.words;
    const size_t own = words->data != NULL ? words->shape[0] : 0;
    if (making->kind == MODEL_REQUEST_ATTENTION)
        return own;
    const size_t spelled = tokenizer_vocabulary_size(making->version->tokenizer);
    return spelled > own ? spelled : own;
}

bool model_batch_set_ids(struct model_batch *batch, struct outcome *outcome, size_t stack, size_t item,
                         const int64_t *ids, size_t count)
{
    const struct tokenizer *tokenizer = batch->version->tokenizer;
    batch->items[item].of[stack] = (struct model_sequence){.count = count, .ids = ids};
    batch->tokens[stack][item] = NULL;
    if (tokenizer == NULL)
        return true;
    struct text_span *shown = take_shown(batch, outcome, stack, item);
    return shown != NULL &&
           outcome_note(outcome, tokenizer_show_ids(tokenizer, ids, count, outcome->arena, shown, outcome->err));
}

static bool take_ids(const struct making *making, size_t stack, size_t item)
{
    const struct model_inputs *inputs = &making->request->inputs;
    const struct model_ids *given = stack == 0 ? &inputs->ids[item] : &inputs->target_ids[item];
    const size_t limit = count_ids(making, stack);
    size_t count = given->count;
    char field[FIELD_MAX], expected[64], received[32];
    name_item(making, stack == 0 ? "ids" : "target_ids", item, field);
    for (size_t i = 0; i < given->count; i++) {
        if ((size_t)given->ids[i] < limit)
            continue;
        snprintf(expected, sizeof expected, "\"0 to %zu\"", limit - 1);
        snprintf(received, sizeof received, "%" PRId64, given->ids[i]);
        outcome_fail(making->outcome, ATTN_ERR_VALUE, field, "%s has the id %" PRId64 " at place %zu; ids are 0 to %zu",
                     field, given->ids[i], i, limit - 1);
        return expect(making, expected, received);
    }
    return check_length(making, field, &count) &&
           model_batch_set_ids(making->batch, making->outcome, stack, item, given->ids, count);
}

/* A head of classes behind a decoder: the decoder reads the input again, moved right, as transformers does. */
static bool repeat_input(const struct making *making, size_t item)
{
    const struct model_sequence *first = &making->batch->items[item].of[0];
    int64_t *ids = outcome_take(making->outcome, first->count, sizeof *ids);
    assert(first->ids != NULL && first->count > 0);
    if (ids == NULL)
        return false;
    const struct checkpoint_model *model = &making->version->model;
    size_t last = first->count - 1;
    while (last > 0 && first->ids[last] == model->pad_id)
        last--;
    ids[0] = model->starts_with_last ? first->ids[last] : model->decoder_start_id;
    memcpy(ids + 1, first->ids, (first->count - 1) * sizeof *ids);
    return model_batch_set_ids(making->batch, making->outcome, 1, item, ids, first->count);
}

/* ---- images and vectors ---- */

static attn_tensor item_of(const attn_tensor *batched, size_t item)
{
    assert(batched != NULL);
    const size_t bytes = attn_tensor_count(batched) / batched->shape[0] * attn_dtype_bytes(batched->dtype);
    return attn_tensor_view((char *)batched->data + item * bytes, batched->dtype, batched->rank - 1,
                            batched->shape + 1);
}

static bool fail_shape(const struct making *making, const char *field, const attn_tensor *tensor, const size_t *wanted,
                       const char *why)
{
    char expected[96], received[96];
    attn_shape_text(expected, sizeof expected, tensor->rank, wanted);
    attn_shape_text(received, sizeof received, tensor->rank, tensor->shape);
    outcome_fail(making->outcome, ATTN_ERR_SHAPE, field, "%s has shape %s, and must have %s: %s", field, received,
                 expected, why);
    return expect(making, expected, received);
}

/* A tensor of the request for the first stack, which has the shape that the model reads. */
static bool check_tensor(const struct making *making, enum reads reads, const char *field, const attn_tensor *tensor,
                         size_t rows, size_t columns, const char *why)
{
    const size_t wanted[] = {tensor->shape[0], first_embedding(making)->kernel.shape[1], rows, columns};
    return need(making, reads, field) && (memcmp(wanted, tensor->shape, (size_t)tensor->rank * sizeof *wanted) == 0 ||
                                          fail_shape(making, field, tensor, wanted, why));
}

static bool check_tensors(const struct making *making)
{
    const struct model_embedding *embedding = first_embedding(making);
    const struct model_inputs *inputs = &making->request->inputs;
    const attn_tensor *vectors = inputs->embeddings;
    const size_t width = embedding->words.data != NULL ? embedding->words.shape[1] : embedding->kernel.shape[0];
    if (inputs->pixels != NULL)
        return check_tensor(making, READS_IMAGES, "/inputs/pixels", inputs->pixels, embedding->image, embedding->image,
                            "images have the channels, height and width of the model");
    if (inputs->audio != NULL)
        return need(making, READS_AUDIO, "/inputs/audio");
    if (inputs->features != NULL)
        return check_tensor(making, READS_AUDIO, "/inputs/features", inputs->features, model_audio_frames(embedding), 0,
                            "the model takes so many mels and frames, and silence fills the rest of the frames");
    return vectors == NULL || vectors->shape[2] == width ||
           fail_shape(making, "/inputs/embeddings", vectors,
                      (const size_t[]){vectors->shape[0], vectors->shape[1], width},
                      "vectors have the width of the model's word table");
}

static struct model_sequence pixels_of(const struct making *making, size_t item)
{
    const struct model_embedding *embedding = first_embedding(making);
    const size_t side = embedding->image / embedding->kernel.shape[2];
    const size_t leading = embedding->leading.data != NULL ? embedding->leading.shape[0] : 0;
    return (struct model_sequence){.count = leading + side * side,
                                   .pixels = item_of(making->request->inputs.pixels, item)};
}

/* Samples are numbers from -1 to 1, or a little beyond. Those of 16 bits that nobody divided are larger. */
static bool check_samples(const struct making *making, const char *field, const attn_tensor *audio)
{
    enum { LARGEST = 8 };
    struct pace pace = pace_begin(making->outcome->arena);
    for (size_t i = 0; i < audio->shape[0]; i++) {
        const double sample =
            audio->dtype == ATTN_F32 ? (double)((const float *)audio->data)[i] : ((const double *)audio->data)[i];
        if (pace_stops(&pace, sizeof sample))
            return fail_cancelled(making);
        if (!(fabs(sample) <= LARGEST))
            return outcome_fail(making->outcome, ATTN_ERR_VALUE, field,
                                "%s has %g at place %zu; samples are from -1 to 1: divide integers of 16 bits by 32768",
                                field, sample, i);
    }
    return true;
}

static bool take_audio(const struct making *making, size_t item)
{
    const size_t frames = model_audio_frames(first_embedding(making)), most = frames * ATTN_AUDIO_HOP;
    attn_tensor audio = making->request->inputs.audio[item];
    char field[FIELD_MAX];
    name_item(making, "audio", item, field);
    if (audio.shape[0] == 0)
        return outcome_fail(making->outcome, ATTN_ERR_VALUE, field, "%s has no samples", field);
    if (audio.shape[0] > most && !making->request->truncate)
        return outcome_fail(making->outcome, ATTN_ERR_VALUE, field,
                            "%s has %zu samples (%.2f s), and the model takes at most %zu (%.2f s): send fewer, or set "
                            "options.truncate to true",
                            field, audio.shape[0], (double)audio.shape[0] / ATTN_AUDIO_RATE, most,
                            (double)most / ATTN_AUDIO_RATE);
    audio.shape[0] = audio.shape[0] < most ? audio.shape[0] : most;
    making->batch->items[item].of[0] = (struct model_sequence){.count = frames / 2, .audio = audio};
    return check_samples(making, field, &audio);
}

/* The longest sequence of a model of audio is one of words. */
static bool take_embeddings(const struct making *making, size_t item)
{
    attn_tensor vectors = item_of(making->request->inputs.embeddings, item);
    const bool is_limited = reads_of(first_embedding(making)) != READS_AUDIO;
    const bool is_ok = !is_limited || check_length(making, "/inputs/embeddings", &vectors.shape[0]);
    making->batch->items[item].of[0] = (struct model_sequence){.count = vectors.shape[0], .vectors = vectors};
    return is_ok;
}

/* ---- the batch ---- */

static bool take_first(const struct making *making, size_t item)
{
    const struct model_inputs *inputs = &making->request->inputs;
    if (inputs->text != NULL)
        return encode(making, 0, item);
    if (inputs->ids != NULL)
        return take_ids(making, 0, item);
    if (inputs->audio != NULL)
        return take_audio(making, item);
    if (inputs->embeddings != NULL)
        return take_embeddings(making, item);
    making->batch->items[item].of[0] =
        inputs->pixels != NULL ? pixels_of(making, item)
                               : (struct model_sequence){.count = model_audio_frames(first_embedding(making)) / 2,
                                                         .features = item_of(inputs->features, item)};
    return true;
}

static bool take_second(const struct making *making, size_t item)
{
    const struct model_inputs *inputs = &making->request->inputs;
    if (inputs->target != NULL)
        return encode(making, 1, item);
    if (inputs->target_ids != NULL)
        return take_ids(making, 1, item);
    return making->kind != MODEL_REQUEST_ATTENTION || !model_batch_has_target(making->version, inputs) ||
           repeat_input(making, item);
}

bool model_batch_has_target(const struct model_version *version, const struct model_inputs *inputs)
{
    const struct checkpoint_model *model = &version->model;
    if (inputs->target != NULL || inputs->target_ids != NULL)
        return true;
    return model->stack_count == 2 && model->has_head && model->head.is_of_classes && model->decoder_start_id >= 0 &&
           (size_t)model->decoder_start_id < model->stacks[1].embedding.words.shape[0] &&
           (inputs->text != NULL || inputs->ids != NULL);
}

static bool make_room(const struct making *making)
{
    struct model_batch *batch = making->batch;
    const size_t count = making->request->inputs.batch;
    *batch = (struct model_batch){.version = making->version, .inputs = &making->request->inputs};
    batch->items = outcome_take_zeroed(making->outcome, count, sizeof *batch->items);
    for (size_t stack = 0; stack < 2; stack++) {
        batch->tokens[stack] = outcome_take_zeroed(making->outcome, count, sizeof *batch->tokens[stack]);
        batch->shown[stack] = outcome_take_zeroed(making->outcome, count, sizeof *batch->shown[stack]);
    }
    return !outcome_has_failed(making->outcome);
}

attn_status model_batch_make(struct model_batch *batch, const struct model_version *version,
                             const struct model_request *request, model_request_kind kind, attn_arena *arena,
                             attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    const struct making making = {batch, version, request, kind, &outcome};
    const struct model_inputs *inputs = &request->inputs;
    bool goes_on = check_kinds(&making) && check_tensors(&making) && make_room(&making);
    for (size_t item = 0; item < inputs->batch && goes_on; item++)
        goes_on = take_first(&making, item) && take_second(&making, item);
    return outcome.status;
}

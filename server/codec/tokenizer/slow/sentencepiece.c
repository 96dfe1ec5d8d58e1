/* sentencepiece.c: the fields of a model of SentencePiece. Fields that are not read are skipped by their wire type. */
#include "codec/tokenizer/slow/parts.h"

#include <math.h>
#include <string.h>

/* ---- protocol buffers: encoding of the wire ---- */

enum wire { WIRE_NUMBER = 0, WIRE_EIGHT_BYTES = 1, WIRE_BYTES = 2, WIRE_FOUR_BYTES = 5 };

/* One field: a number, or bytes. */
struct field {
    uint64_t number; /* of the field */
    enum wire wire;
    uint64_t value;         /* of WIRE_NUMBER */
    struct text_span bytes; /* of the others */
};

static bool take_varint(struct text_span *rest, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && rest->length > 0; shift += 7) {
        const unsigned char byte = (unsigned char)*rest->at;
        *rest = (struct text_span){rest->at + 1, rest->length - 1};
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_bytes(struct text_span *rest, uint64_t length, struct text_span *bytes)
{
    if (length > rest->length)
        return false;
    *bytes = (struct text_span){rest->at, (size_t)length};
    *rest = (struct text_span){rest->at + length, rest->length - (size_t)length};
    return true;
}

/* Takes the next field off the front of a message. False: the message is damaged. */
static bool take_field(struct text_span *rest, struct field *field)
{
    uint64_t key, length = 0;
    *field = (struct field){.number = 0};
    if (!take_varint(rest, &key))
        return false;
    field->number = key >> 3;
    field->wire = (enum wire)(key & 7);
    switch (field->wire) {
    case WIRE_NUMBER:
        return take_varint(rest, &field->value);
    case WIRE_EIGHT_BYTES:
        return take_bytes(rest, 8, &field->bytes);
    case WIRE_BYTES:
        return take_varint(rest, &length) && take_bytes(rest, length, &field->bytes);
    case WIRE_FOUR_BYTES:
        return take_bytes(rest, 4, &field->bytes);
    }
    return false;
}

/* ---- the messages ---- */

enum { MODEL_PIECES = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_MODEL_TYPE = 3, TRAINER_BYTE_FALLBACK = 35 };
enum { NORMALIZER_CHARSMAP = 2, NORMALIZER_DUMMY_PREFIX = 3, NORMALIZER_EXTRA_SPACES = 4 };

typedef bool take_function(struct sentencepiece *model, const struct field *field);

static bool is_of(const struct field *field, uint64_t number, enum wire wire)
{
    return field->number == number && field->wire == wire;
}

/* Reads all fields of a message. */
static bool read_message(struct text_span rest, take_function *take, struct sentencepiece *model)
{
    struct field field;
    while (rest.length > 0)
        if (!take_field(&rest, &field) || !take(model, &field))
            return false;
    return true;
}

/* A field of the last piece. */
static bool take_of_piece(struct sentencepiece *model, const struct field *field)
{
    struct compose_token *piece = &model->pieces[model->count];
    if (is_of(field, PIECE_TEXT, WIRE_BYTES))
        piece->text = field->bytes;
    if (is_of(field, PIECE_SCORE, WIRE_FOUR_BYTES)) {
        const unsigned char *at = (const unsigned char *)field->bytes.at;
        const uint32_t bits = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        memcpy(&piece->score, &bits, sizeof bits);
    }
    if (is_of(field, PIECE_TYPE, WIRE_NUMBER)) {
        if (field->value < COMPOSE_NORMAL || field->value > COMPOSE_BYTE)
            return false;
        piece->kind = (enum compose_kind)field->value;
    }
    return true;
}

static bool take_of_trainer(struct sentencepiece *model, const struct field *field)
{
    if (is_of(field, TRAINER_MODEL_TYPE, WIRE_NUMBER))
        model->model_type = field->value;
    if (is_of(field, TRAINER_BYTE_FALLBACK, WIRE_NUMBER))
        model->byte_fallback = field->value != 0;
    return true;
}

static bool take_of_normalizer(struct sentencepiece *model, const struct field *field)
{
    if (is_of(field, NORMALIZER_CHARSMAP, WIRE_BYTES))
        model->charsmap = field->bytes;
    if (is_of(field, NORMALIZER_DUMMY_PREFIX, WIRE_NUMBER))
        model->add_dummy_prefix = field->value != 0;
    if (is_of(field, NORMALIZER_EXTRA_SPACES, WIRE_NUMBER))
        model->remove_extra_whitespaces = field->value != 0;
    return true;
}

static bool count_piece(struct sentencepiece *model, const struct field *field)
{
    model->count += is_of(field, MODEL_PIECES, WIRE_BYTES);
    return true;
}

static bool take_of_model(struct sentencepiece *model, const struct field *field)
{
    if (is_of(field, MODEL_TRAINER, WIRE_BYTES))
        return read_message(field->bytes, take_of_trainer, model);
    if (is_of(field, MODEL_NORMALIZER, WIRE_BYTES))
        return read_message(field->bytes, take_of_normalizer, model);
    if (!is_of(field, MODEL_PIECES, WIRE_BYTES))
        return true;
    if (model->count == model->room)
        return false; /* another program writes to the file */
    struct compose_token *piece = &model->pieces[model->count];
    *piece = (struct compose_token){.kind = COMPOSE_NORMAL};
    const bool is_well = read_message(field->bytes, take_of_piece, model) && piece->text.length > 0 &&
                         memchr(piece->text.at, '\0', piece->text.length) == NULL && isfinite(piece->score);
    model->count++;
    return is_well;
}

bool sentencepiece_read(struct text_span file, struct sentencepiece *model, struct outcome *outcome)
{
    *model = (struct sentencepiece){
        .model_type = SENTENCEPIECE_UNIGRAM, .add_dummy_prefix = true, .remove_extra_whitespaces = true};
    if (!read_message(file, count_piece, model) || model->count == 0)
        return outcome_fail(outcome, ATTN_ERR_SYNTAX, NULL, "is not a model of SentencePiece");
    if (model->count > VOCABULARY_IDS_MAX)
        return outcome_fail(outcome, ATTN_ERR_TOO_LARGE, NULL, "has %zu pieces; at most %d are possible", model->count,
                            VOCABULARY_IDS_MAX);
    model->pieces = outcome_take(outcome, model->count, sizeof *model->pieces);
    if (model->pieces == NULL)
        return false;
    model->room = model->count;
    model->count = 0;
    if (!read_message(file, take_of_model, model) || model->count != model->room)
        return outcome_fail(outcome, ATTN_ERR_SYNTAX, NULL, "has a piece that is damaged, with the id %zu",
                            model->count > 0 ? model->count - 1 : 0);
    if (model->model_type != SENTENCEPIECE_UNIGRAM && model->model_type != SENTENCEPIECE_BPE)
        return outcome_fail(outcome, ATTN_ERR_VALUE, NULL, "is of the type %llu; Unigram (1) and BPE (2) are supported",
                            (unsigned long long)model->model_type);
    return true;
}

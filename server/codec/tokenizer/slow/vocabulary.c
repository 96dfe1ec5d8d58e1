/* vocabulary.c: reads vocab.txt, vocab.json and the model of SentencePiece. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/bytes/utf8.h"
#include "codec/json/pieces.h"
#include "codec/tokenizer/model/kinds.h"
#include "codec/tokenizer/slow/parts.h"

bool slow_fail(const struct slow *slow, enum slow_file file, attn_status status, const char *format, ...)
{
    char message[sizeof slow->outcome->err->message];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    const char *name = slow->files->files[file].name;
    return outcome_fail(slow->outcome, status, NULL, "%.60s: %.500s", name != NULL ? name : "the tokenizer", message);
}

/* Adds a token whose text is copied. */
static bool add(struct slow *slow, enum slow_file file, const char *text, size_t length, size_t id)
{
    const char *copy = outcome_copy_text(slow->outcome, text, length);
    attn_error why = {.status = ATTN_OK};
    if (copy == NULL)
        return false;
    if (!utf8_is_valid(copy, length))
        return slow_fail(slow, file, ATTN_ERR_SYNTAX, "the token with the id %zu is not UTF-8", id);
    if (vocabulary_add(&slow->vocabulary, (struct text_span){copy, length}, (uint32_t)id, &why) == ATTN_OK)
        return true;
    return slow_fail(slow, file, why.status, "%.200s", why.message);
}

static bool create(struct slow *slow, enum slow_file file, size_t count, size_t size)
{
    attn_error why = {.status = ATTN_OK};
    if (size > VOCABULARY_IDS_MAX)
        return slow_fail(slow, file, ATTN_ERR_TOO_LARGE, "has more than %d tokens", VOCABULARY_IDS_MAX);
    if (vocabulary_create(&slow->vocabulary, count, size, slow->outcome->arena, &why) == ATTN_OK)
        return true;
    return slow_fail(slow, file, why.status, "%.200s", why.message);
}

/* ---- vocab.txt ---- */

bool slow_take_line(struct text_span *rest, struct text_span *line)
{
    if (rest->length == 0)
        return false;
    const char *end = memchr(rest->at, '\n', rest->length);
    const size_t length = end != NULL ? (size_t)(end - rest->at) : rest->length, taken = length + (end != NULL);
    *line = (struct text_span){rest->at, length > 0 && rest->at[length - 1] == '\r' ? length - 1 : length};
    *rest = (struct text_span){rest->at + taken, rest->length - taken};
    return true;
}

bool slow_read_lines(struct slow *slow)
{
    const struct text_span text = slow->files->files[SLOW_LINES].text;
    struct text_span rest = text, line;
    size_t count = 0;
    while (slow_take_line(&rest, &line))
        count++;
    bool is_well = create(slow, SLOW_LINES, count, count);
    rest = text;
    for (size_t id = 0; is_well && id < count && slow_take_line(&rest, &line); id++) {
        if (memchr(line.at, '\0', line.length) != NULL)
            is_well = slow_fail(slow, SLOW_LINES, ATTN_ERR_SYNTAX, "line %zu has U+0000", id + 1);
        else if (line.length > 0)
            is_well = add(slow, SLOW_LINES, line.at, line.length, id);
    }
    return is_well;
}

/* ---- vocab.json ---- */

bool slow_read_json(struct slow *slow)
{
    static const struct member_table *const no_sections[] = {NULL};
    static const struct node root;
    attn_error why = {.status = ATTN_OK};
    const struct text_span text = slow->files->files[SLOW_VOCAB].text;
    const struct skim whole = {.body = text.at, .body_length = text.length, .arena = slow->scratch};
    struct loading loading = {
        .reading = {.arena = slow->outcome->arena, .skim = &whole, .sections = no_sections, .err = &why},
        .scratch = slow->scratch,
        .vocab = json_collection_of(text),
    };
    if (loading.vocab.text.at == NULL || *loading.vocab.text.at != '{')
        return slow_fail(slow, SLOW_VOCAB, ATTN_ERR_SYNTAX, "is not a JSON object of ids by token");
    if (words_load(&loading, &root, 0, &slow->vocabulary) == ATTN_OK)
        return true;
    return slow_fail(slow, SLOW_VOCAB, loading.reading.status, "%.480s", why.message);
}

/* ---- SentencePiece ---- */

static bool add_words(struct slow *slow, const json_t *list, size_t id)
{
    const json_t *word;
    size_t i;
    json_array_foreach(list, i, word)
    {
        if (!add(slow, SLOW_PIECES, json_string_value(word), json_string_length(word), id + i))
            return false;
    }
    return true;
}

/* The score with which a piece is found: a piece of the user is taken wherever it stands, others than words never. */
static double score_of(const struct compose_token *piece, double highest)
{
    if (piece->kind == COMPOSE_USER_DEFINED)
        return (double)piece->text.length * highest - 0.1;
    return piece->kind == COMPOSE_NORMAL ? (double)piece->score : SLOW_NEVER;
}

static double highest_score(const struct sentencepiece *model)
{
    double highest = SLOW_NEVER;
    for (size_t i = 0; i < model->count; i++)
        if (model->pieces[i].kind == COMPOSE_NORMAL && (double)model->pieces[i].score > highest)
            highest = (double)model->pieces[i].score;
    return highest;
}

/* The ids of the pieces, which follow those of the head. */
static bool add_pieces(struct slow *slow)
{
    const struct sentencepiece *model = &slow->model;
    const json_t *before = json_object_get(slow->class, "head"), *behind = json_object_get(slow->class, "tail");
    const size_t skipped = (size_t)json_integer_value(json_object_get(slow->class, "skipped"));
    const size_t head = json_array_size(before), size = head + json_array_size(behind);
    if (model->count < skipped)
        return slow_fail(slow, SLOW_PIECES, ATTN_ERR_VALUE, "has %zu pieces, and its class %s needs %zu at the front",
                         model->count, json_tree_word(json_array_get(json_object_get(slow->class, "names"), 0)),
                         skipped);
    bool is_well =
        create(slow, SLOW_PIECES, size + model->count, size + model->count - skipped) && add_words(slow, before, 0);
    for (size_t i = skipped; i < model->count && is_well; i++)
        is_well = add(slow, SLOW_PIECES, model->pieces[i].text.at, model->pieces[i].text.length, head + i - skipped);
    return is_well && add_words(slow, behind, head + model->count - skipped);
}

/* Tokens that are no pieces are never found in a text. */
static bool set_scores(struct slow *slow)
{
    const double highest = highest_score(&slow->model);
    slow->scores = outcome_take(slow->outcome, slow->vocabulary.size, sizeof *slow->scores);
    if (slow->scores == NULL)
        return false;
    for (size_t i = 0; i < slow->vocabulary.size; i++)
        slow->scores[i] = SLOW_NEVER;
    for (size_t i = 0; i < slow->model.count; i++) {
        const struct compose_token *piece = &slow->model.pieces[i];
        const uint32_t id = vocabulary_find(&slow->vocabulary, piece->text.at, piece->text.length);
        if (id != VOCABULARY_NONE)
            slow->scores[id] = score_of(piece, highest);
    }
    return true;
}

static bool read_sentencepiece(struct slow *slow)
{
    attn_error why = {.status = ATTN_OK};
    struct outcome file = {.arena = slow->outcome->arena, .err = &why};
    if (!sentencepiece_read(slow->files->files[SLOW_PIECES].text, &slow->model, &file))
        return slow_fail(slow, SLOW_PIECES, why.status, "%.200s", why.message);
    return true;
}

bool slow_read_pieces(struct slow *slow)
{
    return read_sentencepiece(slow) && add_pieces(slow) && set_scores(slow);
}

bool slow_read_pieces_and_json(struct slow *slow)
{
    return read_sentencepiece(slow) && slow_read_json(slow) && set_scores(slow);
}

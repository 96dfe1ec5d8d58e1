/*
 * forms.c: the parts of a tokenizer.json: added tokens, the steps, and the model, which is WordPiece, BPE over bytes, or the
 * pieces of SentencePiece.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/base64.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/slow/parts.h"

static const char *bool_text(bool value)
{
    return value ? "true" : "false";
}

/* ---- added tokens ---- */

static void write_token(struct chunks *out, const struct slow_token *token, bool is_first)
{
    chunks_format(out, "%s{\"id\":%u,\"content\":", is_first ? "" : ",", (unsigned)token->id);
    chunks_json_span(out, token->text);
    chunks_format(out, ",\"single_word\":%s,\"lstrip\":%s,\"rstrip\":%s,\"normalized\":%s,\"special\":%s}",
                  bool_text(token->single_word), bool_text(token->lstrip), bool_text(token->rstrip),
                  bool_text(token->normalized), bool_text(token->special));
}

/* In BPE, pieces that the user of SentencePiece defined are found before all merges. */
static bool is_found_first(const struct slow *slow, size_t i)
{
    return slow->model.model_type == SENTENCEPIECE_BPE && slow->model.pieces[i].kind == COMPOSE_USER_DEFINED;
}

static int compare_ids(const void *a, const void *b)
{
    const struct slow_token *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* In the order of ids, as the loader wants tokens that the vocabulary does not have. */
bool slow_write_added(const struct slow *slow, struct chunks *out)
{
    size_t count = slow->token_count;
    for (size_t i = 0; i < slow->model.count; i++)
        count += is_found_first(slow, i);
    struct slow_token *tokens = outcome_take(slow->outcome, count, sizeof *tokens);
    if (tokens == NULL)
        return false;
    count = slow->token_count;
    memcpy(tokens, slow->tokens, count * sizeof *tokens);
    for (size_t i = 0; i < slow->model.count; i++) {
        const struct text_span text = slow->model.pieces[i].text;
        const uint32_t id =
            is_found_first(slow, i) ? vocabulary_find(&slow->vocabulary, text.at, text.length) : VOCABULARY_NONE;
        if (id != VOCABULARY_NONE && slow_token_find(slow, text) == NULL)
            tokens[count++] = (struct slow_token){.text = vocabulary_text(&slow->vocabulary, id), .id = id};
    }
    qsort(tokens, count, sizeof *tokens, compare_ids);
    chunks_text(out, "\"added_tokens\":[");
    for (size_t i = 0; i < count; i++)
        if (i == 0 || tokens[i].id != tokens[i - 1].id)
            write_token(out, &tokens[i], i == 0);
    chunks_text(out, "],");
    return true;
}

/* The token of the role. NULL: there is none. */
static const struct slow_token *token_of(const struct slow *slow, enum slow_role role)
{
    return slow_token_find(slow, slow->roles[role]);
}

/* ---- what is added around a text ---- */

/* Whether tokens of the role are added to texts. */
static bool is_added(const struct slow *slow, enum slow_role role)
{
    if (!slow_class_is(slow, "adds_by_settings") || (role != ROLE_BOS && role != ROLE_EOS))
        return true;
    return slow_is_set(slow, role == ROLE_BOS ? "add_bos_token" : "add_eos_token");
}

/* The post-processor that adds the special tokens of the class around texts. */
static void write_template(const struct slow *slow, struct chunks *out)
{
    static const struct {
        char letter;
        enum slow_role role;
    } letters[] = {{'b', ROLE_BOS}, {'e', ROLE_EOS}, {'s', ROLE_SEP}, {'c', ROLE_CLS}, {'l', ROLE_LANG}};
    struct compose_special specials[ARRAY_LENGTH(letters)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(letters); i++) {
        const struct slow_token *token = token_of(slow, letters[i].role);
        if (token != NULL && is_added(slow, letters[i].role))
            specials[count++] = (struct compose_special){letters[i].letter, token->text, token->id};
    }
    compose_template(json_tree_word(json_object_get(slow->class, "single")),
                     json_tree_word(json_object_get(slow->class, "pair")), specials, count, out);
}

/* ---- the vocabulary ---- */

static void write_id(struct chunks *out, const char **separator, struct text_span text, uint32_t id)
{
    chunks_text(out, *separator);
    chunks_json_span(out, text);
    chunks_format(out, ":%u", (unsigned)id);
    *separator = ",";
}

/* The members "unk_token" and "vocab", with a comma before them. */
static void write_vocabulary(const struct slow *slow, struct chunks *out)
{
    const struct vocabulary *vocabulary = &slow->vocabulary;
    const char *separator = "";
    chunks_text(out, ",\"unk_token\":");
    if (token_of(slow, ROLE_UNK) != NULL)
        chunks_json_span(out, slow->roles[ROLE_UNK]);
    else
        chunks_text(out, "null");
    chunks_text(out, ",\"vocab\":{");
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        const struct text_span text = vocabulary_text(vocabulary, id);
        if (text.at != NULL && vocabulary_find(vocabulary, text.at, text.length) == id)
            write_id(out, &separator, text, id); /* else the same token stands further down, and that id counts */
    }
    for (size_t i = 0; i < slow->token_count; i++) {
        const struct slow_token *token = &slow->tokens[i];
        if (token->id >= vocabulary->size &&
            vocabulary_find(vocabulary, token->text.at, token->text.length) == VOCABULARY_NONE)
            write_id(out, &separator, token->text, token->id); /* the loader takes gaps before an id here alone */
    }
    chunks_text(out, "}");
}

/* ---- steps ---- */

/* Whether a space is set before every text between added tokens, or before the first alone. */
enum prefix { PREFIX_NONE, PREFIX_FIRST, PREFIX_EACH };

static enum prefix prefix_of(const struct slow *slow)
{
    const bool has_legacy = slow_class_is(slow, "has_legacy");
    if (has_legacy && !slow_is_set(slow, "add_prefix_space"))
        return PREFIX_NONE;
    if (has_legacy && !slow_is_set(slow, "legacy"))
        return PREFIX_FIRST;
    return slow->model.add_dummy_prefix ? PREFIX_EACH : PREFIX_NONE;
}

/* An accent goes when letters are lowered, unless the settings say otherwise. */
static bool strips_accents(const struct slow *slow)
{
    return slow_is_set(slow, json_is_boolean(slow_setting(slow, "strip_accents")) ? "strip_accents" : "do_lower_case");
}

/* A flag of classes.json. */
static bool is_flag_set(const struct slow *slow, const char *name)
{
    const struct sentencepiece *model = &slow->model;
    const struct {
        const char *name;
        bool is_set;
    } flags[] = {
        {"strips_accents", strips_accents(slow)},
        {"drops_accents", slow_class_is(slow, "cleans_text") && !slow_is_set(slow, "keep_accents")},
        {"has_charsmap", model->charsmap.length > 0},
        {"removes_spaces", model->remove_extra_whitespaces},
        {"has_prefix", prefix_of(slow) != PREFIX_NONE},
        {"has_two_prefixes", prefix_of(slow) == PREFIX_EACH && slow_class_is(slow, "has_legacy")},
        {"removes_front", model->remove_extra_whitespaces && prefix_of(slow) != PREFIX_FIRST},
        {"prefixes_first", prefix_of(slow) == PREFIX_FIRST},
        {"prefixes_each", prefix_of(slow) == PREFIX_EACH},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(flags); i++)
        if (strcmp(flags[i].name, name) == 0)
            return flags[i].is_set;
    return slow_class_is(slow, name) || slow_is_set(slow, name);
}

static void write_filled(const struct slow *slow, json_t *json, struct chunks *out);

static void write_charsmap(const struct slow *slow, struct chunks *out)
{
    const struct text_span map = slow->model.charsmap;
    const size_t length = base64_encoded_length(map.length);
    chunks_text(out, "\"");
    char *to = chunks_reserve(out, length);
    if (to != NULL) {
        base64_encode(to, map.at, map.length);
        chunks_commit(out, length);
    }
    chunks_text(out, "\"");
}

/* What "$name" stands for. */
static void write_named(const struct slow *slow, const char *name, struct chunks *out)
{
    json_t *list = json_object_get(json_object_get(slow->table, "lists"), name);
    if (list != NULL)
        write_filled(slow, list, out);
    else if (strcmp(name, "template") == 0)
        write_template(slow, out);
    else if (strcmp(name, "charsmap") == 0)
        write_charsmap(slow, out);
    else
        chunks_text(out, bool_text(is_flag_set(slow, name)));
}

static void write_list(const struct slow *slow, const json_t *list, struct chunks *out)
{
    const char *separator = "";
    json_t *item;
    size_t i;
    chunks_text(out, "[");
    json_array_foreach(list, i, item)
    {
        const char *flag = json_tree_word(json_object_get(item, "if"));
        if (flag != NULL && !is_flag_set(slow, flag))
            continue;
        chunks_text(out, separator);
        write_filled(slow, item, out);
        separator = ",";
    }
    chunks_text(out, "]");
}

static void write_object(const struct slow *slow, json_t *object, struct chunks *out)
{
    const char *separator = "", *name;
    json_t *value;
    chunks_text(out, "{");
    json_object_foreach(object, name, value)
    {
        if (strcmp(name, "if") == 0)
            continue;
        chunks_format(out, "%s\"%s\":", separator, name);
        write_filled(slow, value, out);
        separator = ",";
    }
    chunks_text(out, "}");
}

/* Writes JSON of the table. */
static void write_filled(const struct slow *slow, json_t *json, struct chunks *out)
{
    const char *word = json_tree_word(json);
    if (word != NULL && word[0] == '$')
        write_named(slow, word + 1, out);
    else if (word != NULL)
        chunks_json_string(out, word);
    else if (json_is_array(json))
        write_list(slow, json, out);
    else if (json_is_object(json))
        write_object(slow, json, out);
    else if (json_is_integer(json))
        chunks_count(out, (uint64_t)json_integer_value(json));
    else
        chunks_text(out, bool_text(json_is_true(json)));
}

void slow_write_steps(const struct slow *slow, struct chunks *out)
{
    static const char *const names[] = {"post_processor", "before", "normalizer", "pre_tokenizer", "decoder"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        json_t *own = json_object_get(json_object_get(slow->class, "steps"), names[i]);
        json_t *steps = own != NULL ? own : json_object_get(json_object_get(slow->form, "steps"), names[i]);
        if (steps == NULL)
            continue;
        chunks_format(out, "\"%s\":", names[i]);
        write_filled(slow, steps, out);
        chunks_text(out, ",");
    }
}

/* ---- WordPiece ---- */

bool slow_write_wordpiece(const struct slow *slow, struct chunks *out)
{
    chunks_text(out, "\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\"");
    write_vocabulary(slow, out);
    chunks_text(out, "}}");
    return true;
}

/* ---- BPE over bytes, as GPT-2 and CLIP have it ---- */

/* Writes the token of the vocabulary that has the text; its copy ends in a NUL, which the JSON's writer needs. */
static bool write_part(const struct slow *slow, struct chunks *out, struct text_span text)
{
    const struct text_span token =
        vocabulary_text(&slow->vocabulary, vocabulary_find(&slow->vocabulary, text.at, text.length));
    if (token.at != NULL)
        chunks_json_span(out, token);
    return token.at != NULL;
}

/* A line of merges.txt: two tokens with a space between. The first line may be the version. */
static bool write_merges(const struct slow *slow, struct chunks *out)
{
    struct text_span rest = slow->files->files[SLOW_MERGES].text, line;
    const char *comma = "";
    chunks_text(out, ",\"merges\":[");
    for (size_t number = 1; slow_take_line(&rest, &line); number++) {
        while (line.length > 0 && (line.at[line.length - 1] == '\r' || line.at[line.length - 1] == ' '))
            line.length--;
        if (line.length == 0 || (number == 1 && line.length > 8 && memcmp(line.at, "#version", 8) == 0))
            continue;
        const char *space = memchr(line.at, ' ', line.length);
        const size_t left = space != NULL ? (size_t)(space - line.at) : 0, from = left + 1;
        if (left == 0 || memchr(space + 1, ' ', line.length - from) != NULL ||
            memchr(line.at, '\0', line.length) != NULL)
            return slow_fail(slow, SLOW_MERGES, ATTN_ERR_SYNTAX, "line %zu is not two tokens with a space between them",
                             number);
        chunks_text(out, comma);
        chunks_text(out, "[");
        bool is_well = write_part(slow, out, (struct text_span){line.at, left});
        chunks_text(out, ",");
        is_well &= write_part(slow, out, (struct text_span){space + 1, line.length - from});
        chunks_text(out, "]");
        if (!is_well)
            return slow_fail(slow, SLOW_MERGES, ATTN_ERR_VALUE,
                             "line %zu merges \"%.*s\", and vocab.json lacks a part of it", number,
                             line.length < 60 ? (int)line.length : 60, line.at);
        comma = ",";
    }
    chunks_text(out, "]}}");
    return true;
}

bool slow_write_byte_level(const struct slow *slow, struct chunks *out)
{
    const char *suffix = json_tree_word(json_object_get(slow->class, "end_of_word_suffix"));
    chunks_format(out, "\"model\":{\"type\":\"BPE\",\"fuse_unk\":false,\"end_of_word_suffix\":\"%s\"",
                  suffix != NULL ? suffix : "");
    write_vocabulary(slow, out);
    return write_merges(slow, out);
}

/* ---- the pieces of SentencePiece, a Unigram or a BPE ---- */

enum { MERGE_WORK_MAX = 1 << 27 }; /* squares of the bytes of pieces: a bound for the steps that look for merges */

/* Of ALBERT's pieces, those that end in a digit and a comma are cut again; so they are taken last. */
static bool is_cut_again(const struct slow *slow, struct text_span text)
{
    return slow_class_is(slow, "cleans_text") && text.length > 1 && text.at[text.length - 1] == ',' &&
           text.at[text.length - 2] >= '0' && text.at[text.length - 2] <= '9';
}

static bool write_unigram(const struct slow *slow, struct chunks *out)
{
    const struct vocabulary *vocabulary = &slow->vocabulary;
    const struct slow_token *unknown = token_of(slow, ROLE_UNK);
    chunks_format(out, "\"model\":{\"type\":\"Unigram\",\"single_precision\":true,\"byte_fallback\":%s",
                  bool_text(slow->model.byte_fallback));
    if (unknown != NULL && unknown->id < vocabulary->size)
        chunks_format(out, ",\"unk_id\":%u", (unsigned)unknown->id);
    chunks_text(out, ",\"vocab\":[");
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        const struct text_span text = vocabulary_text(vocabulary, id);
        if (text.at == NULL)
            return slow_fail(slow, SLOW_VOCAB, ATTN_ERR_VALUE, "has no token with the id %u, and one of a higher id",
                             (unsigned)id);
        chunks_text(out, id > 0 ? ",[" : "[");
        chunks_json_span(out, text);
        chunks_format(out, ",%.17g]", slow->scores[id] - (is_cut_again(slow, text) ? 100 : 0));
    }
    chunks_text(out, "]}}");
    return true;
}

struct scored {
    double score;
    uint32_t id;
};

/* The highest score first, of equal ones the lowest id. */
static int compare(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_character(struct text_span text)
{
    return utf8_length(text.at) == text.length;
}

/* A part of a merge is a character or a piece that merges make. */
static bool is_part(const struct slow *slow, const char *at, size_t length)
{
    const uint32_t id = vocabulary_find(&slow->vocabulary, at, length);
    return id != VOCABULARY_NONE && slow->scores[id] > SLOW_NEVER;
}

/* All pairs that make the piece: the longest left part first. */
static void write_pairs(const struct slow *slow, struct chunks *out, struct text_span text, const char **comma)
{
    for (size_t at = text.length - 1; at > 0; at--) {
        if (!utf8_begins(text.at[at]) || !is_part(slow, text.at, at) || !is_part(slow, text.at + at, text.length - at))
            continue;
        chunks_text(out, *comma);
        chunks_text(out, "[");
        chunks_json_span(out, vocabulary_text(&slow->vocabulary, vocabulary_find(&slow->vocabulary, text.at, at)));
        chunks_text(out, ",");
        chunks_json_span(out, (struct text_span){text.at + at, text.length - at});
        chunks_text(out, "]");
        *comma = ",";
    }
}

/* SentencePiece has the scores of what merges make, and no merges: the highest score is merged first. */
static bool write_bpe(const struct slow *slow, struct chunks *out)
{
    const struct vocabulary *vocabulary = &slow->vocabulary;
    struct scored *order = outcome_take(slow->outcome, vocabulary->size, sizeof *order);
    const char *comma = "";
    size_t count = 0, work = 0;
    if (order == NULL)
        return false;
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        const struct text_span text = vocabulary_text(vocabulary, id);
        if (text.at == NULL || slow->scores[id] <= SLOW_NEVER || is_character(text))
            continue;
        order[count++] = (struct scored){slow->scores[id], id};
        work += text.length > 1 << 14 ? MERGE_WORK_MAX : text.length * text.length;
        if (work >= MERGE_WORK_MAX)
            return slow_fail(slow, SLOW_PIECES, ATTN_ERR_TOO_LARGE, "has pieces that are too long");
    }
    qsort(order, count, sizeof *order, compare);
    chunks_format(out, "\"model\":{\"type\":\"BPE\",\"fuse_unk\":true,\"byte_fallback\":%s",
                  bool_text(slow->model.byte_fallback));
    write_vocabulary(slow, out);
    chunks_text(out, ",\"merges\":[");
    for (size_t i = 0; i < count && !attn_arena_is_cancelled(slow->outcome->arena); i++)
        write_pairs(slow, out, vocabulary_text(vocabulary, order[i].id), &comma);
    chunks_text(out, "]}}");
    return true;
}

bool slow_write_pieces(const struct slow *slow, struct chunks *out)
{
    return slow->model.model_type == SENTENCEPIECE_BPE ? write_bpe(slow, out) : write_unigram(slow, out);
}

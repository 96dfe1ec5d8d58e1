/* common.c: the parts of a tokenizer.json that all forms have: added tokens, what is added around a text, and ids. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/tokenizer/slow/parts.h"

/* ---- added tokens ---- */

const char *slow_bool_text(bool value)
{
    return value ? "true" : "false";
}

static void write_token(struct chunks *out, const struct slow_token *token, bool is_first)
{
    chunks_format(out, "%s{\"id\":%u,\"content\":", is_first ? "" : ",", (unsigned)token->id);
    chunks_json_span(out, token->text);
    chunks_format(out, ",\"single_word\":%s,\"lstrip\":%s,\"rstrip\":%s,\"normalized\":%s,\"special\":%s}",
                  slow_bool_text(token->single_word), slow_bool_text(token->lstrip), slow_bool_text(token->rstrip),
                  slow_bool_text(token->normalized), slow_bool_text(token->special));
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

const struct slow_token *slow_token_of(const struct slow *slow, enum slow_role role)
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

void slow_write_template(const struct slow *slow, struct chunks *out)
{
    static const struct {
        char letter;
        enum slow_role role;
    } letters[] = {{'b', ROLE_BOS}, {'e', ROLE_EOS}, {'s', ROLE_SEP}, {'c', ROLE_CLS}, {'l', ROLE_LANG}};
    struct compose_special specials[ARRAY_LENGTH(letters)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(letters); i++) {
        const struct slow_token *token = slow_token_of(slow, letters[i].role);
        if (token != NULL && is_added(slow, letters[i].role))
            specials[count++] = (struct compose_special){letters[i].letter, token->text, token->id};
    }
    compose_template(json_tree_word(json_object_get(slow->class, "single")),
                     json_tree_word(json_object_get(slow->class, "pair")), specials, count, out);
}

/* ---- the vocabulary ---- */

void slow_write_ids(const struct slow *slow, struct chunks *out)
{
    const struct vocabulary *vocabulary = &slow->vocabulary;
    const char *comma = "";
    chunks_text(out, "\"vocab\":{");
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        const struct text_span text = vocabulary_text(vocabulary, id);
        if (text.at == NULL || vocabulary_find(vocabulary, text.at, text.length) != id)
            continue; /* the same token stands further down again, and that id counts */
        chunks_text(out, comma);
        chunks_json_span(out, text);
        chunks_format(out, ":%u", (unsigned)id);
        comma = ",";
    }
    for (size_t i = 0; i < slow->token_count; i++) {
        const struct slow_token *token = &slow->tokens[i];
        if (token->id < vocabulary->size ||
            vocabulary_find(vocabulary, token->text.at, token->text.length) != VOCABULARY_NONE)
            continue;
        chunks_text(out, comma); /* ids may have gaps before it, which the loader takes here alone */
        chunks_json_span(out, token->text);
        chunks_format(out, ":%u", (unsigned)token->id);
        comma = ",";
    }
    chunks_text(out, "}");
}

void slow_write_unknown(const struct slow *slow, struct chunks *out)
{
    chunks_text(out, ",\"unk_token\":");
    if (slow_token_of(slow, ROLE_UNK) != NULL)
        chunks_json_span(out, slow->roles[ROLE_UNK]);
    else
        chunks_text(out, "null");
}

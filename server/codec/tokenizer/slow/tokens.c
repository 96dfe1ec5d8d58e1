/* tokens.c: the special and the added tokens, by the settings of transformers and the defaults of the class. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/tokenizer/slow/parts.h"

enum { SENTINELS = 100, SENTINELS_MAX = 1000, TOKENS_MAX = 1 << 16, OTHERS_MAX = 1 << 12 };

/* The settings of roles; ROLE_LANG has one of another form. */
static const char *const role_names[ROLES] = {"bos_token", "eos_token", "unk_token",  "sep_token",
                                              "pad_token", "cls_token", "mask_token", "lang_token"};

static const json_t *default_of(const struct slow *slow, const char *name)
{
    const json_t *of_class = json_object_get(json_object_get(slow->class, "defaults"), name);
    return of_class != NULL ? of_class : json_object_get(json_object_get(slow->form, "defaults"), name);
}

const json_t *slow_setting(const struct slow *slow, const char *name)
{
    static const enum slow_file files[] = {SLOW_SETTINGS, SLOW_SPECIAL};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        const json_t *value = json_object_get(slow->trees[files[i]], name);
        if (value != NULL && !json_is_null(value))
            return value;
    }
    return default_of(slow, name);
}

bool slow_is_set(const struct slow *slow, const char *name)
{
    const json_t *value = slow_setting(slow, name);
    return json_is_true(json_is_boolean(value) ? value : default_of(slow, name));
}

bool slow_class_is(const struct slow *slow, const char *property)
{
    return json_is_true(json_object_get(slow->class, property));
}

/* ---- tokens ---- */

const struct slow_token *slow_token_find(const struct slow *slow, struct text_span text)
{
    const uint32_t place = text.length > 0 ? vocabulary_find(&slow->places, text.at, text.length) : VOCABULARY_NONE;
    return place != VOCABULARY_NONE ? &slow->tokens[place] : NULL;
}

static struct text_span text_of(const json_t *json)
{
    const json_t *content = json_is_object(json) ? json_object_get(json, "content") : json;
    const char *text = json_is_string(content) ? json_tree_word(content) : NULL;
    return text_span_of(text != NULL ? text : "");
}

/* Notes the additional special tokens, by text. */
static bool note_others(struct slow *slow, size_t count)
{
    const json_t *list = slow_setting(slow, "additional_special_tokens"), *other;
    struct outcome *outcome = slow->outcome;
    bool is_well =
        outcome_note(outcome, vocabulary_create(&slow->others, count, count + 1, outcome->arena, outcome->err));
    size_t i;
    json_array_foreach(list, i, other)
    {
        const struct text_span text = text_of(other);
        if (is_well && text.length > 0)
            is_well = outcome_note(outcome, vocabulary_add(&slow->others, text, (uint32_t)i, outcome->err));
    }
    return is_well;
}

/* Room for all tokens that the files and the class can name. */
static bool make_room(struct slow *slow)
{
    struct outcome *outcome = slow->outcome;
    const size_t others = json_array_size(slow_setting(slow, "additional_special_tokens"));
    const size_t room = json_object_size(slow_setting(slow, "added_tokens_decoder")) +
                        json_object_size(slow->trees[SLOW_ADDED]) + others + ROLES +
                        SENTINELS_MAX; /* or languages, which are fewer */
    if (room > TOKENS_MAX || others > OTHERS_MAX)
        return outcome_fail(outcome, ATTN_ERR_TOO_LARGE, NULL,
                            "there are more than %d added tokens or %d additional special tokens", TOKENS_MAX,
                            OTHERS_MAX);
    slow->tokens = outcome_take(outcome, room, sizeof *slow->tokens);
    slow->token_room = room;
    slow->next_id = slow->vocabulary.size;
    return slow->tokens != NULL &&
           outcome_note(outcome, vocabulary_create(&slow->places, room, room, outcome->arena, outcome->err)) &&
           note_others(slow, others);
}

/* Adds a token. token.id VOCABULARY_NONE: that of the vocabulary, else a new one. One that is there stays as it is. */
static bool add(struct slow *slow, struct slow_token token)
{
    assert(slow->tokens != NULL);
    if (token.text.length == 0 || slow_token_find(slow, token.text) != NULL || slow->token_count == slow->token_room)
        return true;
    if (token.id == VOCABULARY_NONE)
        token.id = vocabulary_find(&slow->vocabulary, token.text.at, token.text.length);
    if (token.id == VOCABULARY_NONE)
        token.id = slow->next_id;
    if (token.id >= VOCABULARY_IDS_MAX)
        return outcome_fail(slow->outcome, ATTN_ERR_TOO_LARGE, NULL, "the token \"%.60s\" has an id of %d or more",
                            token.text.at, VOCABULARY_IDS_MAX);
    slow->next_id = token.id >= slow->next_id ? token.id + 1 : slow->next_id;
    slow->tokens[slow->token_count] = token;
    return outcome_note(slow->outcome,
                        vocabulary_add(&slow->places, token.text, (uint32_t)slow->token_count++, slow->outcome->err));
}

/* A token of JSON: its text alone, or an object of all that it has. */
static struct slow_token token_of(const json_t *json, bool is_special)
{
    return (struct slow_token){
        .text = text_of(json),
        .id = VOCABULARY_NONE,
        .lstrip = json_is_true(json_object_get(json, "lstrip")),
        .rstrip = json_is_true(json_object_get(json, "rstrip")),
        .single_word = json_is_true(json_object_get(json, "single_word")),
        .normalized = !is_special && !json_is_false(json_object_get(json, "normalized")),
        .special = is_special,
    };
}

/* ---- where tokens are from ---- */

/* "added_tokens_decoder": tokens by id. */
static bool add_by_id(struct slow *slow)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)slow_setting(slow, "added_tokens_decoder"), key, value)
    {
        uint64_t id;
        struct slow_token token = token_of(value, json_is_true(json_object_get(value, "special")));
        if (!text_read_count(key, &id) || id >= VOCABULARY_IDS_MAX || token.text.length == 0)
            return slow_fail(slow, SLOW_SETTINGS, ATTN_ERR_VALUE,
                             "/added_tokens_decoder/%.60s must be a token with \"content\", under its id", key);
        token.id = (uint32_t)id;
        if (!add(slow, token))
            return false;
    }
    return true;
}

/* Whether it is one of the roles or of the additional special tokens. */
static bool is_special(const struct slow *slow, struct text_span text)
{
    for (size_t i = 0; i < ROLES; i++)
        if (text_equal(text, slow->roles[i].at != NULL ? slow->roles[i].at : ""))
            return true;
    return vocabulary_find(&slow->others, text.at, text.length) != VOCABULARY_NONE;
}

/* added_tokens.json: ids by token. Files of earlier versions have it instead. */
static bool add_by_text(struct slow *slow)
{
    const char *key;
    json_t *value;
    json_object_foreach(slow->trees[SLOW_ADDED], key, value)
    {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        const struct text_span text = text_span_of(key);
        const bool special = is_special(slow, text);
        if (id < 0 || id >= VOCABULARY_IDS_MAX || text.length == 0)
            return slow_fail(slow, SLOW_ADDED, ATTN_ERR_VALUE, "/%.60s must be the id of a token", key);
        const struct slow_token token = {.text = text, .id = (uint32_t)id, .normalized = !special, .special = special};
        if (!add(slow, token))
            return false;
    }
    return true;
}

/* Copies a text that is made here. */
static bool copy(struct slow *slow, const char *text, size_t length, struct text_span *copied)
{
    *copied = (struct text_span){outcome_copy_text(slow->outcome, text, length), length};
    return copied->at != NULL;
}

static void find_roles(struct slow *slow)
{
    for (size_t i = 0; i < ROLES; i++) {
        const json_t *otherwise = default_of(slow, role_names[i]);
        const struct text_span given = text_of(i != ROLE_LANG ? slow_setting(slow, role_names[i]) : otherwise);
        slow->roles[i] = given.length > 0 ? given : text_of(otherwise);
    }
}

/* The language of the source, in the spelling of its token: "en" is "__en__" for a class whose default has that form. */
static bool find_language(struct slow *slow)
{
    struct text_span *role = &slow->roles[ROLE_LANG];
    const struct text_span given = text_of(slow_setting(slow, "src_lang"));
    char text[64];
    if (role->length == 0 || given.length == 0 || given.length > 32)
        return true;
    const char *mark = role->at[0] == '_' && given.at[0] != '_' ? "__" : "";
    const int length = snprintf(text, sizeof text, "%s%.*s%s", mark, (int)given.length, given.at, mark);
    return copy(slow, text, (size_t)length, role);
}

static bool add_roles(struct slow *slow)
{
    const json_t *others = slow_setting(slow, "additional_special_tokens"), *other;
    bool is_well = true;
    size_t i;
    for (i = 0; i < ROLES && is_well; i++) {
        const json_t *given = slow_setting(slow, role_names[i]);
        struct slow_token token = token_of(given, true);
        token.lstrip |= !json_is_object(given) && token_of(default_of(slow, role_names[i]), true).lstrip;
        token.text = slow->roles[i];
        const bool is_there =
            token.text.length > 0 &&
            (i != ROLE_LANG || vocabulary_find(&slow->vocabulary, token.text.at, token.text.length) != VOCABULARY_NONE);
        is_well = !is_there || add(slow, token);
    }
    json_array_foreach(others, i, other) is_well = is_well && add(slow, token_of(other, true));
    return is_well;
}

/* <extra_id_0> has the highest id. */
static bool add_sentinels(struct slow *slow)
{
    const json_t *given = slow_setting(slow, "extra_ids");
    const json_int_t asked = json_is_integer(given) ? json_integer_value(given) : SENTINELS;
    const uint32_t count = asked >= 0 && asked <= SENTINELS_MAX ? (uint32_t)asked : 0;
    char text[32];
    for (uint32_t i = 0; i < count; i++) {
        const int length = snprintf(text, sizeof text, "<extra_id_%u>", (unsigned)i);
        struct slow_token token = {
            .id = slow->vocabulary.size + count - 1 - i, .lstrip = true, .rstrip = true, .special = true};
        if (!copy(slow, text, (size_t)length, &token.text) || !add(slow, token))
            return false;
    }
    return true;
}

/* Special tokens that the class has: the ids of those that the vocabulary does not have begin at id. */
static bool add_list(struct slow *slow, const char *name, uint32_t id)
{
    const json_t *text;
    size_t i;
    json_array_foreach(json_object_get(slow->class, name), i, text)
    {
        if (!add(slow, (struct slow_token){.text = text_of(text), .id = id + (uint32_t)i, .special = true}))
            return false;
    }
    return true;
}

bool slow_find_tokens(struct slow *slow)
{
    const bool has_ids = slow_setting(slow, "added_tokens_decoder") != NULL;
    if (!make_room(slow))
        return false;
    find_roles(slow);
    return find_language(slow) && add_by_id(slow) && add_list(slow, "languages", slow->vocabulary.size) &&
           (has_ids || add_by_text(slow)) &&
           (has_ids || !slow_class_is(slow, "has_sentinels") || add_sentinels(slow)) && add_roles(slow) &&
           add_list(slow, "tail",
                    slow->vocabulary.size - (uint32_t)json_array_size(json_object_get(slow->class, "tail")));
}

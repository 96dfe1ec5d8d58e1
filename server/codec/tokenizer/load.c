/* load.c: a tokenizer from tokenizer.json. */
#include <string.h>

#include "base/array.h"
#include "codec/json/pieces.h"
#include "codec/json/tree.h"
#include "codec/tokenizer/parts.h"

/* ---- the vocabulary ---- */

struct loader {
    struct loading loading;
    struct tokenizer *tokenizer;
    struct node root;
};

/* One more than the highest id of a list of objects with "id" that can be theirs beside that many words. */
static size_t count_added_ids(const json_t *list, size_t words)
{
    const json_t *token;
    const int64_t ids_max = (int64_t)(words + json_array_size(list));
    size_t i, size = 0;
    json_array_foreach(list, i, token)
    {
        int64_t id;
        if (node_integer_of(json_object_get(token, "id"), &id) && id >= 0 && id < ids_max && (size_t)id >= size)
            size = (size_t)id + 1;
    }
    return size;
}

/* Added tokens without a text in the vocabulary have the ids behind it (added.c). */
static attn_status load_vocabulary(struct loader *loader, const struct node *vocab)
{
    const json_t *added = json_object_get(loader->root.json, "added_tokens");
    return words_load(&loader->loading, vocab, count_added_ids(added, loader->loading.vocab.items),
                      &loader->tokenizer->vocabulary);
}

/* ---- the model ---- */

static const struct model_kind *const model_kinds[] = {&model_wordpiece, &model_bpe, &model_unigram};

/* Old files do not say the type. */
static const char *guess_model(const json_t *model)
{
    if (json_object_get(model, "merges") != NULL)
        return "BPE";
    return json_is_array(json_object_get(model, "vocab")) ? "Unigram" : "WordPiece";
}

static attn_status load_model(struct loader *loader, const struct node *node)
{
    struct loading *loading = &loader->loading;
    const json_t *type = json_object_get(node->json, "type");
    const char *name = json_is_string(type) ? json_tree_word(type) : guess_model(node->json);
    const struct model_kind *kind = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(model_kinds); i++)
        if (strcmp(model_kinds[i]->name, name) == 0)
            kind = model_kinds[i];
    if (kind == NULL)
        return node_fail(
            &loading->reading, node, ATTN_ERR_VALUE,
            "is a model of the kind \"%.60s\", which is not supported; supported kinds: WordPiece, BPE, Unigram", name);
    const struct node vocab = node_member(node, "vocab");
    const bool wants_list = kind == &model_unigram;
    if (loading->vocab.text.at == NULL || (wants_list ? !json_is_array(vocab.json) : !json_is_object(vocab.json)))
        return node_fail(&loading->reading, node, ATTN_ERR_FIELD, "needs \"vocab\", %s",
                         wants_list ? "a list" : "an object");
    if (load_vocabulary(loader, &vocab) != ATTN_OK)
        return loading->reading.status;
    loader->tokenizer->model_kind = kind;
    (void)json_object_del(node->json, "type");
    (void)json_object_del(node->json, "vocab");
    return kind->load(loading, node, &loader->tokenizer->model);
}

/* ---- the file ---- */

static attn_status check_version(struct reading *reading, const struct node *node, void *to)
{
    (void)to;
    const char *version = json_tree_word(node->json);
    return version != NULL && strcmp(version, "1.0") == 0 ? ATTN_OK : node_fail_value(reading, node, "\"1.0\"");
}

static const struct member members[] = {
    {"version", check_version, 0, MEMBER_ALWAYS},       {"truncation", step_ignored, 0, MEMBER_ALWAYS},
    {"padding", step_ignored, 0, MEMBER_ALWAYS},        {"added_tokens", step_ignored, 0, MEMBER_ALWAYS},
    {"normalizer", step_ignored, 0, MEMBER_ALWAYS},     {"pre_tokenizer", step_ignored, 0, MEMBER_ALWAYS},
    {"post_processor", step_ignored, 0, MEMBER_ALWAYS}, {"decoder", step_ignored, 0, MEMBER_ALWAYS},
    {"model", step_ignored, 0, MEMBER_ALWAYS},          {"before", step_ignored, 0, STEP_OF_SLOW},
};

static attn_status load_steps(struct loader *loader, const char *name, const struct step_table *table,
                              struct steps *steps)
{
    const struct node node = node_member(&loader->root, name);
    return steps_load(&loader->loading, &node, table, steps);
}

static attn_status load_parts(struct loader *loader)
{
    struct tokenizer *tokenizer = loader->tokenizer;
    struct loading *loading = &loader->loading;
    const struct node *root = &loader->root;
    const struct node model = node_member(root, "model"), added = node_member(root, "added_tokens"),
                      post = node_member(root, "post_processor");
    struct reading *reading = &loading->reading;
    node_decode_members(reading, root, members, ARRAY_LENGTH(members), tokenizer);
    if (!json_is_object(model.json))
        node_fail(reading, &model, ATTN_ERR_FIELD, "is missing or no object");
    if (node_has_failed(reading) || node_note(reading, load_model(loader, &model)) != ATTN_OK)
        return reading->status;
    load_steps(loader, "before", &normalizer_table, &tokenizer->before);
    load_steps(loader, "normalizer", &normalizer_table, &tokenizer->normalizers);
    load_steps(loader, "pre_tokenizer", &pre_tokenizer_table, &tokenizer->pre_tokenizers);
    load_steps(loader, "decoder", &decoder_table, &tokenizer->decoders);
    if (!node_has_failed(reading))
        added_load(loading, &added, &tokenizer->normalizers, &tokenizer->vocabulary, &tokenizer->added);
    return node_has_failed(reading) ? reading->status : postprocess_load(loading, &post, &tokenizer->postprocessor);
}

/* ---- the text without its long members ---- */

struct cuts {
    struct text_span spans[2]; /* in the order of the text */
};

static struct text_span inside(struct text_span collection)
{
    const bool is_here = collection.length >= 2;
    return (struct text_span){is_here ? collection.at + 1 : collection.at, is_here ? collection.length - 2 : 0};
}

static struct cuts cuts_of(const struct loading *loading)
{
    const struct text_span vocab = inside(loading->vocab.text), merges = inside(loading->merges.text);
    const bool is_vocab_first = vocab.length == 0 || (merges.length > 0 && vocab.at < merges.at);
    return is_vocab_first ? (struct cuts){{vocab, merges}} : (struct cuts){{merges, vocab}};
}

/* The text without the cuts: a copy if there are any. at NULL: no memory. */
static struct text_span copy_rest(const struct skim *whole, const struct cuts *cuts, attn_arena *scratch)
{
    const size_t length = whole->body_length - cuts->spans[0].length - cuts->spans[1].length;
    if (length == whole->body_length)
        return (struct text_span){whole->body, length};
    char *copy = attn_arena_take(scratch, length, 1), *to = copy;
    const char *from = whole->body;
    for (size_t i = 0; copy != NULL && i < ARRAY_LENGTH(cuts->spans); i++) {
        const struct text_span cut = cuts->spans[i];
        if (cut.length == 0)
            continue;
        memcpy(to, from, (size_t)(cut.at - from));
        to += cut.at - from;
        from = cut.at + cut.length;
    }
    if (copy != NULL)
        memcpy(to, from, (size_t)(whole->body + whole->body_length - from));
    return (struct text_span){copy, length};
}

/* The place in the text of a place in the copy. */
static size_t place_of(const struct skim *whole, const struct cuts *cuts, size_t at)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cuts->spans); i++)
        if (cuts->spans[i].length > 0 && at > (size_t)(cuts->spans[i].at - whole->body))
            at += cuts->spans[i].length;
    return at;
}

/* Reads the text without the long members of the model, whose places it notes. */
static attn_status read_rest(struct loading *loading, json_t **json)
{
    const struct skim *whole = loading->reading.skim;
    static const char *const outer[] = {"model"}, *const inner[] = {"vocab", "merges"};
    struct json_collection model, found[2];
    json_text_find((struct text_span){whole->body, whole->body_length}, outer, 1, &model);
    json_text_find(model.text, inner, ARRAY_LENGTH(found), found);
    loading->vocab = found[0];
    loading->merges = found[1];
    const struct cuts cuts = cuts_of(loading);
    const struct text_span rest = copy_rest(whole, &cuts, loading->scratch);
    json_error_t error;
    if (rest.at == NULL)
        return attn_fail_no_memory(loading->reading.err);
    *json = json_tree_load(rest.at, rest.length, loading->scratch, &error);
    if (*json != NULL)
        return ATTN_OK;
    return loading_fail_json(loading, &error, error.position > 0 ? place_of(whole, &cuts, (size_t)error.position) : 0);
}

static attn_status load(const char *text, size_t length, unsigned scopes, attn_arena *arena, attn_arena *scratch,
                        const struct tokenizer **tokenizer, attn_error *err)
{
    static const struct member_table *const no_sections[] = {NULL};
    const struct skim whole = {.body = text, .body_length = length, .arena = scratch};
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    json_t *json = NULL;
    struct loader loader = {
        .loading = {.reading = {.arena = arena, .skim = &whole, .sections = no_sections, .scopes = scopes, .err = err},
                    .scratch = scratch},
        .tokenizer = attn_arena_take_zeroed(arena, 1, sizeof *loader.tokenizer),
    };
    *tokenizer = NULL;
    struct reading *reading = &loader.loading.reading;
    node_note(reading, loader.tokenizer == NULL ? attn_fail_no_memory(err) : read_rest(&loader.loading, &json));
    if (!node_has_failed(reading) && !json_is_object(json))
        node_note(reading, attn_fail(err, ATTN_ERR_FIELD, NULL, "the tokenizer is not an object"));
    if (!node_has_failed(reading)) {
        loader.root = (struct node){.json = json, .is_plain = true};
        loader.loading.vocabulary = &loader.tokenizer->vocabulary;
        if (node_note(reading, load_parts(&loader)) == ATTN_OK)
            show_count(loader.tokenizer);
    }
    json_decref(json);
    attn_arena_release(scratch, mark);
    *tokenizer = node_has_failed(reading) ? NULL : loader.tokenizer;
    return reading->status;
}

attn_status tokenizer_load(const char *text, size_t length, attn_arena *arena, attn_arena *scratch,
                           const struct tokenizer **tokenizer, attn_error *err)
{
    return load(text, length, 0, arena, scratch, tokenizer, err);
}

attn_status tokenizer_load_slow(struct text_span text, attn_arena *arena, attn_arena *scratch,
                                const struct tokenizer **tokenizer, attn_error *err)
{
    return load(text.at, text.length, 1U << STEP_OF_SLOW, arena, scratch, tokenizer, err);
}

/*
 * tokenizer_load.c: a tokenizer from tokenizer.json.
 */
#include <string.h>

#include "base/array.h"
#include "codec/json/json_tree.h"
#include "codec/tokenizer/tokenizer_parts.h"

/* ---- the vocabulary ---- */

struct loader {
    struct loading loading;
    struct tokenizer *tokenizer;
    struct node root;
};

/* One more than the highest id of a list of objects with "id". */
static size_t count_added_ids(const json_t *list)
{
    const json_t *token;
    size_t i, size = 0;
    json_array_foreach(list, i, token)
    {
        int64_t id;
        if (node_integer_of(json_object_get(token, "id"), &id) && id >= 0 && id < VOCABULARY_IDS_MAX &&
            (size_t)id >= size)
            size = (size_t)id + 1;
    }
    return size;
}

/* The bytes of all texts with their NULs, and one more than the highest id; *size stays as it is if that is more. */
static attn_status measure_object(struct loading *loading, const struct node *vocab, size_t *bytes, size_t *size)
{
    const char *name;
    json_t *value;
    json_object_foreach(vocab->json, name, value)
    {
        const struct node entry = {.parent = vocab, .name = name, .json = value, .is_plain = true};
        int64_t id = 0;
        attn_status status = node_decode_integer(&loading->reading, &entry, 0, VOCABULARY_IDS_MAX - 1, &id);
        if (status != ATTN_OK)
            return status;
        *bytes += strlen(name) + 1;
        *size = (size_t)id >= *size ? (size_t)id + 1 : *size;
    }
    return ATTN_OK;
}

static attn_status measure_list(struct loading *loading, const struct node *vocab, size_t *bytes, size_t *size)
{
    const size_t count = json_array_size(vocab->json);
    for (size_t i = 0; i < count; i++) {
        const struct node entry = step_element(vocab, i);
        const json_t *text = json_array_get(entry.json, 0);
        if (json_array_size(entry.json) != 2 || !json_is_string(text) || !json_is_number(json_array_get(entry.json, 1)))
            return node_fail_value(&loading->reading, &entry, "a token and its score, as [\"the\", -3.5]");
        if (strlen(json_string_value(text)) != json_string_length(text))
            return node_fail(&loading->reading, &entry, ATTN_ERR_VALUE, "holds U+0000, which is not supported");
        *bytes += json_string_length(text) + 1;
    }
    if (count > VOCABULARY_IDS_MAX)
        return node_fail(&loading->reading, vocab, ATTN_ERR_TOO_LARGE, "has more than %d tokens", VOCABULARY_IDS_MAX);
    *size = count > *size ? count : *size;
    return ATTN_OK;
}

/* Copies one text to *to, which moves behind it. */
static attn_status add_text(struct loader *loader, const char *text, uint32_t id, char **to)
{
    const size_t length = strlen(text);
    memcpy(*to, text, length + 1);
    const struct text_span copy = {*to, length};
    *to += length + 1;
    return vocabulary_add(&loader->tokenizer->vocabulary, copy, id, loader->loading.reading.err);
}

static attn_status load_vocabulary(struct loader *loader, const struct node *vocab)
{
    struct loading *loading = &loader->loading;
    const json_t *added = json_object_get(loader->root.json, "added_tokens");
    const bool is_list = json_is_array(vocab->json);
    const size_t count = is_list ? json_array_size(vocab->json) : json_object_size(vocab->json);
    size_t bytes = 0, size = count_added_ids(added);
    attn_status status = (is_list ? measure_list : measure_object)(loading, vocab, &bytes, &size);
    if (status == ATTN_OK)
        status = vocabulary_create(&loader->tokenizer->vocabulary, count, size, loading->reading.arena,
                                   loading->reading.err);
    if (status != ATTN_OK)
        return status;
    char *to = attn_arena_take(loading->reading.arena, bytes, 1);
    if (to == NULL)
        return node_fail_memory(&loading->reading, vocab);
    const char *name;
    json_t *value;
    size_t i;
    if (is_list)
        json_array_foreach(vocab->json, i, value)
        {
            if (status == ATTN_OK)
                status = add_text(loader, json_string_value(json_array_get(value, 0)), (uint32_t)i, &to);
        }
    else
        json_object_foreach(vocab->json, name, value)
        {
            if (status == ATTN_OK)
                status = add_text(loader, name, (uint32_t)json_number_value(value), &to);
        }
    return status;
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
    const char *name = json_is_string(type) ? json_string_value(type) : guess_model(node->json);
    const struct model_kind *kind = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(model_kinds); i++)
        if (strcmp(model_kinds[i]->name, name) == 0)
            kind = model_kinds[i];
    if (kind == NULL)
        return node_fail(
            &loading->reading, node, ATTN_ERR_VALUE,
            "is a model of the kind \"%.60s\", which is not supported; supported kinds: WordPiece, BPE, Unigram", name);
    const struct node vocab = step_member(node, "vocab");
    const bool wants_list = kind == &model_unigram;
    if (wants_list ? !json_is_array(vocab.json) : !json_is_object(vocab.json))
        return node_fail(&loading->reading, node, ATTN_ERR_FIELD, "needs \"vocab\", %s",
                         wants_list ? "a list" : "an object");
    attn_status status = load_vocabulary(loader, &vocab);
    if (status != ATTN_OK)
        return status;
    loader->tokenizer->model_kind = kind;
    (void)json_object_del(node->json, "type");
    if (!wants_list)
        (void)json_object_del(node->json, "vocab");
    return kind->load(loading, node, &loader->tokenizer->model);
}

/* ---- the file ---- */

static attn_status check_version(struct reading *reading, const struct node *node, void *to)
{
    (void)to;
    const char *version = json_string_value(node->json);
    return version != NULL && strcmp(version, "1.0") == 0 ? ATTN_OK : node_fail_value(reading, node, "\"1.0\"");
}

static const struct member members[] = {
    {"version", check_version, 0, MEMBER_ALWAYS},       {"truncation", step_ignored, 0, MEMBER_ALWAYS},
    {"padding", step_ignored, 0, MEMBER_ALWAYS},        {"added_tokens", step_ignored, 0, MEMBER_ALWAYS},
    {"normalizer", step_ignored, 0, MEMBER_ALWAYS},     {"pre_tokenizer", step_ignored, 0, MEMBER_ALWAYS},
    {"post_processor", step_ignored, 0, MEMBER_ALWAYS}, {"decoder", step_ignored, 0, MEMBER_ALWAYS},
    {"model", step_ignored, 0, MEMBER_ALWAYS},
};

static attn_status load_steps(struct loader *loader, const char *name, const struct step_table *table,
                              struct steps *steps)
{
    const struct node node = step_member(&loader->root, name);
    return steps_load(&loader->loading, &node, table, steps);
}

static attn_status load_parts(struct loader *loader)
{
    struct tokenizer *tokenizer = loader->tokenizer;
    struct loading *loading = &loader->loading;
    const struct node *root = &loader->root;
    const struct node model = step_member(root, "model"), added = step_member(root, "added_tokens"),
                      post = step_member(root, "post_processor");
    attn_status status = node_decode_members(&loading->reading, root, members, ARRAY_LENGTH(members), tokenizer);
    if (status == ATTN_OK && !json_is_object(model.json))
        status = attn_fail(loading->reading.err, ATTN_ERR_FIELD, "/model", "/model is missing or no object");
    if (status == ATTN_OK)
        status = load_model(loader, &model);
    if (status == ATTN_OK)
        status = load_steps(loader, "normalizer", &normalizer_table, &tokenizer->normalizers);
    if (status == ATTN_OK)
        status = load_steps(loader, "pre_tokenizer", &pre_tokenizer_table, &tokenizer->pre_tokenizers);
    if (status == ATTN_OK)
        status = load_steps(loader, "decoder", &decoder_table, &tokenizer->decoders);
    if (status == ATTN_OK)
        status = added_load(loading, &added, &tokenizer->normalizers, &tokenizer->vocabulary, &tokenizer->added);
    return status == ATTN_OK ? postprocess_load(loading, &post, &tokenizer->postprocessor) : status;
}

static attn_status fail_json(const json_error_t *error, attn_arena *scratch, attn_error *err)
{
    if (attn_arena_is_cancelled(scratch))
        return attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while the tokenizer was read");
    if (json_tree_is_starved())
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory left to read the tokenizer");
    if (json_error_code(error) == json_error_null_byte_in_key)
        return attn_fail(err, ATTN_ERR_VALUE, NULL, "a name holds U+0000, which is not supported in a vocabulary");
    const attn_status status = attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the tokenizer is not JSON: %s", error->text);
    if (err != NULL && error->line > 0 && error->column > 0) {
        err->line = (size_t)error->line;
        err->column = (size_t)error->column;
    }
    return status;
}

attn_status tokenizer_load(const char *text, size_t length, attn_arena *arena, attn_arena *scratch,
                           const struct tokenizer **tokenizer, attn_error *err)
{
    static const struct skim nothing_lifted;
    static const struct member_table *const no_sections[] = {NULL};
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    json_error_t error;
    *tokenizer = NULL;
    json_t *json = json_tree_load(text, length, scratch, &error);
    if (json == NULL)
        return fail_json(&error, scratch, err);
    struct loader loader = {
        .loading = {.reading = {.arena = arena, .skim = &nothing_lifted, .sections = no_sections, .err = err},
                    .scratch = scratch},
        .tokenizer = attn_arena_take_zeroed(arena, 1, sizeof *loader.tokenizer),
        .root = {.json = json, .is_plain = true},
    };
    attn_status status = ATTN_OK;
    if (loader.tokenizer == NULL)
        status = attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory left to load the tokenizer");
    else if (!json_is_object(json))
        status = attn_fail(err, ATTN_ERR_FIELD, NULL, "the tokenizer is not an object");
    else {
        loader.loading.vocabulary = &loader.tokenizer->vocabulary;
        status = load_parts(&loader);
    }
    json_decref(json);
    attn_arena_release(scratch, mark);
    *tokenizer = status == ATTN_OK ? loader.tokenizer : NULL;
    return status;
}

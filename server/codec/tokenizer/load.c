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

/* The vocabulary of the model, which is read twice: to measure it, and to copy it. */
struct vocabulary_loader {
    struct loading *loading;
    struct vocabulary *vocabulary;
    struct node node;
    size_t bytes, size; /* of all texts with their NULs; one more than the highest id */
    char *to, *end;     /* the next text is copied to it; behind the last one */
};

static attn_status measure_object(void *context, const json_t *piece, size_t index)
{
    struct vocabulary_loader *loader = context;
    const char *name;
    json_t *value;
    (void)index;
    json_object_foreach((json_t *)(uintptr_t)piece, name, value)
    {
        const struct node entry = {.parent = &loader->node, .name = name, .json = value, .is_plain = true};
        int64_t id = 0;
        if (node_decode_integer(&loader->loading->reading, &entry, 0, VOCABULARY_IDS_MAX - 1, &id) != ATTN_OK)
            return loader->loading->reading.status;
        loader->bytes += strlen(name) + 1;
        loader->size = (size_t)id >= loader->size ? (size_t)id + 1 : loader->size;
    }
    return ATTN_OK;
}

static attn_status measure_list(void *context, const json_t *piece, size_t index)
{
    struct vocabulary_loader *loader = context;
    struct reading *reading = &loader->loading->reading;
    const size_t count = json_array_size(piece);
    for (size_t i = 0; i < count; i++) {
        const struct node entry = step_item(&loader->node, piece, index, i);
        const json_t *text = json_array_get(entry.json, 0);
        if (json_array_size(entry.json) != 2 || !json_is_string(text) || !json_is_number(json_array_get(entry.json, 1)))
            return node_fail_value(reading, &entry, "a token and its score, as [\"the\", -3.5]");
        if (strlen(json_string_value(text)) != json_string_length(text))
            return node_fail(reading, &entry, ATTN_ERR_VALUE, "holds U+0000, which is not supported");
        loader->bytes += json_string_length(text) + 1;
    }
    if (index + count > VOCABULARY_IDS_MAX)
        return node_fail(reading, &loader->node, ATTN_ERR_TOO_LARGE, "has more than %d tokens", VOCABULARY_IDS_MAX);
    loader->size = index + count > loader->size ? index + count : loader->size;
    return ATTN_OK;
}

static attn_status add_text(struct vocabulary_loader *loader, const char *text, uint32_t id)
{
    const struct text_span copy = {loader->to, strlen(text)};
    if (copy.length >= (size_t)(loader->end - loader->to) || id >= loader->size)
        return node_fail(&loader->loading->reading, &loader->node, ATTN_ERR_VALUE, "changed while it was read");
    memcpy(loader->to, text, copy.length + 1);
    loader->to += copy.length + 1;
    struct reading *reading = &loader->loading->reading;
    return node_note(reading, vocabulary_add(loader->vocabulary, copy, id, reading->err));
}

/* jansson finds a name that comes twice in a piece, and this one that comes again in a later piece. */
static attn_status add_object(void *context, const json_t *piece, size_t index)
{
    struct vocabulary_loader *loader = context;
    struct reading *reading = &loader->loading->reading;
    const char *name;
    json_t *value;
    (void)index;
    json_object_foreach((json_t *)(uintptr_t)piece, name, value)
    {
        if (vocabulary_find(loader->vocabulary, name, strlen(name)) != VOCABULARY_NONE)
            node_fail(reading, &loader->node, ATTN_ERR_SYNTAX, "has the token \"%.80s\" twice", name);
        if (node_has_failed(reading) || add_text(loader, name, (uint32_t)json_number_value(value)) != ATTN_OK)
            return reading->status;
    }
    return ATTN_OK;
}

static attn_status add_list(void *context, const json_t *piece, size_t index)
{
    struct vocabulary_loader *loader = context;
    struct reading *reading = &loader->loading->reading;
    for (size_t i = 0; i < json_array_size(piece) && !node_has_failed(reading); i++)
        add_text(loader, json_string_value(json_array_get(json_array_get(piece, i), 0)), (uint32_t)(index + i));
    return reading->status;
}

/*
 * Takes the memory of all tables in one block, and gives it back. So a budget that is too small refuses it before any
 * table is filled, and knows what they take together.
 */
static attn_status check_memory(const struct vocabulary_loader *loader)
{
    attn_arena *arena = loader->loading->reading.arena;
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    const size_t tables = vocabulary_bytes(loader->loading->vocab_count, loader->size) + merges_bytes(loader->loading);
    const void *all = attn_arena_take(arena, loader->bytes + tables, 1);
    attn_arena_release(arena, mark);
    return all != NULL ? ATTN_OK : node_fail_memory(&loader->loading->reading, &loader->node);
}

static attn_status load_vocabulary(struct loader *all, const struct node *vocab)
{
    struct loading *loading = &all->loading;
    const bool is_list = json_is_array(vocab->json);
    struct vocabulary_loader loader = {.loading = loading,
                                       .vocabulary = &all->tokenizer->vocabulary,
                                       .node = *vocab,
                                       .size = count_added_ids(json_object_get(all->root.json, "added_tokens"))};
    struct reading *reading = &loading->reading;
    loading_each(loading, loading->vocab, loading->vocab_count, is_list ? measure_list : measure_object, &loader);
    if (node_has_failed(reading) || check_memory(&loader) != ATTN_OK)
        return reading->status;
    node_note(reading,
              vocabulary_create(loader.vocabulary, loading->vocab_count, loader.size, reading->arena, reading->err));
    if (node_has_failed(reading))
        return reading->status;
    loader.to = attn_arena_take(loading->reading.arena, loader.bytes, 1);
    if (loader.to == NULL)
        return node_fail_memory(&loading->reading, vocab);
    loader.end = loader.to + loader.bytes;
    return loading_each(loading, loading->vocab, loading->vocab_count, is_list ? add_list : add_object, &loader);
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
    const struct node vocab = step_member(node, "vocab");
    const bool wants_list = kind == &model_unigram;
    if (loading->vocab.at == NULL || (wants_list ? !json_is_array(vocab.json) : !json_is_object(vocab.json)))
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
    struct reading *reading = &loading->reading;
    node_decode_members(reading, root, members, ARRAY_LENGTH(members), tokenizer);
    if (!json_is_object(model.json))
        node_fail(reading, &model, ATTN_ERR_FIELD, "is missing or no object");
    if (node_has_failed(reading) || node_note(reading, load_model(loader, &model)) != ATTN_OK)
        return reading->status;
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
    const struct text_span vocab = inside(loading->vocab), merges = inside(loading->merges);
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
    const struct text_span model = json_text_find((struct text_span){whole->body, whole->body_length}, "model");
    loading->vocab = json_text_find(model, "vocab");
    loading->merges = json_text_find(model, "merges");
    loading->vocab_count = json_text_items(loading->vocab);
    loading->merges_count = json_text_items(loading->merges);
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

attn_status tokenizer_load(const char *text, size_t length, attn_arena *arena, attn_arena *scratch,
                           const struct tokenizer **tokenizer, attn_error *err)
{
    static const struct member_table *const no_sections[] = {NULL};
    const struct skim whole = {.body = text, .body_length = length, .arena = scratch};
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    json_t *json = NULL;
    struct loader loader = {
        .loading = {.reading = {.arena = arena, .skim = &whole, .sections = no_sections, .err = err},
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
        node_note(reading, load_parts(&loader));
    }
    json_decref(json);
    attn_arena_release(scratch, mark);
    *tokenizer = node_has_failed(reading) ? NULL : loader.tokenizer;
    return reading->status;
}

/* tokenizer.c: the tokenizer.json of a GGUF file. */
#include <stdio.h>
#include <string.h>

#include "codec/bytes/chunks.h"
#include "codec/bytes/outcome.h"
#include "codec/gguf/gguf.h"
#include "codec/json/tree.h"
#include "codec/tokenizer/model/compose.h"

enum { TOKENS_MAX = 1 << 24 };

/* The state of gguf_tokenizer. */
struct composer {
    const struct gguf *file;
    const json_t *kinds;
    struct compose_token *tokens;
    size_t count;
    struct chunks out;
    attn_arena *scratch;
    struct outcome outcome;
};

static bool fail_list(struct composer *composer, const char *key, const char *what)
{
    return outcome_fail(&composer->outcome, ATTN_ERR_VALUE, NULL, "the metadata %s is not a list of %s for each token",
                        key, what);
}

static const struct gguf_value *find(const struct composer *composer, const char *key)
{
    return gguf_find(composer->file, key);
}

/* Reads texts, scores and kinds of tokens. A file may lack scores and kinds. */
static bool read_tokens(struct composer *composer)
{
    const struct gguf_value *texts = find(composer, "tokenizer.ggml.tokens"),
                            *scores = find(composer, "tokenizer.ggml.scores"),
                            *kinds = find(composer, "tokenizer.ggml.token_type");
    if (!gguf_is_texts(texts) || texts->count == 0 || texts->count > TOKENS_MAX)
        return outcome_fail(&composer->outcome, ATTN_ERR_VALUE, NULL,
                            "the metadata tokenizer.ggml.tokens is not a list of 1 to %d texts", TOKENS_MAX);
    if (scores != NULL && !(gguf_is_floats(scores) && scores->count == texts->count))
        return fail_list(composer, "tokenizer.ggml.scores", "a float32");
    if (kinds != NULL && !(gguf_is_integers(kinds) && kinds->count == texts->count))
        return fail_list(composer, "tokenizer.ggml.token_type", "an int32");
    composer->count = texts->count;
    composer->tokens = attn_arena_take(composer->scratch, texts->count, sizeof *composer->tokens);
    if (composer->tokens == NULL)
        return outcome_no_memory(&composer->outcome);
    const char *at = texts->at;
    for (size_t i = 0; i < texts->count; i++) {
        const int32_t kind = kinds != NULL ? gguf_integer_at(kinds, i) : COMPOSE_NORMAL;
        /* Texts are copied, because they are read several times, and another program may write to the file meanwhile. */
        const struct text_span text = gguf_next_text(texts, &at);
        const char *copy = attn_arena_copy_text(composer->scratch, text.at, text.length);
        if (copy == NULL)
            return outcome_no_memory(&composer->outcome);
        composer->tokens[i] = (struct compose_token){
            .text = {copy, text.length},
            .score = scores != NULL ? gguf_float_at(scores, i) : 0,
            .kind = kind >= COMPOSE_NORMAL && kind <= COMPOSE_BYTE ? (enum compose_kind)kind : COMPOSE_UNUSED};
    }
    return true;
}

/* A switch of the metadata, or what holds without it. */
static bool is_set(const struct composer *composer, const char *key, bool otherwise)
{
    (void)gguf_bool(find(composer, key), &otherwise); /* fails when the file does not say */
    return otherwise;
}

/* ---- tokens around a text ---- */

/* Fills in the token whose id the metadata has. False: the file asks for none. */
static bool find_special(const struct composer *composer, const char *key, char letter, struct compose_special *special)
{
    uint64_t id;
    if (!gguf_count(find(composer, key), &id) || id >= composer->count)
        return false;
    *special = (struct compose_special){letter, composer->tokens[id].text, (uint32_t)id};
    return true;
}

/* The post-processor that adds the first and the last token that the metadata asks for. */
static void write_specials(struct composer *composer, bool adds_first)
{
    struct chunks *out = &composer->out;
    struct compose_special specials[2];
    size_t count = 0;
    if (is_set(composer, "tokenizer.ggml.add_bos_token", adds_first))
        count += find_special(composer, "tokenizer.ggml.bos_token_id", 'b', &specials[count]);
    if (is_set(composer, "tokenizer.ggml.add_eos_token", false))
        count += find_special(composer, "tokenizer.ggml.eos_token_id", 'e', &specials[count]);
    chunks_text(out, ",\"post_processor\":");
    if (count == 0)
        chunks_text(out, "null");
    else
        compose_template("bAe", "bAeb1B1e1", specials, count, out);
}

/* ---- tokenizer.ggml.model "gpt2": BPE of bytes ---- */

static void write_json(struct chunks *out, const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    chunks_format(out, ",\"%s\":", name);
    chunks_text(out, text != NULL ? text : "null");
    out->is_ok &= text != NULL || value == NULL;
    json_tree_give_text(text);
}

/* Finds how the tokenizer splits texts, by tokenizer.ggml.pre. NULL: there is no such way here. */
static const json_t *find_steps(struct composer *composer)
{
    struct text_span pre = {"", 0};
    char known[256] = "";
    size_t length = 0, i;
    const char *steps;
    json_t *names, *name;
    (void)gguf_text(find(composer, "tokenizer.ggml.pre"), &pre); /* old files have none, which means "default" */
    json_object_foreach(json_object_get(composer->kinds, "bpe"), steps,
                        names){json_array_foreach(names, i, name){const char *text = json_string_value(name);
    if (text_equal(pre, text))
        return json_object_get(json_object_get(composer->kinds, "steps"), steps);
    if (text[0] != '\0' && length < sizeof known)
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "", text);
}
}
(void)outcome_fail(&composer->outcome, ATTN_ERR_VALUE, NULL,
                   "the metadata tokenizer.ggml.pre is \"%.*s\"; attnd has %s",
                   (int)(pre.length < 40 ? pre.length : 40), pre.at, known);
return NULL;
}

static bool write_given_merges(struct composer *composer)
{
    const struct gguf_value *merges = find(composer, "tokenizer.ggml.merges");
    struct chunks *out = &composer->out;
    if (!gguf_is_texts(merges))
        return outcome_fail(&composer->outcome, ATTN_ERR_VALUE, NULL,
                            "the metadata tokenizer.ggml.merges is not a list of texts");
    const char *at = merges->at;
    chunks_text(out, "[");
    for (size_t i = 0; i < merges->count && out->is_ok; i++) {
        chunks_text(out, i > 0 ? "," : "");
        chunks_json_span(out, gguf_next_text(merges, &at));
    }
    chunks_text(out, "]");
    return true;
}

static bool write_bytes(struct composer *composer)
{
    struct chunks *out = &composer->out;
    const json_t *steps = find_steps(composer);
    if (steps == NULL)
        return false;
    write_json(out, "normalizer", json_object_get(steps, "normalizer"));
    write_json(out, "pre_tokenizer", json_object_get(steps, "pre_tokenizer"));
    write_specials(composer, json_is_true(json_object_get(steps, "add_bos")));
    chunks_text(out, ",\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
                     "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"ignore_merges\":");
    chunks_text(out, json_is_true(json_object_get(steps, "ignore_merges")) ? "true" : "false");
    chunks_text(out, ",\"vocab\":");
    compose_vocabulary(composer->tokens, composer->count, out);
    chunks_text(out, ",\"merges\":");
    return write_given_merges(composer);
}

/* ---- "llama": BPE of SentencePiece, by scores ---- */

static bool write_scores(struct composer *composer)
{
    struct chunks *out = &composer->out;
    const bool has_prefix = is_set(composer, "tokenizer.ggml.add_space_prefix", true);
    const struct compose_token *unknown = NULL;
    if (find(composer, "tokenizer.ggml.scores") == NULL)
        return fail_list(composer, "tokenizer.ggml.scores", "a float32");
    for (size_t i = 0; i < composer->count && unknown == NULL; i++)
        unknown = composer->tokens[i].kind == COMPOSE_UNKNOWN ? &composer->tokens[i] : NULL;
    chunks_text(out, ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    chunks_text(out, has_prefix ? "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"}," : "");
    chunks_text(out, "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]}"
                     ",\"pre_tokenizer\":null");
    write_specials(composer, true);
    chunks_text(out, ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
                     "\"\xE2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
    chunks_text(out, has_prefix ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}" : "]}");
    chunks_text(out, ",\"model\":{\"type\":\"BPE\",\"fuse_unk\":true,\"byte_fallback\":true,\"unk_token\":");
    if (unknown != NULL)
        chunks_json_span(out, unknown->text);
    else
        chunks_text(out, "null");
    chunks_text(out, ",\"vocab\":");
    compose_vocabulary(composer->tokens, composer->count, out);
    chunks_text(out, ",\"merges\":");
    return outcome_note(&composer->outcome, compose_merges(composer->tokens, composer->count, composer->scratch, out,
                                                           composer->outcome.err));
}

/* ---- the tokenizer ---- */

static bool compose(struct composer *composer, struct text_span model)
{
    struct chunks *out = &composer->out;
    const bool is_bytes = text_equal(model, "gpt2");
    if (!is_bytes && !text_equal(model, "llama"))
        return outcome_fail(&composer->outcome, ATTN_ERR_VALUE, NULL,
                            "the metadata tokenizer.ggml.model is \"%.*s\"; attnd has gpt2 and llama",
                            (int)(model.length < 40 ? model.length : 40), model.at);
    if (!read_tokens(composer))
        return false;
    chunks_text(out, "{\"version\":\"1.0\",\"added_tokens\":");
    compose_added_tokens(composer->tokens, composer->count, out);
    const bool ok = is_bytes ? write_bytes(composer) : write_scores(composer);
    chunks_text(out, "}}");
    return ok;
}

attn_status gguf_tokenizer(const struct gguf *file, attn_arena *arena, attn_arena *scratch, struct text_span *text,
                           attn_error *err)
{
    const struct gguf_value *model = gguf_find(file, "tokenizer.ggml.model");
    struct composer composer = {
        .file = file, .out = chunks_begin(arena), .scratch = scratch, .outcome = {.arena = arena, .err = err}};
    struct text_span name = {"", 0};
    *text = (struct text_span){NULL, 0};
    if (model == NULL || (gguf_text(model, &name) && (text_equal(name, "none") || text_equal(name, "no_vocab"))))
        return ATTN_OK;
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    json_t *kinds = gguf_kinds(scratch);
    composer.kinds = kinds;
    if (kinds == NULL)
        (void)outcome_no_memory(&composer.outcome);
    else if (compose(&composer, name)) {
        *text = (struct text_span){chunks_join(&composer.out), composer.out.total_bytes};
        if (text->at == NULL)
            (void)outcome_no_memory(&composer.outcome);
    }
    json_decref(kinds);
    attn_arena_release(scratch, mark);
    return composer.outcome.status;
}

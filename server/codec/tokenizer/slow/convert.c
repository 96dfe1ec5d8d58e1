/* convert.c: writes a tokenizer.json of what the files of a slow tokenizer say. */
#include <string.h>

#include "base/array.h"
#include "codec/json/pieces.h"
#include "codec/tokenizer/slow/parts.h"

const struct slow_name slow_names[] = {
    {"tokenizer_config.json", SLOW_SETTINGS},
    {"special_tokens_map.json", SLOW_SPECIAL},
    {"added_tokens.json", SLOW_ADDED},
    {"vocab.txt", SLOW_LINES},
    {"vocab.json", SLOW_VOCAB},
    {"merges.txt", SLOW_MERGES},
    {"spiece.model", SLOW_PIECES},
    {"tokenizer.model", SLOW_PIECES},
    {"sentencepiece.bpe.model", SLOW_PIECES},
    {"spm.model", SLOW_PIECES},
    {"source.spm", SLOW_PIECES},
};
const size_t slow_name_count = ARRAY_LENGTH(slow_names);

const char *slow_vocabulary_name(const struct slow_files *files)
{
    const char *name = files->files[SLOW_PIECES].name;
    name = name != NULL ? name : files->files[SLOW_VOCAB].name;
    return name != NULL ? name : files->files[SLOW_LINES].name;
}

/* ---- the class ---- */

static bool read_settings(struct slow *slow)
{
    for (size_t i = SLOW_SETTINGS; i <= SLOW_ADDED; i++) {
        const struct slow_file_text *file = &slow->files->files[i];
        struct text_span strict;
        json_error_t error;
        if (file->name == NULL)
            continue;
        if (!json_text_quote_numbers(file->text, slow->outcome->arena, &strict))
            return outcome_no_memory(slow->outcome);
        slow->trees[i] = json_tree_load(strict.at, strict.length, slow->outcome->arena, &error);
        if (slow->trees[i] == NULL && json_tree_is_starved())
            return outcome_no_memory(slow->outcome);
        if (!json_is_object(slow->trees[i]))
            return slow_fail(slow, (enum slow_file)i, ATTN_ERR_SYNTAX, "is not a JSON object%s%.120s",
                             slow->trees[i] == NULL ? ": " : "", slow->trees[i] == NULL ? error.text : "");
    }
    return true;
}

static bool find_class(struct slow *slow)
{
    const json_t *given = slow_setting(slow, "tokenizer_class");
    struct text_span name = text_span_of(json_is_string(given) ? json_tree_word(given) : "");
    const size_t fast = sizeof "Fast" - 1;
    if (name.length > fast && memcmp(name.at + name.length - fast, "Fast", fast) == 0)
        name.length -= fast;
    json_error_t error;
    const struct text_span text = slow->files->config;
    json_t *config = json_tree_load(text.at, text.length, slow->outcome->arena, &error);
    const char *word = json_tree_word(json_object_get(config, "model_type"));
    const struct text_span type = text_span_of(word != NULL ? word : "");
    slow->class = name.length > 0 ? slow_class_find(name) : slow_class_of_model(type);
    if (slow->class == NULL)
        outcome_fail(
            slow->outcome, ATTN_ERR_VALUE, NULL,
            "there is no tokenizer.json, and the slow files of %s%.*s are not read; write it in Python: from "
            "transformers import AutoTokenizer; AutoTokenizer.from_pretrained(\"DIR\").save_pretrained(\"DIR\")",
            name.length > 0 ? "" : "a model of the type ", (int)(name.length > 0 ? name.length : type.length) % 80,
            name.length > 0 ? name.at : type.at);
    json_decref(config);
    return slow->class != NULL;
}

static bool check_files(const struct slow *slow)
{
    static const struct {
        enum slow_form form;
        enum slow_file file;
        const char *name;
    } needed[] = {
        {SLOW_WORDPIECE, SLOW_LINES, "vocab.txt"},
        {SLOW_BYTE_LEVEL, SLOW_VOCAB, "vocab.json"},
        {SLOW_BYTE_LEVEL, SLOW_MERGES, "merges.txt"},
        {SLOW_CLIP, SLOW_VOCAB, "vocab.json"},
        {SLOW_CLIP, SLOW_MERGES, "merges.txt"},
        {SLOW_SPM, SLOW_PIECES, "spiece.model, tokenizer.model, sentencepiece.bpe.model or spm.model"},
        {SLOW_SPM_VOCAB, SLOW_VOCAB, "vocab.json"},
        {SLOW_SPM_VOCAB, SLOW_PIECES, "source.spm or sentencepiece.bpe.model"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(needed); i++)
        if (slow->class->form == needed[i].form && slow->files->files[needed[i].file].name == NULL) {
            struct text_span rest = text_span_of(slow->class->names), first = rest;
            (void)text_next(&rest, ' ', &first);
            return outcome_fail(
                slow->outcome, ATTN_ERR_FIELD, NULL,
                "there is no tokenizer.json, and a %.*s without it needs %s, which is absent; download it",
                (int)first.length, first.at, needed[i].name);
        }
    return true;
}

/* ---- the file ---- */

static bool write_all(const struct slow *slow, struct chunks *out)
{
    static bool (*const writers[])(const struct slow *slow, struct chunks *out) = {
        [SLOW_WORDPIECE] = slow_write_wordpiece, [SLOW_BYTE_LEVEL] = slow_write_byte_level,
        [SLOW_CLIP] = slow_write_byte_level,     [SLOW_SPM] = slow_write_pieces,
        [SLOW_SPM_VOCAB] = slow_write_pieces,
    };
    chunks_text(out, "{\"version\":\"1.0\",");
    if (!slow_write_added(slow, out))
        return false;
    slow_write_post_processor(slow, out);
    return writers[slow->class->form](slow, out);
}

attn_status slow_convert(const struct slow_files *files, attn_arena *arena, struct text_span *json, attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    struct slow slow = {.files = files, .outcome = &outcome, .scratch = attn_arena_create_beside(arena)};
    struct chunks out = chunks_begin(arena);
    if (slow.scratch == NULL)
        return attn_fail_no_memory(err);
    if (read_settings(&slow) && find_class(&slow) && check_files(&slow) && slow_read_vocabulary(&slow) &&
        slow_find_tokens(&slow) && write_all(&slow, &out)) {
        *json = (struct text_span){chunks_join(&out), out.total_bytes};
        if (json->at == NULL)
            outcome_no_memory(&outcome);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(slow.trees); i++)
        json_decref(slow.trees[i]);
    attn_arena_destroy(slow.scratch);
    return outcome.status;
}

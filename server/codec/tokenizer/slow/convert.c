/* convert.c: writes a tokenizer.json of what the files of a slow tokenizer say. */
#include <string.h>

#include "base/array.h"
#include "base/embedded_file.h"
#include "codec/json/pieces.h"
#include "codec/tokenizer/slow/parts.h"

EMBEDDED_FILE(slow_classes, "server/codec/tokenizer/slow/classes.json");

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
    {"target.spm", SLOW_TARGET},
};
const size_t slow_name_count = ARRAY_LENGTH(slow_names);

const char *slow_vocabulary_name(const struct slow_files *files)
{
    const char *name = files->files[SLOW_PIECES].name;
    name = name != NULL ? name : files->files[SLOW_VOCAB].name;
    return name != NULL ? name : files->files[SLOW_LINES].name;
}

#define WRITE_IT                                                                                                       \
    "from transformers import AutoTokenizer; AutoTokenizer.from_pretrained(\"DIR\").save_pretrained(\"DIR\")"

/* Whether the pieces are those of sources alone. */
static bool has_source(const struct slow_files *files)
{
    const char *name = files->files[SLOW_PIECES].name;
    return name != NULL && strcmp(name, "source.spm") == 0;
}

bool slow_lacks_target(const struct slow_files *files)
{
    return has_source(files) && files->files[SLOW_TARGET].name == NULL;
}

bool slow_has_target(const struct slow_files *files, struct slow_files *target)
{
    const struct slow_file_text *own = &files->files[SLOW_TARGET], *source = &files->files[SLOW_PIECES];
    *target = *files;
    target->files[SLOW_PIECES] = *own;
    return own->name != NULL && has_source(files) &&
           (own->text.length != source->text.length || memcmp(own->text.at, source->text.at, own->text.length) != 0);
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

/* The row of a class whose list of that name has the word. NULL: there is none. */
static json_t *find_row(const struct slow *slow, const char *list, struct text_span word)
{
    const json_t *one;
    json_t *class;
    size_t i, k;
    json_array_foreach(json_object_get(slow->table, "classes"), i, class)
    {
        json_array_foreach(json_object_get(class, list), k, one)
        {
            if (text_equal(word, json_string_value(one)))
                return class;
        }
    }
    return NULL;
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
    slow->table = json_tree_load(slow_classes_begin, (size_t)(slow_classes_end - slow_classes_begin),
                                 slow->outcome->arena, &error);
    slow->class = name.length > 0 ? find_row(slow, "names", name) : find_row(slow, "models", type);
    if (slow->table == NULL)
        outcome_no_memory(slow->outcome);
    else if (slow->class == NULL)
        outcome_fail(
            slow->outcome, ATTN_ERR_VALUE, NULL,
            "there is no tokenizer.json, and the slow files of %s%.*s are not read; write it in Python: " WRITE_IT,
            name.length > 0 ? "" : "a model of the type ", (int)(name.length > 0 ? name.length : type.length) % 80,
            name.length > 0 ? name.at : type.at);
    json_decref(config);
    return slow->class != NULL;
}

/* With another value of these settings, the class makes other ids than those that are made here. */
static bool check_settings(const struct slow *slow)
{
    const char *name;
    json_t *wanted;
    json_object_foreach(json_object_get(slow->class, "only"), name, wanted)
    {
        const json_t *given = slow_setting(slow, name);
        if (given != NULL && !json_equal(given, wanted))
            return slow_fail(slow, SLOW_SETTINGS, ATTN_ERR_VALUE,
                             "/%.60s has a value that needs a tokenizer.json; write it in Python: " WRITE_IT, name);
    }
    return true;
}

/* ---- the form ---- */

static const struct form {
    const char *name;
    bool (*read)(struct slow *slow);
    bool (*write)(const struct slow *slow, struct chunks *out);
    struct {
        enum slow_file file;
        const char *name;
    } needed[2];
} forms[] = {
    {"wordpiece", slow_read_lines, slow_write_wordpiece, {{SLOW_LINES, "vocab.txt"}}},
    {"byte_level", slow_read_json, slow_write_byte_level, {{SLOW_VOCAB, "vocab.json"}, {SLOW_MERGES, "merges.txt"}}},
    {"spm",
     slow_read_pieces,
     slow_write_pieces,
     {{SLOW_PIECES, "spiece.model, tokenizer.model, sentencepiece.bpe.model or spm.model"}}},
    {"spm_vocab",
     slow_read_pieces_and_json,
     slow_write_pieces,
     {{SLOW_VOCAB, "vocab.json"}, {SLOW_PIECES, "source.spm or sentencepiece.bpe.model"}}},
};

static const struct form *find_form(struct slow *slow)
{
    const json_t *table = json_object_get(slow->table, "forms");
    const char *name = json_tree_word(json_object_get(slow->class, "form"));
    size_t i = 0;
    while (strcmp(forms[i].name, name) != 0)
        i++;
    slow->form = json_object_get(table, name);
    if (json_is_string(slow->form)) /* the steps are those of another form */
        slow->form = json_object_get(table, json_tree_word(slow->form));
    return &forms[i];
}

static bool check_files(const struct slow *slow, const struct form *form)
{
    for (size_t i = 0; i < ARRAY_LENGTH(form->needed) && form->needed[i].name != NULL; i++)
        if (slow->files->files[form->needed[i].file].name == NULL)
            return outcome_fail(
                slow->outcome, ATTN_ERR_FIELD, NULL,
                "there is no tokenizer.json, and a %s without it needs %s, which is absent; download it",
                json_tree_word(json_array_get(json_object_get(slow->class, "names"), 0)), form->needed[i].name);
    return true;
}

/* ---- the file ---- */

static bool write_all(const struct slow *slow, const struct form *form, struct chunks *out)
{
    chunks_text(out, "{\"version\":\"1.0\",");
    if (!slow_write_added(slow, out))
        return false;
    slow_write_steps(slow, out);
    return form->write(slow, out);
}

static bool convert(struct slow *slow, struct chunks *out)
{
    if (!read_settings(slow) || !find_class(slow) || !check_settings(slow))
        return false;
    const struct form *form = find_form(slow);
    return check_files(slow, form) && form->read(slow) && slow_find_tokens(slow) && write_all(slow, form, out);
}

attn_status slow_convert(const struct slow_files *files, attn_arena *arena, struct text_span *json, attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    struct slow slow = {.files = files, .outcome = &outcome, .scratch = attn_arena_create_beside(arena)};
    struct chunks out = chunks_begin(arena);
    if (slow.scratch == NULL)
        return attn_fail_no_memory(err);
    if (convert(&slow, &out)) {
        *json = (struct text_span){chunks_join(&out), out.total_bytes};
        if (json->at == NULL)
            outcome_no_memory(&outcome);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(slow.trees); i++)
        json_decref(slow.trees[i]);
    json_decref(slow.table);
    attn_arena_destroy(slow.scratch);
    return outcome.status;
}

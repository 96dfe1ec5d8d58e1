/* convert.c: writes a tokenizer.json of what the files of a slow tokenizer say. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/base64.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/utf8.h"
#include "codec/json/pieces.h"
#include "codec/tokenizer/slow/parts.h"

enum { MERGE_WORK_MAX = 1 << 27 }; /* squares of the bytes of pieces: a bound for the steps that look for merges */

#define SPACE "\xE2\x96\x81" /* U+2581, which SentencePiece writes for a space */

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

static attn_status read_settings(struct slow *slow)
{
    for (size_t i = SLOW_SETTINGS; i <= SLOW_ADDED; i++) {
        const struct slow_file_text *file = &slow->files->files[i];
        struct text_span strict;
        json_error_t error;
        if (file->name == NULL)
            continue;
        if (!json_text_quote_numbers(file->text, slow->arena, &strict))
            return attn_fail_no_memory(slow->err);
        slow->trees[i] = json_tree_load(strict.at, strict.length, slow->arena, &error);
        if (slow->trees[i] == NULL && json_tree_is_starved())
            return attn_fail_no_memory(slow->err);
        if (!json_is_object(slow->trees[i]))
            return slow_fail(slow, (enum slow_file)i, ATTN_ERR_SYNTAX, "is not a JSON object%s%.120s",
                             slow->trees[i] == NULL ? ": " : "", slow->trees[i] == NULL ? error.text : "");
    }
    return ATTN_OK;
}

/* The value of the member "model_type", found in the text of config.json. */
static struct text_span model_type(const struct slow *slow, json_t **config)
{
    json_error_t error;
    *config = json_tree_load(slow->files->config.at, slow->files->config.length, slow->arena, &error);
    const char *type = json_tree_word(json_object_get(*config, "model_type"));
    return text_span_of(type != NULL ? type : "");
}

static attn_status find_class(struct slow *slow)
{
    const json_t *given = slow_setting(slow, "tokenizer_class");
    struct text_span name = text_span_of(json_is_string(given) ? json_tree_word(given) : "");
    const size_t fast = sizeof "Fast" - 1;
    if (name.length > fast && memcmp(name.at + name.length - fast, "Fast", fast) == 0)
        name.length -= fast;
    json_t *config = NULL;
    const struct text_span type = model_type(slow, &config);
    slow->class = name.length > 0 ? slow_class_find(name) : slow_class_of_model(type);
    attn_status status = ATTN_OK;
    if (slow->class == NULL)
        status = attn_fail(
            slow->err, ATTN_ERR_VALUE, NULL,
            "there is no tokenizer.json, and the slow files of %s%.*s are not read; write it in Python: from "
            "transformers import AutoTokenizer; AutoTokenizer.from_pretrained(\"DIR\").save_pretrained(\"DIR\")",
            name.length > 0 ? "" : "a model of the type ", (int)(name.length > 0 ? name.length : type.length) % 80,
            name.length > 0 ? name.at : type.at);
    json_decref(config);
    return status;
}

static attn_status check_files(const struct slow *slow)
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
            return attn_fail(slow->err, ATTN_ERR_FIELD, NULL,
                             "there is no tokenizer.json, and a %.*s without it needs %s, which is absent; download it",
                             (int)first.length, first.at, needed[i].name);
        }
    return ATTN_OK;
}

/* ---- added tokens, and what is added around a text ---- */

static const char *bool_text(bool value)
{
    return value ? "true" : "false";
}

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
    return slow->model.model_type == SENTENCEPIECE_BPE && slow->model.pieces[i].type == PIECE_USER;
}

static int compare_ids(const void *a, const void *b)
{
    const struct slow_token *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* In the order of ids, as the loader wants tokens that the vocabulary does not have. */
static attn_status write_added(const struct slow *slow, struct chunks *out)
{
    size_t count = slow->token_count;
    for (size_t i = 0; i < slow->model.count; i++)
        count += is_found_first(slow, i);
    struct slow_token *tokens = attn_arena_take(slow->arena, count, sizeof *tokens);
    if (tokens == NULL)
        return attn_fail_no_memory(slow->err);
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
    return ATTN_OK;
}

static const struct slow_token *token_of(const struct slow *slow, enum slow_role role)
{
    return slow_token_find(slow, slow->roles[role]);
}

/* The role of a letter of slow_class.single; ROLES: the letter is a text. */
static enum slow_role role_of(char letter)
{
    static const char letters[] = {
        [ROLE_BOS] = 'b', [ROLE_EOS] = 'e', [ROLE_SEP] = 's', [ROLE_CLS] = 'c', [ROLE_LANG] = 'l'};
    for (size_t i = 0; i < sizeof letters; i++)
        if (letters[i] == letter)
            return (enum slow_role)i;
    return ROLES;
}

/* The token that a letter adds. NULL: the letter is a text, or adds none. */
static const struct slow_token *added_by(const struct slow *slow, char letter)
{
    const enum slow_role role = role_of(letter);
    const bool asks = slow->class->adds_by_settings;
    if (role == ROLES ||
        (asks && role == ROLE_BOS && !slow_is_set(slow, "add_bos_token", slow->class->bos_by_default)) ||
        (asks && role == ROLE_EOS && !slow_is_set(slow, "add_eos_token", false)))
        return NULL;
    return token_of(slow, role);
}

static void write_template(const struct slow *slow, struct chunks *out, const char *name, const char *parts)
{
    const char *comma = "";
    chunks_format(out, "\"%s\":[", name);
    for (; *parts != '\0'; parts++) {
        const struct slow_token *token = added_by(slow, *parts);
        const unsigned type = parts[1] == '1';
        const bool is_text = *parts == 'A' || *parts == 'B';
        if (token == NULL && !is_text)
            continue;
        chunks_format(out, "%s{\"%s\":{\"id\":", comma, is_text ? "Sequence" : "SpecialToken");
        if (is_text)
            chunks_format(out, "\"%c\"", *parts);
        else
            chunks_json_span(out, token->text);
        chunks_format(out, ",\"type_id\":%u}}", type);
        comma = ",";
    }
    chunks_text(out, "],");
}

static void write_special(const struct slow *slow, struct chunks *out)
{
    const struct slow_token *written[ROLES];
    size_t count = 0;
    chunks_text(out, "\"special_tokens\":{");
    for (const char *letter = "besclA"; *letter != '\0'; letter++) {
        const struct slow_token *token = added_by(slow, *letter);
        bool is_there = token == NULL;
        for (size_t i = 0; i < count && !is_there; i++)
            is_there = written[i] == token;
        if (is_there)
            continue;
        chunks_text(out, count > 0 ? "," : "");
        chunks_json_span(out, token->text);
        chunks_text(out, ":{\"id\":");
        chunks_json_span(out, token->text);
        chunks_format(out, ",\"ids\":[%u],\"tokens\":[", (unsigned)token->id);
        chunks_json_span(out, token->text);
        chunks_text(out, "]}");
        written[count++] = token;
    }
    chunks_text(out, "}");
}

static void write_post_processor(const struct slow *slow, struct chunks *out)
{
    chunks_text(out, "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[");
    if (slow->class->form == SLOW_BYTE_LEVEL)
        chunks_format(out, "{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":%s},",
                      bool_text(slow_is_set(slow, "add_prefix_space", false)));
    chunks_text(out, "{\"type\":\"TemplateProcessing\",");
    write_template(slow, out, "single", slow->class->single);
    write_template(slow, out, "pair", slow->class->pair);
    write_special(slow, out);
    chunks_text(out, "}]},");
}

/* ---- WordPiece ---- */

static void write_ids(const struct slow *slow, struct chunks *out)
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

static void write_unknown(const struct slow *slow, struct chunks *out)
{
    chunks_text(out, ",\"unk_token\":");
    if (token_of(slow, ROLE_UNK) != NULL)
        chunks_json_span(out, slow->roles[ROLE_UNK]);
    else
        chunks_text(out, "null");
}

/* The steps of BasicTokenizer. An accent goes when letters are lowered, unless the settings say otherwise. */
static void write_bert_normalizer(const struct slow *slow, struct chunks *out, bool lowers, bool strips, bool is_spaced)
{
    chunks_format(
        out,
        "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":%s,\"strip_accents\":false,"
        "\"lowercase\":false},{\"type\":\"NFC\"}",
        bool_text(is_spaced));
    if (lowers || strips)
        chunks_format(out,
                      ",{\"type\":\"BertNormalizer\",\"clean_text\":false,\"handle_chinese_chars\":false,"
                      "\"strip_accents\":%s,\"lowercase\":%s}",
                      bool_text(strips), bool_text(lowers));
    (void)slow;
}

static void write_wordpiece(const struct slow *slow, struct chunks *out)
{
    const bool lowers = slow_is_set(slow, "do_lower_case", slow->class->lowers_by_default);
    chunks_text(out, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    write_bert_normalizer(slow, out, lowers, slow_is_set(slow, "strip_accents", lowers),
                          slow_is_set(slow, "tokenize_chinese_chars", true));
    chunks_format(out,
                  "]},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                  "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":%s},"
                  "\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\"",
                  bool_text(slow_is_set(slow, "clean_up_tokenization_spaces", true)));
    write_unknown(slow, out);
    chunks_text(out, ",");
    write_ids(slow, out);
    chunks_text(out, "}}");
}

/* ---- byte-level BPE ---- */

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
static attn_status write_merges(const struct slow *slow, struct chunks *out)
{
    struct text_span rest = slow->files->files[SLOW_MERGES].text, line;
    const char *comma = "";
    chunks_text(out, ",\"merges\":[");
    for (size_t number = 1; rest.length > 0; number++) {
        const char *end = memchr(rest.at, '\n', rest.length);
        line = (struct text_span){rest.at, end != NULL ? (size_t)(end - rest.at) : rest.length};
        rest = (struct text_span){rest.at + line.length + (end != NULL), rest.length - line.length - (end != NULL)};
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
    return ATTN_OK;
}

/* The words that a class cuts a text into. */
static const char *pattern_of(const struct slow *slow)
{
    if (slow->class->form == SLOW_CLIP)
        return "(?i:<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+)";
    if (slow->class->normalizers != NULL)
        return "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|"
               "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+";
    return NULL;
}

static attn_status write_byte_level(const struct slow *slow, struct chunks *out)
{
    const bool is_clip = slow->class->form == SLOW_CLIP;
    const char *pattern = pattern_of(slow);
    if (is_clip) {
        chunks_text(out, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
        write_bert_normalizer(slow, out, true, false, true);
        chunks_text(out, "]},");
    } else if (slow->class->normalizers != NULL)
        chunks_text(out, "\"normalizer\":{\"type\":\"NFC\"},");
    chunks_text(out, "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (pattern != NULL)
        chunks_format(out, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"%s\",\"invert\":true},",
                      pattern, is_clip ? "Removed" : "Isolated");
    if (slow_is_set(slow, "add_prefix_space", false)) /* before the whole text alone */
        chunks_text(out,
                    "{\"type\":\"Metaspace\",\"replacement\":\" \",\"prepend_scheme\":\"first\",\"split\":false},");
    chunks_format(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":%s}]},",
                  bool_text(pattern == NULL));
    chunks_text(out, is_clip ? "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},{\"type\":"
                               "\"Replace\",\"pattern\":{\"String\":\"</w>\"},\"content\":\" \"}]},"
                             : "\"decoder\":{\"type\":\"ByteLevel\"},");
    chunks_format(out, "\"model\":{\"type\":\"BPE\",\"fuse_unk\":false,\"end_of_word_suffix\":\"%s\"",
                  is_clip ? "</w>" : "");
    write_unknown(slow, out);
    chunks_text(out, ",");
    write_ids(slow, out);
    return write_merges(slow, out);
}

/* ---- SentencePiece ---- */

static void write_charsmap(const struct slow *slow, struct chunks *out)
{
    const struct text_span map = slow->model.charsmap;
    const size_t length = base64_encoded_length(map.length);
    if (map.length == 0)
        return;
    chunks_text(out, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    char *to = chunks_reserve(out, length);
    if (to != NULL) {
        base64_encode(to, map.at, map.length);
        chunks_commit(out, length);
    }
    chunks_text(out, "\"},");
}

/* Whether a space is set before every text between added tokens, or before the first alone. */
enum prefix { PREFIX_NONE, PREFIX_FIRST, PREFIX_EACH };

static enum prefix prefix_of(const struct slow *slow)
{
    const bool is_legacy = !slow->class->has_legacy || slow_is_set(slow, "legacy", true);
    if (slow->class->has_legacy && !slow_is_set(slow, "add_prefix_space", true))
        return PREFIX_NONE;
    return !is_legacy ? PREFIX_FIRST : slow->model.add_dummy_prefix ? PREFIX_EACH : PREFIX_NONE;
}

static void write_spm_steps(const struct slow *slow, struct chunks *out)
{
    const struct slow_class *class = slow->class;
    const bool is_cased = class->normalizers == NULL;
    chunks_text(out, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    chunks_text(out, is_cased ? "" : class->normalizers);
    if (!is_cased && !slow_is_set(slow, "keep_accents", false))
        chunks_text(out, "{\"type\":\"NFKD\"},{\"type\":\"StripAccents\"},");
    if (slow_is_set(slow, "do_lower_case", class->lowers_by_default))
        chunks_text(out, "{\"type\":\"Lowercase\"},");
    write_charsmap(slow, out);
    if (slow->model.remove_extra_whitespaces)
        chunks_text(out, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\A +| +\\\\z\"},\"content\":\"\"},"
                         "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"},");
    if (prefix_of(slow) == PREFIX_EACH)
        chunks_text(out, "{\"type\":\"Prepend\",\"prepend\":\"" SPACE "\"},");
    chunks_text(out, "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SPACE "\"}]},");
    if (prefix_of(slow) == PREFIX_FIRST)
        chunks_text(out, "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" SPACE
                         "\",\"prepend_scheme\":\"first\",\"split\":false},");
    chunks_text(
        out, "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" SPACE
             "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
    if (prefix_of(slow) != PREFIX_NONE)
        chunks_text(out, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
    chunks_text(out, "]},");
}

/* Of ALBERT's pieces, those that end in a digit and a comma are cut again; so they are taken last. */
static bool is_cut_again(const struct slow *slow, struct text_span text)
{
    return slow->class->normalizers != NULL && text.length > 1 && text.at[text.length - 1] == ',' &&
           text.at[text.length - 2] >= '0' && text.at[text.length - 2] <= '9';
}

static attn_status write_unigram(const struct slow *slow, struct chunks *out)
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
    return ATTN_OK;
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
        if (((unsigned char)text.at[at] & 0xC0) == 0x80 || !is_part(slow, text.at, at) ||
            !is_part(slow, text.at + at, text.length - at))
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
static attn_status write_bpe(const struct slow *slow, struct chunks *out)
{
    const struct vocabulary *vocabulary = &slow->vocabulary;
    struct scored *order = attn_arena_take(slow->arena, vocabulary->size, sizeof *order);
    const char *comma = "";
    size_t count = 0, work = 0;
    if (order == NULL)
        return attn_fail_no_memory(slow->err);
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
    write_unknown(slow, out);
    chunks_text(out, ",");
    write_ids(slow, out);
    chunks_text(out, ",\"merges\":[");
    for (size_t i = 0; i < count && !attn_arena_is_cancelled(slow->arena); i++)
        write_pairs(slow, out, vocabulary_text(vocabulary, order[i].id), &comma);
    chunks_text(out, "]}}");
    return ATTN_OK;
}

static attn_status write_spm(const struct slow *slow, struct chunks *out)
{
    write_spm_steps(slow, out);
    return slow->model.model_type == SENTENCEPIECE_BPE ? write_bpe(slow, out) : write_unigram(slow, out);
}

/* ---- the file ---- */

static attn_status write_all(const struct slow *slow, struct chunks *out)
{
    chunks_text(out, "{\"version\":\"1.0\",");
    if (write_added(slow, out) != ATTN_OK)
        return slow->err->status;
    write_post_processor(slow, out);
    switch (slow->class->form) {
    case SLOW_WORDPIECE:
        write_wordpiece(slow, out);
        return ATTN_OK;
    case SLOW_BYTE_LEVEL:
    case SLOW_CLIP:
        return write_byte_level(slow, out);
    case SLOW_SPM:
    case SLOW_SPM_VOCAB:
        break;
    }
    return write_spm(slow, out);
}

static attn_status convert(struct slow *slow, struct text_span *json)
{
    struct chunks out = chunks_begin(slow->arena);
    attn_status status = read_settings(slow);
    if (status == ATTN_OK)
        status = find_class(slow);
    if (status == ATTN_OK)
        status = check_files(slow);
    if (status == ATTN_OK)
        status = slow_read_vocabulary(slow);
    if (status == ATTN_OK)
        status = slow_find_tokens(slow);
    if (status == ATTN_OK)
        status = write_all(slow, &out);
    if (status != ATTN_OK)
        return status;
    *json = (struct text_span){chunks_join(&out), out.total_bytes};
    return json->at != NULL ? ATTN_OK : attn_fail_no_memory(slow->err);
}

attn_status slow_convert(const struct slow_files *files, attn_arena *arena, struct text_span *json, attn_error *err)
{
    struct slow slow = {.files = files, .arena = arena, .err = err, .scratch = attn_arena_create_beside(arena)};
    const attn_status status = slow.scratch != NULL ? convert(&slow, json) : attn_fail_no_memory(err);
    for (size_t i = 0; i < ARRAY_LENGTH(slow.trees); i++)
        json_decref(slow.trees[i]);
    if (slow.scratch != NULL)
        attn_arena_destroy(slow.scratch);
    return status;
}

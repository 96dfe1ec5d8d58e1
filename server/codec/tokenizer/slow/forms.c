/* forms.c: the forms of a tokenizer.json: WordPiece, BPE over bytes, and the pieces of SentencePiece. */
#include <stdlib.h>
#include <string.h>

#include "codec/bytes/base64.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/slow/parts.h"

/* ---- WordPiece ---- */

/* The steps of BasicTokenizer. An accent goes when letters are lowered, unless the settings say otherwise. */
static void write_bert_normalizer(struct chunks *out, bool lowers, bool strips, bool is_spaced)
{
    chunks_format(
        out,
        "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":%s,\"strip_accents\":false,"
        "\"lowercase\":false},{\"type\":\"NFC\"}",
        slow_bool_text(is_spaced));
    if (lowers || strips)
        chunks_format(out,
                      ",{\"type\":\"BertNormalizer\",\"clean_text\":false,\"handle_chinese_chars\":false,"
                      "\"strip_accents\":%s,\"lowercase\":%s}",
                      slow_bool_text(strips), slow_bool_text(lowers));
}

bool slow_write_wordpiece(const struct slow *slow, struct chunks *out)
{
    const bool lowers = slow_is_set(slow, "do_lower_case", slow->class->lowers_by_default);
    chunks_text(out, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    write_bert_normalizer(out, lowers, slow_is_set(slow, "strip_accents", lowers),
                          slow_is_set(slow, "tokenize_chinese_chars", true));
    chunks_format(out,
                  "]},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                  "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":%s},"
                  "\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\"",
                  slow_bool_text(slow_is_set(slow, "clean_up_tokenization_spaces", true)));
    slow_write_unknown(slow, out);
    chunks_text(out, ",");
    slow_write_ids(slow, out);
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

bool slow_write_byte_level(const struct slow *slow, struct chunks *out)
{
    const bool is_clip = slow->class->form == SLOW_CLIP;
    const char *pattern = pattern_of(slow);
    if (is_clip) {
        chunks_text(out, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
        write_bert_normalizer(out, true, false, true);
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
                  slow_bool_text(pattern == NULL));
    chunks_text(out, is_clip ? "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},{\"type\":"
                               "\"Replace\",\"pattern\":{\"String\":\"</w>\"},\"content\":\" \"}]},"
                             : "\"decoder\":{\"type\":\"ByteLevel\"},");
    chunks_format(out, "\"model\":{\"type\":\"BPE\",\"fuse_unk\":false,\"end_of_word_suffix\":\"%s\"",
                  is_clip ? "</w>" : "");
    slow_write_unknown(slow, out);
    chunks_text(out, ",");
    slow_write_ids(slow, out);
    return write_merges(slow, out);
}

/* ---- the pieces of SentencePiece, a Unigram or a BPE ---- */

enum { MERGE_WORK_MAX = 1 << 27 }; /* squares of the bytes of pieces: a bound for the steps that look for merges */

#define SPACE "\xE2\x96\x81" /* U+2581, which SentencePiece writes for a space */

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

static bool write_unigram(const struct slow *slow, struct chunks *out)
{
    const struct vocabulary *vocabulary = &slow->vocabulary;
    const struct slow_token *unknown = slow_token_of(slow, ROLE_UNK);
    chunks_format(out, "\"model\":{\"type\":\"Unigram\",\"single_precision\":true,\"byte_fallback\":%s",
                  slow_bool_text(slow->model.byte_fallback));
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
                  slow_bool_text(slow->model.byte_fallback));
    slow_write_unknown(slow, out);
    chunks_text(out, ",");
    slow_write_ids(slow, out);
    chunks_text(out, ",\"merges\":[");
    for (size_t i = 0; i < count && !attn_arena_is_cancelled(slow->outcome->arena); i++)
        write_pairs(slow, out, vocabulary_text(vocabulary, order[i].id), &comma);
    chunks_text(out, "]}}");
    return true;
}

bool slow_write_pieces(const struct slow *slow, struct chunks *out)
{
    write_spm_steps(slow, out);
    return slow->model.model_type == SENTENCEPIECE_BPE ? write_bpe(slow, out) : write_unigram(slow, out);
}

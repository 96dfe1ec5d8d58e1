/* byte_level.c: the tokenizer.json of BPE over bytes, as GPT-2 and CLIP have it. */
#include <string.h>

#include "codec/tokenizer/slow/parts.h"

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

attn_status slow_write_byte_level(const struct slow *slow, struct chunks *out)
{
    const bool is_clip = slow->class->form == SLOW_CLIP;
    const char *pattern = pattern_of(slow);
    if (is_clip) {
        chunks_text(out, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
        slow_write_bert_normalizer(out, true, false, true);
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

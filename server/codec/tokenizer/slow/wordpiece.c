/* wordpiece.c: the tokenizer.json of WordPiece. */
#include "codec/tokenizer/slow/parts.h"

void slow_write_bert_normalizer(struct chunks *out, bool lowers, bool strips, bool is_spaced)
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

void slow_write_wordpiece(const struct slow *slow, struct chunks *out)
{
    const bool lowers = slow_is_set(slow, "do_lower_case", slow->class->lowers_by_default);
    chunks_text(out, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    slow_write_bert_normalizer(out, lowers, slow_is_set(slow, "strip_accents", lowers),
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
}

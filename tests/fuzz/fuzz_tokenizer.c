/*
 * fuzz_tokenizer.c: a tokenizer.json from bytes, and texts for a tokenizer.
 *
 * Bytes that begin with a brace are a tokenizer, up to a NUL; a text for it stands behind the NUL. Otherwise the first
 * byte chooses one of the tokenizers below, and whether the text is cut into a pair, decoded with special tokens, and
 * truncated.
 */
#include <string.h>

#include "codec/bytes/utf8.h"
#include "codec/json/tree.h"
#include "codec/tokenizer/encoding.h"
#include "fuzz.h"

enum { ARENA_BYTES = 64 << 20, HAS_PAIR = 4, SKIPS_SPECIAL = 8, TRUNCATES = 16, LENGTH = 8 };

#define ADDED                                                                                                          \
    "\"added_tokens\":[{\"id\":0,\"content\":\"[U]\",\"normalized\":false,\"special\":true,\"lstrip\":true},"          \
    "{\"id\":1,\"content\":\"Ab\",\"single_word\":true,\"rstrip\":true}],"
#define TEMPLATE "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[U]\",0],\"cls\":[\"[U]\",0]},"

static const char *const texts[] = {
    "{" ADDED TEMPLATE "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
    "\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\"model\":{\"type\":\"WordPiece\","
    "\"unk_token\":\"[U]\",\"vocab\":{\"[U]\":0,\"Ab\":1,\"a\":2,\"##a\":3,\"##b\":4,\"i\":5,\"##\":6,\".\":7}}}",

    "{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
    "\"trim_offsets\":true},\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"a\",0],\"cls\":[\"b\",1],"
    "\"trim_offsets\":true,\"add_prefix_space\":true},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
    "\"unk_token\":\"a\",\"fuse_unk\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"aba\":3,\"\xC4\xA0\":4,\"\xC4\xA0"
    "a\":5,\"\xC3\x83\":6},\"merges\":[\"a b\",\"ab a\",\"\xC4\xA0 a\"]}}",

    "{" ADDED "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Nmt\"},{\"type\":\"NFKC\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"},{\"type\":\"Strip\",\"strip_left\":true,"
    "\"strip_right\":true}]},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
    "\"first\",\"split\":true},\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"},"
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"[U]\",0],[\"Ab\",-1],[\"a\",-2],"
    "[\"_a\",-1.5],[\"aa\",-3],[\"<0xC3>\",-9],[\"<0xA4>\",-9]]}}",

    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"_\"},{\"type\":\"NFKD\"},"
    "{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
    "\"content\":\"_\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"},"
    "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"Punctuation\",\"behavior\":\"MergedWithNext\"},"
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a|b)*c?\"},\"behavior\":\"MergedWithPrevious\",\"invert\":true}]},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},\"content\":"
    "\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":"
    "1},{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}]},\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
    "\"ignore_merges\":true,\"end_of_word_suffix\":\"</w>\",\"continuing_subword_prefix\":\"#\",\"vocab\":{\"a\":0,"
    "\"#a</w>\":1,\"aa</w>\":2,\"<0xC3>\":3,\"<0xA4>\":4,\"#a\":5,\"aa\":6,\"<0x3C>\":7,\"<0x2F>\":8,\"<0x77>\":9,"
    "\"<0x3E>\":10},\"merges\":[[\"a\",\"#a</w>\"],[\"a\",\"#a\"]]}}",
};

static const struct tokenizer *tokenizers[sizeof texts / sizeof texts[0]];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    json_tree_prepare();
    attn_arena *arena = attn_arena_create(ARENA_BYTES), *scratch = attn_arena_create(ARENA_BYTES);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        attn_error err = {.status = ATTN_OK};
        const attn_status status = tokenizer_load(texts[i], strlen(texts[i]), arena, scratch, &tokenizers[i], &err);
        fuzz_claim(status == ATTN_OK, err.message);
    }
    attn_arena_destroy(scratch);
    return 0; /* the arena has the tokenizers */
}

static size_t count_characters(struct text_span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += ((unsigned char)text.at[i] & 0xC0) != 0x80;
    return count;
}

static void check_token(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                        const struct tokenizer_token *token)
{
    const struct text_span text = token->segment == 1 ? input->pair : input->text;
    fuzz_claim(tokenizer_token(tokenizer, token->id).at != NULL, "a token has a spelling");
    fuzz_claim(token->id < tokenizer_vocabulary_size(tokenizer), "an id is below the size");
    fuzz_claim(token->text.at != NULL && token->text.at[token->text.length] == '\0', "the text of a token ends");
    fuzz_claim(token->end <= count_characters(text), "offsets lie within the text");
    fuzz_claim(token->is_special == (token->segment == TOKENIZER_NO_SEGMENT), "added tokens have no segment");
}

static void run(const struct tokenizer *tokenizer, const struct tokenizer_input *input, bool skips_special)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES), *scratch = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct tokenizer_output output;
    struct text_span decoded;
    attn_status status = tokenizer_encode(tokenizer, input, arena, scratch, &output, &err);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK) {
        uint32_t *ids = attn_arena_take(arena, output.count, sizeof *ids);
        fuzz_claim(input->max_length == 0 || output.count <= input->max_length, "a limit is kept");
        for (size_t i = 0; i < output.count && ids != NULL; i++) {
            check_token(tokenizer, input, &output.tokens[i]);
            ids[i] = output.tokens[i].id;
        }
        if (ids != NULL)
            fuzz_claim_told(
                tokenizer_decode(tokenizer, ids, output.count, skips_special, arena, scratch, &decoded, &err), &err);
    }
    attn_arena_destroy(arena);
    attn_arena_destroy(scratch);
}

static void load_and_run(const char *data, size_t size)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES), *scratch = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    const struct tokenizer *tokenizer;
    const char *nul = memchr(data, '\0', size);
    const size_t length = nul != NULL ? (size_t)(nul - data) : size;
    const attn_status status = tokenizer_load(data, length, arena, scratch, &tokenizer, &err);
    fuzz_claim_told(status, &err);
    attn_arena_destroy(scratch);
    struct tokenizer_input input = {.text = text_span_of("Ab  a\xCC\x81 1 [U] it's \xE6\xB3\xA8!"),
                                    .add_special = true};
    if (status == ATTN_OK)
        run(tokenizer, &input, false);
    if (status == ATTN_OK && nul != NULL) {
        input.text = (struct text_span){nul + 1, size - length - 1};
        run(tokenizer, &input, true);
    }
    attn_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_input bytes = fuzz_read(data, size, '{');
    if (size > 0 && data[0] == '{') {
        load_and_run(bytes.text, bytes.length);
        return 0;
    }
    struct tokenizer_input input = {.text = {bytes.text, bytes.length}, .add_special = true};
    if (bytes.choice & HAS_PAIR) {
        input.text.length = bytes.length / 2;
        input.pair = (struct text_span){bytes.text + input.text.length, bytes.length - input.text.length};
    }
    input.truncate = bytes.choice & TRUNCATES;
    input.max_length = input.truncate ? LENGTH : 0;
    run(tokenizers[bytes.choice % (sizeof texts / sizeof texts[0])], &input, bytes.choice & SKIPS_SPECIAL);
    return 0;
}

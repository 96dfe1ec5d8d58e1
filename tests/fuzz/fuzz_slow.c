/*
 * fuzz_slow.c: the files of slow tokenizers from bytes.
 *
 * The first byte chooses the class, and which of its files the bytes are; the others are those below. What loads then
 * encodes a text.
 */
#include <string.h>

#include "codec/json/tree.h"
#include "codec/tokenizer/encoding.h"
#include "codec/tokenizer/slow/slow.h"
#include "fuzz.h"

enum { ARENA_BYTES = 64 << 20 };

static const struct {
    enum slow_file file; /* the bytes */
    const char *settings;
} forms[] = {
    {SLOW_LINES, "{\"tokenizer_class\":\"BertTokenizer\"}"},
    {SLOW_SETTINGS, NULL},
    {SLOW_SPECIAL, "{\"tokenizer_class\":\"MPNetTokenizer\"}"},
    {SLOW_ADDED, "{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":false}"},
    {SLOW_VOCAB, "{\"tokenizer_class\":\"RobertaTokenizer\"}"},
    {SLOW_MERGES, "{\"tokenizer_class\":\"CLIPTokenizerFast\"}"},
    {SLOW_PIECES, "{\"tokenizer_class\":\"T5Tokenizer\",\"legacy\":false}"},
    {SLOW_PIECES, "{\"tokenizer_class\":\"LlamaTokenizer\",\"add_eos_token\":true}"},
    {SLOW_PIECES, "{\"tokenizer_class\":\"AlbertTokenizer\"}"},
    {SLOW_PIECES, "{\"tokenizer_class\":\"MBart50Tokenizer\",\"src_lang\":\"tr_TR\"}"},
    {SLOW_PIECES, "{\"tokenizer_class\":\"M2M100Tokenizer\"}"},
    {SLOW_PIECES, "{\"tokenizer_class\":\"PegasusTokenizer\"}"},
    {SLOW_PIECES, "{\"tokenizer_class\":\"NllbTokenizer\"}"},
};

static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n",
                  vocab[] = "{\"a\":0,\"b\":1,\"ab\":2,\"<unk>\":3,\"</s>\":4}", merges[] = "#version: 0.2\na b\n",
                  config[] = "{\"model_type\":\"bert\"}";

static void run(const struct slow_files *files)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES), *scratch = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    const struct tokenizer *tokenizer = NULL;
    struct tokenizer_output output;
    struct text_span json;
    const struct tokenizer_input input = {.text = text_span_of("Ab  a\xCC\x81 1 <s> it's \xE6\xB3\xA8!"),
                                          .add_special = true};
    attn_status status = slow_convert(files, arena, &json, &err);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK)
        fuzz_claim_told(status = tokenizer_load_slow(json, arena, scratch, &tokenizer, &err), &err);
    if (status == ATTN_OK)
        fuzz_claim_told(tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err), &err);
    attn_arena_destroy(scratch);
    attn_arena_destroy(arena);
}

static void give(struct slow_files *files, enum slow_file file, const char *text, size_t length)
{
    files->files[file] = (struct slow_file_text){{text, length}, "a file"};
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    json_tree_prepare();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_input bytes = fuzz_read(data, size, '\0');
    const size_t form = bytes.choice % (sizeof forms / sizeof forms[0]);
    struct slow_files files = {.config = text_span_of(config)};
    if (forms[form].settings != NULL)
        give(&files, SLOW_SETTINGS, forms[form].settings, strlen(forms[form].settings));
    give(&files, SLOW_LINES, lines, sizeof lines - 1);
    give(&files, SLOW_VOCAB, vocab, sizeof vocab - 1);
    give(&files, SLOW_MERGES, merges, sizeof merges - 1);
    give(&files, forms[form].file, bytes.text, bytes.length);
    run(&files);
    return 0;
}

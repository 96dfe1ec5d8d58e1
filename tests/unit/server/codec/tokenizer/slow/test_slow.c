/* test_slow.c: tests of server/codec/tokenizer/slow: what the files of slow tokenizers become, and how they are refused. */
#include "codec/tokenizer/slow/slow.h"

#include <string.h>

#include "../tokenizer_stage.h"

#define CONFIG_OF(type)   "{\"model_type\":\"" type "\"}"
#define CLASS(name, more) "{\"tokenizer_class\":\"" name "\"" more "}"
#define LINES             "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\n##llo\nwor\n##ld\n!\n"
#define VOCAB                                                                                                          \
    "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"<unk>\":3,\"a\":4,\"b\":5,\"ab\":6,\"\xC4\xA0\":7,\"\xC4\xA0"                 \
    "ab\":8,\"<mask>\":9}"
#define MERGES "#version: 0.2\na b\n\xC4\xA0 ab\n"

/* ---- SentencePiece by hand ---- */

struct bytes {
    char at[2048];
    size_t length;
};

static void put(struct bytes *to, const char *text, size_t length)
{
    memcpy(to->at + to->length, text, length);
    to->length += length;
}

static void put_message(struct bytes *to, int field, const struct bytes *message)
{
    const char head[] = {(char)(field << 3 | 2), (char)message->length};
    ck_assert_uint_lt(message->length, 128);
    put(to, head, sizeof head);
    put(to, message->at, message->length);
}

static void put_number(struct bytes *to, unsigned field, unsigned value)
{
    char key[3] = {(char)(field << 3), (char)value, 0};
    if (field > 15) {
        key[0] = (char)((field << 3 & 0x7F) | 0x80);
        key[1] = (char)(field >> 4);
        key[2] = (char)value;
    }
    put(to, key, field > 15 ? 3 : 2);
}

static void put_piece(struct bytes *to, const char *text, float score, unsigned type)
{
    struct bytes piece = {.length = 0}, name = {.length = 0};
    put(&name, text, strlen(text));
    put_message(&piece, 1, &name);
    put(&piece, "\x15", 1);
    put(&piece, (const char *)&score, sizeof score);
    put_number(&piece, 3, type);
    put_message(to, 1, &piece);
}

static const struct {
    const char *text;
    float score;
    unsigned type; /* 1 a word, 2 unknown, 3 control, 4 of the user, 6 a byte */
} pieces[] = {{"<unk>", 0, 2},
              {"<s>", 0, 3},
              {"</s>", 0, 3},
              {"\xE2\x96\x81", -2, 1},
              {"a", -3, 1},
              {"b", -4, 1},
              {"\xE2\x96\x81"
               "a",
               -1, 1},
              {"ab", -2.5F, 1},
              {"<0x21>", 0, 6}};

static struct text_span make_model(unsigned type, bool has_bytes)
{
    struct bytes *model = attn_arena_take_zeroed(arena, 1, sizeof *model);
    struct bytes trainer = {.length = 0};
    for (size_t i = 0; i < COUNT(pieces); i++)
        put_piece(model, pieces[i].text, pieces[i].score, pieces[i].type);
    put_number(&trainer, 3, type);
    put_number(&trainer, 35, has_bytes);
    put_message(model, 2, &trainer);
    return (struct text_span){model->at, model->length};
}

/* ---- conversion ---- */

static struct slow_files files;

static void give(enum slow_file file, struct text_span text, const char *name)
{
    files.files[file] = (struct slow_file_text){text, name};
}

static void begin(const char *settings, const char *config)
{
    files = (struct slow_files){.config = text_span_of(config)};
    if (settings != NULL)
        give(SLOW_SETTINGS, text_span_of(settings), "tokenizer_config.json");
}

static const char *ids_of(const char *text, bool add_special)
{
    static char said[256];
    struct text_span json;
    err = (attn_error){.status = ATTN_OK};
    const attn_status status = slow_convert(&files, arena, &json, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    const struct tokenizer_input input = {.text = text_span_of(text), .add_special = add_special};
    const struct tokenizer_output output = encode(load_slow(json), &input);
    size_t used = 0;
    for (size_t i = 0; i < output.count; i++)
        used += (size_t)snprintf(said + used, sizeof said - used, i > 0 ? " %u" : "%u", (unsigned)output.tokens[i].id);
    return said;
}

static const struct {
    const char *settings, *config, *text, *ids;
} words[] = {
    {NULL, CONFIG_OF("bert"), "HELLO w\xC3\xB6rld!", "2 5 6 7 8 9 3"},
    {CLASS("BertTokenizerFast", ""), CONFIG_OF("other"), "hello", "2 5 6 3"},
    {CLASS("BertTokenizer", ",\"do_lower_case\":false"), CONFIG_OF("bert"), "Hello", "2 1 3"},
    {CLASS("BertTokenizer", ",\"strip_accents\":false"), CONFIG_OF("bert"), "W\xC3\xB6rld", "2 1 3"},
    {CLASS("BertTokenizer", ",\"do_lower_case\":false,\"strip_accents\":true"), CONFIG_OF("bert"), "w\xC3\xB6rld",
     "2 7 8 3"},
    {CLASS("BertTokenizer", ",\"model_max_length\":1000000000000000019884624838656,\"x\":NaN"), CONFIG_OF("bert"),
     "[MASK]he", "2 4 5 3"},
    {CLASS("BertTokenizer", ",\"added_tokens_decoder\":{\"12\":{\"content\":\"Xy\",\"normalized\":true}}"),
     CONFIG_OF("bert"), "he xy", "2 5 12 3"},
    {CLASS("BertTokenizer", ",\"additional_special_tokens\":[\"<new>\"]"), CONFIG_OF("bert"), "he<new>", "2 5 10 3"},
    {CLASS("BertTokenizer", ",\"additional_special_tokens\":[\"\",\"<new>\"]"), CONFIG_OF("bert"), "he<new>",
     "2 5 10 3"},
    {CLASS("BertTokenizer", ",\"mask_token\":\"\""), CONFIG_OF("bert"), "[MASK]he", "2 4 5 3"},
};

START_TEST(lines_are_a_wordpiece)
{
    begin(words[_i].settings, words[_i].config);
    give(SLOW_LINES, text_span_of(LINES), "vocab.txt");
    ck_assert_str_eq(ids_of(words[_i].text, true), words[_i].ids);
}
END_TEST

START_TEST(a_vocabulary_and_merges_are_a_byte_level_bpe)
{
    begin(NULL, CONFIG_OF("roberta"));
    give(SLOW_VOCAB, text_span_of(VOCAB), "vocab.json");
    give(SLOW_MERGES, text_span_of(MERGES), "merges.txt");
    ck_assert_str_eq(ids_of("ab ab  <mask>b", true), "0 6 8 9 5 2");
    ck_assert_str_eq(ids_of("ab c", false), "6 7 3");
}
END_TEST

/* ▁a and b cost 5, ▁ and ab 4.5; control pieces are not found in a text, and their ids are those of the class. */
START_TEST(pieces_are_a_unigram)
{
    begin(NULL, CONFIG_OF("xlm-roberta"));
    give(SLOW_PIECES, make_model(1, false), "sentencepiece.bpe.model");
    ck_assert_str_eq(ids_of("a  ab ", true), "0 7 4 8 2");
    ck_assert_str_eq(ids_of("<mask>a!?", true), "0 10 7 3 2");
    begin(NULL, CONFIG_OF("t5"));
    give(SLOW_PIECES, make_model(1, false), "spiece.model");
    ck_assert_str_eq(ids_of("a<extra_id_0>b", true), "6 108 3 5 2");
}
END_TEST

/* Pegasus has 103 tokens before the pieces; NLLB one, and its languages behind them. */
START_TEST(pieces_have_the_ids_of_their_class)
{
    begin("{\"unk_token\":\"<unk_2>\"}", CONFIG_OF("pegasus"));
    give(SLOW_PIECES, make_model(1, false), "spiece.model");
    ck_assert_str_eq(ids_of("ab<mask_2><unk_102>", false), "106 110 3 104");
    begin(CLASS("NllbTokenizer", ",\"src_lang\":\"acm_Arab\""), CONFIG_OF("m2m_100"));
    give(SLOW_PIECES, make_model(1, false), "sentencepiece.bpe.model");
    ck_assert_str_eq(ids_of("ab<mask>ace_Latn", true), "13 4 8 10 12 2");
}
END_TEST

/* ab is merged after ▁a, which has the higher score, so b stays alone. */
START_TEST(pieces_are_a_bpe)
{
    begin(CLASS("LlamaTokenizer", ",\"add_eos_token\":true"), CONFIG_OF("llama"));
    give(SLOW_PIECES, make_model(2, true), "tokenizer.model");
    ck_assert_str_eq(ids_of("ab!</s>b", true), "1 6 5 8 2 3 5 2");
}
END_TEST

static const struct {
    const char *settings, *lines, *vocab, *merges, *pieces, *message;
} refused[] = {
    {NULL, NULL, NULL, NULL, NULL, "a BertTokenizer without it needs vocab.txt"},
    {NULL, "[UNK]\n\xFF\n", NULL, NULL, NULL, "vocab.txt: the token with the id 1 is not UTF-8"},
    {CLASS("PreTrainedTokenizerFast", ""), LINES, NULL, NULL, NULL, "slow files of PreTrainedTokenizer are not read"},
    {"[]", LINES, NULL, NULL, NULL, "tokenizer_config.json: is not a JSON object"},
    {"{", LINES, NULL, NULL, NULL, "tokenizer_config.json: is not a JSON object: string or '}' expected"},
    {CLASS("BertTokenizer", ",\"added_tokens_decoder\":{\"x\":{}}"), LINES, NULL, NULL, NULL,
     "/added_tokens_decoder/x must be a token"},
    {CLASS("GPT2Tokenizer", ""), NULL, VOCAB, NULL, NULL, "needs merges.txt"},
    {CLASS("GPT2Tokenizer", ""), NULL, "[]", MERGES, NULL, "vocab.json: is not a JSON object of ids"},
    {CLASS("GPT2Tokenizer", ""), NULL, "{\"a\":-1}", MERGES, NULL, "vocab.json: /a must be an integer from 0 to"},
    {CLASS("GPT2Tokenizer", ""), NULL, "{\"a\":16777215}", MERGES, NULL, "none is far above the number of tokens"},
    {CLASS("GPT2Tokenizer", ""), NULL, "{\"a\":1,}", MERGES, NULL, "vocab.json: the tokenizer is not JSON"},
    {CLASS("GPT2Tokenizer", ""), NULL, "{\"a\":0,\"b\":0}", MERGES, NULL, "vocab.json: "},
    {CLASS("GPT2Tokenizer", ""), NULL, VOCAB, "a b c\n", NULL, "merges.txt: line 1 is not two tokens"},
    {CLASS("GPT2Tokenizer", ""), NULL, VOCAB, "a b\nz a\n", NULL,
     "merges.txt: line 2 merges \"z a\", and vocab.json lacks"},
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL, "no protobuf", "spiece.model: is not a model of SentencePiece"},
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL, "\x0A\x7F", "spiece.model: is not a model of SentencePiece"},
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a\x0A\x02\x18\x09",
     "spiece.model: has a piece that is damaged, with the id 1"},
    {CLASS("PegasusTokenizer", ",\"offset\":0"), NULL, NULL, NULL, "",
     "tokenizer_config.json: /offset has a value that needs a tokenizer.json; write it in Python: from transformers"},
    {CLASS("MarianTokenizer", ",\"separate_vocabs\":true"), NULL, VOCAB, NULL, "", "/separate_vocabs has a value that"},
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL, "", "spiece.model: is not a model of SentencePiece"},
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL, "\x0A", "spiece.model: is not a model of SentencePiece"},
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a\x0A",
     "spiece.model: is not a model of SentencePiece"},
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a\x0B",
     "spiece.model: is not a model of SentencePiece"}, /* a wire type that there is not */
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a\x20\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
     "spiece.model: is not a model of SentencePiece"}, /* a number of eleven bytes */
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a\x80",
     "spiece.model: is not a model of SentencePiece"}, /* a number without an end */
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL, "\x0A\x02\x18\x01",
     "spiece.model: has a piece that is damaged, with the id 0"}, /* without a text */
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a\x0A\x05\x0A\x01"
     "b\x18\x07",
     "spiece.model: has a piece that is damaged, with the id 1"}, /* of no kind */
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x08\x0A\x01"
     "a\x15\x01\x01\xC0\x7F",
     "spiece.model: has a piece that is damaged, with the id 0"}, /* with the score NaN */
    {CLASS("T5Tokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a\x12\x02\x18\x03",
     "spiece.model: is of the type 3; Unigram (1) and BPE (2) are supported"},
    {CLASS("BertTokenizer", ",\"added_tokens_decoder\":{\"16777216\":{\"content\":\"x\"}}"), LINES, NULL, NULL, NULL,
     "/added_tokens_decoder/16777216 must be a token"},
    {CLASS("BertTokenizer", ",\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}"), LINES, NULL, NULL, NULL,
     "/added_tokens_decoder/x must be a token"},
    {CLASS("BertTokenizer", ",\"added_tokens_decoder\":{\"12\":{\"content\":\"\"}}"), LINES, NULL, NULL, NULL,
     "/added_tokens_decoder/12 must be a token"},
    {CLASS("Fast", ""), LINES, NULL, NULL, NULL, "the slow files of Fast are not read"},
    {CLASS("GPT2Tokenizer", ""), NULL, VOCAB, "a b\n#version: 0.2\n", NULL,
     "merges.txt: line 2 merges \"#version: 0.2\", and vocab.json lacks"},
    {CLASS("GPT2Tokenizer", ""), NULL, VOCAB, " a b\n", NULL, "merges.txt: line 1 is not two tokens"},
    {CLASS("GPT2Tokenizer", ""), NULL, VOCAB, "ab\n", NULL, "merges.txt: line 1 is not two tokens"},
    {CLASS("GPT2Tokenizer", ""), NULL, VOCAB, "a z\n", NULL, "merges.txt: line 1 merges \"a z\""},
    {CLASS("MBartTokenizer", ""), NULL, NULL, NULL,
     "\x0A\x03\x0A\x01"
     "a",
     "spiece.model: has 1 pieces, and its class MBartTokenizer needs 3"},
};

START_TEST(what_is_wrong_is_named)
{
    struct text_span json;
    begin(refused[_i].settings, CONFIG_OF("bert"));
    const char *texts[] = {[SLOW_LINES] = refused[_i].lines,
                           [SLOW_VOCAB] = refused[_i].vocab,
                           [SLOW_MERGES] = refused[_i].merges,
                           [SLOW_PIECES] = refused[_i].pieces};
    static const char *const names[] = {[SLOW_LINES] = "vocab.txt",
                                        [SLOW_VOCAB] = "vocab.json",
                                        [SLOW_MERGES] = "merges.txt",
                                        [SLOW_PIECES] = "spiece.model"};
    for (size_t i = 0; i < COUNT(texts); i++)
        if (texts[i] != NULL)
            give((enum slow_file)i, text_span_of(texts[i]), names[i]);
    err = (attn_error){.status = ATTN_OK};
    ck_assert_int_ne(slow_convert(&files, arena, &json, &err), ATTN_OK);
    ck_assert_msg(strstr(err.message, refused[_i].message) != NULL, "%s", err.message);
}
END_TEST

START_TEST(a_model_of_no_known_class_is_named)
{
    struct text_span json;
    begin(NULL, CONFIG_OF("other"));
    give(SLOW_LINES, text_span_of(LINES), "vocab.txt");
    err = (attn_error){.status = ATTN_OK};
    ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(err.message, "the slow files of a model of the type other are not read"));
}
END_TEST

/* The lines of the merges may end in "\r\n", or with a space. */
START_TEST(files_of_windows_are_read)
{
    begin(NULL, CONFIG_OF("roberta"));
    give(SLOW_VOCAB, text_span_of(VOCAB), "vocab.json");
    give(SLOW_MERGES, text_span_of("#version: 0.2\r\na b \r\n\r\n\xC4\xA0 ab\r\n"), "merges.txt");
    ck_assert_str_eq(ids_of("ab ab", false), "6 8");
    begin(NULL, CONFIG_OF("bert"));
    give(SLOW_LINES, text_span_of("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nhe"), "vocab.txt");
    ck_assert_str_eq(ids_of("he", true), "2 5 3");
}
END_TEST

/* Tokens of added_tokens.json are special, and not normalized, if the settings name them. */
START_TEST(added_tokens_have_their_file)
{
    static const struct {
        const char *settings, *text, *ids;
    } cases[] = {{"{}", "he[NEW]", "2 5 10 3"},
                 {"{}", "he[new]", "2 5 10 3"},
                 {"{\"additional_special_tokens\":[\"[NEW]\"]}", "he[NEW]", "2 5 10 3"},
                 {"{\"additional_special_tokens\":[\"[NEW]\"]}", "he[new]", "2 5 1 1 1 3"},
                 {"{\"bos_token\":\"[NEW]\"}", "he[new]", "2 5 1 1 1 3"},
                 {"{\"mask_token\":\"[NEW]\"}", "he[NEW]", "2 5 10 3"},
                 {"{\"mask_token\":\"[NEW]\"}", "he[new]", "2 5 1 1 1 3"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(cases[i].settings, CONFIG_OF("bert"));
        give(SLOW_LINES, text_span_of(LINES), "vocab.txt");
        give(SLOW_ADDED, text_span_of("{\"[NEW]\":10}"), "added_tokens.json");
        ck_assert_str_eq(ids_of(cases[i].text, true), cases[i].ids);
    }
    static const char *const wrong[] = {"{\"\":10}", "{\"[NEW]\":-1}", "{\"[NEW]\":16777216}", "{\"[NEW]\":\"10\"}"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct text_span json;
        give(SLOW_ADDED, text_span_of(wrong[i]), "added_tokens.json");
        err = (attn_error){.status = ATTN_OK};
        ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_ERR_VALUE);
        ck_assert_ptr_nonnull(strstr(err.message, "must be the id of a token"));
    }
}
END_TEST

START_TEST(special_tokens_have_a_limit)
{
    enum { OTHERS_MAX = 4096 };
    static char settings[OTHERS_MAX * 16];
    for (int count = OTHERS_MAX; count <= OTHERS_MAX + 1; count++) {
        struct text_span json;
        size_t used = (size_t)snprintf(settings, sizeof settings, "{\"additional_special_tokens\":[");
        for (int i = 0; i < count; i++)
            used += (size_t)snprintf(settings + used, sizeof settings - used, "%s\"<%d>\"", i > 0 ? "," : "", i);
        snprintf(settings + used, sizeof settings - used, "]}");
        begin(settings, CONFIG_OF("bert"));
        give(SLOW_LINES, text_span_of(LINES), "vocab.txt");
        err = (attn_error){.status = ATTN_OK};
        ck_assert_int_eq(slow_convert(&files, arena, &json, &err), count == OTHERS_MAX ? ATTN_OK : ATTN_ERR_TOO_LARGE);
    }
    ck_assert_ptr_nonnull(strstr(err.message, "or 4096 additional special tokens"));
}
END_TEST

START_TEST(sentinels_have_a_limit)
{
    static const struct {
        const char *settings, *text, *ids;
    } cases[] = {{"{\"extra_ids\":2}", "<extra_id_0>", "10"},
                 {"{\"extra_ids\":1000}", "<extra_id_0>", "1008"},
                 {"{\"extra_ids\":1001}", "<extra_id_0>", "3 0 4 0"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(cases[i].settings, CONFIG_OF("t5"));
        give(SLOW_PIECES, make_model(1, false), "spiece.model");
        ck_assert_str_eq(ids_of(cases[i].text, false), cases[i].ids);
    }
}
END_TEST

/* An empty line has an id, and no token. */
START_TEST(lines_are_counted)
{
    struct text_span json;
    begin(NULL, CONFIG_OF("bert"));
    give(SLOW_LINES, text_span_of("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n\nhe"), "vocab.txt");
    ck_assert_str_eq(ids_of("he", true), "2 6 3");
    /* Of equal lines, the last one counts. */
    give(SLOW_LINES, text_span_of("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\nhe"), "vocab.txt");
    ck_assert_str_eq(ids_of("he", true), "2 6 3");
    give(SLOW_LINES, (struct text_span){"[PAD]\na\0b\n", 10}, "vocab.txt");
    ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_ERR_SYNTAX);
    ck_assert_str_eq(err.message, "vocab.txt: line 2 has U+0000");
}
END_TEST

/* The mask takes the space before it, also where the settings have its text alone; sentinels take those around them. */
START_TEST(tokens_take_the_spaces_of_their_class)
{
    for (int i = 0; i < 2; i++) {
        begin(i == 0 ? NULL : "{\"mask_token\":\"<mask>\"}", CONFIG_OF("roberta"));
        give(SLOW_VOCAB, text_span_of(VOCAB), "vocab.json");
        give(SLOW_MERGES, text_span_of(MERGES), "merges.txt");
        ck_assert_str_eq(ids_of("ab <mask>", false), "6 9");
    }
    begin(NULL, CONFIG_OF("t5"));
    give(SLOW_PIECES, make_model(1, false), "spiece.model");
    ck_assert_str_eq(ids_of("a <extra_id_0> a", false), "6 108 6");
}
END_TEST

/* A piece of the user has as many times the highest score of a word as it has bytes, less a tenth. */
START_TEST(pieces_of_the_user_have_a_score)
{
    struct bytes *model = attn_arena_take_zeroed(arena, 1, sizeof *model);
    struct text_span json;
    put_piece(model, "<pad>", 0, 3);
    put_piece(model, "[CLS]", 0, 3);
    put_piece(model, "[SEP]", 0, 3);
    put_piece(model, "<unk>", 0, 2);
    put_piece(model, "a", -3, 1);
    put_piece(model, "b", -2, 1);
    put_piece(model, "user", -1, 4);
    put_number(model, 9, 1); /* a field that nothing reads */
    begin(NULL, CONFIG_OF("albert"));
    give(SLOW_PIECES, (struct text_span){model->at, model->length}, "spiece.model");
    ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_OK);
    ck_assert_ptr_nonnull(strstr(json.at, "[\"<pad>\",-1e+30]"));
    ck_assert_ptr_nonnull(strstr(json.at, "[\"a\",-3],[\"b\",-2],[\"user\",-8.0999999999999996]]"));
    ck_assert_ptr_nonnull(strstr(json.at, "\"unk_id\":3"));
    /* An unknown token that is no piece has an id behind them, and stands for no character. */
    begin("{\"unk_token\":\"<none>\"}", CONFIG_OF("albert"));
    give(SLOW_PIECES, (struct text_span){model->at, model->length}, "spiece.model");
    ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_OK);
    ck_assert_ptr_null(strstr(json.at, "unk_id"));
}
END_TEST

/* Marian has one model per language, of which both may be the same. */
START_TEST(targets_have_files_of_their_own)
{
    struct slow_files target;
    begin(NULL, CONFIG_OF("marian"));
    ck_assert_ptr_null(slow_vocabulary_name(&files));
    give(SLOW_LINES, text_span_of("l"), "vocab.txt");
    ck_assert_str_eq(slow_vocabulary_name(&files), "vocab.txt");
    give(SLOW_VOCAB, text_span_of("v"), "vocab.json");
    ck_assert_str_eq(slow_vocabulary_name(&files), "vocab.json");
    ck_assert(!slow_lacks_target(&files) && !slow_has_target(&files, &target));
    give(SLOW_PIECES, text_span_of("one"), "sentencepiece.bpe.model");
    ck_assert_str_eq(slow_vocabulary_name(&files), "sentencepiece.bpe.model");
    ck_assert(!slow_lacks_target(&files));
    give(SLOW_TARGET, text_span_of("two"), "target.spm");
    ck_assert(!slow_has_target(&files, &target));
    give(SLOW_PIECES, text_span_of("one"), "source.spm");
    ck_assert(!slow_lacks_target(&files) && slow_has_target(&files, &target));
    ck_assert_str_eq(target.files[SLOW_PIECES].name, "target.spm");
    ck_assert_str_eq(target.files[SLOW_VOCAB].name, "vocab.json");
    give(SLOW_TARGET, text_span_of("ones"), "target.spm");
    ck_assert(slow_has_target(&files, &target));
    give(SLOW_TARGET, text_span_of("one"), "target.spm");
    ck_assert(!slow_has_target(&files, &target) && !slow_lacks_target(&files));
    give(SLOW_TARGET, (struct text_span){NULL, 0}, NULL);
    ck_assert(!slow_has_target(&files, &target) && slow_lacks_target(&files));
}
END_TEST

/* Pieces of ALBERT that end in a digit and a comma are found last; each score of JSON is behind its piece. */
START_TEST(pieces_with_a_digit_and_a_comma_come_last)
{
    static const char *const texts[] = {"<unk>", "<pad>", "0,", "9,", "/,", ":,", ",", "9", "9,9"};
    struct bytes *model = attn_arena_take_zeroed(arena, 1, sizeof *model);
    struct text_span json;
    for (size_t i = 0; i < COUNT(texts); i++)
        put_piece(model, texts[i], -2, i == 0 ? 2 : 1);
    begin(NULL, CONFIG_OF("albert"));
    give(SLOW_PIECES, (struct text_span){model->at, model->length}, "spiece.model");
    ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_OK);
    ck_assert_ptr_nonnull(strstr(json.at, "[\"0,\",-102],[\"9,\",-102],[\"/,\",-2],[\":,\",-2],[\",\",-2],[\"9\",-2],"
                                          "[\"9,9\",-2]]"));
}
END_TEST

/*
 * Merges by the scores of what they make, of equal scores by the ids; the longest left part first. Bytes and control pieces
 * are no parts, and a piece of the user is found before all merges, as an added token.
 */
START_TEST(scores_are_a_list_of_merges)
{
    static const struct {
        const char *text;
        float score;
        unsigned type;
    } list[] = {{"ab", -3, 1},   {"<unk>", 0, 2},  {"<s>", 0, 3}, {"</s>", 0, 3}, {"a", -9, 1},
                {"b", -9, 1},    {"abb", -2, 1},   {"bb", -3, 1}, {"c", 0, 3},    {"abc", -1, 1},
                {"user", -5, 4}, {"<0x21>", 0, 6}, {"aab", 0, 3}};
    struct bytes *model = attn_arena_take_zeroed(arena, 1, sizeof *model);
    struct bytes trainer = {.length = 0};
    struct text_span json;
    for (size_t i = 0; i < COUNT(list); i++)
        put_piece(model, list[i].text, list[i].score, list[i].type);
    put_number(&trainer, 3, 2);
    put_message(model, 2, &trainer);
    begin(CLASS("LlamaTokenizer", ""), CONFIG_OF("llama"));
    give(SLOW_PIECES, (struct text_span){model->at, model->length}, "tokenizer.model");
    ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_OK);
    ck_assert_ptr_nonnull(strstr(json.at, "\"merges\":[[\"ab\",\"b\"],[\"a\",\"bb\"],[\"a\",\"b\"],[\"b\",\"b\"]]"));
    ck_assert_ptr_nonnull(strstr(json.at, "{\"id\":10,\"content\":\"user\",\"single_word\":false,\"lstrip\":false,"
                                          "\"rstrip\":false,\"normalized\":false,\"special\":false}"));
    ck_assert_ptr_null(strstr(json.at, "\"content\":\"ab\""));
}
END_TEST

/* A piece of 16,385 bytes: the list of all pairs would take seconds. */
START_TEST(pieces_of_a_bpe_have_a_limit)
{
    enum { BYTES = (1 << 14) + 1 };
    static char model[BYTES + 16];
    struct text_span json;
    memset(model, 'a', sizeof model);
    memcpy(model, "\x0A\x85\x80\x01\x0A\x81\x80\x01", 8);
    memcpy(model + 8 + BYTES, "\x12\x02\x18\x02", 4);
    begin(CLASS("LlamaTokenizer", ""), CONFIG_OF("llama"));
    give(SLOW_PIECES, (struct text_span){model, 8 + BYTES + 4}, "tokenizer.model");
    err = (attn_error){.status = ATTN_OK};
    ck_assert_int_eq(slow_convert(&files, arena, &json, &err), ATTN_ERR_TOO_LARGE);
    ck_assert_str_eq(err.message, "tokenizer.model: has pieces that are too long");
}
END_TEST

/* Each arena that is too small is refused as such. */
START_TEST(memory_that_is_short_is_said)
{
    struct text_span json;
    attn_status status = ATTN_ERR_NO_MEMORY;
    begin(CLASS("LlamaTokenizer", ""), CONFIG_OF("llama"));
    give(SLOW_PIECES, make_model(2, true), "tokenizer.model");
    for (size_t limit = 1024; status != ATTN_OK; limit += 4096) {
        attn_arena *small = attn_arena_create(limit);
        err = (attn_error){.status = ATTN_OK};
        status = small != NULL ? slow_convert(&files, small, &json, &err) : ATTN_ERR_NO_MEMORY;
        ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%s", err.message);
        if (small != NULL)
            attn_arena_destroy(small);
        ck_assert_uint_lt(limit, 1 << 24);
    }
}
END_TEST

CHECK_MAIN("slow tokenizers")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, lines_are_a_wordpiece, 0, COUNT(words));
    tcase_add_test(tests, a_vocabulary_and_merges_are_a_byte_level_bpe);
    tcase_add_test(tests, pieces_are_a_unigram);
    tcase_add_test(tests, pieces_have_the_ids_of_their_class);
    tcase_add_test(tests, pieces_are_a_bpe);
    tcase_add_loop_test(tests, what_is_wrong_is_named, 0, COUNT(refused));
    tcase_add_test(tests, a_model_of_no_known_class_is_named);
    tcase_add_test(tests, files_of_windows_are_read);
    tcase_add_test(tests, added_tokens_have_their_file);
    tcase_add_test(tests, special_tokens_have_a_limit);
    tcase_add_test(tests, sentinels_have_a_limit);
    tcase_add_test(tests, lines_are_counted);
    tcase_add_test(tests, tokens_take_the_spaces_of_their_class);
    tcase_add_test(tests, pieces_of_the_user_have_a_score);
    tcase_add_test(tests, targets_have_files_of_their_own);
    tcase_add_test(tests, pieces_with_a_digit_and_a_comma_come_last);
    tcase_add_test(tests, scores_are_a_list_of_merges);
    tcase_add_test(tests, pieces_of_a_bpe_have_a_limit);
    tcase_add_test(tests, memory_that_is_short_is_said);
}

/*
 * test_model_batch.c: what a model runs on, from requests; and what answers say about tokens. Models are made by hand,
 * with the tokenizers of bert and t5.
 */
#include "service/run/batch/batch.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "codec/json/tree.h"
#include "shared.h"

enum { WORDS = 420, WIDTH = 8, LONGEST = 16, IMAGE = 16, PATCH = 4, CHANNELS = 3, MELS = 1 };

static attn_arena *arena, *scratch;
static attn_error err;
static char nothing[1];
static struct model_version text_model, two_stacks, image_model, audio_model, bare_model;
static struct model_request request;
static struct model_batch batch;

/* ---- models ---- */

static struct text_span read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "no %s", path);
    fseek(file, 0, SEEK_END);
    const long length = ftell(file);
    rewind(file);
    char *text = attn_arena_take(arena, (size_t)length + 1, 1);
    ck_assert_uint_eq(fread(text, 1, (size_t)length, file), (size_t)length);
    fclose(file);
    text[length] = '\0';
    return (struct text_span){text, (size_t)length};
}

static const struct tokenizer *load(const char *path)
{
    const struct text_span text = read_whole(path);
    const struct tokenizer *tokenizer = NULL;
    const attn_status status = tokenizer_load(text.at, text.length, arena, scratch, &tokenizer, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    return tokenizer;
}

static attn_tensor table(size_t rows)
{
    return attn_tensor_view(nothing, ATTN_F32, 2, (const size_t[]){rows, WIDTH});
}

static void prepare(void)
{
    json_tree_prepare();
    arena = attn_arena_create((size_t)1 << 30);
    scratch = attn_arena_create((size_t)1 << 30);
    text_model =
        (struct model_version){.common.name = "bert", .tokenizer = load("tests/others/models/bert/tokenizer.json")};
    text_model.model = (struct checkpoint_model){.stack_count = 1, .longest = LONGEST, .decoder_start_id = -1};
    text_model.model.stacks[0].embedding = (struct model_embedding){.words = table(WORDS), .types = table(2)};
    bare_model = text_model;
    bare_model.tokenizer = NULL;
    two_stacks =
        (struct model_version){.common.name = "t5", .tokenizer = load("tests/others/models/t5/tokenizer.json")};
    two_stacks.model = (struct checkpoint_model){.stack_count = 2, .decoder_start_id = 0};
    two_stacks.model.stacks[0].embedding = (struct model_embedding){.words = table(WORDS)};
    two_stacks.model.stacks[1].embedding = (struct model_embedding){.words = table(WORDS)};
    image_model = (struct model_version){.common.name = "vit"};
    image_model.model = (struct checkpoint_model){.stack_count = 1, .decoder_start_id = -1};
    image_model.model.stacks[0].embedding = (struct model_embedding){
        .kernel = attn_tensor_view(nothing, ATTN_F32, 4, (const size_t[]){WIDTH, CHANNELS, PATCH, PATCH}),
        .leading = table(1),
        .image = IMAGE};
    audio_model = two_stacks;
    audio_model.tokenizer = text_model.tokenizer;
    audio_model.model.longest = 3;
    audio_model.model.decoder_start_id = 2; /* [CLS] */
    audio_model.model.end_id = 3;
    audio_model.model.stacks[0].embedding = (struct model_embedding){
        .kernel = attn_tensor_view(nothing, ATTN_F32, 3, (const size_t[]){WIDTH, MELS, 3}),
        .second_kernel = attn_tensor_view(nothing, ATTN_F32, 3, (const size_t[]){WIDTH, WIDTH, 3}),
        .positions = table(2)};
}

static void release(void)
{
    attn_arena_destroy(arena);
    attn_arena_destroy(scratch);
}

static attn_status make(const struct model_version *version, const char *body, model_request_kind kind)
{
    err = (attn_error){.status = ATTN_OK};
    const attn_status status = model_request_decode(body, strlen(body), kind, arena, &request, &err);
    ck_assert_msg(status == ATTN_OK, "%s: %s", body, err.message);
    return model_batch_make(&batch, version, &request, kind, arena, &err);
}

static void make_well(const struct model_version *version, const char *body)
{
    const attn_status status = make(version, body, MODEL_REQUEST_ATTENTION);
    ck_assert_msg(status == ATTN_OK, "%s: %s", body, err.message);
}

static const char *written(void (*write)(const struct model_batch *batch, struct chunks *out))
{
    struct chunks out = chunks_begin(arena);
    write(&batch, &out);
    ck_assert(out.is_ok);
    ck_assert_uint_le(out.total_bytes, model_batch_tokens_bound(&batch));
    return chunks_join(&out);
}

static void assert_ids(const struct model_sequence *sequence, const int64_t *ids, size_t count)
{
    ck_assert_uint_eq(sequence->count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(sequence->ids[i], ids[i]);
}

/* ---- what a model runs on ---- */

START_TEST(a_pair_becomes_ids_and_types)
{
    static const int64_t ids[] = {2, 37, 3, 38, 3}, types[] = {0, 0, 0, 1, 1};
    make_well(&text_model, "{\"inputs\": {\"text\": \"a\", \"pair\": \"b\"}}");
    assert_ids(&batch.items[0].of[0], ids, COUNT(ids));
    ck_assert_mem_eq(batch.items[0].of[0].types, types, sizeof types);
    ck_assert_uint_eq(batch.items[0].of[1].count, 0);
}
END_TEST

START_TEST(a_model_with_one_type_gets_no_types)
{
    text_model.model.stacks[0].embedding.types = table(1);
    make_well(&text_model, "{\"inputs\": {\"text\": \"a\", \"pair\": \"b\"}}");
    ck_assert_ptr_null(batch.items[0].of[0].types);
}
END_TEST

START_TEST(special_tokens_false_leaves_them_out)
{
    static const int64_t ids[] = {37};
    make_well(&text_model, "{\"inputs\": {\"text\": \"a\"}, \"options\": {\"special_tokens\": false}}");
    assert_ids(&batch.items[0].of[0], ids, COUNT(ids));
}
END_TEST

START_TEST(an_empty_text_with_special_tokens_runs)
{
    static const int64_t ids[] = {2, 3};
    make_well(&text_model, "{\"inputs\": {\"text\": \"\"}}");
    assert_ids(&batch.items[0].of[0], ids, COUNT(ids));
}
END_TEST

START_TEST(each_item_has_its_own_length)
{
    make_well(&bare_model, "{\"inputs\": {\"ids\": [[1, 2, 3], [4]]}}");
    assert_ids(&batch.items[0].of[0], (const int64_t[]){1, 2, 3}, 3);
    assert_ids(&batch.items[1].of[0], (const int64_t[]){4}, 1);
    ck_assert_str_eq(written(model_batch_write_lengths), "[3,1]");
}
END_TEST

/* The rows that transformers recorded, without their padding. */
static void compare_targets(const json_t *one)
{
    const json_t *texts = json_object_get(one, "batch"), *targets = json_object_get(one, "decoder_batch");
    const json_t *text = json_object_get(one, "text"), *target = json_object_get(one, "decoder_text");
    json_t *body = json_pack("{s:{s:O,s:O}}", "inputs", "text", texts != NULL ? texts : text, "target",
                             targets != NULL ? targets : target);
    char dumped[4096];
    const size_t length = json_dumpb(body, dumped, sizeof dumped - 1, 0);
    ck_assert_uint_lt(length, sizeof dumped);
    dumped[length] = '\0';
    make_well(&two_stacks, dumped);
    const json_t *rows = json_object_get(one, "decoder_input_ids"), *row;
    size_t item, i;
    json_array_foreach(rows, item, row)
    {
        const json_t *mask = json_array_get(json_object_get(one, "decoder_attention_mask"), item), *is_real;
        size_t count = 0;
        json_array_foreach(mask, i, is_real)
        {
            if (json_integer_value(is_real) == 1)
                ck_assert_int_eq(batch.items[item].of[1].ids[count++], json_integer_value(json_array_get(row, i)));
        }
        ck_assert_uint_eq(batch.items[item].of[1].count, count);
    }
    json_decref(body);
}

static void compare_cases(const char *folder, int64_t start)
{
    char path[SHARED_PATH_MAX];
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    two_stacks.tokenizer = load(path);
    two_stacks.model.decoder_start_id = start;
    snprintf(path, sizeof path, "%s/cases.json", folder);
    const struct text_span text = read_whole(path);
    json_t *cases = json_loadb(text.at, text.length, 0, NULL);
    const json_t *one;
    size_t i, compared = 0;
    json_array_foreach(json_object_get(cases, "cases"), i, one)
    {
        if (json_object_get(one, "decoder_text") == NULL && json_object_get(one, "decoder_batch") == NULL)
            continue;
        compare_targets(one);
        compared++;
    }
    ck_assert_uint_ge(compared, 5);
    json_decref(cases);
}

START_TEST(targets_become_the_recorded_inputs_of_the_decoder)
{
    compare_cases("tests/others/models/t5", 0);
}
END_TEST

START_TEST(targets_of_other_models_do_too)
{
    char folder[SHARED_PATH_MAX];
    if (shared_has(folder, "vectors/models/t5-gated"))
        compare_cases(folder, 0);
    if (shared_has(folder, "vectors/models/bart"))
        compare_cases(folder, 2);
}
END_TEST

/* A model whose tokenizer adds the language "en_XX" = 5 to texts, before "</s>" = 2 or behind it. */
static struct model_version model_of_languages(bool is_behind)
{
    static const char format[] =
        "{\"added_tokens\":[{\"id\":2,\"content\":\"</s>\",\"special\":true},{\"id\":3,\"content\":\"<mask>\","
        "\"special\":true},{\"id\":4,\"content\":\"de_DE\",\"special\":true},{\"id\":5,\"content\":\"en_XX\","
        "\"special\":true}],\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"post_processor\":{\"type\":"
        "\"TemplateProcessing\",\"single\":[%s],\"pair\":[],\"special_tokens\":{\"</s>\":{\"ids\":[2]},\"en_XX\":"
        "{\"ids\":[5]}}},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,\"b\":1,\"</s>\":2,"
        "\"<mask>\":3,\"de_DE\":4,\"en_XX\":5}}}";
    static const char text_part[] = "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}",
                      end[] = "{\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}}",
                      language[] = "{\"SpecialToken\":{\"id\":\"en_XX\",\"type_id\":0}}";
    char parts[256], text[1024];
    snprintf(parts, sizeof parts, "%s,%s,%s", is_behind ? text_part : language, is_behind ? end : text_part,
             is_behind ? language : end);
    const int length = snprintf(text, sizeof text, format, parts);
    struct model_version version = two_stacks;
    version.tokenizer = NULL;
    version.model.decoder_start_id = 2;
    version.model.starts_with_last = is_behind;
    ck_assert_msg(tokenizer_load(text, (size_t)length, arena, scratch, &version.tokenizer, &err) == ATTN_OK, "%s",
                  err.message);
    return version;
}

static const struct {
    const char *target;
    int64_t before[4], behind[4]; /* the inputs of the decoder, as NLLB's and mBART's tokenizers place the language */
    size_t count;
} languages[] = {
    {"a b", {2, 5, 0, 1}, {5, 0, 1, 2}, 4},
    {"de_DE a b", {2, 4, 0, 1}, {4, 0, 1, 2}, 4},
    {"de_DE", {2, 4}, {4, 2}, 2},
    {"<mask> a", {2, 5, 3, 0}, {5, 3, 0, 2}, 4},
};

START_TEST(a_target_may_begin_with_its_language)
{
    char body[128];
    snprintf(body, sizeof body, "{\"inputs\": {\"text\": \"a\", \"target\": \"%s\"}}", languages[_i].target);
    for (int is_behind = 0; is_behind < 2; is_behind++) {
        const struct model_version version = model_of_languages(is_behind);
        make_well(&version, body);
        assert_ids(&batch.items[0].of[1], is_behind ? languages[_i].behind : languages[_i].before, languages[_i].count);
        ck_assert_int_eq(batch.items[0].of[1].label, is_behind ? (int)languages[_i].behind[0] : 2);
    }
}
END_TEST

START_TEST(a_target_needs_the_pieces_of_targets)
{
    two_stacks.lacks_target = true;
    make_well(&two_stacks, "{\"inputs\": {\"text\": \"a\", \"target_ids\": [0, 9]}}");
    ck_assert_int_eq(make(&two_stacks, "{\"inputs\": {\"text\": \"a\", \"target\": \"b\"}}", MODEL_REQUEST_ATTENTION),
                     ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "/inputs/target");
    ck_assert(strstr(err.message, "target.spm, which the folder of the model \"t5\" lacks: download it") != NULL);
}
END_TEST

START_TEST(target_ids_stay_as_they_are)
{
    make_well(&two_stacks, "{\"inputs\": {\"ids\": [5, 1], \"target_ids\": [0, 9, 9]}}");
    assert_ids(&batch.items[0].of[1], (const int64_t[]){0, 9, 9}, 3);
    ck_assert_str_eq(written(model_batch_write_lengths), "{\"encoder\":[2],\"decoder\":[3]}");
}
END_TEST

START_TEST(without_a_target_the_second_stack_does_not_run)
{
    make_well(&two_stacks, "{\"inputs\": {\"ids\": [5, 1]}}");
    ck_assert_uint_eq(batch.items[0].of[1].count, 0);
    ck_assert_str_eq(written(model_batch_write_lengths), "{\"encoder\":[2]}");
}
END_TEST

START_TEST(images_and_vectors_are_views_of_each_item)
{
    char body[1 << 16];
    int used = snprintf(body, sizeof body, "{\"inputs\": {\"pixels\": {\"shape\": [2, 3, 16, 16], \"data\": [");
    for (int i = 0; i < 2 * CHANNELS * IMAGE * IMAGE; i++)
        used += snprintf(body + used, sizeof body - (size_t)used, "%s%d", i > 0 ? "," : "", i);
    snprintf(body + used, sizeof body - (size_t)used, "]}}}");
    make_well(&image_model, body);
    ck_assert_uint_eq(batch.items[1].of[0].count, 1 + 16);
    ck_assert_float_eq(*(const float *)batch.items[1].of[0].pixels.data, CHANNELS * IMAGE * IMAGE);
    ck_assert_int_eq(batch.items[1].of[0].pixels.rank, 3);
    ck_assert(!model_batch_has_tokens(&batch));
    make_well(&audio_model, "{\"inputs\": {\"features\": [[[1,2,3,4]], [[5,6,7,8]]], \"target_ids\": [[1], [2, 3]]}}");
    ck_assert_uint_eq(batch.items[1].of[0].count, 2);
    ck_assert_float_eq(*(const float *)batch.items[1].of[0].features.data, 5);
    ck_assert_str_eq(written(model_batch_write_lengths), "{\"encoder\":[2,2],\"decoder\":[1,2]}");
    ck_assert(model_batch_has_tokens(&batch));
    ck_assert_int_eq(
        strncmp(written(model_batch_write_tokens), "{\"encoder\":null,\"decoder\":{\"ids\":[[1],[2,3]]", 43), 0);
    make_well(&text_model, "{\"inputs\": {\"embeddings\": [[[1,2,3,4,5,6,7,8]], [[9,2,3,4,5,6,7,8]]]}}");
    ck_assert_uint_eq(batch.items[1].of[0].count, 1);
    ck_assert_float_eq(*(const float *)batch.items[1].of[0].vectors.data, 9);
    ck_assert_str_eq(written(model_batch_write_lengths), "[1,1]");
}
END_TEST

START_TEST(truncate_shortens_to_the_longest_sequence)
{
    text_model.model.longest = 4;
    make_well(&text_model, "{\"inputs\": {\"text\": \"a a a a a\"}, \"options\": {\"truncate\": true}}");
    assert_ids(&batch.items[0].of[0], (const int64_t[]){2, 37, 37, 3}, 4);
    make_well(&text_model, "{\"inputs\": {\"ids\": [5, 6, 7, 8, 9]}, \"options\": {\"truncate\": true}}");
    assert_ids(&batch.items[0].of[0], (const int64_t[]){5, 6, 7, 8}, 4);
    text_model.model.longest = 1;
    make_well(&text_model, "{\"inputs\": {\"embeddings\": [[1,2,3,4,5,6,7,8], [1,2,3,4,5,6,7,8]]},"
                           " \"options\": {\"truncate\": true}}");
    ck_assert_uint_eq(batch.items[0].of[0].count, 1);
    ck_assert_uint_eq(batch.items[0].of[0].vectors.shape[0], 1);
}
END_TEST

/* ---- refusals ---- */

/* The tokenizer sets [CLS] before a text and [SEP] behind it. */
START_TEST(speech_begins_once)
{
    static const int64_t plain[] = {2, 37}, own[] = {2, 38, 37}, late[] = {38, 2, 37};
    make_well(&audio_model, "{\"inputs\": {\"audio\": [1], \"target\": \"a\"}}");
    assert_ids(&batch.items[0].of[1], plain, COUNT(plain));
    make_well(&audio_model, "{\"inputs\": {\"audio\": [1], \"target\": \"[CLS] b a\"}}");
    assert_ids(&batch.items[0].of[1], own, COUNT(own));
    make_well(&audio_model, "{\"inputs\": {\"audio\": [1], \"target\": \"b [CLS] a\"}}");
    assert_ids(&batch.items[0].of[1], late, COUNT(late));
    audio_model.model.decoder_start_id = 9;
    make_well(&audio_model, "{\"inputs\": {\"audio\": [1], \"target\": \"a\"}}");
    ck_assert_int_eq(batch.items[0].of[1].ids[0], 9);
    ck_assert_uint_eq(batch.items[0].of[1].count, 3);
}
END_TEST

START_TEST(audio_is_cut_to_what_the_model_takes)
{
    static char body[16 * 700];
    int used = snprintf(body, sizeof body, "{\"options\": {\"truncate\": true}, \"inputs\": {\"audio\": [");
    for (int i = 0; i < 641; i++)
        used += snprintf(body + used, sizeof body - (size_t)used, "%s0.5", i > 0 ? "," : "");
    snprintf(body + used, sizeof body - (size_t)used, "]}}");
    make_well(&audio_model, body);
    ck_assert_uint_eq(batch.items[0].of[0].audio.shape[0], 640);
    ck_assert_uint_eq(batch.items[0].of[0].count, 2);
    memcpy(strstr(body, "true"), "null", 4);
    ck_assert_int_eq(make(&audio_model, body, MODEL_REQUEST_ATTENTION), ATTN_ERR_VALUE);
    ck_assert_msg(strstr(err.message, "641 samples (0.04 s), and the model takes at most 640") != NULL, "%s",
                  err.message);
}
END_TEST

static const struct {
    const struct model_version *version;
    const char *body;
    attn_status status;
    const char *field, *part; /* of the message */
} refusals[] = {
    {&text_model, "{\"inputs\": {\"text\": [\"a\", \"b\\u0000\"]}}", ATTN_ERR_VALUE, "/inputs/text/1", "U+0000"},
    {&text_model, "{\"inputs\": {\"text\": \"a\", \"pair\": \"b\\u0000\"}}", ATTN_ERR_VALUE, "/inputs/pair", "U+0000"},
    {&two_stacks, "{\"inputs\": {\"text\": \"a\", \"target\": \"b\\u0000\"}}", ATTN_ERR_VALUE, "/inputs/target",
     "U+0000"},
    {&text_model, "{\"inputs\": {\"text\": \"\"}, \"options\": {\"special_tokens\": false}}", ATTN_ERR_VALUE,
     "/inputs/text", "no token"},
    {&text_model, "{\"inputs\": {\"ids\": []}}", ATTN_ERR_VALUE, "/inputs/ids", "no token"},
    {&text_model, "{\"inputs\": {\"text\": [\"a\", \"a a a a a a a a a a a a a a a\"]}}", ATTN_ERR_VALUE,
     "/inputs/text/1", "17 tokens, and the model takes at most 16"},
    {&text_model, "{\"inputs\": {\"ids\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}", ATTN_ERR_VALUE, "/inputs/ids",
     "options.truncate"},
    {&text_model, "{\"inputs\": {\"ids\": [[1], [1, 420]]}}", ATTN_ERR_VALUE, "/inputs/ids/1", "0 to 419"},
    {&two_stacks, "{\"inputs\": {\"ids\": [1], \"target_ids\": [420]}}", ATTN_ERR_VALUE, "/inputs/target_ids",
     "0 to 419"},
    {&bare_model, "{\"inputs\": {\"text\": \"a\"}}", ATTN_ERR_FIELD, "/inputs/text", "give inputs.ids"},
    {&text_model, "{\"inputs\": {\"text\": \"a\", \"target\": \"b\"}}", ATTN_ERR_FIELD, "/inputs/target",
     "leave it out"},
    {&text_model, "{\"inputs\": {\"ids\": [1], \"target_ids\": [1]}}", ATTN_ERR_FIELD, "/inputs/target_ids",
     "leave it out"},
    {&image_model, "{\"inputs\": {\"text\": \"a\"}}", ATTN_ERR_FIELD, "/inputs/text", "inputs.pixels"},
    {&image_model, "{\"inputs\": {\"ids\": [1]}}", ATTN_ERR_FIELD, "/inputs/ids", "inputs.pixels"},
    {&image_model, "{\"inputs\": {\"pixels\": [[[[1]]]]}}", ATTN_ERR_SHAPE, "/inputs/pixels", "[1,3,16,16]"},
    {&text_model, "{\"inputs\": {\"pixels\": [[[[1]]]]}}", ATTN_ERR_FIELD, "/inputs/pixels", "inputs.text"},
    {&audio_model, "{\"inputs\": {\"text\": \"a\"}}", ATTN_ERR_FIELD, "/inputs/text", "inputs.features"},
    {&audio_model, "{\"inputs\": {\"pixels\": [[[[1]]]]}}", ATTN_ERR_FIELD, "/inputs/pixels", "reads audio"},
    {&audio_model, "{\"inputs\": {\"audio\": [0, \"NaN\"]}}", ATTN_ERR_VALUE, "/inputs/audio", "nan at place 1"},
    {&audio_model, "{\"inputs\": {\"audio\": [[0], [9]]}}", ATTN_ERR_VALUE, "/inputs/audio/1", "divide integers"},
    {&text_model, "{\"inputs\": {\"audio\": [0]}}", ATTN_ERR_FIELD, "/inputs/audio", "reads tokens"},
    {&audio_model, "{\"inputs\": {\"features\": [[1, 2, 3]]}}", ATTN_ERR_SHAPE, "/inputs/features", "[1,1,4]"},
    {&image_model, "{\"inputs\": {\"features\": [[1, 2, 3]]}}", ATTN_ERR_FIELD, "/inputs/features", "inputs.pixels"},
    {&audio_model, "{\"inputs\": {\"features\": [[1,2,3,4]], \"target_ids\": [1,2,3,4]}}", ATTN_ERR_VALUE,
     "/inputs/target_ids", "at most 3"},
    {&text_model, "{\"inputs\": {\"embeddings\": [[1, 2]]}}", ATTN_ERR_SHAPE, "/inputs/embeddings", "[1,1,8]"},
};

START_TEST(what_the_model_cannot_take_is_refused_by_name)
{
    const attn_status status = make(refusals[_i].version, refusals[_i].body, MODEL_REQUEST_ATTENTION);
    ck_assert_msg(status == refusals[_i].status, "%s: %s", refusals[_i].body, err.message);
    ck_assert_str_eq(err.field, refusals[_i].field);
    ck_assert_msg(strstr(err.message, refusals[_i].part) != NULL, "%s", err.message);
}
END_TEST

START_TEST(a_tokenizer_of_another_model_is_refused)
{
    text_model.model.stacks[0].embedding.words = table(20);
    ck_assert_int_eq(make(&text_model, "{\"inputs\": {\"text\": \"a\"}}", MODEL_REQUEST_ATTENTION), ATTN_ERR_VALUE);
    ck_assert(strstr(err.message, "another model") != NULL);
}
END_TEST

START_TEST(a_target_needs_the_first_id_of_the_decoder)
{
    two_stacks.model.decoder_start_id = -1;
    ck_assert_int_eq(make(&two_stacks, "{\"inputs\": {\"text\": \"a\", \"target\": \"b\"}}", MODEL_REQUEST_ATTENTION),
                     ATTN_ERR_FIELD);
    ck_assert(strstr(err.message, "decoder_start_token_id") != NULL);
}
END_TEST

START_TEST(too_little_memory_is_a_clean_failure)
{
    static const char body[] = "{\"inputs\": {\"text\": [\"a cat\", \"b\"], \"pair\": [\"c\", \"d\"]}}";
    make_well(&text_model, body);
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 0; status != ATTN_OK; limit += 64) {
        attn_arena *small = attn_arena_create(limit);
        status = model_batch_make(&batch, &text_model, &request, MODEL_REQUEST_ATTENTION, small, &err);
        ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%s", err.message);
        ck_assert_uint_lt(limit, 1 << 20);
        attn_arena_destroy(small);
    }
}
END_TEST

/* ---- requests for tokens ---- */

START_TEST(a_request_for_tokens_takes_any_length)
{
    ck_assert_int_eq(make(&text_model,
                          "{\"inputs\": {\"text\": [\"\", \"a a a a a a a a a a a a a a a a\"]},"
                          " \"options\": {\"special_tokens\": false}}",
                          MODEL_REQUEST_TOKENS),
                     ATTN_OK);
    ck_assert_uint_eq(batch.items[0].of[0].count, 0);
    ck_assert_uint_eq(batch.items[1].of[0].count, 16);
}
END_TEST

START_TEST(a_request_for_tokens_needs_a_tokenizer_for_ids_too)
{
    ck_assert_int_eq(make(&bare_model, "{\"inputs\": {\"ids\": [1]}}", MODEL_REQUEST_TOKENS), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "/inputs/ids");
}
END_TEST

/* ---- what answers say ---- */

START_TEST(texts_are_written_with_words_and_offsets)
{
    make_well(&text_model, "{\"inputs\": {\"text\": [\"a cat\", \"\"]}}");
    ck_assert_str_eq(written(model_batch_write_tokens),
                     "{\"ids\":[[2,37,39,236,3],[2,3]],"
                     "\"text\":[[\"[CLS]\",\"a\",\"c\",\"##at\",\"[SEP]\"],[\"[CLS]\",\"[SEP]\"]],"
                     "\"shown\":[[\"[CLS]\",\"a\",\"c\",\"at\",\"[SEP]\"],[\"[CLS]\",\"[SEP]\"]],"
                     "\"offsets\":[[[0,0],[0,1],[2,3],[3,5],[0,0]],[[0,0],[0,0]]]}");
}
END_TEST

START_TEST(ids_are_written_without_offsets)
{
    make_well(&text_model, "{\"inputs\": {\"ids\": [37, 419]}}");
    ck_assert(strstr(written(model_batch_write_tokens), "\"offsets\"") == NULL);
    make_well(&bare_model, "{\"inputs\": {\"ids\": [37]}}");
    ck_assert_str_eq(written(model_batch_write_tokens), "{\"ids\":[[37]]}");
}
END_TEST

START_TEST(ids_without_a_word_are_written_as_null)
{
    text_model.model.stacks[0].embedding.words = table(100000);
    make_well(&text_model, "{\"inputs\": {\"ids\": [37, 99999]}}");
    ck_assert_str_eq(written(model_batch_write_tokens),
                     "{\"ids\":[[37,99999]],\"text\":[[\"a\",null]],\"shown\":[[\"a\",null]]}");
}
END_TEST

START_TEST(two_stacks_are_written_beside_each_other)
{
    make_well(&two_stacks, "{\"inputs\": {\"text\": \"a\", \"target\": \"a\"}}");
    ck_assert_str_eq(
        written(model_batch_write_tokens),
        "{\"encoder\":{\"ids\":[[10,1]],\"text\":[[\"▁a\",\"</s>\"]],\"shown\":[[\"a\",\"</s>\"]],\"offsets\":[[[0,1],[0,0]]]},"
        "\"decoder\":{\"ids\":[[0,10]],\"text\":[[\"<pad>\",\"▁a\"]],\"shown\":[[\"<pad>\",\"a\"]],\"offsets\":[[[0,0],[0,1]]]}}");
    make_well(&two_stacks, "{\"inputs\": {\"text\": \"a\"}}");
    ck_assert(strstr(written(model_batch_write_tokens), "\"decoder\"") == NULL);
}
END_TEST

START_TEST(texts_with_unknown_words_have_hints)
{
    struct chunks out = chunks_begin(arena);
    make_well(&two_stacks, "{\"inputs\": {\"text\": [\"a\", \"a 注\"], \"target\": [\"注\", \"a\"]}}");
    size_t count = 0;
    model_batch_add_hints(&batch, &count, &out);
    ck_assert_uint_eq(count, 2);
    const char *text = chunks_join(&out);
    ck_assert(strstr(text, "\"pointer\":\"/inputs/target/0\"") != NULL);
    ck_assert(strstr(text,
                     "\"pointer\":\"/inputs/text/1\",\"message\":\"the tokenizer does not know 1 word of this text, "
                     "the first at characters 2 to 3") != NULL);
    ck_assert(strstr(text, "/inputs/text/0") == NULL);
    out = chunks_begin(arena);
    make_well(&two_stacks, "{\"inputs\": {\"text\": \"a\"}}");
    count = 0;
    model_batch_add_hints(&batch, &count, &out);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(out.total_bytes, 0);
}
END_TEST

CHECK_MAIN("model_batch")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, speech_begins_once);
    tcase_add_test(tests, audio_is_cut_to_what_the_model_takes);
    tcase_add_test(tests, a_pair_becomes_ids_and_types);
    tcase_add_test(tests, a_model_with_one_type_gets_no_types);
    tcase_add_test(tests, special_tokens_false_leaves_them_out);
    tcase_add_test(tests, an_empty_text_with_special_tokens_runs);
    tcase_add_test(tests, each_item_has_its_own_length);
    tcase_add_test(tests, targets_become_the_recorded_inputs_of_the_decoder);
    tcase_add_test(tests, targets_of_other_models_do_too);
    tcase_add_loop_test(tests, a_target_may_begin_with_its_language, 0, COUNT(languages));
    tcase_add_test(tests, a_target_needs_the_pieces_of_targets);
    tcase_add_test(tests, target_ids_stay_as_they_are);
    tcase_add_test(tests, without_a_target_the_second_stack_does_not_run);
    tcase_add_test(tests, images_and_vectors_are_views_of_each_item);
    tcase_add_test(tests, truncate_shortens_to_the_longest_sequence);
    tcase_add_loop_test(tests, what_the_model_cannot_take_is_refused_by_name, 0, COUNT(refusals));
    tcase_add_test(tests, a_tokenizer_of_another_model_is_refused);
    tcase_add_test(tests, a_target_needs_the_first_id_of_the_decoder);
    tcase_add_test(tests, too_little_memory_is_a_clean_failure);
    tcase_add_test(tests, a_request_for_tokens_takes_any_length);
    tcase_add_test(tests, a_request_for_tokens_needs_a_tokenizer_for_ids_too);
    tcase_add_test(tests, texts_are_written_with_words_and_offsets);
    tcase_add_test(tests, ids_are_written_without_offsets);
    tcase_add_test(tests, ids_without_a_word_are_written_as_null);
    tcase_add_test(tests, two_stacks_are_written_beside_each_other);
    tcase_add_test(tests, texts_with_unknown_words_have_hints);
}

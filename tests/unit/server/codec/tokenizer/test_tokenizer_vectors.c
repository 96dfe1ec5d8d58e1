/*
 * test_tokenizer_vectors.c: tokens, offsets and decoded texts that Hugging Face's tokenizers and transformers recorded.
 *
 * The tokenizers of bert, gpt2 and t5 are in vectors/. All of them, with cases for offsets, are in ATTN_SHARED, or in
 * ../shared beside this project.
 */
#include "shared.h"
#include "tokenizer_stage.h"

#define OWN "tests/unit/server/codec/tokenizer/vectors/"

static json_t *read_json(const char *path)
{
    json_error_t error;
    const struct text_span text = read_whole(path);
    json_t *json = json_loadb(text.at, text.length, JSON_ALLOW_NUL, &error);
    ck_assert_msg(json != NULL, "%s: %s", path, error.text);
    return json;
}

static struct text_span text_of(const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);
    return (struct text_span){json_string_value(text), json_string_length(text)};
}

static uint32_t number_at(const json_t *list, size_t i)
{
    return (uint32_t)json_integer_value(json_array_get(list, i));
}

/* Counts what disagrees, and prints the first few. */
static unsigned disagreements;

#define AGREE(holds, ...)                                                                                              \
    do {                                                                                                               \
        if (!(holds) && disagreements++ < 20) {                                                                        \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)

static void compare_ids(const char *where, struct text_span text, const struct tokenizer_output *output,
                        const json_t *ids)
{
    bool are_equal = output->count == json_array_size(ids);
    for (size_t i = 0; are_equal && i < output->count; i++)
        are_equal = output->tokens[i].id == number_at(ids, i);
    AGREE(are_equal, "%s: other ids for \"%.60s\"", where, text.at);
}

static void compare_tokens(const char *where, struct text_span text, const struct tokenizer_output *output,
                           const json_t *tokens)
{
    for (size_t i = 0; i < output->count && output->count == json_array_size(tokens); i++) {
        const json_t *token = json_array_get(tokens, i);
        const struct text_span own = output->tokens[i].text;
        AGREE(own.length == json_string_length(token) && memcmp(own.at, json_string_value(token), own.length) == 0,
              "%s: token %zu of \"%.60s\" is \"%s\", not \"%s\"", where, i, text.at, own.at, json_string_value(token));
    }
}

static void compare_decoded(const char *where, const struct tokenizer *tokenizer, const json_t *ids,
                            struct text_span wanted)
{
    uint32_t list[512];
    const size_t count = json_array_size(ids);
    ck_assert_uint_le(count, COUNT(list));
    for (size_t i = 0; i < count; i++)
        list[i] = number_at(ids, i);
    struct text_span text;
    ck_assert_int_eq(tokenizer_decode(tokenizer, list, count, false, arena, scratch, &text, &err), ATTN_OK);
    AGREE(text.length == wanted.length && memcmp(text.at, wanted.at, text.length) == 0,
          "%s: decoded to \"%s\", not \"%s\"", where, text.at, wanted.at);
}

static void compare_case(const char *where, const struct tokenizer *tokenizer, const json_t *one)
{
    struct tokenizer_input input = {.text = text_of(one, "text")};
    if (memchr(input.text.at, '\0', input.text.length) != NULL) {
        struct tokenizer_output output;
        AGREE(tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err) == ATTN_ERR_VALUE &&
                  strstr(err.message, "U+0000") != NULL,
              "%s: U+0000 is not refused by name: %s", where, err.message);
        return;
    }
    struct tokenizer_output output = encode(tokenizer, &input);
    compare_ids(where, input.text, &output, json_object_get(one, "ids"));
    compare_tokens(where, input.text, &output, json_object_get(one, "tokens"));
    input.add_special = true;
    output = encode(tokenizer, &input);
    compare_ids(where, input.text, &output, json_object_get(one, "ids_with_special"));
    compare_decoded(where, tokenizer, json_object_get(one, "ids"), text_of(one, "decoded"));
}

static void compare_pair(const char *where, const struct tokenizer *tokenizer, const json_t *pair)
{
    const struct tokenizer_input input = {
        .text = text_of(pair, "text"), .pair = text_of(pair, "pair"), .add_special = true};
    const struct tokenizer_output output = encode(tokenizer, &input);
    compare_ids(where, input.text, &output, json_object_get(pair, "ids"));
    compare_tokens(where, input.text, &output, json_object_get(pair, "tokens"));
    for (size_t i = 0; i < output.count; i++) {
        AGREE(output.tokens[i].type_id == number_at(json_object_get(pair, "type_ids"), i), "%s: type id %zu", where, i);
        AGREE(output.tokens[i].is_special == number_at(json_object_get(pair, "special_tokens_mask"), i),
              "%s: special mark %zu", where, i);
    }
}

static void compare_folder(const char *folder)
{
    char path[SHARED_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    const struct tokenizer *tokenizer = load_text(read_whole(path));
    snprintf(path, sizeof path, "%s/tokenizer_cases.json", folder);
    json_t *cases = read_json(path), *one;
    size_t i;
    const unsigned before = disagreements;
    json_array_foreach(json_object_get(cases, "cases"), i, one) compare_case(folder, tokenizer, one);
    ck_assert_uint_ge(i, 200);
    compare_pair(folder, tokenizer, json_object_get(cases, "pair"));
    printf("%s: %zu cases and a pair, %u disagree\n", folder, i, disagreements - before);
    json_decref(cases);
}

START_TEST(own_vectors_agree)
{
    static const char *const folders[] = {OWN "bert", OWN "gpt2", OWN "t5"};
    disagreements = 0;
    for (size_t i = 0; i < COUNT(folders); i++)
        compare_folder(folders[i]);
    ck_assert_uint_eq(disagreements, 0);
}
END_TEST

static const char *const shared_models[] = {"bert",           "distilbert", "roberta",  "gpt2", "llama",
                                            "qwen3",          "t5",         "t5-gated", "bart", "tokenizers/llama2",
                                            "tokenizers/clip"};

START_TEST(shared_vectors_agree)
{
    char folder[SHARED_PATH_MAX], name[64];
    snprintf(name, sizeof name, "vectors/models/%s", shared_models[_i]);
    if (!shared_has(folder, name))
        return;
    disagreements = 0;
    compare_folder(folder);
    ck_assert_uint_eq(disagreements, 0);
}
END_TEST

/* One row of a case: offsets, special marks and type ids beside ids and tokens. Padding at the ends is skipped. */
static void compare_row(const char *where, const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                        const json_t *one, size_t row)
{
    const json_t *ids = json_array_get(json_object_get(one, "input_ids"), row);
    const json_t *tokens = json_array_get(json_object_get(one, "tokens"), row);
    const json_t *offsets = json_array_get(json_object_get(one, "offsets"), row);
    const json_t *marks = json_array_get(json_object_get(one, "special_tokens_mask"), row);
    const json_t *types = json_array_get(json_object_get(one, "token_type_ids"), row);
    const json_t *attended = json_array_get(json_object_get(one, "attention_mask"), row);
    const struct tokenizer_output output = encode(tokenizer, input);
    size_t first = 0;
    while (first < json_array_size(ids) && number_at(attended, first) == 0)
        first++;
    size_t last = json_array_size(ids);
    while (last > first && number_at(attended, last - 1) == 0)
        last--;
    AGREE(output.count == last - first, "%s: %zu tokens, not %zu", where, output.count, last - first);
    for (size_t i = 0; i < output.count && output.count == last - first; i++) {
        const struct tokenizer_token *token = &output.tokens[i];
        const json_t *offset = json_array_get(offsets, first + i), *text = json_array_get(tokens, first + i);
        AGREE(token->id == number_at(ids, first + i), "%s: id %zu is %u", where, i, (unsigned)token->id);
        AGREE(strcmp(token->text.at, json_string_value(text)) == 0, "%s: token %zu is \"%s\", not \"%s\"", where, i,
              token->text.at, json_string_value(text));
        AGREE(token->begin == number_at(offset, 0) && token->end == number_at(offset, 1),
              "%s: offsets of token %zu \"%s\" are %u, %u, not %u, %u", where, i, token->text.at,
              (unsigned)token->begin, (unsigned)token->end, (unsigned)number_at(offset, 0),
              (unsigned)number_at(offset, 1));
        AGREE(token->is_special == number_at(marks, first + i), "%s: special mark %zu", where, i);
        AGREE(types == NULL || token->type_id == number_at(types, first + i), "%s: type id %zu", where, i);
    }
}

START_TEST(offsets_of_shared_cases_agree)
{
    char folder[SHARED_PATH_MAX], path[SHARED_PATH_MAX + 64], name[64];
    snprintf(name, sizeof name, "vectors/models/%s", shared_models[_i]);
    if (strchr(shared_models[_i], '/') != NULL || !shared_has(folder, name))
        return;
    disagreements = 0;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    const struct tokenizer *tokenizer = load_text(read_whole(path));
    snprintf(path, sizeof path, "%s/cases.json", folder);
    json_t *cases = read_json(path), *one, *text;
    size_t i, row, rows = 0;
    json_array_foreach(json_object_get(cases, "cases"), i, one)
    {
        const bool adds = json_is_true(json_object_get(json_object_get(one, "options"), "add_special_tokens"));
        struct tokenizer_input input = {
            .text = text_of(one, "text"), .pair = text_of(one, "pair"), .add_special = adds};
        snprintf(path, sizeof path, "%s %s", shared_models[_i], json_string_value(json_object_get(one, "name")));
        if (input.text.at != NULL) {
            compare_row(path, tokenizer, &input, one, 0);
            rows++;
        }
        json_array_foreach(json_object_get(one, "batch"), row, text)
        {
            input.text = (struct text_span){json_string_value(text), json_string_length(text)};
            compare_row(path, tokenizer, &input, one, row);
            rows++;
        }
    }
    printf("%s: %zu rows with offsets, %u disagree\n", shared_models[_i], rows, disagreements);
    ck_assert_uint_eq(disagreements, 0);
    json_decref(cases);
}
END_TEST

CHECK_MAIN("tokenizer_vectors")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, own_vectors_agree);
    tcase_add_loop_test(tests, shared_vectors_agree, 0, COUNT(shared_models));
    tcase_add_loop_test(tests, offsets_of_shared_cases_agree, 0, COUNT(shared_models));
}

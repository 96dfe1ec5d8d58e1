/*
 * test_answer_media.c: tests of server/codec/answer/media.c and the forms behind it: safetensors, CSV and views.
 */
#include "codec/answer/forms.h"
#include "codec/request/envelope.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "attended.h"
#include "check_main.h"
#include "codec/bytes/base64.h"
#include "codec/json/tree.h"
#include "codec/tensor/safetensors.h"
#include "safetensors_find.h"

enum { ARENA_BYTES = 16 << 20 };

/* Three tokens with a causal mask; a scale of 0 makes the weights uniform. */
#define REQUEST(options)                                                                                               \
    "{\"inputs\":{\"query\":[[1,2],[3,4],[5,6]]},\"masks\":{\"causal\":true},\"tokens\":{\"query\":[\"a\",\"=b,\","    \
    "\"c\\\"\\u0000\"]},\"options\":{\"scale\":0," options "}}"

static struct attended attended;
static attn_arena *arena;

static void run(const char *text, bool is_binary)
{
    const attn_runtime runtime = attn_runtime_serial(NULL);
    arena = attn_arena_create(ARENA_BYTES);
    attn_status status = attended_run(&attended, text, is_binary, arena, &runtime);
    ck_assert_msg(status == ATTN_OK, "%s: %s", text, attended.err.message);
}

static void check_csv(const char *request, const char *expected)
{
    run(request, false);
    ck_assert_str_eq(attended_answer(&attended, MEDIA_CSV, NULL), expected);
    attn_arena_destroy(arena);
}

static json_t *view_of(const char *request)
{
    json_error_t why;
    run(request, false);
    json_t *tree = json_loads(attended_answer(&attended, MEDIA_JSON, NULL), JSON_REJECT_DUPLICATES, &why);
    ck_assert_msg(tree != NULL, "%s", why.text);
    return tree;
}

static void assert_member(const json_t *tree, const char *name, const char *expected)
{
    char *text = json_dumps(json_object_get(tree, name), JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, expected);
    json_tree_give_text(text);
}

/* ---- CSV ---- */

START_TEST(one_matrix_is_written_as_one)
{
    check_csv(REQUEST("\"digits\":3,\"return\":[\"attention\"]"), "query,a,\"'=b,\",\"c\"\"\xEF\xBF\xBD\"\r\n"
                                                                  "a,1,0,0\r\n"
                                                                  "\"'=b,\",0.5,0.5,0\r\n"
                                                                  "\"c\"\"\xEF\xBF\xBD\",0.333,0.333,0.333\r\n");
    check_csv(REQUEST("\"return\":[\"output\"],\"digits\":2"), "query,0,1\r\n"
                                                               "a,1,2\r\n"
                                                               "\"'=b,\",2,3\r\n"
                                                               "\"c\"\"\xEF\xBF\xBD\",3,4\r\n");
    check_csv("{\"inputs\":{\"query\":[[1],[2]]},\"options\":{\"return\":[\"mask\"]}}", "query,0,1\r\n"
                                                                                        "0,1,1\r\n"
                                                                                        "1,1,1\r\n");
}
END_TEST

START_TEST(several_outputs_are_a_line_a_number)
{
    check_csv(REQUEST("\"return\":[\"masked\",\"lse\",\"output\"],\"digits\":3,\"queries\":[1],\"keys\":[1,2]"),
              "step,batch,head,query,key,feature,query_token,key_token,value\r\n"
              "masked,0,0,1,1,,\"'=b,\",\"'=b,\",0\r\n"
              "masked,0,0,1,2,,\"'=b,\",\"c\"\"\xEF\xBF\xBD\",\r\n"
              "lse,0,0,0,,,a,,0\r\n"
              "lse,0,0,1,,,\"'=b,\",,0.693\r\n"
              "lse,0,0,2,,,\"c\"\"\xEF\xBF\xBD\",,1.1\r\n"
              "output,0,,0,,0,a,,1\r\n"
              "output,0,,0,,1,a,,2\r\n"
              "output,0,,1,,0,\"'=b,\",,2\r\n"
              "output,0,,1,,1,\"'=b,\",,3\r\n"
              "output,0,,2,,0,\"c\"\"\xEF\xBF\xBD\",,3\r\n"
              "output,0,,2,,1,\"c\"\"\xEF\xBF\xBD\",,4\r\n");
}
END_TEST

START_TEST(top_k_is_a_line_for_each_key_that_there_is)
{
    check_csv("{\"inputs\":{\"query\":[[1],[2]]},\"masks\":{\"causal\":true},\"options\":{\"scale\":0,\"top_k\":2,"
              "\"return\":[\"attention\"]}}",
              "step,batch,head,query,key,feature,value\r\n"
              "attention,0,0,0,0,,1\r\n"
              "attention,0,0,1,0,,0.5\r\n"
              "attention,0,0,1,1,,0.5\r\n");
}
END_TEST

START_TEST(pooled_rows_are_numbered_and_infinities_written_out)
{
    check_csv(REQUEST("\"pool\":{\"rows\":1,\"cols\":2},\"digits\":2,\"return\":[\"attention\"]"), "query,0,1\r\n"
                                                                                                   "0,1,0.5\r\n");
    check_csv("{\"inputs\":{\"query\":[[1]],\"value\":[[\"-Infinity\",\"NaN\",\"Infinity\"]]},\"options\":{\"return\":"
              "[\"output\"]}}",
              "query,0,1,2\r\n0,-Infinity,NaN,Infinity\r\n");
}
END_TEST

/*
 * Every label here begins with a character that a spreadsheet may run as a formula, or with blanks that it may trim
 * before one.
 */
START_TEST(labels_that_spreadsheets_run_get_an_apostrophe)
{
    static const char *const formulas[] = {"=1+1",
                                           "+1",
                                           "-1",
                                           "@SUM(1)",
                                           "\\t=1",
                                           "\\r=1",
                                           "\\n=1+1",
                                           "\xEF\xBC\x9D"
                                           "1",
                                           "\xEF\xBC\x8B"
                                           "1",
                                           "\xEF\xBC\x8D"
                                           "1",
                                           "\xEF\xBC\xA0"
                                           "1",
                                           " =1",
                                           "\\u000b=1",
                                           "\\f=1",
                                           "\xE2\x80\x8B=1",
                                           "\xEF\xBB\xBF=1",
                                           " \\f\xE3\x80\x80 \xEF\xBC\x9Dx"};
    static const char *const plain[] = {"a=1", " a", "\357\273\277a", "1-1", "'=1", "\xE2\x80\x8B"};
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas + sizeof plain / sizeof *plain; i++) {
        const bool is_plain = i >= sizeof formulas / sizeof *formulas;
        const char *label = is_plain ? plain[i - sizeof formulas / sizeof *formulas] : formulas[i];
        char request[256];
        snprintf(
            request, sizeof request,
            "{\"inputs\":{\"query\":[[1]]},\"tokens\":{\"query\":[\"%s\"]},\"options\":{\"return\":[\"attention\"]}}",
            label);
        run(request, false);
        const char *text = attended_answer(&attended, MEDIA_CSV, NULL), *head = text + strlen("query,");
        ck_assert_msg((head[0] == '\'' || (head[0] == '"' && head[1] == '\'')) == (!is_plain || label[0] == '\''),
                      "%s: %s", label, text);
        attn_arena_destroy(arena);
    }
}
END_TEST

/* ---- views ---- */

START_TEST(bertviz_gets_its_parameters)
{
    json_t *tree = view_of(REQUEST("\"view\":\"bertviz\",\"digits\":3,\"queries\":[1]"));
    const json_t *first = json_array_get(json_object_get(tree, "attention"), 0);
    assert_member(first, "attn", "[[[[0.5,0.5,0]]]]");
    assert_member(first, "name", "null");
    assert_member(first, "left_text", "[\"=b,\"]");
    assert_member(first, "right_text", "[\"a\",\"=b,\",\"c\\\"\xEF\xBF\xBD\"]");
    assert_member(tree, "default_filter", "\"0\"");
    assert_member(tree, "layer", "0");
    assert_member(tree, "heads", "[0]");
    assert_member(tree, "include_layers", "[0]");
    assert_member(tree, "include_heads", "[0]");
    assert_member(tree, "total_heads", "1");
    assert_member(tree, "display_mode", "\"dark\"");
    ck_assert_uint_eq(json_object_size(tree), 8);
    json_decref(tree);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(circuitsvis_gets_tokens_and_heads)
{
    json_t *tree = view_of("{\"inputs\":{\"query\":[[1,2],[3,4]]},\"options\":{\"num_heads\":2,\"kv_num_heads\":2,"
                           "\"scale\":0,\"view\":\"circuitsvis\"}}");
    assert_member(tree, "tokens", "[\"0\",\"1\"]");
    assert_member(tree, "attention", "[[[0.5,0.5],[0.5,0.5]],[[0.5,0.5],[0.5,0.5]]]");
    json_decref(tree);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(inspectus_gets_float32_for_each_head)
{
    static const char *const computes[] = {"float32", "float64"};
    for (size_t n = 0; n < 2; n++) {
        char request[400];
        snprintf(request, sizeof request,
                 "{\"inputs\":{\"query\":[[1,2]],\"key\":[[1,2],[3,4]]},\"options\":{\"num_heads\":2,\"kv_num_heads\":"
                 "2,\"scale\":0,\"view\":\"inspectus\",\"heads\":[1],\"compute\":\"%s\"}}",
                 computes[n]);
        json_t *tree = view_of(request);
        const json_t *map = json_array_get(json_object_get(tree, "attention"), 0);
        const char *values = json_string_value(json_object_get(map, "values"));
        float weights[2];
        size_t bytes, bad;
        ck_assert(base64_decoded_length(values, strlen(values), &bytes) && bytes == sizeof weights);
        ck_assert(base64_decode(weights, values, strlen(values), &(struct pace){.bytes = 0}, &bad));
        ck_assert(weights[0] == 0.5f && weights[1] == 0.5f);
        assert_member(map, "info", "{\"layer\":0,\"head\":1}");
        assert_member(map, "shape", "[1,2]");
        assert_member(tree, "src_tokens", "[\"0\"]");
        assert_member(tree, "tgt_tokens", "[\"0\",\"1\"]");
        assert_member(tree, "dimensions", "[{\"name\":\"layer\"},{\"name\":\"head\"}]");
        ck_assert(json_is_array(json_object_get(tree, "chart_types")) && json_object_size(tree) == 5);
        json_decref(tree);
        attn_arena_destroy(arena);
    }
}
END_TEST

START_TEST(rows_are_a_list_of_cells)
{
    json_t *tree = view_of(REQUEST("\"view\":\"rows\",\"return\":[\"attention\"],\"keys\":\"0-2\""));
    ck_assert_uint_eq(json_array_size(tree), 9);
    const json_t *cell = json_array_get(tree, 5);
    assert_member(cell, "query", "1");
    assert_member(cell, "key", "2");
    assert_member(cell, "query_token", "\"=b,\"");
    assert_member(cell, "weight", "0");
    assert_member(cell, "allowed", "false");
    assert_member(json_array_get(tree, 4), "weight", "0.5");
    json_decref(tree);
    attn_arena_destroy(arena);
    tree = view_of("{\"inputs\":{\"query\":[[[1]],[[2]]]},\"options\":{\"view\":\"rows\"}}");
    ck_assert_uint_eq(json_array_size(tree), 2);
    assert_member(json_array_get(tree, 1), "batch", "1");
    ck_assert_ptr_null(json_object_get(json_array_get(tree, 1), "key_token"));
    json_decref(tree);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_view_that_cannot_be_is_refused)
{
    static const struct {
        const char *request;
        enum media media;
        attn_status status;
        const char *message;
    } cases[] = {
        {REQUEST("\"view\":\"rows\""), MEDIA_CSV, ATTN_ERR_FIELD, "is a form of JSON"},
        {REQUEST("\"view\":\"rows\""), MEDIA_SAFETENSORS, ATTN_ERR_FIELD, "is a form of JSON"},
        {REQUEST("\"view\":\"circuitsvis\",\"queries\":[0]"), MEDIA_JSON, ATTN_ERR_SHAPE, "select the same of both"},
        {"{\"inputs\":{\"query\":[[1]],\"key\":[[1],[2]]},\"options\":{\"view\":\"circuitsvis\"}}", MEDIA_JSON,
         ATTN_ERR_SHAPE, "1 queries and 2 keys"},
        {"{\"inputs\":{\"query\":[[[1]],[[1]]]},\"options\":{\"view\":\"bertviz\"}}", MEDIA_JSON, ATTN_ERR_SHAPE,
         "bertviz shows one batch item, and there are 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attn_error err = {0};
        run(cases[i].request, false);
        const struct answer answer = {&attended.envelope, &attended.shown, NULL};
        ck_assert_int_eq(answer_check(&answer, cases[i].media, &err), cases[i].status);
        ck_assert_str_eq(err.field, "/options/view");
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s", err.message);
        attn_arena_destroy(arena);
    }
}
END_TEST

/* ---- safetensors ---- */

static void read_answer(struct safetensors *file)
{
    size_t length;
    const char *body = attended_answer(&attended, MEDIA_SAFETENSORS, &length);
    attn_error err = {0};
    ck_assert_msg(safetensors_read(body, length, arena, file, &err) == ATTN_OK, "%s", err.message);
}

START_TEST(every_output_is_a_tensor_and_the_rest_metadata)
{
    struct safetensors file;
    run(REQUEST("\"return\":[\"attention\",\"masked\",\"mask\",\"output\"],\"queries\":[1],\"keys\":\"0-2\""), true);
    read_answer(&file);
    ck_assert_uint_eq(file.tensor_count, 4);
    const struct safetensors_tensor *map = safetensors_find(&file, "attention");
    ck_assert(map->dtype == ATTN_F32 && map->rank == 4 && map->bytes == 3 * sizeof(float));
    ck_assert_mem_eq(map->data, ((float[]){0.5f, 0.5f, 0}), map->bytes);
    ck_assert_mem_eq(safetensors_find(&file, "mask")->data, ((uint8_t[]){1, 1, 0}), 3);
    ck_assert_mem_eq(safetensors_find(&file, "output")->data, ((float[]){1, 2, 2, 3, 3, 4}), 6 * sizeof(float));
    json_t *effective = json_loads(safetensors_find_text(&file, "effective")->value, 0, NULL);
    assert_member(effective, "scale", "0");
    json_decref(effective);
    json_t *tokens = json_loads(safetensors_find_text(&file, "tokens")->value, JSON_ALLOW_NUL, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(tokens, "query")), 3);
    json_decref(tokens);
    ck_assert_ptr_nonnull(safetensors_find_text(&file, "diagnostics"));
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(top_k_is_two_tensors_and_types_are_kept)
{
    struct safetensors file;
    run(REQUEST("\"return\":[\"attention\"],\"top_k\":2,\"dtype\":\"bfloat16\""), true);
    read_answer(&file);
    ck_assert_uint_eq(file.tensor_count, 2);
    const struct safetensors_tensor *indices = safetensors_find(&file, "attention.indices");
    ck_assert_mem_eq(indices->data, ((int64_t[]){0, -1, 0, 1, 0, 1}), indices->bytes);
    ck_assert_str_eq(safetensors_find(&file, "attention.weights")->type, "BF16");
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(labels_are_read_back)
{
    const struct envelope_tokens tokens = {"[[\"a\",\"\\\"b\"],[\"c\",\"\\u0000\"]]", 2, 2}, none = {NULL, 0, 0};
    struct labels labels;
    arena = attn_arena_create(ARENA_BYTES);
    envelope_prepare();
    ck_assert_int_eq(labels_read(&tokens, arena, &labels, NULL), ATTN_OK);
    ck_assert_str_eq(labels_at(&labels, 0, 1), "\"b");
    ck_assert_str_eq(labels_at(&labels, 1, 0), "c");
    ck_assert_str_eq(labels_at(&labels, 1, 1), "\xEF\xBF\xBD");
    ck_assert_uint_ge(labels_longest(&tokens), 6);
    ck_assert_int_eq(labels_read(&none, arena, &labels, NULL), ATTN_OK);
    ck_assert(labels_at(&labels, 0, 0) == NULL && labels_longest(&none) == 0);
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("answer_media")
{
    tcase_add_test(tests, one_matrix_is_written_as_one);
    tcase_add_test(tests, several_outputs_are_a_line_a_number);
    tcase_add_test(tests, labels_that_spreadsheets_run_get_an_apostrophe);
    tcase_add_test(tests, top_k_is_a_line_for_each_key_that_there_is);
    tcase_add_test(tests, pooled_rows_are_numbered_and_infinities_written_out);
    tcase_add_test(tests, bertviz_gets_its_parameters);
    tcase_add_test(tests, circuitsvis_gets_tokens_and_heads);
    tcase_add_test(tests, inspectus_gets_float32_for_each_head);
    tcase_add_test(tests, rows_are_a_list_of_cells);
    tcase_add_test(tests, a_view_that_cannot_be_is_refused);
    tcase_add_test(tests, every_output_is_a_tensor_and_the_rest_metadata);
    tcase_add_test(tests, top_k_is_two_tensors_and_types_are_kept);
    tcase_add_test(tests, labels_are_read_back);
}

/*
 * test_oip.c: tests of server/codec/oip/infer_request.c, infer_inputs.c and repository.c: requests of the Open
 * Inference Protocol become requests of attnd, and refusals use the words of the protocol.
 */
#include "codec/oip/oip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode_stage.h"

static struct oip_request request;

static attn_status decode_bytes(const char *body, size_t bytes, size_t json_bytes)
{
    err = (attn_error){0};
    return oip_decode(body, bytes, json_bytes, NULL, NULL, arena, &request, &err);
}

static void accept(const char *text)
{
    const attn_status status = decode_bytes(text, strlen(text), OIP_ALL_JSON);
    ck_assert_msg(status == ATTN_OK, "%s: %s", text, err.message);
}

#define INPUT(name, shape, type, more) "{\"name\":\"" name "\",\"shape\":" shape ",\"datatype\":\"" type "\"" more "}"
#define QUERY                          INPUT("QUERY", "[1,2]", "FP32", ",\"data\":[1,2]")
#define ONE(input, more)               "{\"inputs\":[" input "]" more "}"
#define DATA(shape, type, data)        ONE(INPUT("QUERY", shape, type, ",\"data\":" data), "")
#define PARAMETERS(text)               ONE(QUERY, ",\"parameters\":{" text "}")
#define OUTPUTS(text)                  ONE(QUERY, ",\"outputs\":" text)

START_TEST(a_request_becomes_one_of_ours)
{
    const attn_request *ours = &request.envelope.request;
    accept("{\"id\":\"a\\u00e7\",\"inputs\":[" QUERY "," INPUT("KEY", "[1,2]", "FP64", ",\"data\":[[3,4]]") "," INPUT(
        "VALUE", "[1,2]", "INT8",
        ",\"data\":[-128,127]") "," INPUT("ATTEND", "[1,1]", "BOOL",
                                          ",\"data\":[true]") "," INPUT("BIAS", "[1,1]", "FP16",
                                                                        ",\"data\":[0.5]") "],"
                                                                                           "\"outputs\":[{\"name\":"
                                                                                           "\"ATTENTION\","
                                                                                           "\"parameters\":{\"binary_"
                                                                                           "data\":true}},{\"name\":"
                                                                                           "\"LSE_KEYS\"}],"
                                                                                           "\"parameters\":{\"scale\":"
                                                                                           "2,\"causal\":true,"
                                                                                           "\"window\":\"[1,null]\","
                                                                                           "\"softcap\":3,\"rope\":"
                                                                                           "\"{\\\"layout\\\":"
                                                                                           "\\\"half\\\"}\","
                                                                                           "\"priority\":3,\"timeout\":"
                                                                                           "1500,\"profile\":\"hf\"}}");
    ck_assert_str_eq(request.id, "a\xC3\xA7");
    ck_assert_uint_eq(request.output_count, 2);
    ck_assert(request.outputs[0].step == ATTN_STEP_ATTENTION && request.outputs[0].is_binary);
    ck_assert(request.outputs[1].step == ATTN_STEP_LSE_KEYS && !request.outputs[1].is_binary);
    ck_assert(oip_has_binary_output(&request) && request.timeout_ms == 1.5);
    ck_assert_int_eq(ours->inputs.query->dtype, ATTN_F32);
    ck_assert_mem_eq(ours->inputs.key->data, ((float[]){3, 4}), 2 * sizeof(float));
    ck_assert_mem_eq(ours->inputs.value->data, ((float[]){-128, 127}), 2 * sizeof(float));
    ck_assert_mem_eq(ours->masks.attend->data, "\1", 1);
    ck_assert(*(const float *)ours->masks.bias->data == 0.5f);
    ck_assert(ours->options.scale == 2 && ours->options.softcap == 3 && ours->masks.causal);
    ck_assert(ours->masks.has_window && ours->masks.window_left == 1);
}
END_TEST

START_TEST(without_outputs_the_usual_two_are_sent_in_the_form_that_the_parameter_says)
{
    accept(ONE(QUERY, ""));
    ck_assert_uint_eq(request.output_count, 2);
    ck_assert(request.outputs[0].step == ATTN_STEP_OUTPUT && request.outputs[1].step == ATTN_STEP_ATTENTION);
    ck_assert(!oip_has_binary_output(&request) && request.id == NULL && request.timeout_ms == 0);
    accept(ONE(QUERY, ",\"outputs\":[ ],\"parameters\":{\"binary_data_output\":true}"));
    ck_assert(request.output_count == 2 && request.outputs[0].is_binary && request.outputs[1].is_binary);
    accept(ONE(INPUT("QUERY", "[1,2]", "FP64", ",\"data\":[1,2]"), ",\"parameters\":{\"compute\":\"float32\"}"));
    ck_assert_int_eq(request.envelope.request.inputs.query->dtype, ATTN_F32);
    accept(DATA("[1,2]", "FP64", "[1,2]"));
    ck_assert_int_eq(request.envelope.request.inputs.query->dtype, ATTN_F64);
}
END_TEST

/* ---- the bytes behind the JSON ---- */

#define BINARY(type, shape, bytes)                                                                                     \
    ONE(INPUT("QUERY", shape, type, ",\"parameters\":{\"binary_data_size\":" bytes "}"), "")

static attn_status decode_binary(const char *json, const void *bytes, size_t size)
{
    char *body = attn_arena_take(arena, 1, strlen(json) + size);
    ck_assert_ptr_nonnull(body);
    memcpy(body, json, strlen(json));
    memcpy(body + strlen(json), bytes, size);
    return decode_bytes(body, strlen(json) + size, strlen(json));
}

START_TEST(bytes_of_every_datatype_are_read)
{
    static const struct {
        const char *json;
        const char *bytes;
        size_t size;
        float first, second;
    } cases[] = {
        {BINARY("FP32", "[1,2]", "8"), "\0\0\x80\x3f\0\0\0\xc0", 8, 1, -2},
        {BINARY("FP16", "[1,2]", "4"), "\0\x3c\0\xc0", 4, 1, -2},
        {BINARY("BF16", "[1,2]", "4"), "\x80\x3f\0\xc0", 4, 1, -2},
        {BINARY("INT8", "[1,2]", "2"), "\x80\x7f", 2, -128, 127},
        {BINARY("INT16", "[1,2]", "4"), "\0\x80\1\0", 4, -32768, 1},
        {BINARY("INT32", "[1,2]", "8"), "\xff\xff\xff\xff\2\0\0\0", 8, -1, 2},
        {BINARY("INT64", "[1,2]", "16"), "\xff\xff\xff\xff\xff\xff\xff\xff\3\0\0\0\0\0\0\0", 16, -1, 3},
        {BINARY("UINT8", "[1,2]", "2"), "\xff\1", 2, 255, 1},
        {BINARY("UINT16", "[1,2]", "4"), "\xff\xff\1\0", 4, 65535, 1},
        {BINARY("UINT32", "[1,2]", "8"), "\0\0\0\x80\1\0\0\0", 8, 2147483648.0f, 1},
        {BINARY("UINT64", "[1,2]", "16"), "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0", 16, 5, 6},
        {BINARY("BOOL", "[1,2]", "2"), "\1\0", 2, 1, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const attn_status status = decode_binary(cases[i].json, cases[i].bytes, cases[i].size);
        ck_assert_msg(status == ATTN_OK, "%s: %s", cases[i].json, err.message);
        const attn_tensor *query = request.envelope.request.inputs.query;
        float numbers[2];
        ck_assert_int_eq(attn_convert(numbers, ATTN_F32, query->data, query->dtype, 2, NULL), ATTN_OK);
        ck_assert_msg(numbers[0] == cases[i].first && numbers[1] == cases[i].second, "%s: %g, %g", cases[i].json,
                      (double)numbers[0], (double)numbers[1]);
    }
}
END_TEST

START_TEST(bytes_that_do_not_fit_are_refused)
{
    static const struct {
        const char *json, *bytes;
        size_t size;
        attn_status status;
        const char *field, *fragment;
    } cases[] = {
        {BINARY("FP32", "[1,2]", "7"), "1234567", 7, ATTN_ERR_SHAPE, "/inputs/0", "its shape takes 8 bytes"},
        {BINARY("FP32", "[1,2]", "8"), "1234", 4, ATTN_ERR_SHAPE, "/inputs/0", "but 4 bytes are left"},
        {BINARY("FP32", "[1,2]", "8"), "123456789", 9, ATTN_ERR_SHAPE, "/inputs", "leave 1 bytes behind the JSON"},
        {BINARY("FP32", "[1,2]", "-1"), "", 0, ATTN_ERR_VALUE, "/inputs/0/parameters/binary_data_size", "at least 0"},
        {BINARY("UINT64", "[1]", "8"), "\xff\xff\xff\xff\xff\xff\xff\xff", 8, ATTN_ERR_VALUE, "/inputs/0",
         "element 0 is beyond what int64 holds"},
        {BINARY("BOOL", "[1,1]", "1"), "\2", 1, ATTN_ERR_VALUE, "/inputs/QUERY", "bytes 0 and 1"},
        {ONE(INPUT("QUERY", "[1,1]", "FP32", ",\"data\":[1],\"parameters\":{\"binary_data_size\":4}"), ""), "1234", 4,
         ATTN_ERR_FIELD, "/inputs/0", "has both \"data\" and \"binary_data_size\""},
        {ONE(INPUT("QUERY", "[1,1]", "FP32", ",\"parameters\":{\"size\":4}"), ""), "", 0, ATTN_ERR_FIELD,
         "/inputs/0/parameters/size", "unknown member"},
        {ONE(INPUT("QUERY", "[1,1]", "FP32", ",\"parameters\":{}"), ""), "", 0, ATTN_ERR_FIELD, "/inputs/0",
         "neither \"data\" nor the parameter"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const attn_status status = decode_binary(cases[i].json, cases[i].bytes, cases[i].size);
        const struct refusal refusal = {cases[i].json, cases[i].status, cases[i].field, cases[i].fragment};
        check_refusal(&refusal, status);
    }
    ck_assert_int_eq(decode_bytes("{}", 2, 3), ATTN_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(err.message, "Inference-Header-Content-Length is 3, but the body has 2 bytes"));
    ck_assert_int_eq(decode_bytes("1234", 4, 0), ATTN_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(err.message, "the body is QUERY alone"));
}
END_TEST

START_TEST(a_body_without_json_is_the_query_alone)
{
    static const char layer[] = "{\"weights\":{\"qkv\":{\"weight\":[[1,2,3],[4,5,6]]}}}";
    const struct envelope_source base = {.text = layer, .length = strlen(layer)};
    const struct oip_raw raw = {2, ATTN_F32};
    float numbers[] = {1, 2, 3, 4};
    char body[sizeof numbers + 1];
    memcpy(body + 1, numbers, sizeof numbers); /* where no float should lie */
    err = (attn_error){0};
    const attn_status status = oip_decode(body + 1, sizeof numbers, 0, &base, &raw, arena, &request, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    const attn_tensor *query = request.envelope.request.inputs.query;
    ck_assert(query->rank == 2 && query->shape[0] == 2 && query->shape[1] == 2);
    ck_assert_mem_eq(query->data, numbers, sizeof numbers);
    ck_assert(request.output_count == 2 && request.outputs[0].is_binary && request.outputs[1].is_binary);
    for (size_t bytes = 0; bytes < sizeof numbers; bytes += bytes == 0 ? 4 : 8)
        ck_assert_int_eq(oip_decode(body + 1, bytes, 0, &base, &raw, arena, &request, &err), ATTN_ERR_SHAPE);
}
END_TEST

/* ---- refusals ---- */

static const struct refusal refusals[] = {
    {"[1]", ATTN_ERR_FIELD, "", "a JSON object"},
    {"{", ATTN_ERR_SYNTAX, "", "not JSON"},
    {"{\"ids\":1}", ATTN_ERR_FIELD, "/ids", "unknown member"},
    {"{\"id\":1}", ATTN_ERR_FIELD, "/id", "a string, received 1"},
    {"{\"id\":\"a\\u0000\",\"inputs\":[]}", ATTN_ERR_VALUE, "/id", "\\u0000"},
    {"{}", ATTN_ERR_FIELD, "", "has no \"inputs\""},
    {"{\"inputs\":[]}", ATTN_ERR_FIELD, "", "there is no input QUERY"},
    {"{\"inputs\":[ ]}", ATTN_ERR_FIELD, "", "there is no input QUERY"},
    {"{\"inputs\":{}}", ATTN_ERR_FIELD, "/inputs", "a list of tensors"},
    {"{\"inputs\":[1]}", ATTN_ERR_FIELD, "/inputs", "a list of tensors"},
    {"{\"inputs\":[{},{},{},{},{},{}]}", ATTN_ERR_FIELD, "/inputs", "has 6 tensors; this model has 5 inputs"},
    {"{\"inputs\":[[]]}", ATTN_ERR_FIELD, "/inputs", "a list of tensors"},
    {"{\"inputs\":[\"a\"]}", ATTN_ERR_FIELD, "/inputs/0", "an object"},
    {ONE("{\"nam\":1}", ""), ATTN_ERR_FIELD, "/inputs/0/nam", "did you mean \"name\"?"},
    {ONE("{}", ""), ATTN_ERR_FIELD, "/inputs/0", "has no \"name\""},
    {ONE("{\"name\":1}", ""), ATTN_ERR_FIELD, "/inputs/0/name", "\"QUERY\", \"KEY\""},
    {ONE("{\"name\":\"query\"}", ""), ATTN_ERR_VALUE, "/inputs/0/name", "\"BIAS\", received \"query\""},
    {ONE(QUERY "," QUERY, ""), ATTN_ERR_FIELD, "/inputs/1/name", "names QUERY a second time"},
    {ONE("{\"name\":\"QUERY\"}", ""), ATTN_ERR_FIELD, "/inputs/0", "has no \"datatype\""},
    {ONE("{\"name\":\"QUERY\",\"datatype\":\"FP8\"}", ""), ATTN_ERR_VALUE, "/inputs/0/datatype", "\"FP32\""},
    {ONE("{\"name\":\"QUERY\",\"datatype\":\"FP32\"}", ""), ATTN_ERR_FIELD, "/inputs/0", "has no \"shape\""},
    {ONE(INPUT("QUERY", "2", "FP32", ""), ""), ATTN_ERR_FIELD, "/inputs/0/shape", "a flat list of dimensions"},
    {ONE(INPUT("QUERY", "[[1]]", "FP32", ""), ""), ATTN_ERR_SHAPE, "/inputs/0/shape", "a flat list of at most"},
    {ONE(INPUT("QUERY", "[1.5]", "FP32", ""), ""), ATTN_ERR_VALUE, "/inputs/0/shape/0", "integer"},
    {ONE(INPUT("QUERY", "[1,1,1,1,1,1,1,1,1]", "FP32", ""), ""), ATTN_ERR_SHAPE, "/inputs/0/shape", "at most"},
    {ONE(INPUT("QUERY", "[1,-2]", "FP32", ""), ""), ATTN_ERR_VALUE, "/inputs/0/shape", "the negative dimension -2"},
    {ONE(INPUT("QUERY", "[4294967296,4294967296]", "FP32", ""), ""), ATTN_ERR_TOO_LARGE, "/inputs/0/shape",
     "no memory can hold"},
    {ONE(INPUT("QUERY", "[4611686018427387904]", "FP32", ""), ""), ATTN_ERR_TOO_LARGE, "/inputs/0/shape",
     "no memory can hold"},
    {ONE(INPUT("QUERY", "[1]", "FP32", ",\"parameters\":1"), ""), ATTN_ERR_FIELD, "/inputs/0/parameters", "an object"},
    {DATA("[1,2]", "FP32", "[1,2,3]"), ATTN_ERR_SHAPE, "/inputs/0/data", "has 3 numbers in 1 dimensions"},
    {DATA("[1,2]", "FP32", "[[1],[2]]"), ATTN_ERR_SHAPE, "/inputs/0/data", "has 2 numbers in 2 dimensions"},
    {DATA("[1,2]", "FP32", "[[[1,2]]]"), ATTN_ERR_SHAPE, "/inputs/0/data", "has 2 numbers in 3 dimensions"},
    {DATA("[1,2]", "FP32", "[1,true]"), ATTN_ERR_FIELD, "/inputs/0/data/1", "expected a number"},
    {DATA("[1]", "INT8", "[128]"), ATTN_ERR_VALUE, "/inputs/0/data", "holds 128, which INT8 cannot"},
    {DATA("[1]", "INT16", "[-32769]"), ATTN_ERR_VALUE, "/inputs/0/data", "holds -32769, which INT16 cannot"},
    {DATA("[1]", "UINT8", "[-1]"), ATTN_ERR_VALUE, "/inputs/0/data", "holds -1, which UINT8 cannot"},
    {DATA("[1]", "BOOL", "[2]"), ATTN_ERR_VALUE, "/inputs/0/data/0", ""},
    {DATA("[1]", "FP16", "[65520]"), ATTN_ERR_VALUE, "/inputs/0/data", "holds 65520, which FP16 cannot"},
    {OUTPUTS("{}"), ATTN_ERR_FIELD, "/outputs", "a list of outputs"},
    {OUTPUTS("[{}]"), ATTN_ERR_FIELD, "/outputs/0", "has no \"name\""},
    {OUTPUTS("[{\"name\":1}]"), ATTN_ERR_FIELD, "/outputs/0/name", "the name of an output"},
    {OUTPUTS("[{\"nam\":\"OUTPUT\"}]"), ATTN_ERR_FIELD, "/outputs/0/nam", "unknown member"},
    {OUTPUTS("[{\"name\":\"output\"}]"), ATTN_ERR_VALUE, "/outputs/0/name", "in capitals"},
    {OUTPUTS("[{\"name\":\"OUTPUT\\u0000\"}]"), ATTN_ERR_VALUE, "/outputs/0/name", "in capitals"},
    {OUTPUTS("[{\"name\":\"A_NAME_THAT_IS_MUCH_LONGER_THAN_ANY_STEP_HAS_OR_WILL_HAVE_IN_ANY_VERSION\"}]"),
     ATTN_ERR_VALUE, "/outputs/0/name", "in capitals"},
    {OUTPUTS("[{\"name\":\"OUTPUT\"},{\"name\":\"OUTPUT\"}]"), ATTN_ERR_FIELD, "/outputs/1/name", "a second time"},
    {OUTPUTS("[{\"name\":\"OUTPUT\",\"parameters\":{\"binary\":true}}]"), ATTN_ERR_FIELD,
     "/outputs/0/parameters/binary", "unknown member"},
    {OUTPUTS("[{\"name\":\"OUTPUT\",\"parameters\":{\"binary_data\":1}}]"), ATTN_ERR_FIELD,
     "/outputs/0/parameters/binary_data", "true or false"},
    {OUTPUTS("[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]"),
     ATTN_ERR_FIELD, "/outputs", "has 32 outputs; there are"},
    {ONE(QUERY, ",\"parameters\":[]"), ATTN_ERR_FIELD, "/parameters", "an object"},
    {PARAMETERS("\"priority\":4"), ATTN_ERR_VALUE, "/parameters/priority", "a whole number from 0 to 3"},
    {PARAMETERS("\"priority\":-1"), ATTN_ERR_VALUE, "/parameters/priority", "a whole number from 0 to 3"},
    {PARAMETERS("\"priority\":1.5"), ATTN_ERR_VALUE, "/parameters/priority", "a whole number from 0 to 3"},
    {PARAMETERS("\"timeout\":\"1\""), ATTN_ERR_VALUE, "/parameters/timeout", "a whole number"},
    {PARAMETERS("\"binary_data_output\":1"), ATTN_ERR_FIELD, "/parameters/binary_data_output", "true or false"},
    {PARAMETERS("\"return\":[\"output\"]"), ATTN_ERR_FIELD, "/parameters/return", "\"outputs\" says what to send"},
    {PARAMETERS("\"format\":\"flat\""), ATTN_ERR_FIELD, "/parameters/format", "does not go with this protocol"},
    {PARAMETERS("\"heads\":[0,1]"), ATTN_ERR_FIELD, "/parameters/heads", "write it all as a string"},
    {PARAMETERS("\"rope\":{\"a\":[[0]]}"), ATTN_ERR_FIELD, "/parameters/rope", "write it all as a string"},
    {PARAMETERS("\"rope\":[\"a\",[0]]"), ATTN_ERR_FIELD, "/parameters/rope", "write it all as a string"},
    {PARAMETERS("\"padding\":\"[[1]]\""), ATTN_ERR_FIELD, "/parameters/padding", "ATTEND, BIAS are inputs"},
    {PARAMETERS("\"past_key\":\"[[1]]\""), ATTN_ERR_FIELD, "/parameters/past_key", "tensors stand in \"inputs\""},
    {PARAMETERS("\"scal\":null"), ATTN_ERR_FIELD, "/parameters/scal", "did you mean \"scale\"?"},
    {"{\"model_name\":1}", ATTN_ERR_FIELD, "/model_name", "a string, received 1"},
    {"{\"model_version\":1}", ATTN_ERR_FIELD, "/model_version", "a string, received 1"},
    {PARAMETERS("\"scal\":1"), ATTN_ERR_FIELD, "/parameters/scal", "did you mean \"scale\"?"},
    {PARAMETERS("\"rope\":\"{\""), ATTN_ERR_VALUE, "/parameters/rope", "received \"{\""},
    {PARAMETERS("\"causal\":\"\""), ATTN_ERR_FIELD, "/parameters/causal", "received \"\""},
    {PARAMETERS("\"window\":\"[1]\""), ATTN_ERR_VALUE, "/parameters/window", ""},
};

START_TEST(refusals_have_their_code_field_and_reason)
{
    check_refusal(&refusals[_i], decode_bytes(refusals[_i].text, strlen(refusals[_i].text), OIP_ALL_JSON));
}
END_TEST

START_TEST(what_a_plan_finds_is_told_in_the_words_of_the_protocol)
{
    static const struct {
        const char *message, *field, *told, *told_field;
    } cases[] = {
        {"/masks/causal is odd", "/masks/causal", "/parameters/causal is odd", "/parameters/causal"},
        {"inputs.key disagrees", "/inputs/key", "KEY disagrees", "/inputs/KEY"},
        {"leave it out of options.return", "/options/return", "leave it out of \"outputs\"", "/parameters/return"},
        {"/masks/bias", "/masks/attend", "/inputs/BIAS", "/inputs/ATTEND"},
        {"nothing", "", "nothing", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        attn_fail(&err, ATTN_ERR_VALUE, cases[i].field, "%s", cases[i].message);
        oip_translate(&err);
        ck_assert_str_eq(err.message, cases[i].told);
        ck_assert_str_eq(err.field, cases[i].told_field);
    }
    memset(err.message, 'x', sizeof err.message - 1); /* no room to grow */
    memcpy(err.message, "/masks/", strlen("/masks/"));
    oip_translate(&err);
    ck_assert_mem_eq(err.message, "/masks/xx", 9);
    oip_translate(NULL);
}
END_TEST

START_TEST(the_priority_is_guessed_from_the_beginning_of_the_body)
{
    static const struct {
        const char *body;
        oip_priority priority;
    } cases[] = {
        {"{\"parameters\":{\"priority\":1}}", OIP_PRIORITY_HIGH},
        {"{\"parameters\":{\"priority\" : \t3 }}", OIP_PRIORITY_LOW},
        {"{\"parameters\":{\"priority\":2}}", OIP_PRIORITY_USUAL},
        {"{\"parameters\":{\"priority\":12}}", OIP_PRIORITY_USUAL},
        {"{\"parameters\":{\"priority\":\"1\"}}", OIP_PRIORITY_USUAL},
        {"{\"parameters\":{\"priority\":1", OIP_PRIORITY_USUAL},
        {"{\"parameters\":{\"priority\":", OIP_PRIORITY_USUAL},
        {"{}", OIP_PRIORITY_USUAL},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_msg(oip_priority_hint(cases[i].body, strlen(cases[i].body)) == cases[i].priority, "%s",
                      cases[i].body);
    char *long_body = malloc(8192);
    ck_assert_ptr_nonnull(long_body);
    memset(long_body, ' ', 8192);
    memcpy(long_body + 8000, "\"priority\":1}", 13); /* too far behind for a hint */
    ck_assert_int_eq(oip_priority_hint(long_body, 8192), OIP_PRIORITY_USUAL);
    free(long_body);
}
END_TEST

START_TEST(requests_about_the_repository_say_little)
{
    static const struct {
        const char *body;
        oip_repository_kind kind;
        attn_status status;
        const char *field;
    } cases[] = {
        {"", OIP_INDEX, ATTN_OK, ""},
        {"{\"ready\":true}", OIP_INDEX, ATTN_OK, ""},
        {"{\"ready\":1}", OIP_INDEX, ATTN_ERR_FIELD, "/ready"},
        {"{\"parameters\":{}}", OIP_INDEX, ATTN_ERR_FIELD, "/parameters"},
        {"{}", OIP_LOAD, ATTN_OK, ""},
        {"{\"ready\":true}", OIP_LOAD, ATTN_ERR_FIELD, "/ready"},
        {"{\"parameters\":{\"unload_dependents\":true}}", OIP_UNLOAD, ATTN_OK, ""},
        {"{\"parameters\":{\"unload_dependents\":1}}", OIP_UNLOAD, ATTN_ERR_FIELD, "/parameters/unload_dependents"},
        {"{\"parameters\":{\"unload_dependents\":true}}", OIP_LOAD, ATTN_ERR_FIELD, "/parameters/unload_dependents"},
        {"{\"parameters\":1}", OIP_LOAD, ATTN_ERR_FIELD, "/parameters"},
        {"{\"parameters\":null}", OIP_LOAD, ATTN_OK, ""},
        {"{\"parameters\":{}}", OIP_LOAD, ATTN_OK, ""},
        {"{\"parameters\":{\"config\":null}}", OIP_LOAD, ATTN_OK, ""},
        {"{\"parameters\":{\"config\":\"{}\"}}", OIP_LOAD, ATTN_ERR_FIELD, "/parameters/config"},
        {"[", OIP_LOAD, ATTN_ERR_SYNTAX, ""},
        {"[]", OIP_INDEX, ATTN_ERR_FIELD, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        err = (attn_error){0};
        const attn_status status =
            oip_check_repository(cases[i].body, strlen(cases[i].body), cases[i].kind, arena, &err);
        ck_assert_msg(status == cases[i].status, "%s: %s", cases[i].body, err.message);
        ck_assert_msg(strcmp(err.field, cases[i].field) == 0, "%s: %s", cases[i].body, err.field);
    }
}
END_TEST

static attn_status decode_whole(const char *body, size_t bytes, size_t json_bytes, bool has_tokenizer)
{
    err = (attn_error){0};
    return oip_decode_whole(body, bytes, json_bytes, has_tokenizer, arena, &request, &err);
}

START_TEST(a_whole_model_takes_texts_or_ids)
{
    static const char texts[] = "{\"inputs\":[{\"name\":\"TEXT\",\"datatype\":\"BYTES\",\"shape\":[2],"
                                "\"data\":[\"a\\u0000b\",\"c\"]}],\"parameters\":{\"layers\":\"[0]\"}}";
    static const char ids[] = "{\"inputs\":[{\"name\":\"IDS\",\"datatype\":\"INT64\",\"shape\":[2,1],"
                              "\"data\":[[3],[4]]}],\"outputs\":[{\"name\":\"TOKENS\"}]}";
    static const char options[] = "{\"options\": {\"layers\": [0], \"return\": [\"output\", \"attention\"]}}";
    const struct oip_model_inputs *whole = &request.whole;
    ck_assert_int_eq(decode_whole(texts, strlen(texts), OIP_ALL_JSON, true), ATTN_OK);
    ck_assert(whole->batch == 2 && whole->ids == NULL && whole->texts[0].length == 3);
    ck_assert_mem_eq(whole->texts[0].at, "a\0b", 4);
    ck_assert_str_eq(whole->texts[1].at, "c");
    ck_assert(request.output_count == 3 && request.outputs[2].step == OIP_TOKENS);
    ck_assert_uint_eq(whole->options_bytes, strlen(options));
    ck_assert_mem_eq(whole->options, options, strlen(options));
    ck_assert_int_eq(decode_whole(ids, strlen(ids), OIP_ALL_JSON, true), ATTN_OK);
    ck_assert(whole->batch == 2 && whole->length == 1 && whole->texts == NULL && request.output_count == 1);
    ck_assert(whole->ids[0] == 3 && whole->ids[1] == 4);
    ck_assert_int_eq(decode_whole(ids, strlen(ids), OIP_ALL_JSON, false), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "/outputs/0/name");
}
END_TEST

START_TEST(binary_texts_fill_their_bytes)
{
    static const char head[] = "{\"inputs\":[{\"name\":\"TEXT\",\"datatype\":\"BYTES\",\"shape\":[2],"
                               "\"parameters\":{\"binary_data_size\":%d}}]}";
    static const struct {
        const char *tail;
        int bytes;
        attn_status status;
    } cases[] = {
        {"\2\0\0\0ab\0\0\0\0", 10, ATTN_OK},
        {"\2\0\0\0ab\1\0\0\0", 10, ATTN_ERR_SHAPE},
        {"\2\0\0\0ab\0\0\0\0x", 11, ATTN_ERR_SHAPE},
        {"\2\0\0\0ab", 6, ATTN_ERR_SHAPE},
        {"\377\377\377\377\0\0\0\0", 8, ATTN_ERR_SHAPE},
        {"\2\0", 2, ATTN_ERR_SHAPE},
        {"", 0, ATTN_ERR_SHAPE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[256];
        const size_t json = (size_t)snprintf(body, sizeof body, head, cases[i].bytes);
        memcpy(body + json, cases[i].tail, (size_t)cases[i].bytes);
        ck_assert_int_eq(decode_whole(body, json + (size_t)cases[i].bytes, json, true), cases[i].status);
        if (cases[i].status == ATTN_OK)
            ck_assert(strcmp(request.whole.texts[0].at, "ab") == 0 && request.whole.texts[1].length == 0);
    }
    ck_assert_int_eq(decode_whole("abc", 3, 0, true), ATTN_ERR_FIELD);
}
END_TEST

START_TEST(outputs_of_bytes_are_sent_in_both_forms)
{
    const size_t shape[] = {1, 2};
    const struct text_span words[] = {{"a\"", 2}, {"", 0}};
    const struct oip_sent sent = {attn_tensor_view(NULL, ATTN_U8, 2, shape), words};
    struct oip_request asked = {.outputs = {{OIP_TOKENS, false}}, .output_count = 1};
    struct chunks out = chunks_begin(arena);
    ck_assert_uint_eq(oip_write(&asked, "m", "1", &sent, NULL, &out), OIP_ALL_JSON);
    ck_assert_str_eq(chunks_join(&out),
                     "{\"model_name\":\"m\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"TOKENS\","
                     "\"datatype\":\"BYTES\",\"shape\":[1,2],\"data\":[\"a\\\"\",\"\"]}]}");
    ck_assert_uint_ge(oip_bound(&asked, &sent), out.total_bytes);
    asked.outputs[0].is_binary = true;
    out = chunks_begin(arena);
    const size_t json = oip_write(&asked, "m", "1", &sent, NULL, &out);
    ck_assert_uint_eq(out.total_bytes, json + 10);
    ck_assert_mem_eq(chunks_join(&out) + json, "\2\0\0\0a\"\0\0\0\0", 10);
    ck_assert_uint_ge(oip_bound(&asked, &sent), out.total_bytes);
}
END_TEST

CHECK_MAIN("oip")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, a_request_becomes_one_of_ours);
    tcase_add_test(tests, without_outputs_the_usual_two_are_sent_in_the_form_that_the_parameter_says);
    tcase_add_test(tests, bytes_of_every_datatype_are_read);
    tcase_add_test(tests, bytes_that_do_not_fit_are_refused);
    tcase_add_test(tests, a_body_without_json_is_the_query_alone);
    tcase_add_loop_test(tests, refusals_have_their_code_field_and_reason, 0, COUNT(refusals));
    tcase_add_test(tests, what_a_plan_finds_is_told_in_the_words_of_the_protocol);
    tcase_add_test(tests, the_priority_is_guessed_from_the_beginning_of_the_body);
    tcase_add_test(tests, requests_about_the_repository_say_little);
    tcase_add_test(tests, a_whole_model_takes_texts_or_ids);
    tcase_add_test(tests, binary_texts_fill_their_bytes);
    tcase_add_test(tests, outputs_of_bytes_are_sent_in_both_forms);
}

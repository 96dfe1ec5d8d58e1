/*
 * test_envelope_variants.c: refusals of server/codec/request/rope_options.c, mechanism.c, options.c, kept_base.c
 * and kept_layer.c: rotations, mechanisms, caches, kept layers, and requests with one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/picture/image.h"
#include "codec/request/envelope.h"
#include "codec/request/kept_layer.h"
#include "envelope_stage.h"

enum { LIST_BYTES = 2 << 20 };

#define OPTIONS(text) "{\"inputs\":{\"query\":[[1]]},\"options\":{" text "}}"
#define ROPE(text)    OPTIONS("\"rope\":{" text "}")
#define SCALING(text) ROPE("\"scaling\":{" text "}")
#define KIND(text)    OPTIONS("\"mechanism\":{" text "}")

static const struct refusal options[] = {
    {OPTIONS("\"rope\":1"), ATTN_ERR_FIELD, "/options/rope", "or an object with layout and theta, received 1"},
    {OPTIONS("\"rope\":\"x\""), ATTN_ERR_VALUE, "/options/rope", "\"half\", \"interleaved\""},
    {ROPE("\"layout\":\"x\""), ATTN_ERR_VALUE, "/options/rope/layout", "\"half\", \"interleaved\""},
    {ROPE("\"dim\":3"), ATTN_ERR_VALUE, "/options/rope/dim", "an even integer, received 3"},
    {ROPE("\"dim\":0"), ATTN_ERR_VALUE, "/options/rope/dim", "from 2 to"},
    {ROPE("\"theta\":0"), ATTN_ERR_VALUE, "/options/rope/theta", "a number above 0"},
    {ROPE("\"theta\":\"1\""), ATTN_ERR_FIELD, "/options/rope/theta", "a number above 0"},
    {ROPE("\"theta\":1,\"scaling\":{\"rope_type\":\"linear\",\"rope_theta\":2}"), ATTN_ERR_FIELD, "/options/rope",
     "another rope_theta in its scaling"},
    {ROPE("\"positions\":{\"query\":[0],\"keys\":[1]}"), ATTN_ERR_FIELD, "/options/rope/positions/keys",
     "did you mean \"key\"?"},
    {ROPE("\"positions\":{\"key\":true}"), ATTN_ERR_FIELD, "/options/rope/positions/key", ""},
    {ROPE("\"cos\":1"), ATTN_ERR_FIELD, "/options/rope/cos", ""},
    {ROPE("\"sin\":{\"query\":1}"), ATTN_ERR_FIELD, "/options/rope/sin/query", ""},
    {ROPE("\"scaling\":[]"), ATTN_ERR_FIELD, "/options/rope/scaling", "an object"},
    {SCALING(""), ATTN_ERR_FIELD, "/options/rope/scaling", "has no \"rope_type\""},
    {SCALING("\"rope_type\":\"x\""), ATTN_ERR_VALUE, "/options/rope/scaling/rope_type", "\"linear\""},
    {SCALING("\"rope_type\":\"linear\",\"type\":\"linear\""), ATTN_ERR_FIELD, "/options/rope/scaling",
     "which mean the same"},
    {SCALING("\"type\":\"linear\",\"factor\":-1"), ATTN_ERR_VALUE, "/options/rope/scaling/factor",
     "a number of at least 0"},
    {SCALING("\"type\":\"yarn\",\"truncate\":1"), ATTN_ERR_FIELD, "/options/rope/scaling/truncate", "true or false"},
    {SCALING("\"type\":\"longrope\",\"short_factor\":1"), ATTN_ERR_FIELD, "/options/rope/scaling/short_factor", ""},
    {OPTIONS("\"mechanism\":1"), ATTN_ERR_FIELD, "/options/mechanism", "\"softmax\", \"linear\" or \"performer\""},
    {KIND(""), ATTN_ERR_FIELD, "/options/mechanism", "has no \"type\""},
    {KIND("\"type\":\"x\""), ATTN_ERR_VALUE, "/options/mechanism/type", "\"softmax\""},
    {KIND("\"type\":\"softmax\",\"eps\":1"), ATTN_ERR_FIELD, "/options/mechanism/eps", "unknown member"},
    {KIND("\"type\":\"linear\",\"feature_map\":\"x\""), ATTN_ERR_VALUE, "/options/mechanism/feature_map", "\"elu\""},
    {KIND("\"type\":\"linear\",\"normalize\":1"), ATTN_ERR_FIELD, "/options/mechanism/normalize", "true or false"},
    {KIND("\"type\":\"linear\",\"eps\":-1"), ATTN_ERR_VALUE, "/options/mechanism/eps", "at least 0"},
    {KIND("\"type\":\"linear\",\"eps\":\"a\""), ATTN_ERR_FIELD, "/options/mechanism/eps", "at least 0"},
    {KIND("\"type\":\"performer\",\"features\":0"), ATTN_ERR_VALUE, "/options/mechanism/features", "from 1 to"},
    {KIND("\"type\":\"performer\",\"seed\":-1"), ATTN_ERR_VALUE, "/options/mechanism/seed", "at least 0"},
    {OPTIONS("\"cache\":1"), ATTN_ERR_FIELD, "/options/cache", "the name of a cache, received 1"},
    {OPTIONS("\"cache\":\"a\\u0000\""), ATTN_ERR_VALUE, "/options/cache", "a name of letters, digits"},
    {OPTIONS("\"cache\":{}"), ATTN_ERR_FIELD, "/options/cache", "has no \"name\""},
    {OPTIONS("\"cache\":{\"name\":\"a\",\"length\":-1}"), ATTN_ERR_VALUE, "/options/cache/length", "at least 0"},
    {OPTIONS("\"cache\":{\"name\":[],\"length\":1}"), ATTN_ERR_FIELD, "/options/cache/name", "the name of a cache"},
    {OPTIONS("\"cache\":{\"nam\":\"a\"}"), ATTN_ERR_FIELD, "/options/cache/nam", "did you mean \"name\"?"},
};

START_TEST(options_are_refused_with_their_code_pointer_and_reason)
{
    check_refusal(&options[_i], decode_as(ENVELOPE_ATTENTION, options[_i].text));
}
END_TEST

START_TEST(mechanisms_and_rotations_are_read)
{
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, KIND("\"type\":\"softmax\"")), ATTN_OK);
    ck_assert_int_eq(envelope.request.options.mechanism.type, ATTN_SOFTMAX);
    ck_assert_int_eq(
        decode_as(ENVELOPE_ATTENTION, ROPE("\"theta\":2,\"scaling\":{\"type\":\"yarn\",\"rope_theta\":2,\"factor\":4,"
                                           "\"mscale\":null,\"truncate\":false}")),
        ATTN_OK);
    const attn_rope *rope = &envelope.request.options.rope;
    ck_assert(rope->theta == 2 && rope->scaling.factor == 4 && rope->scaling.keeps_fraction &&
              rope->scaling.mscale == 0);
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, OPTIONS("\"cache\":{\"name\":\"a\",\"length\":7}")), ATTN_OK);
    ck_assert(strcmp(envelope.cache.name, "a") == 0 && envelope.cache.has_length && envelope.cache.length == 7);
}
END_TEST

START_TEST(a_list_of_numbers_that_would_become_a_tree_is_bounded)
{
    char *text = malloc(LIST_BYTES + 128);
    ck_assert_ptr_nonnull(text);
    size_t length = (size_t)sprintf(text, "{\"inputs\":{\"query\":[[1]]},\"options\":{\"heads\":[0");
    while (length < LIST_BYTES)
        length += (size_t)sprintf(text + length, ",0");
    strcpy(text + length, "]}}");
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, text), ATTN_ERR_TOO_LARGE);
    ck_assert_str_eq(err.field, "/options/heads");
    ck_assert_ptr_nonnull(strstr(err.message, "a list of more than 1048576 bytes"));
    free(text);
}
END_TEST

/* Text of another encoding is named, whatever it begins with. */
START_TEST(only_utf_8_is_read)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *fragment;
    } cases[] = {
        {"\xFF\xFE{\0", 4, "UTF-16"},
        {"\xFE\xFF\0{", 4, "UTF-16"},
        {"{\0}\0", 4, "UTF-16"},
        {"\0{\0}", 4, "UTF-16"},
        {"\xFF\xFD{}", 4, "not JSON"},
        {"\xFE\xFE{}", 4, "not JSON"},
        {"{\0}", 3, "a NUL byte"},
        {"{\0}}", 4, "a NUL byte"},
        {"\0{}}", 4, "a NUL byte"},
        {"\0\0{}", 4, "a NUL byte"},
        {"\0{\0\0", 4, "a NUL byte"},
        {"{\0\0}", 4, "a NUL byte"},
        {"\xEF\xBB\xBF", 3, "a byte order mark"},
        {" \t\r\n", 4, "has no body"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        err = (attn_error){0};
        ck_assert_int_eq(envelope_decode(cases[i].bytes, cases[i].length, ENVELOPE_ATTENTION, arena, &envelope, &err),
                         ATTN_ERR_SYNTAX);
        ck_assert_msg(strstr(err.message, cases[i].fragment) != NULL, "%zu: %s", i, err.message);
    }
}
END_TEST

START_TEST(a_picture_has_no_other_form)
{
    static const struct refusal forms[] = {
        {OPTIONS("\"view\":\"rows\""), ATTN_ERR_FIELD, "/options/view", "has no meaning for a picture"},
        {OPTIONS("\"pool\":{\"rows\":1}"), ATTN_ERR_FIELD, "/options/pool", "has no meaning for a picture"},
        {OPTIONS("\"top_k\":1"), ATTN_ERR_FIELD, "/options/top_k", "has no meaning for a picture"},
        {OPTIONS("\"dtype\":\"float16\""), ATTN_ERR_FIELD, "/options/dtype", "has no meaning for a picture"},
    };
    for (size_t i = 0; i < COUNT(forms); i++) {
        ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, forms[i].text), ATTN_OK);
        check_refusal(&forms[i], answer_picture_prepare(&envelope, &err));
    }
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, OPTIONS("\"scale\":1")), ATTN_OK);
    ck_assert_int_eq(answer_picture_prepare(&envelope, &err), ATTN_OK);
}
END_TEST

/* ---- kept layers ---- */

#define LAYER(more)                                                                                                    \
    "{\"weights\":{\"query\":{\"weight\":[[1]]},\"key\":{\"weight\":[[1]]},\"value\":{\"weight\":[[1]]}}" more "}"

static const struct refusal kept[] = {
    {"1", ATTN_ERR_FIELD, "", "must be a JSON object, received 1"},
    {"{}", ATTN_ERR_FIELD, "", "has no \"weights\""},
    {LAYER(",\"inputs\":{}"), ATTN_ERR_FIELD, "/inputs", "unknown member"},
    {LAYER(",\"masks\":{\"caus\":true}"), ATTN_ERR_FIELD, "/masks/caus", "did you mean \"causal\"?"},
    {LAYER(",\"masks\":{\"causal\":true,\"padding\":[[1]]}"), ATTN_ERR_FIELD, "/masks/padding",
     "a kept layer may have causal, window, sliding_window, blocks"},
    {LAYER(",\"masks\":1"), ATTN_ERR_FIELD, "/masks", "an object"},
    {LAYER(",\"options\":{\"scale\":[]}"), ATTN_ERR_FIELD, "/options/scale", "received an array"},
    {"{\"weights\":{\"qkv\":{\"weight\":[[1,2,1,2,1,2]]}},\"options\":{\"rope\":{\"positions\":[1,2]}}}",
     ATTN_ERR_SHAPE, "/options/rope/positions", "a kept layer takes requests of any length"},
    {"{\"weights\":{\"qkv\":{\"weight\":[[1,2,1,2,1,2]]}},\"options\":{\"rope\":{\"cos\":[[1],[1]],\"sin\":[[1],[1]]}}"
     "}",
     ATTN_ERR_SHAPE, "/options/rope/cos", "a kept layer takes requests of any length"},
    {"{\"query\":{\"weight\":[[1]]}}", ATTN_ERR_FIELD, "/query", "it belongs into weights"},
    {LAYER(",\"query\":[[1]]"), ATTN_ERR_FIELD, "/query", "it belongs into weights"},
    {LAYER(",\"past_key\":[[1]]"), ATTN_ERR_FIELD, "/past_key", "unknown member; known here"},
    {LAYER(",\"options\":{\"cache\":\"a\"}"), ATTN_ERR_FIELD, "/options/cache", "belongs into requests"},
    {LAYER(",\"options\":{\"num_heads\":2}"), ATTN_ERR_SHAPE, "/weights/query/weight", "which 2 heads do not divide"},
    {"{\"weights\":{\"query\":{\"weight\":[1]}}}", ATTN_ERR_SHAPE, "/weights/query/weight", "has rank 2, or rank 3"},
    {"{\"weights\":{\"qkv\":{\"weight\":\"x\"}}}", ATTN_ERR_FIELD, "/weights/qkv/weight", ""},
};

START_TEST(a_layer_is_refused_with_its_code_pointer_and_reason)
{
    struct chunks out = chunks_begin(arena);
    err = (attn_error){0};
    check_refusal(&kept[_i], kept_layer_write(kept[_i].text, strlen(kept[_i].text), arena, &out, &err));
}
END_TEST

#define INPUTS "\"inputs\":{\"query\":[[1]]}"

static const struct refusal over[] = {
    {"[1]", ATTN_ERR_FIELD, "", "must be a JSON object"},
    {"{", ATTN_ERR_SYNTAX, "", "not JSON"},
    {"{}", ATTN_ERR_FIELD, "", "has no \"inputs\""},
    {"{" INPUTS ",\"weights\":{}}", ATTN_ERR_FIELD, "/weights", "the kept layer has its own"},
    {"{" INPUTS ",\"more\":{}}", ATTN_ERR_FIELD, "/more", "unknown member"},
    {"{" INPUTS ",\"qkv\":{}}", ATTN_ERR_FIELD, "/qkv", "unknown member; known here"},
    {"{" INPUTS ",\"options\":{\"scale\":[]}}", ATTN_ERR_FIELD, "/options/scale", "received an array"},
    {"{" INPUTS ",\"masks\":{\"padding\":1}}", ATTN_ERR_FIELD, "/masks/padding", ""},
    {"{" INPUTS ",\"tokens\":[]}", ATTN_ERR_SHAPE, "/tokens", "0 labels for 1"},
    {"{" INPUTS ",\"tokens\":\"a\"}", ATTN_ERR_FIELD, "/tokens", "a list of labels, or an object"},
    {"{\"inputs\":{\"query\":1}}", ATTN_ERR_FIELD, "/inputs/query", ""},
};

START_TEST(a_request_over_a_layer_is_refused_with_its_code_pointer_and_reason)
{
    static const char layer[] = LAYER(",\"masks\":{\"causal\":true},\"options\":{\"scale\":2}");
    const struct envelope_source base = {.text = layer, .length = strlen(layer)};
    err = (attn_error){0};
    check_refusal(
        &over[_i],
        envelope_decode_over(&base, &(struct envelope_source){.text = over[_i].text, .length = strlen(over[_i].text)},
                             ENVELOPE_LAYER, arena, &envelope, &err));
    static const char request[] =
        "{" INPUTS ",\"options\":{\"scale\":3},\"masks\":{\"causal\":false,\"window\":[1,0]}}";
    ck_assert_int_eq(envelope_decode_over(&base, &(struct envelope_source){.text = request, .length = strlen(request)},
                                          ENVELOPE_LAYER, arena, &envelope, &err),
                     ATTN_OK);
    ck_assert(envelope.request.options.scale == 3 && !envelope.request.masks.causal &&
              envelope.request.masks.has_window);
}
END_TEST

START_TEST(inputs_of_other_widths_are_named)
{
    const struct kept_layer_facts facts = {.dims = {.d_query = 2, .d_key = 3, .d_value = 4}};
    float numbers[8] = {0};
    const attn_tensor two = attn_tensor_view(numbers, ATTN_F32, 2, (size_t[]){1, 2}),
                      three = attn_tensor_view(numbers, ATTN_F32, 2, (size_t[]){1, 3}),
                      four = attn_tensor_view(numbers, ATTN_F32, 2, (size_t[]){1, 4}),
                      flat = attn_tensor_view(numbers, ATTN_F32, 1, (size_t[]){5});
    const struct {
        attn_inputs inputs;
        const char *field, *message; /* NULL: none */
    } cases[] = {
        {{.query = &two, .key = &three, .value = &four}, NULL, NULL},
        {{.query = &flat, .key = &three, .value = &four}, NULL, NULL}, /* which the plan refuses */
        {{.query = &three}, "/inputs/query", "inputs.query has 3 features, the kept layer takes 2"},
        {{.query = &two}, "/inputs/key", "inputs.query, which stands for key too, has 2 features"},
        {{.query = &two, .key = &two}, "/inputs/key", "inputs.key has 2 features, the kept layer takes 3"},
        {{.query = &two, .key = &three}, "/inputs/value", "inputs.key, which stands for value too, has 3"},
        {{.query = &two, .key = &three, .value = &two}, "/inputs/value", "inputs.value has 2 features"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        err = (attn_error){0};
        const attn_status status = kept_layer_check_inputs(&facts, &cases[i].inputs, &err);
        ck_assert_int_eq(status, cases[i].field == NULL ? ATTN_OK : ATTN_ERR_SHAPE);
        ck_assert_int_eq(kept_layer_check_inputs(&facts, &cases[i].inputs, NULL), status);
        if (status == ATTN_OK)
            continue;
        ck_assert_str_eq(err.field, cases[i].field);
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s", err.message);
    }
}
END_TEST

/* Members other than tensors stay unchanged. */
START_TEST(the_rest_of_a_layer_is_kept_as_json)
{
    static const char text[] =
        LAYER(",\"options\":{\"scale\":0.5,\"heads\":[[0,0]],\"sinks\":{\"shape\":[1],\"data\":[2.50]}},"
              "\"masks\":{\"window\":[1,null],\"blocks\":{\"pattern\":\"longformer\",\"window\":1,\"global_tokens\":"
              "[ 0 ]}}");
    struct chunks out = chunks_begin(arena);
    struct envelope_source base;
    struct kept_layer_facts facts;
    attn_status status = kept_layer_write(text, strlen(text), arena, &out, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    status = kept_layer_read(chunks_join(&out), out.total_bytes, arena, &base, &facts, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    ck_assert_msg(memmem(base.text, base.length, "[ 0 ]", 5) != NULL, "%.*s", (int)base.length, base.text);
    ck_assert_msg(memmem(base.text, base.length, "2.50", 4) != NULL, "%.*s", (int)base.length, base.text);
    ck_assert_uint_eq(base.count, 3);
    ck_assert_uint_eq(facts.parameters, 3);
}
END_TEST

CHECK_MAIN("envelope_variants")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, options_are_refused_with_their_code_pointer_and_reason, 0, COUNT(options));
    tcase_add_test(tests, mechanisms_and_rotations_are_read);
    tcase_add_test(tests, a_list_of_numbers_that_would_become_a_tree_is_bounded);
    tcase_add_test(tests, only_utf_8_is_read);
    tcase_add_test(tests, a_picture_has_no_other_form);
    tcase_add_loop_test(tests, a_layer_is_refused_with_its_code_pointer_and_reason, 0, COUNT(kept));
    tcase_add_loop_test(tests, a_request_over_a_layer_is_refused_with_its_code_pointer_and_reason, 0, COUNT(over));
    tcase_add_test(tests, inputs_of_other_widths_are_named);
    tcase_add_test(tests, the_rest_of_a_layer_is_kept_as_json);
}

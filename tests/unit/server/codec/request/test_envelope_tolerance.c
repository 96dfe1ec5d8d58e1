/*
 * test_envelope_tolerance.c: what a request may write in more than one way: null for a member that is not given,
 * integers with a point or an exponent, and options in any order, whatever the compute type.
 */
#include <stdio.h>

#include "codec/request/envelope.h"
#include "codec/request/kept_layer.h"
#include "envelope_stage.h"

#define COUNT(items) (sizeof(items) / sizeof(items)[0])

/* ---- null ---- */

#define NULL_WEIGHTS                                                                                                   \
    "\"weights\":{\"query\":{\"weight\":[[1]],\"bias\":null},\"key\":{\"weight\":[[1]]},\"value\":{\"weight\":[[1]]}," \
    "\"qkv\":null,\"output\":null,\"norm\":null,\"query_norm\":null,\"key_norm\":null,\"gate\":null,\"layout\":null}"
#define NULL_OPTIONS                                                                                                   \
    "\"options\":{\"profile\":null,\"compute\":null,\"num_heads\":null,\"kv_num_heads\":null,\"scale\":null,"          \
    "\"softcap\":null,\"residual\":null,\"qk_norm\":{\"eps\":null},\"norm\":null,\"dropout\":null,\"training\":null,"  \
    "\"mechanism\":{\"type\":\"linear\",\"eps\":null,\"features\":null},\"return\":null,\"heads\":null,\"queries\":"   \
    "null,\"keys\":null,"                                                                                              \
    "\"format\":null,\"digits\":null,\"pool\":null,\"top_k\":null,\"dtype\":null,\"view\":null,\"alibi\":null,"        \
    "\"relative_bias\":null,\"cache\":null,\"sinks\":null,\"head_scale\":null,"                                        \
    "\"rope\":{\"theta\":null,\"positions\":null,\"cos\":null,\"scaling\":null}}"
#define NULL_MASKS                                                                                                     \
    "\"masks\":{\"causal\":{\"align\":null,\"offset\":null},\"attend\":null,\"bias\":null,\"padding\":null,"           \
    "\"key_lengths\":null,\"query_lengths\":null,\"window\":null,\"sliding_window\":null,\"documents\":null,"          \
    "\"blocks\":{\"pattern\":null,\"size\":1,\"attend\":[[1]]}}"
#define NULL_INPUTS "\"key\":null,\"value\":null,\"past_key\":null,\"past_value\":null"

static const char *const with_nulls[] = {
    "{\"inputs\":{\"query\":[[1]]," NULL_INPUTS "}," NULL_WEIGHTS "," NULL_OPTIONS "," NULL_MASKS
    ",\"tokens\":{\"query\":[\"a\"],\"key\":null}}",
    "{\"inputs\":{\"query\":{\"shape\":[1,1],\"data\":[1],\"base64\":null,\"dtype\":null}}," NULL_WEIGHTS
    ",\"options\":null,\"masks\":null,\"tokens\":null}",
};

START_TEST(null_means_not_given)
{
    accept_as(ENVELOPE_LAYER, with_nulls[_i]);
    const attn_request *request = &envelope.request;
    ck_assert_ptr_nonnull(request->inputs.query);
    ck_assert_ptr_null(request->inputs.key);
    ck_assert_ptr_null(request->weights.query.bias);
    ck_assert_ptr_null(request->masks.attend);
    ck_assert(!request->options.has_scale && request->options.norm == ATTN_NORM_NONE && !envelope.has_dropout);
}
END_TEST

START_TEST(null_does_not_bring_a_member_to_an_endpoint_that_lacks_it)
{
    accept("{\"inputs\":{\"query\":[[1]]},\"weights\":null,\"options\":{\"residual\":null}}");
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, "{\"inputs\":{\"query\":[[1]]},\"options\":{\"scales\":null}}"),
                     ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "/options/scales");
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, "{\"inputs\":{\"query\":null}}"), ATTN_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(err.message, "has no \"query\""));
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, "{\"inputs\":{\"query\":[[1,null]]}}"), ATTN_ERR_FIELD);
}
END_TEST

#define KEPT(options)                                                                                                  \
    "{\"weights\":{\"query\":{\"weight\":[[1,2]]},\"key\":{\"weight\":[[1,2]]},\"value\":{\"weight\":[[1,2]]}},"       \
    "\"options\":{" options "}}"

static void decode_over(const char *layer, const char *request)
{
    const struct envelope_source base = {.text = layer, .length = strlen(layer)};
    err = (attn_error){0};
    attn_status status =
        envelope_decode_over(&base, &(struct envelope_source){.text = request, .length = strlen(request)},
                             ENVELOPE_LAYER, arena, &envelope, &err);
    ck_assert_msg(status == ATTN_OK, "%s: %s", request, err.message);
}

START_TEST(null_leaves_to_a_kept_layer_what_it_has)
{
    decode_over(KEPT("\"scale\":2,\"softcap\":null"),
                "{\"inputs\":{\"query\":[[1]]},\"weights\":null,\"options\":{\"scale\":null},\"masks\":null}");
    ck_assert(envelope.request.options.has_scale && envelope.request.options.scale == 2);
}
END_TEST

START_TEST(null_is_not_kept)
{
    static const char text[] = KEPT("\"scale\":2,\"softcap\":null,\"rope\":{\"theta\":null}");
    struct chunks out = chunks_begin(arena);
    ck_assert_int_eq(kept_layer_write(text, strlen(text), arena, &out, &err), ATTN_OK);
    const char *file = chunks_join(&out);
    ck_assert_ptr_null(memmem(file, out.total_bytes, "null", 4));
    ck_assert_ptr_nonnull(memmem(file, out.total_bytes, "scale", 5));
}
END_TEST

/* ---- integers ---- */

#define ASK(more) "{\"inputs\":{\"query\":{\"shape\":[2.0,2e0],\"data\":[1,2,3,4]}}," more "}"

START_TEST(integers_may_be_written_as_reals)
{
    accept(ASK("\"options\":{\"num_heads\":2.0,\"digits\":1e1,\"queries\":[0.0,1.0],\"keys\":[[0.0,1.0]],"
               "\"dropout\":{\"p\":0.5,\"seed\":9007199254740991.0}},\"masks\":{\"window\":[1.0,null],"
               "\"key_lengths\":[2.0],\"causal\":{\"offset\":-1.0},\"documents\":[1.0,20e-1]}"));
    const attn_request *request = &envelope.request;
    ck_assert_uint_eq(request->options.num_heads, 2);
    ck_assert_int_eq(envelope.digits, 10);
    ck_assert_uint_eq(request->options.dropout_seed, 9007199254740991);
    ck_assert(request->masks.has_window && request->masks.window_left == 1);
    ck_assert_int_eq(*(const int64_t *)request->masks.offset->data, -1);
    ck_assert_int_eq(((const int64_t *)request->masks.documents_query->data)[1], 2);
    ck_assert_uint_eq(request->options.queries.count, 2);
}
END_TEST

static const struct refusal no_integers[] = {
    {ASK("\"options\":{\"num_heads\":1.5}"), ATTN_ERR_VALUE, "/options/num_heads",
     "an integer from 1 to 4096, received 1.5"},
    {ASK("\"options\":{\"dropout\":{\"p\":0,\"seed\":9007199254740992.0}}"), ATTN_ERR_VALUE, "/options/dropout/seed",
     "an integer"}, /* that double stands for two integers */
    {ASK("\"masks\":{\"key_lengths\":[1.25]}"), ATTN_ERR_VALUE, "/masks/key_lengths/0", "an integer, received 1.25"},
    {ASK("\"masks\":{\"window\":[0.5,0]}"), ATTN_ERR_VALUE, "/masks/window/0", "an integer"},
    {ASK("\"masks\":{\"causal\":{\"offset\":1e30}}"), ATTN_ERR_VALUE, "/masks/causal/offset", "an integer"},
};

START_TEST(what_is_no_integer_is_refused)
{
    check_refusal(&no_integers[_i], decode_as(ENVELOPE_ATTENTION, no_integers[_i].text));
}
END_TEST

/* ---- the compute type ---- */

#define W            "{\"weight\":[[1,2],[3,4]],\"bias\":[1,2]}"
#define AFFINE       "{\"weight\":[1,2],\"bias\":[1,2]}"
#define QKV(members) "\"query\":" W ",\"key\":" W ",\"value\":" W "," members

#define Q "\"inputs\":{\"query\":[[1,2]]}"

/* Each request has a tensor that is read in the compute type. */
static const struct {
    envelope_kind kind;
    const char *sections, *options;
} tensors[] = {
    {ENVELOPE_ATTENTION, Q, "\"scale\":1"},
    {ENVELOPE_ATTENTION, "\"inputs\":{\"query\":[[1,2]],\"key\":[[1,2]],\"value\":[[1]]}", "\"scale\":1"},
    {ENVELOPE_ATTENTION, "\"inputs\":{\"query\":[[1,2]],\"past_key\":[[[[1,2]]]],\"past_value\":[[[[1,2]]]]}",
     "\"scale\":1"},
    {ENVELOPE_ATTENTION, Q ",\"masks\":{\"bias\":[[1]]}", "\"scale\":1"},
    {ENVELOPE_ATTENTION, Q ",\"masks\":{\"bias\":0.5}", "\"scale\":1"},
    {ENVELOPE_ATTENTION, Q, "\"rope\":{\"cos\":[[1]],\"sin\":[[0]]}"},
    {ENVELOPE_ATTENTION, Q,
     "\"rope\":{\"cos\":{\"query\":[[1]],\"key\":[[1]]},\"sin\":{\"query\":[[0]],\"key\":[[0]]}}"},
    {ENVELOPE_ATTENTION, Q,
     "\"rope\":{\"scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[1],\"long_factor\":[2],\"factor\":2,"
     "\"original_max_position_embeddings\":4}}"},
    {ENVELOPE_ATTENTION, Q, "\"alibi\":[0.5]"},
    {ENVELOPE_ATTENTION, Q, "\"relative_bias\":{\"table\":[[1],[2],[3],[4]]}"},
    {ENVELOPE_ATTENTION, Q, "\"sinks\":[0.5]"},
    {ENVELOPE_ATTENTION, Q, "\"head_scale\":[0.5]"},
    {ENVELOPE_ATTENTION, Q, "\"mechanism\":{\"type\":\"performer\",\"projection\":[[1,2]]},\"return\":[\"output\"]"},
    {ENVELOPE_LAYER, Q ",\"weights\":{" QKV("\"output\":" W ",\"gate\":" W) "}", "\"scale\":1"},
    {ENVELOPE_LAYER, Q ",\"weights\":{\"qkv\":{\"weight\":[[1,2,3],[4,5,6]],\"bias\":[1,2,3]}}", "\"scale\":1"},
    {ENVELOPE_LAYER, Q ",\"weights\":{" QKV("\"norm\":" AFFINE ",\"query_norm\":" AFFINE ",\"key_norm\":" AFFINE) "}",
     "\"norm\":{},\"qk_norm\":{\"type\":\"layer\"}"},
    {ENVELOPE_ATTENTION_GRADIENTS, "\"inputs\":{\"query\":[[1,2]],\"grad_output\":[[1,2]]}", "\"scale\":1"},
};

static void plan_in_float64(size_t i, const char *before, const char *after)
{
    char text[1024];
    attn_plan plan;
    snprintf(text, sizeof text, "{%s,\"options\":{%s%s%s}}", tensors[i].sections, before, tensors[i].options, after);
    accept_as(tensors[i].kind, text);
    attn_status status = attn_plan_make(&envelope.request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "%s: %s", text, err.message);
    ck_assert_int_eq(plan.compute, ATTN_F64);
    ck_assert(envelope.grad_output == NULL || envelope.grad_output->dtype == ATTN_F64);
}

START_TEST(every_tensor_is_read_in_float64_wherever_compute_stands)
{
    plan_in_float64((size_t)_i, "\"compute\":\"float64\",", "");
    plan_in_float64((size_t)_i, "", ",\"compute\":\"float64\"");
}
END_TEST

START_TEST(a_request_says_in_which_type_the_tensors_of_a_kept_layer_are_read)
{
    attn_plan plan;
    decode_over(KEPT("\"rope\":{\"cos\":[[1]],\"sin\":[[0]]},\"alibi\":[0.5],\"sinks\":[1]"),
                "{\"inputs\":{\"query\":[[1]]},\"options\":{\"compute\":\"float64\"}}");
    attn_status status = attn_plan_make(&envelope.request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    decode_over(KEPT("\"compute\":\"float64\",\"rope\":{\"cos\":[[1]],\"sin\":[[0]]}"),
                "{\"inputs\":{\"query\":[[1]]},\"options\":{\"compute\":\"float32\"}}");
    status = attn_plan_make(&envelope.request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
}
END_TEST

CHECK_MAIN("envelope_tolerance")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, null_means_not_given, 0, COUNT(with_nulls));
    tcase_add_test(tests, null_does_not_bring_a_member_to_an_endpoint_that_lacks_it);
    tcase_add_test(tests, null_leaves_to_a_kept_layer_what_it_has);
    tcase_add_test(tests, null_is_not_kept);
    tcase_add_test(tests, integers_may_be_written_as_reals);
    tcase_add_loop_test(tests, what_is_no_integer_is_refused, 0, COUNT(no_integers));
    tcase_add_loop_test(tests, every_tensor_is_read_in_float64_wherever_compute_stands, 0, COUNT(tensors));
    tcase_add_test(tests, a_request_says_in_which_type_the_tensors_of_a_kept_layer_are_read);
}

/*
 * test_envelope.c: tests of server/codec/request; test_envelope_refusals.c has what they refuse.
 */
#include "codec/request/envelope.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/gradient.h"
#include "codec/json/tree.h"
#include "envelope_stage.h"

static void assert_floats(const attn_tensor *tensor, const float *expected, size_t count)
{
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(tensor->dtype, ATTN_F32);
    ck_assert_uint_eq(attn_tensor_count(tensor), count);
    ck_assert_mem_eq(tensor->data, expected, count * sizeof *expected);
}

START_TEST(the_least_request_has_the_defaults)
{
    accept("{\"inputs\":{\"query\":[[1,2],[3,4]]}}");
    const attn_request *request = &envelope.request;
    ck_assert_int_eq(request->inputs.query->rank, 2);
    assert_floats(request->inputs.query, (float[]){1, 2, 3, 4}, 4);
    ck_assert(!request->inputs.key && !request->inputs.value && !request->is_layer);
    ck_assert_uint_eq(request->options.want, ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION));
    ck_assert_int_eq(request->options.compute, ATTN_F32);
    ck_assert(!request->options.has_scale && request->options.softcap == 0 && request->options.dropout == 0);
    ck_assert(request->options.norm == ATTN_NORM_NONE);
    ck_assert(!request->masks.causal && !request->masks.has_window && !request->masks.attend);
    ck_assert(envelope.form == TENSOR_FORM_NESTED && envelope.digits == 0 && !envelope.query_tokens.json);
}
END_TEST

START_TEST(a_profile_sets_what_the_request_does_not_say)
{
    const char *const weights = "\"weights\":{\"qkv\":{\"weight\":[[1],[2],[3]]}%s},\"options\":{%s}}";
    char text[512] = "{\"inputs\":{\"query\":[[1]]},";
    const size_t start = strlen(text);
    snprintf(text + start, sizeof text - start, weights, "",
             "\"norm\":{\"type\":\"rms\"},\"qk_norm\":{\"type\":\"layer\"},\"profile\":\"hf\"");
    accept_as(ENVELOPE_LAYER, text);
    const attn_request *request = &envelope.request;
    ck_assert_str_eq(envelope.profile->name, "hf");
    ck_assert_int_eq(request->weights.layout, ATTN_LAYOUT_OUT_IN);
    ck_assert_int_eq(request->masks.align, ATTN_ALIGN_BOTTOM_RIGHT);
    ck_assert(request->options.norm_eps == 1e-6 && request->options.qk_norm_eps == 1e-12);
    snprintf(text + start, sizeof text - start, weights, ",\"layout\":\"in_out\"",
             "\"norm\":{\"eps\":0.5},\"profile\":\"torch_mha\",\"compute\":\"float64\",\"qk_norm\":{}");
    accept_as(ENVELOPE_LAYER, text);
    ck_assert_int_eq(request->weights.layout, ATTN_LAYOUT_IN_OUT);
    ck_assert_int_eq(request->masks.align, ATTN_ALIGN_TOP_LEFT);
    ck_assert(request->options.norm_eps == 0.5 && request->options.qk_norm_eps == DBL_EPSILON);
}
END_TEST

START_TEST(a_layer_has_weights)
{
    accept_as(ENVELOPE_LAYER,
              "{\"inputs\":{\"query\":[[1]],\"key\":[[2]],\"value\":[[3]]},\"weights\":{\"query\":{\"weight\":[[4]],"
              "\"bias\":[5]},\"key\":{\"weight\":[[6]]},\"value\":{\"weight\":[[7]]},\"output\":{\"weight\":[[8]],"
              "\"bias\":[9]},\"norm\":{\"weight\":[10],\"bias\":[11]},\"layout\":\"out_in\"},\"options\":{"
              "\"residual\":true,\"norm\":{\"type\":\"rms\",\"position\":\"pre\",\"eps\":1e-3}}}");
    const attn_weights *weights = &envelope.request.weights;
    ck_assert(envelope.request.is_layer);
    assert_floats(envelope.request.inputs.value, (float[]){3}, 1);
    assert_floats(weights->query.weight, (float[]){4}, 1);
    assert_floats(weights->query.bias, (float[]){5}, 1);
    assert_floats(weights->output.bias, (float[]){9}, 1);
    assert_floats(weights->norm.weight, (float[]){10}, 1);
    assert_floats(weights->norm.bias, (float[]){11}, 1);
    ck_assert(weights->layout == ATTN_LAYOUT_OUT_IN && !weights->key.bias && !weights->qkv.weight);
    const attn_options *options = &envelope.request.options;
    ck_assert(options->residual && options->norm == ATTN_NORM_RMS && options->norm_position == ATTN_NORM_PRE);
    ck_assert(options->norm_eps == 1e-3);
}
END_TEST

START_TEST(fused_weights_have_an_order)
{
    accept_as(ENVELOPE_LAYER, "{\"inputs\":{\"query\":[[1]]},\"weights\":{\"qkv\":{\"weight\":[[1,2,3]],"
                              "\"bias\":[4,5,6],\"order\":\"per_group\"}},\"options\":{\"norm\":{}}}");
    assert_floats(envelope.request.weights.qkv.bias, (float[]){4, 5, 6}, 3);
    ck_assert_int_eq(envelope.request.weights.qkv_order, ATTN_QKV_PER_GROUP);
    ck_assert_int_eq(envelope.request.options.norm, ATTN_NORM_LAYER);
}
END_TEST

START_TEST(masks_are_decoded)
{
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"causal\":{\"align\":\"top_left\",\"offset\":[1,-2]},"
           "\"attend\":[[true,0]],\"bias\":[[0.5,\"-Infinity\"]],\"padding\":[[1,1]],\"key_lengths\":[2],"
           "\"query_lengths\":[1],\"window\":[null,3]}}");
    const attn_masks *masks = &envelope.request.masks;
    ck_assert(masks->causal && masks->align_given && masks->align == ATTN_ALIGN_TOP_LEFT);
    ck_assert_int_eq(((const int64_t *)masks->offset->data)[1], -2);
    ck_assert_int_eq(masks->attend->dtype, ATTN_BOOL);
    ck_assert_mem_eq(masks->attend->data, "\1\0", 2);
    ck_assert(isinf(((const float *)masks->bias->data)[1]));
    ck_assert_mem_eq(masks->padding->data, "\1\1", 2);
    ck_assert_int_eq(((const int64_t *)masks->key_lengths->data)[0], 2);
    ck_assert_int_eq(((const int64_t *)masks->query_lengths->data)[0], 1);
    ck_assert(masks->has_window && masks->window_left == ATTN_WINDOW_OPEN && masks->window_right == 3);
}
END_TEST

#define Q             "\"inputs\":{\"query\":[[1]]}"
#define A             ENVELOPE_ATTENTION
#define L             ENVELOPE_LAYER
#define OPTIONS(text) "{" Q ",\"options\":{" text "}}"
#define MASKS(text)   "{" Q ",\"masks\":{" text "}}"

START_TEST(documents_are_decoded)
{
    const attn_masks *masks = &envelope.request.masks;
    accept("{\"inputs\":{\"query\":[[1],[2]]},\"masks\":{\"documents\":[7,-8]}}");
    ck_assert_ptr_eq(masks->documents_query, masks->documents_key);
    ck_assert_mem_eq(masks->documents_key->data, ((int64_t[]){7, -8}), 2 * sizeof(int64_t));
    accept("{\"inputs\":{\"query\":[[1],[2]]},\"masks\":{\"documents\":{\"shape\":[1,2],\"data\":[3,4]}}}");
    ck_assert_int_eq(masks->documents_query->rank, 2);
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"documents\":{\"query\":[5],\"key\":{\"shape\":[1],"
           "\"dtype\":\"uint8\",\"base64\":\"Bg==\"}}}}");
    ck_assert_int_eq(*(const int64_t *)masks->documents_query->data, 5);
    ck_assert_int_eq(*(const int64_t *)masks->documents_key->data, 6);
}
END_TEST

START_TEST(blocks_are_decoded_with_the_defaults_of_their_pattern)
{
    const attn_blocks *blocks = &envelope.request.masks.blocks;
    accept(MASKS("\"blocks\":{\"size\":[2,3],\"attend\":[[true,false]]}"));
    ck_assert(blocks->kind == ATTN_BLOCKS_MATRIX && blocks->size == 2 && blocks->kv_size == 3);
    ck_assert_mem_eq(blocks->attend->data, "\1\0", 2);
    accept(MASKS("\"blocks\":{\"attend\":[[1]],\"size\":64}"));
    ck_assert(blocks->size == 64 && blocks->kv_size == 64);
    accept(MASKS("\"blocks\":{\"pattern\":\"strided\",\"stride\":4}"));
    ck_assert(blocks->kind == ATTN_BLOCKS_STRIDED && blocks->size == 1 && blocks->window == 3 && blocks->stride == 4);
    accept(MASKS("\"blocks\":{\"pattern\":\"strided\",\"stride\":4,\"window\":0}"));
    ck_assert_uint_eq(blocks->window, 0);
    accept(MASKS("\"blocks\":{\"pattern\":\"longformer\",\"window\":2,\"global_tokens\":[0,5]}"));
    ck_assert(blocks->kind == ATTN_BLOCKS_LONGFORMER && blocks->size == 1 && blocks->window == 2);
    ck_assert_mem_eq(blocks->global_tokens->data, ((int64_t[]){0, 5}), 2 * sizeof(int64_t));
    accept(MASKS("\"blocks\":{\"pattern\":\"bigbird\"}"));
    ck_assert(blocks->kind == ATTN_BLOCKS_BIGBIRD && blocks->size == 64 && blocks->window == 1 && blocks->seed == 0 &&
              blocks->global_blocks == 1 && blocks->random_blocks == 3 && !blocks->global_tokens);
    accept(MASKS("\"blocks\":{\"pattern\":\"chunked\",\"size\":8}"));
    ck_assert(blocks->kind == ATTN_BLOCKS_CHUNKED && blocks->size == 8);
    accept(MASKS("\"blocks\":{\"pattern\":\"prefix\",\"length\":1}"));
    ck_assert(blocks->kind == ATTN_BLOCKS_PREFIX && blocks->prefix->rank == 0);
}
END_TEST

START_TEST(biases_sinks_and_factors_are_decoded)
{
    const attn_options *options = &envelope.request.options;
    accept(OPTIONS("\"alibi\":true,\"sinks\":[0.5]"));
    ck_assert(options->alibi && !options->alibi_slopes);
    assert_floats(options->sinks, (float[]){0.5f}, 1);
    accept(OPTIONS("\"head_scale\":[0]"));
    assert_floats(options->head_scale, (float[]){0}, 1);
    accept(OPTIONS("\"alibi\":[0.25]"));
    ck_assert(!options->alibi);
    assert_floats(options->alibi_slopes, (float[]){0.25f}, 1);
    accept(OPTIONS("\"relative_bias\":{\"table\":[[1],[2]]}"));
    ck_assert(options->relative_bias.bidirectional && options->relative_bias.max_distance == 128);
    assert_floats(options->relative_bias.table, (float[]){1, 2}, 2);
    accept(OPTIONS("\"relative_bias\":{\"table\":[[1]],\"bidirectional\":false,\"max_distance\":20}"));
    ck_assert(!options->relative_bias.bidirectional && options->relative_bias.max_distance == 20);
}
END_TEST

START_TEST(single_values_broadcast_and_causal_is_a_word_too)
{
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"causal\":true,\"attend\":true,\"bias\":-1.5}}");
    const attn_masks *masks = &envelope.request.masks;
    ck_assert(masks->causal && !masks->align_given);
    ck_assert(masks->attend->rank == 0 && *(const uint8_t *)masks->attend->data == 1);
    ck_assert(masks->bias->rank == 0 && *(const float *)masks->bias->data == -1.5f);
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"causal\":{\"offset\":3}}}");
    ck_assert(masks->causal && !masks->align_given && masks->offset->rank == 0);
    ck_assert_int_eq(*(const int64_t *)masks->offset->data, 3);
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"causal\":false}}");
    ck_assert(!masks->causal);
}
END_TEST

START_TEST(of_two_windows_the_smaller_reach_wins)
{
    const attn_masks *masks = &envelope.request.masks;
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"sliding_window\":4}}");
    ck_assert(masks->has_window && masks->window_left == 3 && masks->window_right == 0);
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"sliding_window\":4,\"window\":[1,5]}}");
    ck_assert(masks->window_left == 1 && masks->window_right == 0);
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"window\":[null,null],\"sliding_window\":1}}");
    ck_assert(masks->window_left == 0 && masks->window_right == 0);
}
END_TEST

START_TEST(options_are_decoded)
{
    accept("{\"inputs\":{\"query\":[[1]]},\"options\":{\"num_heads\":4,\"kv_num_heads\":2,\"scale\":-0.5,"
           "\"softcap\":30,\"compute\":\"float64\",\"mechanism\":\"softmax\",\"return\":[\"q\",\"mask\",\"q\"],"
           "\"format\":\"base64\",\"digits\":6,\"training\":true,\"dropout\":{\"p\":0.25,"
           "\"seed\":9223372036854775807,\"where\":[\"residual\"]}}}");
    const attn_options *options = &envelope.request.options;
    ck_assert(options->num_heads == 4 && options->kv_num_heads == 2);
    ck_assert(options->has_scale && options->scale == -0.5 && options->softcap == 30);
    ck_assert_int_eq(envelope.request.inputs.query->dtype, ATTN_F64);
    ck_assert_uint_eq(options->want, ATTN_STEP_BIT(ATTN_STEP_Q) | ATTN_STEP_BIT(ATTN_STEP_MASK));
    ck_assert(envelope.form == TENSOR_FORM_BASE64 && envelope.digits == 6);
    ck_assert(options->dropout == 0.25 && !options->dropout_attention && options->dropout_residual);
    ck_assert(options->dropout_seed == INT64_MAX && envelope.has_dropout && envelope.training);
}
END_TEST

START_TEST(scale_none_is_one_and_zero_is_zero)
{
    accept("{\"inputs\":{\"query\":[[1]]},\"options\":{\"scale\":\"none\"}}");
    ck_assert(envelope.request.options.has_scale && envelope.request.options.scale == 1);
    accept("{\"inputs\":{\"query\":[[1]]},\"options\":{\"scale\":0}}");
    ck_assert(envelope.request.options.has_scale && envelope.request.options.scale == 0);
}
END_TEST

START_TEST(dropout_without_training_is_kept_but_inactive)
{
    accept("{\"inputs\":{\"query\":[[1]]},\"options\":{\"dropout\":{\"p\":0.5}}}");
    ck_assert(envelope.has_dropout && envelope.dropout_p == 0.5 && envelope.request.options.dropout == 0);
    ck_assert(envelope.request.options.dropout_attention && !envelope.request.options.dropout_residual);
}
END_TEST

START_TEST(a_list_selects_indices_and_ranges_have_both_ends)
{
    static const struct {
        const char *list;
        size_t count, items[5];
    } cases[] = {
        {"[1,3]", 2, {1, 3}},
        {"\"1-3\"", 3, {1, 2, 3}},
        {"{\"from\":1,\"to\":3}", 3, {1, 2, 3}},
        {"[[1,3]]", 3, {1, 2, 3}},
        {"[0,\"4-6\"]", 4, {0, 4, 5, 6}},
        {"[{\"from\":4,\"to\":5},1.0]", 3, {4, 5, 1}},
        {"[3,1]", 2, {3, 1}},
        {"[2,2]", 2, {2, 2}},
        {"[5]", 1, {5}},
        {"[0,4,2]", 3, {0, 4, 2}},
        {"[[0,0],[5,5]]", 2, {0, 5}},
        {"[[1,2],7]", 3, {1, 2, 7}},
        {"[0,[2,3]]", 3, {0, 2, 3}},
        {"[\"4-5\",[1,2],0]", 5, {4, 5, 1, 2, 0}}, /* a list whose first element is no number is lifted in parts */
        {"[{\"from\":4,\"to\":5},[1,2]]", 4, {4, 5, 1, 2}},
        {"[9223372036854775807]", 1, {INT64_MAX}},
        {"[[9223372036854775806,9223372036854775807]]", 2, {INT64_MAX - 1, INT64_MAX}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"inputs\":{\"query\":[[1]]},\"options\":{\"keys\":%s}}", cases[i].list);
        accept(text);
        const attn_selection *keys = &envelope.request.options.keys;
        ck_assert_uint_eq(keys->count, cases[i].count);
        for (size_t n = 0; n < keys->count; n++)
            ck_assert_uint_eq(attn_selected(keys, n), cases[i].items[n]);
    }
}
END_TEST

START_TEST(indices_from_the_end_are_settled_when_the_length_is_known)
{
    static const struct {
        const char *list;
        size_t count, items[5];
        const char *refused;
    } cases[] = {
        {"[-1]", 1, {4}, NULL},
        {"[0,-1]", 2, {0, 4}, NULL},
        {"{\"from\":-3,\"to\":-1}", 3, {2, 3, 4}, NULL},
        {"[{\"from\":1,\"to\":-2},-5]", 4, {1, 2, 3, 0}, NULL},
        {"[[-2,-1]]", 2, {3, 4}, NULL},
        {"[\"0-1\",[-2,-1]]", 4, {0, 1, 3, 4}, NULL},
        {"[-6]", 0, {0}, "options.keys has -6; they are numbered 0 to 4, and from the end -1 to -5"},
        {"[5,-1]", 0, {0}, "options.keys has 5; they are numbered 0 to 4"},
        {"{\"from\":3,\"to\":-3}", 0, {0}, "which is 3 to 2 of 5: it ends before it begins"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        attn_error error = {.message = ""};
        snprintf(text, sizeof text, "{\"inputs\":{\"query\":[[1]]},\"options\":{\"keys\":%s}}", cases[i].list);
        accept(text);
        attn_options *options = &envelope.request.options;
        ck_assert(index_lists_count_from_end(&envelope.lists) && attn_selects_all(&options->keys));
        const attn_status status = index_lists_settle(&envelope.lists, 1, 1, 5, arena, options, &error);
        if (cases[i].refused != NULL) {
            ck_assert_int_eq(status, ATTN_ERR_VALUE);
            ck_assert_str_eq(error.field, "/options/keys");
            ck_assert_msg(strstr(error.message, cases[i].refused) != NULL, "%s", error.message);
            continue;
        }
        ck_assert_int_eq(status, ATTN_OK);
        ck_assert_uint_eq(options->keys.count, cases[i].count);
        for (size_t n = 0; n < cases[i].count; n++)
            ck_assert_uint_eq(attn_selected(&options->keys, n), cases[i].items[n]);
    }
}
END_TEST

START_TEST(a_list_that_was_a_range_gets_a_hint)
{
    static const struct {
        const char *list, *hint;
    } cases[] = {
        {"[0,5]", "[0, 5] is keys 0 and 5; older servers read the range 0-5: for that, write \"0-5\""},
        {"[0,2.0]", "[0, 2] is keys 0 and 2; older servers read the range 0-2: for that, write \"0-2\""},
        {"[0,1]", NULL},
        {"[2,0]", NULL},
        {"[0,-1]", NULL},
        {"[0,2,4]", NULL},
        {"[[0,5]]", NULL},
        {"\"0-5\"", NULL},
        {"[0,\"5-5\"]", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128], message[INDEX_HINT_MAX];
        snprintf(text, sizeof text, "{\"inputs\":{\"query\":[[1]]},\"options\":{\"keys\":%s}}", cases[i].list);
        accept(text);
        ck_assert_int_eq(index_list_hint(&envelope.lists.keys, "keys", message), cases[i].hint != NULL);
        if (cases[i].hint != NULL)
            ck_assert_str_eq(message, cases[i].hint);
    }
}
END_TEST

START_TEST(a_range_takes_no_memory)
{
    accept("{\"inputs\":{\"query\":[[1]]},\"options\":{\"heads\":\"0-1048575\",\"queries\":[[0,1048575]],\"keys\":[[5,"
           "1048575]]}}");
    ck_assert_uint_eq(envelope.request.options.queries.count, 1048576);
    ck_assert_uint_eq(attn_selected(&envelope.request.options.keys, 7), 12);
    ck_assert_uint_lt(attn_arena_peak_bytes(arena), 128 << 10);
}
END_TEST

/* A label of length bytes, plain or of letters that take two, in a list of as many as the queries. */
static char *labelled(size_t labels, size_t length, const char *letter)
{
    char *text = malloc(labels * (length + 16) + 256), *at = text;
    at += sprintf(at, "{\"inputs\":{\"query\":{\"shape\":[%zu,1],\"data\":[0", labels);
    for (size_t i = 1; i < labels; i++)
        at += sprintf(at, ",0");
    at += sprintf(at, "]}},\"tokens\":{\"query\":[");
    for (size_t i = 0; i < labels; i++) {
        at += sprintf(at, i > 0 ? ",\"" : "\"");
        for (size_t n = 0; n < length; n += strlen(letter))
            at += sprintf(at, "%s", letter);
        at += sprintf(at, "\"");
    }
    strcpy(at, "]}}");
    return text;
}

START_TEST(labels_have_a_length_each_and_together)
{
    static const struct {
        size_t labels, length;
        const char *letter, *pointer, *part;
    } cases[] = {
        {2, 1024, "a", NULL, NULL},
        {2, 1024, "\xC3\xA7", NULL, NULL},
        {1024, 1024, "a", NULL, NULL},
        {2, 1025, "a", "/tokens/query/0", "has 1025 bytes; a label has at most 1024"},
        {2, 1026, "\xC3\xA7", "/tokens/query/0", "has 1026 bytes; a label has at most 1024"},
        {1, 6000000, "a", "/tokens/query/0", "has 6000000 bytes; a label has at most 1024"},
        {1025, 1024, "a", "/tokens/query/1024", "at most 1048576 bytes together"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = labelled(cases[i].labels, cases[i].length, cases[i].letter);
        err = (attn_error){.status = ATTN_OK};
        attn_arena *room = attn_arena_create(64 << 20);
        attn_status status = envelope_decode(text, strlen(text), ENVELOPE_ATTENTION, room, &envelope, &err);
        ck_assert_msg(status == (cases[i].part ? ATTN_ERR_TOO_LARGE : ATTN_OK), "case %zu: %s", i, err.message);
        ck_assert_str_eq(err.field, cases[i].pointer ? cases[i].pointer : "");
        ck_assert_msg(!cases[i].part || strstr(err.message, cases[i].part), "%s", err.message);
        attn_arena_destroy(room);
        free(text);
    }
}
END_TEST

START_TEST(a_tensor_may_be_flat_or_base64)
{
    static const char *const tensors[] = {
        "{\"shape\":[1,2],\"data\":[1,2]}",
        "{\"shape\":[1,2],\"dtype\":\"float32\",\"base64\":\"AACAPwAAAEA=\"}",
        "{\"shape\":[1,2],\"dtype\":\"float64\",\"base64\":\"AAAAAAAA8D8AAAAAAAAAQA==\"}",
        "{\"shape\":[1,2],\"dtype\":\"float16\",\"base64\":\"ADwAQA==\"}",
        "{\"shape\":[1,2],\"dtype\":\"bfloat16\",\"base64\":\"gD8AQA==\"}",
        "{\"shape\":[1,2],\"dtype\":\"int64\",\"base64\":\"AQAAAAAAAAACAAAAAAAAAA==\"}",
        "{\"shape\":[1,2],\"dtype\":\"int32\",\"base64\":\"AQAAAAIAAAA=\"}",
        "{\"shape\":[1,2],\"dtype\":\"uint8\",\"base64\":\"AQI=\"}",
    };
    for (size_t i = 0; i < COUNT(tensors); i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"inputs\":{\"query\":%s}}", tensors[i]);
        accept(text);
        ck_assert_int_eq(envelope.request.inputs.query->rank, 2);
        const attn_tensor *query = envelope.request.inputs.query;
        float numbers[2];
        ck_assert_int_eq(attn_convert(numbers, ATTN_F32, query->data, query->dtype, 2, NULL), ATTN_OK);
        ck_assert(numbers[0] == 1 && numbers[1] == 2);
    }
}
END_TEST

START_TEST(base64_of_any_length_is_lifted_or_not)
{
    for (size_t count = 1; count < 700; count += 3) {
        size_t length = count * 4 / 3 * 4;
        char *text = malloc(length + 200);
        int used =
            sprintf(text, "{\"inputs\":{\"query\":{\"shape\":[1,%zu],\"dtype\":\"uint8\",\"base64\":\"", count * 3);
        for (size_t i = 0; i < count; i++)
            used += sprintf(text + used, "AQEB");
        sprintf(text + used, "\"}}}");
        accept(text);
        ck_assert_uint_eq(envelope.request.inputs.query->shape[1], count * 3);
        ck_assert(((const float *)envelope.request.inputs.query->data)[count * 3 - 1] == 1);
        free(text);
    }
}
END_TEST

START_TEST(shapes_may_hold_zeros_or_nothing)
{
    accept("{\"inputs\":{\"query\":{\"shape\":[0,3],\"data\":[]}}}");
    ck_assert(envelope.request.inputs.query->shape[0] == 0 && envelope.request.inputs.query->shape[1] == 3);
    accept("{\"inputs\":{\"query\":{\"shape\":[2,0],\"dtype\":\"float32\",\"base64\":\"\"}}}");
    ck_assert(envelope.request.inputs.query->shape[1] == 0);
    accept("{\"inputs\":{\"query\":[[1]]},\"masks\":{\"bias\":{\"shape\":[],\"data\":[2]}}}");
    ck_assert_int_eq(envelope.request.masks.bias->rank, 0);
    accept(
        "{\"inputs\":{\"query\":[[1]]},\"masks\":{\"attend\":{\"shape\":[2],\"dtype\":\"bool\",\"base64\":\"AQA=\"}}}");
    ck_assert_mem_eq(envelope.request.masks.attend->data, "\1\0", 2);
}
END_TEST

START_TEST(tokens_are_echoed_and_those_of_query_serve_for_key)
{
    accept("{\"inputs\":{\"query\":[[1],[2]]},\"tokens\":{\"query\":[\"NaN\", \"\\u00e9\\u0000\\\"\"]}}");
    ck_assert_str_eq(envelope.query_tokens.json, "[\"NaN\",\"\xc3\xa9\\u0000\\\"\"]");
    ck_assert_str_eq(envelope.key_tokens.json, envelope.query_tokens.json);
    ck_assert(envelope.query_tokens.batch == 0 && envelope.query_tokens.count == 2);
    accept("{\"inputs\":{\"query\":[[1],[2]],\"key\":[[1]]},\"tokens\":{\"query\":[\"a\",\"b\"]}}");
    ck_assert_ptr_null(envelope.key_tokens.json);
    accept("{\"inputs\":{\"query\":[[1],[2]],\"key\":[[1]]},\"tokens\":{\"key\":[\"Infinity\"]}}");
    ck_assert_ptr_null(envelope.query_tokens.json);
    ck_assert_str_eq(envelope.key_tokens.json, "[\"Infinity\"]");
    accept("{\"inputs\":{\"query\":[[[1],[2]],[[1],[2]]]},\"tokens\":{\"query\":[[\"a\",\"b\"],[\"NaN\",\"d\"]]}}");
    ck_assert_str_eq(envelope.query_tokens.json, "[[\"a\",\"b\"],[\"NaN\",\"d\"]]");
    ck_assert(envelope.query_tokens.batch == 2 && envelope.query_tokens.count == 2);
}
END_TEST

/* ---- gradients ---- */

START_TEST(gradients_are_named_by_their_paths)
{
    accept_as(ENVELOPE_ATTENTION_GRADIENTS, "{\"inputs\":{\"query\":[[1]],\"grad_output\":[[2]]},"
                                            "\"options\":{\"return\":[\"query\",\"masks.bias\",\"output\"]}}");
    assert_floats(envelope.grad_output, (const float[]){2}, 1);
    ck_assert_uint_eq(envelope.of, UINT64_C(1) << ATTN_GRADIENT_QUERY | UINT64_C(1) << ATTN_GRADIENT_MASK_BIAS);
    ck_assert_uint_eq(envelope.request.options.want, ATTN_STEP_BIT(ATTN_STEP_OUTPUT));
    ck_assert(!envelope.request.is_layer);
}
END_TEST

START_TEST(without_return_all_gradients_and_no_step_are_wanted)
{
    accept_as(ENVELOPE_LAYER_GRADIENTS, "{\"inputs\":{\"query\":[[1]],\"grad_output\":[[2]]}}");
    ck_assert_uint_eq(envelope.of, 0);
    ck_assert_uint_eq(envelope.request.options.want, 0);
    ck_assert(envelope.request.is_layer);
}
END_TEST

START_TEST(gradients_without_what_they_start_from_are_refused)
{
    const char *const inputs = "{\"inputs\":{\"query\":[[1]]}}";
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION_GRADIENTS, inputs), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "/inputs");
    ck_assert_ptr_nonnull(strstr(err.message, "grad_output"));
    const char *const path = "{\"inputs\":{\"query\":[[1]],\"grad_output\":[[2]]},\"options\":{\"return\":[\"grad\"]}}";
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION_GRADIENTS, path), ATTN_ERR_VALUE);
    ck_assert_str_eq(err.field, "/options/return/0");
    const char *const cut =
        "{\"inputs\":{\"query\":[[1]],\"grad_output\":[[2]]},\"options\":{\"return\":[\"query\\u0000\"]}}";
    ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION_GRADIENTS, cut), ATTN_ERR_VALUE);
    ck_assert_str_eq(err.field, "/options/return/0");
}
END_TEST

CHECK_MAIN("envelope")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, the_least_request_has_the_defaults);
    tcase_add_test(tests, a_profile_sets_what_the_request_does_not_say);
    tcase_add_test(tests, a_layer_has_weights);
    tcase_add_test(tests, fused_weights_have_an_order);
    tcase_add_test(tests, masks_are_decoded);
    tcase_add_test(tests, documents_are_decoded);
    tcase_add_test(tests, blocks_are_decoded_with_the_defaults_of_their_pattern);
    tcase_add_test(tests, biases_sinks_and_factors_are_decoded);
    tcase_add_test(tests, single_values_broadcast_and_causal_is_a_word_too);
    tcase_add_test(tests, of_two_windows_the_smaller_reach_wins);
    tcase_add_test(tests, options_are_decoded);
    tcase_add_test(tests, scale_none_is_one_and_zero_is_zero);
    tcase_add_test(tests, dropout_without_training_is_kept_but_inactive);
    tcase_add_test(tests, a_list_selects_indices_and_ranges_have_both_ends);
    tcase_add_test(tests, indices_from_the_end_are_settled_when_the_length_is_known);
    tcase_add_test(tests, a_list_that_was_a_range_gets_a_hint);
    tcase_add_test(tests, a_range_takes_no_memory);
    tcase_add_test(tests, labels_have_a_length_each_and_together);
    tcase_add_test(tests, a_tensor_may_be_flat_or_base64);
    tcase_add_test(tests, base64_of_any_length_is_lifted_or_not);
    tcase_add_test(tests, shapes_may_hold_zeros_or_nothing);
    tcase_add_test(tests, tokens_are_echoed_and_those_of_query_serve_for_key);
    tcase_add_test(tests, gradients_are_named_by_their_paths);
    tcase_add_test(tests, without_return_all_gradients_and_no_step_are_wanted);
    tcase_add_test(tests, gradients_without_what_they_start_from_are_refused);
}

/*
 * test_checkpoint_model.c: tests of server/codec/checkpoint/description.h: the descriptions of three models that
 * have the files of published ones (tests/others/models). tests/api/ops has every kind.
 */
#include "codec/checkpoint/description.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "codec/checkpoint/language/expression.h"
#include "codec/request/envelope.h"
#include "service/registry/model/files.h"

static struct model_files files;
static struct checkpoint_model model;
static attn_error err;

static void describe(const char *folder)
{
    err = (attn_error){.status = ATTN_OK};
    ck_assert_msg(model_files_open(&files, NULL, folder, &err) == ATTN_OK, "%s", err.message);
    ck_assert_msg(checkpoint_read_model(&files.checkpoint, files.arena, &model, &err) == ATTN_OK, "%s", err.message);
}

static void leave(void)
{
    model_files_close(&files);
}

static bool has_attachment(const struct envelope_source *source, const char *path)
{
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->attachments[i].path, path) == 0)
            return true;
    return false;
}

START_TEST(an_encoder_has_types_blocks_behind_norms_and_a_tied_head)
{
    describe("tests/others/models/bert");
    const struct model_stack *stack = &model.stacks[0];
    ck_assert_uint_eq(model.stack_count, 1);
    ck_assert_uint_eq(stack->layers, 3);
    ck_assert_uint_eq(stack->block_count, 3);
    ck_assert(!stack->is_causal && stack->norm.type == ATTN_NORM_NONE);
    ck_assert_uint_eq(stack->embedding.types.shape[0], 2);
    ck_assert_int_eq(stack->embedding.norm.type, ATTN_NORM_LAYER);
    ck_assert_str_eq(stack->blocks[2].path, "bert.encoder.layer.2.attention");
    ck_assert_uint_eq(stack->blocks[2].slot, 2);
    ck_assert(has_attachment(&stack->blocks[0].source, "weights.feed_forward.norm.weight"));
    ck_assert(model.has_head && model.head.words == 420 && model.head.reads == MODEL_READS_ALL);
    ck_assert_uint_eq(model.head.numbers.activation, ATTN_ACTIVATION_GELU);
    ck_assert_ptr_eq(model.head.source.attachments[4].tensor.data, stack->embedding.words.data);
    ck_assert_uint_eq(model.longest, 64);
    ck_assert_int_eq(model.pad_id, 0);
    ck_assert_int_eq(model.decoder_start_id, -1);
    ck_assert_uint_eq(model.copied_bytes, 0);
    leave();
}
END_TEST

START_TEST(a_decoder_is_causal_and_has_a_norm_behind_its_layers)
{
    describe("tests/others/models/gpt2");
    const struct model_stack *stack = &model.stacks[0];
    ck_assert(stack->is_causal && stack->norm.type == ATTN_NORM_LAYER);
    ck_assert_str_eq(stack->blocks[1].path, "h.1.attn");
    ck_assert_uint_eq(stack->blocks[1].facts.dims.heads, 4);
    ck_assert(has_attachment(&stack->blocks[1].source, "weights.qkv.weight"));
    ck_assert(model.has_head && model.head.numbers.activation == ATTN_ACTIVATION_NONE &&
              !model.head.numbers.dense_is_tanh && model.head.numbers.norm.type == ATTN_NORM_NONE);
    ck_assert_uint_eq(model.longest, 40);
    leave();
}
END_TEST

START_TEST(a_decoder_layer_with_an_encoder_is_two_blocks)
{
    describe("tests/others/models/t5");
    const struct model_stack *decoder = &model.stacks[1];
    ck_assert_uint_eq(model.stack_count, 2);
    ck_assert_uint_eq(model.stacks[0].block_count, 2);
    ck_assert_uint_eq(decoder->layers, 3);
    ck_assert_uint_eq(decoder->block_count, 6);
    ck_assert(!decoder->blocks[2].is_cross && decoder->blocks[3].is_cross && decoder->blocks[3].layer == 1);
    ck_assert(!has_attachment(&decoder->blocks[2].source, "weights.feed_forward.up.weight"));
    ck_assert(has_attachment(&decoder->blocks[3].source, "weights.feed_forward.up.weight"));
    ck_assert(has_attachment(&decoder->blocks[2].source, "options.relative_bias.table"));
    ck_assert_double_eq_tol(model.head.numbers.scale, 1 / sqrt(32), 1e-15);
    ck_assert_uint_eq(model.longest, 0);
    ck_assert_int_eq(model.decoder_start_id, 0);
    ck_assert_uint_eq(model.slots, 8);
    leave();
}
END_TEST

#define LONG "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"

static const struct {
    const char *folder, *config, *message;
} refusals[] = {
    {"bert", "{\"model_type\":\"bert\",\"num_hidden_layers\":1,\"hidden_act\":\"mish\"}",
     "config.json: hidden_act is \"mish\"; attnd has relu, gelu, gelu_python,"},
    {"bert", "{\"model_type\":\"bert\",\"num_hidden_layers\":1,\"hidden_act\":\"gelu\\u0000\"}",
     "config.json: hidden_act is \"gelu\\u0000\"; attnd has relu"},
    {"bert", "{\"model_type\":\"bert\",\"num_hidden_layers\":1,\"hidden_act\":\"" LONG LONG LONG "\"}",
     "config.json: hidden_act is a value of 122 bytes; attnd has relu"},
    {"bert", "{\"model_type\":\"bert\",\"position_embedding_type\":\"" LONG LONG LONG "\"}",
     "config.json: position_embedding_type is a value of 122 bytes; attnd runs"},
    {"gpt2", "{\"model_type\":\"gpt2\",\"n_layer\":2.5}",
     "config.json: n_layer is 2.5; expected a whole number from 0 to "},
    {"gpt2", "{\"model_type\":\"gpt2\",\"num_hidden_layers\":-1}",
     "config.json: num_hidden_layers is -1; expected a whole number from 0 to "},
};

START_TEST(the_member_of_the_configuration_that_is_wrong_is_named)
{
    char folder[64];
    err = (attn_error){.status = ATTN_OK};
    snprintf(folder, sizeof folder, "tests/others/models/%s", refusals[_i].folder);
    ck_assert_msg(model_files_open(&files, NULL, folder, &err) == ATTN_OK, "%s", err.message);
    files.checkpoint.config = text_span_of(refusals[_i].config);
    ck_assert_int_eq(checkpoint_read_model(&files.checkpoint, files.arena, &model, &err), ATTN_ERR_VALUE);
    ck_assert_msg(strncmp(err.message, refusals[_i].message, strlen(refusals[_i].message)) == 0, "%s", err.message);
    leave();
}
END_TEST

static const struct {
    const char *config, *expression, *name;
    bool is_there;
} members[] = {
    {"{\"b\":1}", "a|b|'gelu'", "b", true},
    {"{\"a\":null}", "a|b|2", "a", false},
    {"{\"c\":2}", "sqrt(c)|1", "c", true},
    {"{}", "rsqrt(c)", "c", false},
    {"{}", "", "", false},
};

START_TEST(an_expression_tells_the_member_that_gives_its_value)
{
    char name[32];
    json_error_t error;
    json_t *config = json_loads(members[_i].config, 0, &error);
    const json_t *member = expression_member(config, members[_i].expression, name, sizeof name);
    ck_assert_str_eq(name, members[_i].name);
    ck_assert((member != NULL) == members[_i].is_there);
    json_decref(config);
}
END_TEST

static const struct {
    const char *modules, *config, *reason; /* reason NULL: it runs */
    attn_pooling pool;
    bool normalizes;
} poolings[] = {
    {NULL, "{\"pooling_mode_mean_tokens\":true}", NULL, ATTN_POOL_MEAN, false},
    {NULL, "{\"pooling_mode\":\"lasttoken\"}", NULL, ATTN_POOL_LAST, false},
    {"[{\"type\":\"a.Transformer\"},{\"type\":\"a.Pooling\",\"path\":\"1_Pooling\"},{\"type\":\"a.Normalize\"}]",
     "{\"pooling_mode_cls_token\":true}", NULL, ATTN_POOL_FIRST, true},
    {"[{\"type\":\"a.Transformer\"},{\"type\":\"a.Pooling\",\"path\":\"../x\"}]", "{}",
     "modules.json has the pooling at ../x; expected 1_Pooling", 0, false},
    {"[{\"type\":\"a.Transformer\"},{\"type\":\"a.Pooling\",\"path\":\"1_Pooling\"}]", NULL,
     "there is no 1_Pooling/config.json", 0, false},
    {"[{\"type\":\"WordEmbeddings\"}]", "{}", "modules.json has the module WordEmbeddings at place 0", 0, false},
    {"{}", "{}", "modules.json is no list of a Transformer and a Pooling", 0, false},
    {"[", "{}", "modules.json is no JSON", 0, false},
    {NULL, "", "1_Pooling/config.json is no JSON", 0, false},
    {NULL, "{}", "1_Pooling/config.json asks for 0 modes of pooling; attnd runs one of cls, mean", 0, false},
};

START_TEST(a_pooling_runs_or_has_a_reason)
{
    attn_arena *arena = attn_arena_create(1 << 20);
    const char *modules = poolings[_i].modules, *config = poolings[_i].config;
    struct model_pooling pooling;
    ck_assert_int_eq(checkpoint_read_pooling((struct text_span){modules, modules != NULL ? strlen(modules) : 0},
                                             (struct text_span){config, config != NULL ? strlen(config) : 0}, arena,
                                             &pooling, &err),
                     ATTN_OK);
    ck_assert(pooling.is_there == (poolings[_i].reason == NULL));
    if (poolings[_i].reason != NULL)
        ck_assert_msg(strncmp(pooling.reason, poolings[_i].reason, strlen(poolings[_i].reason)) == 0, "%s",
                      pooling.reason);
    else
        ck_assert(pooling.pool == poolings[_i].pool && pooling.normalizes == poolings[_i].normalizes);
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("checkpoint_model")
{
    envelope_prepare();
    tcase_add_test(tests, an_encoder_has_types_blocks_behind_norms_and_a_tied_head);
    tcase_add_test(tests, a_decoder_is_causal_and_has_a_norm_behind_its_layers);
    tcase_add_test(tests, a_decoder_layer_with_an_encoder_is_two_blocks);
    tcase_add_loop_test(tests, the_member_of_the_configuration_that_is_wrong_is_named, 0, COUNT(refusals));
    tcase_add_loop_test(tests, a_pooling_runs_or_has_a_reason, 0, COUNT(poolings));
    tcase_add_loop_test(tests, an_expression_tells_the_member_that_gives_its_value, 0, COUNT(members));
}

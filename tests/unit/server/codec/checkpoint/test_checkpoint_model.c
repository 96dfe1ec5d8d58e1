/*
 * test_checkpoint_model.c: tests of server/codec/checkpoint/checkpoint_model.h: the descriptions of three models that
 * have the files of published ones (tests/others/models). tests/api/ops has every kind.
 */
#include "codec/checkpoint/checkpoint_model.h"

#include <math.h>
#include <string.h>

#include "check_main.h"
#include "codec/request/envelope_decode.h"
#include "service/models/model_files.h"

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
    ck_assert(model.has_head && model.head.words == 420 && !model.head.is_of_first);
    ck_assert_str_eq(model.head.activation, "gelu");
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
    ck_assert(model.has_head && model.head.activation == NULL && model.head.norm == ATTN_NORM_NONE);
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
    ck_assert_double_eq_tol(model.head.scale, 1 / sqrt(32), 1e-15);
    ck_assert_uint_eq(model.longest, 0);
    ck_assert_int_eq(model.decoder_start_id, 0);
    ck_assert_uint_eq(model.slots, 8);
    leave();
}
END_TEST

CHECK_MAIN("checkpoint_model")
{
    envelope_prepare();
    tcase_add_test(tests, an_encoder_has_types_blocks_behind_norms_and_a_tied_head);
    tcase_add_test(tests, a_decoder_is_causal_and_has_a_norm_behind_its_layers);
    tcase_add_test(tests, a_decoder_layer_with_an_encoder_is_two_blocks);
}

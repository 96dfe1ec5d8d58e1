/*
 * test_checkpoint.c: tests of server/codec/checkpoint: members that a mapping and a configuration may lack, and values
 * that are derived from one. tests/api/layers has whole checkpoints.
 */
#include "codec/checkpoint/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/checkpoint/language/architecture.h"
#include "codec/checkpoint/language/expression.h"
#include "codec/json/tree.h"
#include "decode_stage.h"
#include "failing_json.h"

enum { TENSORS_MAX = 48 };

static struct safetensors_tensor tensors[TENSORS_MAX];
static struct checkpoint_layers layers;
static bool is_unknown;

/* Names with "," between; each tensor is one float. */
static size_t take_tensors(const char *names)
{
    static const float one = 1;
    static const size_t shape[] = {1, 1};
    struct text_span rest = text_span_of(names), name;
    size_t count = 0;
    while (text_next(&rest, ',', &name))
        tensors[count++] = (struct safetensors_tensor){.name = attn_arena_copy_text(arena, name.at, name.length),
                                                       .type = "F32",
                                                       .dtype = ATTN_F32,
                                                       .rank = 2,
                                                       .shape = shape,
                                                       .data = (const char *)&one,
                                                       .bytes = sizeof one};
    return count;
}

static attn_status find(attn_arena *within, const char *config, const char *mapping, const char *names)
{
    struct checkpoint checkpoint = {
        .config = text_span_of(config), .tensors = tensors, .tensor_count = take_tensors(names)};
    const struct text_span text = {mapping, mapping != NULL ? strlen(mapping) : 0};
    err = (attn_error){0};
    return checkpoint_find_layers(&checkpoint, text, within, &layers, &is_unknown, &err);
}

#define MODULE(weights, more) "{\"modules\":[{\"path\":\"l.{n}.a\",\"weights\":{" weights "}" more "}]}"
#define NAMES                 "m.l.7.a.q.weight,m.l.7.a.q.bias,m.l.7.a.w,m.other,m.l.x.a.q.weight"

START_TEST(a_module_is_found_behind_any_prefix)
{
    ck_assert_int_eq(find(arena, "{\"heads\":3,\"none\":null}",
                          MODULE("\"layout\":\"out_in\",\"order\":\"per_head\",\"query\":\"q\",\"key\":\"\","
                                 "\"output\":{\"weight\":\"w\",\"bias\":1}",
                                 ",\"options\":{\"num_heads\":\"$none|heads\",\"scale\":\"$absent|-2.5\",\"softcap\":"
                                 "\"$absent\",\"rope\":{\"layout\":\"half\",\"theta\":\"$heads\"},\"sinks\":"
                                 "\"@other\"},\"masks\":{\"causal\":true}"),
                          NAMES),
                     ATTN_OK);
    ck_assert_uint_eq(layers.count, 1);
    ck_assert_str_eq(layers.items[0].name, "m.l.7.a");
    ck_assert_str_eq(
        layers.items[0].request,
        "{\"weights\":{\"layout\":\"out_in\",\"qkv\":{\"order\":\"per_head\"}},\"options\":{\"num_heads\":3,"
        "\"scale\":-2.5,\"rope\":{\"layout\":\"half\",\"theta\":3}},\"masks\":{\"causal\":true}}");
    static const char *const members[] = {"weights.query.weight", "weights.query.bias", "weights.output.weight",
                                          "options.sinks"};
    ck_assert_uint_eq(layers.items[0].entry_count, COUNT(members));
    for (size_t i = 0; i < COUNT(members); i++)
        ck_assert_str_eq(layers.items[0].entries[i].name, members[i]);
    struct chunks out = chunks_begin(arena);
    checkpoint_write_layer(&layers.items[0], &out);
    ck_assert(out.is_ok && strstr(chunks_join(&out) + 8, "options.sinks") != NULL);
}
END_TEST

START_TEST(a_reference_has_the_number_of_its_layer)
{
    ck_assert_int_eq(find(arena, "{}",
                          MODULE("\"query\":\"q\"", ",\"options\":{\"sinks\":\"@l.{n}.{x}.s{n}\",\"gain\":\"@{n}\"}"),
                          "m.l.12.a.q.weight,m.l.12.{x}.s12,m.12"),
                     ATTN_OK);
    ck_assert_uint_eq(layers.items[0].entry_count, 3);
    ck_assert_str_eq(layers.items[0].entries[1].name, "options.sinks");
    ck_assert_str_eq(layers.items[0].entries[2].name, "options.gain");
}
END_TEST

static const struct {
    const char *config, *mapping, *names;
    attn_status status;
    bool is_unknown;
    const char *fragment;
} refusals[] = {
    {"{", NULL, NAMES, ATTN_ERR_SYNTAX, false, "config.json is no JSON: line 1"},
    {"", NULL, NAMES, ATTN_ERR_SYNTAX, false, "config.json is empty"},
    {"[]", NULL, NAMES, ATTN_ERR_SYNTAX, false, "config.json is JSON, but no object"},
    {"{}", "[]", NAMES, ATTN_ERR_SYNTAX, false, "the mapping is JSON, but no object"},
    {"{}", NULL, NAMES, ATTN_ERR_VALUE, true, "config.json has no model_type, the text that names the"},
    {"{\"model_type\":3}", NULL, NAMES, ATTN_ERR_VALUE, true, "config.json has no model_type"},
    {"{\"model_type\":\"x\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "is \"x\"; known are bert, "},
    {"{\"model_type\":\"x\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "mistral, qwen2, seed_oss, "},
    {"{\"model_type\":\"x\"}", NULL, NAMES, ATTN_ERR_VALUE, true, " and others, which docs/models.md lists"},
    {"{\"model_type\":\"mpnett\"}", NULL, NAMES, ATTN_ERR_VALUE, true,
     "is \"mpnett\"; the nearest name that attnd has is mpnet; known are"},
    {"{\"model_type\":\"bert-generation\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "attnd has is bert; known are"},
    {"{\"model_type\":\"jina_bert\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "attnd has is bert; known are"},
    {"{\"model_type\":\"longt5\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "attnd has is t5; known are"},
    {"{\"model_type\":\"openai-gpt\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "attnd has is gpt2; known are"},
    {"{\"model_type\":\"bigbird_pegasus\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "attnd has is pegasus; known are"},
    {"{\"model_type\":\"longformer\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "is \"longformer\"; known are"},
    {"{\"model_type\":\"blip\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "is \"blip\"; known are"},
    {"{\"model_type\":\"ernie4_5_moe\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "is \"ernie4_5_moe\"; known are"},
    {"{\"model_type\":\"gemma3n\"}", NULL, NAMES, ATTN_ERR_VALUE, true, "attnd has is gemma3; known are"},
    {"{\"model_type\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
     NULL, NAMES, ATTN_ERR_VALUE, true, "aaa\"; known are"},
    {"{}", "{\"modules\":{}}", NAMES, ATTN_ERR_FIELD, false, "has no list \"modules\""},
    {"{}", "{\"modules\":[]}", NAMES, ATTN_ERR_VALUE, true, "no tensor of the checkpoint belongs to a module"},
    {"{}", "{\"modules\":[{}]}", NAMES, ATTN_ERR_FIELD, false, "has no \"path\", or neither"},
    {"{}", "{\"modules\":[{\"path\":\"l.{n}.a\",\"weights\":{\"query\":\"\",\"qkv\":{}}}]}", NAMES, ATTN_ERR_FIELD,
     false, "has no \"path\", or neither"},
    {"{}", "{\"modules\":[{\"path\":\"l.{n}.a\",\"weights\":{\"query\":\"q\"}},1]}", NAMES, ATTN_ERR_FIELD, false,
     "has no \"path\", or neither"},
    {"{}", MODULE("\"query\":\"z\"", ""), NAMES, ATTN_ERR_VALUE, true, "no tensor of the checkpoint"},
    {"{}", MODULE("\"query\":\"q\",\"key\":\"z\"", ""), NAMES, ATTN_ERR_VALUE, false,
     "there is no tensor m.l.7.a.z.weight, the \"key\" of m.l.7.a"},
    {"{}", MODULE("\"query\":\"q\",\"key\":{\"weight\":\"z\",\"bias\":\"y\"}", ""), NAMES, ATTN_ERR_VALUE, false,
     "there is no tensor m.l.7.a.z"},
    {"{}", MODULE("\"query\":\"q\"", ",\"options\":{\"sinks\":\"@z\",\"scale\":1}"), NAMES, ATTN_ERR_VALUE, false,
     "there is no tensor m.z, the options.sinks of m.l.7.a"},
    {"{}", MODULE("\"query\":\"q\"", ",\"options\":{\"sinks\":\"@l.{n}.z\"}"), NAMES, ATTN_ERR_VALUE, false,
     "there is no tensor m.l.7.z, the options.sinks of m.l.7.a"},
    {"{}",
     MODULE("\"query\":\"q\"",
            ",\"options\":{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1,\"b\":2}"),
     NAMES, ATTN_ERR_FIELD, false, "members as deep as this mean nothing"},
    {"{}", MODULE("\"qkv\":{\"weight\":\"w{\"}", ""), "m.l.7.a.w{", ATTN_ERR_VALUE, true,
     "no tensor of the checkpoint"},
    {"{}", MODULE("\"query\":\"q\"", ""), "l.1234567890.a.q.weight,l..a.q.weight", ATTN_ERR_VALUE, true,
     "no tensor of the checkpoint"},
};

START_TEST(what_a_mapping_or_a_configuration_lacks_is_named)
{
    const attn_status status = find(arena, refusals[_i].config, refusals[_i].mapping, refusals[_i].names);
    ck_assert_msg(status == refusals[_i].status, "%d: %s: %s", _i, attn_status_name(status), err.message);
    ck_assert_msg(is_unknown == refusals[_i].is_unknown, "%d: %s", _i, err.message);
    ck_assert_msg(strstr(err.message, refusals[_i].fragment) != NULL, "%d: %s", _i, err.message);
}
END_TEST

/* What is written before the list of types: "the nearest name that attnd has is bert; ", or nothing. */
static const char *nearest_type(const struct architecture *architecture, const char *type)
{
    struct chunks out = chunks_begin(arena);
    architecture_write_types(architecture->table, "model", type, "known are ", &out);
    char *text = chunks_join(&out);
    ck_assert(text != NULL && strstr(text, "known are bert, ") != NULL);
    *strstr(text, "known are ") = '\0';
    return text;
}

/* Each misspelt type, and the one that is meant; and types of transformers, with a relative that attnd runs. */
static const char *const near_types[][2] = {
    {"berrt", "bert"},        {"brt", "bert"},        {"BERT", "bert"},       {"lama", "llama"},
    {"LLaMA", "llama"},       {"llamma", "llama"},    {"gpt-2", "gpt2"},      {"qwen22", "qwen2"},
    {"qewn3", "qwen3"},       {"roberat", "roberta"}, {"robarta", "roberta"}, {"mistarl", "mistral"},
    {"whispr", "whisper"},    {"falkon", "falcon"},   {"gema", "gemma"},      {"xlm_roberta", "xlm-roberta"},
    {"gpt-neox", "gpt_neox"}, {"smollm2", "smollm3"}, {"longt5", "t5"},       {"deberta", "deberta-v2"},
    {"openai-gpt", "gpt2"},   {"mllama", "llama"},    {"hubert", "bert"},     {"deberta-v3", "deberta-v2"},
};

/* Types of transformers and of other programs that are near to none, though many differ from one by a letter or two. */
static const char far_types[] =
    "mamba mamba2 jamba bamba zamba swin swinv2 blip blip-2 clap clvp led luke ernie ernie4_5 nemotron xlnet fnet rwkv beit "
    "bit blt bark bros detr deta dpt dia git flava llada plamo pixtral voxtral ministral reformer informer longformer funnel "
    "aria arcee afmoe smolvlm xglm glpn helium persimmon internlm2 chatglm baichuan RefinedWeb sam gte gemna bretr";

START_TEST(the_nearest_type_is_meant_or_a_relative)
{
    json_t *config = json_object();
    struct architecture architecture = architecture_open(config, arena);
    char expected[96], type[32];
    for (size_t i = 0; i < COUNT(near_types); i++) {
        snprintf(expected, sizeof expected, "the nearest name that attnd has is %s; ", near_types[i][1]);
        ck_assert_str_eq(nearest_type(&architecture, near_types[i][0]), expected);
    }
    struct text_span rest = text_span_of(far_types), word;
    while (text_next(&rest, ' ', &word)) {
        snprintf(type, sizeof type, "%.*s", (int)word.length, word.at);
        ck_assert_msg(nearest_type(&architecture, type)[0] == '\0', "%s", type);
    }
    architecture_close(&architecture);
    json_decref(config);
}
END_TEST

START_TEST(a_module_has_a_bounded_number_of_tensors)
{
    char mapping[4096] = "{\"modules\":[{\"path\":\"a\",\"weights\":{\"query\":\"q\"},\"options\":{";
    for (int i = 0; i < 49; i++) {
        char member[32];
        snprintf(member, sizeof member, "%s\"o%d\":\"@other\"", i > 0 ? "," : "", i);
        strcat(mapping, member);
    }
    strcat(mapping, "}}]}");
    ck_assert_int_eq(find(arena, "{}", mapping, "a.q.weight,other"), ATTN_ERR_TOO_LARGE);
    ck_assert_str_eq(err.message, "a has more than 48 tensors");
}
END_TEST

/* ---- models within models ---- */

#define TOWER(path)                                                                                                    \
    path ".0.self_attn.q_proj.weight," path ".0.self_attn.k_proj.weight," path ".0.self_attn.v_proj.weight," path      \
         ".0.self_attn.out_proj.weight"
#define CLIP(architecture)                                                                                             \
    "{\"model_type\":\"clip\",\"architectures\":[\"" architecture "\"],\"text_config\":{\"num_attention_heads\":4},"   \
    "\"vision_config\":{\"num_attention_heads\":2}}"

static const struct {
    const char *config, *names, *name, *request;
} parts[] = {
    {CLIP("CLIPModel"), TOWER("text_model.encoder.layers") "," TOWER("vision_model.encoder.layers"),
     "text_model.encoder.layers.0.self_attn",
     "{\"weights\":{\"layout\":\"out_in\"},\"options\":{\"num_heads\":4},\"masks\":{\"causal\":true}}"},
    {CLIP("CLIPForImageClassification"), TOWER("text_model.encoder.layers") "," TOWER("vision_model.encoder.layers"),
     "vision_model.encoder.layers.0.self_attn", "{\"weights\":{\"layout\":\"out_in\"},\"options\":{\"num_heads\":2}}"},
    {"{\"model_type\":\"clip\",\"text_config\":[],\"num_attention_heads\":1}", TOWER("a.text_model.encoder.layers"),
     "a.text_model.encoder.layers.0.self_attn",
     "{\"weights\":{\"layout\":\"out_in\"},\"options\":{\"num_heads\":1},\"masks\":{\"causal\":true}}"},
};

START_TEST(of_text_and_images_one_part_is_found)
{
    ck_assert_msg(find(arena, parts[_i].config, NULL, parts[_i].names) == ATTN_OK, "%s", err.message);
    ck_assert_uint_eq(layers.count, 1);
    ck_assert_str_eq(layers.items[0].name, parts[_i].name);
    ck_assert_str_eq(layers.items[0].request, parts[_i].request);
}
END_TEST

/* ---- choices that differ from layer to layer ---- */

START_TEST(windows_and_bases_follow_the_number_of_the_layer)
{
    ck_assert_int_eq(find(arena, "{\"model_type\":\"modernbert\",\"num_attention_heads\":2,\"local_attention\":9}",
                          NULL,
                          "layers.3.attn.Wqkv.weight,layers.3.attn.Wo.weight,layers.4.attn.Wqkv.weight,"
                          "layers.4.attn.Wo.weight"),
                     ATTN_OK);
    ck_assert_uint_eq(layers.count, 2);
    ck_assert_msg(strstr(layers.items[0].request, "\"theta\":160000}},\"masks\":{}") != NULL, "%s",
                  layers.items[0].request);
    ck_assert_msg(strstr(layers.items[1].request, "\"theta\":10000}},\"masks\":{\"window\":[4,4]}") != NULL, "%s",
                  layers.items[1].request);
}
END_TEST

/* ---- expressions ---- */

static const struct {
    const char *config, *expression;
    size_t layer;
    const char *value; /* NULL: nothing */
} expressions[] = {
    {"{\"a\":1}", "a", 0, "1"},
    {"{\"a\":null,\"b\":[2]}", "a|b", 0, "[2]"},
    {"{}", "a", 0, NULL},
    {"{}", "a|0.125", 0, "0.125"},
    {"{}", "a|-3", 0, "-3"},
    {"{}", "scale", 3, NULL},
    {"{\"query_pre_attn_scalar\":4}", "scale", 3, "0.5"},
    {"{\"scale_attn_weights\":false}", "scale", 3, "1.0"},
    {"{\"scale_attn_by_inverse_layer_idx\":true,\"head_dim\":16}", "scale", 4, "0.050000000000000003"},
    {"{\"scale_attn_by_inverse_layer_idx\":true,\"n_head\":2,\"n_embd\":8}", "scale", 0, "0.5"},
    {"{\"scale_attn_weights\":false,\"scale_attn_by_inverse_layer_idx\":true}", "scale", 3, "0.25"},
    {"{\"sliding_window\":5}", "window", 0, "5"},
    {"{\"sliding_window\":null}", "window", 0, NULL},
    {"{\"sliding_window\":5,\"use_sliding_window\":false}", "window", 0, NULL},
    {"{\"sliding_window\":5,\"max_window_layers\":2}", "window", 1, NULL},
    {"{\"sliding_window\":5,\"max_window_layers\":2}", "window", 2, "5"},
    {"{\"sliding_window\":5,\"layer_types\":[\"full_attention\",\"sliding_attention\"]}", "window", 0, NULL},
    {"{\"sliding_window\":5,\"layer_types\":[\"full_attention\",\"sliding_attention\"]}", "even_window", 1, "5"},
    {"{\"sliding_window\":5}", "even_window", 1, NULL},
    {"{\"sliding_window\":5}", "even_window", 2, "5"},
    {"{}", "rope", 0, "{\"layout\":\"half\",\"theta\":10000.0}"},
    {"{\"rotary_emb_base\":500,\"rotary_pct\":0.5,\"head_dim\":8}", "rope", 0,
     "{\"layout\":\"half\",\"theta\":500.0,\"dim\":4}"},
    {"{\"rope_scaling\":{\"rope_type\":\"default\"}}", "rope", 0, "{\"layout\":\"half\",\"theta\":10000.0}"},
    {"{\"rope_scaling\":{\"factor\":2}}", "rope", 0, "{\"layout\":\"half\",\"theta\":10000.0}"},
    {"{\"rope_theta\":7,\"max_position_embeddings\":9,\"rope_scaling\":{\"rope_type\":\"linear\",\"type\":\"linear\","
     "\"factor\":2,\"original_max_position_embeddings\":3}}",
     "rope", 0,
     "{\"layout\":\"half\",\"theta\":7.0,\"scaling\":{\"rope_type\":\"linear\",\"factor\":2,"
     "\"original_max_position_embeddings\":3,\"max_position_embeddings\":9}}"},
    {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}", "rope", 0,
     "{\"layout\":\"half\",\"theta\":10000.0,\"scaling\":{\"type\":\"linear\",\"factor\":2}}"},
    {"{\"layer_types\":[\"a\",\"b\"],\"rope_parameters\":{\"a\":{\"rope_theta\":1},\"b\":{\"rope_theta\":2}}}", "rope",
     1, "{\"layout\":\"half\",\"theta\":2.0}"},
    {"{\"layer_types\":[\"a\",\"b\"],\"rope_parameters\":{\"rope_theta\":3,\"partial_rotary_factor\":1}}", "rope", 1,
     "{\"layout\":\"half\",\"theta\":3.0}"},
    {"{\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[1,1]}}", "interleaved_rope", 0,
     "{\"layout\":\"interleaved\",\"theta\":10000.0}"},
    {"{\"a\":{\"b\":{\"c\":5}}}", "a.b.c", 0, "5"},
    {"{\"a\":[1]}", "a.b|7", 0, "7"},
    {"{}", "layer", 3, "3"},
    {"{}", "layer_type", 3, NULL},
    {"{\"attention_layers\":[\"global\",\"local\"]}", "layer_type", 1, "\"local\""},
    {"{\"attention_types\":[[[\"global\",\"local\"],2],[[\"x\"],1]]}", "layer_type", 3, "\"local\""},
    {"{\"attention_types\":[[[\"global\",\"local\"],2],[[\"x\"],1]]}", "layer_type", 4, "\"x\""},
    {"{\"attention_types\":[[[],2],[[\"x\"],-1],3,[[\"y\"],1e9]]}", "layer_type", 0, NULL},
    {"{\"architectures\":[\"A\",\"B\"]}", "architecture", 0, "\"A\""},
    {"{}", "architecture|'none'", 0, "\"none\""},
    {"{\"a\":3}", "each(a)", 6, "true"},
    {"{\"a\":3}", "each(a)", 7, "false"},
    {"{\"a\":0}", "each(a)", 7, NULL},
    {"{\"a\":129}", "half(a)", 0, "64"},
    {"{\"a\":1e300}", "half(a)", 0, NULL},
    {"{\"a\":3}", "positive(a)", 0, "3"},
    {"{\"a\":-1,\"b\":7}", "positive(a)|b", 0, "7"},
    {"{\"a\":\"p2c| C2P \"}", "holds(a,c2p)", 0, "true"},
    {"{\"a\":\"p2c2p\"}", "holds(a,c2p)", 0, "false"},
    {"{\"a\":[1,\"p2c\",\"c2p\"]}", "holds(a,c2p)", 0, "true"},
    {"{\"a\":{\"c2p\":1}}", "holds(a,c2p)", 0, "false"},
    {"{}", "holds(a,c2p)", 0, "false"},
    {"{\"n_heads\":2}", "wide_alibi", 0, "[0.0625,0.00390625]"},
    {"{\"n_heads\":3}", "wide_alibi", 0, "[0.0625,0.00390625,0.25]"},
    {"{}", "wide_alibi", 0, "[]"},
    {"{\"a\":3,\"b\":16}", "a/sqrt(b)", 0, "0.75"},
    {"{\"a\":3,\"b\":0}", "a/b|2", 0, "2"},
    {"{\"a\":\"x\"}", "a/a/a", 0, NULL},
};

START_TEST(expressions_are_worked_out_from_the_configuration)
{
    json_error_t error;
    json_t *config = json_loads(expressions[_i].config, 0, &error);
    ck_assert_ptr_nonnull(config);
    json_t *value = expression_value(config, expressions[_i].layer, expressions[_i].expression);
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (expressions[_i].value == NULL)
        ck_assert_msg(text == NULL, "%s: %s", expressions[_i].config, text);
    else
        ck_assert_msg(text != NULL && strcmp(text, expressions[_i].value) == 0, "%s: %s", expressions[_i].config, text);
    json_tree_give_text(text);
    json_decref(value);
    json_decref(config);
}
END_TEST

/* ---- the index, and what nobody knows ---- */

START_TEST(an_index_names_each_file_once)
{
    static const char index[] =
        "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\",\"c\":\"1.safetensors\"}}";
    static const struct {
        const char *index;
        attn_status status;
        const char *fragment;
    } wrong[] = {
        {"{", ATTN_ERR_SYNTAX, "the index is no JSON: line 1"},
        {"{}", ATTN_ERR_FIELD, "has no \"weight_map\""},
        {"{\"weight_map\":[]}", ATTN_ERR_FIELD, "has no \"weight_map\""},
        {"{\"weight_map\":{\"a\":1,\"b\":\"c\"}}", ATTN_ERR_VALUE, "no file name beside it for \"a\""},
        {"{\"weight_map\":{\"a\":\".x\"}}", ATTN_ERR_VALUE, "no file name beside it"},
        {"{\"weight_map\":{\"a\":\"x\\u0000\"}}", ATTN_ERR_VALUE, "no file name beside it"},
        {"{\"weight_map\":{\"a\":\"x/y\"}}", ATTN_ERR_VALUE, "no file name beside it"},
    };
    const char *const *files;
    size_t count;
    ck_assert_int_eq(checkpoint_read_index(text_span_of(index), arena, &files, &count, &err), ATTN_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(files[0], "1.safetensors");
    ck_assert_str_eq(files[1], "2.safetensors");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const attn_status status = checkpoint_read_index(text_span_of(wrong[i].index), arena, &files, &count, &err);
        ck_assert_msg(status == wrong[i].status, "%s: %s", wrong[i].index, err.message);
        ck_assert_msg(strstr(err.message, wrong[i].fragment) != NULL, "%s: %s", wrong[i].index, err.message);
    }
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 0; status != ATTN_OK; limit += 64) {
        attn_arena *small = attn_arena_create(limit);
        status = checkpoint_read_index(text_span_of(index), small, &files, &count, &err);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
        attn_arena_destroy(small);
    }
}
END_TEST

START_TEST(a_checkpoint_that_nobody_knows_is_described)
{
    struct chunks out = chunks_begin(arena), mapping = chunks_begin(arena);
    struct checkpoint checkpoint = {
        .config = {"{}", 2},
        .tensors = tensors,
        .tensor_count = take_tensors("enc.1.self_attn.q.weight,enc.2.self_attn.q.weight,enc.0.ff,12,e.1x.b,"
                                     "enc.1.self_attn.k.weight,dec.Att.q,att")};
    checkpoint_describe(&checkpoint, &out, &mapping);
    ck_assert_str_eq(chunks_join(&out), "  att  F32 [1,1]\n"
                                        "  dec.Att.q  F32 [1,1]\n"
                                        "  e.1x.b  F32 [1,1]\n"
                                        "  enc.{n}.ff  F32 [1,1]\n"
                                        "  enc.{n}.self_attn.k.weight  F32 [1,1]\n"
                                        "  enc.{n}.self_attn.q.weight  F32 [1,1]  2 times\n"
                                        "  {n}  F32 [1,1]\n");
    const char *text = chunks_join(&mapping);
    ck_assert_ptr_nonnull(strstr(text, "\"path\": \"dec.Att\",\n      \"tensors_found\": [\"q\"]"));
    ck_assert_ptr_nonnull(strstr(text, "\"path\": \"enc.{n}.self_attn\",\n"
                                       "      \"tensors_found\": [\"k.weight\", \"q.weight\"]"));
    for (size_t count = 0; count < 2; count++) { /* none, and none of attention */
        struct chunks few = chunks_begin(arena), begun = chunks_begin(arena);
        checkpoint.tensor_count = take_tensors("a.b") * count;
        checkpoint_describe(&checkpoint, &few, &begun);
        ck_assert_ptr_nonnull(strstr(chunks_join(&begun), "\"path\": \"layers.{n}.attention\""));
    }
}
END_TEST

START_TEST(memory_runs_out_cleanly)
{
    static const char mapping[] = MODULE("\"query\":\"q\"", ",\"options\":{\"sinks\":\"@other\"}");
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 0; status != ATTN_OK; limit += 64) {
        attn_arena *small = attn_arena_create(limit);
        status = find(small, "{}", mapping, NAMES);
        ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%s", err.message);
        attn_arena_destroy(small);
    }
    bool is_ok = false;
    for (size_t limit = 0; !is_ok; limit += 64) {
        attn_arena *small = attn_arena_create(limit);
        struct chunks out = chunks_begin(small), begun = chunks_begin(small);
        const struct checkpoint checkpoint = {
            .config = {"{}", 2}, .tensors = tensors, .tensor_count = take_tensors(NAMES)};
        checkpoint_describe(&checkpoint, &out, &begun);
        is_ok = out.is_ok && begun.is_ok;
        attn_arena_destroy(small);
    }
}
END_TEST

/* A failed allocation of the JSON library must not leave a layer without a member. */
START_TEST(no_layer_is_made_of_a_tree_that_is_not_whole)
{
    static const char config[] =
        "{\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2},\"partial_rotary_factor\":0.5,"
        "\"head_dim\":4,\"max_position_embeddings\":9}";
    static const char mapping[] = MODULE("\"layout\":\"out_in\",\"order\":\"per_head\",\"query\":\"q\"",
                                         ",\"options\":{\"rope\":\"$rope\",\"scale\":\"$scale|2\"},\"masks\":{}");
    ck_assert_int_eq(find(arena, config, mapping, NAMES), ATTN_OK);
    const char *whole = layers.items[0].request;
    fail_json_begin();
    json_fails_for_good = _i == 1;
    attn_status status = ATTN_ERR_NO_MEMORY;
    size_t tries = 0;
    for (; status != ATTN_OK; tries++) {
        json_allocations_left = tries;
        status = find(arena, config, mapping, NAMES);
        ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%zu: %s", tries, err.message);
    }
    fail_json_end();
    ck_assert_str_eq(layers.items[0].request, whole);
    ck_assert_uint_gt(tries, 50);
}
END_TEST

CHECK_MAIN("checkpoint")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, a_module_is_found_behind_any_prefix);
    tcase_add_test(tests, a_reference_has_the_number_of_its_layer);
    tcase_add_loop_test(tests, what_a_mapping_or_a_configuration_lacks_is_named, 0, COUNT(refusals));
    tcase_add_test(tests, the_nearest_type_is_meant_or_a_relative);
    tcase_add_test(tests, a_module_has_a_bounded_number_of_tensors);
    tcase_add_loop_test(tests, of_text_and_images_one_part_is_found, 0, COUNT(parts));
    tcase_add_test(tests, windows_and_bases_follow_the_number_of_the_layer);
    tcase_add_loop_test(tests, expressions_are_worked_out_from_the_configuration, 0, COUNT(expressions));
    tcase_add_test(tests, an_index_names_each_file_once);
    tcase_add_test(tests, a_checkpoint_that_nobody_knows_is_described);
    tcase_add_test(tests, memory_runs_out_cleanly);
    tcase_add_loop_test(tests, no_layer_is_made_of_a_tree_that_is_not_whole, 0, 2);
}

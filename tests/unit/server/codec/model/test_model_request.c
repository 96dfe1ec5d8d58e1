/*
 * test_model_request.c: tests of server/codec/model/request.c: requests to a whole model, and their refusals.
 */
#include "codec/model/request.h"

#include <stdio.h>

#include "failing_take.h" /* declares parameters with names of the stage, and so comes first */

#include "decode_stage.h"

static struct model_request request;

static attn_status decode_as(model_request_kind kind, const char *text)
{
    err = (attn_error){.status = ATTN_OK};
    return model_request_decode(text, strlen(text), kind, arena, &request, &err);
}

static void decode_well(const char *text)
{
    const attn_status status = decode_as(MODEL_REQUEST_ATTENTION, text);
    ck_assert_msg(status == ATTN_OK, "%s: %s: %s", text, err.field, err.message);
}

static void assert_text(const struct text_span *text, const char *expected)
{
    ck_assert_uint_eq(text->length, strlen(expected));
    ck_assert_mem_eq(text->at, expected, text->length + 1);
}

static void assert_ids(const struct model_ids *ids, const int64_t *expected, size_t count)
{
    ck_assert_uint_eq(ids->count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(ids->ids[i], expected[i]);
}

/* ---- inputs ---- */

START_TEST(one_text_is_a_batch_of_one)
{
    decode_well("{\"inputs\":{\"text\":\"a c\\u0061t\",\"pair\":\"b\"}}");
    ck_assert_uint_eq(request.inputs.batch, 1);
    assert_text(&request.inputs.text[0], "a cat");
    assert_text(&request.inputs.pair[0], "b");
    ck_assert(request.inputs.target == NULL && request.inputs.ids == NULL && request.inputs.pixels == NULL);
}
END_TEST

START_TEST(a_list_of_texts_is_a_batch_and_never_a_pair)
{
    decode_well("{\"inputs\":{\"text\":[\"a\",\"\"],\"target\":[\"c\",\"d\"]}}");
    ck_assert_uint_eq(request.inputs.batch, 2);
    assert_text(&request.inputs.text[0], "a");
    assert_text(&request.inputs.text[1], "");
    assert_text(&request.inputs.target[1], "d");
    ck_assert_ptr_null(request.inputs.pair);
}
END_TEST

START_TEST(a_long_text_is_not_shortened)
{
    enum { LENGTH = 1 << 17 };
    char *text = attn_arena_take(arena, LENGTH + 64, 1);
    const size_t begin = (size_t)sprintf(text, "{\"inputs\":{\"text\":\"");
    memset(text + begin, 'x', LENGTH);
    strcpy(text + begin + LENGTH, "\"}}");
    decode_well(text);
    ck_assert_uint_eq(request.inputs.text[0].length, LENGTH);
    ck_assert_int_eq(request.inputs.text[0].at[LENGTH - 1], 'x');
    ck_assert_int_eq(request.inputs.text[0].at[LENGTH], '\0');
}
END_TEST

START_TEST(ids_are_one_list_or_ragged_lists)
{
    decode_well("{\"inputs\":{\"ids\":[5,2.0,7]}}");
    ck_assert_uint_eq(request.inputs.batch, 1);
    assert_ids(&request.inputs.ids[0], (const int64_t[]){5, 2, 7}, 3);
    decode_well("{\"inputs\":{\"ids\":[[5],[1,2,3],[]],\"target_ids\":[[0],[0,1],[2147483647]]}}");
    ck_assert_uint_eq(request.inputs.batch, 3);
    assert_ids(&request.inputs.ids[1], (const int64_t[]){1, 2, 3}, 3);
    ck_assert_uint_eq(request.inputs.ids[2].count, 0);
    assert_ids(&request.inputs.target_ids[2], (const int64_t[]){2147483647}, 1);
}
END_TEST

START_TEST(tensors_of_one_item_get_the_axis_of_the_batch)
{
    decode_well("{\"inputs\":{\"pixels\":[[[1,2],[3,4]],[[5,6],[7,8]],[[9,10],[11,12]]]}}");
    ck_assert_int_eq(request.inputs.pixels->rank, 4);
    ck_assert_uint_eq(request.inputs.pixels->shape[0], 1);
    ck_assert_uint_eq(request.inputs.pixels->shape[1], 3);
    ck_assert(((const float *)request.inputs.pixels->data)[11] == 12);
    decode_well("{\"inputs\":{\"embeddings\":[[1,2],[3,4],[5,6]]}}");
    ck_assert_int_eq(request.inputs.embeddings->rank, 3);
    ck_assert_uint_eq(request.inputs.embeddings->shape[1], 3);
    decode_well("{\"inputs\":{\"embeddings\":[[[1,2]],[[5,6]]]},\"options\":{\"compute\":\"float64\"}}");
    ck_assert_uint_eq(request.inputs.batch, 2);
    ck_assert_int_eq(request.inputs.embeddings->dtype, ATTN_F64);
}
END_TEST

START_TEST(null_is_not_given)
{
    decode_well("{\"inputs\":{\"text\":\"a\",\"ids\":null,\"pair\":null,\"target\":null,\"pixels\":null},"
                "\"options\":{\"layers\":null,\"return\":null,\"predictions_k\":null,\"view\":null}}");
    ck_assert_ptr_null(request.inputs.ids);
    ck_assert_ptr_null(request.inputs.pair);
    ck_assert(attn_selects_all(&request.layers));
    ck_assert_uint_eq(request.predictions_k, 5);
}
END_TEST

/* ---- options ---- */

START_TEST(without_options_attention_is_returned)
{
    decode_well("{\"inputs\":{\"text\":\"a\"}}");
    ck_assert_uint_eq(request.common.request.options.want, ATTN_STEP_BIT(ATTN_STEP_ATTENTION));
    ck_assert_uint_eq(request.results, 0);
    ck_assert_uint_eq(request.predictions_k, 5);
    ck_assert(request.has_special_tokens && !request.truncate);
    ck_assert_uint_eq(request.ablations, 0);
}
END_TEST

START_TEST(every_option_is_decoded)
{
    decode_well("{\"inputs\":{\"text\":\"a\"},\"options\":{\"layers\":[2,0,1.0],\"heads\":\"0-3\",\"queries\":[1],"
                "\"keys\":[[0,1],4],\"digits\":4,\"format\":\"flat\",\"compute\":\"float64\",\"truncate\":true,"
                "\"special_tokens\":false,\"predictions_k\":1000,\"ablate\":[[1,2],[0.0,3]],\"top_k\":2}}");
    const attn_options *options = &request.common.request.options;
    ck_assert_uint_eq(request.layers.count, 3);
    ck_assert_uint_eq(attn_selected(&request.layers, 0), 2);
    ck_assert_uint_eq(options->heads.count, 4);
    ck_assert_uint_eq(attn_selected(&options->queries, 0), 1);
    ck_assert_uint_eq(attn_selected(&options->keys, 2), 4);
    ck_assert_int_eq(request.common.digits, 4);
    ck_assert_int_eq(request.common.form, TENSOR_FORM_FLAT);
    ck_assert_int_eq(options->compute, ATTN_F64);
    ck_assert(request.truncate && !request.has_special_tokens);
    ck_assert_uint_eq(request.predictions_k, 1000);
    ck_assert_uint_eq(request.ablations, 2);
    ck_assert_int_eq(request.ablate[0].layer, 1);
    ck_assert_int_eq(request.ablate[1].head, 3);
}
END_TEST

#define SWEPT ",\"sweep\":{\"at\":\"hidden\",\"over\":[\"layer\",\"query\"],\"do\":\"zero\"},\"metric\":{\"words\":[1]}"

START_TEST(every_result_and_every_step_has_its_name)
{
    char text[256];
    for (int i = 0; i < MODEL_RESULT_COUNT; i++) {
        snprintf(text, sizeof text, "{\"inputs\":{\"text\":\"a\"},\"options\":{\"return\":[\"%s\"]%s}}",
                 model_result_name((model_result_kind)i),
                 i == MODEL_WORD_SCORES || i == MODEL_ATTRIBUTION ? ",\"words\":\"next\""
                 : i == MODEL_GENERATED                           ? ",\"new_tokens\":1"
                 : i == MODEL_SWEEP                               ? SWEPT
                                                                  : "");
        if (i == MODEL_ATTENTION_GRADIENT || i == MODEL_INTEGRATED)
            continue;
        decode_well(text);
        ck_assert_uint_eq(request.common.request.options.want, 0);
        ck_assert_uint_eq(request.results, (uint32_t)1 << i);
    }
    decode_well("{\"inputs\":{\"text\":\"a\"},\"options\":{\"return\":[\"entropy\",\"logits\",\"entropy\"]}}");
    ck_assert_uint_eq(request.common.request.options.want, ATTN_STEP_BIT(ATTN_STEP_ENTROPY));
    ck_assert_uint_eq(request.results, (uint32_t)1 << MODEL_LOGITS);
}
END_TEST

START_TEST(words_are_texts_ids_or_the_next_ones)
{
    decode_well(
        "{\"inputs\":{\"text\":\"a\"},\"options\":{\"return\":\"word_scores\",\"words\":[\"\\u0131\\u0000\",3.0]}}");
    ck_assert_uint_eq(request.words.count, 2);
    ck_assert_mem_eq(request.words.items[0].text.at, "\xC4\xB1", 3);
    ck_assert_uint_eq(request.words.items[0].text.length, 3);
    ck_assert_ptr_null(request.words.items[1].text.at);
    ck_assert_int_eq(request.words.items[1].id, 3);
    ck_assert(!request.words.is_next);
    decode_well("{\"inputs\":{\"text\":\"a\"},\"options\":{\"return\":\"logit_lens\",\"words\":\"next\"}}");
    ck_assert(request.words.is_next);
    ck_assert_ptr_null(request.words.items);
    decode_well(
        "{\"inputs\":{\"text\":\"a\"},\"options\":{\"return\":\"word_scores\",\"words\":[5,6]}}"); /* as a tensor */
    ck_assert_int_eq(request.words.items[1].id, 6);
}
END_TEST

START_TEST(stops_are_texts_and_ids)
{
    decode_well("{\"inputs\":{\"text\":\"a\"},\"options\":{\"new_tokens\":7,\"stop\":[\".\",13],"
                "\"return\":[\"generated\"],\"ablate\":[]}}");
    ck_assert_uint_eq(request.new_tokens, 7);
    ck_assert_uint_eq(request.results, 1U << MODEL_GENERATED);
    ck_assert_uint_eq(request.stop.count, 2);
    ck_assert_str_eq(request.stop.items[0].text.at, ".");
    ck_assert(request.stop.items[1].text.at == NULL && request.stop.items[1].id == 13);
    decode_well("{\"inputs\":{\"text\":\"a\"},\"options\":{\"new_tokens\":1,\"stop\":5}}");
    ck_assert_uint_eq(request.stop.count, 1);
    ck_assert_int_eq(request.stop.items[0].id, 5);
}
END_TEST

START_TEST(interventions_are_decoded_in_their_order)
{
    decode_well(
        "{\"inputs\":{\"text\":\"a\"},\"options\":{\"compute\":\"float64\",\"interventions\":["
        "{\"do\":\"add\",\"at\":\"hidden\",\"part\":\"decoder\",\"layers\":[-1,0],\"queries\":\"0-2\",\"value\":[1,2.5],"
        "\"factor\":-3},"
        "{\"at\":\"attention\",\"do\":\"replace\",\"heads\":[1],\"keys\":[0,{\"from\":2,\"to\":3}],\"items\":[2,1],"
        "\"from\":-1,\"from_queries\":[4]}]}}");
    ck_assert_uint_eq(request.interventions.count, 2);
    const struct model_intervention *add = &request.interventions.items[0], *replace = add + 1;
    ck_assert(add->at == MODEL_AT_HIDDEN && add->act == MODEL_DO_ADD && add->factor == -3 && !add->has_from);
    ck_assert_str_eq(add->part, "decoder");
    ck_assert_int_eq(add->layers.ranges[0].from, -1);
    ck_assert_int_eq(add->queries.ranges[0].to, 2);
    ck_assert_uint_eq(add->keys.count, 0);
    ck_assert_int_eq(add->value->dtype, ATTN_F64);
    ck_assert(((const double *)add->value->data)[1] == 2.5);
    ck_assert(replace->at == MODEL_AT_ATTENTION && replace->act == MODEL_DO_REPLACE && replace->factor == 1);
    ck_assert(replace->has_from && replace->from == -1 && replace->value == NULL && replace->part == NULL);
    ck_assert_int_eq(replace->keys.ranges[1].to, 3);
    ck_assert_int_eq(replace->items.ranges[0].from, 2);
    ck_assert_int_eq(replace->from_queries.ranges[0].from, 4);
}
END_TEST

START_TEST(indices_from_the_end_wait_for_the_plan)
{
    decode_well("{\"inputs\":{\"text\":\"a\"},\"options\":{\"layers\":[-1],\"heads\":[0,-3.0,-1],"
                "\"queries\":[-6,-1],\"keys\":[0,[1,-2]]}}");
    const struct index_lists *lists = &request.common.lists;
    ck_assert(request.layer_list.counts_from_end && lists->heads.counts_from_end && lists->queries.counts_from_end &&
              lists->keys.counts_from_end);
    ck_assert(attn_selects_all(&request.layers));
    decode_well("{\"inputs\":{\"text\":\"a\"},\"options\":{\"layers\":[0]}}");
    ck_assert(!request.layer_list.counts_from_end);
}
END_TEST

/* ---- refusals ---- */

#define A "{\"inputs\":{\"text\":\"a\"},\"options\":"

static const struct refusal refusals[] = {
    {"[]", ATTN_ERR_FIELD, "", "a JSON object"},
    {"{\"inputs\"", ATTN_ERR_SYNTAX, "", ""},
    {"{}", ATTN_ERR_FIELD, "", "has no \"inputs\""},
    {"{\"inputs\":{}}", ATTN_ERR_FIELD, "/inputs", "and has 0"},
    {"{\"inputs\":{\"text\":\"a\",\"ids\":[1]}}", ATTN_ERR_FIELD, "/inputs", "and has 2"},
    {"{\"inputs\":{\"words\":\"a\"}}", ATTN_ERR_FIELD, "/inputs/words", ""},
    {"{\"inputs\":{\"text\":7}}", ATTN_ERR_FIELD, "/inputs/text", "a text, or a list of texts"},
    {"{\"inputs\":{\"text\":[]}}", ATTN_ERR_VALUE, "/inputs/text", "is empty"},
    {"{\"inputs\":{\"text\":[\"a\",7]}}", ATTN_ERR_FIELD, "/inputs/text/1", "a string of text"},
    {"{\"inputs\":{\"text\":[\"a\",\"b\"],\"pair\":\"c\"}}", ATTN_ERR_SHAPE, "/inputs/pair", "has 1 items"},
    {"{\"inputs\":{\"ids\":[1],\"pair\":\"c\"}}", ATTN_ERR_FIELD, "/inputs/pair", "a second segment of \"text\""},
    {"{\"inputs\":{\"text\":\"a\",\"target\":\"b\",\"target_ids\":[1]}}", ATTN_ERR_FIELD, "/inputs/target_ids",
     "give one of them"},
    {"{\"inputs\":{\"ids\":\"a\"}}", ATTN_ERR_FIELD, "/inputs/ids", "a list of ids"},
    {"{\"inputs\":{\"ids\":[1,-1]}}", ATTN_ERR_VALUE, "/inputs/ids/1", "from 0 to 2147483647"},
    {"{\"inputs\":{\"ids\":[1,1.5]}}", ATTN_ERR_VALUE, "/inputs/ids/1", "an integer"},
    {"{\"inputs\":{\"ids\":[2147483648]}}", ATTN_ERR_VALUE, "/inputs/ids/0", "from 0 to 2147483647"},
    {"{\"inputs\":{\"ids\":[[1],2]}}", ATTN_ERR_FIELD, "/inputs/ids/1", "a list of ids"},
    {"{\"inputs\":{\"ids\":[[1],[2,[]]]}}", ATTN_ERR_FIELD, "/inputs/ids/1/1", "an integer"},
    {"{\"inputs\":{\"pixels\":[[1]]}}", ATTN_ERR_SHAPE, "/inputs/pixels", "(batch, channels, height, width)"},
    {"{\"inputs\":{\"audio\":\"\"}}", ATTN_ERR_VALUE, "/inputs/audio", "is no WAV file"},
    {"{\"inputs\":{\"audio\":[\"UklGRg==\"]}}", ATTN_ERR_VALUE, "/inputs/audio/0", "is no WAV file"},
    {"{\"inputs\":{\"audio\":\"a b=\"}}", ATTN_ERR_VALUE, "/inputs/audio", "is not base64"},
    {"{\"inputs\":{\"audio\":[\"UklGRg==\",7]}}", ATTN_ERR_VALUE, "/inputs/audio/0", "is no WAV file"},
    {"{\"inputs\":{\"audio\":[[[1]]]}}", ATTN_ERR_SHAPE, "/inputs/audio", "(samples)"},
    {"{\"inputs\":{\"audio\":[]}}", ATTN_ERR_SHAPE, "/inputs/audio", "dimension of 0"},
    {"{\"inputs\":{\"features\":[1]}}", ATTN_ERR_SHAPE, "/inputs/features", "(mels, frames)"},
    {"{\"inputs\":{\"embeddings\":[1]}}", ATTN_ERR_SHAPE, "/inputs/embeddings", "received 1 dimensions"},
    {"{\"inputs\":{\"embeddings\":[]}}", ATTN_ERR_SHAPE, "/inputs/embeddings", ""},
    {A "[]}", ATTN_ERR_FIELD, "/options", "an object"},
    {A "{\"scale\":1}}", ATTN_ERR_FIELD, "/options/scale", ""},
    {A "{\"return\":[]}}", ATTN_ERR_VALUE, "/options/return", "is empty"},
    {A "{\"return\":[7]}}", ATTN_ERR_FIELD, "/options/return/0", "the name of a result"},
    {A "{\"return\":[\"hidden\\u0000\"]}}", ATTN_ERR_VALUE, "/options/return/0", "\"logit_lens\""},
    {A "{\"return\":[\"maps\"]}}", ATTN_ERR_VALUE, "/options/return/0", "\"logit_lens\""},
    {A "{\"layers\":[]}}", ATTN_ERR_VALUE, "/options/layers", "selects nothing"},
    {A "{\"layers\":{}}}", ATTN_ERR_FIELD, "/options/layers", "must have \"from\" and \"to\""},
    {A "{\"layers\":true}}", ATTN_ERR_FIELD, "/options/layers", "a list of indices and of ranges"},
    {A "{\"heads\":[0.5]}}", ATTN_ERR_VALUE, "/options/heads/0", "an integer"},
    {A "{\"ablate\":[[1]]}}", ATTN_ERR_FIELD, "/options/ablate/0", "a pair [layer, head]"},
    {A "{\"ablate\":[1,2]}}", ATTN_ERR_FIELD, "/options/ablate/0", "a pair [layer, head]"},
    {A "{\"ablate\":[[0,9999999]]}}", ATTN_ERR_VALUE, "/options/ablate/0/1", "to 1048576"},
    {A "{\"interventions\":{}}}", ATTN_ERR_FIELD, "/options/interventions", "a list of objects"},
    {A "{\"interventions\":[[]]}}", ATTN_ERR_FIELD, "/options/interventions/0", "an object with"},
    {A "{\"interventions\":[{\"at\":\"hidden\",\"do\":\"zero\",\"layers\":[]}]}}", ATTN_ERR_VALUE,
     "/options/interventions/0/layers", "selects nothing"},
    {A "{\"interventions\":[{\"at\":\"hidden\",\"do\":\"scale\",\"factor\":\"2\"}]}}", ATTN_ERR_FIELD,
     "/options/interventions/0/factor", "a number"},
    {A "{\"interventions\":[{\"at\":\"hidden\",\"do\":\"zero\",\"position\":1}]}}", ATTN_ERR_FIELD,
     "/options/interventions/0/position", ""},
    {A "{\"sweep\":[]}}", ATTN_ERR_FIELD, "/options/sweep", "an object with"},
    {A "{\"sweep\":{\"at\":\"hidden\",\"do\":\"zero\",\"over\":\"layer\"}}}", ATTN_ERR_FIELD, "/options/sweep/over",
     "[\"layer\""},
    {A "{\"sweep\":{\"at\":\"hidden\",\"do\":\"zero\",\"over\":[\"layer\"]}}}", ATTN_ERR_FIELD, "/options/sweep/over",
     "[\"layer\""},
    {A "{\"sweep\":{\"at\":\"hidden\",\"do\":\"zero\",\"over\":[\"layer\",7]}}}", ATTN_ERR_FIELD,
     "/options/sweep/over/1", ""},
    {A "{\"metric\":7}}", ATTN_ERR_FIELD, "/options/metric", "an object with"},
    {A "{\"metric\":{\"words\":\"next\"}}}", ATTN_ERR_FIELD, "/options/metric/words", "one or two texts"},
    {A "{\"metric\":{\"words\":[1],\"query\":\"a\"}}}", ATTN_ERR_FIELD, "/options/metric/query", ""},
    {A "{\"return\":[\"word_scores\"]}}", ATTN_ERR_FIELD, "/options/return", "needs options.words"},
    {A "{\"return\":[\"word_scores\"],\"words\":null}}", ATTN_ERR_FIELD, "/options/return", "needs options.words"},
    {A "{\"return\":[\"predictions\"],\"words\":[1]}}", ATTN_ERR_FIELD, "/options/words",
     "is for \"word_scores\", \"attribution\" and \"logit_lens\""},
    {A "{\"return\":[\"attribution\"]}}", ATTN_ERR_FIELD, "/options/return",
     "\"attribution\", which needs options.words"},
    {A "{\"return\":[\"word_scores\"],\"words\":\"Mary\"}}", ATTN_ERR_VALUE, "/options/words", "or \"next\""},
    {A "{\"return\":[\"word_scores\"],\"words\":[]}}", ATTN_ERR_VALUE, "/options/words", "is empty"},
    {A "{\"return\":[\"word_scores\"],\"words\":7}}", ATTN_ERR_FIELD, "/options/words", "or \"next\""},
    {A "{\"return\":[\"word_scores\"],\"words\":[[\"a\"]]}}", ATTN_ERR_FIELD, "/options/words/0",
     "a text of one token"},
    {A "{\"return\":[\"word_scores\"],\"words\":[-1]}}", ATTN_ERR_VALUE, "/options/words/0", "from 0 to 2147483647"},
    {A "{\"return\":[\"predictions\"],\"top_k\":3}}", ATTN_ERR_FIELD, "/options/top_k", "options.predictions_k"},
    {A "{\"max_length\":512}}", ATTN_ERR_FIELD, "/options/max_length", "options.truncate"},
    {A "{\"predictions_k\":0}}", ATTN_ERR_VALUE, "/options/predictions_k", "from 1 to 1000"},
    {A "{\"predictions_k\":1001}}", ATTN_ERR_VALUE, "/options/predictions_k", "from 1 to 1000"},
    {A "{\"new_tokens\":0}}", ATTN_ERR_VALUE, "/options/new_tokens", "from 1 to 4096"},
    {A "{\"new_tokens\":4097}}", ATTN_ERR_VALUE, "/options/new_tokens", "from 1 to 4096"},
    {A "{\"new_tokens\":2,\"stop\":\"\"}}", ATTN_ERR_VALUE, "/options/stop", "is empty"},
    {A "{\"new_tokens\":2,\"stop\":[true]}}", ATTN_ERR_FIELD, "/options/stop/0", "a text, or an id"},
    {A "{\"stop\":\"a\"}}", ATTN_ERR_FIELD, "/options/stop", "options.new_tokens"},
    {A "{\"return\":[\"generated\"]}}", ATTN_ERR_FIELD, "/options/return", "needs options.new_tokens"},
    {A "{\"new_tokens\":2,\"ablate\":[[0,0]]}}", ATTN_ERR_FIELD, "/options/ablate", "generate first"},
    {A "{\"top_p\":0.5}}", ATTN_ERR_FIELD, "/options/top_p", "neither samples nor searches"},
    {A "{\"truncate\":1}}", ATTN_ERR_FIELD, "/options/truncate", ""},
    {A "{\"view\":\"bertviz\",\"return\":[\"hidden\"]}}", ATTN_ERR_FIELD, "/options/return",
     "does not go with options.view"},
};

START_TEST(what_is_wrong_is_refused_by_name)
{
    check_refusal(&refusals[_i], decode_as(MODEL_REQUEST_ATTENTION, refusals[_i].text));
}
END_TEST

START_TEST(a_word_of_other_programs_is_explained_wherever_it_stands)
{
    static const char *const texts[] = {"{\"input_ids\":[1],\"inputs\":{\"text\":\"a\"}}",
                                        "{\"inputs\":{\"input_ids\":[1]}}", A "{\"inputIds\":[1]}}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        ck_assert_int_eq(decode_as(MODEL_REQUEST_ATTENTION, texts[i]), ATTN_ERR_FIELD);
        ck_assert_msg(strstr(err.message, "the word here is inputs.ids") != NULL, "%s", err.message);
    }
}
END_TEST

START_TEST(too_many_items_are_refused)
{
    enum { ITEMS = 4097 };
    char *text = attn_arena_take(arena, ITEMS * 4 + 64, 1), *at = text;
    at += sprintf(at, "{\"inputs\":{\"ids\":[");
    for (int i = 0; i < ITEMS; i++)
        at += sprintf(at, "%s[1]", i > 0 ? "," : "");
    sprintf(at, "]}}");
    ck_assert_int_eq(decode_as(MODEL_REQUEST_ATTENTION, text), ATTN_ERR_TOO_LARGE);
    ck_assert_str_eq(err.field, "/inputs/ids");
    ck_assert_ptr_nonnull(strstr(err.message, "at most 4096"));
}
END_TEST

static const struct refusal of_gradients[] = {
    {A "{}}", ATTN_ERR_FIELD, "/options", "has no \"metric\""},
    {"{\"inputs\":{\"text\":\"a\"}}", ATTN_ERR_FIELD, "/options", "has no \"metric\""},
    {A "{\"metric\":{\"words\":[]}}}", ATTN_ERR_VALUE, "/options/metric/words", "is empty"},
    {A "{\"metric\":{\"words\":[1]},\"return\":\"hidden\"}}", ATTN_ERR_FIELD, "/options/return",
     "is \"hidden\", which belongs to /attention"},
    {A "{\"metric\":{\"words\":[1]},\"return\":[\"entropy\"]}}", ATTN_ERR_VALUE, "/options/return/0",
     "\"attention_gradient\" or \"integrated\""},
    {A "{\"metric\":{\"words\":[1]},\"top_k\":2}}", ATTN_ERR_FIELD, "/options/top_k", "belongs to /attention"},
    {A "{\"metric\":{\"words\":[1]},\"sweep\":{}}}", ATTN_ERR_FIELD, "/options/sweep", "belongs to /attention"},
    {A "{\"metric\":{\"words\":[1]},\"steps\":4}}", ATTN_ERR_FIELD, "/options/steps", "is for \"integrated\""},
    {A "{\"metric\":{\"words\":[1]},\"return\":\"integrated\",\"steps\":1001}}", ATTN_ERR_VALUE, "/options/steps",
     "from 1 to 1000"},
    {A "{\"metric\":{\"words\":[1]},\"return\":\"integrated\",\"baseline\":\"mean\"}}", ATTN_ERR_VALUE,
     "/options/baseline", "\"zero\""},
};

START_TEST(a_request_for_gradients_has_a_metric_and_gradients)
{
    ck_assert_int_eq(decode_as(MODEL_REQUEST_GRADIENTS, A "{\"metric\":{\"words\":[1,\"b\"]},\"baseline\":\"pad\","
                                                          "\"return\":[\"embedding\",\"integrated\"]}}"),
                     ATTN_OK);
    ck_assert_uint_eq(request.results, 1U << MODEL_EMBEDDING | 1U << MODEL_INTEGRATED);
    ck_assert(request.steps == 50 && request.baseline == MODEL_BASELINE_PAD && !request.metric.has_query);
    for (size_t i = 0; i < COUNT(of_gradients); i++)
        check_refusal(&of_gradients[i], decode_as(MODEL_REQUEST_GRADIENTS, of_gradients[i].text));
    check_refusal(&(struct refusal){A "{\"return\":[\"integrated\"]}}", ATTN_ERR_FIELD, "/options/return/0",
                                    "belongs to /gradients"},
                  decode_as(MODEL_REQUEST_ATTENTION, A "{\"return\":[\"integrated\"]}}"));
}
END_TEST

static const struct refusal of_tokens[] = {
    {"{\"inputs\":{}}", ATTN_ERR_FIELD, "/inputs", "one of \"text\" and \"ids\""},
    {"{\"inputs\":{\"pixels\":[[[[1]]]]}}", ATTN_ERR_FIELD, "/inputs/pixels", "belongs to /attention"},
    {"{\"inputs\":{\"text\":\"a\",\"target\":\"b\"}}", ATTN_ERR_FIELD, "/inputs/target", "belongs to /attention"},
    {A "{\"layers\":[0]}}", ATTN_ERR_FIELD, "/options/layers", "belongs to /attention"},
};

START_TEST(a_request_for_tokens_has_no_maps)
{
    ck_assert_int_eq(decode_as(MODEL_REQUEST_TOKENS, A "{\"truncate\":true,\"special_tokens\":false}}"), ATTN_OK);
    ck_assert(request.truncate && !request.has_special_tokens);
    for (size_t i = 0; i < COUNT(of_tokens); i++)
        check_refusal(&of_tokens[i], decode_as(MODEL_REQUEST_TOKENS, of_tokens[i].text));
}
END_TEST

START_TEST(a_refused_block_of_memory_is_a_clean_failure)
{
    static const char *const texts[] = {
        "{\"inputs\":{\"text\":[\"a\",\"b\"],\"pair\":[\"c\",\"d\"],\"target\":[\"e\",\"f\"]}}",
        "{\"inputs\":{\"text\":\"a\"},\"options\":{\"layers\":[2,0,1],\"heads\":[1,0],\"ablate\":[[0,1]]}}",
        "{\"inputs\":{\"ids\":[[1],[2]],\"target_ids\":[[1,2],[3]]}}",
        "{\"inputs\":{\"pixels\":[[[[1,2]]]]}}",
        "{\"inputs\":{\"embeddings\":[[1,2]]}}",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        bool was_refused = true;
        for (size_t take = 0; was_refused; take++) {
            fail_take(take);
            const attn_status status = decode_as(MODEL_REQUEST_ATTENTION, texts[i]);
            was_refused = take_has_failed();
            ck_assert_msg(status == (was_refused ? ATTN_ERR_NO_MEMORY : ATTN_OK), "%s, block %zu: %s", texts[i], take,
                          err.message);
            ck_assert_int_eq(err.status, status);
        }
    }
}
END_TEST

CHECK_MAIN("model_request")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, one_text_is_a_batch_of_one);
    tcase_add_test(tests, a_list_of_texts_is_a_batch_and_never_a_pair);
    tcase_add_test(tests, a_long_text_is_not_shortened);
    tcase_add_test(tests, ids_are_one_list_or_ragged_lists);
    tcase_add_test(tests, tensors_of_one_item_get_the_axis_of_the_batch);
    tcase_add_test(tests, null_is_not_given);
    tcase_add_test(tests, without_options_attention_is_returned);
    tcase_add_test(tests, every_option_is_decoded);
    tcase_add_test(tests, every_result_and_every_step_has_its_name);
    tcase_add_test(tests, stops_are_texts_and_ids);
    tcase_add_test(tests, interventions_are_decoded_in_their_order);
    tcase_add_test(tests, words_are_texts_ids_or_the_next_ones);
    tcase_add_test(tests, indices_from_the_end_wait_for_the_plan);
    tcase_add_loop_test(tests, what_is_wrong_is_refused_by_name, 0, COUNT(refusals));
    tcase_add_test(tests, a_word_of_other_programs_is_explained_wherever_it_stands);
    tcase_add_test(tests, too_many_items_are_refused);
    tcase_add_test(tests, a_request_for_gradients_has_a_metric_and_gradients);
    tcase_add_test(tests, a_request_for_tokens_has_no_maps);
    tcase_add_test(tests, a_refused_block_of_memory_is_a_clean_failure);
}

/*
 * test_model_view.c: tests server/codec/model/view.c by the whole text of each view of a small model.
 */
#include "codec/model/forms.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

enum { LAYERS = 2, HEADS = 2 };

static attn_arena *arena;
static attn_runtime runtime;
static attn_error error;

static void set_up(void)
{
    arena = attn_arena_create((size_t)16 << 20);
    runtime = attn_runtime_serial(NULL);
}

static void tear_down(void)
{
    attn_arena_destroy(arena);
}

/* Layers 3 and 1, heads 4 and 5 of 8. All weights are multiples of 1/4, so that every text is short. */
struct view_stage {
    float weight[3][LAYERS * HEADS * 4];
    uint8_t allowed[LAYERS * HEADS * 4];
    struct model_answer answer;
    struct model_request request;
    struct model_view view;
};

static const size_t LAYER_NUMBERS[] = {3, 1};
static const char *const ENCODER_WORDS[] = {"the", "\"cat\""};
static const char *const DECODER_WORDS[] = {"<s>"};

static void add_output(struct view_stage *s, const char *name, void *data, attn_dtype dtype, size_t rows,
                       size_t columns)
{
    model_answer_add(&s->answer, name)->tensor =
        attn_tensor_view(data, dtype, 5, (size_t[]){LAYERS, 1, HEADS, rows, columns});
}

static void make_stage(struct view_stage *s, envelope_view view)
{
    static const float weights[] = {0.25F, 0.75F, 0.5F, 0.5F};
    memset(s, 0, sizeof *s);
    for (int part = 0; part < 3; part++)
        for (int n = 0; n < LAYERS * HEADS * 4; n++)
            s->weight[part][n] = weights[(n + n / 4 + part) % 4];
    for (int n = 0; n < LAYERS * HEADS * 4; n++)
        s->allowed[n] = n % 4 != 1;
    envelope_set_defaults(&s->request.common, ENVELOPE_LAYER);
    s->request.common.view = view;
    s->request.inputs.batch = 1;
    for (int part = 0; part < MODEL_PARTS_MAX; part++) {
        s->answer.shown[part].layers = (attn_selection){.items = LAYER_NUMBERS, .count = LAYERS};
        s->answer.shown[part].heads = (attn_selection){.first = 4, .count = HEADS};
    }
    s->view =
        (struct model_view){.request = &s->request,
                            .answer = &s->answer,
                            .labels = {{.texts = ENCODER_WORDS, .count = 2}, {.texts = DECODER_WORDS, .count = 1}},
                            .heads = 8};
}

/* A decoder of one word beside an encoder of two. */
static void make_both(struct view_stage *s, envelope_view view)
{
    make_stage(s, view);
    add_output(s, "encoder_attention", s->weight[0], ATTN_F32, 2, 2);
    add_output(s, "encoder_mask", s->allowed, ATTN_BOOL, 2, 2);
    add_output(s, "decoder_attention", s->weight[1], ATTN_F32, 1, 1);
    add_output(s, "decoder_mask", s->allowed, ATTN_BOOL, 1, 1);
    add_output(s, "cross_attention", s->weight[2], ATTN_F32, 1, 2);
    add_output(s, "cross_mask", s->allowed, ATTN_BOOL, 1, 2);
}

static void make_one(struct view_stage *s, envelope_view view)
{
    make_stage(s, view);
    add_output(s, "attention", s->weight[0], ATTN_F32, 2, 2);
    add_output(s, "mask", s->allowed, ATTN_BOOL, 2, 2);
}

static const char *text_of(const struct view_stage *s)
{
    struct chunks out = chunks_begin(arena);
    model_view_write(&s->view, &runtime, &out);
    ck_assert(out.is_ok);
    ck_assert_uint_le(out.total_bytes, model_view_bound(&s->view));
    return chunks_join(&out);
}

#define MAPS "[[[[0.25,0.75],[0.5,0.5]],[[0.75,0.5],[0.5,0.25]]],[[[0.5,0.5],[0.25,0.75]],[[0.5,0.25],[0.75,0.5]]]]"
#define PAIR "[\"the\",\"\\\"cat\\\"\"]"

START_TEST(bertviz_gets_all_layers_in_one_array)
{
    struct view_stage s;
    make_one(&s, ENVELOPE_VIEW_BERTVIZ);
    ck_assert_str_eq(text_of(&s), "{\"attention\":[{\"name\":null,\"attn\":" MAPS ",\"left_text\":" PAIR
                                  ",\"right_text\":" PAIR "}],\"default_filter\":\"0\",\"layer\":3,\"heads\":[0,1],"
                                  "\"include_layers\":[3,1],\"include_heads\":[4,5],\"total_heads\":8,"
                                  "\"display_mode\":\"dark\"}");
}
END_TEST

START_TEST(bertviz_gets_an_entry_for_each_part)
{
    struct view_stage s;
    make_both(&s, ENVELOPE_VIEW_BERTVIZ);
    ck_assert_str_eq(
        text_of(&s),
        "{\"attention\":["
        "{\"name\":\"Encoder\",\"attn\":" MAPS ",\"left_text\":" PAIR ",\"right_text\":" PAIR "},"
        "{\"name\":\"Decoder\",\"attn\":[[[[0.75]],[[0.5]]],[[[0.5]],[[0.25]]]],\"left_text\":[\"<s>\"],"
        "\"right_text\":[\"<s>\"]},"
        "{\"name\":\"Cross\",\"attn\":[[[[0.5,0.5]],[[0.25,0.75]]],[[[0.5,0.25]],[[0.75,0.5]]]],"
        "\"left_text\":[\"<s>\"],\"right_text\":" PAIR "}],"
        "\"default_filter\":\"0\",\"layer\":3,\"heads\":[0,1],\"include_layers\":[3,1],\"include_heads\":[4,5],"
        "\"total_heads\":8,\"display_mode\":\"dark\"}");
}
END_TEST

START_TEST(circuitsvis_gets_the_heads_of_each_layer)
{
    struct view_stage s;
    make_one(&s, ENVELOPE_VIEW_CIRCUITSVIS);
    ck_assert_str_eq(text_of(&s), "[{\"layer\":3,\"tokens\":" PAIR
                                  ",\"attention\":[[[0.25,0.75],[0.5,0.5]],[[0.75,0.5],[0.5,0.25]]]},"
                                  "{\"layer\":1,\"tokens\":" PAIR
                                  ",\"attention\":[[[0.5,0.5],[0.25,0.75]],[[0.5,0.25],[0.75,0.5]]]}]");
}
END_TEST

#define CHART_END                                                                                                      \
    ",\"chart_types\":[\"attention_matrix\",\"query_token_heatmap\",\"key_token_heatmap\",\"dimension_heatmap\"],"     \
    "\"dimensions\":[{\"name\":\"layer\"},{\"name\":\"head\"}]}"

START_TEST(inspectus_gets_each_map_with_its_numbers)
{
    struct view_stage s;
    make_one(&s, ENVELOPE_VIEW_INSPECTUS);
    ck_assert_str_eq(text_of(&s),
                     "{\"attention\":["
                     "{\"values\":\"AACAPgAAQD8AAAA/AAAAPw==\",\"info\":{\"layer\":3,\"head\":4},\"shape\":[2,2]},"
                     "{\"values\":\"AABAPwAAAD8AAAA/AACAPg==\",\"info\":{\"layer\":3,\"head\":5},\"shape\":[2,2]},"
                     "{\"values\":\"AAAAPwAAAD8AAIA+AABAPw==\",\"info\":{\"layer\":1,\"head\":4},\"shape\":[2,2]},"
                     "{\"values\":\"AAAAPwAAgD4AAEA/AAAAPw==\",\"info\":{\"layer\":1,\"head\":5},\"shape\":[2,2]}],"
                     "\"src_tokens\":" PAIR ",\"tgt_tokens\":" PAIR CHART_END);
}
END_TEST

START_TEST(inspectus_gets_a_chart_for_each_part)
{
    struct view_stage s;
    make_both(&s, ENVELOPE_VIEW_INSPECTUS);
    const char *text = text_of(&s);
    static const char *const pieces[] = {"{\"encoder\":{\"attention\":[{\"values\":\"AACAPgAAQD8AAAA/AAAAPw==\"",
                                         CHART_END ",\"decoder\":{\"attention\":[{\"values\":\"AABAPw==\"",
                                         "\"src_tokens\":[\"<s>\"],\"tgt_tokens\":[\"<s>\"]" CHART_END ",\"cross\":{",
                                         "\"src_tokens\":[\"<s>\"],\"tgt_tokens\":" PAIR CHART_END "}"};
    for (size_t i = 0; i < COUNT(pieces); i++)
        ck_assert_msg(strstr(text, pieces[i]) != NULL, "%s is not in %s", pieces[i], text);
}
END_TEST

START_TEST(rows_name_layer_and_part)
{
    struct view_stage s;
    make_one(&s, ENVELOPE_VIEW_ROWS);
    const char *start = "[{\"layer\":3,\"batch\":0,\"head\":4,\"query\":0,\"key\":0,\"query_token\":\"the\","
                        "\"key_token\":\"the\",\"weight\":0.25,\"allowed\":true},\n"
                        "{\"layer\":3,\"batch\":0,\"head\":4,\"query\":0,\"key\":1,\"query_token\":\"the\","
                        "\"key_token\":\"\\\"cat\\\"\",\"weight\":0.75,\"allowed\":false},\n";
    ck_assert_int_eq(strncmp(text_of(&s), start, strlen(start)), 0);
    make_both(&s, ENVELOPE_VIEW_ROWS);
    s.view.labels[1].texts = NULL;
    const char *end = "{\"part\":\"cross\",\"layer\":1,\"batch\":0,\"head\":5,\"query\":0,\"key\":1,"
                      "\"key_token\":\"\\\"cat\\\"\",\"weight\":0.5,\"allowed\":true}]";
    const char *text = text_of(&s);
    ck_assert_str_eq(text + strlen(text) - strlen(end), end);
}
END_TEST

START_TEST(tokens_without_words_are_numbered)
{
    struct view_stage s;
    make_one(&s, ENVELOPE_VIEW_CIRCUITSVIS);
    s.view.labels[0].texts = NULL;
    s.answer.shown[0].queries = (attn_selection){.first = 7, .count = 2};
    ck_assert_ptr_nonnull(strstr(text_of(&s), "\"tokens\":[\"7\",\"8\"]"));
}
END_TEST

static void expect_refused(struct view_stage *s, bool has_cross, const char *message)
{
    ck_assert_int_eq(model_view_prepare(&s->request, has_cross, &error), ATTN_ERR_SHAPE);
    ck_assert_str_eq(error.field, "/options/view");
    ck_assert_msg(strstr(error.message, message) != NULL, "\"%s\" is not in \"%s\"", message, error.message);
}

START_TEST(views_that_cannot_show_a_request_are_refused)
{
    struct view_stage s;
    make_one(&s, ENVELOPE_VIEW_BERTVIZ);
    ck_assert_int_eq(model_view_prepare(&s.request, true, &error), ATTN_OK);
    s.request.inputs.batch = 2;
    expect_refused(&s, false, "bertviz shows one batch item of a model, and there are 2: send one at a time");
    make_one(&s, ENVELOPE_VIEW_CIRCUITSVIS);
    ck_assert_int_eq(model_view_prepare(&s.request, false, &error), ATTN_OK);
    expect_refused(&s, true, "cross-attention has two");
    s.request.common.request.options.keys = (attn_selection){.first = 0, .count = 1};
    expect_refused(&s, false, "select the same of both");
    make_one(&s, ENVELOPE_VIEW_ROWS);
    ck_assert_int_eq(model_view_prepare(&s.request, true, &error), ATTN_OK);
    ck_assert(s.request.common.request.options.want >> ATTN_STEP_MASK & 1);
}
END_TEST

/* Every arena that is too small ends in out.is_ok false, never in a text that lacks something. */
START_TEST(shortage_of_memory_is_told)
{
    static const envelope_view views[] = {ENVELOPE_VIEW_BERTVIZ, ENVELOPE_VIEW_INSPECTUS, ENVELOPE_VIEW_ROWS};
    for (size_t v = 0; v < COUNT(views); v++) {
        struct view_stage s;
        make_both(&s, views[v]);
        const char *whole = text_of(&s);
        bool is_ok = false;
        for (size_t limit = 0; !is_ok; limit += 512) {
            attn_arena *small = attn_arena_create(limit);
            struct chunks out = chunks_begin(small);
            model_view_write(&s.view, &runtime, &out);
            is_ok = out.is_ok;
            ck_assert_uint_lt(limit, 1 << 20);
            ck_assert(!is_ok || out.total_bytes == strlen(whole));
            attn_arena_destroy(small);
        }
    }
}
END_TEST

CHECK_MAIN("model_view")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, bertviz_gets_all_layers_in_one_array);
    tcase_add_test(tests, bertviz_gets_an_entry_for_each_part);
    tcase_add_test(tests, circuitsvis_gets_the_heads_of_each_layer);
    tcase_add_test(tests, inspectus_gets_each_map_with_its_numbers);
    tcase_add_test(tests, inspectus_gets_a_chart_for_each_part);
    tcase_add_test(tests, rows_name_layer_and_part);
    tcase_add_test(tests, tokens_without_words_are_numbered);
    tcase_add_test(tests, views_that_cannot_show_a_request_are_refused);
    tcase_add_test(tests, shortage_of_memory_is_told);
}

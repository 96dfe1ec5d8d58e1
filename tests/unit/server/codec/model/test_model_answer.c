/*
 * test_model_answer.c: tests of server/codec/model/answer.c: the answer of a whole model as JSON and as a file.
 */
#include "codec/model/answer.h"

#include <string.h>

#include "check_main.h"
#include "codec/json/tree.h"

static attn_arena *arena;
static attn_runtime runtime;
static struct model_answer answer;
static float numbers[] = {0.5F, -1.25F, 3, 4, 5, 6};
static int64_t ids[] = {0, 1, 2, -1};

static void prepare(void)
{
    json_tree_prepare();
    arena = attn_arena_create(16 << 20);
    runtime = attn_runtime_serial(NULL);
    answer = (struct model_answer){.form = TENSOR_FORM_NESTED};
}

static void release(void)
{
    attn_arena_destroy(arena);
}

static const char *written_as(enum media media, size_t *length)
{
    struct chunks out = chunks_begin(arena);
    model_answer_write(&answer, media, &runtime, &out);
    ck_assert(out.is_ok);
    ck_assert_uint_le(out.total_bytes, model_answer_bound(&answer, media));
    *length = out.total_bytes;
    return chunks_join(&out);
}

static const char *written(void)
{
    size_t length;
    return written_as(MEDIA_JSON, &length);
}

static struct model_output *add(const char *name, attn_dtype dtype, void *data, size_t rows, size_t columns)
{
    struct model_output *output = model_answer_add(&answer, name);
    output->tensor = attn_tensor_view(data, dtype, 2, (const size_t[]){rows, columns});
    return output;
}

static struct text_span spell(void *context, int64_t id)
{
    static const struct text_span words[] = {{"a\0b", 3}, {"\"b\"\n", 4}, {"\xC4\xA0", 2}};
    ck_assert_ptr_eq(context, ids);
    return id >= 0 && id < 3 ? words[id] : (struct text_span){NULL, 0};
}

static void add_spelled(size_t rows, size_t columns)
{
    struct model_output *output = add("top.ids", ATTN_I64, ids, rows, columns);
    output->spellings[0] = (struct model_spelling){"top.tokens", spell, ids, columns * sizeof "\"a\\u0000b\""};
    output->spellings[1] = (struct model_spelling){"top.shown", spell, ids, columns * sizeof "\"a\\u0000b\""};
}

START_TEST(an_answer_without_outputs_is_two_empty_objects)
{
    ck_assert_str_eq(written(), "{\"outputs\":{},\"shapes\":{}}");
    ck_assert_ptr_null(model_answer_largest(&answer));
}
END_TEST

START_TEST(outputs_shapes_and_facts_stand_in_their_order)
{
    add("hidden", ATTN_F32, numbers, 1, 2);
    add("attention", ATTN_F32, numbers, 3, 2);
    model_answer_add_fact(&answer, "layers", "[0,2]");
    model_answer_add_fact(&answer, "lengths", "[6]");
    ck_assert_str_eq(written(), "{\"outputs\":{\"hidden\":[[0.5,-1.25]],\"attention\":[[0.5,-1.25],[3,4],[5,6]]},"
                                "\"shapes\":{\"hidden\":[1,2],\"attention\":[3,2]},\"layers\":[0,2],\"lengths\":[6]}");
    ck_assert_str_eq(model_answer_largest(&answer)->name, "attention");
}
END_TEST

START_TEST(names_with_a_dot_are_members_of_an_object_with_one_shape)
{
    add("top.ids", ATTN_I64, ids, 2, 2);
    add("top.weights", ATTN_F32, numbers, 2, 2);
    add("topmost.ids", ATTN_I64, ids, 1, 1);
    add("output", ATTN_F32, numbers, 1, 1);
    ck_assert_str_eq(written(), "{\"outputs\":{\"top\":{\"ids\":[[0,1],[2,-1]],\"weights\":[[0.5,-1.25],[3,4]]},"
                                "\"topmost\":{\"ids\":[[0]]},\"output\":[[0.5]]},"
                                "\"shapes\":{\"top\":[2,2],\"topmost\":[1,1],\"output\":[1,1]}}");
}
END_TEST

START_TEST(words_follow_their_ids_in_the_same_nesting)
{
    add_spelled(2, 2);
    add("top.probabilities", ATTN_F32, numbers, 2, 2);
    ck_assert_str_eq(written(), "{\"outputs\":{\"top\":{\"ids\":[[0,1],[2,-1]],"
                                "\"tokens\":[[\"a\\u0000b\",\"\\\"b\\\"\\n\"],[\"\xC4\xA0\",null]],"
                                "\"shown\":[[\"a\\u0000b\",\"\\\"b\\\"\\n\"],[\"\xC4\xA0\",null]],"
                                "\"probabilities\":[[0.5,-1.25],[3,4]]}},\"shapes\":{\"top\":[2,2]}}");
}
END_TEST

START_TEST(scores_of_hidden_keys_are_null)
{
    static float scores[] = {1, -__builtin_inff()};
    add("masked", ATTN_F32, scores, 1, 2)->has_scores = true;
    ck_assert_str_eq(written(), "{\"outputs\":{\"masked\":[[1,null]]},\"shapes\":{\"masked\":[1,2]}}");
}
END_TEST

START_TEST(form_and_digits_are_those_of_the_answer)
{
    static float third[] = {1.0F / 3, 2.0F / 3};
    answer.form = TENSOR_FORM_FLAT;
    answer.digits = 2;
    add("attention", ATTN_F32, third, 2, 1);
    const char *text = written();
    ck_assert_msg(strstr(text, "0.33") != NULL && strstr(text, "0.333") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "[[") == NULL, "%s", text);
}
END_TEST

START_TEST(a_file_has_every_tensor_and_the_facts)
{
    size_t length;
    add("top.ids", ATTN_I64, ids, 2, 2);
    add("attention", ATTN_F32, numbers, 3, 2);
    model_answer_add_fact(&answer, "layers", "[0,2]");
    const char *file = written_as(MEDIA_SAFETENSORS, &length);
    uint64_t header;
    memcpy(&header, file, sizeof header);
    ck_assert_uint_eq(length, 8 + header + sizeof ids + sizeof numbers);
    char *text = attn_arena_copy_text(arena, file + 8, header);
    ck_assert_msg(strstr(text, "\"top.ids\":{\"dtype\":\"I64\",\"shape\":[2,2]") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "\"attention\":{\"dtype\":\"F32\",\"shape\":[3,2]") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "\"layers\":\"[0,2]\"") != NULL, "%s", text);
}
END_TEST

START_TEST(a_file_has_the_words_in_its_metadata)
{
    size_t length;
    add_spelled(2, 2);
    const char *file = written_as(MEDIA_SAFETENSORS, &length);
#define WORDS "\"[[\\\"a\\\\u0000b\\\",\\\"\\\\\\\"b\\\\\\\"\\\\n\\\"],[\\\"\xC4\xA0\\\",null]]\""
    const char *words = "\"__metadata__\":{\"top.tokens\":" WORDS ",\"top.shown\":" WORDS "}";
    ck_assert_msg(strstr(file + 8, words) != NULL, "%s", file + 8);
}
END_TEST

START_TEST(every_form_is_within_its_bound)
{
    static const tensor_form forms[] = {TENSOR_FORM_NESTED, TENSOR_FORM_FLAT, TENSOR_FORM_BASE64};
    size_t length;
    static float wide[] = {-1.17549435e-38F, -3.40282347e+38F, -1.2345678e-30F};
    add("wide", ATTN_F32, wide, 3, 1);
    add_spelled(4, 1);
    for (size_t i = 0; i < COUNT(forms); i++) {
        answer.form = forms[i];
        (void)written();
    }
    (void)written_as(MEDIA_SAFETENSORS, &length);
}
END_TEST

START_TEST(too_little_memory_is_noticed)
{
    add_spelled(2, 2);
    for (size_t i = 0; i < 2; i++) {
        attn_arena *small = attn_arena_create(64);
        struct chunks out = chunks_begin(small);
        model_answer_write(&answer, i == 0 ? MEDIA_JSON : MEDIA_SAFETENSORS, &runtime, &out);
        ck_assert(!out.is_ok);
        attn_arena_destroy(small);
    }
}
END_TEST

CHECK_MAIN("model_answer")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, an_answer_without_outputs_is_two_empty_objects);
    tcase_add_test(tests, outputs_shapes_and_facts_stand_in_their_order);
    tcase_add_test(tests, names_with_a_dot_are_members_of_an_object_with_one_shape);
    tcase_add_test(tests, words_follow_their_ids_in_the_same_nesting);
    tcase_add_test(tests, scores_of_hidden_keys_are_null);
    tcase_add_test(tests, form_and_digits_are_those_of_the_answer);
    tcase_add_test(tests, a_file_has_every_tensor_and_the_facts);
    tcase_add_test(tests, a_file_has_the_words_in_its_metadata);
    tcase_add_test(tests, every_form_is_within_its_bound);
    tcase_add_test(tests, too_little_memory_is_noticed);
}

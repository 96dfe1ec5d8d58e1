/*
 * test_answer.c: tests of server/codec/answer/json.c and error.c.
 */
#include "codec/answer/forms.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/json/tree.h"

enum { ARENA_BYTES = 1 << 24 };

static attn_arena *arena;
static struct envelope envelope;
static attn_plan plan;
static attn_result result;
static attn_runtime runtime;

static void run_serially(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    for (size_t i = 0; i < tasks; i++)
        task(argument, i, 0);
}

/* The plan's masks, for its dimensions. */
static void set_masks(const attn_masks *masks)
{
    const attn_dims *d = &plan.dims;
    float numbers[64];
    const attn_tensor query = attn_tensor_view(numbers, ATTN_F32, 4, (size_t[]){d->batch, d->heads, d->q_len, d->d_k});
    const attn_tensor key = attn_tensor_view(numbers, ATTN_F32, 4, (size_t[]){d->batch, d->heads, d->kv_len, d->d_k});
    const attn_request request = {.inputs = {.query = &query, .key = &key}, .masks = *masks};
    attn_plan made;
    ck_assert_int_eq(attn_plan_make(&request, &made, NULL), ATTN_OK);
    plan.mask = made.mask;
    envelope.request.masks = *masks;
}

/* A result of one batch item, two heads, two queries and two keys, with nothing wanted. */
static void prepare(void)
{
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
    envelope = (struct envelope){.form = TENSOR_FORM_NESTED};
    plan = (attn_plan){
        .dims = {.batch = 1, .heads = 2, .kv_heads = 1, .q_len = 2, .kv_len = 2, .d_k = 4, .d_v = 3, .query_rank = 2},
        .scale = 0.5};
    set_masks(&(attn_masks){.causal = false});
    result = (attn_result){0};
    runtime = (attn_runtime){.kernel = attn_kernel_best(), .threads = 1, .run = run_serially};
}

static void destroy_arena(void)
{
    attn_arena_destroy(arena);
}

static void give(attn_step step, void *data, int rank, const size_t *shape)
{
    plan.want |= ATTN_STEP_BIT(step);
    result.step[step] = attn_tensor_view(data, ATTN_F32, rank, shape);
    plan.step[step] = attn_tensor_view(NULL, ATTN_F32, rank, shape);
}

static char *text_of(const struct chunks *chunks)
{
    char *text = attn_arena_take(arena, chunks->total_bytes + 1, 1), *to = text;
    ck_assert(chunks->is_ok && text);
    for (const struct chunk *chunk = chunks->first; chunk; chunk = chunk->next) {
        memcpy(to, chunk->data, chunk->length);
        to += chunk->length;
    }
    *to = '\0';
    return text;
}

static char *answer_text(void)
{
    struct chunks out = chunks_begin(arena);
    answer_write_json(&envelope, &plan, &result, &runtime, &out);
    ck_assert_uint_le(out.total_bytes, answer_bytes_bound(&envelope, &plan));
    return text_of(&out);
}

/* The answer as a tree; an answer is always strict JSON. */
static json_t *answer_tree(void)
{
    char *text = answer_text();
    json_error_t error;
    json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(tree != NULL, "%s: %s", error.text, text);
    return tree;
}

/* Compares the value at a path of member names, written with slashes, with JSON text; NULL: there is none. */
static void assert_at(const json_t *tree, const char *path, const char *expected)
{
    char names[200], *rest = names;
    snprintf(names, sizeof names, "%s", path);
    for (const char *name; (name = strsep(&rest, "/"));)
        tree = json_object_get(tree, name);
    if (!expected) {
        ck_assert_msg(!tree, "%s", path);
        return;
    }
    json_t *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(tree, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_msg(json_equal(wanted, tree), "%s is %s, not %s", path, text ? text : "absent", expected);
    json_tree_give_text(text);
    json_decref(wanted);
}

START_TEST(outputs_come_in_the_order_of_the_steps_with_their_shapes)
{
    float output[] = {1, 2.5f, 3, 4}, lse[] = {0.25f, -INFINITY, 1, 2};
    give(ATTN_STEP_OUTPUT, output, 2, (size_t[]){2, 2});
    give(ATTN_STEP_LSE, lse, 3, (size_t[]){1, 2, 2});
    char *text = answer_text();
    ck_assert_ptr_nonnull(strstr(text,
                                 "{\"outputs\":{\"lse\":[[[0.25,\"-Infinity\"],[1,2]]],\"output\":[[1,2.5],[3,4]]},"
                                 "\"shapes\":{\"lse\":[1,2,2],\"output\":[2,2]},\"effective\":{"));
}
END_TEST

START_TEST(a_masked_score_is_null_and_nothing_else_is)
{
    float map[] = {0.5f, -INFINITY, INFINITY, NAN};
    static const attn_step steps[] = {ATTN_STEP_SCORES, ATTN_STEP_SCALED, ATTN_STEP_MASKED, ATTN_STEP_CONTEXT};
    for (size_t i = 0; i < 4; i++)
        give(steps[i], map, 4, (size_t[]){1, 1, 2, 2});
    json_t *tree = answer_tree();
    const char *with_null = "[[[[0.5,null],[\"Infinity\",\"NaN\"]]]]";
    assert_at(tree, "outputs/scores", with_null);
    assert_at(tree, "outputs/scaled", with_null);
    assert_at(tree, "outputs/masked", with_null);
    assert_at(tree, "outputs/context", "[[[[0.5,\"-Infinity\"],[\"Infinity\",\"NaN\"]]]]");
    json_decref(tree);
}
END_TEST

START_TEST(effective_tells_what_was_used)
{
    json_t *tree = answer_tree();
    assert_at(tree, "effective/mechanism", "\"softmax\"");
    assert_at(tree, "effective/scale", "0.5");
    assert_at(tree, "effective/num_heads", "2");
    assert_at(tree, "effective/kv_num_heads", "1");
    assert_at(tree, "effective/d_k", "4");
    assert_at(tree, "effective/d_v", "3");
    assert_at(tree, "effective/batch", "1");
    assert_at(tree, "effective/q_len", "2");
    assert_at(tree, "effective/kv_len", "2");
    assert_at(tree, "effective/compute", "\"float32\"");
    ck_assert(json_is_string(json_object_get(json_object_get(tree, "effective"), "kernel")));
    static const char *const absent[] = {"causal_offset", "window",  "softcap", "layout", "residual",
                                         "norm",          "dropout", "heads",   "keys",   "queries"};
    for (size_t i = 0; i < COUNT(absent); i++) {
        char path[64];
        snprintf(path, sizeof path, "effective/%s", absent[i]);
        assert_at(tree, path, NULL);
    }
    assert_at(tree, "tokens", NULL);
    json_decref(tree);
}
END_TEST

START_TEST(effective_has_what_the_request_set)
{
    static const size_t items[] = {0, 5};
    attn_options *options = &envelope.request.options;
    envelope.request.is_layer = true;
    envelope.request.weights.layout = ATTN_LAYOUT_OUT_IN;
    *options = (attn_options){.softcap = 30,
                              .residual = true,
                              .norm = ATTN_NORM_RMS,
                              .norm_position = ATTN_NORM_PRE,
                              .norm_eps = 0.5,
                              .dropout_seed = 7,
                              .dropout_attention = true,
                              .dropout_residual = true,
                              .heads = {.items = items, .count = 2},
                              .queries = {.items = items, .count = 1},
                              .keys = {.items = items + 1, .count = 1}};
    envelope.has_dropout = true;
    envelope.dropout_p = 0.25;
    int64_t three = 3;
    const attn_tensor offset = attn_tensor_view(&three, ATTN_I64, 0, NULL);
    set_masks(&(attn_masks){
        .causal = true, .offset = &offset, .has_window = true, .window_left = 2, .window_right = ATTN_WINDOW_OPEN});
    json_t *tree = answer_tree();
    assert_at(tree, "effective/softcap", "30");
    assert_at(tree, "effective/layout", "\"out_in\"");
    assert_at(tree, "effective/residual", "true");
    assert_at(tree, "effective/norm/type", "\"rms\"");
    assert_at(tree, "effective/norm/position", "\"pre\"");
    assert_at(tree, "effective/norm/eps", "0.5");
    assert_at(tree, "effective/dropout/p", "0.25");
    assert_at(tree, "effective/dropout/seed", "7");
    assert_at(tree, "effective/dropout/where", "[\"attention\",\"residual\"]");
    assert_at(tree, "effective/dropout/active", "false");
    assert_at(tree, "effective/heads", "[0,5]");
    assert_at(tree, "effective/queries", "[0]");
    assert_at(tree, "effective/keys", "[5]");
    assert_at(tree, "effective/causal_offset", "3");
    assert_at(tree, "effective/window", "[2,null]");
    json_decref(tree);
}
END_TEST

START_TEST(slopes_that_the_core_chose_are_told)
{
    attn_options *options = &envelope.request.options;
    float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    attn_tensor table = attn_tensor_view(numbers, ATTN_F32, 2, (size_t[]){4, 2});
    options->alibi = true;
    options->relative_bias = (attn_relative_bias){.table = &table, .max_distance = 20};
    json_t *tree = answer_tree();
    assert_at(tree, "effective/alibi", "[0.0625,0.00390625]");
    assert_at(tree, "effective/relative_bias", "{\"num_buckets\":4,\"bidirectional\":false,\"max_distance\":20}");
    assert_at(tree, "effective/causal_offset", "0");
    json_decref(tree);
    options->alibi_slopes = &table;
    tree = answer_tree();
    assert_at(tree, "effective/alibi", NULL);
    json_decref(tree);
}
END_TEST

START_TEST(offsets_that_differ_by_batch_item_are_a_list)
{
    int64_t numbers[] = {1, -2};
    const attn_tensor offsets = attn_tensor_view(numbers, ATTN_I64, 1, (size_t[]){2});
    plan.dims.batch = 2;
    set_masks(&(attn_masks){.causal = true, .offset = &offsets});
    json_t *tree = answer_tree();
    assert_at(tree, "effective/causal_offset", "[1,-2]");
    json_decref(tree);
}
END_TEST

START_TEST(diagnostics_list_rows_without_keys)
{
    static const attn_row rows[] = {{0, 1, 0}, {0, 1, 1}};
    result.rows_without_keys = 5;
    result.empty_rows = rows;
    result.empty_rows_listed = 2;
    result.max_abs_score = 1.25;
    json_t *tree = answer_tree();
    assert_at(tree, "diagnostics/rows_without_keys", "[[0,1,0],[0,1,1]]");
    assert_at(tree, "diagnostics/rows_without_keys_count", "5");
    assert_at(tree, "diagnostics/max_abs_score", "1.25");
    json_decref(tree);
    result.max_abs_score = (double)INFINITY;
    tree = answer_tree();
    assert_at(tree, "diagnostics/max_abs_score", "\"Infinity\"");
    json_decref(tree);
}
END_TEST

START_TEST(tokens_are_echoed)
{
    envelope.query_tokens.json = "[\"a\",\"b\"]";
    json_t *tree = answer_tree();
    assert_at(tree, "tokens/query", "[\"a\",\"b\"]");
    assert_at(tree, "tokens/key", NULL);
    json_decref(tree);
    envelope.key_tokens.json = "[\"c\",\"d\"]";
    tree = answer_tree();
    assert_at(tree, "tokens/key", "[\"c\",\"d\"]");
    json_decref(tree);
}
END_TEST

START_TEST(the_bound_holds_for_the_longest_numbers)
{
    float values[64];
    for (size_t i = 0; i < 64; i++)
        values[i] = -1.17549435e-38f;
    attn_row rows[16];
    for (size_t i = 0; i < 16; i++)
        rows[i] = (attn_row){SIZE_MAX, SIZE_MAX, SIZE_MAX};
    give(ATTN_STEP_ATTENTION, values, 4, (size_t[]){1, 4, 4, 4});
    give(ATTN_STEP_OUTPUT, values, 2, (size_t[]){8, 8});
    result.empty_rows = rows;
    result.empty_rows_listed = 16;
    for (tensor_form form = TENSOR_FORM_NESTED; form <= TENSOR_FORM_BASE64; form++) {
        envelope.form = form;
        ck_assert_ptr_nonnull(answer_text()); /* which compares with the bound */
    }
}
END_TEST

START_TEST(a_bound_beyond_memory_saturates)
{
    envelope.request.options.heads = (attn_selection){.count = SIZE_MAX / 2};
    ck_assert_uint_eq(answer_bytes_bound(&envelope, &plan), SIZE_MAX);
}
END_TEST

START_TEST(a_small_arena_makes_the_answer_not_ok)
{
    attn_arena *small = attn_arena_create(1024);
    float output[1024] = {0};
    give(ATTN_STEP_OUTPUT, output, 2, (size_t[]){32, 32});
    struct chunks out = chunks_begin(small);
    answer_write_json(&envelope, &plan, &result, &runtime, &out);
    ck_assert(!out.is_ok);
    attn_arena_destroy(small);
}
END_TEST

static json_t *error_tree(const attn_error *error)
{
    struct chunks out = chunks_begin(arena);
    answer_write_error(error, "shape", "shapes disagree", 400, "id-1", &out);
    json_error_t why;
    json_t *tree = json_loads(text_of(&out), JSON_REJECT_DUPLICATES, &why);
    ck_assert_msg(tree != NULL, "%s", why.text);
    return tree;
}

START_TEST(an_error_has_all_its_parts)
{
    attn_error error;
    attn_fail(&error, ATTN_ERR_SHAPE, "/inputs/\"key\"", "key has %d \"features\"", 4);
    attn_expect(&error, "[3,3]", "[3,4]");
    json_t *tree = error_tree(&error);
    assert_at(tree, "error", "\"key has 4 \\\"features\\\"\"");
    assert_at(tree, "type", "\"/problems/shape\"");
    assert_at(tree, "title", "\"shapes disagree\"");
    assert_at(tree, "status", "400");
    assert_at(tree, "detail", "\"key has 4 \\\"features\\\"\"");
    assert_at(tree, "pointer", "\"/inputs/\\\"key\\\"\"");
    assert_at(tree, "expected", "[3,3]");
    assert_at(tree, "received", "[3,4]");
    assert_at(tree, "request_id", "\"id-1\"");
    assert_at(tree, "line", NULL);
    assert_at(tree, "column", NULL);
    json_decref(tree);
}
END_TEST

START_TEST(an_error_of_text_has_a_place_and_no_empty_parts)
{
    attn_error error;
    attn_fail(&error, ATTN_ERR_SYNTAX, NULL, "not JSON");
    error.line = 3;
    error.column = 14;
    json_t *tree = error_tree(&error);
    assert_at(tree, "line", "3");
    assert_at(tree, "column", "14");
    assert_at(tree, "detail", "\"not JSON (line 3, column 14)\"");
    assert_at(tree, "pointer", NULL);
    assert_at(tree, "expected", NULL);
    assert_at(tree, "received", NULL);
    json_decref(tree);
}
END_TEST

CHECK_MAIN("answer")
{
    tcase_add_checked_fixture(tests, prepare, destroy_arena);
    tcase_add_test(tests, outputs_come_in_the_order_of_the_steps_with_their_shapes);
    tcase_add_test(tests, a_masked_score_is_null_and_nothing_else_is);
    tcase_add_test(tests, effective_tells_what_was_used);
    tcase_add_test(tests, effective_has_what_the_request_set);
    tcase_add_test(tests, slopes_that_the_core_chose_are_told);
    tcase_add_test(tests, offsets_that_differ_by_batch_item_are_a_list);
    tcase_add_test(tests, diagnostics_list_rows_without_keys);
    tcase_add_test(tests, tokens_are_echoed);
    tcase_add_test(tests, the_bound_holds_for_the_longest_numbers);
    tcase_add_test(tests, a_bound_beyond_memory_saturates);
    tcase_add_test(tests, a_small_arena_makes_the_answer_not_ok);
    tcase_add_test(tests, an_error_has_all_its_parts);
    tcase_add_test(tests, an_error_of_text_has_a_place_and_no_empty_parts);
}

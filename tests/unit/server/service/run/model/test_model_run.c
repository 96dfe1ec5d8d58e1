/*
 * test_model_run.c: tests of server/service/run/model: plans and runs of small models. Every request must give the
 * bytes of one run that asks for everything, and a run must take no more memory than its plan says.
 */
#include <stdio.h>
#include <string.h>

#include "model_stage.h"
#include "shared.h"

static struct prepared_store *roomy;
static struct model_version *bert, *gpt2, *t5;

/* Versions of one model; the weights of only one are prepared, because a version serves one store. */
struct pair {
    struct model_version *plain, *prepared;
};

static void prepare(void)
{
    stage_begin();
    roomy = prepared_store_create(1 << 26);
    bert = open_model("tests/others/models/bert");
    gpt2 = open_model("tests/others/models/gpt2");
    t5 = open_model("tests/others/models/t5");
}

static void release(void)
{
    model_version_release(bert);
    model_version_release(gpt2);
    model_version_release(t5);
    prepared_store_destroy(roomy);
    stage_end();
}

static struct run *run_by(const struct model_version *version, const char *body, struct prepared_store *prepared,
                          const attn_runtime *runtime)
{
    struct run *run = attn_arena_take_zeroed(arena, 1, sizeof *run);
    const attn_status status = plan_and_run(run, version, body, prepared, runtime, arena);
    ck_assert_msg(status == ATTN_OK, "%s: %s: %s", body, err.field, err.message);
    return run;
}

static struct run *run_alone(const struct model_version *version, const char *body)
{
    const attn_runtime runtime = attn_runtime_serial(NULL);
    return run_by(version, body, none, &runtime);
}

/* ---- comparison with a run of everything ---- */

/* What each axis of an output counts: layers, states (the embeddings and layers), batch items, heads, queries, keys. */
static const struct {
    const char *name, *axes;
} outputs[] = {
    {"scores", "lbhqk"},
    {"scaled", "lbhqk"},
    {"masked", "lbhqk"},
    {"attention", "lbhqk"},
    {"contribution", "lbhqk"},
    {"mask", "lbhqk"},
    {"attention_mean", "lbqk"},
    {"hidden", "sb.."},
    {"output", "b.."},
    {"logits", "bq."},
    {"predictions.ids", "bq."},
    {"predictions.probabilities", "bq."},
    {"logit_lens.ids", "lbq."},
    {"logit_lens.probabilities", "lbq."},
    {"logit_lens.logits", "lbq."},
    {"logit_lens.log_probabilities", "lbq."},
    {"logit_lens.ranks", "lbq."},
    {"word_scores.logits", "bq."},
    {"word_scores.log_probabilities", "bq."},
    {"word_scores.ranks", "bq."},
    {"word_scores.perplexity", "b"},
    {"attribution.heads", "lbhq."},
    {"attribution.cross_heads", "lbhq."},
    {"attribution.feed_forward", "lbq."},
    {"attribution.embedding", "bq."},
    {"attribution.bias", "bq."},
    {"sweep.values", "b.."},
    {"sweep.unchanged", "b"},
};

/* All others begin with layers and items, and have no selections. */
static const char *axes_of(const char *name)
{
    static const char *const prefixes[] = {"encoder_", "decoder_", "cross_"};
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            name += strlen(prefixes[i]);
    for (size_t i = 0; i < COUNT(outputs); i++)
        if (strcmp(name, outputs[i].name) == 0)
            return outputs[i].axes;
    return "lb...";
}

static const struct model_output *find(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->answer.output_count; i++)
        if (strcmp(run->answer.outputs[i].name, name) == 0)
            return &run->answer.outputs[i];
    ck_abort_msg("no output %s", name);
}

static size_t index_in_whole(const struct run *run, const char *name, char axis, size_t index)
{
    const bool has_two = run->job.version->model.stack_count == 2;
    const size_t last = has_two && strncmp(name, "encoder_", 8) != 0 ? run->job.last_stack : 0;
    const struct model_selections *shown = &run->answer.shown[strncmp(name, "cross_", 6) == 0 ? 2 : last];
    const attn_selection *selection = axis == 'l' || axis == 's' ? &shown->layers
                                      : axis == 'h'              ? &shown->heads
                                      : axis == 'q'              ? &shown->queries
                                                                 : &shown->keys;
    if (strchr("lhqks", axis) == NULL || attn_selects_all(selection) || (axis == 's' && index == 0))
        return index;
    return axis == 's' ? attn_selected(selection, index - 1) + 1 : attn_selected(selection, index);
}

static const size_t EVERY_ITEM = SIZE_MAX;

/*
 * Compares every output with that of the whole run, number by number. item: whole is of this item alone, so that the
 * others are not compared, and what the item does not have is filled.
 */
static void check_same(const struct run *run, const struct run *whole, size_t item)
{
    for (size_t o = 0; o < run->answer.output_count; o++) {
        const struct model_output *got = &run->answer.outputs[o], *from = find(whole, got->name);
        const char *axes = axes_of(got->name);
        const size_t element = attn_dtype_bytes(got->tensor.dtype);
        const unsigned char filler = got->tensor.dtype == ATTN_I64 ? 0xff : 0;
        ck_assert_int_eq(got->tensor.rank, from->tensor.rank);
        ck_assert_int_eq(got->tensor.dtype, from->tensor.dtype);
        for (size_t n = 0; n < attn_tensor_count(&got->tensor); n++) {
            size_t rest = n, at = 0;
            bool is_other = false, is_filled = false;
            for (int axis = got->tensor.rank - 1; axis >= 0; axis--) {
                const size_t index = rest % got->tensor.shape[axis];
                size_t there = index_in_whole(run, got->name, axes[axis], index);
                rest /= got->tensor.shape[axis];
                if (axes[axis] == 'b' && item != EVERY_ITEM) {
                    is_other = index != item;
                    there = 0;
                }
                is_filled |= there >= from->tensor.shape[axis];
                at += there * (size_t)from->tensor.stride[axis];
            }
            if (is_other)
                continue;
            if (is_filled && item == EVERY_ITEM)
                ck_abort_msg("%s is larger than the whole", got->name);
            const unsigned char *number = (const unsigned char *)got->tensor.data + n * element;
            if (!is_filled && memcmp(number, (const char *)from->tensor.data + at * element, element) != 0)
                ck_abort_msg("%s: number %zu of %s differs", run->body, n, got->name);
            for (size_t b = 0; b < element && is_filled; b++)
                if (number[b] != filler)
                    ck_abort_msg("%s: number %zu is not filled", got->name, n);
        }
    }
}

#define STEPS                                                                                                          \
    "\"q\",\"k\",\"v\",\"scores\",\"scaled\",\"masked\",\"attention\",\"lse\",\"entropy\",\"context\",\"concat\","     \
    "\"projected\",\"contribution\",\"attention_mean\",\"mask\""
#define STATES "\"hidden\",\"output\""
#define WORDS  "\"logits\",\"predictions\",\"logit_lens\""
#define MAPS   "\"rollout\",\"head_scores\""

#define TEXTS "\"inputs\":{\"ids\":[[5,6,7,8,9,10],[11,12,5],[13,14,15,16]]}"
#define PAIRED                                                                                                         \
    "\"inputs\":{\"ids\":[[5,6,7,8,9,10],[11,12,5],[13,14,15,16]],"                                                    \
    "\"target_ids\":[[0,4,9],[0,4,9,7,6],[0]]}"

static const char everything[] = "{" TEXTS ",\"options\":{\"return\":[" STEPS "," STATES "," WORDS "," MAPS "]}}";
static const char everything_paired[] =
    "{" PAIRED ",\"options\":{\"return\":[" STEPS "," STATES "," WORDS "," MAPS "]}}";

/* Of one stack and of two; each returns and selects something else. */
static const char *const options[] = {
    "{}",
    "{\"return\":[\"entropy\"]}",
    "{\"return\":[" STATES "]}",
    "{\"return\":[" WORDS "]}",
    "{\"return\":[" MAPS "]}",
    "{\"return\":[\"logit_lens\"],\"layers\":[1]}",
    "{\"return\":[\"hidden\",\"attention\"],\"layers\":[1,0]}",
    "{\"return\":[" STATES ",\"rollout\"],\"layers\":[1]}",
    "{\"return\":[" STEPS "],\"heads\":[3,0,2]}",
    "{\"return\":[" STEPS "],\"heads\":[1,2]}",
    "{\"return\":[" STEPS "," WORDS "],\"queries\":[0]}",
    "{\"return\":[" STEPS "],\"keys\":[2,0]}",
    "{\"return\":[" STEPS "],\"keys\":[1,2]}",
    "{\"return\":[" STEPS "," MAPS "," WORDS "," STATES "],\"heads\":[2,1],\"queries\":[2,0],\"keys\":[1,0]}",
    "{\"return\":[" STEPS "," MAPS "],\"heads\":\"1-3\"}",
    "{\"return\":[" STEPS "," MAPS "," STATES "],\"layers\":[-1,0],\"heads\":[{\"from\":-3,\"to\":-2},0]}",
    "{\"return\":[" STEPS "," MAPS "],\"keys\":[0,1,2]}",
    "{\"return\":[\"contribution\",\"rollout\"],\"queries\":[1,2]}",
    "{\"return\":[\"attention_mean\",\"head_scores\"],\"heads\":[0],\"layers\":[1]}",
};

/* For models of one stack, whose longest item has six tokens. */
static const char *const long_options[] = {
    "{\"return\":[" STEPS "," MAPS "," WORDS "," STATES "],\"queries\":[5,1,3],\"keys\":[4,0]}",
    "{\"return\":[" STEPS "," WORDS "],\"queries\":[5,3],\"keys\":[4,5]}",
    "{\"return\":[" STEPS "," WORDS "],\"queries\":[4,5]}",
    "{\"return\":[" STEPS "," MAPS "],\"keys\":[5]}",
    "{\"return\":[" STEPS "," WORDS "," MAPS "],\"queries\":[-1,1],\"keys\":{\"from\":-3,\"to\":-2}}",
    "{\"return\":[\"hidden\",\"logit_lens\",\"attention\"],\"layers\":[2,0,1]}",
    "{\"return\":[\"hidden\",\"rollout\",\"head_scores\"],\"layers\":[1,2],\"keys\":[3,4]}",
};

static const char *body_of(const char *inputs, const char *of)
{
    const size_t length = strlen(inputs) + strlen(of) + 32;
    char *body = attn_arena_take(arena, length, 1);
    snprintf(body, length, "{%s,\"options\":%s}", inputs, of);
    return body;
}

/* Every request gives the same bytes by one thread and by two, and with prepared weights and without. */
static void check_request(const struct pair *pair, const char *body, const struct run *whole)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, &err);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime serial = attn_runtime_serial(NULL), parallel = attn_pool_runtime(pool, NULL);
    check_same(run_by(pair->plain, body, none, &serial), whole, EVERY_ITEM);
    check_same(run_by(pair->plain, body, none, &parallel), whole, EVERY_ITEM);
    check_same(run_by(pair->prepared, body, roomy, &serial), whole, EVERY_ITEM);
    check_same(run_by(pair->prepared, body, roomy, &parallel), whole, EVERY_ITEM);
    attn_pool_destroy(pool);
}

static struct pair open_pair(const char *path)
{
    return (struct pair){open_model(path), open_model(path)};
}

static void close_pair(const struct pair *pair)
{
    ck_assert_uint_eq(prepared_store_bytes(none), 0);
    ck_assert_uint_gt(prepared_store_bytes(roomy), 0);
    model_version_release(pair->plain);
    model_version_release(pair->prepared);
}

static void check_requests(const char *path, const char *inputs, const char *of_everything, const char *const *all,
                           size_t count)
{
    const struct pair pair = open_pair(path);
    const struct run *whole = run_alone(pair.plain, of_everything);
    check_request(&pair, of_everything, whole);
    for (size_t i = 0; i < count; i += one_in(2))
        check_request(&pair, body_of(inputs, all[i]), whole);
    close_pair(&pair);
}

START_TEST(whatever_is_asked_for_has_the_same_bytes)
{
    static const char *const paths[] = {"tests/others/models/bert", "tests/others/models/gpt2"};
    check_requests(paths[_i], TEXTS, everything, options, COUNT(options));
    check_requests(paths[_i], TEXTS, everything, long_options, COUNT(long_options));
}
END_TEST

START_TEST(the_same_holds_for_two_stacks)
{
    check_requests("tests/others/models/t5", PAIRED, everything_paired, options, COUNT(options));
}
END_TEST

#define GIVEN "\"word_scores\",\"attribution\",\"logit_lens\"],\"words\":"

/* Of each list, the first has everything. */
static const char *const given_words[][5] = {
    {"{\"return\":[" GIVEN "\"next\"}", "{\"return\":[\"word_scores\"],\"words\":\"next\",\"queries\":[-1,0]}",
     "{\"return\":[\"attribution\"],\"words\":\"next\",\"layers\":[1,0],\"heads\":[2,0],\"queries\":[2,0]}",
     "{\"return\":[\"logit_lens\"],\"words\":\"next\",\"layers\":[1]}",
     "{\"return\":[\"predictions\",\"attention\",\"hidden\"," GIVEN "\"next\",\"queries\":[2]}"},
    {"{\"return\":[" GIVEN "[9,4,4,11]}", "{\"return\":[\"word_scores\"],\"words\":[9,4,4,11],\"queries\":[1,0]}",
     "{\"return\":[\"attribution\"],\"words\":[9,4,4,11],\"heads\":\"1-2\",\"queries\":[1]}",
     "{\"return\":[\"logit_lens\"],\"words\":[9,4,4,11],\"layers\":[1,0]}",
     "{\"return\":[\"attention\"," GIVEN "[9,4,4,11],\"queries\":\"0-1\"}"},
};

START_TEST(given_words_have_the_same_bytes_whatever_is_asked_for)
{
    static const char *const paths[] = {"tests/others/models/bert", "tests/others/models/gpt2",
                                        "tests/others/models/t5"};
    for (size_t m = 0; m < COUNT(paths); m++) {
        const struct pair pair = open_pair(paths[m]);
        const char *inputs = m == 2 ? PAIRED : TEXTS;
        /* predictions, attention and hidden are compared elsewhere */
        const char *all = body_of(inputs, _i == 0 ? "{\"return\":[" STEPS "," STATES "," WORDS "," GIVEN "\"next\"}"
                                                  : "{\"return\":[" STEPS "," STATES "," WORDS "," GIVEN "[9,4,4,11]}");
        const struct run *whole = run_alone(pair.plain, all);
        for (size_t i = 0; i < COUNT(given_words[_i]); i++)
            check_request(&pair, body_of(inputs, given_words[_i][i]), whole);
        close_pair(&pair);
    }
}
END_TEST

/* One at each place; item 1 has numbers of items 0 and 2. PART is of models with two stacks. */
#define EDITS(PART)                                                                                                    \
    "\"interventions\":[{" PART "\"at\":\"hidden\",\"layers\":[1],\"do\":\"mean\"},"                                   \
    "{" PART "\"at\":\"attention\",\"layers\":[1,0],\"heads\":[3,1],\"queries\":[-1],\"keys\":[0],\"do\":\"mask\"},"   \
    "{" PART "\"at\":\"attention\",\"heads\":[2],\"queries\":[0,1],\"keys\":[1,0],\"do\":\"replace\",\"from\":0,"      \
    "\"items\":[1],\"from_queries\":[1,2]},"                                                                           \
    "{" PART "\"at\":\"context\",\"layers\":[1],\"queries\":[0],\"do\":\"replace\",\"from\":2,\"items\":[1,0]},"       \
    "{" PART "\"at\":\"attention_output\",\"do\":\"scale\",\"factor\":-0.5,\"queries\":[-1]},"                         \
    "{" PART "\"at\":\"feed_forward\",\"do\":\"zero\",\"items\":[2,0],\"layers\":[-1]}]"

static const char *with_edits(const char *of, bool has_two)
{
    const char *edits = has_two ? EDITS("\"part\":\"decoder\",") : EDITS("");
    const size_t length = strlen(of) + strlen(edits) + 2;
    char *whole = attn_arena_take(arena, length, 1);
    snprintf(whole, length, "{%s%s%s", edits, of[1] != '}' ? "," : "", of + 1);
    return whole;
}

/* Of three items, the last of which has two tokens at least: other inputs, because a target of PAIRED has one token. */
#define SOME_IDS "\"inputs\":{\"ids\":[[5,6,7,8,9,10],[11,12,5],[13,14,15,16]]"
static const char *const edited_inputs[] = {SOME_IDS "}", SOME_IDS "}",
                                            SOME_IDS ",\"target_ids\":[[0,4,9],[0,4,9,7,6],[0,3]]}"};

START_TEST(edits_have_the_same_bytes_whatever_is_asked_for)
{
    static const char *const paths[] = {"tests/others/models/bert", "tests/others/models/gpt2",
                                        "tests/others/models/t5"};
    const struct pair pair = open_pair(paths[_i]);
    const char *all =
        body_of(edited_inputs[_i], with_edits("{\"return\":[" STEPS "," STATES "," WORDS "," MAPS "]}", _i == 2));
    const struct run *whole = run_alone(pair.plain, all);
    check_request(&pair, all, whole);
    for (size_t i = (size_t)_i % one_in(3); i < COUNT(options); i += one_in(3))
        check_request(&pair, body_of(edited_inputs[_i], with_edits(options[i], _i == 2)), whole);
    close_pair(&pair);
}
END_TEST

START_TEST(an_item_of_a_batch_has_the_same_bytes_as_alone)
{
    static const char *const alone[] = {"[5,6,7,8,9,10]", "[11,12,5]", "[13,14,15,16]"};
    static const char *const targets[] = {"[0,4,9]", "[0,4,9,7,6]", "[0]"};
    char inputs[128];
    const struct run *const batches[] = {run_alone(bert, everything), run_alone(gpt2, everything),
                                         run_alone(t5, everything_paired)};
    const struct model_version *const versions[] = {bert, gpt2, t5};
    for (size_t m = 0; m < COUNT(versions); m++)
        for (size_t i = 0; i < COUNT(alone); i++) {
            snprintf(inputs, sizeof inputs, "\"inputs\":{\"ids\":%s%s%s}", alone[i], m == 2 ? ",\"target_ids\":" : "",
                     m == 2 ? targets[i] : "");
            const char *body = body_of(inputs, "{\"return\":[" STEPS "," STATES "," WORDS "," MAPS "]}");
            check_same(batches[m], run_alone(versions[m], body), i);
            check_same(run_alone(versions[m], body_of(m == 2 ? PAIRED : TEXTS, given_words[0][0])),
                       run_alone(versions[m], body_of(inputs, given_words[0][0])), i);
        }
}
END_TEST

/* ---- memory ---- */

/* A batch of lists of ids, two of them long, and of targets unless their length is 0. */
static const char *long_inputs(size_t length, size_t target_length)
{
    char *text = attn_arena_take(arena, 32 * (length + target_length) + 128, 1), *at = text;
    at += sprintf(at, "\"inputs\":{\"ids\":[[1],[");
    for (size_t i = 0; i < 2 * length; i++)
        at += sprintf(at, "%s%zu", i == length ? "],[" : i > 0 ? "," : "", 3 + i % 300);
    at += sprintf(at, "]]");
    if (target_length > 0)
        at += sprintf(at, ",\"target_ids\":[[0],[");
    for (size_t i = 0; i < 2 * target_length; i++)
        at += sprintf(at, "%s%zu", i == target_length ? "],[" : i > 0 ? "," : "", i % 300);
    sprintf(at, "%s}", target_length > 0 ? "]]" : "");
    return text;
}

static void check_memory(const struct model_version *version, const char *body, const attn_runtime *runtime)
{
    static struct run run;
    attn_arena *own = attn_arena_create(ROOMY_BYTES);
    attn_status status = plan_run(&run, version, body, none, runtime, own);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    const size_t before = attn_arena_bytes(own);
    status = model_job_run(&run.job);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    const size_t taken = attn_arena_peak_bytes(own) - before;
    ck_assert_msg((double)taken <= run.job.run_bytes, "%s: takes %zu bytes, planned %.0f", strstr(body, "options"),
                  taken, run.job.run_bytes);
    attn_arena_destroy(own);
}

#define SWEPT_BY(part)                                                                                                 \
    "{\"return\":[\"sweep\"],\"metric\":{\"words\":[3]},\"sweep\":{" part "\"at\":\"context\",\"over\":"               \
    "[\"layer\",\"head\"],\"do\":\"replace\",\"from\":2,\"items\":[1]}}"
#define SWEPT SWEPT_BY("")

#define SOME_WORDS "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32"
#define MANY_WORDS SOME_WORDS "," SOME_WORDS "," SOME_WORDS "," SOME_WORDS

static const char *const large_options[] = {
    "{}",
    "{\"layers\":[1]}",
    "{\"compute\":\"float64\"}",
    "{\"return\":[" STEPS "]}",
    "{\"return\":[" STATES "," WORDS "," MAPS "]}",
    "{\"return\":[" STATES "," WORDS "," MAPS "],\"compute\":\"float64\"}",
    "{\"return\":[\"predictions\"],\"predictions_k\":1000}",
    "{\"return\":[\"logit_lens\"],\"predictions_k\":1000}",
    "{\"return\":[\"logits\"]}",
    "{\"return\":[\"word_scores\"],\"words\":[" MANY_WORDS "]}",
    "{\"return\":[\"attribution\"],\"words\":[" MANY_WORDS "]}",
    SWEPT,
    "{\"return\":[" GIVEN "\"next\",\"compute\":\"float64\"}",
    "{\"return\":[\"rollout\"]}",
    "{\"return\":[\"hidden\"]}",
    "{\"return\":[\"attention\",\"rollout\"],\"heads\":[2,0],\"queries\":[9,1]}",
    "{\"return\":[\"attention\",\"contribution\"],\"keys\":[9,1]}",
    "{\"return\":[\"attention\",\"head_scores\"],\"pool\":{\"rows\":16,\"op\":\"mean\"}}",
    "{\"return\":[\"attention\",\"mask\"],\"top_k\":3}",
};

/* Item 1 has all numbers of item 2, which is as long. */
static const char *with_large_edits(const char *of, const char *part)
{
    static const char *const places[] = {"attention", "context", "attention_output"};
    char *whole = attn_arena_take(arena, strlen(of) + 2048, 1), *at = whole;
    at += sprintf(at, "{\"interventions\":[{%s\"at\":\"attention\",\"do\":\"mask\",\"keys\":[0]}", part);
    for (size_t i = 0; i < COUNT(places); i++)
        at += sprintf(
            at, ",{%s\"at\":\"%s\",\"do\":\"replace\",\"from\":2,\"items\":[1]},{%s\"at\":\"%s\",\"do\":\"mean\"}",
            part, places[i], part, places[i]);
    sprintf(at, "]%s%s", of[1] != '}' ? "," : "", of + 1);
    return whole;
}

START_TEST(a_run_takes_no_more_memory_than_planned)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, &err);
    const attn_runtime serial = attn_runtime_serial(NULL), parallel = attn_pool_runtime(pool, NULL);
    const char *asked = large_options[_i];
    const bool is_swept = strcmp(asked, SWEPT) == 0;
    const char *of_encoder = is_swept ? SWEPT_BY("\"part\":\"encoder\",") : asked,
               *of_cross = is_swept ? SWEPT_BY("\"part\":\"cross\",") : asked;
    const struct {
        const struct model_version *version;
        size_t length, target_length;
        const char *options;
        const attn_runtime *runtime;
    } runs[] = {
        {t5, 300, 250, of_encoder, &serial},
        {t5, 150, 400, of_cross, &parallel},
        {bert, 64, 0, asked, &serial},
        {gpt2, 40, 0, asked, &serial},
        {t5, 300, 250, with_large_edits(of_encoder, "\"part\":\"cross\","), &serial},
        {bert, 64, 0, with_large_edits(asked, ""), &parallel},
    };
    for (size_t i = (size_t)_i % one_in(6); i < COUNT(runs); i += one_in(6))
        check_memory(runs[i].version, body_of(long_inputs(runs[i].length, runs[i].target_length), runs[i].options),
                     runs[i].runtime);
    attn_pool_destroy(pool);
}
END_TEST

/* Long enough that every stage asks. */
static const char selected_paired[] = "{" PAIRED ",\"options\":{\"return\":[" STEPS "," STATES "," WORDS "," MAPS
                                      ",\"word_scores\",\"attribution\"],\"words\":\"next\","
                                      "\"heads\":[2,0],\"queries\":\"0-2\",\"keys\":[2,0],\"compute\":\"float64\"}}";
static const char edited_paired[] = "{" SOME_IDS ",\"target_ids\":[[0,4,9],[0,4,9,7,6],[0,3]]},\"options\":{" EDITS(
    "\"part\":\"decoder\",") ",\"return\":[\"attention\",\"hidden\"],\"heads\":[1]}}";
static const char swept[] =
    "{" SOME_IDS "},\"options\":{\"return\":[\"sweep\",\"attention\"],\"metric\":{\"words\":[3,4]},"
    "\"sweep\":{\"at\":\"hidden\",\"over\":[\"layer\",\"query\"],\"do\":\"replace\","
    "\"from\":0,\"queries\":[2,0]}}}";
static const char swept_paired[] =
    "{" SOME_IDS
    ",\"target_ids\":[[0,4,9],[0,4,9,7,6],[0,3]]},\"options\":{\"return\":[\"sweep\"],\"metric\":{\"words\":[3]},"
    "\"sweep\":{\"part\":\"encoder\",\"at\":\"hidden\",\"over\":[\"layer\",\"query\"],\"do\":\"mean\",\"layers\":[1]}}}";
static const char *const watched_bodies[] = {everything_paired, selected_paired, edited_paired, swept, swept_paired};

START_TEST(a_sweep_has_the_same_bytes_by_every_thread)
{
    const struct pair pair = open_pair("tests/others/models/gpt2");
    const struct run *whole = run_alone(pair.plain, swept);
    check_request(&pair, swept, whole);
    close_pair(&pair);
}
END_TEST

/* The residual before each layer is kept: a run begins at the changed layer. */
START_TEST(a_sweep_is_planned_for_less_than_six_tenths_of_its_runs)
{
    static struct run once, sweep;
    const attn_runtime runtime = attn_runtime_serial(NULL);
    const size_t tokens = 40, levels = gpt2->model.stacks[0].layers + 1;
    const char *inputs = long_inputs(tokens, 0);
    ck_assert_int_eq(
        plan_run(&once, gpt2, body_of(inputs, "{\"return\":[\"word_scores\"],\"words\":[3]}"), none, &runtime, arena),
        ATTN_OK);
    ck_assert_int_eq(
        plan_run(&sweep, gpt2,
                 body_of(inputs, "{\"return\":[\"sweep\"],\"metric\":{\"words\":[3]},\"sweep\":{\"at\":\"hidden\","
                                 "\"over\":[\"layer\",\"query\"],\"do\":\"zero\"}}"),
                 none, &runtime, arena),
        ATTN_OK);
    ck_assert_double_gt(sweep.job.time_flops, 0.3 * (double)(levels * tokens) * once.job.time_flops);
    ck_assert_double_lt(sweep.job.time_flops, 0.6 * (double)(levels * tokens) * once.job.time_flops);
}
END_TEST

static attn_status run_watched(struct run *run, size_t i, const attn_runtime *runtime, attn_arena *in)
{
    return plan_and_run(run, i == 3 ? gpt2 : t5, watched_bodies[i], none, runtime, in);
}

START_TEST(cancellation_is_noticed_at_every_look)
{
    cancel_at_every_look(run_watched, (size_t)_i, 41, 3 * (2 + 2 * 3)); /* each block of each item */
}
END_TEST

static const struct {
    const char *options;
    size_t times; /* the bytes of all outputs are written so many times, by filling, copying and selecting */
} filled[] = {
    {"{}", 2},
    {"{\"return\":[\"attention\"],\"compute\":\"float64\"}", 2},
    {"{\"return\":[\"hidden\"]}", 2},
    {"{\"return\":[\"logits\"]}", 1},
    {"{\"return\":[\"rollout\"]}", 2},
    {"{\"return\":[\"attention\",\"rollout\"],\"heads\":[0,1,2]}", 3},
};

/* Only the watch of the arena counts here: work in one thread, which no look of the core interrupts. */
START_TEST(large_outputs_are_filled_with_looks_between)
{
    static struct run run;
    const attn_runtime serial = attn_runtime_serial(NULL);
    attn_arena *own = attn_arena_create(ROOMY_BYTES);
    attn_status status = plan_run(&run, t5, body_of(long_inputs(700, 100), filled[_i].options), none, &serial, own);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    size_t bytes = 0;
    for (size_t i = 0; i < run.answer.output_count; i++)
        bytes +=
            attn_tensor_count(&run.answer.outputs[i].tensor) * attn_dtype_bytes(run.answer.outputs[i].tensor.dtype);
    ck_assert_uint_gt(bytes, 256 << 10);
    looks = 0;
    looks_allowed = SIZE_MAX;
    attn_arena_watch(own, is_cancelled, NULL);
    ck_assert_int_eq(model_job_run(&run.job), ATTN_OK);
    ck_assert_uint_ge(looks + 1, filled[_i].times * (bytes / (128 << 10))); /* each pass ends within a piece */
    attn_arena_destroy(own);
}
END_TEST

static attn_status run_refused(struct run *run, size_t i, const attn_runtime *runtime, attn_arena *in)
{
    static const char asking[] = "{" PAIRED ",\"options\":{\"return\":[" STEPS "," STATES "," WORDS "," MAPS
                                 ",\"word_scores\",\"attribution\"],\"words\":[\"the\",7],"
                                 "\"heads\":[2,0],\"queries\":\"0-2\",\"keys\":[2,0]}}";
    const char *const bodies[] = {asking, edited_paired, swept};
    return plan_and_run(run, i == 2 ? gpt2 : t5, bodies[i], none, runtime, in);
}

START_TEST(a_refused_block_of_memory_is_a_clean_failure)
{
    refuse_every_block(run_refused, (size_t)_i, 61);
}
END_TEST

/* ---- refusals ---- */

#define ZEROS ",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"

static const struct {
    const char *inputs, *options;
    attn_status status;
    const char *field, *part;
} refusals[] = {
    {TEXTS, "{\"layers\":[0,3]}", ATTN_ERR_VALUE, "/options/layers", "the last layer of the model is 2"},
    {TEXTS, "{\"layers\":[1,1,0]}", ATTN_ERR_VALUE, "/options/layers", "twice"},
    {TEXTS, "{\"heads\":[4]}", ATTN_ERR_VALUE, "/options/heads", "0 to 3"},
    {TEXTS, "{\"queries\":[6]}", ATTN_ERR_VALUE, "/options/queries", "0 to 5"},
    {TEXTS, "{\"keys\":[0,1,1]}", ATTN_ERR_VALUE, "/options/keys", "twice"},
    {TEXTS, "{\"layers\":[-4]}", ATTN_ERR_VALUE, "/options/layers", "options.layers has -4; they are numbered 0 to 2"},
    {TEXTS, "{\"heads\":[0,-5,-1]}", ATTN_ERR_VALUE, "/options/heads",
     "options.heads has -5; they are numbered 0 to 3"},
    {TEXTS, "{\"queries\":[-7,-1]}", ATTN_ERR_VALUE, "/options/queries", "has -7; they are numbered 0 to 5"},
    {TEXTS, "{\"keys\":[[0,-7]]}", ATTN_ERR_VALUE, "/options/keys", "has -7; they are numbered 0 to 5"},
    {TEXTS, "{\"interventions\":[{\"at\":\"hidden\",\"do\":\"zero\",\"layers\":[4]}]}", ATTN_ERR_VALUE,
     "/options/interventions/0/layers", "/options/interventions/0/layers has 4; they are numbered 0 to 3"},
    {TEXTS, "{\"ablate\":[[3,0]]}", ATTN_ERR_VALUE, "/options/ablate", "the last layer is 2, its last head 3"},
    {TEXTS, "{\"ablate\":[[0,-1]]}", ATTN_ERR_VALUE, "/options/ablate",
     "layer 0, head -1; the last layer is 2, its last head 3"},
    {TEXTS, "{\"ablate\":[[0,4]]}", ATTN_ERR_VALUE, "/options/ablate", "the last layer is 2, its last head 3"},
    {TEXTS, "{\"return\":[\"word_scores\"],\"words\":[3,420]}", ATTN_ERR_VALUE, "/options/words/1",
     "has the id 420; the head scores 0 to 419"},
    {TEXTS, "{\"return\":[\"word_scores\"],\"words\":[\"animal\"]}", ATTN_ERR_VALUE, "/options/words/0",
     "is 4 tokens, \"an\", \"##i\", \"##m\", \"##al\": give texts of one token"},
    {TEXTS, "{\"return\":[\"word_scores\"],\"words\":[\" \"]}", ATTN_ERR_VALUE, "/options/words/0", "is 0 tokens"},
    {TEXTS, "{\"return\":[\"word_scores\"],\"words\":[\"a\\u0000\"]}", ATTN_ERR_VALUE, "/options/words/0",
     "holds U+0000"},
    {"\"inputs\":{\"embeddings\":[[1" ZEROS "]]}", "{\"return\":[\"word_scores\"],\"words\":\"next\"}", ATTN_ERR_FIELD,
     "/options/words", "the inputs are no tokens"},
    {TEXTS, "{\"return\":[\"gated\"]}", ATTN_ERR_FIELD, "/options/return", "gate"},
};

START_TEST(what_the_model_does_not_have_is_refused)
{
    struct run *run = attn_arena_take_zeroed(arena, 1, sizeof *run);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    const char *body = body_of(refusals[_i].inputs, refusals[_i].options);
    const attn_status status = plan_run(run, bert, body, none, &runtime, arena);
    ck_assert_msg(status == refusals[_i].status, "%s: %s", body, err.message);
    ck_assert_str_eq(err.field, refusals[_i].field);
    ck_assert_msg(strstr(err.message, refusals[_i].part) != NULL, "%s", err.message);
}
END_TEST

START_TEST(words_of_two_stacks_need_a_target)
{
    struct run *run = attn_arena_take_zeroed(arena, 1, sizeof *run);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    ck_assert_int_eq(plan_run(run, t5, body_of(TEXTS, "{\"return\":[\"predictions\"]}"), none, &runtime, arena),
                     ATTN_ERR_FIELD);
    ck_assert_msg(strstr(err.message, "give inputs.target") != NULL, "%s", err.message);
}
END_TEST

/* ---- ablation and 16-bit weights ---- */

static const float *head_of(const struct run *run, const char *name, size_t layer, size_t head)
{
    const attn_tensor *tensor = &find(run, name)->tensor;
    return (const float *)tensor->data + layer * (size_t)tensor->stride[0] + head * (size_t)tensor->stride[2];
}

START_TEST(an_ablated_head_changes_only_the_layers_behind_it)
{
    static const char inputs[] = "\"inputs\":{\"ids\":[5,6,7]}";
    const struct run *whole = run_alone(gpt2, body_of(inputs, "{}"));
    const struct run *without =
        run_alone(gpt2, body_of(inputs, "{\"ablate\":[[1,2],[1,2]],\"return\":[\"attention\"]}"));
    const size_t map_bytes = 3 * 3 * sizeof(float);
    for (size_t head = 0; head < 4; head++) {
        for (size_t layer = 0; layer < 2; layer++)
            ck_assert_mem_eq(head_of(whole, "attention", layer, head), head_of(without, "attention", layer, head),
                             map_bytes);
        ck_assert_mem_ne(head_of(whole, "attention", 2, head), head_of(without, "attention", 2, head), map_bytes);
    }
}
END_TEST

START_TEST(weights_of_16_bits_give_the_same_bytes_prepared_and_not)
{
    char path[SHARED_PATH_MAX];
    if (!shared_has(path, "vectors/models/roberta"))
        return;
    const struct pair roberta = open_pair(path);
    const attn_runtime serial = attn_runtime_serial(NULL);
    check_request(&roberta, everything, run_alone(roberta.plain, everything));
    for (size_t i = 0; i < COUNT(large_options); i++)
        check_memory(roberta.plain, body_of(long_inputs(30, 0), large_options[i]), &serial);
    close_pair(&roberta);
}
END_TEST

CHECK_MAIN("model_run")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, whatever_is_asked_for_has_the_same_bytes, 0, 2);
    tcase_add_test(tests, the_same_holds_for_two_stacks);
    tcase_add_loop_test(tests, given_words_have_the_same_bytes_whatever_is_asked_for, 0, COUNT(given_words));
    tcase_add_loop_test(tests, edits_have_the_same_bytes_whatever_is_asked_for, 0, 3);
    tcase_add_test(tests, an_item_of_a_batch_has_the_same_bytes_as_alone);
    tcase_add_loop_test(tests, a_run_takes_no_more_memory_than_planned, 0, COUNT(large_options));
    tcase_add_loop_test(tests, cancellation_is_noticed_at_every_look, 0, COUNT(watched_bodies));
    tcase_add_loop_test(tests, large_outputs_are_filled_with_looks_between, 0, COUNT(filled));
    tcase_add_loop_test(tests, a_refused_block_of_memory_is_a_clean_failure, 0, 3);
    tcase_add_test(tests, a_sweep_has_the_same_bytes_by_every_thread);
    tcase_add_test(tests, a_sweep_is_planned_for_less_than_six_tenths_of_its_runs);
    tcase_add_loop_test(tests, what_the_model_does_not_have_is_refused, 0, COUNT(refusals));
    tcase_add_test(tests, words_of_two_stacks_need_a_target);
    tcase_add_test(tests, an_ablated_head_changes_only_the_layers_behind_it);
    tcase_add_test(tests, weights_of_16_bits_give_the_same_bytes_prepared_and_not);
}

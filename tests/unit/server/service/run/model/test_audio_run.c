/*
 * test_audio_run.c: plans and runs of a small model of audio, which is written into a folder: memory, cancellation, and the
 * same numbers whatever else is asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/tensor/safetensors.h"
#include "model_stage.h"
#include "random.h"

enum { WIDTH = 16, INNER = 24, LAYERS = 2, WORDS = 30, PLACES = 12, FRAMES = 40, MELS = 9, TENSORS_MAX = 128 };
static struct model_version *whisper;
static char folder[] = "/tmp/attnd-audio-XXXXXX";

/* ---- the folder ---- */

static struct safetensors_entry entries[TENSORS_MAX];
static size_t entry_count;
static random_source source;

static void add(const char *start, const char *end, int rank, const size_t *shape)
{
    char *name = attn_arena_take(arena, 128, 1);
    attn_tensor tensor = attn_tensor_view(NULL, ATTN_F32, rank, shape);
    const size_t count = attn_tensor_count(&tensor);
    float *numbers = attn_arena_take(arena, count, sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(0.3 * random_normal(&source));
    tensor.data = numbers;
    snprintf(name, 128, "%s%s", start, end);
    ck_assert_uint_lt(entry_count, TENSORS_MAX);
    entries[entry_count++] = (struct safetensors_entry){name, tensor};
}

static void add_linear(const char *start, const char *name, size_t rows, size_t columns)
{
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%.40s.weight", name);
    snprintf(bias, sizeof bias, "%.40s.bias", name);
    add(start, weight, columns > 0 ? 2 : 1, (const size_t[]){rows, columns});
    add(start, bias, 1, &rows);
}

static void add_attention(const char *layer, const char *name)
{
    static const char *const projections[] = {"q", "k", "v", "out"};
    char part[64];
    for (size_t i = 0; i < COUNT(projections); i++) {
        snprintf(part, sizeof part, "%s.%s_proj", name, projections[i]);
        add_linear(layer, part, WIDTH, WIDTH);
    }
    snprintf(part, sizeof part, "%s_layer_norm", name);
    add_linear(layer, part, WIDTH, 0);
}

static void add_stack(const char *stack, bool is_decoder, size_t places)
{
    char start[64];
    snprintf(start, sizeof start, "model.%s.", stack);
    add(start, "embed_positions.weight", 2, (const size_t[]){places, WIDTH});
    add_linear(start, "layer_norm", WIDTH, 0);
    for (int n = 0; n < LAYERS; n++) {
        snprintf(start, sizeof start, "model.%s.layers.%d.", stack, n);
        add_attention(start, "self_attn");
        if (is_decoder)
            add_attention(start, "encoder_attn");
        add_linear(start, "fc1", INNER, WIDTH);
        add_linear(start, "fc2", WIDTH, INNER);
        add_linear(start, "final_layer_norm", WIDTH, 0);
    }
}

static void write_file(const char *name, const char *bytes, size_t length)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void write_folder(void)
{
    static const char config[] =
        "{\"model_type\":\"whisper\",\"d_model\":16,\"encoder_layers\":2,\"decoder_layers\":2,\"num_mel_bins\":9,"
        "\"encoder_attention_heads\":4,\"decoder_attention_heads\":4,\"max_target_positions\":12,"
        "\"decoder_start_token_id\":29,\"eos_token_id\":28}";
    struct chunks out = chunks_begin(arena);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    source = random_seeded(1);
    add("model.decoder.", "embed_tokens.weight", 2, (const size_t[]){WORDS, WIDTH});
    add_stack("encoder", false, FRAMES / 2);
    add_stack("decoder", true, PLACES);
    add("model.encoder.", "conv1.weight", 3, (const size_t[]){WIDTH, MELS, 3});
    add("model.encoder.", "conv1.bias", 1, (const size_t[]){WIDTH});
    add("model.encoder.", "conv2.weight", 3, (const size_t[]){WIDTH, WIDTH, 3});
    add("model.encoder.", "conv2.bias", 1, (const size_t[]){WIDTH});
    safetensors_write(entries, entry_count, NULL, 0, &out);
    const char *bytes = chunks_join(&out);
    ck_assert_ptr_nonnull(bytes);
    write_file("config.json", config, sizeof config - 1);
    write_file("model.safetensors", bytes, out.total_bytes);
}

static void prepare(void)
{
    stage_begin();
    write_folder();
    whisper = open_model(folder);
}

static void release(void)
{
    char path[64];
    model_version_release(whisper);
    stage_end();
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i == 0 ? "config.json" : "model.safetensors");
        unlink(path);
    }
    rmdir(folder);
}

/* ---- runs ---- */

static attn_status plan(struct run *run, const char *body, const attn_runtime *runtime, attn_arena *in)
{
    return plan_run(run, whisper, body, none, runtime, in);
}

static const struct model_output *find(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->answer.output_count; i++)
        if (strcmp(run->answer.outputs[i].name, name) == 0)
            return &run->answer.outputs[i];
    return NULL;
}

#define INPUTS                                                                                                         \
    "\"inputs\":{\"audio\":[[0.1,0.5,-0.5,0.25,1,0,0.5],[1,-1,1,-1,0.5,0.5,0]],"                                       \
    "\"target_ids\":[[29,28,3,4,5,6,7],[1,29,28,28,9]]}"
#define EVERYTHING                                                                                                     \
    "[\"word_times\",\"features\",\"attention\",\"hidden\",\"logits\",\"predictions\",\"rollout\",\"head_scores\"]"

static const char *const bodies[] = {
    "{" INPUTS ",\"options\":{\"return\":" EVERYTHING "}}",
    "{" INPUTS ",\"options\":{\"return\":[\"word_times\",\"features\"]}}",
    "{" INPUTS ",\"options\":{\"return\":[\"word_times\",\"attention\"],\"heads\":[3],\"queries\":[1],\"layers\":[0]}}",
    "{" INPUTS ",\"options\":{\"return\":" EVERYTHING ",\"compute\":\"float64\"}}",
    "{" INPUTS ",\"options\":{\"return\":[\"logits\"]}}",
};

START_TEST(times_and_features_are_the_same_whatever_else_is_asked_for)
{
    static struct run whole, run;
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, &err);
    const attn_runtime serial = attn_runtime_serial(NULL), parallel = attn_pool_runtime(pool, NULL);
    ck_assert_int_eq(plan(&whole, bodies[0], &serial, arena), ATTN_OK);
    ck_assert_int_eq(model_job_run(&whole.job), ATTN_OK);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(plan(&run, bodies[i], &parallel, arena), ATTN_OK);
        ck_assert_int_eq(model_job_run(&run.job), ATTN_OK);
        static const char *const names[] = {"word_times.start", "word_times.end", "features"};
        for (size_t n = 0; n < COUNT(names); n++) {
            const struct model_output *there = find(&whole, names[n]), *here = find(&run, names[n]);
            ck_assert(there != NULL && (here != NULL || (i == 2 && n == 2)));
            if (here != NULL)
                ck_assert_mem_eq(here->tensor.data, there->tensor.data,
                                 attn_tensor_count(&there->tensor) * sizeof(float));
        }
    }
    attn_pool_destroy(pool);
}
END_TEST

/* Id 29 begins the text, and 28 and 29 are marks: the first words are the tokens 2 and 4. */
START_TEST(times_begin_behind_the_marks)
{
    static struct run run;
    const attn_runtime serial = attn_runtime_serial(NULL);
    ck_assert_int_eq(plan(&run, bodies[1], &serial, arena), ATTN_OK);
    ck_assert_int_eq(model_job_run(&run.job), ATTN_OK);
    const float *starts = find(&run, "word_times.start")->tensor.data,
                *ends = find(&run, "word_times.end")->tensor.data;
    for (size_t item = 0; item < 2; item++)
        for (size_t i = 0; i < 7; i++) {
            const bool has_time = item == 0 ? i >= 2 : i == 4;
            const size_t at = item * 7 + i;
            ck_assert_float_le(starts[at], ends[at]);
            if (!has_time)
                ck_assert_float_eq(ends[at], 0);
            if (has_time && i + 1 < 7 && item == 0)
                ck_assert_float_eq(ends[at], starts[at + 1]);
        }
    ck_assert_float_le(ends[6], 0.02F); /* one frame has sound */
}
END_TEST

START_TEST(a_run_takes_no_more_memory_than_planned)
{
    static struct run run;
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, &err);
    const attn_runtime runtimes[] = {attn_runtime_serial(NULL), attn_pool_runtime(pool, NULL)};
    for (size_t i = 0; i < COUNT(runtimes); i++) {
        attn_arena *own = attn_arena_create(ROOMY_BYTES);
        ck_assert_msg(plan(&run, bodies[_i], &runtimes[i], own) == ATTN_OK, "%s", err.message);
        const size_t before = attn_arena_bytes(own);
        ck_assert_int_eq(model_job_run(&run.job), ATTN_OK);
        const size_t taken = attn_arena_peak_bytes(own) - before;
        ck_assert_msg((double)taken <= run.job.run_bytes, "takes %zu bytes, planned %.0f", taken, run.job.run_bytes);
        attn_arena_destroy(own);
    }
    attn_pool_destroy(pool);
}
END_TEST

static attn_status run_body(struct run *run, size_t i, const attn_runtime *runtime, attn_arena *in)
{
    return plan_and_run(run, whisper, bodies[i], none, runtime, in);
}

START_TEST(cancellation_is_noticed_at_every_look)
{
    cancel_at_every_look(run_body, (size_t)_i, 13, 0);
}
END_TEST

START_TEST(a_refused_block_of_memory_is_a_clean_failure)
{
    refuse_every_block(run_body, (size_t)_i, 13);
}
END_TEST

CHECK_MAIN("audio_run")
{
    tcase_add_unchecked_fixture(tests, prepare, release);
    tcase_add_test(tests, times_and_features_are_the_same_whatever_else_is_asked_for);
    tcase_add_test(tests, times_begin_behind_the_marks);
    tcase_add_loop_test(tests, a_run_takes_no_more_memory_than_planned, 0, COUNT(bodies));
    tcase_add_loop_test(tests, cancellation_is_noticed_at_every_look, 0, 2);
    tcase_add_loop_test(tests, a_refused_block_of_memory_is_a_clean_failure, 0, 2);
}

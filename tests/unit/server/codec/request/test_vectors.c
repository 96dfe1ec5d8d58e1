/*
 * test_vectors.c: random requests through codec/request and every kernel of the core, against the numbers and error
 * bounds that the reference in Python has for them. tests/fuzz/vectors.py writes the file, and says what is in it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "codec/request/envelope.h"
#include "scene.h"

enum { ROOM = 512 << 20, STEPS_MAX = 32 };

struct head {
    uint32_t is_layer, text_bytes, rows_without_keys, steps;
};

/* A step as the reference has it: its numbers, and by how much each may be off. */
struct expected {
    struct {
        char name[24];
        uint64_t rank, shape[4];
    } about;
    size_t count;
    double *value, *error;
};

struct record {
    struct head head;
    char *text;
    struct expected step[STEPS_MAX];
};

static void *take(attn_arena *arena, size_t count, size_t size)
{
    void *taken = attn_arena_take(arena, count, size);
    ck_assert_ptr_nonnull(taken);
    return taken;
}

static void *read_into(attn_arena *arena, FILE *file, size_t count, size_t size)
{
    void *to = take(arena, count + 1, size);
    ck_assert_uint_eq(fread(to, size, count, file), count);
    return to;
}

/* false at the end of the file. */
static bool read_record(FILE *file, attn_arena *arena, struct record *record)
{
    if (fread(&record->head, sizeof record->head, 1, file) != 1)
        return false;
    ck_assert_uint_le(record->head.steps, STEPS_MAX);
    record->text = read_into(arena, file, record->head.text_bytes, 1);
    for (struct expected *step = record->step; step < record->step + record->head.steps; step++) {
        ck_assert_uint_eq(fread(&step->about, sizeof step->about, 1, file), 1);
        const uint64_t *shape = step->about.shape;
        step->count = shape[0] * shape[1] * shape[2] * shape[3];
        step->value = read_into(arena, file, step->count, sizeof(double));
        step->error = read_into(arena, file, step->count, sizeof(double));
    }
    return true;
}

static void expect_step(const attn_tensor *got, const struct expected *step, const char *where)
{
    ck_assert_msg((uint64_t)got->rank == step->about.rank, "%s has rank %d", where, got->rank);
    for (int axis = 0; axis < got->rank; axis++)
        ck_assert_msg(got->shape[axis] == step->about.shape[axis], "%s: axis %d", where, axis);
    for (size_t at = 0; at < step->count; at++) {
        const double wanted = step->value[at], number = tensor_get(got, at);
        const bool is_close = isfinite(wanted) ? fabs(number - wanted) <= step->error[at] : number == wanted;
        if (!is_close)
            ck_abort_msg("%s[%zu] is %.17g, not %.17g: off by %.3g, allowed %.3g", where, at, number, wanted,
                         fabs(number - wanted), step->error[at]);
    }
}

static void expect_steps(const struct record *record, const attn_plan *plan, const attn_result *result,
                         const char *where)
{
    ck_assert_msg(result->rows_without_keys == record->head.rows_without_keys, "%s: %zu rows without keys", where,
                  result->rows_without_keys);
    for (size_t s = 0; s < record->head.steps; s++) {
        char what[96];
        const attn_step step = attn_step_from_name(record->step[s].about.name);
        snprintf(what, sizeof what, "%s: %s", where, record->step[s].about.name);
        ck_assert_msg(plan->want >> step & 1, "%s is not wanted", what);
        expect_step(&result->step[step], &record->step[s], what);
    }
}

/* Selections that count from the end are settled by a first plan. */
static attn_status decode_and_plan(const struct record *record, attn_arena *arena, struct envelope *envelope,
                                   attn_plan *plan, attn_error *err)
{
    const envelope_kind kind = record->head.is_layer ? ENVELOPE_LAYER : ENVELOPE_ATTENTION;
    attn_status status = envelope_decode(record->text, record->head.text_bytes, kind, arena, envelope, err);
    if (status == ATTN_OK)
        status = envelope_plan(envelope, plan, err);
    if (status == ATTN_OK)
        status = index_lists_settle(&envelope->lists, plan->dims.heads, plan->dims.q_len, plan->dims.kv_len, arena,
                                    &envelope->request.options, err);
    return status == ATTN_OK ? envelope_plan(envelope, plan, err) : status;
}

static void expect_record(const struct record *record, size_t number, attn_arena *arena)
{
    struct envelope envelope;
    attn_plan plan;
    attn_error err = {0};
    const attn_kernel *kernel;
    attn_status status = decode_and_plan(record, arena, &envelope, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "request %zu: %s: %s", number, err.field, err.message);
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        attn_result result;
        const attn_runtime runtime = attn_runtime_serial(kernel);
        status = attn_plan_run(&plan, NULL, &runtime, arena, &result, &err);
        char where[64];
        snprintf(where, sizeof where, "request %zu, %s", number, attn_kernel_name(kernel));
        ck_assert_msg(status == ATTN_OK, "%s: %s", where, err.message);
        expect_steps(record, &plan, &result, where);
    }
}

START_TEST(every_kernel_computes_what_the_reference_does)
{
    struct record record;
    size_t records = 0;
    FILE *file = fopen(VECTORS, "rb");
    ck_assert_msg(file != NULL, "%s cannot be read", VECTORS);
    attn_arena *arena = attn_arena_create(ROOM);
    envelope_prepare();
    for (; read_record(file, arena, &record); records++, attn_arena_reset(arena))
        expect_record(&record, records, arena);
    ck_assert_uint_gt(records, 0);
    attn_arena_destroy(arena);
    fclose(file);
}
END_TEST

CHECK_MAIN("vectors")
{
    tcase_add_test(tests, every_kernel_computes_what_the_reference_does);
}

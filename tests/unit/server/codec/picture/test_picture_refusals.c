/*
 * test_picture_refusals.c: pictures that cannot be drawn, are cancelled, or find no memory.
 */
#include "failing_take.h"
#include "picture_stage.h"
#include "random.h"

static void expect(attn_status got, attn_status wanted, const char *field, const char *fragment)
{
    ck_assert_int_eq(got, wanted);
    ck_assert_int_eq(error.status, wanted);
    ck_assert_str_eq(error.field, field);
    ck_assert_msg(strstr(error.message, fragment) != NULL, "\"%s\" is not in \"%s\"", fragment, error.message);
}

static void expect_refused(const struct picture *picture, attn_status wanted, const char *field, const char *fragment)
{
    struct chunks out = chunks_begin(arena);
    struct picture_cost cost;
    expect(picture_write_png(picture, &fonts, &runtime, &out, &error), wanted, field, fragment);
    expect(picture_write_svg(picture, &fonts, &runtime, &out, &error), wanted, field, fragment);
    expect(picture_png_cost(picture, &cost, &error), wanted, field, fragment);
    expect(picture_svg_cost(picture, &cost, &error), wanted, field, fragment);
    ck_assert_uint_eq(out.total_bytes, 0);
}

START_TEST(what_is_not_there_is_refused)
{
    struct scenario s;
    make_scenario(&s);
    s.picture.options.head = 2;
    expect_refused(&s.picture, ATTN_ERR_VALUE, "?head", "head is 2; expected a head from 0 to 1, or all");
    s.picture.head_numbers = (size_t[]){4, 9};
    expect_refused(&s.picture, ATTN_ERR_VALUE, "?head", "one of the heads that options.heads selects");
    s.picture.options.head = PICTURE_ALL;
    s.picture.options.batch = 1;
    expect_refused(&s.picture, ATTN_ERR_VALUE, "?batch", "batch is 1; expected a batch item from 0 to 0, or all");
    s.picture.options.batch = PICTURE_ALL;
    s.weights_view.shape[1] = PICTURE_PANELS_MAX + 1;
    expect_refused(&s.picture, ATTN_ERR_TOO_LARGE, "?head", "1025 heads of 1 batch items");
    s.weights_view.shape[1] = 2;
    s.weights_view.shape[3] = 0;
    expect_refused(&s.picture, ATTN_ERR_SHAPE, "", "[1,2,3,0] has nothing to draw");
}
END_TEST

static bool after_some(void *context)
{
    return --*(int *)context < 0;
}

/* Cancelled when it is asked for the n-th time, from 0. */
static attn_status cancel_at(picture_writer *write, const struct picture *picture, int n)
{
    runtime.is_cancelled = after_some;
    runtime.cancel_context = &n;
    const attn_arena_mark before = attn_arena_mark_here(arena);
    struct chunks out = chunks_begin(arena);
    const attn_status status = write(picture, &fonts, &runtime, &out, &error);
    attn_arena_release(arena, before);
    if (status != ATTN_OK)
        expect(status, ATTN_ERR_CANCELLED, "", "cancelled");
    return status;
}

/* How many checks a drawing makes, at the least. */
static int cancel_each(picture_writer *write, const struct picture *picture)
{
    int n = 0;
    while (cancel_at(write, picture, n) == ATTN_ERR_CANCELLED)
        n += (int)one_in(7);
    return n;
}

START_TEST(a_cancelled_picture_ends_wherever_it_is_asked)
{
    struct scenario s;
    make_scenario(&s);
    ck_assert_int_ge(cancel_each(picture_write_png, &s.picture), 2 * HEADS);
    ck_assert_int_ge(cancel_each(picture_write_svg, &s.picture), 2 * HEADS);
}
END_TEST

/* One head whose weights are all the same number, by strides of 0. */
static void make_large(struct scenario *s, size_t side)
{
    make_scenario(s);
    s->picture = (struct picture){.weights = &s->weights_view, .options = s->picture.options};
    s->weights_view = (attn_tensor){.data = s->weight, .dtype = ATTN_F32, .rank = 4, .shape = {1, 1, side, side}};
}

/* Its weights are read twice: to find the largest, and to draw. */
START_TEST(a_large_head_is_cancelled_in_its_midst)
{
    enum { SIDE = 1024 };
    struct scenario s;
    make_large(&s, SIDE);
    for (int n = 0; n <= 2 * SIDE * SIDE >> 18; n++)
        ck_assert_int_eq(cancel_at(picture_write_svg, &s.picture, n), ATTN_ERR_CANCELLED);
}
END_TEST

static bool count_looks(void *context)
{
    ++*(int *)context;
    return false;
}

/* Most of the time goes into reading the weights of a large head: it is not one step. */
START_TEST(runtime_is_asked_within_a_head)
{
    enum { SIDE = 2048 };
    struct scenario s;
    make_large(&s, SIDE);
    int looks = 0;
    runtime.is_cancelled = count_looks;
    runtime.cancel_context = &looks;
    struct chunks out = chunks_begin(arena);
    expect(picture_write_svg(&s.picture, &fonts, &runtime, &out, &error), ATTN_OK, "", "");
    ck_assert_int_ge(looks, 2 * SIDE * SIDE >> 18);
}
END_TEST

/* Every try with less memory is a clean refusal. The first success gives the same bytes as a run with ample memory. */
static void walk_memory(picture_writer *write, picture_pricer *price, const struct picture *picture, size_t step)
{
    struct bytes plenty = write_by(write, price, picture);
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 0; status != ATTN_OK; limit += step) {
        ck_assert_uint_lt(limit, 64 << 20);
        attn_arena *small = attn_arena_create(limit);
        struct chunks out = chunks_begin(small);
        status = write(picture, &fonts, &runtime, &out, &error);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
        if (status == ATTN_OK) {
            ck_assert_uint_eq(out.total_bytes, plenty.length);
            ck_assert_mem_eq(join(&out).data, plenty.data, plenty.length);
        }
        attn_arena_destroy(small);
    }
}

START_TEST(shortage_of_memory_is_refused_cleanly)
{
    struct scenario s;
    make_scenario(&s);
    s.picture.options.scale = 1;
    s.picture.queries = (struct picture_axis){.labels = words + 6, .count = ROWS};
    walk_memory(picture_write_png, picture_png_cost, &s.picture, 4160);
    walk_memory(picture_write_svg, picture_svg_cost, &s.picture, 4160);
}
END_TEST

/* Refuses each block in turn, and grants all later ones: the result is a refusal, or the same bytes. */
static void refuse_each(picture_writer *write, picture_pricer *price, const struct picture *picture)
{
    const struct bytes plenty = write_by(write, price, picture);
    bool was_refused = true;
    for (size_t take = 0; was_refused; take++) {
        const attn_arena_mark before = attn_arena_mark_here(arena);
        struct chunks out = chunks_begin(arena);
        fail_take(take);
        const attn_status status = write(picture, &fonts, &runtime, &out, &error);
        was_refused = take_has_failed();
        if (status != ATTN_OK) {
            expect(status, ATTN_ERR_NO_MEMORY, "", "memory");
            ck_assert(was_refused);
        } else {
            const struct bytes all = join(&out);
            ck_assert(all.length == plenty.length && memcmp(all.data, plenty.data, all.length) == 0);
        }
        attn_arena_release(arena, before);
    }
}

/* More cells than the limit for rectangles, in an image that compresses badly. */
static const attn_tensor *make_noise(void)
{
    enum { SIDE = 120 };
    static attn_tensor noise;
    random_source random = random_seeded(5);
    float *weight = attn_arena_take(arena, SIDE * SIDE, sizeof *weight);
    ck_assert_ptr_nonnull(weight);
    for (int i = 0; i < SIDE * SIDE; i++)
        weight[i] = (float)random_below(&random, 1000) / 1000;
    noise = attn_tensor_view(weight, ATTN_F32, 4, (size_t[]){1, 1, SIDE, SIDE});
    return &noise;
}

START_TEST(a_picture_that_lacks_one_block_is_refused)
{
    struct scenario s;
    make_scenario(&s);
    s.picture.queries = (struct picture_axis){.labels = words + 6, .count = ROWS};
    refuse_each(picture_write_png, picture_png_cost, &s.picture);
    refuse_each(picture_write_svg, picture_svg_cost, &s.picture);
    refuse_each(picture_write_svg, picture_svg_cost,
                &(struct picture){.weights = make_noise(), .options = s.picture.options});
}
END_TEST

/* ---- a libpng that flushes what it writes, which ours never does ---- */

static bool flushes;

void __real_png_set_write_fn(png_structrp png, png_voidp context, png_rw_ptr write, png_flush_ptr flush);
void __wrap_png_set_write_fn(png_structrp png, png_voidp context, png_rw_ptr write, png_flush_ptr flush);

void __wrap_png_set_write_fn(png_structrp png, png_voidp context, png_rw_ptr write, png_flush_ptr flush)
{
    __real_png_set_write_fn(png, context, write, flush);
    ck_assert_msg(flush != NULL, "libpng's own, in its place, would take the context for a FILE");
    if (flushes)
        flush(png);
}

START_TEST(a_library_that_flushes_changes_no_picture)
{
    struct scenario s;
    make_scenario(&s);
    const struct bytes plain = write_by(picture_write_png, picture_png_cost, &s.picture);
    flushes = true;
    const struct bytes flushed = write_by(picture_write_png, picture_png_cost, &s.picture);
    ck_assert_uint_eq(plain.length, flushed.length);
    ck_assert_mem_eq(plain.data, flushed.data, plain.length);
}
END_TEST

CHECK_MAIN("picture_refusals")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_is_not_there_is_refused);
    tcase_add_test(tests, a_cancelled_picture_ends_wherever_it_is_asked);
    tcase_add_test(tests, a_large_head_is_cancelled_in_its_midst);
    tcase_add_test(tests, runtime_is_asked_within_a_head);
    tcase_add_test(tests, shortage_of_memory_is_refused_cleanly);
    tcase_add_test(tests, a_picture_that_lacks_one_block_is_refused);
    tcase_add_test(tests, a_library_that_flushes_changes_no_picture);
}

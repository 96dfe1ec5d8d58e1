/* test_gemm.c: the products of a layer, by every kernel and by the BLAS, against sums in long double. */
#include "gemm/gemm.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/arena.h"
#include "check_main.h"
#include "closeness.h"
#include "kernel/entries.h"
#include "random.h"

/* One product with its numbers; y starts as NaN, and has GAP columns more than are written. */
typedef struct {
    attn_dtype dtype;
    attn_layout layout;
    size_t batch, rows, columns, inner, w_stride, y_stride, cache_ways;
    char *x, *w, *bias, *y;
} product_case;
enum { GAP = 3 };

static double get(const product_case *c, const char *from, size_t n)
{
    return c->dtype == ATTN_F32 ? (double)((const float *)from)[n] : ((const double *)from)[n];
}

static char *numbers(const product_case *c, size_t count, random_source *source)
{
    char *to = malloc(count * attn_dtype_bytes(c->dtype) + 1);
    ck_assert_ptr_nonnull(to);
    for (size_t n = 0; n < count; n++) {
        const double value = source == NULL ? (double)NAN : random_normal(source);
        if (c->dtype == ATTN_F32)
            ((float *)to)[n] = (float)value;
        else
            ((double *)to)[n] = value;
    }
    return to;
}

static product_case case_create(attn_dtype dtype, attn_layout layout, size_t batch, size_t rows, size_t columns,
                                size_t inner)
{
    random_source source = random_seeded(rows * 1000003 + columns * 1009 + inner);
    product_case c = {
        .dtype = dtype, .layout = layout, .batch = batch, .rows = rows, .columns = columns, .inner = inner};
    c.w_stride = (layout == ATTN_LAYOUT_IN_OUT ? columns : inner) + GAP;
    c.y_stride = columns + GAP;
    c.x = numbers(&c, batch * rows * inner, &source);
    c.w = numbers(&c, (layout == ATTN_LAYOUT_IN_OUT ? inner : columns) * c.w_stride, &source);
    c.bias = rows % 2 == 0 ? NULL : numbers(&c, columns, &source);
    c.y = numbers(&c, batch * rows * c.y_stride, NULL);
    return c;
}

static void case_destroy(const product_case *c)
{
    free(c->x);
    free(c->w);
    free(c->bias);
    free(c->y);
}

static size_t y_bytes(const product_case *c)
{
    return c->batch * c->rows * c->y_stride * attn_dtype_bytes(c->dtype);
}

/* A block of the case by the kernel's own product. */
static void run_block(const product_case *c, const attn_kernel *kernel, size_t row, size_t rows, size_t column,
                      size_t columns)
{
    const size_t element = attn_dtype_bytes(c->dtype);
    const size_t w = c->layout == ATTN_LAYOUT_IN_OUT ? column : column * c->w_stride;
    const struct attn_gemm_block block = {.x = c->x + row * c->inner * element,
                                          .w = c->w + w * element,
                                          .dtype = c->dtype,
                                          .bias = c->bias == NULL ? NULL : c->bias + column * element,
                                          .y = c->y + (row * c->y_stride + column) * element,
                                          .rows = rows,
                                          .columns = columns,
                                          .inner = c->inner,
                                          .x_stride = c->inner,
                                          .w_stride = c->w_stride,
                                          .y_stride = c->y_stride,
                                          .cache_ways = c->cache_ways,
                                          .layout = c->layout};
    void *scratch = aligned_alloc(ATTN_ALIGNMENT, attn_products_scratch_bytes(NULL, c->dtype, 0));
    ck_assert_ptr_nonnull(scratch);
    for (size_t first = 0; first < c->inner; first += GEMM_INNER)
        attn_kernel_of(kernel, c->dtype)->multiply(&block, first, scratch);
    free(scratch);
}

/* The path of a layer: through tasks. */
static void run_product(const product_case *c, const attn_runtime *runtime)
{
    struct attn_product product = {.x = c->x,
                                   .w = c->w,
                                   .bias = c->bias,
                                   .y = c->y,
                                   .dtype = c->dtype,
                                   .batch = c->batch,
                                   .rows = c->rows,
                                   .columns = c->columns,
                                   .inner = c->inner,
                                   .w_stride = c->w_stride,
                                   .y_stride = c->y_stride};
    char *scratch = aligned_alloc(ATTN_ALIGNMENT, runtime->threads * attn_products_scratch_bytes(NULL, c->dtype, 0));
    ck_assert_ptr_nonnull(scratch);
    attn_products_run(&product, 1, c->dtype, c->layout, runtime, scratch);
    free(scratch);
}

/* In any order, the error of a sum of n products is at most n + 2 roundings of its largest partial sum. */
static void expect_right(const product_case *c, const char *what)
{
    for (size_t row = 0; row < c->batch * c->rows; row++)
        for (size_t column = 0; column < c->y_stride; column++) {
            const double got = get(c, c->y, row * c->y_stride + column);
            if (column >= c->columns) {
                ck_assert_msg(isnan(got), "%s: row %zu is written beyond its end", what, row);
                continue;
            }
            long double sum = c->bias == NULL ? 0 : (long double)get(c, c->bias, column), size = fabsl(sum);
            for (size_t d = 0; d < c->inner; d++) {
                const bool is_in_out = c->layout == ATTN_LAYOUT_IN_OUT;
                const double w = get(c, c->w, is_in_out ? d * c->w_stride + column : column * c->w_stride + d);
                const long double part = (long double)get(c, c->x, row * c->inner + d) * (long double)w;
                sum += part;
                size += fabsl(part);
            }
            const long double most = (long double)((double)(c->inner + 2) * unit_roundoff(c->dtype)) * size;
            if (!(fabsl((long double)got - sum) <= most))
                ck_abort_msg("%s: (%zu, %zu) of %zux%zux%zu is %g, not %Lg", what, row, column, c->rows, c->inner,
                             c->columns, got, sum);
        }
}

static const struct {
    size_t rows, columns, inner;
} shapes[] = {{1, 1, 1},     {1, 128, 300}, {2, 33, 257},  {3, 128, 64},   {5, 7, 1024},  {11, 96, 9},
              {12, 32, 256}, {13, 40, 512}, {49, 127, 70}, {264, 128, 17}, {25, 40, 1024}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The case of variant v: every shape in both types and both layouts. */
static product_case varied_case(size_t v, size_t batch)
{
    return case_create(v % 2 == 0 ? ATTN_F32 : ATTN_F64, v / 2 % 2 == 0 ? ATTN_LAYOUT_IN_OUT : ATTN_LAYOUT_OUT_IN,
                       batch, shapes[v / 4].rows, shapes[v / 4].columns, shapes[v / 4].inner);
}
enum { VARIANTS = 4 * SHAPES };

START_TEST(every_kernel_multiplies_right)
{
    const attn_kernel *kernel;
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            product_case c = varied_case(v, 1);
            run_block(&c, kernel, 0, c.rows, 0, c.columns);
            expect_right(&c, attn_kernel_name(kernel));
            case_destroy(&c);
        }
}
END_TEST

/* Row by row, and columns in two parts that begin anywhere: the same bytes as all at once. */
START_TEST(blocks_change_no_bit)
{
    const attn_kernel *kernel;
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            product_case whole = varied_case(v, 1), parts = varied_case(v, 1);
            const size_t some = (parts.columns + 2) / 3;
            run_block(&whole, kernel, 0, whole.rows, 0, whole.columns);
            for (size_t row = 0; row < parts.rows; row++) {
                run_block(&parts, kernel, row, 1, 0, some);
                if (some < parts.columns)
                    run_block(&parts, kernel, row, 1, some, parts.columns - some);
            }
            ck_assert_msg(memcmp(whole.y, parts.y, y_bytes(&whole)) == 0, "%s, variant %zu", attn_kernel_name(kernel),
                          v);
            case_destroy(&whole);
            case_destroy(&parts);
        }
}
END_TEST

/* Rows of 4096 bytes are copied, unless a set of the cache has room for a register tile. */
START_TEST(ways_of_the_cache_change_no_bit)
{
    const attn_kernel *kernel;
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            product_case few = varied_case(v, 1), many = varied_case(v, 1);
            many.cache_ways = 64;
            run_block(&few, kernel, 0, few.rows, 0, few.columns);
            run_block(&many, kernel, 0, many.rows, 0, many.columns);
            ck_assert_msg(memcmp(few.y, many.y, y_bytes(&few)) == 0, "%s, variant %zu", attn_kernel_name(kernel), v);
            case_destroy(&few);
            case_destroy(&many);
        }
}
END_TEST

START_TEST(products_are_right_whoever_multiplies)
{
    const attn_kernel *kernel;
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            const attn_runtime runtime = attn_runtime_serial(kernel);
            product_case c = varied_case(v, 3);
            run_product(&c, &runtime);
            expect_right(&c, attn_kernel_name(kernel));
            case_destroy(&c);
        }
}
END_TEST

void openblas_set_num_threads(int threads); /* of the BLAS, as a host process may have set it */

/* Of a program that never called attn_blas_use_one_thread. */
START_TEST(products_are_right_with_several_threads_of_the_blas)
{
    const attn_kernel *kernel;
    openblas_set_num_threads(2);
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            const attn_runtime runtime = attn_runtime_serial(kernel);
            product_case c = varied_case(v, 3);
            run_product(&c, &runtime);
            expect_right(&c, attn_kernel_name(kernel));
            case_destroy(&c);
        }
    openblas_set_num_threads(1);
}
END_TEST

START_TEST(threads_change_no_bit)
{
    const size_t threads[] = {2, 3, 8, 64};
    const attn_kernel *kernel;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = threads[t]}, NULL);
        ck_assert_ptr_nonnull(pool);
        for (size_t v = 0; v < VARIANTS; v++)
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                const attn_runtime serial = attn_runtime_serial(kernel), spread = attn_pool_runtime(pool, kernel);
                product_case alone = varied_case(v, 2), together = varied_case(v, 2);
                run_product(&alone, &serial);
                run_product(&together, &spread);
                ck_assert(memcmp(alone.y, together.y, y_bytes(&alone)) == 0);
                case_destroy(&alone);
                case_destroy(&together);
            }
        attn_pool_destroy(pool);
    }
}
END_TEST

START_TEST(neighbours_in_the_batch_change_no_bit)
{
    const attn_kernel *kernel;
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            const attn_runtime runtime = attn_runtime_serial(kernel);
            product_case all = varied_case(v, 5);
            run_product(&all, &runtime);
            for (size_t b = 0; b < all.batch; b++) {
                product_case one = varied_case(v, 1);
                const size_t x_bytes = all.rows * all.inner * attn_dtype_bytes(all.dtype);
                memcpy(one.x, all.x + b * x_bytes, x_bytes);
                memcpy(one.w, all.w,
                       (all.layout == ATTN_LAYOUT_IN_OUT ? all.inner : all.columns) * all.w_stride *
                           attn_dtype_bytes(all.dtype));
                if (one.bias != NULL)
                    memcpy(one.bias, all.bias, all.columns * attn_dtype_bytes(all.dtype));
                run_product(&one, &runtime);
                ck_assert(memcmp(one.y, all.y + b * y_bytes(&one), y_bytes(&one)) == 0);
                case_destroy(&one);
            }
            case_destroy(&all);
        }
}
END_TEST

CHECK_MAIN("products")
{
    tcase_add_test(tests, every_kernel_multiplies_right);
    tcase_add_test(tests, blocks_change_no_bit);
    tcase_add_test(tests, ways_of_the_cache_change_no_bit);
    tcase_add_test(tests, products_are_right_whoever_multiplies);
    tcase_add_test(tests, products_are_right_with_several_threads_of_the_blas);
    tcase_add_test(tests, threads_change_no_bit);
    tcase_add_test(tests, neighbours_in_the_batch_change_no_bit);
}

/*
 * kernel.h: what a kernel computes, and the table of its functions.
 *
 * Every kernel is the same source, compiled for one instruction set in float and in double (instantiate.inc.h). One
 * call of attend computes one task: query rows of one head against all its keys, or, in decoding, the few query rows
 * of heads that share their keys against a split of these keys.
 */
#ifndef ATTN_KERNEL_KERNEL_H
#define ATTN_KERNEL_KERNEL_H

#include "attn/runtime.h"
#include "kernel/job.h"

enum {
    GEMM_INNER = 256,   /* features per partial sum of a projection: the bits of a result depend on it */
    GEMM_COLUMNS = 128, /* the most columns of a block of a projection */
    GEMM_ROWS = 264,    /* the most rows of it */
    GEMM_ROW_UNIT = 24, /* a multiple of the rows of every register tile */
    GEMM_SCRATCH = 32 * GEMM_INNER + GEMM_ROWS * (GEMM_INNER + 16), /* numbers: a panel of weights, and rows of x */
};

/*
 * Computes task t of batch * heads * chunks, in decoding of batch * heads / heads_together * splits. scratch has
 * scratch_bytes bytes, aligned to ATTN_ALIGNMENT.
 */
typedef void attn_attend_task(const struct attn_heads_job *job, size_t t, void *scratch);

/*
 * One row of a tile of the backward pass: arrays of n numbers of the compute type. Each array extends to whole vectors;
 * the numbers behind n do not matter.
 */
struct attn_backward_row {
    size_t n;
    void *x;               /* q·k; overwritten by the weights that multiply v: after dropout, 0 where hidden */
    void *g;               /* dO·v; overwritten by the gradient of scale q·k, 0 where hidden */
    void *masked;          /* written: the gradient of the masked score; NULL: not wanted */
    const void *added;     /* to the score after the softcap; NULL: nothing */
    const uint8_t *allow;  /* NULL: all */
    const uint8_t *keep;   /* dropout's decisions; NULL: all are kept */
    double scale, softcap; /* softcap 0: none */
    double lse, delta;     /* of the row */
    double gain;           /* factor of the weights that dropout keeps */
};

/* Sums over the weights p of a row. */
struct attn_weight_row {
    float sum, moment, largest; /* of p, p ln p, p */
    size_t zeros;
};

/*
 * A block of y = x W + b in the type of the kernel: x (rows, inner), y (rows, columns), b (columns) or NULL; at most
 * GEMM_ROWS by GEMM_COLUMNS. Strides are elements between rows; for W in the layout out_in, between columns.
 */
struct attn_gemm_block {
    const void *x, *w, *bias;
    const void *panels; /* the columns of W as pack_panel wrote them; NULL: w is read */
    void *y;
    size_t rows, columns, inner;
    size_t skip; /* columns of the first panel that come before those of the block */
    size_t x_stride, w_stride, y_stride;
    size_t cache_ways; /* of a set of the L1 cache; 0: unknown */
    attn_layout layout;
};

/*
 * Multiplies features first … first + GEMM_INNER of a block; first is a multiple of GEMM_INNER. Call it for each such
 * range in order: the first call writes y, the others add to y, and the last adds b. The bits of a number of y do not
 * depend on the block. scratch has GEMM_SCRATCH numbers, aligned to ATTN_ALIGNMENT.
 */
typedef void attn_multiply(const struct attn_gemm_block *block, size_t first, void *scratch);

/*
 * Writes a panel of at most panel_columns columns of W, for all features: data[feature][panel_columns], padded with 0.
 * It reads w, columns, inner, w_stride and layout of the block.
 */
typedef void attn_pack_panel(const struct attn_gemm_block *block, float *data);

/*
 * y = act(x), or act(x) * times where times is not NULL, for n numbers each; y may be x or times. A number of y does not
 * depend on its neighbours. NaN stays NaN.
 */
typedef void attn_activate(attn_activation activation, size_t n, const void *x, const void *times, void *y);

/* The functions of a kernel in one type. */
struct attn_kernel_type {
    attn_attend_task *attend;
    attn_attend_task *merge; /* decoding: merges the splits of head t of batch * heads, after all tasks; same scratch */
    size_t (*scratch_bytes)(const struct attn_heads_job *job);
    size_t (*partials_bytes)(const struct attn_heads_job *job); /* decoding: size of job->partials */
    void (*backward_row)(const struct attn_backward_row *row);
    attn_multiply *multiply;
    attn_activate *activate;
    bool multiplies_faster;        /* than the BLAS on the same CPU */
    size_t blas_up_to_rows_out_in; /* with weights in the layout out_in, the BLAS is faster up to this many rows */
    /* The exp of the softmax, for the tests: n numbers in place, n a multiple of 64. */
    void (*exp)(void *x, size_t n);
    /* In float only: */
    void (*weigh_row)(const float *p, size_t n, struct attn_weight_row *row);
    attn_pack_panel *pack_panel;
    size_t panel_columns;
};

struct attn_kernel {
    const char *name;
    bool (*can_run)(void); /* on this CPU */
    const struct attn_kernel_type *f32, *f64;
};

static inline const struct attn_kernel_type *attn_kernel_of(const attn_kernel *kernel, attn_dtype compute)
{
    return compute == ATTN_F32 ? kernel->f32 : kernel->f64;
}

/* Each of these is a translation unit. */
extern const struct attn_kernel_type attn_kernel_portable_f32, attn_kernel_portable_f64;
#if defined(__x86_64__)
extern const struct attn_kernel_type attn_kernel_avx2_f32, attn_kernel_avx2_f64;
extern const struct attn_kernel_type attn_kernel_avx512_f32, attn_kernel_avx512_f64;
#elif defined(__aarch64__)
extern const struct attn_kernel_type attn_kernel_neon_f32, attn_kernel_neon_f64;
#endif

#endif

/*
 * kernel.h: what a tile kernel computes, and the table entry by which it is chosen.
 *
 * A kernel is the same source (attend.inc.h) compiled for one instruction set, in float and in double. One call handles
 * one task: query rows of a head, or a few of several that share their keys, against all keys or a split of them.
 */
#ifndef ATTN_KERNEL_KERNEL_H
#define ATTN_KERNEL_KERNEL_H

#include "attn/runtime.h"
#include "kernel/job.h"

enum {
    GEMM_INNER = 256,   /* features of a projection that are summed in a row: part of the result's bits as well */
    GEMM_COLUMNS = 128, /* of a block of a projection, at the most */
    GEMM_ROWS = 264,    /* the same */
    GEMM_ROW_UNIT = 24, /* a multiple of the rows of every register tile */
    GEMM_SCRATCH = 32 * GEMM_INNER + GEMM_ROWS * (GEMM_INNER + 16), /* numbers: a panel of weights, and rows */
};

/*
 * Task t of batch * heads * chunks, or batch * heads / heads_together * splits, with scratch of scratch_bytes, aligned
 * to ATTN_ALIGNMENT.
 */
typedef void attn_attend_task(const struct attn_heads_job *job, size_t t, void *scratch);

/*
 * One row of a tile of the backward pass: arrays of n numbers of the compute type, with room for whole vectors beyond,
 * whose content there does not matter.
 */
struct attn_backward_row {
    size_t n;
    void *x;               /* q·k; becomes the weights as they meet v: after dropout, 0 where hidden */
    void *g;               /* dO·v; becomes the gradient of scale q·k, 0 where hidden */
    void *masked;          /* written: the gradient of the masked score; NULL: not wanted */
    const void *added;     /* to the score after softcap; NULL: nothing */
    const uint8_t *allow;  /* NULL: all */
    const uint8_t *keep;   /* dropout's decisions; NULL: all are kept */
    double scale, softcap; /* softcap 0: none */
    double lse, delta;     /* of the row */
    double gain;           /* of what dropout keeps */
};

/* Sums over the weights p of a row. */
struct attn_weight_row {
    float sum, moment, largest; /* of p, p ln p, p */
    size_t zeros;
};

/*
 * A block of y = x W + b, of the kernel's type: x (rows, inner), y (rows, columns), b (columns) or NULL; at most
 * GEMM_ROWS by GEMM_COLUMNS. Strides of rows in elements; of columns of W where the layout is out_in.
 */
struct attn_gemm_block {
    const void *x, *w, *bias;
    const void *panels; /* of the columns of W, the kernel's own; NULL: w is read */
    void *y;
    size_t rows, columns, inner;
    size_t skip; /* columns of the first panel that come before those of the block */
    size_t x_stride, w_stride, y_stride;
    attn_layout layout;
};

/*
 * Features first … first + GEMM_INNER of a block, first a multiple of that. To be called for each run of them in
 * order: the first writes y, the others add to it, the last adds b as well. A number of y is the same bits in whatever
 * block. scratch has GEMM_SCRATCH numbers, aligned to ATTN_ALIGNMENT.
 */
typedef void attn_multiply(const struct attn_gemm_block *block, size_t first, void *scratch);

/*
 * Writes a panel of at most panel_columns columns of W, for all features: data[feature][panel_columns], with 0 beyond
 * the last. Of the block only w, columns, inner, w_stride and layout matter.
 */
typedef void attn_pack_panel(const struct attn_gemm_block *block, float *data);

/* The functions of a kernel in one type. */
struct attn_kernel_type {
    attn_attend_task *attend;
    attn_attend_task *merge; /* decoding: after all tasks, for head t of batch * heads; same scratch */
    size_t (*scratch_bytes)(const struct attn_heads_job *job);
    size_t (*partials_bytes)(const struct attn_heads_job *job); /* decoding: of job->partials */
    void (*backward_row)(const struct attn_backward_row *row);
    attn_multiply *multiply;
    bool multiplies_faster;        /* than the BLAS on the same CPU */
    size_t blas_up_to_rows_out_in; /* but up to so many rows the BLAS is faster with weights in the layout out_in */
    /* exp of n numbers in place, n a multiple of 64: the one inside the softmax, for the tests. */
    void (*exp)(void *x, size_t n);
    /* Of float alone. */
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

/* One translation unit each. */
extern const struct attn_kernel_type attn_kernel_portable_f32, attn_kernel_portable_f64;
#if defined(__x86_64__)
extern const struct attn_kernel_type attn_kernel_avx2_f32, attn_kernel_avx2_f64;
extern const struct attn_kernel_type attn_kernel_avx512_f32, attn_kernel_avx512_f64;
#elif defined(__aarch64__)
extern const struct attn_kernel_type attn_kernel_neon_f32, attn_kernel_neon_f64;
#endif

#endif

/*
 * entries.h: what a kernel computes, and the table of its functions.
 *
 * Every kernel is the same source, compiled for one instruction set in float and in double (instantiate.inc.h). One
 * call of attend computes one task: query rows of one head against all its keys, or, in decoding, the few query rows
 * of heads that share their keys against a split of these keys.
 */
#ifndef ATTN_KERNEL_ENTRIES_H
#define ATTN_KERNEL_ENTRIES_H

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
    void *x;              /* q·k; overwritten by the weights that multiply v: after dropout, 0 where hidden */
    void *g;              /* dO·v; overwritten by the gradient of scale q·k, 0 where hidden */
    void *masked;         /* written: the gradient of the masked score; NULL: not wanted */
    const void *added;    /* to the score after the cap; NULL: nothing */
    const uint8_t *allow; /* NULL: all */
    const uint8_t *keep;  /* dropout's decisions; NULL: all are kept */
    const struct attn_heads_job *job;
    double lse, delta; /* of the row */
    double gain;       /* factor of the weights that dropout keeps */
};

/* Units of the rows and columns of buffers of the backward pass: whole register tiles and whole vectors. */
enum { BACKWARD_ROW_UNIT = 12, BACKWARD_COLUMN_UNIT = 16 };

/*
 * A product of the backward pass: y = a b, or y += a b. a is (rows, inner), or (inner, rows) if it is transposed; b is
 * (inner, columns), and y is (rows, columns). Strides are elements between rows. The buffer of a has whole units of
 * rows, those of b and y have whole units of columns: what is beyond rows and columns is read and does not matter. y is
 * written up to a whole unit of columns.
 */
struct attn_backward_product {
    const void *a, *b;
    void *y;
    size_t rows, columns, inner, a_stride, b_stride, y_stride;
    bool a_is_transposed, adds;
};

/* Rows of an operand, and their copy for the products. A row that is not finite is marked, and its copy is zeros. */
struct attn_backward_rows {
    const char *original;
    ptrdiff_t original_stride;
    size_t count, features;
    char *copy;
    size_t stride;          /* of the copy */
    uint8_t *is_non_finite; /* of each row */
    bool any_non_finite;
};

/* to = factor times the sum of parts rows of n numbers, stride apart, which is computed in double. */
struct attn_backward_sum {
    const void *from;
    void *to;
    size_t parts, stride, n;
    double factor;
};

struct attn_kernel_backward {
    void (*row)(const struct attn_backward_row *row);
    void (*multiply)(const struct attn_backward_product *product);
    void (*pack)(struct attn_backward_rows *rows); /* copies and marks */
    /* transposed (features, count) = the copy, both in whole units of columns */
    void (*transpose)(const struct attn_backward_rows *rows, void *transposed, size_t stride);
    void (*sum)(const struct attn_backward_sum *sum);
    double (*dot)(const void *x, const void *y, size_t n); /* summed in double */
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
    attn_dtype dtype;   /* of w and panels: the kernel's type, or in float 16 bits, which are widened exactly */
    const void *panels; /* the columns of W as pack_panel wrote them; NULL: w is read */
    void *y;
    size_t rows, columns, inner, x_stride, w_stride, y_stride;
    size_t skip;       /* columns of the first panel that come before those of the block */
    size_t cache_ways; /* of a set of the L1 cache; 0: unknown */
    attn_layout layout;
    bool adds; /* y += x W + b */
};

/*
 * Multiplies features first … first + GEMM_INNER of a block; first is a multiple of GEMM_INNER. Call it for each such
 * range in order: the first call writes y unless the block adds, the others add to y, and the last adds b. The bits of a number of y do not
 * depend on the block. scratch has GEMM_SCRATCH numbers, aligned to ATTN_ALIGNMENT.
 */
typedef void attn_multiply(const struct attn_gemm_block *block, size_t first, void *scratch);

/*
 * Writes a panel of at most panel_columns columns of W, for all features: data[feature][panel_columns], padded with 0, in
 * the type of W. It reads w, dtype, columns, inner, w_stride and layout of the block.
 */
typedef void attn_pack_panel(const struct attn_gemm_block *block, void *data);

/*
 * y = act(x), or act(x) * times where times is not NULL, for n numbers each; y may be x or times. A number of y does not
 * depend on its neighbours. NaN stays NaN.
 */
typedef void attn_activate(attn_activation activation, size_t n, const void *x, const void *times, void *y);

/*
 * The backward pass of hidden = act(up), or act(gate) * up, for n numbers: grad_hidden becomes the gradient of up. NULL:
 * no gate. Where grad_hidden is 0 both gradients are 0, whatever up and gate are. At 0 relu has the slope 0.
 */
struct attn_activation_gradient {
    attn_activation activation;
    size_t n;
    const void *up, *gate;
    void *grad_hidden, *grad_gate;
};

typedef void attn_activate_back(const struct attn_activation_gradient *gradient);

/*
 * y[row] = norm(x[row]) for rows of d numbers; y may be x. gain and shift have d numbers, NULL: 1 and 0. Sums are taken
 * in double for both types.
 *
 *     LayerNorm(x) = (x - mean) / sqrt(variance + eps) * gain + shift      Ba, Kiros, Hinton, 2016, arXiv:1607.06450
 *     RMSNorm(x)   = x / sqrt(mean of squares + eps) * gain + shift        Zhang, Sennrich, 2019, arXiv:1910.07467
 *     L2Norm(x)    = x / max(|x|, eps) * gain + shift                      torch.nn.functional.normalize
 */
struct attn_row_norm {
    attn_norm_type type;
    size_t d;
    double eps;
    const void *gain, *shift;
};

static inline struct attn_row_norm attn_row_norm_of(attn_norm_type type, const attn_affine *affine, double eps,
                                                    size_t d)
{
    const void *gain = affine->weight == NULL ? NULL : affine->weight->data;
    const void *shift = affine->bias == NULL ? NULL : affine->bias->data;
    return (struct attn_row_norm){type, d, eps, gain, shift};
}

typedef void attn_norm_rows(const struct attn_row_norm *norm, size_t rows, const void *x, void *y);

/*
 * The backward pass of one row, with z = (x - centre) r and y = z gain + shift:
 *
 *     dz = dy gain        gain += dy z        shift += dy
 *     dx = r (dz - mean(dz) - z mean(dz z))       without mean(dz) for RMSNorm
 *     dx = r (dz - z sum(dz z))                   for L2Norm; r dz where |x| is below eps, and 0 where both are 0
 *
 * A row of grad_y that is all 0 gives 0 and adds nothing, even if its x is NaN.
 */
struct attn_norm_gradient_row {
    const void *x, *grad_y;
    void *grad_x;         /* may be grad_y; NULL: not wanted */
    double *gain, *shift; /* d sums, which are added to */
};

typedef void attn_norm_row_back(const struct attn_row_norm *norm, const struct attn_norm_gradient_row *row);

/*
 * The output gate: gated = concat * sigmoid(gate) for heads of d_v numbers; gate has d_gate numbers per head, d_v or 1.
 * gated may be concat.
 */
typedef void attn_gate_heads(size_t heads, size_t d_v, size_t d_gate, const void *concat, const void *gate,
                             void *gated);

/*
 * The backward pass, with s = sigmoid(gate): grad_concat = grad_gated s, and grad_gate = grad_gated concat s (1 - s),
 * summed in double over the features that share a gate. Where grad_gated is 0, both are 0, even if gate or concat is NaN.
 * grad_concat may be grad_gated. Either may be NULL: not wanted.
 */
struct attn_gate_gradient {
    size_t heads, d_v, d_gate;
    const void *concat, *gate, *grad_gated;
    void *grad_concat, *grad_gate;
};

typedef void attn_gate_heads_back(const struct attn_gate_gradient *gradient);

/*
 * y = residual + scale * dropout(x). residual NULL: 0; keep NULL: without dropout, else decisions, each of which
 * multiplies by gain or gives 0. y may be x or residual.
 */
struct attn_branch_sum {
    const void *x, *residual;
    const uint8_t *keep;
    double gain, scale;
    void *y;
};

typedef void attn_add_branch(const struct attn_branch_sum *sum, size_t n);

/* mean[i] = the mean of the n numbers x[row * stride + i] over the rows, summed in double. */
typedef void attn_mean_rows(size_t rows, size_t stride, size_t n, const void *x, void *mean);

/*
 * Rotates x into y, for one head of d features; the first dim features take part (attn/rope.h). cosines and sines have
 * dim / 2 numbers. y must not overlap x. inverse applies the transpose, which is also the backward pass (a factor within
 * cosines and sines is multiplied again, not divided out).
 */
struct attn_rotation {
    attn_rope_layout layout;
    size_t d, dim;
    bool inverse;
};

typedef void attn_rotate(const struct attn_rotation *rotation, const void *cosines, const void *sines, const void *x,
                         void *y);

/*
 * keep[n] = whether elements first + n of the stream are kept, 0 <= n < count: with probability 1 - p each, 0 <= p <= 1.
 * An element is dropped when its word is below p 2^32 (formulas/philox.c).
 */
typedef void attn_dropout_keep(uint64_t seed, uint64_t stream, double p, uint64_t first, size_t count, uint8_t *keep);

/* y = factor * |weight| * norm for n numbers, and 0 where the weight is 0, whatever the norm. */
typedef void attn_weigh_norms(size_t n, const void *weights, const double *norms, double factor, void *y);

struct attn_feature_job;
struct attn_feature_gradients;

/* A task of attention by feature maps (kernel/features/). scratch has feature_scratch_bytes, aligned to ATTN_ALIGNMENT. */
typedef void attn_feature_task(const struct attn_feature_job *job, size_t index, void *scratch);

/* A task of its backward pass. scratch has feature_gradients.scratch_bytes, aligned as above. */
typedef void attn_feature_gradient_task(const struct attn_feature_gradients *run, size_t index, void *scratch);

/* The stages of the backward pass, in this order. Tasks: */
struct attn_kernel_feature_gradients {
    attn_feature_gradient_task *project_keys; /* performer: batch * kv_heads * tiles */
    attn_feature_gradient_task *sum_keys;     /* batch * kv_heads * blocks */
    attn_feature_gradient_task *prefix_keys; /* is_running: batch * kv_heads * slices of FEATURE_SLICE of sums_stride */
    attn_feature_gradient_task *queries;     /* batch * heads * blocks of FEATURE_QUERIES */
    attn_feature_gradient_task *sum_queries; /* is_running: batch * kv_heads * slots */
    attn_feature_gradient_task *suffix_queries;                        /* is_running: as prefix_keys */
    attn_feature_gradient_task *keys;                                  /* batch * kv_heads * tiles */
    attn_feature_gradient_task *largest;                               /* performer with eps: batch * kv_heads */
    void (*pack_projection)(const struct attn_feature_gradients *run); /* performer: before all stages */
    size_t (*scratch_bytes)(const struct attn_feature_gradients *run);
};

/* Attention over the keys, in one type. */
struct attn_kernel_attention {
    attn_attend_task *attend;
    attn_attend_task *merge; /* decoding: merges the splits of head t of batch * heads, after all tasks; same scratch */
    size_t (*scratch_bytes)(const struct attn_heads_job *job);
    size_t (*partials_bytes)(const struct attn_heads_job *job); /* decoding: size of job->partials */
};

/* The functions of a kernel in one type. */
struct attn_kernel_type {
    const struct attn_kernel_attention *attention;
    struct attn_kernel_backward backward;
    attn_multiply *multiply;
    attn_activate *activate;
    attn_activate_back *activate_back;
    attn_norm_rows *norm;
    attn_norm_row_back *norm_back;
    attn_gate_heads *gate;
    attn_gate_heads_back *gate_back;
    attn_add_branch *add_branch;
    attn_mean_rows *mean;
    attn_weigh_norms *weigh_norms;
    attn_rotate *rotate;
    attn_dropout_keep *dropout_keep;
    double (*sum_squares)(size_t n, const void *x); /* in double for both types */
    /* The stages of attention by feature maps. Tasks of each key head: */
    attn_feature_task *map_keys;                                 /* performer: tiles */
    attn_feature_task *sum_keys;                                 /* splits of FEATURE_SPLIT keys */
    attn_feature_task *prefix_sums;                              /* slices of FEATURE_SLICE numbers of sums_stride */
    attn_feature_task *attend_features;                          /* its query heads * blocks of FEATURE_QUERIES */
    void (*pack_projection)(const struct attn_feature_job *job); /* performer: before all stages */
    size_t (*feature_scratch_bytes)(const struct attn_feature_job *job);
    struct attn_kernel_feature_gradients feature_gradients;
    bool multiplies_faster; /* than the BLAS on the same CPU */
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
    attn_attend_task *attend_bf16; /* jobs with products in bfloat16; NULL: f32->attend imitates the instruction */
};

static inline const struct attn_kernel_type *attn_kernel_of(const attn_kernel *kernel, attn_dtype compute)
{
    return compute == ATTN_F32 ? kernel->f32 : kernel->f64;
}

/* Each of these is a translation unit. */
extern const struct attn_kernel_type attn_kernel_portable_f32, attn_kernel_portable_f64;
extern const struct attn_kernel_attention attn_attention_portable_f32, attn_attention_portable_f64;
#if defined(__x86_64__)
extern const struct attn_kernel_type attn_kernel_avx2_f32, attn_kernel_avx2_f64;
extern const struct attn_kernel_attention attn_attention_avx2_f32, attn_attention_avx2_f64;
extern const struct attn_kernel_type attn_kernel_avx512_f32, attn_kernel_avx512_f64;
extern const struct attn_kernel_attention attn_attention_avx512_f32, attn_attention_avx512_f64;
extern attn_attend_task attn_attend_avx512_bf16;
#elif defined(__aarch64__)
extern const struct attn_kernel_type attn_kernel_neon_f32, attn_kernel_neon_f64;
extern const struct attn_kernel_attention attn_attention_neon_f32, attn_attention_neon_f64;
#endif

#endif

/*
 * plan.h: a computation described, checked and weighed before anything runs.
 *
 * An attn_request describes the computation: tensors, weights, masks, options. attn_plan_make turns it into an
 * attn_plan: the dimensions with their usual names, the stages that will run, the steps to keep, and the number of
 * bytes and floating-point operations. Limits, admission, messages and timing read the plan; attn_plan_run
 * (multihead.h) executes it, as often as wanted, on the inputs of the request or on others of the same shapes.
 */
#ifndef ATTN_PLAN_H
#define ATTN_PLAN_H

#include "attn/mask.h"
#include "attn/mechanism.h"
#include "attn/position_bias.h"
#include "attn/rope.h"
#include "attn/runtime.h"
#include "attn/tensor.h"

ATTN_BEGIN_C

/* What the axes of a step count. Steps of tokens have no batch axis if query has none. */
typedef enum {
    ATTN_AXES_QUERY_LATENT, /* tokens: (batch, q_len, d_query_latent) */
    ATTN_AXES_KEY_LATENT,   /* tokens: (batch, kv_len - past_len, d_key_latent) */
    ATTN_AXES_Q,            /* (batch, heads, q_len, d_k) */
    ATTN_AXES_NEW_K,        /* (batch, kv_heads, kv_len - past_len, d_k) */
    ATTN_AXES_NEW_V,        /* (batch, v_heads, kv_len - past_len, d_v) */
    ATTN_AXES_K,            /* (batch, kv_heads, kv_len, d_k) */
    ATTN_AXES_V,            /* (batch, v_heads, kv_len, d_v) */
    ATTN_AXES_MAP,          /* (batch, heads, q_len, kv_len), of the heads, queries and keys that options select */
    ATTN_AXES_MEAN,         /* (batch, q_len, kv_len), selected likewise */
    ATTN_AXES_PAIRS,   /* (batch, heads / 2, q_len, kv_len): all pairs of heads, of the selected queries and keys */
    ATTN_AXES_ROWS,    /* (batch, heads, q_len) */
    ATTN_AXES_STATE,   /* (batch, kv_heads, d_k, d_v) */
    ATTN_AXES_CONTEXT, /* (batch, heads, q_len, d_v) */
    ATTN_AXES_CONCAT,  /* tokens: (batch, q_len, out_heads * d_v) */
    ATTN_AXES_TOKENS,  /* tokens: (batch, q_len, d_attended) */
    ATTN_AXES_OUTPUT, /* (batch, out_heads, q_len, d_v) for a query of rank 4, otherwise tokens: (batch, q_len, d_out) */
} attn_axes;

/* What the values of a step are. A score of a hidden key is -infinity; flags are ATTN_BOOL. */
typedef enum { ATTN_VALUES_NUMBERS, ATTN_VALUES_SCORES, ATTN_VALUES_FLAGS } attn_values;

/* Every step that a request can ask for, in the order of computation: code, name, axes, values. */
#define ATTN_STEP_LIST(X)                                                                                              \
    X(ATTN_STEP_QUERY_LATENT, "query_latent", ATTN_AXES_QUERY_LATENT, ATTN_VALUES_NUMBERS) /* after its norm */        \
    X(ATTN_STEP_KEY_LATENT, "key_latent", ATTN_AXES_KEY_LATENT, ATTN_VALUES_NUMBERS)       /* likewise */              \
    X(ATTN_STEP_Q, "q", ATTN_AXES_Q, ATTN_VALUES_NUMBERS)                                  /* after projection */      \
    X(ATTN_STEP_K, "k", ATTN_AXES_NEW_K, ATTN_VALUES_NUMBERS)                                                          \
    X(ATTN_STEP_V, "v", ATTN_AXES_NEW_V, ATTN_VALUES_NUMBERS)                                                          \
    X(ATTN_STEP_Q_ROTATED, "q_rotated", ATTN_AXES_Q, ATTN_VALUES_NUMBERS)       /* after qk_norm and rope */           \
    X(ATTN_STEP_K_ROTATED, "k_rotated", ATTN_AXES_K, ATTN_VALUES_NUMBERS)       /* likewise, behind the past keys */   \
    X(ATTN_STEP_SCORES, "scores", ATTN_AXES_MAP, ATTN_VALUES_SCORES)            /* q k^T, unscaled */                  \
    X(ATTN_STEP_SCALED, "scaled", ATTN_AXES_MAP, ATTN_VALUES_SCORES)            /* after scale and softcap */          \
    X(ATTN_STEP_MASKED, "masked", ATTN_AXES_MAP, ATTN_VALUES_SCORES)            /* after bias and mask */              \
    X(ATTN_STEP_ATTENTION, "attention", ATTN_AXES_MAP, ATTN_VALUES_NUMBERS)     /* after softmax, before dropout */    \
    X(ATTN_STEP_DROPPED, "dropped", ATTN_AXES_MAP, ATTN_VALUES_NUMBERS)         /* after dropout */                    \
    X(ATTN_STEP_DIFFERENCE, "difference", ATTN_AXES_PAIRS, ATTN_VALUES_NUMBERS) /* of the weights of pairs of heads */ \
    X(ATTN_STEP_LSE, "lse", ATTN_AXES_ROWS, ATTN_VALUES_NUMBERS) /* log of the sum of exp of masked and sink */        \
    X(ATTN_STEP_LSE_KEYS, "lse_keys", ATTN_AXES_ROWS, ATTN_VALUES_NUMBERS) /* the same over the keys alone */          \
    X(ATTN_STEP_ENTROPY, "entropy", ATTN_AXES_ROWS, ATTN_VALUES_NUMBERS) /* -sum p ln p in nats, the sink included */  \
    X(ATTN_STEP_SINK, "sink", ATTN_AXES_ROWS, ATTN_VALUES_NUMBERS)       /* the weight of the sink */                  \
    X(ATTN_STEP_CONTEXT, "context", ATTN_AXES_CONTEXT, ATTN_VALUES_NUMBERS)       /* attention v */                    \
    X(ATTN_STEP_CONCAT, "concat", ATTN_AXES_CONCAT, ATTN_VALUES_NUMBERS)          /* context times head_scale */       \
    X(ATTN_STEP_GATED, "gated", ATTN_AXES_CONCAT, ATTN_VALUES_NUMBERS)            /* concat times the gate */          \
    X(ATTN_STEP_PROJECTED, "projected", ATTN_AXES_TOKENS, ATTN_VALUES_NUMBERS)    /* after the output projection */    \
    X(ATTN_STEP_CONTRIBUTION, "contribution", ATTN_AXES_MAP, ATTN_VALUES_NUMBERS) /* |what a key adds|; see below */   \
    X(ATTN_STEP_RESIDUAL, "residual", ATTN_AXES_TOKENS, ATTN_VALUES_NUMBERS)      /* query + projected */              \
    X(ATTN_STEP_ATTENTION_OUTPUT, "attention_output", ATTN_AXES_TOKENS, ATTN_VALUES_NUMBERS) /* before feed_forward */ \
    X(ATTN_STEP_FEED_FORWARD, "feed_forward", ATTN_AXES_OUTPUT, ATTN_VALUES_NUMBERS)         /* its down projection */ \
    X(ATTN_STEP_OUTPUT, "output", ATTN_AXES_OUTPUT, ATTN_VALUES_NUMBERS)      /* the result, with the rank of query */ \
    X(ATTN_STEP_PRESENT_KEY, "present_key", ATTN_AXES_K, ATTN_VALUES_NUMBERS) /* past_key of the next request */       \
    X(ATTN_STEP_PRESENT_VALUE, "present_value", ATTN_AXES_V, ATTN_VALUES_NUMBERS)                                      \
    X(ATTN_STEP_PRESENT_STATE, "present_state", ATTN_AXES_STATE, ATTN_VALUES_NUMBERS) /* past_state of the next one */ \
    X(ATTN_STEP_ATTENTION_MEAN, "attention_mean", ATTN_AXES_MEAN, ATTN_VALUES_NUMBERS) /* mean over the heads */       \
    X(ATTN_STEP_MASK, "mask", ATTN_AXES_MAP, ATTN_VALUES_FLAGS)                        /* what was allowed */

/*
 * contribution: how much key j adds to projected of query i by head h, as a Euclidean norm:
 *
 *     |head_scale[h] attention[h][i][j]| |f_h(x_j)|,    f_h(x) = (x W_v + b_v) W_o of the head
 *
 * Kobayashi et al., "Attention is Not Only a Weight" (2020), equation 5; head_scale is 1 there. The bias of the output
 * projection belongs to no key, and is left out. It needs weights.output, and no gate. It is 0 for hidden keys.
 */

typedef enum {
#define ATTN_STEP_ENUM(code, name, axes, values) code,
    ATTN_STEP_LIST(ATTN_STEP_ENUM)
#undef ATTN_STEP_ENUM
        ATTN_STEP_COUNT
} attn_step;

/* A set of steps: ATTN_STEP_BIT of each. */
typedef uint64_t attn_steps;
#define ATTN_STEP_BIT(step) (UINT64_C(1) << (step))

const char *attn_step_name(attn_step step);
/* ATTN_STEP_COUNT when no step has that name. */
attn_step attn_step_from_name(const char *name);
attn_axes attn_step_axes(attn_step step);
attn_values attn_step_values(attn_step step);
/* Whether the step is (batch, heads, q_len, kv_len), so that the heads, queries and keys selections apply to it. */
bool attn_step_is_map(attn_step step);
/* Whether its last axis counts keys: a map, or a mean of maps. */
bool attn_step_has_keys(attn_step step);

/*
 * Tokens of attention (not of a layer) may lie anywhere, as long as the features of a head are side by side and no stride
 * is below 0: a slice of a fused array, (batch, len, heads, d) read as (batch, heads, len, d), a key that all share. With
 * compute ATTN_F32, tokens of attention and the cache may each be ATTN_F16 or ATTN_BF16, too. Keys and values are then
 * widened while they are read, and queries before; both are exact. Results are in the compute type. Gradients need inputs
 * in the compute type.
 */
typedef struct {
    const attn_tensor *query; /* attention: rank 2, 3, 4; a layer: rank 2, 3; NULL: a start in the middle, see below */
    const attn_tensor *key;   /* NULL: query (self-attention) */
    const attn_tensor *value; /* NULL: key */
    /*
     * Cached keys and values, which come before those of this request; both or neither: (batch, kv_heads, past_len,
     * d_k) and (…, d_v), without batch for a query of rank 2, in the layout of tokens of attention. They are used as
     * they are: already normalised and rotated, like present_key of the previous request. They are read where they lie.
     * kv_len of all masks and maps counts past_len and the new keys.
     */
    const attn_tensor *past_key, *past_value;
    /*
     * Starts in the middle of attention, not of a layer: one of the two stands for query and key, and past_key and
     * past_value are NULL. For every batch item and head
     *
     *     scores     out = softmax(mask(cap(scale s) + bias)) v        s = scores instead of q k^T; scale is 1 by default
     *     attention  out = a v                                         a = attention as given: nothing is normalised
     *
     *   scores, attention  (q_len, kv_len), (heads, q_len, kv_len) or (batch, heads, q_len, kv_len), row-major
     *   value  (kv_len, kv_heads * d_v), (batch, kv_len, kv_heads * d_v) or (batch, kv_heads, kv_len, d_v), of the same
     *          batch; the output has its rank. attention needs it; scores without it give no context and no output
     *
     * A score of -infinity hides its key, like a bias of -infinity. A weight of 0 adds nothing, whatever its value is.
     * Refused are all that makes scores (rope, qk_norm, feature maps), and beside attention masks, scale, softcap, biases
     * and sinks. So are steps that such a start does not have: those of queries and keys and of the cache, and beside
     * attention those before it, lse and sink. The sums are in double for both types.
     */
    const attn_tensor *scores, *attention;
    /*
     * Of a recurrence (attn_mechanism.update_rule), where key has the length of query and there is no cache; row-major:
     *
     *   decay       the log of what the state keeps, of gated and gated_delta: for each feature of each key head, in the shape
     *               of key as tokens of d_k, or one for each key head: (…, len, kv_heads), (batch, kv_heads, len, 1) of rank 4
     *   beta        how much of a value is learnt, of delta and gated_delta: (…, len, kv_heads), or (…, len, 1) for all heads;
     *               of rank 4 (batch, kv_heads or 1, len, 1)
     *   past_state  (batch, kv_heads, d_k, d_v), without batch for a query of rank 2: present_state of the request before;
     *               NULL: 0
     */
    const attn_tensor *decay, *beta, *past_state;
} attn_inputs;

/* The map that a start in the middle gives; NULL: the request starts at query. */
static inline const attn_tensor *attn_start_of(const attn_inputs *inputs)
{
    return inputs->scores != NULL ? inputs->scores : inputs->attention;
}

/* y = x W + b; weight NULL: absent. */
typedef struct {
    const attn_tensor *weight;
    const attn_tensor *bias;
} attn_affine;

typedef enum { ATTN_QKV_STACKED, ATTN_QKV_PER_HEAD, ATTN_QKV_PER_GROUP } attn_qkv_order;
typedef enum { ATTN_LAYOUT_IN_OUT, ATTN_LAYOUT_OUT_IN } attn_layout; /* y = x W, or y = x W^T */

/*
 * The feed-forward network of a block (attn_feed_forward_options has its equation); up.weight NULL: none. in_out
 * shapes (out_in swaps the two):
 *   up    (d_in, d_ff)    bias (d_ff)     d_in: d_attended, or d_query for a parallel one
 *   gate  (d_in, d_ff)    bias (d_ff)     weight NULL: not gated
 *   down  (d_ff, d_out)   bias (d_out)    d_out is d_attended unless residual is false
 *   norm  weight, bias    the gain and shift of its normalisation, each optional
 *   branch_norm           likewise, (d_out), of the result of down; see attn_options
 */

/* A network of its own, like up, gate and down above. All experts of a block have the same shapes. */
typedef struct {
    attn_affine up, gate, down;
} attn_expert;

/*
 * A mixture of experts (attn_expert_options has its equation); count 0: none. in_out shapes (out_in swaps the two):
 *   router       (d_in, count)     bias (count)
 *   shared_gate  (d_in, 1)         bias (1)       weight NULL: up, gate and down above, if given, are added as they are
 *   each         count of them: up (d_in, d_expert), gate likewise or NULL, down (d_expert, d_out), and their biases.
 *                With pairs, up is (d_in, 2 d_expert), its bias (2 d_expert), and there is no gate
 * layout is that of the weights of each; router and shared_gate have the layout of all other weights.
 */
typedef struct {
    attn_affine router, shared_gate;
    const attn_expert *each;
    size_t count;
    attn_layout layout;
} attn_experts;

typedef struct {
    attn_affine up, gate, down, norm, branch_norm; /* with experts, up and down may be absent */
    attn_experts experts;
} attn_feed_forward_weights;

/*
 * Either query, key and value, or qkv. in_out shapes (out_in swaps the last two):
 *   query  (d_query, heads * d_k)    or (heads, d_query, d_k)      bias (heads * d_k) or (heads, d_k)
 *   key    (d_key, kv_heads * d_k)   or (kv_heads, d_key, d_k)     bias likewise
 *   value  (d_value, kv_heads * d_v) or (kv_heads, d_value, d_v)
 *   qkv    (d_model, (heads + 2 kv_heads) * d_k); columns: stacked q…, k…, v…; per_head q0 k0 v0 q1 k1 v1 …;
 *          per_group: the query heads of a group, its key head, its value head, then the next group
 *   output (heads * d_v, d_attended) or (heads, d_v, d_attended)   bias (d_attended)
 *   norm   weight (d), bias (d): the gain and shift of the normalisation, each optional
 *   relative_key    (d, kv_heads * d_k) or (kv_heads, d, d_k)      bias likewise; d is the width of
 *   relative_query  (d, heads * d_k) or (heads, d, d_k)            options.relative_position.embedding
 *   query_norm, key_norm   likewise of qk_norm
 *     (d_k)          the same for every head
 *     (heads, d_k)   each head has its own
 *     (heads * d_k)  the whole projection of a token is normalised as one row, as in OLMo 2
 *   gate   (d_query, heads * d_v), (d_query, heads) or (heads, d_query, d_v or 1)
 *     concat is multiplied by sigmoid(x W + b), feature by feature or head by head, before the output projection; x
 *     is the input of the query projection. Qiu et al., "Gated Attention for Large Language Models" (2025),
 *     arXiv:2505.06708
 *   branch_norm  weight (d_attended), bias (d_attended): of the result of the output projection; see attn_options
 *   query_latent       (d_query, r_q)        bias (r_q)
 *   key_latent         (d_key, r_k)          bias (r_k)
 *   key_shared         (d_key, d_shared)     bias (d_shared)
 *   query_latent_norm, key_latent_norm       weight, bias: the gain and shift of options.latent_norm, each optional
 *     Latent attention: with c_q = norm(x_q W_query_latent) and c = norm(x_k W_key_latent), for every head h
 *
 *         q_h = c_q W_query,h      k_h = [c W_key,h, x_k W_key_shared]      v_h = c W_value,h
 *
 *     each optional, where c_q or c is x without its weight. query takes r_q features, key and value r_k, and key gives
 *     d_k - d_shared features a head. With key_shared, rope turns only features behind those of key. DeepSeek-V2, 2024,
 *     arXiv:2405.04434, equations 37 to 47: nothing is absorbed, so keys and values of all heads are there.
 * Every weight is row-major without gaps, and so are the inputs of a layer. With compute ATTN_F32, the weights of query,
 * key, value, qkv, output, gate, relative_key, relative_query, latents, key_shared and the feed-forward network may each be
 * ATTN_F16 or ATTN_BF16, too. They are widened while they are read, which is exact, so results have the bits of the same numbers in
 * float32. Biases and norms are of the compute type, and gradients need weights of it.
 */
typedef struct {
    attn_affine query, key, value, qkv, output, norm, query_norm, key_norm, gate, branch_norm, relative_key,
        relative_query, query_latent, key_latent, key_shared, query_latent_norm, key_latent_norm;
    attn_feed_forward_weights feed_forward;
    attn_qkv_order qkv_order;
    attn_layout layout;
} attn_weights;

/*
 * A row x of numbers with a gain g and a shift s, each optional:
 *
 *     layer   g (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) + s     Ba, Kiros, Hinton, 2016, arXiv:1607.06450
 *     rms     g x / sqrt(mean(x^2) + eps) + s                             Zhang, Sennrich, 2019, arXiv:1910.07467
 *     L2      g x / max(|x|, eps) + s                                     qk_norm alone has it
 */
typedef enum { ATTN_NORM_NONE, ATTN_NORM_LAYER, ATTN_NORM_RMS, ATTN_NORM_L2 } attn_norm_type;
typedef enum { ATTN_NORM_POST, ATTN_NORM_PRE } attn_norm_position;

/*
 * Every activation: code, name.
 *
 *     relu        max(0, x)
 *     gelu        x Phi(x), Phi the normal distribution      Hendrycks, Gimpel, 2016, arXiv:1606.08415
 *     gelu_tanh   x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2     the same paper
 *     quick_gelu  x sigmoid(1.702 x)                                    the same paper
 *     silu        x sigmoid(x)                               Elfwing et al., 2017, arXiv:1702.03118
 */
#define ATTN_ACTIVATION_LIST(X)                                                                                        \
    X(ATTN_ACTIVATION_NONE, "none")                                                                                    \
    X(ATTN_ACTIVATION_RELU, "relu")                                                                                    \
    X(ATTN_ACTIVATION_GELU, "gelu")                                                                                    \
    X(ATTN_ACTIVATION_GELU_TANH, "gelu_tanh")                                                                          \
    X(ATTN_ACTIVATION_QUICK_GELU, "quick_gelu")                                                                        \
    X(ATTN_ACTIVATION_SILU, "silu")

typedef enum {
#define ATTN_ACTIVATION_ENUM(code, name) code,
    ATTN_ACTIVATION_LIST(ATTN_ACTIVATION_ENUM)
#undef ATTN_ACTIVATION_ENUM
} attn_activation;

const char *attn_activation_name(attn_activation activation);
/* ATTN_ACTIVATION_NONE when no activation has that name. */
attn_activation attn_activation_from_name(const char *name);

/*
 * A mixture of experts. With the logits r = x W_router + b_router of a token x, and the set C of its per_token experts,
 *
 *     C       the experts with the largest r_e; of equal ones, those with the lower index
 *     p_e     exp(r_e) / sum over all experts i of exp(r_i),  or, normalised, over those of C alone
 *     ff(x) = sum over e in C of p_e expert_e(x)  +  g(x) shared(x)
 *
 * Shazeer et al., 2017, arXiv:1701.06538; Jiang et al., Mixtral, 2024, arXiv:2401.04088. shared is the network up, gate
 * and down of the block, if it has one, and g(x) = sigmoid(x W_shared_gate + b_shared_gate), or 1 without shared_gate.
 * The choice and p are computed in double from logits of the compute type. The sum begins with the largest logit, and
 * shared is added last. A logit that is NaN is the smallest.
 *
 * With a limit L or an offset o, an expert is (gpt-oss, 2025)
 *
 *     expert(x) = (act(min(gate, L)) * (clamp(up, -L, L) + o)) W_down + b_down
 *
 * With pairs, the columns of up alternate: the first of each two gives a feature of gate, the second one of up.
 *
 * Only the chosen experts are computed: a product for each expert and matrix, of the tokens of an item that chose it. Where
 * the kernel multiplies, a token's numbers do not depend on the other tokens; where the BLAS does, the number of tokens
 * that chose the expert may change last bits. Other items of the batch never do.
 */
typedef struct {
    size_t per_token;
    bool normalised, pairs;
    double limit; /* above 0; 0: none */
    double offset;
} attn_expert_options;

/*
 * The feed-forward network after, or beside, the attention of a block:
 *
 *     ff(x) = act(x W_up + b_up) W_down + b_down                             Vaswani et al., 2017, section 3.3
 *     ff(x) = (act(x W_gate + b_gate) * (x W_up + b_up)) W_down + b_down     Shazeer, 2020, arXiv:2002.05202
 *
 * With y = attention_output, what the layer would give without the network, the output of the block is
 *
 *     pre:       y + ff(norm(y))
 *     post:      norm(y + ff(y))
 *     parallel:  y + ff(x), where x is norm(query), or without a norm of its own the input of the query projection
 *
 * A parallel network has no post-norm in its block.
 */
typedef struct {
    attn_activation activation;
    attn_norm_type norm;
    attn_norm_position position; /* of norm */
    double norm_eps;
    bool parallel; /* Wang, Komatsuzaki, GPT-J, 2021; needs residual */
    bool residual; /* false: y is not added, and down may give another width than y has */
    attn_expert_options experts;
} attn_feed_forward_options;

/*
 * Which heads, query rows or key columns of the maps are kept. items are all different and below the dimension; more
 * than 4096 must be ascending; none keeps nothing. With items NULL, count consecutive ones from first on are kept; with
 * first and count 0, all.
 */
typedef struct {
    const size_t *items;
    size_t count, first;
} attn_selection;

static inline bool attn_selects_all(const attn_selection *selection)
{
    return selection->items == NULL && selection->count == 0;
}

/* The index of the i-th kept element. */
static inline size_t attn_selected(const attn_selection *selection, size_t i)
{
    return selection->items != NULL ? selection->items[i] : selection->first + i;
}

typedef struct {
    attn_dtype compute; /* ATTN_F32 or ATTN_F64: the type of every tensor but masks; see attn_inputs for 16 bits */
    bool bf16_products; /* with ATTN_F32: queries, keys, values and weights are rounded to bfloat16 for q k^T and p v */
    size_t num_heads;   /* 0: from the weights or inputs, else 1 */
    size_t kv_num_heads; /* 0: the same */
    bool has_scale;      /* false: 1 / sqrt(d_k), or 1 for a start in the middle; see also attn_relative_position */
    double scale;
    double softcap;                           /* c in c tanh(s / c); 0: none */
    bool alibi;                               /* with alibi_slopes NULL: those of attn_alibi_slope */
    const attn_tensor *alibi_slopes;          /* (heads), finite, of the compute type */
    attn_relative_bias relative_bias;         /* table NULL: none */
    attn_relative_position relative_position; /* no tensors: none */
    /*
     * (heads), finite, of the compute type: logits that enter only the denominator of every row. The weights of a row
     * then sum to 1 - sink. A row without keys has sink 1, its lse is the logit, and its lse_keys is -infinity. NULL:
     * none.
     */
    const attn_tensor *sinks;
    /*
     * (heads), finite, of the compute type: concat = head_scale[h] * context of every head h, before the gate and the
     * output projection. 0 takes a head out: its part of concat is exactly 0, whatever its context. NULL: 1.
     * Michel, Levy, Neubig, "Are Sixteen Heads Really Better than One?" (2019), section 2.1.
     */
    const attn_tensor *head_scale;
    /*
     * Differential attention, of attention without weights (not of a layer): the factor of each pair of neighbouring
     * heads, (heads / 2), finite, of the compute type. With A_h the weights of head h, head p of the output is
     *
     *     (A_2p - differential[p] A_2p+1) v_p
     *
     * Ye et al., "Differential Transformer" (2024), arXiv:2410.05258, equation 1. q and k have an even number of heads,
     * grouped as usual, and v has half as many as k, because both heads of a pair read the same values. So out_heads is
     * heads / 2. Steps of heads show both; "difference" is A_2p - differential[p] A_2p+1, before dropout. head_scale
     * multiplies what each of the two gives. NULL: none.
     */
    const attn_tensor *differential;
    bool residual; /* output = query + projected (the query before any pre-norm) */
    attn_norm_type norm;
    attn_norm_position
        norm_position; /* post: after the residual; pre: on query (and key, value where they default to it) */
    double norm_eps;
    attn_norm_type qk_norm; /* of queries and keys, head by head, before rope */
    double qk_norm_eps;
    attn_norm_type latent_norm; /* of rows of the latents of queries and keys */
    double latent_norm_eps;
    attn_feed_forward_options feed_forward;
    /*
     * A norm of what each branch (the attention, the feed-forward network) adds to the residual, and then a factor:
     * query + residual_scale * branch_norm(projected). As in Gemma 2 and OLMo 2, and in Granite. There are no
     * gradients of its weights, and none through it beside a post-norm or dropout.
     */
    attn_norm_type branch_norm;
    double branch_norm_eps;
    double residual_scale; /* 0: 1 */
    attn_rope rope;
    attn_mechanism mechanism;
    double dropout; /* p; 0: none. Weights are kept with probability 1 - p and scaled by 1 / (1 - p) */
    bool dropout_attention, dropout_residual; /* where: on the weights; on projected before query is added to it */
    uint64_t dropout_seed;
    attn_steps want; /* what to give back */
    attn_selection heads, queries, keys;
} attn_options;

/* Where a caller can change what a layer computes with, in the order of the run. */
typedef enum {
    ATTN_EDIT_ATTENTION,        /* weights behind the softmax: (batch, heads, q_len, kv_len) */
    ATTN_EDIT_CONTEXT,          /* (batch, heads, q_len, d_v), before head_scale */
    ATTN_EDIT_ATTENTION_OUTPUT, /* what the attention adds to the residual: (batch, q_len, d_attended) */
    ATTN_EDIT_FEED_FORWARD,     /* what the feed-forward network adds: (batch, q_len, d_out) */
} attn_edit_place;

/*
 * Changes numbers of the compute type, at their strides. changed has a flag for each row, (batch, heads, q_len) or (batch,
 * q_len), false before: set those of changed rows. What follows is computed again for these rows alone, so that all
 * others keep their bits. Weights are not normalised again; entropy, lse and sink are of the softmax.
 */
typedef attn_status attn_edit_function(void *context, attn_edit_place place, const attn_tensor *numbers, bool *changed);

typedef struct {
    unsigned places; /* bit 1 << attn_edit_place for each place that is asked about */
    attn_edit_function *edit;
    void *context;
} attn_edits;

/* Zero-initialise it and fill in what is given. The core only reads it; the caller keeps ownership of everything. */
typedef struct {
    attn_inputs inputs;
    attn_weights weights;
    attn_masks masks;
    attn_options options;
    bool is_layer; /* multi-head attention with weights, rather than attention on q, k, v as given */
    /* Its is_cancelled is asked while many numbers, or rows of masks, are read, within 1 ms. NULL: never. */
    const attn_runtime *watch;
    /*
     * Of layers, forward only; NULL: none. They are asked in the thread of the caller, and must live until the last run.
     * Weights can be changed where all of them are wanted, ATTN_STEP_ATTENTION without selections.
     */
    const attn_edits *edits;
} attn_request;

/*
 * Every tensor of a request, in two kinds of rows:
 *
 *   DIFFERS(code, member, name)   it has a gradient (gradient.h): its code, its member, its name as a gradient
 *   CONSTANT(member)              it has none
 *
 * and OTHER(code, name): a gradient that is of no tensor. The order is that of attn_gradient.
 */
#define ATTN_TENSOR_LIST(DIFFERS, CONSTANT, OTHER)                                                                     \
    DIFFERS(ATTN_GRADIENT_QUERY, inputs.query, "inputs.query")                                                         \
    DIFFERS(ATTN_GRADIENT_KEY, inputs.key, "inputs.key")                                                               \
    DIFFERS(ATTN_GRADIENT_VALUE, inputs.value, "inputs.value")                                                         \
    DIFFERS(ATTN_GRADIENT_PAST_KEY, inputs.past_key, "inputs.past_key")                                                \
    DIFFERS(ATTN_GRADIENT_PAST_VALUE, inputs.past_value, "inputs.past_value")                                          \
    CONSTANT(inputs.scores)                                                                                            \
    CONSTANT(inputs.attention)                                                                                         \
    DIFFERS(ATTN_GRADIENT_DECAY, inputs.decay, "inputs.decay")                                                         \
    DIFFERS(ATTN_GRADIENT_BETA, inputs.beta, "inputs.beta")                                                            \
    DIFFERS(ATTN_GRADIENT_PAST_STATE, inputs.past_state, "inputs.past_state")                                          \
    ATTN_AFFINE_LIST(DIFFERS, QUERY, query)                                                                            \
    ATTN_AFFINE_LIST(DIFFERS, KEY, key)                                                                                \
    ATTN_AFFINE_LIST(DIFFERS, VALUE, value)                                                                            \
    ATTN_AFFINE_LIST(DIFFERS, QKV, qkv)                                                                                \
    ATTN_AFFINE_LIST(DIFFERS, OUTPUT, output)                                                                          \
    ATTN_AFFINE_LIST(DIFFERS, NORM, norm)                                                                              \
    ATTN_AFFINE_LIST(DIFFERS, QUERY_NORM, query_norm)                                                                  \
    ATTN_AFFINE_LIST(DIFFERS, KEY_NORM, key_norm)                                                                      \
    ATTN_AFFINE_LIST(DIFFERS, GATE, gate)                                                                              \
    ATTN_AFFINE_LIST(DIFFERS, QUERY_LATENT, query_latent)                                                              \
    ATTN_AFFINE_LIST(DIFFERS, KEY_LATENT, key_latent)                                                                  \
    ATTN_AFFINE_LIST(DIFFERS, KEY_SHARED, key_shared)                                                                  \
    ATTN_AFFINE_LIST(DIFFERS, QUERY_LATENT_NORM, query_latent_norm)                                                    \
    ATTN_AFFINE_LIST(DIFFERS, KEY_LATENT_NORM, key_latent_norm)                                                        \
    ATTN_AFFINE_LIST(DIFFERS, FEED_FORWARD_UP, feed_forward.up)                                                        \
    ATTN_AFFINE_LIST(DIFFERS, FEED_FORWARD_GATE, feed_forward.gate)                                                    \
    ATTN_AFFINE_LIST(DIFFERS, FEED_FORWARD_DOWN, feed_forward.down)                                                    \
    ATTN_AFFINE_LIST(DIFFERS, FEED_FORWARD_NORM, feed_forward.norm)                                                    \
    CONSTANT(weights.relative_key.weight)                                                                              \
    CONSTANT(weights.relative_key.bias)                                                                                \
    CONSTANT(weights.relative_query.weight)                                                                            \
    CONSTANT(weights.relative_query.bias)                                                                              \
    CONSTANT(weights.branch_norm.weight)                                                                               \
    CONSTANT(weights.branch_norm.bias)                                                                                 \
    CONSTANT(weights.feed_forward.branch_norm.weight)                                                                  \
    CONSTANT(weights.feed_forward.branch_norm.bias)                                                                    \
    CONSTANT(weights.feed_forward.experts.router.weight)                                                               \
    CONSTANT(weights.feed_forward.experts.router.bias)                                                                 \
    CONSTANT(weights.feed_forward.experts.shared_gate.weight)                                                          \
    CONSTANT(weights.feed_forward.experts.shared_gate.bias)                                                            \
    CONSTANT(masks.offset)                                                                                             \
    CONSTANT(masks.attend)                                                                                             \
    DIFFERS(ATTN_GRADIENT_MASK_BIAS, masks.bias, "masks.bias") /* summed over the dimensions that are broadcast */     \
    CONSTANT(masks.padding)                                                                                            \
    CONSTANT(masks.key_lengths)                                                                                        \
    CONSTANT(masks.query_lengths)                                                                                      \
    CONSTANT(masks.documents_query)                                                                                    \
    CONSTANT(masks.documents_key)                                                                                      \
    CONSTANT(masks.blocks.attend)                                                                                      \
    CONSTANT(masks.blocks.global_tokens)                                                                               \
    CONSTANT(masks.blocks.prefix)                                                                                      \
    OTHER(ATTN_GRADIENT_SCALE, "options.scale") /* a single number */                                                  \
    DIFFERS(ATTN_GRADIENT_ALIBI, options.alibi_slopes, "options.alibi")                                                \
    DIFFERS(ATTN_GRADIENT_RELATIVE_BIAS, options.relative_bias.table, "options.relative_bias.table")                   \
    CONSTANT(options.relative_position.key)                                                                            \
    CONSTANT(options.relative_position.query)                                                                          \
    CONSTANT(options.relative_position.embedding)                                                                      \
    DIFFERS(ATTN_GRADIENT_SINKS, options.sinks, "options.sinks")                                                       \
    DIFFERS(ATTN_GRADIENT_HEAD_SCALE, options.head_scale, "options.head_scale")                                        \
    DIFFERS(ATTN_GRADIENT_DIFFERENTIAL, options.differential, "options.differential")                                  \
    CONSTANT(options.rope.scaling.short_factor)                                                                        \
    CONSTANT(options.rope.scaling.long_factor)                                                                         \
    CONSTANT(options.rope.query.positions)                                                                             \
    CONSTANT(options.rope.query.cos)                                                                                   \
    CONSTANT(options.rope.query.sin)                                                                                   \
    CONSTANT(options.rope.key.positions)                                                                               \
    CONSTANT(options.rope.key.cos)                                                                                     \
    CONSTANT(options.rope.key.sin)                                                                                     \
    CONSTANT(options.mechanism.projection)                                                                             \
    OTHER(ATTN_GRADIENT_SCORES, "grad_scores")       /* map: of the masked scores, dS */                               \
    OTHER(ATTN_GRADIENT_ATTENTION, "grad_attention") /* map: of the weights before dropout, dP; hidden keys 0 */

#define ATTN_AFFINE_LIST(DIFFERS, CODE, role)                                                                          \
    DIFFERS(ATTN_GRADIENT_##CODE##_WEIGHT, weights.role.weight, "weights." #role ".weight")                            \
    DIFFERS(ATTN_GRADIENT_##CODE##_BIAS, weights.role.bias, "weights." #role ".bias")

typedef struct {
    size_t batch, heads, kv_heads, q_len, kv_len, d_k, d_v; /* a start in the middle has d_k 0; without value, d_v 0 */
    size_t v_heads;                      /* heads of values: kv_heads, or half of them with options.differential */
    size_t out_heads;                    /* heads of concat: heads, or half of them likewise */
    size_t past_len;                     /* of kv_len, how many came as past_key */
    size_t d_query, d_key, d_value;      /* features of one token of each input */
    size_t d_query_latent, d_key_latent; /* features of a token's latents, or 0 without them */
    size_t d_shared;                     /* of the d_k features of a key, how many all heads share */
    size_t d_attended; /* features of a row of attention_output: those of output without a feed-forward network */
    size_t d_out;      /* of one row of output */
    size_t d_gate;     /* gates of a head: d_v, 1, or 0 without a gate */
    size_t d_ff;       /* features between up and down, or 0 without a network that all tokens share */
    size_t experts;    /* of the feed-forward network, or 0 */
    size_t d_expert;   /* features between up and down of an expert */
    int query_rank;    /* of a start in the middle: the rank of value */
} attn_dims;

/* How many bytes and floating-point operations a stage takes. */
typedef struct {
    double projections, attention, output_projection, feed_forward, rest; /* FLOPs */
} attn_flops;

typedef struct {
    attn_dims dims;
    attn_dtype compute;
    attn_mask_facts mask;
    double scale;
    size_t rope_dim;                                        /* features of a head that are rotated; 0: none */
    double rope_length;                                     /* largest position + 1 */
    size_t selected_heads, selected_queries, selected_keys; /* of the maps that are kept */
    attn_steps want;
    /*
     * Shape and dtype of output and of each wanted step, without gaps; data NULL. The caller may set data of any wanted
     * step, and strides of any but the maps: the result is then there. Heads of attention write their output, and all
     * heads write scores, scaled, masked, attention and dropped, there at once; other steps are copied there at the end.
     * present_key and present_value may begin where past_key and past_value lie, with their strides: then the new rows
     * alone are written.
     */
    attn_tensor step[ATTN_STEP_COUNT];
    size_t step_bytes[ATTN_STEP_COUNT];
    size_t result_bytes;  /* all wanted steps */
    size_t working_bytes; /* arena bytes that the run takes beyond the result, per run and not per thread */
    size_t scratch_bytes; /* arena bytes per thread */
    double pairs;         /* pairs of a query and a key within its span, over batch items and heads */
    /*
     * Of linear and performer: the mask is a range from key 0 for every query, and padding. has_prefix_sums: and the
     * ranges of an item end at different keys.
     */
    bool has_running_sums, has_prefix_sums;
    attn_flops flops;
    double total_flops;
    double time_flops; /* FLOPs of a large product that takes as long; includes softmax and masks */
    /*
     * A copy of the request, without watch. The tensors, numbers and selections that it points to are the caller's. They
     * must live until the last run. Only the numbers of inputs and weights, and the place of a past, may change before it.
     */
    attn_request request;
} attn_plan;

/*
 * Other data for one run: the first element of an input, with the shape, type and strides that the plan was made with.
 * NULL: the data of the plan. An input that the request did not give cannot be bound. Weights, masks and options are
 * those of the plan.
 */
typedef struct {
    const void *query, *key, *value, *past_key, *past_value, *scores, *attention, *decay, *beta, *past_state;
    const void *grad_output; /* of a plan for gradients */
} attn_bindings;

/*
 * Checks the whole request and fills *plan. Allocates nothing. Reads the numbers of masks, lengths, positions, slopes,
 * sinks, factors of heads and of pairs and the table of relative_bias, but no others; the time is O(masks). The data of an input may
 * be NULL if every run binds it. Errors name the member of the request ("inputs.key", "weights.query.weight",
 * "options.num_heads"):
 *
 *   ATTN_ERR_FIELD      a member is missing, or not allowed beside another
 *   ATTN_ERR_SHAPE      dimensions disagree (expected and received hold the shapes), or a rank is not from 0 to 4
 *   ATTN_ERR_VALUE      a number outside what is allowed
 *   ATTN_ERR_TOO_LARGE  a dimension does not fit the BLAS integer, or a tensor or what the run works with has more than
 *                       2^48 numbers
 *   ATTN_ERR_CANCELLED  request->watch said so
 */
ATTN_MUST_CHECK attn_status attn_plan_make(const attn_request *request, attn_plan *plan, attn_error *err);

/*
 * How a program that takes requests in a form of its own calls their members: writes the whole name of the member at
 * path ("options.norm_eps") into name, such as "/options/norm/eps". Its parts are divided by dots or slashes.
 */
typedef void attn_namer(const attn_request *request, const char *path, char *name, size_t size);

/* The same with errors that name members as names says. */
ATTN_MUST_CHECK attn_status attn_plan_make_named(const attn_request *request, attn_namer *names, attn_plan *plan,
                                                 attn_error *err);

/* The number of keys that came with the request; the keys of the cache come before them. */
static inline size_t attn_new_len(const attn_dims *dims)
{
    return dims->kv_len - dims->past_len;
}

/* The position of query 0 of item b: key j stands at position j. */
int64_t attn_plan_offset(const attn_plan *plan, size_t b);
/* The range of keys that query i of item b may attend to. Masks that are looked up may hide keys in it. */
attn_span attn_plan_span(const attn_plan *plan, size_t b, size_t i);
/* Whether query i of head h in item b may attend to key j: slow and simple. All indices are below plan->dims. */
bool attn_plan_allows(const attn_plan *plan, size_t b, size_t h, size_t i, size_t j);

/* Arena bytes for a run with that many threads, including the result: an arena with this limit is enough. */
size_t attn_plan_bytes(const attn_plan *plan, size_t threads);

ATTN_END_C

#endif

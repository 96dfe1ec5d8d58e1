/* projection.c: separate, per-head and fused weights as slices of columns. */
#include "layer/layer.h"

#include "base/size.h"
#include "request/request.h"

/* Rank 2: one matrix with the columns of all heads. Rank 3: one matrix per head. */
static attn_projection separate(const attn_affine *affine, attn_layout layout, size_t heads, size_t inner, size_t d)
{
    attn_projection p = {.affine = affine, .slices = 1, .columns = heads * d, .inner = inner};
    if (affine->weight->rank == 3)
        p = (attn_projection){
            .affine = affine, .slices = heads, .columns = d, .inner = inner, .step = inner * d, .bias_step = d};
    p.w_stride = layout == ATTN_LAYOUT_IN_OUT ? p.columns : inner;
    return p;
}

/* first_column and column_step count columns of the fused matrix. */
static attn_projection fused(const attn_weights *weights, const attn_dims *dims, size_t slices, size_t columns,
                             size_t first_column, size_t column_step)
{
    size_t all = (dims->heads + 2 * dims->kv_heads) * dims->d_k, inner = dims->d_query;
    bool in_out = weights->layout == ATTN_LAYOUT_IN_OUT;
    size_t unit = in_out ? 1 : inner; /* elements from one column to the next */
    return (attn_projection){.affine = &weights->qkv,
                             .slices = slices,
                             .columns = columns,
                             .inner = inner,
                             .first = first_column * unit,
                             .step = column_step * unit,
                             .w_stride = in_out ? all : inner,
                             .bias_first = first_column,
                             .bias_step = column_step};
}

static attn_projection fused_stacked(const attn_weights *weights, const attn_dims *dims, attn_role role)
{
    size_t q = dims->heads * dims->d_k, kv = dims->kv_heads * dims->d_k;
    if (role == PROJECT_Q)
        return fused(weights, dims, 1, q, 0, 0);
    return fused(weights, dims, 1, kv, role == PROJECT_K ? q : q + kv, 0);
}

/* A group is its query heads, its key head, its value head. In the order per_head, every group has one query head. */
static attn_projection fused_grouped(const attn_weights *weights, const attn_dims *dims, attn_role role)
{
    size_t queries = dims->heads / dims->kv_heads * dims->d_k, group = queries + 2 * dims->d_k;
    if (role == PROJECT_Q)
        return fused(weights, dims, dims->kv_heads, queries, 0, group);
    return fused(weights, dims, dims->kv_heads, dims->d_k, role == PROJECT_K ? queries : queries + dims->d_k, group);
}

/* The features of a token that a weight of rank 2 or 3 takes. */
static size_t inner_of(const attn_affine *affine, attn_layout layout)
{
    return affine->weight->shape[affine->weight->rank - (layout == ATTN_LAYOUT_IN_OUT ? 2 : 1)];
}

attn_projection attn_projection_of(const attn_weights *weights, const attn_dims *dims, attn_role role)
{
    if (weights->qkv.weight != NULL && role <= PROJECT_V)
        return weights->qkv_order == ATTN_QKV_STACKED ? fused_stacked(weights, dims, role)
                                                      : fused_grouped(weights, dims, role);
    switch (role) {
    case PROJECT_Q:
        return separate(&weights->query, weights->layout, dims->heads, attn_query_inner(dims), dims->d_k);
    case PROJECT_K:
        return separate(&weights->key, weights->layout, dims->kv_heads, attn_key_inner(dims),
                        dims->d_k - dims->d_shared);
    case PROJECT_GATE:
        return separate(&weights->gate, weights->layout, dims->heads, dims->d_query, dims->d_gate);
    case PROJECT_RELATIVE_KEY:
        return separate(&weights->relative_key, weights->layout, dims->kv_heads,
                        inner_of(&weights->relative_key, weights->layout), dims->d_k);
    case PROJECT_RELATIVE_QUERY:
        return separate(&weights->relative_query, weights->layout, dims->heads,
                        inner_of(&weights->relative_query, weights->layout), dims->d_k);
    case PROJECT_V:
        break;
    }
    return separate(&weights->value, weights->layout, dims->kv_heads, attn_value_inner(dims), dims->d_v);
}

attn_projection attn_projection_of_fused(const attn_weights *weights, const attn_dims *dims)
{
    return fused(weights, dims, 1, (dims->heads + 2 * dims->kv_heads) * dims->d_k, 0, 0);
}

size_t attn_projection_head_step(const attn_projection *projection, size_t d)
{
    if (projection->slices == 1)
        return d;
    return projection->columns == d ? projection->bias_step : 0;
}

attn_projection attn_projection_of_matrix(const attn_affine *affine, attn_layout layout, size_t inner, size_t columns)
{
    return (attn_projection){.affine = affine,
                             .slices = 1,
                             .columns = columns,
                             .inner = inner,
                             .w_stride = layout == ATTN_LAYOUT_IN_OUT ? columns : inner};
}

size_t attn_projection_narrow_inner(const attn_weights *weights, attn_dtype compute)
{
    const attn_feed_forward_weights *network = &weights->feed_forward;
    const attn_affine *const all[] = {&weights->query,
                                      &weights->key,
                                      &weights->value,
                                      &weights->qkv,
                                      &weights->output,
                                      &weights->gate,
                                      &network->up,
                                      &network->gate,
                                      &network->down,
                                      &weights->relative_key,
                                      &weights->relative_query,
                                      &weights->query_latent,
                                      &weights->key_latent,
                                      &weights->key_shared};
    size_t inner = 0;
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        inner = attn_max(inner, attn_narrow_inner(compute, weights->layout, all[n]->weight));
    const attn_experts *experts = &network->experts;
    inner = attn_max(inner, attn_narrow_inner(compute, weights->layout, experts->router.weight));
    inner = attn_max(inner, attn_narrow_inner(compute, weights->layout, experts->shared_gate.weight));
    for (size_t e = 0; e < experts->count; e++) {
        const attn_affine *const of_one[] = {&experts->each[e].up, &experts->each[e].gate, &experts->each[e].down};
        for (size_t n = 0; n < sizeof of_one / sizeof *of_one; n++)
            inner = attn_max(inner, attn_narrow_inner(compute, experts->layout, of_one[n]->weight));
    }
    return inner;
}

attn_projection attn_projection_of_output(const attn_weights *weights, const attn_dims *dims)
{
    return attn_projection_of_matrix(&weights->output, weights->layout, dims->heads * dims->d_v, dims->d_attended);
}

void attn_projection_products(const attn_projection *projection, attn_layout layout, size_t element,
                              const attn_kernel *kernel, const struct attn_product *tokens,
                              struct attn_product *products)
{
    const attn_tensor *weight = projection->affine->weight, *bias = projection->affine->bias;
    for (size_t s = 0; s < projection->slices; s++) {
        const size_t column = projection->bias_first + s * projection->bias_step;
        struct attn_product *product = &products[s];
        *product = *tokens;
        product->y = tokens->y + s * projection->columns * element;
        product->y_stride = projection->slices * projection->columns;
        product->w =
            (const char *)weight->data + (projection->first + s * projection->step) * attn_dtype_bytes(weight->dtype);
        product->dtype = weight->dtype;
        product->w_stride = projection->w_stride;
        product->bias = bias == NULL ? NULL : (const char *)bias->data + column * element;
        product->columns = projection->columns;
        product->inner = projection->inner;
        if (kernel != NULL)
            product->panels = attn_panels_from(kernel, layout, weight, column, &product->skip);
    }
}

/* latents.c: from queries, keys and values back to their latents, and to the features that key heads share. */
#include "backward/backward.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "request/request.h"

enum { TOKEN_ROWS = 64 /* rows of tokens that one task cuts */ };

size_t attn_gradient_latents_numbers(const attn_dims *d, const struct attn_gradient_needs *needs)
{
    const size_t queries = d->batch * d->q_len, keys = d->batch * attn_new_len(d);
    size_t numbers = needs->role[PROJECT_Q] ? queries * d->d_query_latent : 0;
    if (needs->role[PROJECT_K] || needs->role[PROJECT_V])
        numbers += keys * d->d_key_latent;
    if (needs->role[PROJECT_K] && d->d_shared > 0)
        numbers += keys * (d->kv_heads * (d->d_k - d->d_shared) + d->d_shared);
    return numbers;
}

/* ---- shared features ---- */

struct cut_keys {
    const struct backward_run *run;
    const char *all;
    char *own, *shared;
};

/* One token: its own features of each head, and the sums of the shared ones. */
static void cut_row(const struct cut_keys *cut, size_t row)
{
    const attn_dims *d = &cut->run->plan->forward.dims;
    const attn_dtype compute = cut->run->compute;
    const size_t own = d->d_k - d->d_shared, element = cut->run->element, first = row * d->kv_heads;
    for (size_t h = first; h < first + d->kv_heads; h++)
        memcpy(cut->own + h * own * element, cut->all + h * d->d_k * element, own * element);
    for (size_t f = 0; f < d->d_shared; f++) {
        double sum = 0;
        for (size_t h = first; h < first + d->kv_heads; h++)
            sum += attn_number_get(cut->all, compute, h * d->d_k + own + f);
        attn_number_put(cut->shared, compute, row * d->d_shared + f, sum);
    }
}

static void cut_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct cut_keys *cut = argument;
    const attn_dims *d = &cut->run->plan->forward.dims;
    const size_t end = attn_min((index + 1) * TOKEN_ROWS, d->batch * attn_new_len(d));
    for (size_t row = index * TOKEN_ROWS; row < end; row++)
        cut_row(cut, row);
}

/* A weight of rank 2 that reads an input of tokens. */
static attn_projection slice_of(const struct backward_run *run, const attn_affine *affine, size_t inner, size_t width)
{
    return attn_projection_of_matrix(affine, run->request->weights.layout, inner, width);
}

void attn_gradient_cut_keys(struct backward_run *run, struct attn_gradient_projection readers[])
{
    const attn_dims *d = &run->plan->forward.dims;
    const size_t tokens = d->batch * attn_new_len(d);
    struct attn_gradient_projection *keys = &readers[PROJECT_K];
    if (d->d_shared == 0 || keys->grad_y == NULL || tokens == 0)
        return;
    struct cut_keys cut = {.run = run, .all = keys->grad_y};
    cut.own = backward_take(run, tokens * d->kv_heads * (d->d_k - d->d_shared), run->element);
    cut.shared = backward_take(run, tokens * d->d_shared, run->element);
    if (!backward_goes_on(run))
        return;
    attn_spread(run->runtime, attn_ceil_div(tokens, TOKEN_ROWS), cut_task, &cut);
    keys->grad_y = cut.own;
    readers[READ_SHARED] =
        (struct attn_gradient_projection){slice_of(run, &run->request->weights.key_shared, d->d_key, d->d_shared),
                                          attn_new_len(d), run->x[PROJECT_K], cut.shared};
    attn_gradient_of_affine(run, &readers[READ_SHARED], ATTN_GRADIENT_KEY_SHARED_WEIGHT);
}

/* ---- latents ---- */

struct latent {
    const attn_affine *affine, *norm;
    const char *x, *bare; /* what it is made of, and the latent before its norm */
    size_t inner, width, len;
    attn_gradient weight, gain;
};

/* The readers of a latent become one reader of what it is made of. */
static struct attn_gradient_projection go_through(struct backward_run *run, const struct latent *latent,
                                                  const struct attn_gradient_projection *readers, size_t count)
{
    const attn_options *options = &run->request->options;
    const size_t rows = run->plan->forward.dims.batch * latent->len;
    struct attn_gradient_projection made = {slice_of(run, latent->affine, latent->inner, latent->width), latent->len,
                                            latent->x, NULL};
    char *grad = rows > 0 && count > 0 ? backward_take(run, rows * latent->width, run->element) : NULL;
    if (grad == NULL)
        return made;
    attn_gradient_of_input(run, readers, count, latent->len, latent->width, grad);
    const struct attn_gradient_norm norm = {.type = options->latent_norm,
                                            .eps = options->latent_norm_eps,
                                            .rows = rows,
                                            .d = latent->width,
                                            .gains = 1,
                                            .gain = latent->norm->weight,
                                            .x = latent->bare,
                                            .grad_y = grad,
                                            .grad_x = grad};
    if (options->latent_norm != ATTN_NORM_NONE)
        attn_gradient_norm_run(run, &norm, latent->gain);
    made.grad_y = grad;
    attn_gradient_of_affine(run, &made, latent->weight);
    return made;
}

void attn_gradient_latents_run(struct backward_run *run, struct attn_gradient_projection readers[])
{
    const attn_dims *d = &run->plan->forward.dims;
    const attn_weights *w = &run->request->weights;
    const struct latent query = {&w->query_latent,
                                 &w->query_latent_norm,
                                 run->x[PROJECT_Q],
                                 run->kept.query_latent,
                                 d->d_query,
                                 d->d_query_latent,
                                 d->q_len,
                                 ATTN_GRADIENT_QUERY_LATENT_WEIGHT,
                                 ATTN_GRADIENT_QUERY_LATENT_NORM_WEIGHT};
    const struct latent key = {&w->key_latent,
                               &w->key_latent_norm,
                               run->x[PROJECT_K],
                               run->kept.key_latent,
                               d->d_key,
                               d->d_key_latent,
                               attn_new_len(d),
                               ATTN_GRADIENT_KEY_LATENT_WEIGHT,
                               ATTN_GRADIENT_KEY_LATENT_NORM_WEIGHT};
    if (d->d_query_latent > 0 && readers[PROJECT_Q].grad_y != NULL)
        readers[PROJECT_Q] = go_through(run, &query, &readers[PROJECT_Q], 1);
    if (d->d_key_latent == 0)
        return;
    struct attn_gradient_projection both[2];
    size_t count = 0;
    for (int role = PROJECT_K; role <= PROJECT_V; role++)
        if (readers[role].grad_y != NULL)
            both[count++] = readers[role];
    readers[PROJECT_K] = go_through(run, &key, both, count);
    readers[PROJECT_V].grad_y = NULL;
}

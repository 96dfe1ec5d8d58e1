/*
 * scene.h: builds requests to the core and runs them, for tests.
 *
 * Every tensor has a malloc block of exactly its size, so the sanitizer sees each read beside it.
 */
#ifndef TESTS_SCENE_H
#define TESTS_SCENE_H

#include "attn/multihead.h"
#include "random.h"

/* The bit of a step: WANT(OUTPUT). */
#define WANT(step) ATTN_STEP_BIT(ATTN_STEP_##step)

/* Rank and shape as two arguments: scene_normal(scene, SHAPE(2, 3)). */
#define SHAPE(...)                                                                                                     \
    (int)(sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)), (const size_t[])                                          \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

typedef struct scene_block scene_block;

/* A request under construction, with all that it points to. */
typedef struct {
    attn_request request;
    attn_dtype type; /* ATTN_F32 or ATTN_F64: of the tensors made by scene_normal */
    random_source random;
    scene_block *blocks;
} test_scene;

/* An empty request that computes in type; aborts without memory, like all of this file. */
test_scene scene_create(attn_dtype type, uint64_t seed);
void scene_destroy(test_scene *scene);

/* Zeroed memory that goes with the scene. */
void *scene_memory(test_scene *scene, size_t bytes);
attn_tensor *scene_tensor(test_scene *scene, attn_dtype dtype, int rank, const size_t *shape);
/* Numbers of the scene's type, normal with the given deviation. */
attn_tensor *scene_normal(test_scene *scene, double deviation, int rank, const size_t *shape);
/* Of dtype bool, true with the given probability. */
attn_tensor *scene_coins(test_scene *scene, double probability, int rank, const size_t *shape);
/* int64, copied from values; NULL: zeros. */
attn_tensor *scene_integers(test_scene *scene, const int64_t *values, int rank, const size_t *shape);
/* The same numbers in memory of another layout: the last two dimensions stored swapped, with a gap in every row. */
attn_tensor *scene_strided(test_scene *scene, const attn_tensor *tensor);
/* A view with the last two dimensions swapped. */
attn_tensor *scene_transposed(test_scene *scene, const attn_tensor *tensor);
/* An independent contiguous copy. */
attn_tensor *scene_copy(test_scene *scene, const attn_tensor *tensor);
/* A view of item b of the first dimension, which stays with size 1. */
attn_tensor *scene_item(test_scene *scene, const attn_tensor *tensor, size_t b);

/* One element of a float tensor by its flat row-major index, through strides. */
double tensor_get(const attn_tensor *tensor, size_t flat);
void tensor_set(attn_tensor *tensor, size_t flat, double value);

/* q (b, h, q_len, d_k), k (b, kv_h, kv_len, d_k) and v (b, kv_h, kv_len, d_v) of standard normal numbers. */
typedef struct {
    size_t batch, heads, kv_heads, q_len, kv_len, d_k, d_v;
} scene_size;
void scene_attention(test_scene *scene, const scene_size *size);
/* A layer: query (b, q_len, d_model), key (b, kv_len, d_model), all four projections with biases. */
void scene_layer(test_scene *scene, const scene_size *size, size_t d_model);

/* Makes a layer of that width a block, with every weight of the network and a pre-norm. */
void scene_feed_forward(test_scene *scene, size_t d_model, size_t d_ff, attn_activation activation, bool is_gated);

/* Sizes that take each path of the kernels. */
enum { SCENE_PATHS = 6 };
extern const scene_size scene_paths[SCENE_PATHS];

/*
 * Gives a layer of that width, by bits of parts, 1 a latent of queries with 5 features, 2 one of keys with 3, and 4 features
 * that all key heads share, of which rope turns two.
 */
void scene_latents(test_scene *scene, const scene_size *size, size_t d_model, size_t parts);

/* Moves the first past_len keys and values of a scene of that size from the request into a cache. */
void scene_past(test_scene *scene, const scene_size *size, size_t past_len);
/* A factor for each head; 0 for the last of several. */
void scene_scale_heads(test_scene *scene, size_t heads);
/* Norms, rotation, cache, factors of heads and gate of every kind in turn, for a scene of that size. */
void scene_turn(test_scene *scene, const scene_size *size, size_t variant);
/* Adds, by the bits of variant: 1 ALiBi, 2 slopes of its own, 4 a relative bias in both directions or (8) one, 16
 * sinks, 32 relative positions of keys, 64 those of queries. */
void scene_biases(test_scene *scene, const scene_size *size, unsigned variant);

/* All steps that the request can give: no projected without its weight, no residual or dropped without the option. */
attn_steps scene_every_step(const attn_request *request);

/* A run and its result. */
typedef struct {
    attn_plan plan;
    attn_arena *arena;
    attn_result result;
} test_run;

/* Plans and runs with the limit that the plan computes; any failure fails the test with the core's message. */
test_run run_request(const attn_request *request, const attn_runtime *runtime);
/* The same for one kernel, in this thread, wanting these steps. */
test_run run_kernel(const attn_request *request, const attn_kernel *kernel, attn_steps want);
void run_release(test_run *run);
/* Five threads whose tasks run in reverse order, with workers in turn: a legal order that a pool seldom takes. */
attn_runtime backward_runtime(void);
/* Plans a request that must be refused. Fails the test unless code, field and a fragment of the message match. */
void expect_refusal(const attn_request *request, attn_status status, const char *field, const char *fragment);

/* Fails the test, naming what and the first difference, unless both hold the same shape and the same bytes. */
void expect_same_bytes(const attn_tensor *a, const attn_tensor *b, const char *what);
/* The same for every step that both runs have; the names of the steps are in the message. */
void expect_same_steps(const test_run *a, const test_run *b, attn_steps steps, const char *what);

#endif

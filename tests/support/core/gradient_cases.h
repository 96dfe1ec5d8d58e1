/*
 * gradient_cases.h: requests for gradients of every kind and size, their runs, and central differences.
 */
#ifndef TESTS_GRADIENT_CASES_H
#define TESTS_GRADIENT_CASES_H

#include "attn/gradient.h"
#include "scene.h"

#define OF(name) (UINT64_C(1) << ATTN_GRADIENT_##name)

/* A request, its name in messages, and the gradient of its output. */
typedef struct {
    test_scene scene;
    attn_gradient_request wanted;
    char name[96];
} gradient_case;

enum {
    GRADIENT_SIZES = 6,
    GRADIENT_KINDS = 11,
    GRADIENT_CASES_OF_SOFTMAX = GRADIENT_KINDS * GRADIENT_SIZES,
    GRADIENT_CASES = 2 * GRADIENT_CASES_OF_SOFTMAX
};

/* Odd sizes; the last two need several tiles of queries and of keys. */
extern const scene_size gradient_sizes[];

/*
 * Every kind of request with every size, masks and options taking turns: case number is kind number % GRADIENT_KINDS
 * with size number / GRADIENT_KINDS; from GRADIENT_CASES_OF_SOFTMAX on the same with the other mechanisms. false past
 * the end.
 */
bool gradient_case_at(gradient_case *made, attn_dtype type, size_t number);
void gradient_case_release(gradient_case *made);

/* Parts of cases. A layer with weights of rank 3 in the layout out_in, and values of their own. */
void gradient_layer_by_heads(test_scene *scene, const scene_size *size);
/* Biases by distance, and sinks, in turn. */
void gradient_add_to_scores(test_scene *scene, size_t heads, size_t turn);
/* linear and performer of every kind in turn. */
void gradient_add_mechanism(test_scene *scene, size_t turn);
/* Norms of queries and keys, and an output gate, of every kind in turn; n has the sizes of the request. */
void gradient_add_qk_norm(test_scene *scene, const scene_size *n, size_t turn);
void gradient_add_gate(test_scene *scene, const scene_size *n, size_t turn);
/* The request for all that is given, with a gradient of the output to start from. */
attn_gradient_request gradient_ask(test_scene *scene);
/* All gradients that the request can have, including the scale and the maps. */
uint64_t gradient_all_of(const attn_gradient_request *request);

typedef struct {
    attn_gradient_plan plan;
    attn_arena *arena;
    attn_gradient_result result;
} gradient_run;

/* Plans and runs with the limit that the plan computes; any failure fails the test with the core's message. */
gradient_run gradient_run_on(const attn_gradient_request *request, const attn_runtime *runtime);
gradient_run gradient_run_serial(const attn_gradient_request *request, const attn_kernel *kernel);
void gradient_run_release(gradient_run *run);

/* Fails the test unless the common gradients of both have the same bytes. */
void expect_same_gradients(const gradient_run *a, const gradient_run *b, const char *what);
/* Fails the test unless the gradient, of a request in float64, agrees with central differences. */
void expect_gradient(gradient_case *made, const gradient_run *run, attn_gradient gradient);
void expect_scale_gradient(gradient_case *made, const gradient_run *run);
/* The same for all gradients of the run. */
void expect_gradients(gradient_case *made, const gradient_run *run);

#endif

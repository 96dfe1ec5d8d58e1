/*
 * failing_json.h: allocations of the JSON library, of which a chosen one fails, alone or with all later ones.
 */
#ifndef TESTS_FAILING_JSON_H
#define TESTS_FAILING_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

static json_malloc_t real_json_malloc;
static json_free_t real_json_free;
static size_t json_allocations_left; /* that are granted before one fails */
static bool json_fails_for_good;

static inline void *failing_json_malloc(size_t size)
{
    if (json_allocations_left > 0) {
        json_allocations_left--;
        return real_json_malloc(size);
    }
    json_allocations_left = json_fails_for_good ? 0 : SIZE_MAX;
    return real_json_malloc(SIZE_MAX); /* more than a tree may have: noted as a failure of memory */
}

/* From here on allocations may fail: after json_tree_prepare. */
static inline void fail_json_begin(void)
{
    json_get_alloc_funcs(&real_json_malloc, &real_json_free);
    json_allocations_left = SIZE_MAX;
    json_set_alloc_funcs(failing_json_malloc, real_json_free);
}

static inline void fail_json_end(void)
{
    json_set_alloc_funcs(real_json_malloc, real_json_free);
}

#endif

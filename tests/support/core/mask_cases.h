/*
 * mask_cases.h: the masks that tests try with every computation: each kind alone, each way to broadcast, all together.
 */
#ifndef TESTS_MASK_CASES_H
#define TESTS_MASK_CASES_H

#include "scene.h"

typedef struct {
    const char *name;
    void (*apply)(test_scene *scene, const scene_size *size); /* fills scene->request.masks */
} mask_case;

/* The i-th case; NULL past the end. */
const mask_case *mask_case_at(size_t i);
size_t mask_case_count(void);
/* The case with all masks. */
const mask_case *mask_case_composed(void);

#endif

/*
 * plan_stage.h: the two requests that tests of plans start from: attention on given heads, and a layer.
 */
#ifndef TESTS_PLAN_STAGE_H
#define TESTS_PLAN_STAGE_H

#include "attn/plan.h"
#include "check_main.h"
#include "scene.h"

/* Attention on (2, 3, 4, 6) with keys (2, 3, 5, 6) and values (2, 3, 5, 7). */
static inline test_scene attention(void)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &(scene_size){2, 3, 3, 4, 5, 6, 7});
    scene.request.options.want = WANT(OUTPUT);
    return scene;
}

/* A layer on query (2, 4, 12) and key (2, 5, 12): 4 heads of 3, 2 key heads, values of 5. */
static inline test_scene layer(void)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_layer(&scene, &(scene_size){2, 4, 2, 4, 5, 3, 5}, 12);
    scene.request.options.want = WANT(OUTPUT);
    return scene;
}

static inline attn_plan planned(const attn_request *request)
{
    attn_plan plan;
    attn_error err = {0};
    attn_status status = attn_plan_make(request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "%s: %s", err.field, err.message);
    return plan;
}

#endif

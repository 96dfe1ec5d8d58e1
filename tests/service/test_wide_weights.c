/*
 * test_wide_weights.c: tests of server/service/wide_weights.c: what is widened, for how long it stays, and for whom.
 */
#include "service/wide_weights.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "service/layer_store.h"

/* More than a task widens, and a rest. */
enum { COUNT = (1 << 16) + 1000, SMALL = 3, TENSORS = 4 };

static attn_arena *arena;
static attn_runtime runtime;

static void set_up(void)
{
    arena = attn_arena_create(64 << 20);
    ck_assert_ptr_nonnull(arena);
    runtime = attn_runtime_serial(NULL);
}

static void tear_down(void)
{
    attn_arena_destroy(arena);
}

/* A layer of two narrow weights, a wide one, and something narrow that is no weight. */
struct scene {
    uint16_t half[COUNT], brain[SMALL];
    float single[SMALL];
    struct envelope_attachment attachments[TENSORS];
    struct envelope_base base;
    struct layer_version *version;
};

static struct scene *make_scene(void)
{
    struct scene *scene = attn_arena_take_zeroed(arena, 1, sizeof *scene);
    const struct kept_layer_facts facts = {.dtype = ATTN_F16};
    ck_assert_ptr_nonnull(scene);
    for (size_t i = 0; i < COUNT; i++)
        scene->half[i] = (uint16_t)i; /* every one there is */
    for (size_t i = 0; i < SMALL; i++)
        scene->brain[i] = (uint16_t)(0x3F80 + i);
    const size_t many[] = {COUNT}, few[] = {SMALL};
    scene->attachments[0] =
        (struct envelope_attachment){"weights.key.bias", attn_tensor_view(scene->brain, ATTN_BF16, 1, few)};
    scene->attachments[1] =
        (struct envelope_attachment){"weights.value.bias", attn_tensor_view(scene->single, ATTN_F32, 1, few)};
    scene->attachments[2] =
        (struct envelope_attachment){"weights.query.weight", attn_tensor_view(scene->half, ATTN_F16, 1, many)};
    scene->attachments[3] =
        (struct envelope_attachment){"options.sinks", attn_tensor_view(scene->half, ATTN_F16, 1, few)};
    scene->base = (struct envelope_base){.attachments = scene->attachments, .count = TENSORS};
    const struct layer_bytes bytes = {NULL, 0};
    scene->version = layer_version_create("a", bytes, NULL, &facts);
    ck_assert_ptr_nonnull(scene->version);
    return scene;
}

static size_t bytes_of_one(void)
{
    const size_t large = (COUNT * sizeof(float) + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
    return large + ATTN_ALIGNMENT;
}

static struct wide_weights *take(struct wide_store *store, struct scene *scene, struct envelope_base *base)
{
    *base = scene->base;
    return wide_weights_take(store, scene->version, &runtime, arena, base);
}

START_TEST(narrow_weights_become_single_and_nothing_else_changes)
{
    static float wanted[COUNT];
    struct wide_store *store = wide_store_create(1 << 30);
    struct scene *scene = make_scene();
    struct envelope_base base, again;
    struct wide_weights *wide = take(store, scene, &base);
    ck_assert_ptr_nonnull(wide);
    ck_assert_uint_eq(wide_store_bytes(store), bytes_of_one());
    ck_assert(attn_convert(wanted, ATTN_F32, scene->half, ATTN_F16, COUNT, NULL) == ATTN_OK);
    ck_assert(base.attachments[2].tensor.dtype == ATTN_F32);
    ck_assert_mem_eq(base.attachments[2].tensor.data, wanted, sizeof wanted);
    ck_assert(base.attachments[0].tensor.dtype == ATTN_F32);
    for (size_t i = 0; i < SMALL; i++)
        ck_assert_float_eq(((const float *)base.attachments[0].tensor.data)[i], 1 + (float)i / 128);
    for (size_t i = 1; i < TENSORS; i += 2)
        ck_assert_mem_eq(&base.attachments[i].tensor, &scene->attachments[i].tensor, sizeof(attn_tensor));
    ck_assert(scene->attachments[2].tensor.dtype == ATTN_F16);
    ck_assert_ptr_eq(take(store, scene, &again), wide);
    ck_assert_ptr_eq(again.attachments[2].tensor.data, base.attachments[2].tensor.data);
    wide_weights_release(wide);
    wide_weights_release(wide);
    layer_version_release(scene->version);
    ck_assert_uint_eq(wide_store_bytes(store), 0);
    wide_store_destroy(store);
    wide_store_destroy(NULL);
    wide_weights_release(NULL);
}
END_TEST

START_TEST(the_one_not_used_for_longest_gives_way_unless_it_is_in_use)
{
    struct wide_store *store = wide_store_create(2 * bytes_of_one());
    struct scene *scenes[3] = {make_scene(), make_scene(), make_scene()};
    struct envelope_base base;
    struct wide_weights *first = take(store, scenes[0], &base), *second = take(store, scenes[1], &base);
    ck_assert(first != NULL && second != NULL);
    ck_assert_ptr_null(take(store, scenes[2], &base)); /* both are in use */
    ck_assert_ptr_eq(base.attachments, scenes[2]->attachments);
    wide_weights_release(first);
    wide_weights_release(second);
    wide_weights_release(take(store, scenes[0], &base)); /* now the second is the older one */
    struct wide_weights *third = take(store, scenes[2], &base);
    ck_assert_ptr_nonnull(third);
    ck_assert(scenes[0]->version->wide != NULL && scenes[1]->version->wide == NULL);
    ck_assert_uint_eq(wide_store_bytes(store), 2 * bytes_of_one());
    wide_weights_release(third);
    for (size_t i = 0; i < 3; i++)
        layer_version_release(scenes[i]->version);
    ck_assert_uint_eq(wide_store_bytes(store), 0);
    wide_store_destroy(store);
}
END_TEST

START_TEST(what_does_not_fit_is_left_as_it_is)
{
    struct wide_store *store = wide_store_create(bytes_of_one() - 1), *none = wide_store_create(0);
    struct scene *scene = make_scene();
    struct envelope_base base;
    ck_assert_ptr_null(take(store, scene, &base));
    ck_assert_ptr_null(take(none, scene, &base));
    scene->base.count = 0;
    ck_assert_ptr_null(take(store, scene, &base)); /* nothing to widen */
    ck_assert_ptr_eq(base.attachments, scene->attachments);
    ck_assert_uint_eq(wide_store_bytes(store), 0);
    layer_version_release(scene->version);
    wide_store_destroy(store);
    wide_store_destroy(none);
}
END_TEST

/* No memory for the list of a request: the weights are there all the same, for the next one. */
START_TEST(without_memory_a_request_goes_on_as_it_is)
{
    struct wide_store *store = wide_store_create(1 << 30);
    struct scene *scene = make_scene();
    struct envelope_base base = scene->base;
    attn_arena *empty = attn_arena_create(0);
    ck_assert_ptr_null(wide_weights_take(store, scene->version, &runtime, empty, &base));
    ck_assert_ptr_eq(base.attachments, scene->attachments);
    struct wide_weights *wide = take(store, scene, &base);
    ck_assert_ptr_nonnull(wide);
    wide_weights_release(wide);
    attn_arena_destroy(empty);
    layer_version_release(scene->version);
    wide_store_destroy(store);
}
END_TEST

int main(void)
{
    TCase *tests = check_case("wide_weights");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, narrow_weights_become_single_and_nothing_else_changes);
    tcase_add_test(tests, the_one_not_used_for_longest_gives_way_unless_it_is_in_use);
    tcase_add_test(tests, what_does_not_fit_is_left_as_it_is);
    tcase_add_test(tests, without_memory_a_request_goes_on_as_it_is);
    return check_run("wide_weights", tests);
}

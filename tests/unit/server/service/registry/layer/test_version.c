/*
 * test_version.c: tests of server/service/registry/layer/version.c: the header that a version owns, and its digest, which
 * callers compute together, a piece at a time.
 */
#include "service/registry/layer/version.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "check_main.h"

enum { BYTES = 3 << 20 };

static const struct kept_layer_facts facts;

/* A version of many bytes, all of them that letter. */
static struct layer_version *make(char letter)
{
    attn_arena *arena = attn_arena_create(2 * BYTES);
    ck_assert_ptr_nonnull(arena);
    struct chunks content = chunks_begin(arena);
    struct file_bytes bytes;
    char *text = attn_arena_take(arena, 1, BYTES);
    ck_assert_ptr_nonnull(text);
    memset(text, letter, BYTES);
    chunks_borrow(&content, text, BYTES);
    ck_assert_int_eq(file_bytes_copy(&content, &bytes), 0);
    attn_arena_destroy(arena);
    struct layer_version *version = layer_version_create("a", bytes, NULL, &facts, NULL);
    ck_assert_ptr_nonnull(version);
    return version;
}

static void expect_digest(const struct layer_version *version, const char *digest)
{
    uint8_t sum[DIGEST_BYTES];
    char text[DIGEST_TEXT];
    digest_of(version->bytes.at, version->bytes.size, sum);
    ck_assert_ptr_nonnull(digest);
    ck_assert_str_eq(digest, digest_write(sum, text));
}

static bool now(void *context)
{
    (void)context;
    return true;
}

/* Cancels at the check of that number. */
static bool at_last(void *context)
{
    size_t *looks = context;
    return (*looks)-- == 0;
}

static attn_runtime until(bool (*is_cancelled)(void *context), void *context)
{
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = is_cancelled;
    runtime.cancel_context = context;
    return runtime;
}

START_TEST(a_version_owns_its_header)
{
    char path[] = "weights.query.weight", text[] = "{\"options\":{}}";
    float numbers[2] = {1, 2};
    const struct envelope_attachment attachment = {path, attn_tensor_view(numbers, ATTN_F32, 1, (size_t[]){2})};
    const struct envelope_source base = {.text = text, .length = strlen(text), .attachments = &attachment, .count = 1};
    struct layer_version *version = layer_version_create("a", (struct file_bytes){.at = NULL}, NULL, &facts, &base);
    ck_assert_ptr_nonnull(version);
    memset(path, 'x', sizeof path - 1);
    memset(text, 'x', sizeof text - 1);
    ck_assert_uint_eq(version->base.count, 1);
    ck_assert_str_eq(version->base.attachments[0].path, "weights.query.weight");
    ck_assert_ptr_eq(version->base.attachments[0].tensor.data, numbers);
    ck_assert_uint_eq(version->base.length, strlen("{\"options\":{}}"));
    ck_assert_mem_eq(version->base.text, "{\"options\":{}}", version->base.length);
    ck_assert_uint_gt(version->common.kept_bytes, sizeof path + sizeof text);
    layer_version_release(version);
}
END_TEST

START_TEST(a_digest_is_cancelled_between_two_pieces_and_gone_on_with)
{
    struct layer_version *version = make('a');
    char text[DIGEST_TEXT];
    size_t looks = 1;
    const attn_runtime soon = until(at_last, &looks);
    ck_assert_ptr_null(layer_version_digest(version, &soon));
    ck_assert_str_eq(layer_version_known_digest(version, text), "");
    ck_assert_uint_gt(version->summed, 0);
    ck_assert_uint_lt(version->summed, BYTES);
    expect_digest(version, layer_version_digest(version, NULL));
    ck_assert_str_eq(layer_version_known_digest(version, text), layer_version_digest(version, NULL));
    layer_version_release(version);
}
END_TEST

/* Pauses after the first piece of a digest, until the test continues it. */
struct stuck {
    struct layer_version *version;
    sem_t begun, goes_on;
    int looks;
};

static bool stand(void *context)
{
    struct stuck *stuck = context;
    if (++stuck->looks == 2) {
        sem_post(&stuck->begun);
        sem_wait(&stuck->goes_on);
    }
    return false;
}

static void *digest_slowly(void *argument)
{
    struct stuck *stuck = argument;
    const attn_runtime runtime = until(stand, stuck);
    expect_digest(stuck->version, layer_version_digest(stuck->version, &runtime));
    return NULL;
}

START_TEST(a_digest_that_is_held_up_is_finished_by_another_caller)
{
    struct stuck stuck = {.version = make('b')};
    pthread_t slow;
    char text[DIGEST_TEXT];
    const attn_runtime cancelled = until(now, NULL);
    ck_assert_int_eq(sem_init(&stuck.begun, 0, 0), 0);
    ck_assert_int_eq(sem_init(&stuck.goes_on, 0, 0), 0);
    ck_assert_int_eq(pthread_create(&slow, NULL, digest_slowly, &stuck), 0);
    sem_wait(&stuck.begun);
    ck_assert_str_eq(layer_version_known_digest(stuck.version, text), "");
    ck_assert_ptr_null(layer_version_digest(stuck.version, &cancelled));
    expect_digest(stuck.version, layer_version_digest(stuck.version, NULL));
    sem_post(&stuck.goes_on);
    ck_assert_int_eq(pthread_join(slow, NULL), 0);
    layer_version_release(stuck.version);
    sem_destroy(&stuck.begun);
    sem_destroy(&stuck.goes_on);
}
END_TEST

static void *digest_too(void *argument)
{
    struct layer_version *version = argument;
    expect_digest(version, layer_version_digest(version, NULL));
    return NULL;
}

START_TEST(callers_at_once_compute_one_digest)
{
    enum { CALLERS = 4 };
    struct layer_version *version = make('c');
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_create(&callers[i], NULL, digest_too, version), 0);
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_join(callers[i], NULL), 0);
    ck_assert_uint_eq(version->summed, BYTES);
    layer_version_release(version);
}
END_TEST

CHECK_MAIN("layer_version")
{
    tcase_add_test(tests, a_version_owns_its_header);
    tcase_add_test(tests, a_digest_is_cancelled_between_two_pieces_and_gone_on_with);
    tcase_add_test(tests, a_digest_that_is_held_up_is_finished_by_another_caller);
    tcase_add_test(tests, callers_at_once_compute_one_digest);
}

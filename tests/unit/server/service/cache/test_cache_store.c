/*
 * test_cache_store.c: tests of server/service/cache/cache_store.c: owners, limits and eviction of caches.
 */
#include "service/cache/cache_store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"

/* The bytes of a cache of that many positions, with keys and values of one float each. */
enum { POSITION_BYTES = 2 * sizeof(float), POSITIONS_MAX = 64, LAYER = 7 };

static struct cache_name named(const char *key, const char *name)
{
    return (struct cache_name){key, text_span_of(name)};
}

/* A step that extends the cache to that length; returns the result of the first call that fails. */
static enum cache_outcome step(struct cache_store *store, const char *key, const char *text, size_t length)
{
    const struct cache_name name = named(key, text);
    float numbers[POSITIONS_MAX] = {0};
    const attn_tensor tensor = attn_tensor_view(numbers, ATTN_F32, 4, (size_t[]){1, 1, length, 1});
    struct cache_loan loan;
    enum cache_outcome outcome = cache_store_begin(store, &name, LAYER, &loan);
    if (outcome != CACHE_OK)
        return outcome;
    outcome = cache_store_reserve(store, &loan, length * POSITION_BYTES);
    if (outcome == CACHE_OK)
        return cache_store_keep(store, &loan, &tensor, &tensor);
    cache_store_give_back(store, &loan);
    return outcome;
}

static enum cache_outcome look(struct cache_store *store, const char *key, const char *text)
{
    const struct cache_name name = named(key, text);
    return cache_store_look(store, &name, &(struct cache_facts){.length = 0});
}

static enum cache_outcome drop(struct cache_store *store, const char *key, const char *text)
{
    const struct cache_name name = named(key, text);
    return cache_store_remove(store, &name);
}

static struct cache_store *create(size_t max_bytes, size_t max_count, uint64_t idle_s)
{
    struct cache_store *store = cache_store_create(max_bytes, max_count, idle_s);
    ck_assert_ptr_nonnull(store);
    return store;
}

START_TEST(two_keys_have_caches_of_the_same_name)
{
    struct cache_store *store = create(1 << 20, 8, 60);
    struct cache_facts facts[4];
    const struct cache_name ours = named("a", "chat");
    ck_assert_int_eq(step(store, "a", "chat", 3), CACHE_OK);
    ck_assert_int_eq(look(store, "b", "chat"), CACHE_ABSENT);
    ck_assert_int_eq(drop(store, "b", "chat"), CACHE_ABSENT);
    ck_assert_int_eq(look(store, "", "chat"), CACHE_ABSENT);
    ck_assert_int_eq(step(store, "b", "chat", 5), CACHE_OK);
    ck_assert_int_eq(cache_store_look(store, &ours, &facts[0]), CACHE_OK);
    ck_assert_uint_eq(facts[0].length, 3);
    ck_assert_uint_eq(cache_store_list(store, "b", 4, facts), 1);
    ck_assert_str_eq(facts[0].name, "chat");
    ck_assert_uint_eq(facts[0].length, 5);
    ck_assert_uint_eq(cache_store_list(store, "c", 4, facts), 0);
    ck_assert_int_eq(drop(store, "b", "chat"), CACHE_OK);
    ck_assert_int_eq(look(store, "a", "chat"), CACHE_OK);
    cache_store_destroy(store);
}
END_TEST

/* The store compares the pair of key and name, not their concatenation. */
START_TEST(a_key_and_a_name_do_not_run_together)
{
    struct cache_store *store = create(1 << 20, 8, 60);
    ck_assert_int_eq(step(store, "ab", "c", 1), CACHE_OK);
    ck_assert_int_eq(look(store, "a", "bc"), CACHE_ABSENT);
    ck_assert_int_eq(look(store, "", "abc"), CACHE_ABSENT);
    cache_store_destroy(store);
}
END_TEST

START_TEST(a_key_holds_half_of_the_caches)
{
    struct cache_store *store = create(1 << 20, 5, 60);
    ck_assert_int_eq(step(store, "a", "1", 1), CACHE_OK);
    ck_assert_int_eq(step(store, "a", "2", 1), CACHE_OK);
    ck_assert_int_eq(step(store, "a", "3", 1), CACHE_TOO_MANY_OWN);
    ck_assert_int_eq(step(store, "a", "2", 2), CACHE_OK);
    ck_assert_int_eq(step(store, "b", "1", 1), CACHE_OK);
    ck_assert_int_eq(step(store, "b", "2", 1), CACHE_OK);
    ck_assert_int_eq(step(store, "c", "1", 1), CACHE_OK);
    ck_assert_int_eq(step(store, "c", "2", 1), CACHE_TOO_MANY);
    ck_assert_int_eq(drop(store, "a", "1"), CACHE_OK);
    ck_assert_int_eq(step(store, "c", "2", 1), CACHE_OK);
    cache_store_destroy(store);
}
END_TEST

START_TEST(a_key_holds_half_of_the_bytes)
{
    struct cache_store *store = create(10 * POSITION_BYTES, 8, 60);
    ck_assert_int_eq(step(store, "a", "1", 6), CACHE_TOO_LARGE_OWN);
    ck_assert_int_eq(look(store, "a", "1"), CACHE_ABSENT);
    ck_assert_int_eq(step(store, "a", "1", 4), CACHE_OK);
    ck_assert_int_eq(step(store, "a", "2", 2), CACHE_TOO_LARGE_OWN);
    ck_assert_int_eq(step(store, "a", "1", 5), CACHE_OK);
    ck_assert_int_eq(step(store, "b", "1", 5), CACHE_OK);
    ck_assert_int_eq(step(store, "c", "1", 1), CACHE_TOO_LARGE);
    ck_assert_uint_eq(cache_store_bytes(store), 10 * POSITION_BYTES);
    cache_store_destroy(store);
}
END_TEST

START_TEST(without_keys_one_owner_holds_everything)
{
    struct cache_store *store = create(10 * POSITION_BYTES, 2, 60);
    ck_assert_int_eq(step(store, "", "1", 9), CACHE_OK);
    ck_assert_int_eq(step(store, "", "2", 2), CACHE_TOO_LARGE);
    ck_assert_int_eq(step(store, "", "2", 1), CACHE_OK);
    ck_assert_int_eq(step(store, "", "3", 1), CACHE_TOO_MANY);
    cache_store_destroy(store);
    store = create(POSITION_BYTES * 4, 1, 60);
    ck_assert_uint_eq(cache_store_share(store, "a").count, 1);
    cache_store_destroy(store);
}
END_TEST

START_TEST(what_is_reserved_counts_until_it_is_given_back)
{
    struct cache_store *store = create(10 * POSITION_BYTES, 8, 60);
    const struct cache_name one = named("", "1"), two = named("", "2");
    struct cache_loan first, second;
    ck_assert_int_eq(cache_store_begin(store, &one, LAYER, &first), CACHE_OK);
    ck_assert_int_eq(cache_store_begin(store, &two, LAYER, &second), CACHE_OK);
    ck_assert_int_eq(cache_store_reserve(store, &first, 6 * POSITION_BYTES), CACHE_OK);
    ck_assert_int_eq(cache_store_reserve(store, &second, 6 * POSITION_BYTES), CACHE_TOO_LARGE);
    ck_assert_int_eq(cache_store_reserve(store, &second, SIZE_MAX), CACHE_TOO_LARGE);
    cache_store_give_back(store, &first);
    ck_assert_uint_eq(cache_store_bytes(store), 0);
    ck_assert_int_eq(cache_store_reserve(store, &second, 6 * POSITION_BYTES), CACHE_OK);
    cache_store_give_back(store, &second);
    cache_store_destroy(store);
}
END_TEST

START_TEST(idle_caches_are_evicted_and_their_names_remembered)
{
    struct cache_store *store = create(1 << 20, 1 << 16, 0);
    char name[16];
    ck_assert_int_eq(step(store, "a", "old", 1), CACHE_OK);
    while (look(store, "a", "old") == CACHE_OK)
        ;
    ck_assert_int_eq(step(store, "a", "old", 1), CACHE_GONE);
    ck_assert_int_eq(look(store, "b", "old"), CACHE_ABSENT);
    ck_assert_uint_eq(cache_store_bytes(store), 0);
    ck_assert_uint_eq(cache_store_list(store, "a", 1, &(struct cache_facts){.length = 0}), 0);
    /* A key with many caches cannot make the store forget the names of another key. */
    for (int i = 0; i < 3 * CACHE_GONE_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        ck_assert_int_eq(step(store, "b", name, 1), CACHE_OK);
        while (look(store, "b", name) == CACHE_OK)
            ;
    }
    ck_assert_int_eq(look(store, "b", "0"), CACHE_ABSENT);
    ck_assert_int_eq(look(store, "b", name), CACHE_GONE);
    ck_assert_int_eq(look(store, "a", "old"), CACHE_GONE);
    ck_assert_int_eq(drop(store, "a", "old"), CACHE_OK);
    ck_assert_int_eq(step(store, "a", "old", 1), CACHE_OK);
    cache_store_destroy(store);
}
END_TEST

START_TEST(a_cache_that_is_removed_while_it_is_lent_goes_with_the_step)
{
    struct cache_store *store = create(1 << 20, 8, 60);
    const struct cache_name name = named("a", "chat");
    struct cache_loan loan;
    ck_assert_int_eq(step(store, "a", "chat", 2), CACHE_OK);
    ck_assert_int_eq(cache_store_begin(store, &name, LAYER, &loan), CACHE_OK);
    ck_assert_uint_eq(loan.length, 2);
    ck_assert_int_eq(step(store, "a", "chat", 3), CACHE_BUSY);
    ck_assert_int_eq(drop(store, "a", "chat"), CACHE_OK);
    cache_store_give_back(store, &loan);
    ck_assert_int_eq(look(store, "a", "chat"), CACHE_ABSENT);
    cache_store_destroy(store);
}
END_TEST

/* ---- two threads ---- */

enum { THREADS = 2, ROUNDS = 20000, ROOM = 12 * POSITION_BYTES };

struct crowd {
    struct cache_store *store;
    atomic_int next;
    atomic_bool is_exceeded;
};

/* Steps of caches that fit one at a time, and not together. */
static void *crowd_in(void *argument)
{
    struct crowd *crowd = argument;
    const char *name = atomic_fetch_add(&crowd->next, 1) == 0 ? "one" : "other";
    for (int i = 0; i < ROUNDS; i++) {
        if (step(crowd->store, "", name, 7 + (size_t)i % 3) == CACHE_OK)
            (void)drop(crowd->store, "", name);
        if (cache_store_bytes(crowd->store) > ROOM)
            atomic_store(&crowd->is_exceeded, true);
    }
    return NULL;
}

START_TEST(two_threads_do_not_exceed_the_room)
{
    struct crowd crowd = {.store = create(ROOM, 8, 60)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, crowd_in, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert(!atomic_load(&crowd.is_exceeded));
    ck_assert_uint_eq(cache_store_bytes(crowd.store), 0);
    cache_store_destroy(crowd.store);
}
END_TEST

CHECK_MAIN("cache_store")
{
    tcase_add_test(tests, two_keys_have_caches_of_the_same_name);
    tcase_add_test(tests, a_key_and_a_name_do_not_run_together);
    tcase_add_test(tests, a_key_holds_half_of_the_caches);
    tcase_add_test(tests, a_key_holds_half_of_the_bytes);
    tcase_add_test(tests, without_keys_one_owner_holds_everything);
    tcase_add_test(tests, what_is_reserved_counts_until_it_is_given_back);
    tcase_add_test(tests, idle_caches_are_evicted_and_their_names_remembered);
    tcase_add_test(tests, a_cache_that_is_removed_while_it_is_lent_goes_with_the_step);
    tcase_add_test(tests, two_threads_do_not_exceed_the_room);
}

/*
 * test_cache_store.c: tests of server/service/cache/store.c: owners, limits and eviction of caches.
 */
#include "service/cache/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"

/* The bytes of a cache of that many positions, with keys and values of one float each. */
enum { POSITION_BYTES = 2 * sizeof(float), LAYER = 7 };

static struct cache_name named(const char *key, const char *name)
{
    return (struct cache_name){key, text_span_of(name)};
}

static attn_tensor shaped(size_t length)
{
    return attn_tensor_view(NULL, ATTN_F32, 4, (size_t[]){1, 1, length, 1});
}

/* A step that extends the cache to that length; returns the result of the first call that fails. */
static enum cache_outcome step(struct cache_store *store, const char *key, const char *text, size_t length)
{
    const struct cache_name name = named(key, text);
    const attn_tensor tensor = shaped(length);
    struct cache_loan loan;
    enum cache_outcome outcome = cache_store_begin(store, &name, LAYER, &loan);
    if (outcome != CACHE_OK)
        return outcome;
    outcome = cache_store_reserve(store, &loan, &tensor, &tensor);
    if (outcome == CACHE_OK)
        outcome = cache_store_grow(&loan);
    if (outcome != CACHE_OK) {
        cache_store_give_back(store, &loan);
        return outcome;
    }
    for (size_t j = loan.length; j < length; j++) {
        ((float *)loan.key.data)[j] = (float)j;
        ((float *)loan.value.data)[j] = -(float)j;
    }
    cache_store_keep(store, &loan);
    return CACHE_OK;
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
    ck_assert_uint_eq(cache_store_held(store).bytes, 10 * POSITION_BYTES);
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
    const attn_tensor six = shaped(6), endless = shaped(SIZE_MAX / 4);
    ck_assert_int_eq(cache_store_reserve(store, &first, &six, &six), CACHE_OK);
    ck_assert_int_eq(cache_store_reserve(store, &second, &six, &six), CACHE_TOO_LARGE);
    ck_assert_int_eq(cache_store_reserve(store, &second, &endless, &endless), CACHE_TOO_LARGE);
    cache_store_give_back(store, &first);
    ck_assert_uint_eq(cache_store_held(store).bytes, 0);
    ck_assert_int_eq(cache_store_reserve(store, &second, &six, &six), CACHE_OK);
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
    ck_assert_uint_eq(cache_store_held(store).bytes, 0);
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

/* ---- growth ---- */

enum { BATCH = 2, HEADS = 3, KEY_WIDTH = 4, VALUE_WIDTH = 5 };
/* The bytes of a position of those shapes. */
enum { WIDE_BYTES = BATCH * HEADS * (KEY_WIDTH + VALUE_WIDTH) * (int)sizeof(float) };

static attn_tensor wide(size_t length, size_t width)
{
    return attn_tensor_view(NULL, ATTN_F32, 4, (size_t[]){BATCH, HEADS, length, width});
}

static float *row_of(const attn_tensor *tensor, size_t head, size_t j)
{
    return (float *)tensor->data + (ptrdiff_t)head * tensor->stride[1] + (ptrdiff_t)j * tensor->stride[2];
}

/* Each number of a cache tells where it belongs. */
static float number(size_t head, size_t j, size_t c)
{
    return (float)(head * 10000 + j * 10 + c);
}

static void write_rows(const attn_tensor *tensor, size_t from)
{
    for (size_t head = 0; head < BATCH * HEADS; head++)
        for (size_t j = from; j < tensor->shape[2]; j++)
            for (size_t c = 0; c < tensor->shape[3]; c++)
                row_of(tensor, head, j)[c] = number(head, j, c);
}

static void check_rows(const attn_tensor *tensor, size_t length)
{
    ck_assert_uint_eq(tensor->shape[2], length);
    ck_assert_int_eq(tensor->stride[0], HEADS * tensor->stride[1]);
    for (size_t head = 0; head < BATCH * HEADS; head++)
        for (size_t j = 0; j < length; j++)
            for (size_t c = 0; c < tensor->shape[3]; c++)
                ck_assert_float_eq(row_of(tensor, head, j)[c], number(head, j, c));
}

/* Borrows the cache "wide", which has that length, and grows it to another one. */
static struct cache_loan grown(struct cache_store *store, size_t before, size_t length)
{
    const struct cache_name name = named("", "wide");
    const attn_tensor key = wide(length, KEY_WIDTH), value = wide(length, VALUE_WIDTH);
    struct cache_loan loan;
    ck_assert_int_eq(cache_store_begin(store, &name, LAYER, &loan), CACHE_OK);
    ck_assert_uint_eq(loan.length, before);
    ck_assert_int_eq(cache_store_reserve(store, &loan, &key, &value), CACHE_OK);
    ck_assert_int_eq(cache_store_grow(&loan), CACHE_OK);
    if (before > 0) {
        check_rows(&loan.block.key, before);
        check_rows(&loan.block.value, before);
    }
    write_rows(&loan.key, before);
    write_rows(&loan.value, before);
    return loan;
}

START_TEST(a_cache_grows_where_it_lies)
{
    struct cache_store *store = create(1 << 20, 8, 60);
    size_t moves = 0, length = 3;
    struct cache_loan loan = grown(store, 0, length);
    ck_assert_uint_eq(cache_store_held(store).bytes, 3 * WIDE_BYTES);
    cache_store_keep(store, &loan);
    for (; length < 100; length++) {
        loan = grown(store, length, length + 1);
        moves += loan.room == 2 * (length + 1);
        ck_assert_ptr_eq(loan.key.data, loan.block.key.data);
        ck_assert_uint_eq(cache_store_held(store).bytes, loan.room * WIDE_BYTES);
        cache_store_keep(store, &loan);
    }
    ck_assert_uint_eq(moves, 5); /* to rooms of 8, 18, 38, 78 and 158 */
    cache_store_destroy(store);
}
END_TEST

START_TEST(a_step_that_fails_leaves_rows_and_room_as_they_were)
{
    struct cache_store *store = create(1 << 20, 8, 60);
    struct cache_loan loan = grown(store, 0, 7);
    cache_store_give_back(store, &loan);
    ck_assert_int_eq(look(store, "", "wide"), CACHE_ABSENT);
    ck_assert_uint_eq(cache_store_held(store).bytes, 0);
    loan = grown(store, 0, 3);
    cache_store_keep(store, &loan);
    for (size_t more = 1; more < 40; more += 13) {
        loan = grown(store, 3, 3 + more);
        ck_assert_uint_eq(cache_store_held(store).bytes, 2 * (3 + more) * WIDE_BYTES);
        cache_store_give_back(store, &loan);
        ck_assert_uint_eq(cache_store_held(store).bytes, 3 * WIDE_BYTES);
    }
    loan = grown(store, 3, 4);
    cache_store_keep(store, &loan);
    loan = grown(store, 4, 8); /* within the room */
    cache_store_give_back(store, &loan);
    ck_assert_uint_eq(cache_store_held(store).bytes, 8 * WIDE_BYTES);
    loan = grown(store, 4, 5);
    check_rows(&loan.key, 5);
    check_rows(&loan.value, 5);
    cache_store_keep(store, &loan);
    cache_store_destroy(store);
}
END_TEST

START_TEST(what_is_reserved_and_refused_moves_nothing)
{
    struct cache_store *store = create(1 << 20, 8, 60);
    const struct cache_name name = named("", "wide");
    const attn_tensor key = wide(50, KEY_WIDTH), value = wide(50, VALUE_WIDTH);
    struct cache_loan loan = grown(store, 0, 3);
    const void *data = loan.key.data;
    cache_store_keep(store, &loan);
    ck_assert_int_eq(cache_store_begin(store, &name, LAYER, &loan), CACHE_OK);
    ck_assert_int_eq(cache_store_reserve(store, &loan, &key, &value), CACHE_OK);
    ck_assert_uint_eq(cache_store_held(store).bytes, 100 * WIDE_BYTES);
    cache_store_give_back(store, &loan);
    ck_assert_uint_eq(cache_store_held(store).bytes, 3 * WIDE_BYTES);
    loan = grown(store, 3, 3);
    ck_assert_ptr_eq(loan.key.data, data);
    cache_store_keep(store, &loan);
    cache_store_destroy(store);
}
END_TEST

/* As much as a cache without room ahead could hold. */
START_TEST(room_ahead_is_only_what_the_limit_leaves)
{
    struct cache_store *store = create(10 * POSITION_BYTES, 8, 60);
    ck_assert_int_eq(step(store, "", "1", 4), CACHE_OK);
    ck_assert_int_eq(step(store, "", "1", 5), CACHE_OK);
    ck_assert_uint_eq(cache_store_held(store).bytes, 10 * POSITION_BYTES);
    ck_assert_int_eq(step(store, "", "1", 10), CACHE_OK);
    ck_assert_int_eq(step(store, "", "1", 11), CACHE_TOO_LARGE);
    ck_assert_uint_eq(cache_store_held(store).bytes, 10 * POSITION_BYTES);
    ck_assert_int_eq(drop(store, "", "1"), CACHE_OK);
    ck_assert_int_eq(step(store, "", "1", 6), CACHE_OK);
    ck_assert_int_eq(step(store, "", "1", 7), CACHE_OK);
    ck_assert_uint_eq(cache_store_held(store).bytes, 7 * POSITION_BYTES);
    cache_store_destroy(store);
}
END_TEST

START_TEST(idle_caches_lose_the_room_that_they_do_not_use)
{
    struct cache_store *store = create(20 * POSITION_BYTES, 8, 60);
    const struct cache_name name = named("a", "1");
    struct cache_loan loan;
    ck_assert_int_eq(step(store, "a", "1", 1), CACHE_OK);
    ck_assert_int_eq(step(store, "a", "1", 3), CACHE_OK); /* room for 6 */
    ck_assert_int_eq(step(store, "b", "1", 2), CACHE_OK);
    ck_assert_int_eq(step(store, "b", "1", 4), CACHE_OK); /* room for 8 */
    ck_assert_uint_eq(cache_store_held(store).bytes, 14 * POSITION_BYTES);
    ck_assert_int_eq(step(store, "c", "1", 8), CACHE_OK); /* takes the room of a alone, which is idle for longest */
    ck_assert_uint_eq(cache_store_held(store).bytes, 19 * POSITION_BYTES);
    ck_assert_int_eq(step(store, "b", "2", 5), CACHE_OK); /* takes that of b, because a key has half */
    ck_assert_uint_eq(cache_store_held(store).bytes, 20 * POSITION_BYTES);
    ck_assert_int_eq(cache_store_begin(store, &name, LAYER, &loan), CACHE_OK);
    ck_assert_uint_eq(loan.length, 3);
    ck_assert_float_eq(((const float *)loan.block.key.data)[2], 2);
    ck_assert_float_eq(((const float *)loan.block.value.data)[2], -2);
    cache_store_give_back(store, &loan);
    cache_store_destroy(store);
}
END_TEST

START_TEST(the_room_of_a_cache_that_is_lent_is_its_own)
{
    struct cache_store *store = create(10 * POSITION_BYTES, 8, 60);
    const struct cache_name name = named("", "1");
    struct cache_loan loan;
    ck_assert_int_eq(step(store, "", "1", 2), CACHE_OK);
    ck_assert_int_eq(step(store, "", "1", 3), CACHE_OK); /* room for 6 */
    ck_assert_int_eq(cache_store_begin(store, &name, LAYER, &loan), CACHE_OK);
    ck_assert_int_eq(step(store, "", "2", 5), CACHE_TOO_LARGE);
    cache_store_give_back(store, &loan);
    ck_assert_int_eq(step(store, "", "2", 5), CACHE_OK);
    ck_assert_uint_eq(cache_store_held(store).bytes, 8 * POSITION_BYTES);
    cache_store_destroy(store);
}
END_TEST

/* Rows of a tensor without gaps, or with other ones, go where the cache has them. */
START_TEST(rows_are_written_behind_the_past)
{
    struct cache_store *store = create(1 << 20, 8, 60);
    float whole[BATCH * HEADS * 9 * KEY_WIDTH];
    struct cache_loan loan = grown(store, 0, 4);
    cache_store_keep(store, &loan);
    loan = grown(store, 4, 9);
    attn_tensor from = wide(9, KEY_WIDTH);
    from.data = whole;
    write_rows(&from, 0);
    for (size_t head = 0; head < BATCH * HEADS; head++)
        memset(row_of(&loan.key, head, 4), 0, 5 * KEY_WIDTH * sizeof(float));
    cache_block_write(&loan.key, &from, 4);
    check_rows(&loan.key, 9);
    cache_block_write(&loan.key, &from, 9);
    check_rows(&loan.key, 9);
    cache_store_keep(store, &loan);
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
        if (cache_store_held(crowd->store).bytes > ROOM)
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
    ck_assert_uint_eq(cache_store_held(crowd.store).bytes, 0);
    cache_store_destroy(crowd.store);
}
END_TEST

/* One thread grows a cache step by step, the others want it too, look at it and list it. */
static void *grow_in(void *argument)
{
    struct crowd *crowd = argument;
    const struct cache_name name = named("", "wide");
    struct cache_facts facts[2];
    for (int i = 0; i < ROUNDS / 20; i++) {
        struct cache_loan loan;
        if (cache_store_begin(crowd->store, &name, LAYER, &loan) == CACHE_OK) {
            const size_t length = loan.length % 200 + 1 > loan.length ? loan.length + 1 : loan.length;
            const attn_tensor key = wide(length, KEY_WIDTH), value = wide(length, VALUE_WIDTH);
            bool grows = cache_store_reserve(crowd->store, &loan, &key, &value) == CACHE_OK &&
                         cache_store_grow(&loan) == CACHE_OK;
            if (grows) {
                write_rows(&loan.key, loan.length);
                write_rows(&loan.value, loan.length);
            }
            if (grows && i % 3 > 0)
                cache_store_keep(crowd->store, &loan);
            else
                cache_store_give_back(crowd->store, &loan);
        }
        if (cache_store_look(crowd->store, &name, facts) == CACHE_OK && facts->bytes != facts->length * WIDE_BYTES)
            atomic_store(&crowd->is_exceeded, true);
        (void)cache_store_list(crowd->store, "", 2, facts);
        (void)step(crowd->store, "", i % 2 == 0 ? "one" : "other", (size_t)i % 40 + 1);
        if (cache_store_held(crowd->store).bytes > 300 * WIDE_BYTES)
            atomic_store(&crowd->is_exceeded, true);
    }
    return NULL;
}

START_TEST(a_cache_that_two_threads_grow_has_every_row_once)
{
    struct crowd crowd = {.store = create(300 * WIDE_BYTES, 8, 60)};
    const struct cache_name name = named("", "wide");
    pthread_t threads[THREADS];
    struct cache_loan loan;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, grow_in, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert(!atomic_load(&crowd.is_exceeded));
    ck_assert_int_eq(cache_store_begin(crowd.store, &name, LAYER, &loan), CACHE_OK);
    check_rows(&loan.block.key, loan.length);
    check_rows(&loan.block.value, loan.length);
    cache_store_give_back(crowd.store, &loan);
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
    tcase_add_test(tests, a_cache_grows_where_it_lies);
    tcase_add_test(tests, a_step_that_fails_leaves_rows_and_room_as_they_were);
    tcase_add_test(tests, what_is_reserved_and_refused_moves_nothing);
    tcase_add_test(tests, room_ahead_is_only_what_the_limit_leaves);
    tcase_add_test(tests, idle_caches_lose_the_room_that_they_do_not_use);
    tcase_add_test(tests, the_room_of_a_cache_that_is_lent_is_its_own);
    tcase_add_test(tests, rows_are_written_behind_the_past);
    tcase_add_test(tests, a_cache_that_two_threads_grow_has_every_row_once);
}

/* keys.c: API keys from a file, with their rights and quotas. */
#include "service/keys.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/text.h"

enum { LINE_BYTES_MAX = 1024, TOKEN_BYTES = 32 };

typedef enum { QUOTA_REQUESTS, QUOTA_BYTES, QUOTA_FLOPS, QUOTAS } quota_kind;

static const char *const quota_names[QUOTAS] = {"requests", "bytes", "flops"};

/* A token bucket. rate 0: no limit. level is what may still be used, as of since_s; a negative level is owed. */
struct bucket {
    double rate, level, since_s;
};

struct key {
    char name[KEYS_NAME_MAX + 1];
    uint8_t digest[DIGEST_BYTES];
    unsigned rights;
    struct bucket buckets[QUOTAS];
};

struct keyring {
    struct key *keys;
    size_t count;
};

struct keys {
    char *path;
    pthread_mutex_t lock; /* guards what follows */
    struct keyring ring;
};

/* ---- quotas ---- */

static double room_of(quota_kind which, double rate)
{
    return which == QUOTA_REQUESTS && rate < 1 ? 1 : rate;
}

static void bucket_fill(struct bucket *bucket, quota_kind which, double at_s)
{
    const double room = room_of(which, bucket->rate), level = bucket->level + bucket->rate * (at_s - bucket->since_s);
    bucket->level = level < room ? level : room;
    bucket->since_s = at_s;
}

/*
 * What must flow in before the next request. A request needs one whole unit of requests. Bytes and operations need only
 * a level above 0.
 */
static double missing_of(const struct bucket *bucket, quota_kind which)
{
    if (which == QUOTA_REQUESTS)
        return 1 - bucket->level;
    return bucket->level > 0 ? 0 : 1 - bucket->level;
}

/* Whether the quota is not used up, apart from what the request owes itself. False: answer says what is used up. */
static bool is_within_quota(struct key *key, const double own[QUOTAS], struct keys_answer *answer)
{
    const double at_s = 1e-3 * clock_now_ms();
    for (quota_kind which = 0; which < QUOTAS; which++) {
        struct bucket *bucket = &key->buckets[which];
        if (bucket->rate == 0)
            continue;
        bucket_fill(bucket, which, at_s);
        const struct bucket without = {bucket->rate, bucket->level + own[which], at_s};
        const double missing = missing_of(&without, which);
        if (missing <= 0)
            continue;
        answer->exhausted = quota_names[which];
        answer->retry_after_s = missing / bucket->rate;
        return false;
    }
    return true;
}

/* ---- one line ---- */

/* Returns 0 for an unknown right. */
static unsigned right_of(struct text_span word)
{
    static const struct {
        const char *name;
        unsigned rights;
    } known[] = {{"compute", RIGHT_COMPUTE},
                 {"layers", RIGHT_LAYERS},
                 {"metrics", RIGHT_METRICS},
                 {"all", RIGHT_COMPUTE | RIGHT_LAYERS | RIGHT_METRICS}};
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (text_equal(word, known[i].name))
            return known[i].rights;
    return 0;
}

static const char *read_rights(struct text_span text, unsigned *rights)
{
    struct text_span word;
    *rights = text.length == 0 ? RIGHT_COMPUTE : 0;
    while (text_next(&text, ',', &word)) {
        if (right_of(word) == 0)
            return "rights are compute, layers, metrics or all, separated by commas";
        *rights |= right_of(word);
    }
    return NULL;
}

static bool read_amount(quota_kind which, const char *text, double *amount)
{
    uint64_t bytes;
    if (which != QUOTA_BYTES)
        return text_read_real(text, amount) && *amount > 0;
    if (!text_read_bytes(text, &bytes) || bytes == 0)
        return false;
    *amount = (double)bytes;
    return true;
}

static bool read_limit(struct text_span word, struct bucket buckets[QUOTAS])
{
    char amount[64];
    for (quota_kind which = 0; which < QUOTAS; which++) {
        const size_t length = strlen(quota_names[which]);
        if (word.length <= length || strncmp(word.at, quota_names[which], length) != 0 || word.at[length] != '=' ||
            word.length - length - 1 >= sizeof amount)
            continue;
        snprintf(amount, sizeof amount, "%.*s", (int)(word.length - length - 1), word.at + length + 1);
        return read_amount(which, amount, &buckets[which].rate);
    }
    return false;
}

static const char *read_quota(struct text_span text, struct bucket buckets[QUOTAS])
{
    struct text_span word;
    while (text_next(&text, ',', &word))
        if (!read_limit(word, buckets))
            return "a quota is requests=N, bytes=N (with K, M, G or T) or flops=N, each above 0 and per second";
    for (quota_kind which = 0; which < QUOTAS; which++) {
        buckets[which].level = room_of(which, buckets[which].rate);
        buckets[which].since_s = 1e-3 * clock_now_ms();
    }
    return NULL;
}

/* Returns NULL, or a sentence that says what is wrong. */
static const char *read_key(struct text_span line, struct key *key)
{
    struct text_span name = {"", 0}, digest = {"", 0}, rights = {"", 0}, limits = {"", 0};
    *key = (struct key){.rights = 0};
    (void)text_next(&line, ':', &name);
    if (!text_is_name(name.at, name.length, KEYS_NAME_MAX))
        return "a name is 1 to 64 letters, digits, dots, hyphens and underscores";
    snprintf(key->name, sizeof key->name, "%.*s", (int)name.length, name.at);
    if (!text_next(&line, ':', &digest) || !digest_read(digest, key->digest))
        return "behind the name stand a colon and the SHA-256 of the key in 64 hexadecimal digits";
    (void)text_next(&line, ':', &rights);
    (void)text_next(&line, ':', &limits);
    if (line.length > 0)
        return "a line has at most four parts: name, digest, rights, quota";
    const char *wrong = read_rights(rights, &key->rights);
    return wrong != NULL ? wrong : read_quota(limits, key->buckets);
}

/* ---- the file ---- */

static struct key *key_by_name(const struct keyring *ring, const char *name)
{
    for (size_t i = 0; i < ring->count; i++)
        if (strcmp(ring->keys[i].name, name) == 0)
            return &ring->keys[i];
    return NULL;
}

static const char *add_line(struct keyring *ring, struct text_span line)
{
    if (line.length == 0 || line.at[0] == '#')
        return NULL;
    if (ring->count == KEYS_MAX)
        return "there are more keys than 4096";
    struct key key;
    const char *wrong = read_key(line, &key);
    if (wrong != NULL)
        return wrong;
    if (key_by_name(ring, key.name) != NULL)
        return "the name stands there twice";
    struct key *grown = realloc(ring->keys, (ring->count + 1) * sizeof *grown);
    if (grown == NULL)
        return "no memory for the keys";
    ring->keys = grown;
    ring->keys[ring->count++] = key;
    return NULL;
}

static const char *read_lines(FILE *file, struct keyring *ring, size_t *number)
{
    char line[LINE_BYTES_MAX];
    const char *wrong = NULL;
    for (*number = 1; wrong == NULL && fgets(line, sizeof line, file) != NULL; ++*number) {
        const size_t length = strcspn(line, "\r\n");
        wrong = length == sizeof line - 1 ? "the line is too long"
                                          : add_line(ring, text_trim((struct text_span){line, length}));
    }
    --*number;
    return wrong;
}

static void keyring_free(struct keyring *ring)
{
    free(ring->keys);
    *ring = (struct keyring){NULL, 0};
}

static bool keyring_read(const char *path, struct keyring *ring, char *message, size_t message_size)
{
    *ring = (struct keyring){NULL, 0};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(message, message_size, "keys: %s: %s", path, strerror(errno));
        return false;
    }
    size_t number;
    const char *wrong = read_lines(file, ring, &number);
    const bool is_whole = ferror(file) == 0;
    fclose(file);
    if (wrong != NULL)
        snprintf(message, message_size, "keys: %s, line %zu: %s", path, number, wrong);
    else if (!is_whole || ring->count == 0)
        snprintf(message, message_size, "keys: %s %s", path, is_whole ? "holds no key" : "cannot be read");
    if (wrong == NULL && is_whole && ring->count > 0)
        return true;
    keyring_free(ring);
    return false;
}

struct keys *keys_create(const char *path, char *message, size_t message_size)
{
    struct keys *keys = calloc(1, sizeof *keys);
    char *copy = strdup(path);
    if (keys == NULL || copy == NULL) {
        snprintf(message, message_size, "keys: no memory");
    } else if (keyring_read(path, &keys->ring, message, message_size)) {
        keys->path = copy;
        pthread_mutex_init(&keys->lock, NULL);
        return keys;
    }
    free(keys);
    free(copy);
    return NULL;
}

void keys_destroy(struct keys *keys)
{
    if (keys == NULL)
        return;
    pthread_mutex_destroy(&keys->lock);
    keyring_free(&keys->ring);
    free(keys->path);
    free(keys);
}

/* Keeps the levels of keys that stay. Debts stay too; no level exceeds what the new quota holds. */
static void keep_levels(struct keyring *ring, const struct keyring *old)
{
    for (size_t i = 0; i < ring->count; i++) {
        const struct key *before = key_by_name(old, ring->keys[i].name);
        for (quota_kind which = 0; before != NULL && which < QUOTAS; which++) {
            struct bucket *bucket = &ring->keys[i].buckets[which];
            if (before->buckets[which].rate == 0)
                continue;
            bucket->since_s = before->buckets[which].since_s;
            if (before->buckets[which].level < bucket->level)
                bucket->level = before->buckets[which].level;
        }
    }
}

bool keys_reload(struct keys *keys, char *message, size_t message_size)
{
    struct keyring ring;
    if (!keyring_read(keys->path, &ring, message, message_size))
        return false;
    pthread_mutex_lock(&keys->lock);
    keep_levels(&ring, &keys->ring);
    struct keyring old = keys->ring;
    keys->ring = ring;
    pthread_mutex_unlock(&keys->lock);
    keyring_free(&old);
    return true;
}

/* ---- requests ---- */

/* Compares every key, also after it has found one, so that the time does not depend on the key. */
static struct key *key_by_digest(struct keyring *ring, const uint8_t digest[DIGEST_BYTES])
{
    struct key *found = NULL;
    for (size_t i = 0; i < ring->count; i++)
        if (digest_equal(ring->keys[i].digest, digest))
            found = &ring->keys[i];
    return found;
}

bool keys_knows(struct keys *keys, const char *text)
{
    uint8_t digest[DIGEST_BYTES];
    digest_of(text, strlen(text), digest);
    pthread_mutex_lock(&keys->lock);
    const bool is_known = key_by_digest(&keys->ring, digest) != NULL;
    pthread_mutex_unlock(&keys->lock);
    return is_known;
}

struct keys_answer keys_ask(struct keys *keys, const char *token, unsigned rights, uint64_t body_bytes)
{
    static const double nothing[QUOTAS] = {0};
    struct keys_answer answer = {.verdict = KEYS_UNKNOWN};
    uint8_t digest[DIGEST_BYTES];
    digest_of(token, strlen(token), digest);
    pthread_mutex_lock(&keys->lock);
    struct key *key = key_by_digest(&keys->ring, digest);
    if (key != NULL) {
        snprintf(answer.name, sizeof answer.name, "%s", key->name);
        answer.verdict = (key->rights & rights) != rights         ? KEYS_FORBIDDEN
                         : is_within_quota(key, nothing, &answer) ? KEYS_ALLOWED
                                                                  : KEYS_EXHAUSTED;
    }
    if (answer.verdict == KEYS_ALLOWED) {
        key->buckets[QUOTA_REQUESTS].level -= 1;
        key->buckets[QUOTA_BYTES].level -= (double)body_bytes;
    }
    pthread_mutex_unlock(&keys->lock);
    return answer;
}

static void take(struct key *key, const struct keys_cost *cost)
{
    key->buckets[QUOTA_BYTES].level -= cost->bytes;
    key->buckets[QUOTA_FLOPS].level -= cost->flops;
}

struct keys_answer keys_spend(struct keys *keys, const char *name, const struct keys_cost *own,
                              const struct keys_cost *more)
{
    /* The request itself was admitted already, so its own share does not count against it. */
    const double owed[QUOTAS] = {[QUOTA_REQUESTS] = 1, [QUOTA_BYTES] = own->bytes, [QUOTA_FLOPS] = own->flops};
    struct keys_answer answer = {.verdict = KEYS_ALLOWED};
    pthread_mutex_lock(&keys->lock);
    struct key *key = key_by_name(&keys->ring, name);
    if (key != NULL && !is_within_quota(key, owed, &answer))
        answer.verdict = KEYS_EXHAUSTED;
    else if (key != NULL)
        take(key, more);
    pthread_mutex_unlock(&keys->lock);
    snprintf(answer.name, sizeof answer.name, "%s", name);
    return answer;
}

void keys_charge(struct keys *keys, const char *name, const struct keys_cost *cost)
{
    pthread_mutex_lock(&keys->lock);
    struct key *key = key_by_name(&keys->ring, name);
    if (key != NULL)
        take(key, cost);
    pthread_mutex_unlock(&keys->lock);
}

size_t keys_quotas(struct keys *keys, const char *name, struct keys_quota *quotas, size_t max)
{
    const double at_s = 1e-3 * clock_now_ms();
    size_t count = 0;
    pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < keys->ring.count; i++) {
        struct key *key = &keys->ring.keys[i];
        if (name != NULL && strcmp(name, key->name) != 0)
            continue;
        for (quota_kind which = 0; which < QUOTAS && count < max; which++) {
            struct bucket *bucket = &key->buckets[which];
            if (bucket->rate == 0)
                continue;
            bucket_fill(bucket, which, at_s);
            struct keys_quota *quota = &quotas[count++];
            *quota = (struct keys_quota){.name = quota_names[which],
                                         .rate = bucket->rate,
                                         .limit = room_of(which, bucket->rate),
                                         .left = bucket->level};
            text_copy(quota->key, sizeof quota->key, key->name);
        }
    }
    pthread_mutex_unlock(&keys->lock);
    return count;
}

/* A whole number as structured fields may have it (RFC 9651, section 3.3.1). */
static double field_integer(double value)
{
    return fmin(fmax(value, 0), 999999999999999);
}

bool keys_write_fields(struct keys *keys, const char *name, char policy[KEYS_FIELD_MAX], char left[KEYS_FIELD_MAX])
{
    enum { ENTRY = KEYS_FIELD_MAX / KEYS_QUOTAS };
    struct keys_quota quotas[KEYS_QUOTAS];
    char *to_policy = policy, *to_left = left;
    const size_t count = keys_quotas(keys, name, quotas, KEYS_QUOTAS);
    for (size_t i = 0; i < count; i++) {
        const struct keys_quota *quota = &quotas[i];
        const char *comma = i > 0 ? ", " : "";
        const double q = floor(quota->limit), w = ceil(quota->limit / quota->rate), r = floor(quota->left),
                     t = ceil((quota->limit - quota->left) / quota->rate);
        to_policy += snprintf(to_policy, ENTRY, "%s\"%s\";q=%.0f;w=%.0f", comma, quota->name, field_integer(q),
                              field_integer(w));
        to_left +=
            snprintf(to_left, ENTRY, "%s\"%s\";r=%.0f;t=%.0f", comma, quota->name, field_integer(r), field_integer(t));
    }
    return count > 0;
}

_Static_assert((int)QUOTAS == (int)KEYS_QUOTAS, "keys.h says how many quotas there are");

/* ---- new keys ---- */

/* Makes 256 random bits. Nobody can guess them, so a plain digest is as safe as a slow one. */
static bool make_token(char token[KEYS_TOKEN_MAX])
{
    uint8_t bytes[TOKEN_BYTES];
    char text[DIGEST_TEXT];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    snprintf(token, KEYS_TOKEN_MAX, "attnd_%s", digest_write(bytes, text));
    return true;
}

bool keys_make(const char *name, const char *rights, const char *quota, char token[KEYS_TOKEN_MAX], char *line,
               size_t line_size, char *message, size_t message_size)
{
    uint8_t digest[DIGEST_BYTES];
    char text[DIGEST_TEXT];
    struct key key;
    if (!make_token(token)) {
        snprintf(message, message_size, "the system has no random bytes");
        return false;
    }
    digest_of(token, strlen(token), digest);
    const char *separator = quota != NULL ? ":" : "";
    snprintf(line, line_size, "%s:%s:%s%s%s", name, digest_write(digest, text), rights != NULL ? rights : "compute",
             separator, quota != NULL ? quota : "");
    const char *wrong = read_key(text_span_of(line), &key);
    if (wrong != NULL)
        snprintf(message, message_size, "%s", wrong);
    return wrong == NULL;
}

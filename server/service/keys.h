/*
 * keys.h: API keys from a file: the rights and the quota of each client.
 *
 * Each line is a key. Empty lines and lines that start with # are ignored:
 *
 *     name:sha256[:rights[:quota]]
 *
 *   name    letters, digits, . _ and -, for the log
 *   sha256  64 hexadecimal digits: the file does not hold the keys themselves
 *   rights  of compute, layers and metrics, separated by commas, or all; compute when left out
 *   quota   of requests=N, bytes=N (with K, M, G) and flops=N, separated by commas, each per second
 *
 * Quotas are token buckets that hold one second's worth, and at least one request. A request is let in while no bucket
 * is empty, and may overdraw one. So a request of any size gets through, and over time the rate holds. A cost is taken
 * as soon as it is known: the body with the header, the operations and the largest possible answer with the plan, and
 * the answer to a GET before its first byte is sent. So when requests begin at the same time, one of them overdraws,
 * and the others find the bucket empty. At the end of a request, the part that it did not need is given back.
 */
#ifndef SERVICE_KEYS_H
#define SERVICE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rights that a route requires, as a set of bits. */
enum { RIGHT_NONE = 0, RIGHT_COMPUTE = 1, RIGHT_LAYERS = 2, RIGHT_METRICS = 4 };

enum { KEYS_NAME_MAX = 64, KEYS_MAX = 4096, KEYS_TOKEN_MAX = 512 };

struct keys;

/* Reads the keys of the file at path. NULL: message says which line is wrong. */
struct keys *keys_create(const char *path, char *message, size_t message_size);
/* keys may be NULL. */
void keys_destroy(struct keys *keys);
/*
 * Reads the file again. Keys that keep their name keep their use of the quota. False: message says why, and nothing
 * changes.
 */
bool keys_reload(struct keys *keys, char *message, size_t message_size);
/* Whether the text is one of the keys. Nothing is charged. */
bool keys_knows(struct keys *keys, const char *text);

typedef enum { KEYS_ALLOWED, KEYS_UNKNOWN, KEYS_FORBIDDEN, KEYS_EXHAUSTED } keys_verdict;

struct keys_answer {
    keys_verdict verdict;
    char name[KEYS_NAME_MAX + 1]; /* "" for an unknown key */
    const char *exhausted;        /* the quota that is used up: "requests", "bytes" or "flops" */
    double retry_after_s;         /* seconds until the quota allows another request */
};

/* The cost of a request: the bytes of its body and its answer, and its operations. */
struct keys_cost {
    double bytes, flops;
};

/*
 * Whether the client with this token has those rights. If so, its quota is charged one request and the bytes of its
 * body. The time of the comparison does not depend on how many characters of a wrong token are right.
 */
struct keys_answer keys_ask(struct keys *keys, const char *token, unsigned rights, uint64_t body_bytes);
/*
 * Charges more to the key of that name, if its quota allows. own is what the request was charged already. KEYS_ALLOWED:
 * it was charged. KEYS_EXHAUSTED: other requests have used up the quota. A name that is no longer in the file is
 * allowed.
 */
struct keys_answer keys_spend(struct keys *keys, const char *name, const struct keys_cost *own,
                              const struct keys_cost *more);
/* Charges the key of that name for the cost of a request beyond its earlier charges. A negative cost is given back. */
void keys_charge(struct keys *keys, const char *name, const struct keys_cost *cost);

/* One quota of a key. limit is what an idle key may use at once, and rate what flows in per second. */
struct keys_quota {
    char key[KEYS_NAME_MAX + 1];
    const char *name;         /* "requests", "bytes" or "flops" */
    double rate, limit, left; /* left below 0 is owed */
};

enum { KEYS_QUOTAS = 3 };

/* Fills in the quotas that the key of that name has, and returns how many; NULL: up to max quotas of all keys. */
size_t keys_quotas(struct keys *keys, const char *name, struct keys_quota *quotas, size_t max);

/*
 * Writes the fields RateLimit-Policy and RateLimit for the key of that name, as draft-ietf-httpapi-ratelimit-headers-10
 * has them: q is the limit, w its window in seconds, r what is left, and t the seconds until all of the limit is there
 * again. False: it has no quota.
 */
enum { KEYS_FIELD_MAX = 80 * KEYS_QUOTAS };
bool keys_write_fields(struct keys *keys, const char *name, char policy[KEYS_FIELD_MAX], char left[KEYS_FIELD_MAX]);

/*
 * Makes a new random key: the token for its owner, and the line for the file. rights and quota may be NULL; the line
 * then leaves them out. False: message says what is wrong with rights or quota.
 */
bool keys_make(const char *name, const char *rights, const char *quota, char token[KEYS_TOKEN_MAX], char *line,
               size_t line_size, char *message, size_t message_size);

#endif

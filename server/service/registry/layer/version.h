/*
 * version.h: one version of a kept layer: its bytes, its header, which is read once, and its digest.
 *
 * Requests compute with the copy of the header that the version owns. The bytes may be a file that another program
 * writes to in place. Then numbers change, but no offset, shape or text does. The version is overwritten then: what was
 * computed with it meanwhile may be of two files, and must not be sent.
 */
#ifndef SERVICE_REGISTRY_LAYER_VERSION_H
#define SERVICE_REGISTRY_LAYER_VERSION_H

#include <pthread.h>

#include "codec/request/kept_layer.h"
#include "service/registry/prepared.h"
#include "service/registry/version.h"

struct layer_version {
    struct version common;
    struct file_bytes bytes;
    struct kept_layer_facts facts;
    struct envelope_source base; /* its tensors lie in bytes, all its text in header */
    void *header;
    size_t header_bytes;
    int64_t modified_ns;             /* nanoseconds since 1970 */
    uint64_t number;                 /* above 0 and unique */
    const struct layer_files *files; /* borrowed: the directory with its file; NULL: there is none */
    const struct chunk *pieces; /* the file of a fixed layer, in the memory of its model; NULL: bytes has the file */
    struct prepared_slot prepared;
    pthread_mutex_t lock; /* guards what follows, and is held for moments only */
    pthread_cond_t summed_more;
    bool is_summing;          /* one caller owns sum and summed for the time of one piece */
    struct digest_sum sum;    /* the digest of the first bytes */
    size_t summed;            /* how many bytes are in sum */
    char digest[DIGEST_TEXT]; /* SHA-256 of the bytes in hexadecimal; "" until it was computed */
};

/*
 * Takes over the bytes, and copies base, whose tensors lie in them; base NULL stands for an empty one. The caller owns
 * the only reference. NULL without memory; the caller then still owns the bytes.
 */
struct layer_version *layer_version_create(const char *name, struct file_bytes bytes,
                                           const struct file_identity *identity, const struct kept_layer_facts *facts,
                                           const struct envelope_source *base);
/*
 * Makes a version of bytes that should be a layer's file: reads the header. The bytes are taken over. If they are not a
 * layer, they are released and *version is NULL. Failures are those of kept_layer_read.
 */
ATTN_MUST_CHECK attn_status layer_version_read(const char *name, struct file_bytes bytes,
                                               const struct file_identity *identity, struct layer_version **version,
                                               attn_error *err);
/* The bytes of the layer's file. */
size_t layer_version_file_bytes(const struct layer_version *version);
/* The layer that the version is of. NULL: the version is of another kind, or NULL. */
static inline struct layer_version *layer_version_of(struct version *version)
{
    return version != NULL && version->of->kind == KIND_LAYER ? (struct layer_version *)version : NULL;
}
/* version may be NULL. */
static inline void layer_version_release(struct layer_version *version)
{
    version_release((struct version *)version);
}

/*
 * Computes the digest. Callers read the bytes together: each takes the next piece when no other caller has one. So a
 * caller waits for at most one piece of another, and finishes the digest alone when the others stop. Between two pieces
 * a caller checks whether it is cancelled. NULL: runtime was cancelled. runtime NULL: cannot be cancelled.
 */
const char *layer_version_digest(struct layer_version *version, const attn_runtime *runtime);
/* Writes the digest if it is known already, else "". This neither reads nor waits. Returns text. */
const char *layer_version_known_digest(struct layer_version *version, char text[DIGEST_TEXT]);

/*
 * If-Match and If-None-Match of a request for a layer (RFC 9110, section 13.1), and the digest of a
 * version, which entity tags contain. Failures fill in call->refusal and *call->err.
 */

/*
 * Returns the digest of the version; this may have to compute it. NULL: the request was cancelled (ATTN_ERR_CANCELLED).
 */
const char *layer_digest(struct layer_version *version, struct call *call);

/*
 * Whether call's conditions hold for that version. version NULL: there is no layer. The tag of any representation
 * counts as a tag of the version, because a change concerns the version.
 */
ATTN_MUST_CHECK attn_status layer_check_match(struct layer_version *version, struct call *call); /* If-Match alone */
/* Also checks If-None-Match, which forbids a change if the version exists. */
ATTN_MUST_CHECK attn_status layer_check_conditions(struct layer_version *version, struct call *call);
/* Whether the two functions above would compute the digest: it is unknown, and a condition has a tag. */
bool layer_conditions_lack_digest(struct layer_version *version, const struct call *call);

#endif

/* version.c: makes, reads and releases one version of a kept layer, and computes its digest. */
#include "service/registry/layer/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "codec/bytes/outcome.h"
#include "codec/bytes/pace.h"

enum { READ_BYTES_MAX = 8 << 20 }; /* the most memory for reading a header and the text in it */

static atomic_uint_fast64_t versions_made;

/* ---- the header ---- */

static char *copy_text(char **room, const char *text, size_t length)
{
    char *copy = *room;
    memcpy(copy, text, length);
    *room += length;
    return copy;
}

/* Copies the attachments, then their paths and the text, into one block. */
static bool copy_header(struct layer_version *version, const struct envelope_source *base)
{
    size_t bytes = base->count * sizeof *base->attachments + base->length + 1;
    for (size_t i = 0; i < base->count; i++)
        bytes += strlen(base->attachments[i].path) + 1;
    struct envelope_attachment *attachments = malloc(bytes);
    if (attachments == NULL)
        return false;
    char *room = (char *)(attachments + base->count);
    for (size_t i = 0; i < base->count; i++) {
        const char *path = base->attachments[i].path;
        attachments[i] = base->attachments[i];
        attachments[i].path = copy_text(&room, path, strlen(path) + 1);
    }
    version->base = (struct envelope_source){.text = copy_text(&room, base->text, base->length),
                                             .length = base->length,
                                             .attachments = attachments,
                                             .count = base->count,
                                             .is_of_model = base->is_of_model};
    *room = '\0';
    version->header = attachments;
    version->header_bytes = bytes;
    return true;
}

/* ---- one version ---- */

static void destroy(struct version *self)
{
    struct layer_version *version = (struct layer_version *)self;
    prepared_slot_clear(&version->prepared);
    file_bytes_release(&version->bytes);
    pthread_cond_destroy(&version->summed_more);
    pthread_mutex_destroy(&version->lock);
    free(version->header);
    free(version);
}

static bool look(struct version *self)
{
    const struct layer_version *version = (struct layer_version *)self;
    struct file_identity now;
    return file_bytes_are_torn(&version->bytes) || (version->files != NULL && self->identity.inode != 0 &&
                                                    layer_files_look(version->files, self->name, &now) == 0 &&
                                                    file_identity_is_rewritten(&self->identity, &now));
}

static const char *known_name(struct version *self, char text[DIGEST_TEXT])
{
    return layer_version_known_digest((struct layer_version *)self, text);
}

struct layer_version *layer_version_create(const char *name, struct file_bytes bytes,
                                           const struct file_identity *identity, const struct kept_layer_facts *facts,
                                           const struct envelope_source *base)
{
    static const struct version_kind kind = {KIND_LAYER, destroy, look, known_name};
    struct layer_version *version = calloc(1, sizeof *version);
    struct timespec now;
    if (version == NULL || (base != NULL && !copy_header(version, base))) {
        free(version);
        return NULL;
    }
    version_init(&version->common, &kind, name);
    version->common.file_bytes = bytes.size;
    version->common.kept_bytes = bytes.size + version->header_bytes;
    version->bytes = bytes;
    version->number = atomic_fetch_add(&versions_made, 1) + 1;
    version->facts = *facts;
    pthread_mutex_init(&version->lock, NULL);
    clock_init_condition(&version->summed_more);
    digest_begin(&version->sum);
    if (identity != NULL)
        version->common.identity = *identity;
    clock_gettime(CLOCK_REALTIME, &now);
    version->modified_ns = identity != NULL ? identity->modified_ns : (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return version;
}

attn_status layer_version_read(const char *name, struct file_bytes bytes, const struct file_identity *identity,
                               struct layer_version **version, attn_error *err)
{
    struct kept_layer_facts facts;
    struct envelope_source base;
    struct outcome read = {.arena = attn_arena_create(READ_BYTES_MAX), .err = err};
    *version = NULL;
    if (read.arena != NULL &&
        outcome_note(&read, kept_layer_read(bytes.at, bytes.size, read.arena, &base, &facts, err)))
        *version = layer_version_create(name, bytes, identity, &facts, &base);
    if (*version == NULL) {
        outcome_fail(&read, ATTN_ERR_NO_MEMORY, NULL, "no memory to look into the layer");
        file_bytes_release(&bytes);
    }
    attn_arena_destroy(read.arena);
    return read.status;
}

size_t layer_version_file_bytes(const struct layer_version *version)
{
    size_t bytes = version->bytes.size;
    for (const struct chunk *piece = version->pieces; piece != NULL; piece = piece->next)
        bytes += piece->length;
    return bytes;
}

/* ---- its digest ---- */

enum turn { TURN_KNOWN, TURN_OURS, TURN_OTHERS, TURN_CANCELLED };

/*
 * Waits until another caller has summed its piece, or until the next check for cancellation. The caller holds the lock.
 */
static void wait_for_piece(struct layer_version *version)
{
    enum { LOOK_MS = 10 };
    const struct timespec until = clock_after_ms(LOOK_MS);
    (void)pthread_cond_timedwait(&version->summed_more, &version->lock, &until);
}

/* Decides who sums the next piece. was_cancelled: the caller found itself cancelled before it took the lock. */
static enum turn take_turn(struct layer_version *version, bool was_cancelled)
{
    enum turn turn = TURN_OURS;
    pthread_mutex_lock(&version->lock);
    if (version->digest[0] != '\0') {
        turn = TURN_KNOWN;
    } else if (was_cancelled) {
        turn = TURN_CANCELLED;
    } else if (version->is_summing) {
        turn = TURN_OTHERS;
        wait_for_piece(version);
    } else {
        version->is_summing = true;
    }
    pthread_mutex_unlock(&version->lock);
    return turn;
}

/* Summing a piece takes some milliseconds. It needs no lock, because is_summing keeps other callers out. */
static void sum_piece(struct layer_version *version)
{
    enum { PIECE_BYTES = 1 << 20 };
    size_t left = version->bytes.size - version->summed, before = version->summed;
    const char *at = version->bytes.at + version->summed;
    for (const struct chunk *piece = version->pieces; piece != NULL; piece = piece->next) {
        at = piece->data + before;
        left = piece->length - before;
        if (before < piece->length)
            break;
        before -= piece->length;
    }
    const size_t length = left < PIECE_BYTES ? left : PIECE_BYTES;
    uint8_t digest[DIGEST_BYTES];
    if (length > 0)
        digest_add(&version->sum, at, length);
    pthread_mutex_lock(&version->lock);
    version->is_summing = false;
    version->summed += length;
    if (version->summed == layer_version_file_bytes(version)) {
        digest_end(&version->sum, digest);
        digest_write(digest, version->digest);
    }
    pthread_cond_broadcast(&version->summed_more);
    pthread_mutex_unlock(&version->lock);
}

const char *layer_version_digest(struct layer_version *version, const attn_runtime *runtime)
{
    for (;;) {
        switch (take_turn(version, pace_is_cancelled(runtime))) {
        case TURN_KNOWN:
            return version->digest;
        case TURN_OURS:
            sum_piece(version);
            break;
        case TURN_OTHERS:
            break;
        case TURN_CANCELLED:
            return NULL;
        }
    }
}

const char *layer_version_known_digest(struct layer_version *version, char text[DIGEST_TEXT])
{
    pthread_mutex_lock(&version->lock);
    memcpy(text, version->digest, DIGEST_TEXT);
    pthread_mutex_unlock(&version->lock);
    return text;
}

/* ---- conditions (RFC 9110, sections 8.8.3 and 13.1) ---- */

const char *layer_digest(struct layer_version *version, struct call *call)
{
    const char *digest = layer_version_digest(version, call->in.runtime);
    if (digest == NULL)
        (void)attn_fail(call->err, ATTN_ERR_CANCELLED, NULL, "the digest of the layer was not finished");
    return digest;
}

/* Whether the tag belongs to the version: "DIGEST", or "DIGEST-…" with a representation after the hyphen. "" has no tag. */
static bool is_tag_of(struct text_span tag, const char *digest)
{
    enum { END = DIGEST_TEXT }; /* offset of the character after quote and digest */
    if (digest[0] == '\0' || tag.length <= END || tag.at[0] != '"' || memcmp(tag.at + 1, digest, END - 1) != 0)
        return false;
    return tag.at[END] == '-' ? tag.at[tag.length - 1] == '"' : tag.at[END] == '"' && tag.length == END + 1;
}

/* Whether a list of entity tags contains the version of that digest. A weak tag counts only if weak_is_fine. */
static bool list_names(const char *list, const char *digest, bool weak_is_fine)
{
    struct text_span rest = text_span_of(list), tag;
    bool is_weak;
    while (digest != NULL && text_next_tag(&rest, &tag, &is_weak))
        if ((!is_weak && text_equal(tag, "*")) || ((!is_weak || weak_is_fine) && is_tag_of(tag, digest)))
            return true;
    return false;
}

/* Whether the list has "*". It matches every version, so no digest is needed. */
static bool names_any(const char *list)
{
    return list_names(list, "", false);
}

/* The digest to compare with a list. "" when it is unknown and not needed. NULL: cancelled. */
static const char *digest_for(const char *list, struct layer_version *version, struct call *call,
                              char known[DIGEST_TEXT])
{
    return names_any(list) ? layer_version_known_digest(version, known) : layer_digest(version, call);
}

bool layer_conditions_lack_digest(struct layer_version *version, const struct call *call)
{
    char known[DIGEST_TEXT];
    const bool names_a_tag = (call->in.if_match != NULL && !names_any(call->in.if_match)) ||
                             (call->in.if_none_match != NULL && !names_any(call->in.if_none_match));
    return names_a_tag && version != NULL && layer_version_known_digest(version, known)[0] == '\0';
}

attn_status layer_check_match(struct layer_version *version, struct call *call)
{
    char known[DIGEST_TEXT];
    if (call->in.if_match == NULL)
        return ATTN_OK;
    const char *digest = version != NULL ? digest_for(call->in.if_match, version, call, known) : NULL;
    if (version != NULL && digest == NULL)
        return ATTN_ERR_CANCELLED;
    if (list_names(call->in.if_match, digest, false))
        return ATTN_OK;
    return call_refuse(call, CALL_PRECONDITION, "If-Match asks for another version: %s%s",
                       digest != NULL ? "the layer is now " : "there is no such layer", digest != NULL ? digest : "");
}

attn_status layer_check_conditions(struct layer_version *version, struct call *call)
{
    char known[DIGEST_TEXT];
    attn_status status = layer_check_match(version, call);
    if (status != ATTN_OK || call->in.if_none_match == NULL || version == NULL)
        return status;
    const char *digest = digest_for(call->in.if_none_match, version, call, known);
    if (digest == NULL)
        return ATTN_ERR_CANCELLED;
    if (list_names(call->in.if_none_match, digest, true))
        return call_refuse(call, CALL_PRECONDITION, "If-None-Match excludes it: the layer is there%s%s",
                           digest[0] != '\0' ? ", as " : "", digest);
    return ATTN_OK;
}

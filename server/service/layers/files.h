/*
 * files.h: the directory that keeps layers, a safetensors file each: NAME.safetensors.
 *
 * A file is written under a temporary name, synchronised, renamed over the one it replaces, and the directory
 * synchronised: whatever the moment of a crash, the name leads to a whole file, and what was acknowledged stays.
 * Temporaries are locked as long as they are written, so that a sweep removes those alone whose writer is gone, even
 * when several servers share the directory.
 *
 * Files are mapped: they cost address space until they are computed with. Replace them by renaming others over them, as
 * attnd does: one that is cut short in its place takes its pages away from a computation.
 *
 * Functions return 0 or an errno. All are safe from several threads.
 */
#ifndef SERVICE_LAYERS_FILES_H
#define SERVICE_LAYERS_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "attn/runtime.h"
#include "base/digest.h"
#include "codec/bytes/chunks.h"

enum { LAYER_NAME_MAX = 128 };

struct layer_files;

/* Which file it is and in which state; all zero: none. */
struct layer_identity {
    dev_t device;
    ino_t inode;
    off_t bytes;
    int64_t modified_ns; /* since 1970 */
    int64_t changed_ns;  /* the same of any change, which nobody can set back as they can modified_ns */
};

/* Memory that is read only: a mapped file, or a copy. */
struct layer_bytes {
    const char *at;
    size_t size;
};

/* A file that is written, and has no name yet that counts. */
struct layer_draft {
    int fd;
    char name[48];
    off_t written;
    struct digest_sum sum; /* of what is written */
    struct layer_bytes bytes;
};

/* Whether both are the same file, unchanged. */
bool layer_identity_equal(const struct layer_identity *a, const struct layer_identity *b);

/* A directory that exists; it is written to only when may_write. */
int layer_files_open(const char *path, bool may_write, struct layer_files **files);
void layer_files_close(struct layer_files *files);

/* Which file has the name now; ENOENT: none. */
int layer_files_look(const struct layer_files *files, const char *name, struct layer_identity *identity);
int layer_files_map(const struct layer_files *files, const char *name, struct layer_bytes *bytes,
                    struct layer_identity *identity);
/* Calls found for every name; 0, or what it returned. */
int layer_files_each(const struct layer_files *files, int (*found)(void *context, const char *name), void *context);

/*
 * A draft is begun, appended to, written, synchronised and committed; or, from its begin on, discarded. What fails to
 * append is to be discarded; what fails to write is. The disk is at work on what was appended while more is, and sums
 * are made of it in passing.
 */
int layer_files_begin(struct layer_files *files, struct layer_draft *draft);
int layer_files_append(struct layer_draft *draft, const char *data, size_t length);
/*
 * The whole of content: what it has beyond what was appended already, when the draft was begun (fd is not -1). bytes
 * are mapped, and then the caller's; digest is their sum. runtime NULL: by this thread alone.
 */
int layer_files_write(struct layer_files *files, const struct chunks *content, const attn_runtime *runtime,
                      struct layer_draft *draft, char digest[DIGEST_TEXT]);
int layer_files_sync(const struct layer_draft *draft);
void layer_files_discard(const struct layer_files *files, struct layer_draft *draft);
/* *is_renamed tells, when it fails, whether the file has its name nevertheless and is only not known to be durable. */
int layer_files_commit(const struct layer_files *files, struct layer_draft *draft, const char *name,
                       struct layer_identity *identity, bool *is_renamed);
int layer_files_remove(const struct layer_files *files, const char *name);
/* Removes the temporaries of writers that are gone; how many. */
size_t layer_files_sweep(const struct layer_files *files);

/* A file as it is: path from the directory, which may be AT_FDCWD. */
int layer_bytes_map(int directory, const char *path, struct layer_bytes *bytes, struct layer_identity *identity);
/* content in memory of its own: what keeps a layer without a directory. */
int layer_bytes_copy(const struct chunks *content, struct layer_bytes *bytes);
void layer_bytes_release(struct layer_bytes *bytes);

/* Whether it may name a layer: letters, digits, dot, underscore, hyphen; 1 to LAYER_NAME_MAX, no dot first. */
bool layer_name_is_valid(const char *name, size_t length);

#endif

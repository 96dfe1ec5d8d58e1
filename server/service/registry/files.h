/*
 * files.h: maps files, and keeps those of layers on the disk, one safetensors file per layer: NAME.safetensors.
 *
 * A file is written under a temporary name, synchronised, and renamed over the file that it replaces. Then the
 * directory is synchronised. So after a crash at any moment the name leads to a whole file, and an acknowledged file
 * exists. A temporary file is locked while it is written. So a sweep removes only files whose writer is gone, even when
 * several servers share the directory.
 *
 * Files are mapped, so they only take address space until a computation reads them. Replace a file by renaming another
 * over it, as attnd does. Other programs may write to a file in place, or truncate it, at any moment. So whoever reads
 * mapped bytes looks at the file's identity before and after, and refuses the result if it changed.
 *
 * Functions return 0 or an errno. All are safe from several threads.
 */
#ifndef SERVICE_REGISTRY_FILES_H
#define SERVICE_REGISTRY_FILES_H

#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "attn/runtime.h"
#include "base/digest.h"
#include "base/mapping.h"
#include "codec/bytes/chunks.h"

enum { LAYER_NAME_MAX = 128 };

struct layer_files;

/* The identity of a file, and its state. All zero: no file. */
struct file_identity {
    dev_t device;
    ino_t inode;
    off_t bytes;
    int64_t modified_ns; /* nanoseconds since 1970 */
    int64_t changed_ns;  /* the ctime; unlike modified_ns, a program cannot set it */
};

/* Read-only memory: a mapped file, or a copy. */
struct file_bytes {
    const char *at;
    size_t size;
    struct mapping *mapping; /* NULL: a copy, or no bytes */
};

/* A file that is being written under a temporary name. */
struct layer_draft {
    int fd;
    char name[48];
    off_t written;
    struct digest_sum sum; /* the digest of the bytes written so far */
    struct file_bytes bytes;
};

/* Whether both are the same file in the same state. */
bool file_identity_equal(const struct file_identity *a, const struct file_identity *b);
/* Whether both are the same file, and it was written to between. False when then is all zero. */
bool file_identity_is_rewritten(const struct file_identity *then, const struct file_identity *now);

/* Lists a directory, whose descriptor stays open. The caller closes the list. NULL: errno says why. */
DIR *file_list(int directory);
/* Finds the file that has the path now. ENOENT: there is none. path is relative to the directory. */
int file_look(int directory, const char *path, struct file_identity *identity);

/* Opens an existing directory. attnd writes to it only when may_write is true. */
int layer_files_open(const char *path, bool may_write, struct layer_files **files);
void layer_files_close(struct layer_files *files);

/*
 * Looks whether the path still leads to the open directory. If another directory has the path, it takes the place of
 * the open one, also for threads that use files now, and *is_another is true. ENOENT: no directory has the path.
 */
int layer_files_follow(const struct layer_files *files, const char *path, bool *is_another);
/*
 * Locks the directory against other processes that lock it likewise; threads of this process share the lock. Returns
 * EWOULDBLOCK at once when another process has the lock. A file system without locks gives 0.
 */
int layer_files_lock(const struct layer_files *files);
void layer_files_unlock(const struct layer_files *files);

/* Finds the file that has the name now. ENOENT: there is none. */
int layer_files_look(const struct layer_files *files, const char *name, struct file_identity *identity);
/* Whether the directory has a config.json, as the checkpoint of a model has. */
bool layer_files_has_config(const struct layer_files *files);
/* As file_map does. */
int layer_files_map(const struct layer_files *files, const char *name, struct file_bytes *bytes,
                    struct file_identity *identity);
/* Calls found for every name until it returns an errno. Returns that errno, or 0. */
int layer_files_each(const struct layer_files *files, int (*found)(void *context, const char *name), void *context);

/*
 * A draft is begun, appended to, written, synchronised and committed, in this order. It may be discarded at any moment
 * after it was begun. After a failed append the caller must discard it; after a failed write it was discarded. Appended
 * bytes are added to the digest, and the disk begins to write them.
 */
int layer_files_begin(struct layer_files *files, struct layer_draft *draft);
int layer_files_append(struct layer_draft *draft, const char *data, size_t length);
/*
 * Writes the rest of content: when the draft was begun (fd is not -1), the bytes after those appended; otherwise all of
 * it. draft->bytes is then the mapped file, which the caller owns, and digest is its SHA-256. runtime NULL: no other
 * thread helps.
 */
int layer_files_write(struct layer_files *files, const struct chunks *content, const attn_runtime *runtime,
                      struct layer_draft *draft, char digest[DIGEST_TEXT]);
int layer_files_sync(const struct layer_draft *draft);
void layer_files_discard(const struct layer_files *files, struct layer_draft *draft);
/* After a failure, *is_renamed says whether the file has its name already, and only its durability is unknown. */
int layer_files_commit(const struct layer_files *files, struct layer_draft *draft, const char *name,
                       struct file_identity *identity, bool *is_renamed);
int layer_files_remove(const struct layer_files *files, const char *name);
/* Removes the temporary files of writers that are gone. Returns how many. */
size_t layer_files_sweep(const struct layer_files *files);

/*
 * Maps a file. path is relative to the directory, which may be AT_FDCWD. A file that changed within the last 20 ms is
 * waited for, so that *identity tells it from its state after any later write. ETXTBSY: a program is writing to it; no
 * change of its identity says when that ends.
 */
int file_map(int directory, const char *path, struct file_bytes *bytes, struct file_identity *identity);
/* Copies content into memory of its own. Layers without a directory need this. */
int file_bytes_copy(const struct chunks *content, struct file_bytes *bytes);
void file_bytes_release(struct file_bytes *bytes);
/* Whether some bytes could not be read, because the file was truncated: they are zeros. */
bool file_bytes_are_torn(const struct file_bytes *bytes);

/* The sentence for an errno, which may be in text. */
const char *file_reason(int error, char *text, size_t size);

/* Whether text can name a layer: 1 to LAYER_NAME_MAX letters, digits, dots, underscores and hyphens, no dot first. */
bool layer_name_is_valid(const char *name, size_t length);

/* ---- a thread that looks at files at regular times ---- */

/* All zero at first. */
struct watch {
    unsigned every_ms;
    void (*look)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    bool is_running, is_ending;
};

/* Calls look every so many milliseconds until watch_end; 0: never. Returns an errno: there is no thread then. */
int watch_begin(struct watch *watch, unsigned every_ms, void (*look)(void *context), void *context);
/* Waits for the end of a look. */
void watch_end(struct watch *watch);

#endif

/*
 * directory.h: the table of layers, kept in step with the files of a directory.
 *
 * The files are the truth, and others may add, replace and remove them. So a layer's file is looked at, without being
 * read, each time the layer is asked for (one fstatat, a microsecond), and all files are looked at when layers are
 * listed, and by a thread once per look_ms. A file that was replaced is swapped in only when it is a valid layer.
 * Changes, attnd's own and those of others, happen one at a time, under the lock. A request to a layer whose file did
 * not change waits for no change.
 */
#ifndef SERVICE_LAYERS_DIRECTORY_H
#define SERVICE_LAYERS_DIRECTORY_H

#include <pthread.h>

#include "base/log.h"
#include "service/layers/store.h"

struct layer_directory {
    struct layer_store *store;
    struct layer_files *files; /* NULL: the layers are in memory alone */
    const struct log *log;
    bool reads_all;       /* a file is read once it is found, not once its layer is asked for */
    unsigned look_ms;     /* 0: no thread looks */
    pthread_mutex_t lock; /* held while names change, on the disk and in the store together; guards what follows */
    bool is_open;         /* changes of others are logged from now on */
    pthread_t looker;
    bool has_looker, is_closing;
    pthread_cond_t closing;
};

/*
 * Opens the directory at path, NULL for none. The caller fills in store, which stays its own, log, reads_all and
 * look_ms; all else is zero. 0, or an errno; the caller closes it in any case.
 */
int layer_directory_open(struct layer_directory *directory, const char *path, bool is_read_only);
void layer_directory_close(struct layer_directory *directory);

/* Fills in *row with the layer of that name, as layer_store_look does; its file is read if it changed. */
void layer_directory_look(struct layer_directory *directory, const char *name, struct layer_row *row);
/* The same with the lock held. */
void layer_directory_refresh(struct layer_directory *directory, const char *name, struct layer_row *row);
/* Fills in *row without reading the file; false: the file may have changed since. */
bool layer_directory_is_current(struct layer_directory *directory, const char *name, struct layer_row *row);
/* Looks at all files: what others added, replaced and removed. It does not read files that nobody asked for yet. */
void layer_directory_rescan(struct layer_directory *directory);

#endif

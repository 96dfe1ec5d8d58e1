/*
 * directory.h: the table of layers, kept in step with the files of a directory.
 *
 * The files are the truth, and other programs may add, replace and remove them. Each request for a layer checks its
 * file without reading it (one fstatat, a microsecond). All files are checked when layers are listed, and by a thread
 * once per look_ms. A replaced file is used only when it is a valid layer. Changes by attnd and by others happen one at
 * a time (registry_begin_change). A request to a layer whose file did not change never waits for a change.
 *
 * A directory that is removed or unmounted takes its layers along. It is found again by its path, at the next look or
 * the next change by attnd.
 */
#ifndef SERVICE_REGISTRY_LAYER_DIRECTORY_H
#define SERVICE_REGISTRY_LAYER_DIRECTORY_H

#include "base/log.h"
#include "service/registry/layer/version.h"
#include "service/registry/store.h"

struct layer_directory {
    struct registry *store;
    struct layer_files *files; /* NULL: the layers are only in memory */
    const char *path;          /* borrowed */
    const struct log *log;
    bool reads_all;   /* a file is read as soon as it is found, not at the first request */
    unsigned look_ms; /* 0: no thread checks the directory */
    bool is_open;     /* changes by others are logged from now on; this and what follows is guarded as names are */
    bool is_gone;     /* no directory has the path */
    struct watch watch;
};

/*
 * Opens the directory at path, which must live as long. NULL: no directory. The caller fills in store, which stays the
 * caller's, log, reads_all and look_ms; all other members are zero. Returns 0 or an errno; the caller closes it in any
 * case.
 */
int layer_directory_open(struct layer_directory *directory, const char *path, bool is_read_only);
void layer_directory_close(struct layer_directory *directory);

/* Fills in *row with the layer of that name, as registry_look does. The file is read if it changed. */
void layer_directory_look(struct layer_directory *directory, const char *name, struct registry_row *row);
/*
 * Looks whether the directory still has its path. A directory that was made or mounted again is opened, and its layers
 * are found as at the start. Returns ENOENT while there is none. The caller changes names.
 */
int layer_directory_follow(struct layer_directory *directory);
/* As layer_directory_look, when the caller changes names. */
void layer_directory_refresh(struct layer_directory *directory, const char *name, struct registry_row *row);
/* Fills in *row without reading the file. False: the file may have changed since it was read. */
bool layer_directory_is_current(struct layer_directory *directory, const char *name, struct registry_row *row);
/* Scans all files for changes by others. It does not read files that no request asked for yet. */
void layer_directory_rescan(struct layer_directory *directory);

#endif

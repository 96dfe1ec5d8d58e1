/*
 * keeper_parts.h: what keeper.c and directory.c share.
 */
#ifndef SERVICE_LAYERS_KEEPER_PARTS_H
#define SERVICE_LAYERS_KEEPER_PARTS_H

#include <pthread.h>

#include "service/layers/keeper.h"
#include "service/layers/layer_watch.h"

struct layer_keeper {
    struct layer_settings settings;
    const struct log *log;
    struct layer_store *store;
    struct prepared_store *prepared;
    struct layer_files *files; /* NULL: memory alone */
    struct layer_watch *watch; /* NULL: none, files are looked at when they are asked for */
    pthread_mutex_t changing;  /* held while names change, on the disk and in the store together */
    int64_t scanned_ns;        /* what changed_ns said at the last scan; guarded by changing */
};

/*
 * Takes the file of name in as it is now; a broken one leaves the version that is there, unless it is the one that
 * broke. Changing is held.
 */
void layer_keeper_read_file(struct layer_keeper *keeper, const char *name);
/* The same if the file is not the one that the store knows; *row is what is there now. Changing is held. */
void layer_keeper_refresh(struct layer_keeper *keeper, const char *name, struct layer_row *row);

/*
 * directory.c: opens the directory that the settings name, begins to watch it and lists its layers. False with a
 * message of at most size bytes; what was begun then ends with the keeper.
 */
bool layer_keeper_open_directory(struct layer_keeper *keeper, char *message, size_t size);

#endif

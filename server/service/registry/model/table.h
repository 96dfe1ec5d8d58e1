/*
 * table.h: the list of models and their folders. Private to models.c.
 */
#ifndef SERVICE_REGISTRY_MODEL_TABLE_H
#define SERVICE_REGISTRY_MODEL_TABLE_H

#include <pthread.h>

#include "base/log.h"
#include "base/text.h"
#include "service/registry/model/row.h"

struct model_entry {
    struct model_row row;
    char *directory;                 /* NULL: the model is part of the program */
    bool is_of_parent;               /* the folder was found in the parent, and its model goes with it */
    struct model_version *layers_of; /* a reference to the version whose layers are kept */
    uint64_t stamp;                  /* of the files that were read last */
    size_t needed_bytes;             /* the least memory that these files need, if they did not fit; else 0 */
    struct model_entry *next;
};

/* The thread that reads models is the only one that changes the list; it reads the list without the lock. */
struct models {
    struct models_settings settings;
    const struct log *log;
    pthread_mutex_t lock;        /* guards the list and its rows; the looker alone changes them */
    struct model_entry *entries; /* in the order of names */
    size_t misnamed;             /* folders of the parent that are no models because of their names */
    pthread_t looker;
    bool has_looker, is_closing;
    bool is_open; /* models are being read: names of new folders were not checked with all others at the start */
    pthread_cond_t closing;
};

/* Where the entry of that name is, or would be. The caller holds the lock, or is the only one that changes the list. */
struct model_entry **model_table_place(struct models *models, const char *name, size_t length);
/* Whether the entry, which may be NULL, has that name. */
bool model_table_is(const struct model_entry *entry, const char *name, size_t length);
bool model_table_can_be(struct text_span name);
/* Adds a model that is not read yet; directory NULL: that of the program. False without memory. */
bool model_table_add(struct models *models, struct text_span name, const char *directory, size_t length,
                     bool is_of_parent);
void model_entry_destroy(struct model_entry *entry);

/* Adds each subfolder of the parent that has a config.json and is not in the list. Returns an errno. */
int model_table_find(struct models *models);
/* Adds and removes models of the parent, and reads those whose files changed. */
void model_table_look(struct models *models);

#endif

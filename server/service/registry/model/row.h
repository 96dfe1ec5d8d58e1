/*
 * row.h: a model as the list of models has it, and the settings of the list.
 */
#ifndef SERVICE_REGISTRY_MODEL_ROW_H
#define SERVICE_REGISTRY_MODEL_ROW_H

#include "config/values.h"
#include "service/registry/model/version.h"
#include "service/registry/store.h"

enum model_state {
    MODEL_ABSENT,
    MODEL_LOADING, /* the server starts, and has not read the model yet */
    MODEL_READY,
    MODEL_BROKEN, /* its files cannot be used, and there is no earlier version */
};

/* A model as it is now. */
struct model_row {
    char name[MODEL_NAME_MAX + 1];
    enum model_state state;
    char
        reason[MODEL_REASON_MAX]; /* why the model is broken, or why its newest files are not served; "": all is well */
    struct model_version *version;      /* a reference that the caller owns; NULL unless the state is ready */
    struct layer_statistics statistics; /* of the requests to the name */
};

struct models_settings {
    const struct value_list *named; /* texts of "NAME=DIR,NAME=DIR" */
    const char *parent;             /* each subfolder with a config.json is a model; NULL: none */
    struct layer_keeper *layers;    /* keeps the attention modules of models; NULL: nobody does */
    attn_budget *budget;            /* the memory of all models; NULL: it has no limit */
    unsigned look_ms;               /* 0: no thread looks at the folders */
};

#endif

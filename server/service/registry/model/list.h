/*
 * list.h: the models that the server has, by name.
 *
 * A model is a folder (files.h). The folders are the truth: a thread looks at them once per look_ms, and reads a
 * model again when its files changed. The present version is served until the new one is ready. A new one that cannot
 * be read leaves the present one in place, with the reason.
 */
#ifndef SERVICE_REGISTRY_MODEL_LIST_H
#define SERVICE_REGISTRY_MODEL_LIST_H

#include "base/log.h"
#include "config/values.h"
#include "service/call.h"
#include "service/registry/model/version.h"

struct models_settings {
    const struct value_list *named; /* texts of "NAME=DIR,NAME=DIR" */
    const char *parent;             /* each subfolder with a config.json is a model; NULL: none */
    bool has_only_demo;             /* of the program's own models, no other is served */
    struct registry *registry;      /* has the models, and keeps their attention modules as layers */
    attn_budget *budget;            /* the memory of all models; NULL: it has no limit */
    unsigned look_ms;               /* 0: no thread looks at the folders */
};

struct models;

/*
 * Puts the models into the registry, without reading them. NULL: message says what is wrong: a name that cannot be one,
 * that is given twice or that a kept layer has, or a parent that cannot be listed. settings and log must live as long.
 */
struct models *models_create(const struct models_settings *settings, const struct log *log, char *message, size_t size);
/* Reads all models, and begins to look at their folders. Models that cannot be read are logged. */
void models_load(struct models *models);
/* Call this when no request is being served. models may be NULL. */
void models_destroy(struct models *models);

/*
 * Fills in *row with the model of that name, as registry_look does. A model whose file was written to in place is
 * REGISTRY_UNREAD.
 */
void models_look(struct models *models, struct text_span name, struct registry_row *row);
/*
 * Finds the model of a request: call->version. It refuses as services do: call->refusal, *call->err. After the version
 * was read for the last time, the caller asks version_confirm.
 */
ATTN_MUST_CHECK attn_status models_find(struct models *models, struct text_span name, struct call *call);
/* Logs what the first use of the model prepared, once. Call this after a run. */
void models_tell_prepared(const struct models *models, struct model_version *version);

#endif

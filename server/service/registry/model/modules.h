/*
 * modules.h: the attention modules of a model as kept layers, NAME.PATH, that requests cannot change.
 *
 * A layer's tensors are views of the model's files. So it holds a reference to the version of the model.
 */
#ifndef SERVICE_REGISTRY_MODEL_MODULES_H
#define SERVICE_REGISTRY_MODEL_MODULES_H

#include "service/registry/model/version.h"

/*
 * Keeps the layers of the version, also in place of files of the directory that have their names. Returns how many of its
 * modules cannot be layers.
 */
size_t model_modules_keep(struct registry *registry, struct model_version *version);
/* Keeps them no longer, except those whose names another version has taken. */
void model_modules_drop(struct registry *registry, const struct model_version *version);

#endif

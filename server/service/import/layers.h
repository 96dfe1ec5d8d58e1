/*
 * layers.h: keeps the layers of a checkpoint on the disk: `attnd import`.
 */
#ifndef SERVICE_IMPORT_LAYERS_H
#define SERVICE_IMPORT_LAYERS_H

#include "service/import/checkpoint.h"
#include "service/registry/layer/keeper.h"

/*
 * Writes every layer of the checkpoint into the directory into. It replaces layers of the same names, and reports each
 * on standard output once the layer is written. The directory is created when it does not exist. For an unknown
 * architecture, it lists the tensors on standard error and writes a mapping to complete into the directory. False:
 * message says why.
 */
bool checkpoint_layers_write(const struct checkpoint_source *source, const char *into, const struct log *log,
                             char *message, size_t size);

#endif

/*
 * checkpoint.h: reads the layers of a checkpoint's directory (codec/checkpoint/find.h), and keeps
 * them on the disk: `attnd import`.
 *
 * The directory has config.json and model.safetensors, or model.safetensors.index.json and the files that it names, as
 * transformers writes them. Files are mapped. The file of a layer is in memory only while the receiver takes it.
 */
#ifndef SERVICE_IMPORT_CHECKPOINT_H
#define SERVICE_IMPORT_CHECKPOINT_H

#include "base/log.h"
#include "codec/bytes/chunks.h"

struct checkpoint_source {
    const char *directory;
    const char *mapping; /* path of a mapping; NULL: use the table of architectures */
    const char *prefix;  /* the prefix of layer names, with a dot after it; NULL: no prefix */
};

struct checkpoint_receiver {
    /* Takes a layer as a safetensors file. */
    attn_status (*take)(void *context, const char *name, const struct chunks *file, attn_error *err);
    /*
     * Called before a failure for an unknown architecture, with its tensors, one per line, and a mapping to complete.
     */
    void (*explain)(void *context, const char *tensors, const char *mapping);
    void *context;
};

/*
 * *count is the number of layers taken. Failures are those of checkpoint_find_layers and of take. The message names the
 * file or the layer.
 */
ATTN_MUST_CHECK attn_status checkpoint_import(const struct checkpoint_source *source,
                                              const struct checkpoint_receiver *receiver, size_t *count,
                                              attn_error *err);

/*
 * Writes every layer of the checkpoint into the directory into. It replaces layers of the same names, and reports each
 * on standard output once the layer is written. The directory is created when it does not exist. For an unknown
 * architecture, it lists the tensors on standard error and writes a mapping to complete into the directory. False:
 * message says why.
 */
bool checkpoint_layers_write(const struct checkpoint_source *source, const char *into, const struct log *log,
                             char *message, size_t size);

#endif

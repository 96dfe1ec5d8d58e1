/*
 * safetensors_find.h: a tensor of a safetensors file by its name.
 */
#ifndef TESTS_SAFETENSORS_FIND_H
#define TESTS_SAFETENSORS_FIND_H

#include <string.h>

#include "codec/tensor/safetensors.h"

/* NULL: the file has none of that name. */
static inline const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->tensor_count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

#endif

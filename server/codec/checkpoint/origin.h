/* origin.h: what a member of a block's request is made of: a member of config.json, or a tensor. Private to this folder. */
#ifndef CODEC_CHECKPOINT_ORIGIN_H
#define CODEC_CHECKPOINT_ORIGIN_H

#include "codec/checkpoint/module.h"

/*
 * Words for the member at field ("/options/rope/theta"), which both templates of a block make: "rope_theta in config.json",
 * or the name of a tensor. False: there are none.
 */
bool origin_find(const struct module *module, const json_t *const templates[2], const char *field, char *words,
                 size_t size);

#endif

/*
 * extent.h: how much work the text of a request can ask for, before it is decoded.
 */
#ifndef CODEC_JSON_EXTENT_H
#define CODEC_JSON_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Whether the map of the request has few cells and takes few operations, at most. text is the JSON of a body of
 * body_bytes. True is certain, false is not.
 */
bool extent_is_small(struct text_span text, uint64_t body_bytes);

#endif

/* limits.h: limits of the JSON in one request, beside its tensors. */
#ifndef CODEC_JSON_LIMITS_H
#define CODEC_JSON_LIMITS_H

enum {
    JSON_TEXT_MAX = 1 << 20, /* bytes of the envelope (skim.h) */
    JSON_DEPTH_MAX = 32,     /* levels of objects and arrays */
    JSON_POINTER_MAX = 160,  /* bytes of a JSON pointer in an error, with its NUL; longer ones are cut */
};

#endif

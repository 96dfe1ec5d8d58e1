/* media.h: the media types that bodies and answers have. */
#ifndef CODEC_BYTES_MEDIA_H
#define CODEC_BYTES_MEDIA_H

#include <stdbool.h>

/* The order decides when a client accepts several types equally. */
#define MEDIA_LIST(X)                                                                                                  \
    X(MEDIA_JSON, "application/json")                                                                                  \
    X(MEDIA_SAFETENSORS, "application/vnd.attnd.safetensors")                                                          \
    X(MEDIA_CSV, "text/csv")                                                                                           \
    X(MEDIA_PNG, "image/png")                                                                                          \
    X(MEDIA_SVG, "image/svg+xml")                                                                                      \
    X(MEDIA_WAV, "audio/wav")                                                                                          \
    X(MEDIA_BINARY, "application/octet-stream")                                                                        \
    X(MEDIA_HTML, "text/html")                                                                                         \
    X(MEDIA_SCRIPT, "text/javascript")                                                                                 \
    X(MEDIA_TYPESCRIPT, "application/typescript")                                                                      \
    X(MEDIA_METRICS, "text/plain; version=0.0.4; charset=utf-8")                                                       \
    X(MEDIA_PROBLEM, "application/problem+json")                                                                       \
    X(MEDIA_EVENTS, "text/event-stream")

enum media {
#define MEDIA_ENUM(code, name) code,
    MEDIA_LIST(MEDIA_ENUM)
#undef MEDIA_ENUM
        MEDIA_COUNT
};

/* A set of media types. */
#define MEDIA_BIT(media) (1u << (media))

static inline const char *media_name(enum media media)
{
#define MEDIA_NAME(code, name) name,
    static const char *const names[] = {MEDIA_LIST(MEDIA_NAME)};
#undef MEDIA_NAME
    return names[media];
}

static inline bool media_is_picture(enum media media)
{
    return media == MEDIA_PNG || media == MEDIA_SVG;
}

#endif

/* media.c: the media types that bodies and answers have. */
#include "codec/bytes/media.h"

static const char *const names[] = {
#define MEDIA_NAME(code, name) name,
    MEDIA_LIST(MEDIA_NAME)
#undef MEDIA_NAME
};

const char *media_name(enum media media)
{
    return names[media];
}

/*
 * json_library.c: which JSON library this folder stands on.
 */
#include "codec/json/json_library.h"

#include <jansson.h>

const char *json_library_description(void)
{
    return "jansson " JANSSON_VERSION;
}

/*
 * openapi.c: GET /openapi.json. OPENAPI_GZIP comes from the Makefile: where the gzipped file is.
 */
#include "http/openapi.h"

#include "http/embedded.h"

EMBEDDED_FILE(openapi_plain, "server/openapi.json");
EMBEDDED_FILE(openapi_gzip, OPENAPI_GZIP);

void openapi_answer(struct request *request)
{
    const struct embedded plain = {.text = EMBEDDED_TEXT(openapi_plain)}, gzip = {.text = EMBEDDED_TEXT(openapi_gzip)};
    embedded_answer(request, MEDIA_JSON, &plain, &gzip);
}

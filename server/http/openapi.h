/*
 * openapi.h: server/openapi.json, embedded.
 */
#ifndef HTTP_OPENAPI_H
#define HTTP_OPENAPI_H

#include "text.h"

/* Lives as long as the program. */
struct text_span openapi_text(void);

#endif

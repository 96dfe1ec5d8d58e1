/*
 * openapi.h: GET /openapi.json: server/openapi.json, embedded as it is and gzipped.
 */
#ifndef HTTP_OPENAPI_H
#define HTTP_OPENAPI_H

struct request;

void openapi_answer(struct request *request);

#endif

/*
 * layers.h: the endpoints under /v1/layers: the server keeps attention layers, so that requests need not bring weights.
 */
#ifndef SERVICE_LAYERS_LAYERS_H
#define SERVICE_LAYERS_LAYERS_H

#include "service/call.h"

/*
 * PUT, GET and DELETE /v1/layers/{name}; GET /v1/layers?after=&limit=. The entity tag of a layer's file is its SHA-256;
 * the tag of its facts begins with that digest. If-Match holds for all methods. If-None-Match is checked here for PUT
 * and DELETE; for GET, the sender of the answer checks it.
 */
service_function layers_put, layers_get, layers_remove, layers_list;

#endif

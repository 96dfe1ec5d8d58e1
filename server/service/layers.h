/*
 * layers.h: /v1/layers: attention layers that the server keeps, so that requests need not bring weights.
 */
#ifndef SERVICE_LAYERS_H
#define SERVICE_LAYERS_H

#include "service/call.h"

/*
 * PUT, GET and DELETE /v1/layers/{name}; GET /v1/layers?after=&limit=; POST /v1/layers/{name}/attention.
 * The entity tag of a layer is the SHA-256 of its file. If-Match and If-None-Match hold for all of them.
 */
service_function layers_put, layers_get, layers_remove, layers_list, layers_attend;

#endif

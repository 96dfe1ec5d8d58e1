/*
 * layers.h: the endpoints under /v1/layers: attention layers that the server keeps, so requests need not bring weights.
 */
#ifndef SERVICE_LAYERS_LAYERS_H
#define SERVICE_LAYERS_LAYERS_H

#include "service/call.h"

/*
 * PUT, GET and DELETE /v1/layers/{name}; GET /v1/layers?after=&limit=.
 * The entity tag of a layer's file is its SHA-256, that of its facts begins with it. If-Match holds for all of them,
 * If-None-Match for those that do something; what it means to a GET is for whoever sends the answer.
 */
service_function layers_put, layers_get, layers_remove, layers_list;

#endif

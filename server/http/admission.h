/*
 * admission.h: decides on the header alone, before the body is read, whether a request is admitted.
 */
#ifndef HTTP_ADMISSION_H
#define HTTP_ADMISSION_H

#include "http/request.h"

/*
 * Fills in what the header says: fields, id, parts, route, and whether the connection must be closed. True: the route
 * answers. False: the reply is ready, either a refusal or the answer to OPTIONS.
 */
bool admission_admits(struct request *request, const char *method, const char *version);

#endif

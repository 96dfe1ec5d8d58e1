/*
 * exchange.h: takes a request and its answer through their steps: the three functions that the library calls for each
 * request.
 *
 *     HEADER ──► BODY ──► COMPUTING (suspended) ──► REPLY       an admitted POST
 *        │         └──────────────────────────────► REPLY       a small one, computed at once
 *        ├─────► DISCARD ─────────────────────────► REPLY       refused; its small body is read and dropped
 *        └────────────────────────────────────────► REPLY       answered at once
 *
 * These are phases of the connection (connection.h).
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <microhttpd.h>

/*
 * The functions are listed in the order of their first call. cls is the http_server. exchange_begin returns the
 * request, which the library passes on in *con_cls.
 */
void *exchange_begin(void *cls, const char *target, struct MHD_Connection *mhd);
enum MHD_Result exchange_handle(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                const char *version, const char *upload_data, size_t *upload_data_size, void **con_cls);
/* Frees the request, or leaves it to a job that is still at work. */
void exchange_end(void *cls, struct MHD_Connection *mhd, void **con_cls, enum MHD_RequestTerminationCode termination);

#endif

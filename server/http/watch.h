/*
 * watch.h: a thread that looks after the requests on their way, four times a second while there are any.
 *
 * The library sees neither that a client left while its connection is suspended nor, with edge-triggered epoll, an end
 * of stream that came together with the last bytes; and its time-out counts silence only.
 */
#ifndef HTTP_WATCH_H
#define HTTP_WATCH_H

#include <stdbool.h>

struct http_server;
struct request;

/* False when the system has no thread. The lock of the server is ready. */
bool watch_start(struct http_server *server);
/* Ends the thread; no request may be watched any more. */
void watch_stop(struct http_server *server);
/* From the first line of a request to its end: while its socket is open. */
void watch_add(struct request *request);
void watch_remove(struct request *request);

#endif

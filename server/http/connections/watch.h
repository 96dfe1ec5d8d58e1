/*
 * watch.h: a thread that checks open connections some thirty times a second, as long as there are any.
 *
 * The library does not see that a client left while its connection is suspended. With edge-triggered epoll, it also
 * misses an end of stream that arrived together with the last bytes. Its time-out measures silence only. At its limit
 * of connections, it leaves all others waiting. So this thread keeps the deadlines of a header, a body and a whole
 * request, and connection.c evicts connections to make room for new ones. This thread also cuts answers that clients do
 * not read, when memory is short or other requests wait.
 */
#ifndef HTTP_CONNECTIONS_WATCH_H
#define HTTP_CONNECTIONS_WATCH_H

#include <stdbool.h>

struct http_server;

/* Starts the thread. False when the system has no thread; errno says why. The lock of the server must be ready. */
bool watch_start(struct http_server *server);
/* Ends the thread. No connection may be open any more. */
void watch_stop(struct http_server *server);

#endif

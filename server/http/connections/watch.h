/*
 * watch.h: a thread that checks open connections some thirty times a second, while there are any.
 *
 * The library does not see that a client left while its connection is suspended. With edge-triggered epoll, it also
 * misses an end of stream that came together with the last bytes. Its time-out counts silence only. At its limit of
 * connections, it leaves all others waiting. So the deadlines of a header, a body and a whole request are kept here,
 * and connection.c closes connections to make room for new ones. Answers that clients do not read are cut here when
 * memory is short or others wait.
 */
#ifndef HTTP_CONNECTIONS_WATCH_H
#define HTTP_CONNECTIONS_WATCH_H

#include <stdbool.h>

struct http_server;

/* False when the system has no thread; see errno. The lock of the server is ready. */
bool watch_start(struct http_server *server);
/* Ends the thread. No connection may be open any more. */
void watch_stop(struct http_server *server);

#endif

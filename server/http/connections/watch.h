/*
 * watch.h: looks after every open connection, in a thread that does so some thirty times a second while there are any.
 *
 * The library sees neither that a client left while its connection is suspended nor, with edge-triggered epoll, an end
 * of stream that came together with the last bytes; its time-out counts silence only, and when it has as many
 * connections as it may it leaves all others waiting. So the deadlines of a header, a body and a whole request are kept
 * here. A new connection gets room by closing the one that has been idle for longest (connection.c). When less than an
 * eighth of the places is left to connections without an answer, it closes the one whose client has taken nothing of
 * its answer for longest. Such answers are cut here, too, when memory is short or others wait.
 */
#ifndef HTTP_CONNECTIONS_WATCH_H
#define HTTP_CONNECTIONS_WATCH_H

#include <stdbool.h>

struct http_server;

/* False when the system has no thread; see errno. The lock of the server is ready. */
bool watch_start(struct http_server *server);
/* Ends the thread; no connection may be open any more. */
void watch_stop(struct http_server *server);

#endif

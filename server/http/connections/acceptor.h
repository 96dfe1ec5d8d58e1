/*
 * acceptor.h: the thread that accepts new connections and hands them to the library.
 *
 * The library could listen by itself. But its way to stop listening while it serves (MHD_quiesce_daemon) removes the
 * socket from the sets of its threads at the same time as the threads do, and the loser of that race aborts the
 * process. It also drops connections that the system has accepted already; these should still be served.
 */
#ifndef HTTP_CONNECTIONS_ACCEPTOR_H
#define HTTP_CONNECTIONS_ACCEPTOR_H

#include <stdbool.h>

struct http_server;

/*
 * Accepts connections at server->listen_fd and hands them to server->mhd. Both must be ready. False when the system has
 * no thread; errno says why.
 */
bool acceptor_start(struct http_server *server);
/*
 * Accepts the connections that are in the backlog now and closes the socket. New connections are refused from here on.
 */
void acceptor_stop(struct http_server *server);

#endif

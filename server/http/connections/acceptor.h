/*
 * acceptor.h: the thread that takes in new connections and hands them to the library.
 *
 * The library could listen by itself, but its way to stop doing so while it serves (MHD_quiesce_daemon) takes the
 * socket out of the sets of its threads at the same time as they do, and the loser of that race aborts the process. It
 * also knows no end: what the system has accepted already should be served, and nothing after that.
 */
#ifndef HTTP_CONNECTIONS_ACCEPTOR_H
#define HTTP_CONNECTIONS_ACCEPTOR_H

#include <stdbool.h>

struct http_server;

/* Accepts at server->listen_fd for server->mhd, which run already. False when the system has no thread; see errno. */
bool acceptor_start(struct http_server *server);
/* Takes in what the system has accepted until now, and closes the socket: from here on, connections are refused. */
void acceptor_stop(struct http_server *server);

#endif

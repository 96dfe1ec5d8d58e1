/*
 * daemon.h: starts, drains and stops the HTTP server.
 *
 * I/O threads receive and send. A request that computes becomes a job of the executor while its connection is
 * suspended; an I/O thread computes small requests itself.
 */
#ifndef HTTP_DAEMON_H
#define HTTP_DAEMON_H

#include "http/connections/setup.h"

struct http_server;

/* Starts the server; it serves when this returns. NULL: message says what the system refused. */
struct http_server *http_daemon_start(const struct http_setup *setup, char *message, size_t message_size);
/*
 * Whether the certificate can be read, if there is one; whether the address can be taken, which is given back. False:
 * message says what failed.
 */
bool http_daemon_has_certificate(const struct http_setup *setup, char *message, size_t message_size);
bool http_daemon_can_listen(const struct http_setup *setup, char *message, size_t message_size);
/* "http://127.0.0.1:8080", with the port that was chosen. The text lives as long as the server. */
const char *http_daemon_url(const struct http_server *server);
/* Whether other machines can connect and need no key. */
bool http_daemon_is_open_to_all(const struct http_server *server);

/* From now on /readyz says 200: the self-test has passed. */
void http_daemon_set_ready(struct http_server *server);
/* Reads the certificate again, if there is one. False: message says why, and the server keeps the old certificate. */
bool http_daemon_reload(struct http_server *server, char *message, size_t message_size);
/* From now on /readyz says 503 and every answer closes its connection. New connections are still served. */
void http_daemon_begin_drain(struct http_server *server);
/* New connections are refused from now on. Open connections are still served. */
void http_daemon_stop_listening(struct http_server *server);
/* Waits until every request is complete, at most timeout_s. False when some are not. */
bool http_daemon_await_idle(struct http_server *server, unsigned timeout_s);
/*
 * Ends the server from any state: asks jobs to stop, waits for them, closes every connection and frees everything. The
 * executor must still be running. NULL is allowed.
 */
void http_daemon_stop(struct http_server *server);

#endif

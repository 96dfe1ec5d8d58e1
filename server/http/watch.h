/*
 * watch.h: looks after every open connection, in a thread that does so some thirty times a second while there are any.
 *
 * The library sees neither that a client left while its connection is suspended nor, with edge-triggered epoll, an end
 * of stream that came together with the last bytes; its time-out counts silence only, and when it has as many
 * connections as it may it leaves all others waiting. So the deadlines of a header, a body and a whole request are kept
 * here. A new connection gets room by closing the one that has been idle for longest. When less than an eighth of the
 * places is left to connections without an answer, it closes the one whose client has taken nothing of its answer for
 * longest. Such answers are cut, too, when memory is short or others wait.
 */
#ifndef HTTP_WATCH_H
#define HTTP_WATCH_H

#include <microhttpd.h>
#include <stdbool.h>

struct http_server;
struct request;
struct watched;

/* False when the system has no thread. The lock of the server is ready. */
bool watch_start(struct http_server *server);
/* Ends the thread; no connection may be open any more. */
void watch_stop(struct http_server *server);
/* What the library tells of connections that come and go. cls is the http_server. */
void watch_connection(void *cls, struct MHD_Connection *connection, void **context,
                      enum MHD_ConnectionNotificationCode code);
/* A connection was accepted, and is about to be told of by the library; or will not be after all. */
void watch_expect(struct http_server *server);
void watch_expect_no_more(struct http_server *server);
/* The header of the request is there. The lock of the server is held. */
void watch_heard(struct request *request);
/* The answer is about to be sent: its phase is that. */
void watch_answers(struct request *request);
/* The request is about to be computed: its phase is that. The lock of the server is held. */
void watch_computes(struct request *request);
/* From the first line of a request to its end. */
void watch_add(struct request *request);
void watch_remove(struct request *request);
/* The server of a connection, from the context that watch_connection gave it. */
struct http_server *watch_server(const void *context);

#endif

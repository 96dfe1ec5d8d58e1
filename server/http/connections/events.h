/*
 * events.h: an answer as a stream of events (text/event-stream; WHATWG HTML, section 9.2): how far the computation is, at
 * most ten times a second, and at its end one event with its result.
 *
 *     event: progress
 *     data: {"done":3,"of":12,"what":"layer"}
 *
 * The threads of the computation write the progress (base/progress.h). They look at events_goes_on where they ask whether
 * they are cancelled; there is no thread or timer beside them. An event is made when the I/O thread sends it, so a client
 * that reads slowly gets fewer of them, and no memory grows. Between two events the connection is suspended.
 *
 * Before the stream begins, the connection is suspended as for any job. From then on the I/O thread may end the request
 * while the job is at work: only events tell the job so, and then the job frees the request.
 */
#ifndef HTTP_CONNECTIONS_EVENTS_H
#define HTTP_CONNECTIONS_EVENTS_H

#include "attn/arena.h"
#include "base/progress.h"
#include "codec/bytes/chunks.h"
#include "http/connections/server.h"

enum { EVENTS_TEXT = 160 };

struct events {
    struct progress progress;
    struct connection *connection; /* only while it cannot be closed: before the stream begins, and in the I/O thread */
    struct http_server *server;
    void (*begin)(void *context);
    void *context;
    atomic_bool is_beginning, is_gone; /* is_gone: nobody waits for the answer */
    _Atomic double next_ms;            /* no event is due before */
    bool has_begun, is_due, is_done;   /* the lock of the server guards this and what follows */
    bool is_waiting;                   /* the connection is suspended until an event is due */
    bool has_left;                     /* the request has ended before the computation */
    const struct chunk *last;          /* the text of the last event */
    struct chunk event;                /* the event that is sent; only the I/O thread uses this and what follows */
    char text[EVENTS_TEXT];            /* of the event */
    const struct chunk *at;            /* the next chunk to send, and the offset within it */
    size_t offset;
    uint64_t told, sent_bytes; /* the last progress that was sent; all bytes */
    double told_ms;
    bool is_over;                  /* the last event is being sent */
    struct MHD_Response *response; /* until it is queued */
};

/*
 * In the arena; NULL without memory. A thread of the computation calls begin(context) once, when there is progress to
 * tell; it makes the response and calls events_begin.
 */
struct events *events_create(struct connection *connection, attn_arena *arena, void (*begin)(void *context),
                             void *context);
/* Whether the client is still there. Safe from all threads of the computation; it may call begin, or wake the stream. */
bool events_goes_on(struct events *events, double now_ms);
/* The body of the stream. NULL without memory. */
struct MHD_Response *events_response(struct events *events);
/* Resumes the connection: the library then asks for the answer. */
void events_begin(struct events *events);
/*
 * Ends a stream that has begun. last lives as long as the request. True: the client has left, and the caller frees the
 * request. Else the I/O thread may free it at any time.
 */
bool events_end(struct events *events, const struct chunk *last);
/* The request has ended. True: the computation is still at work and frees the request when it is done. */
bool events_leave(struct events *events);

#endif

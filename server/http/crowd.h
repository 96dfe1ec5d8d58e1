/*
 * crowd.h: every open connection, in lines by what it is at, so that neither the next one to close nor the next ones to
 * look at have to be searched for. Not safe from several threads: the lock of the server guards it.
 */
#ifndef HTTP_CROWD_H
#define HTTP_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;
struct request;

/* Between requests, or before the first; in a header; in a body; at work; being sent an answer; shut down by us. */
enum crowd_line { LINE_IDLE, LINE_HEADER, LINE_BODY, LINE_COMPUTING, LINE_REPLY, LINE_CLOSING, CROWD_LINES };

struct watched {
    struct http_server *server;
    int fd;
    double since_ms;         /* accepted, or the end of its last request */
    bool is_new;             /* has had no request yet */
    bool is_newcomer;        /* as counted in server.newcomers */
    struct request *request; /* NULL between two */
    double moved_ms;         /* in the line of answers: when its client last took something */
    uint64_t taken_bytes;    /* as of then */
    enum crowd_line line;    /* from here on for crowd.c */
    struct watched *next, *before;
    size_t place;
};

struct crowd {
    struct {
        struct watched *first, *last;
        size_t count;
    } lines[CROWD_LINES];
    struct watched **all;
    size_t count, room, next; /* next: where a walk goes on */
};

/* At the end of the line. False without memory. */
bool crowd_add(struct crowd *crowd, struct watched *watched, enum crowd_line line);
void crowd_remove(struct crowd *crowd, struct watched *watched);
/* To the end of that line, which may be its own. */
void crowd_move(struct crowd *crowd, struct watched *watched, enum crowd_line line);
/* The next of a walk that goes round all of them; NULL when there is none. */
struct watched *crowd_next(struct crowd *crowd);
/* Gives the memory of an empty crowd back. */
void crowd_free(struct crowd *crowd);

#endif

/*
 * crowd.h: every open connection, in lines by what it is at. The next connection to close is the first of a line, and
 * the next ones to check are found without a search. Not safe from several threads: the lock of the server guards it.
 */
#ifndef HTTP_CONNECTIONS_CROWD_H
#define HTTP_CONNECTIONS_CROWD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Between requests or before the first; in a header; in a body; its request is computed; its answer is sent; we have
 * shut it down.
 */
enum crowd_line { LINE_IDLE, LINE_HEADER, LINE_BODY, LINE_COMPUTING, LINE_REPLY, LINE_CLOSING, CROWD_LINES };

/* The place of a connection, which is a part of it. Only crowd.c writes here. */
struct crowd_member {
    enum crowd_line line;
    struct crowd_member *next, *before; /* in the line */
    size_t place;                       /* in the array of all */
};

struct crowd {
    struct {
        struct crowd_member *first, *last;
        size_t count;
    } lines[CROWD_LINES];
    struct crowd_member **all;
    size_t count, room, next; /* next: where a walk goes on */
};

/* At the end of the line. False without memory. */
bool crowd_add(struct crowd *crowd, struct crowd_member *member, enum crowd_line line);
void crowd_remove(struct crowd *crowd, struct crowd_member *member);
/* To the end of that line, which may be its own. */
void crowd_move(struct crowd *crowd, struct crowd_member *member, enum crowd_line line);
/* The next of a walk that goes round all of them; NULL when there is none. */
struct crowd_member *crowd_next(struct crowd *crowd);
/* Gives the memory of an empty crowd back. */
void crowd_free(struct crowd *crowd);

#endif

/*
 * crowd.h: keeps every open connection in a line by what its request does. The next connection to evict is the first of
 * a line, and the next ones to check are found without a search. Not safe from several threads: the lock of the server
 * guards the crowd.
 */
#ifndef HTTP_CONNECTIONS_CROWD_H
#define HTTP_CONNECTIONS_CROWD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A connection is idle between requests and before the first; receives a header; receives a body; has its request
 * computed; has its answer sent; or was shut down by us.
 */
enum crowd_line { LINE_IDLE, LINE_HEADER, LINE_BODY, LINE_COMPUTING, LINE_REPLY, LINE_CLOSING, CROWD_LINES };

/* The place of a connection in the crowd. It is a member of the connection. Only crowd.c writes here. */
struct crowd_member {
    enum crowd_line line;
    struct crowd_member *next, *before; /* neighbours in the line */
    size_t place;                       /* index in the array of all */
};

struct crowd {
    struct {
        struct crowd_member *first, *last;
        size_t count;
    } lines[CROWD_LINES];
    struct crowd_member **all;
    size_t count, room, next; /* next: the index at which a walk continues */
};

/* Adds a connection at the end of the line. False without memory. */
bool crowd_add(struct crowd *crowd, struct crowd_member *member, enum crowd_line line);
void crowd_remove(struct crowd *crowd, struct crowd_member *member);
/* Moves a connection to the end of that line, which may be the line it is in. */
void crowd_move(struct crowd *crowd, struct crowd_member *member, enum crowd_line line);
/* The next connection of a walk that goes round all of them. NULL: there is none. */
struct crowd_member *crowd_next(struct crowd *crowd);
/* Frees the memory of an empty crowd. */
void crowd_free(struct crowd *crowd);

#endif

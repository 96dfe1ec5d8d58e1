/*
 * crowd.c: every open connection, in lines by what it is at.
 *
 * Each is in one line and in an array. A walk goes through the array; the last one takes the place of one that leaves,
 * so a walk may pass over it, and finds it in its next round.
 */
#include "http/crowd.h"

#include <stdlib.h>

static void join(struct crowd *crowd, struct watched *watched, enum crowd_line line)
{
    watched->line = line;
    watched->next = NULL;
    watched->before = crowd->lines[line].last;
    if (watched->before != NULL)
        watched->before->next = watched;
    else
        crowd->lines[line].first = watched;
    crowd->lines[line].last = watched;
    crowd->lines[line].count++;
}

static void leave(struct crowd *crowd, struct watched *watched)
{
    const enum crowd_line line = watched->line;
    if (watched->before != NULL)
        watched->before->next = watched->next;
    else
        crowd->lines[line].first = watched->next;
    if (watched->next != NULL)
        watched->next->before = watched->before;
    else
        crowd->lines[line].last = watched->before;
    crowd->lines[line].count--;
}

static bool has_room(struct crowd *crowd)
{
    enum { ROOM_FIRST = 64 };
    if (crowd->count < crowd->room)
        return true;
    const size_t room = crowd->room == 0 ? ROOM_FIRST : 2 * crowd->room;
    struct watched **all = realloc(crowd->all, room * sizeof *all);
    if (all == NULL)
        return false;
    crowd->all = all;
    crowd->room = room;
    return true;
}

bool crowd_add(struct crowd *crowd, struct watched *watched, enum crowd_line line)
{
    if (!has_room(crowd))
        return false;
    watched->place = crowd->count;
    crowd->all[crowd->count++] = watched;
    join(crowd, watched, line);
    return true;
}

void crowd_remove(struct crowd *crowd, struct watched *watched)
{
    leave(crowd, watched);
    struct watched *last = crowd->all[--crowd->count];
    last->place = watched->place;
    crowd->all[last->place] = last;
}

void crowd_move(struct crowd *crowd, struct watched *watched, enum crowd_line line)
{
    leave(crowd, watched);
    join(crowd, watched, line);
}

struct watched *crowd_next(struct crowd *crowd)
{
    if (crowd->count == 0)
        return NULL;
    if (crowd->next >= crowd->count)
        crowd->next = 0;
    return crowd->all[crowd->next++];
}

void crowd_free(struct crowd *crowd)
{
    free(crowd->all);
    *crowd = (struct crowd){.all = NULL};
}

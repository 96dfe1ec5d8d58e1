/*
 * crowd.c: keeps every open connection in a line by what its request does.
 *
 * Each connection is in one line and in an array. A walk goes through the array. When a connection leaves, the last one
 * of the array takes its place. A walk may miss the moved connection, but finds it in the next round.
 */
#include "http/connections/server.h"

#include <stdlib.h>

static void join(struct crowd *crowd, struct crowd_member *member, enum crowd_line line)
{
    member->line = line;
    member->next = NULL;
    member->before = crowd->lines[line].last;
    if (member->before != NULL)
        member->before->next = member;
    else
        crowd->lines[line].first = member;
    crowd->lines[line].last = member;
    crowd->lines[line].count++;
}

static void leave(struct crowd *crowd, struct crowd_member *member)
{
    const enum crowd_line line = member->line;
    if (member->before != NULL)
        member->before->next = member->next;
    else
        crowd->lines[line].first = member->next;
    if (member->next != NULL)
        member->next->before = member->before;
    else
        crowd->lines[line].last = member->before;
    crowd->lines[line].count--;
}

static bool has_room(struct crowd *crowd)
{
    enum { ROOM_FIRST = 64 };
    if (crowd->count < crowd->room)
        return true;
    const size_t room = crowd->room == 0 ? ROOM_FIRST : 2 * crowd->room;
    struct crowd_member **all = realloc(crowd->all, room * sizeof *all);
    if (all == NULL)
        return false;
    crowd->all = all;
    crowd->room = room;
    return true;
}

bool crowd_add(struct crowd *crowd, struct crowd_member *member, enum crowd_line line)
{
    if (!has_room(crowd))
        return false;
    member->place = crowd->count;
    crowd->all[crowd->count++] = member;
    join(crowd, member, line);
    return true;
}

void crowd_remove(struct crowd *crowd, struct crowd_member *member)
{
    leave(crowd, member);
    struct crowd_member *last = crowd->all[--crowd->count];
    last->place = member->place;
    crowd->all[last->place] = last;
}

void crowd_move(struct crowd *crowd, struct crowd_member *member, enum crowd_line line)
{
    leave(crowd, member);
    join(crowd, member, line);
}

struct crowd_member *crowd_next(struct crowd *crowd)
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

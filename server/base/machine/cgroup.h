/*
 * cgroup.h: the control groups that this process is in. Part of the floor: includes no other folder.
 */
#ifndef BASE_MACHINE_CGROUP_H
#define BASE_MACHINE_CGROUP_H

#include <stdbool.h>

/* What a caller learns of one group: its folder, and which version of control groups wrote the files in it. */
typedef void cgroup_look(void *context, const char *folder, bool is_v2);

/*
 * Calls look for the group of this process and for every group around it, the innermost first: those of version 2, and
 * those of version 1 that the controller ("cpu", "memory") has. A limit of any of them holds for this process. A folder
 * may not exist: a container that sees the paths of its host has only the outermost one mounted.
 */
void cgroup_walk(const char *controller, cgroup_look *look, void *context);

/* The first line of the file of that name in a group's folder; false when it cannot be read. */
bool cgroup_read(const char *folder, const char *name, char *line, int size);

#endif

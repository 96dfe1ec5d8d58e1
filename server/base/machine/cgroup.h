/* cgroup.h: walks through the control groups of this process. */
#ifndef BASE_MACHINE_CGROUP_H
#define BASE_MACHINE_CGROUP_H

#include <stdbool.h>

/* Called with the folder of one group. is_v2 says whether its files are those of control groups version 2. */
typedef void cgroup_look(void *context, const char *folder, bool is_v2);

/*
 * Calls look for the group of this process and for every group around it, the innermost first. These are the groups of
 * version 2, and those of version 1 that the controller ("cpu", "memory") has. Every limit of these groups applies to
 * this process. A folder may not exist: a container that sees the paths of its host has mounted only the outermost
 * group.
 */
void cgroup_walk(const char *controller, cgroup_look *look, void *context);

/* Reads the first line of that file in a group's folder. False: the file cannot be read. */
bool cgroup_read(const char *folder, const char *name, char *line, int size);

#endif

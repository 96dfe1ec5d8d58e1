/*
 * cgroup.h: the control groups that this process is in.
 */
#ifndef BASE_MACHINE_CGROUP_H
#define BASE_MACHINE_CGROUP_H

#include <stdbool.h>

/* Is called with the folder of one group, and whether its files are those of control groups version 2. */
typedef void cgroup_look(void *context, const char *folder, bool is_v2);

/*
 * Calls look for the group of this process and for every group around it, the innermost first. These are the groups of
 * version 2, and those of version 1 that the controller ("cpu", "memory") has. A limit of any of them holds for this
 * process. A folder may not exist: a container that sees the paths of its host has mounted the outermost one alone.
 */
void cgroup_walk(const char *controller, cgroup_look *look, void *context);

/* Reads the first line of the file of that name in a group's folder. False: it cannot be read. */
bool cgroup_read(const char *folder, const char *name, char *line, int size);

#endif

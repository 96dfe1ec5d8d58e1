/*
 * mapping.h: read-only mappings of files that other programs may write to meanwhile.
 *
 * Reading a page that a truncation took away raises SIGBUS, which ends a process. The handler of crash.c calls
 * mapping_mend instead: from then on the whole mapping reads as zeros, and it is torn. A caller that computed with a
 * mapping must ask mapping_is_torn before it uses the result.
 *
 * All functions are safe from several threads.
 */
#ifndef BASE_MAPPING_H
#define BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct mapping;

/*
 * Maps the first bytes of the file, at least 1; the caller may close fd. *mapping lives until mapping_remove. Returns 0
 * or an errno.
 */
int mapping_add(int fd, size_t bytes, struct mapping **mapping);
const void *mapping_bytes(const struct mapping *mapping);
/*
 * Gives the memory of the pages that hold at[0 .. bytes) back to the system. All bytes are in the mapping. Whoever reads
 * them again reads the file.
 */
void mapping_rest(const struct mapping *mapping, const void *at, size_t bytes);
/* Unmaps the file. No thread may read it any more. */
void mapping_remove(struct mapping *mapping);

/* Whether a page could not be read, so that the bytes are zeros. */
bool mapping_is_torn(const struct mapping *mapping);
/*
 * Puts zeros in the place of the mapping that has the address. False: no mapping has it, or the system refuses. A signal
 * handler may call this.
 */
bool mapping_mend(const void *address);

#endif

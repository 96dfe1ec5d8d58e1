/*
 * settle.h: what settings mean together.
 */
#ifndef CONFIG_SETTLE_H
#define CONFIG_SETTLE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* False: two settings contradict each other, or the command lacks one; message says which. */
bool settle_fits_together(const struct config *config, char *message, size_t message_size);

/*
 * Replaces "auto" by a number and reduces what does not fit into the memory. False: the memory is too small for any
 * request; message says for what it is needed.
 */
bool settle_memory(struct config *config, char *message, size_t message_size);

#endif

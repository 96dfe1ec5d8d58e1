/* settle.h: checks settings against each other, and computes the values of "auto". */
#ifndef CONFIG_SETTLE_H
#define CONFIG_SETTLE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/*
 * Checks the settings against each other. False: two settings contradict each other, or the command lacks one; message
 * says which.
 */
bool settle_fits_together(const struct config *config, char *message, size_t message_size);

/* Computes the timeouts that follow from others. */
void settle_timeouts(struct config *config);

/*
 * Replaces "auto" by numbers, and reduces what does not fit into the memory. False: the memory is too small for any
 * request; message says which parts need it.
 */
bool settle_memory(struct config *config, char *message, size_t message_size);

#endif

/*
 * command_line.h: reads the command line and the environment into struct config.
 *
 *     attnd [--setting value]...
 *     attnd health [ready|live] [--setting value]...
 *     attnd import CHECKPOINT --into DIR [--prefix NAME] [--mapping FILE]
 *     attnd key NAME [RIGHTS [QUOTA]]
 *     attnd --help | --version
 *
 * A flag wins over its variable, and the variable over the default.
 */
#ifndef CONFIG_COMMAND_LINE_H
#define CONFIG_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"

/*
 * Skips argv[0]; environment must end with NULL. False: message says which word or value is wrong, and gives a correct
 * form.
 */
bool command_line_read(struct config *config, int argc, char *const *argv, char *const *environment, char *message,
                       size_t message_size);

/*
 * help.c. Writes the text of `attnd --help` to fd: the commands, then every setting with its variable, default, meaning
 * and range. The manual page and the completion are made from it (packaging/settings.awk).
 */
void help_write(int fd);

#endif

/* help.h: the text of `attnd --help`. The manual page and the completion are made from it (packaging/settings.awk). */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

/* Writes the commands, then every setting with its variable, default, meaning and range, to fd. */
void help_write(int fd);

#endif

/*
 * announce.h: the lines of the log that a server begins with.
 */
#ifndef PROGRAM_ANNOUNCE_H
#define PROGRAM_ANNOUNCE_H

#include "codec/picture/fonts/font_set.h"
#include "config/config.h"
#include "http/daemon.h"

/* Where the server listens, what it computes with, how its memory is divided, and which variables are no settings. */
void announce_start(const struct log *log, const struct config *config, const struct http_server *server,
                    const char *kernel);
/* The fonts of labels, or that there are none. */
void announce_fonts(const struct log *log, const struct font_set *fonts);

#endif

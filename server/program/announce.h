/* announce.h: writes the first lines of a server's log, and the address of the page on a terminal. */
#ifndef PROGRAM_ANNOUNCE_H
#define PROGRAM_ANNOUNCE_H

#include "codec/picture/fonts/font_set.h"
#include "config/config.h"
#include "http/daemon.h"

/*
 * Says where the server listens, what it computes with, how its memory is divided, and which variables are not
 * settings.
 */
void announce_start(const struct log *log, const struct config *config, const struct http_server *server,
                    const char *kernel);
/* Says which fonts draw labels, or that there are none. */
void announce_fonts(const struct log *log, const struct font_set *fonts);
/* When standard output is a terminal: tells a human where the page is, and how the server ends. */
void announce_page(const struct http_server *server);

#endif

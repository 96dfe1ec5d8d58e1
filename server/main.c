/* main.c: attnd: read the command line, and do what it asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/command_line.h"
#include "program/commands.h"

extern char **environ;

int main(int argc, char **argv)
{
    struct config config;
    char message[320];
    if (!command_line_read(&config, argc, argv, environ, message, sizeof message)) {
        fprintf(stderr, "attnd: %s\n", message);
        return EXIT_USAGE;
    }
    switch (config.command) {
    case CONFIG_HELP:
        help_write(STDOUT_FILENO);
        return EXIT_SUCCESS;
    case CONFIG_VERSION:
        printf("attnd %s\n", ATTN_VERSION);
        return EXIT_SUCCESS;
    case CONFIG_KEY:
        return command_key(&config);
    case CONFIG_HEALTH:
        return command_health(&config);
    case CONFIG_IMPORT:
        return command_import(&config);
    case CONFIG_CHECK:
        return check(&config);
    case CONFIG_SERVE:
        return serve(&config);
    }
    return EXIT_FAILURE;
}

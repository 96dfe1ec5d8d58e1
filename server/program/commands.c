/* commands.c: the commands of attnd other than serving. */
#include "program/commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "program/health.h"
#include "service/keys.h"

static int complain(const char *message)
{
    fprintf(stderr, "attnd: %s\n", message);
    return EXIT_FAILURE;
}

int command_key(const struct config *config)
{
    char token[KEYS_TOKEN_MAX], line[512], message[320];
    if (!keys_make(config->key_name, config->key_rights, config->key_quota, token, line, sizeof line, message,
                   sizeof message))
        return complain(message);
    printf("%s\n", line);
    fprintf(stderr, "The key of %s, which is stored nowhere: %s\n", config->key_name, token);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int command_health(const struct config *config)
{
    char message[320];
    const struct health_question question = {.host = config->listen.host,
                                             .port = config->listen.port,
                                             .path = config->health_path,
                                             .tls_certificate = config->tls_cert,
                                             .takes_any_certificate = config->health_insecure == SWITCH_ON};
    return health_ask(&question, message, sizeof message) ? EXIT_SUCCESS : complain(message);
}

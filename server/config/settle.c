/* settle.c: checks settings against each other, and computes the values of "auto". */
#include "config/settle.h"

#include <stdio.h>

#include "base/machine/cpus.h"

bool settle_fits_together(const struct config *config, char *message, size_t message_size)
{
    /* `attnd health` needs no private key. */
    if (config->command != CONFIG_HEALTH && (config->tls_cert == NULL) != (config->tls_key == NULL)) {
        snprintf(message, message_size, "tls-cert and tls-key go together: one is given, the other is not");
        return false;
    }
    if (config->max_body_bytes >= config->max_memory_bytes) {
        snprintf(message, message_size,
                 "max-body (%llu bytes) must be smaller than max-memory (%llu bytes), which includes the body",
                 (unsigned long long)config->max_body_bytes, (unsigned long long)config->max_memory_bytes);
        return false;
    }
    if (config->command == CONFIG_IMPORT && config->layers_directory == NULL) {
        snprintf(message, message_size, "import needs --into DIR, a directory for the layers");
        return false;
    }
    return true;
}

static uint64_t fewer(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void settle_timeouts(struct config *config)
{
    enum { HEADER_MAX_S = 20 };
    config->header_timeout_s = fewer(config->idle_timeout_s, HEADER_MAX_S);
    config->receive_timeout_s = (config->request_timeout_s + 1) / 2;
}

/*
 * Layers count as memory only without a directory. With one, they are mapped files, which the kernel may drop and read
 * again.
 */
static bool keeps_layers_in_memory(const struct config *config)
{
    return config->layers_directory == NULL;
}

bool settle_memory(struct config *config, char *message, size_t message_size)
{
    if (config->memory_bytes == VALUE_AUTO)
        config->memory_bytes = memory_auto_bytes();
    if (config->compute_threads == VALUE_AUTO)
        config->compute_threads =
            fewer(fewer(cpus_available(), CONFIG_COMPUTE_THREADS_MAX), memory_compute_threads(config->memory_bytes));
    struct memory_division *memory = &config->memory;
    *memory = (struct memory_division){.total = config->memory_bytes,
                                       .io_threads = config->io_threads,
                                       .compute_threads = config->compute_threads,
                                       .connections = config->connections,
                                       .layers_bytes = keeps_layers_in_memory(config) ? config->layers_bytes : 0,
                                       .caches_bytes = config->cache_bytes,
                                       .prepared_bytes = config->layers_prepared_bytes,
                                       .has_models = config->models.count > 0 || config->models_directory != NULL};
    if (!memory_divide(memory, message, message_size))
        return false;
    if (keeps_layers_in_memory(config))
        config->layers_bytes = memory->layers_bytes;
    config->cache_bytes = memory->caches_bytes;
    config->layers_prepared_bytes = memory->prepared_bytes;
    config->max_memory_bytes = fewer(config->max_memory_bytes, memory->largest_request_bytes);
    config->max_body_bytes = fewer(config->max_body_bytes, config->max_memory_bytes / 4 * 3);
    return true;
}

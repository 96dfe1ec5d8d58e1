/* announce.c: writes the first lines of a server's log, and the address of the page on a terminal. */
#include "program/serving.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say_memory(const struct log *log, const struct config *config)
{
    const struct memory_division *memory = &config->memory;
    struct log_line line;
    log_begin(&line, log, LOG_INFO, "memory");
    log_count(&line, "total", memory->total);
    log_count(&line, "process", memory->process_bytes);
    log_count(&line, "heap", memory->heap_bytes);
    log_count(&line, "connections", memory->connections_bytes);
    log_count(&line, "layers", memory->layers_bytes);
    log_count(&line, "caches", memory->caches_bytes);
    log_count(&line, "prepared", memory->prepared_bytes);
    log_count(&line, "models", memory->models_bytes);
    log_count(&line, "requests", memory->requests_bytes);
    log_end(&line);
    if (memory->connections < config->connections)
        log_say(log, LOG_WARN, "--memory has room for %llu connections, not for %llu",
                (unsigned long long)memory->connections, (unsigned long long)config->connections);
}

void announce_start(const struct log *log, const struct config *config, const struct http_server *server,
                    const char *kernel)
{
    struct log_line line;
    const bool is_open = http_daemon_is_open_to_all(server);
    log_say(log, is_open ? LOG_WARN : LOG_INFO, "listening on %s%s", http_daemon_url(server),
            is_open ? ", without keys: anybody who reaches it may compute, and read, replace and delete what is kept "
                      "(--keys)"
                    : "");
    log_begin(&line, log, LOG_INFO, "attnd " ATTN_VERSION);
    log_text(&line, "kernel", kernel);
    log_text(&line, "blas", attn_blas_description());
    log_count(&line, "io_threads", config->io_threads);
    log_count(&line, "compute_threads", config->compute_threads);
    log_end(&line);
    say_memory(log, config);
    for (uint64_t i = 0; i < config->unknown_variables; i++)
        log_say(log, LOG_WARN, "%.*s is not a setting and is ignored; --help lists them all",
                (int)strcspn(config->unknown_variable[i], "="), config->unknown_variable[i]);
}

void announce_fonts(const struct log *log, const struct font_set *fonts)
{
    for (size_t i = 0; i < fonts->count; i++)
        log_say(log, LOG_DEBUG, "labels of pictures: %s", fonts->file[i].path);
    if (fonts->count == 0)
        log_say(log, LOG_DEBUG, "labels of pictures: no font was found; the built-in font for ASCII is used");
}

void announce_page(const struct http_server *server)
{
    if (!isatty(STDOUT_FILENO))
        return;
    printf("\nOpen %s/ in a browser. Ctrl+C ends the server.\n\n", http_daemon_url(server));
    fflush(stdout);
}

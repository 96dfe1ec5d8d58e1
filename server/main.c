/*
 * main.c: attnd: configure, start, wait for a signal, stop.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "codec/envelope.h"
#include "codec/font_set.h"
#include "config.h"
#include "http/daemon.h"
#include "probe.h"
#include "service/layer_keeper.h"
#include "signals.h"

extern char **environ;

/* Kernels by name, for a message. */
static void refuse_kernel(const char *name)
{
    fprintf(stderr, "attnd: kernel: \"%s\" is not one that this processor can run; expected auto", name);
    for (size_t i = 0; attn_kernel_at(i) != NULL; i++)
        fprintf(stderr, " or %s", attn_kernel_name(attn_kernel_at(i)));
    fprintf(stderr, "\n");
}

static const attn_kernel *choose_kernel(const char *name)
{
    const attn_kernel *kernel = strcmp(name, "auto") == 0 ? attn_kernel_best() : attn_kernel_by_name(name);
    if (kernel == NULL)
        refuse_kernel(name);
    return kernel;
}

/* Every connection is a descriptor; the usual soft limit of 1024 is below what --connections may ask. */
static void allow_descriptors(uint64_t connections, const struct log *log)
{
    enum { OTHERS = 64 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= connections + OTHERS)
        return;
    limit.rlim_cur = connections + OTHERS < limit.rlim_max ? connections + OTHERS : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < connections + OTHERS)
        log_say(log, LOG_WARN, "only %llu descriptors are allowed, too few for %llu connections",
                (unsigned long long)limit.rlim_cur, (unsigned long long)connections);
}

static struct http_setup setup_of(const struct config *config, const struct log *log, struct executor *executor,
                                  attn_budget *budget, const attn_kernel *kernel, const struct font_set *fonts,
                                  struct layer_keeper *layers)
{
    return (struct http_setup){
        .host = config->listen_host,
        .port = config->listen_port,
        .cors_origin = config->cors_origin,
        .io_threads = (unsigned)config->io_threads,
        .connections = (unsigned)config->connections,
        .idle_timeout_s = (unsigned)config->idle_timeout_s,
        .receive_timeout_s = (unsigned)config->receive_timeout_s,
        .cancels_on_half_close = config->half_close == HALF_CLOSE_CANCEL,
        .deadline_s = (unsigned)config->deadline_s,
        .budget = budget,
        .max_body_bytes = config->max_body_bytes,
        .limits = {.result_bytes = config->max_result_bytes,
                   .memory_bytes = config->max_memory_bytes,
                   .flops = config->max_flops},
        .executor = executor,
        .fonts = fonts,
        .layers = layers,
        .log = log,
        .facts = {.kernel = attn_kernel_name(kernel),
                  .io_threads = config->io_threads,
                  .compute_threads = config->compute_threads},
    };
}

static void say_started(const struct log *log, const struct config *config, const struct http_server *server,
                        const attn_kernel *kernel)
{
    struct log_line line;
    log_say(log, LOG_INFO, "listening on %s", http_daemon_url(server));
    log_begin(&line, log, LOG_INFO, "attnd " ATTN_VERSION);
    log_text(&line, "kernel", attn_kernel_name(kernel));
    log_text(&line, "blas", attn_blas_description());
    log_count(&line, "io_threads", config->io_threads);
    log_count(&line, "compute_threads", config->compute_threads);
    log_end(&line);
    for (uint64_t i = 0; i < config->unknown_variables; i++)
        log_say(log, LOG_WARN, "%.*s is not a setting and is ignored; --help lists them all",
                (int)strcspn(config->unknown_variable[i], "="), config->unknown_variable[i]);
}

/* A second signal cuts the delay short. */
static void drain(struct http_server *server, const struct config *config, const struct log *log)
{
    log_say(log, LOG_INFO, "draining");
    http_daemon_begin_drain(server);
    (void)signals_wait((int)config->drain_delay_s);
    http_daemon_stop_listening(server);
    if (!http_daemon_await_idle(server, (unsigned)config->drain_timeout_s))
        log_say(log, LOG_WARN, "requests still run after %llu s and are ended",
                (unsigned long long)config->drain_timeout_s);
    http_daemon_stop(server);
    log_say(log, LOG_INFO, "stopped");
}

static void say_fonts(const struct log *log, const struct font_set *fonts)
{
    for (size_t i = 0; i < fonts->count; i++)
        log_say(log, LOG_DEBUG, "labels of pictures: %s", fonts->file[i].path);
    if (fonts->count == 0)
        log_say(log, LOG_DEBUG, "labels of pictures: no font was found, a built-in one for ASCII is used");
}

static struct layer_keeper *open_layers(const struct config *config, const struct log *log)
{
    char message[320];
    const struct layer_settings settings = {
        .directory = config->layers_directory,
        .is_read_only = config->layers_readonly == SWITCH_ON,
        .verifies_at_start = config->layers_verify == LAYERS_VERIFY_AT_START,
        .max_count = config->layers_max,
        .max_bytes = config->layers_bytes,
        .older = config->layers_versions,
    };
    struct layer_keeper *layers = layer_keeper_open(&settings, log, message, sizeof message);
    if (layers == NULL)
        fprintf(stderr, "attnd: %s\n", message);
    return layers;
}

static int serve(const struct config *config, const struct log *log, const attn_kernel *kernel,
                 const struct font_set *fonts, struct layer_keeper *layers)
{
    char message[256];
    struct executor *executor = executor_create(config->compute_threads, config->queue, kernel);
    if (executor == NULL) {
        fprintf(stderr, "attnd: the system has no %llu threads\n", (unsigned long long)config->compute_threads);
        return EXIT_FAILURE;
    }
    attn_budget *budget = attn_budget_create(config->memory_bytes);
    const struct http_setup setup = setup_of(config, log, executor, budget, kernel, fonts, layers);
    struct http_server *server = budget == NULL ? NULL : http_daemon_start(&setup, message, sizeof message);
    if (server == NULL) {
        fprintf(stderr, "attnd: %s\n", budget == NULL ? "no memory" : message);
        executor_destroy(executor);
        attn_budget_destroy(budget);
        return EXIT_FAILURE;
    }
    say_started(log, config, server, kernel);
    say_fonts(log, fonts);
    allow_descriptors(config->connections, log);
    while (!signals_wait(-1))
        continue;
    drain(server, config, log);
    executor_destroy(executor);
    attn_budget_destroy(budget);
    return EXIT_SUCCESS;
}

/* Large chunks of arenas go back to the system when a request ends; left alone, the C library learns to keep them. */
static void return_large_blocks(void)
{
#if defined(__GLIBC__)
    enum { LARGE_BYTES = 128 << 10 };
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

static int ask_health(const struct config *config)
{
    char message[320];
    if (probe_ask(config->listen_host, config->listen_port, config->probe_path, message, sizeof message))
        return EXIT_SUCCESS;
    fprintf(stderr, "attnd: %s\n", message);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct config config;
    char message[320];
    switch (config_read(&config, argc, argv, environ, message, sizeof message)) {
    case CONFIG_HEALTH:
        return ask_health(&config);
    case CONFIG_HELP:
        config_write_help(STDOUT_FILENO);
        return EXIT_SUCCESS;
    case CONFIG_VERSION:
        printf("attnd %s\n", ATTN_VERSION);
        return EXIT_SUCCESS;
    case CONFIG_REFUSED:
        fprintf(stderr, "attnd: %s\n", message);
        return EXIT_FAILURE;
    case CONFIG_RUN:
        break;
    }
    const attn_kernel *kernel = choose_kernel(config.kernel);
    if (kernel == NULL)
        return EXIT_FAILURE;
    struct font_set fonts;
    if (!font_set_open(&fonts, config.fonts, message, sizeof message)) {
        fprintf(stderr, "attnd: %s\n", message);
        return EXIT_FAILURE;
    }
    if (!signals_take()) {
        perror("attnd: signals");
        return EXIT_FAILURE;
    }
    return_large_blocks();
    attn_blas_prepare();
    envelope_prepare();
    const struct log log = {STDERR_FILENO, config.log_format, config.log_level};
    struct layer_keeper *layers = open_layers(&config, &log);
    const int outcome = layers != NULL ? serve(&config, &log, kernel, &fonts, layers) : EXIT_FAILURE;
    layer_keeper_close(layers);
    font_set_close(&fonts);
    return outcome;
}

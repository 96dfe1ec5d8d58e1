/*
 * main.c: attnd: configure, start, wait for a signal, stop.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_writer.h"
#include "base/machine/memory.h"
#include "base/signals.h"
#include "base/supervisor.h"
#include "codec/picture/fonts/font_set.h"
#include "codec/request/envelope_decode.h"
#include "health/health_client.h"
#include "http/daemon.h"
#include "service/cache/cache_store.h"
#include "service/import/checkpoint_layers.h"
#include "service/layers/keeper.h"
#include "service/selftest.h"

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
    enum { OTHERS = 192 };
    connections = memory_places(connections);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= connections + OTHERS)
        return;
    limit.rlim_cur = connections + OTHERS < limit.rlim_max ? connections + OTHERS : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < connections + OTHERS)
        log_say(log, LOG_WARN, "only %llu descriptors are allowed, too few for %llu connections",
                (unsigned long long)limit.rlim_cur, (unsigned long long)connections);
}

/* What serving takes and main owns. */
struct parts {
    struct log log;
    struct executor *executor;
    attn_budget *budget;
    struct keys *keys; /* NULL: none are asked for */
    struct metrics *metrics;
    struct layer_keeper *layers;
    struct cache_store *caches;
    struct http_server *server;
};

static struct http_setup setup_of(const struct config *config, const struct parts *parts, const attn_kernel *kernel,
                                  const struct font_set *fonts)
{
    return (struct http_setup){
        .host = config->listen_host,
        .port = config->listen_port,
        .cors_origin = config->cors_origin,
        .host_names = config->host_names,
        .io_threads = (unsigned)config->io_threads,
        .tls_certificate = config->tls_cert,
        .tls_key = config->tls_key,
        .connections = (unsigned)config->memory.connections,
        .connections_per_address = (unsigned)config->connections_per_address,
        .idle_timeout_s = (unsigned)config->idle_timeout_s,
        .header_timeout_s = (unsigned)config->header_timeout_s,
        .receive_timeout_s = (unsigned)config->receive_timeout_s,
        .request_timeout_s = (unsigned)config->request_timeout_s,
        .cancels_on_half_close = config->half_close == HALF_CLOSE_CANCEL,
        .deadline_s = (unsigned)config->deadline_s,
        .budget = parts->budget,
        .budget_bytes = config->memory.requests_bytes,
        .keys = parts->keys,
        .is_open = config->open == SWITCH_ON,
        .metrics = parts->metrics,
        .max_body_bytes = config->max_body_bytes,
        .limits = {.result_bytes = config->max_result_bytes,
                   .memory_bytes = config->max_memory_bytes,
                   .flops = config->max_flops},
        .executor = parts->executor,
        .fonts = fonts,
        .log = &parts->log,
        .layers = parts->layers,
        .caches = parts->caches,
        .facts = {.kernel = attn_kernel_name(kernel),
                  .io_threads = config->io_threads,
                  .compute_threads = config->compute_threads},
    };
}

/* How the memory is divided, in bytes. */
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
    log_count(&line, "requests", memory->requests_bytes);
    log_end(&line);
    if (memory->connections < config->connections)
        log_say(log, LOG_WARN, "--memory has room for %llu connections, not for %llu",
                (unsigned long long)memory->connections, (unsigned long long)config->connections);
}

static void say_started(const struct log *log, const struct config *config, const struct http_server *server,
                        const attn_kernel *kernel)
{
    struct log_line line;
    const bool is_open = http_daemon_is_open_to_all(server);
    log_say(log, is_open ? LOG_WARN : LOG_INFO, "listening on %s%s", http_daemon_url(server),
            is_open ? ", without keys: anybody who reaches it may compute, and read, replace and delete what is kept "
                      "(--keys)"
                    : "");
    log_begin(&line, log, LOG_INFO, "attnd " ATTN_VERSION);
    log_text(&line, "kernel", attn_kernel_name(kernel));
    log_text(&line, "blas", attn_blas_description());
    log_count(&line, "io_threads", config->io_threads);
    log_count(&line, "compute_threads", config->compute_threads);
    log_end(&line);
    say_memory(log, config);
    for (uint64_t i = 0; i < config->unknown_variables; i++)
        log_say(log, LOG_WARN, "%.*s is not a setting and is ignored; --help lists them all",
                (int)strcspn(config->unknown_variable[i], "="), config->unknown_variable[i]);
}

/* Gives memory back that the process keeps and does not need: a bounded part while there is work, all when there is
 * none.
 */
struct tidying {
    struct memory_growth growth;
    uint64_t known_bytes; /* received and sent, as of when nothing was at work last */
};

static void tidy(const struct parts *parts, struct tidying *tidying)
{
    const uint64_t bytes = parts->metrics->received_bytes + parts->metrics->sent_bytes;
    const size_t in_use = attn_budget_bytes(parts->budget);
    const bool is_idle = in_use == 0 && bytes != tidying->known_bytes;
    if (is_idle) {
        tidying->known_bytes = bytes;
        attn_budget_trim(parts->budget);
    }
    if (memory_has_grown(&tidying->growth, in_use) || is_idle) {
        memory_return_free_blocks();
        memory_growth_is_dealt_with(&tidying->growth, attn_budget_bytes(parts->budget));
    }
}

/* Sleeps until a signal comes; now and then sends the supervisor a sign of life, and gives memory back to the system.
 */
static signal_wish wait_for_wish(const struct parts *parts, const struct config *config)
{
    enum { TIDY_EVERY_MS = 250 };
    signal_wish wish;
    struct tidying tidying = {.growth.bound_bytes = config->memory.heap_bytes / 2};
    const int alive_every_ms = supervisor_alive_every_ms();
    const int every_ms = alive_every_ms > 0 && alive_every_ms < TIDY_EVERY_MS ? alive_every_ms : TIDY_EVERY_MS;
    while ((wish = signals_wait(every_ms)) == SIGNAL_NONE) {
        supervisor_alive();
        tidy(parts, &tidying);
    }
    return wish;
}

/* How long is waited for a log that is slow to take its lines, at the end and before it becomes another file. */
enum { LOG_PATIENCE_MS = 2000 };

/* What cannot be read stays as it was: a slip of the pen in a file must not end the service. */
static void reload(const struct parts *parts, const struct config *config)
{
    char message[320];
    supervisor_reloading();
    log_writer_flush(parts->log.writer, LOG_PATIENCE_MS);
    const bool has_log = *config->log_file == '\0' || log_open_again(parts->log.fd, config->log_file);
    if (!has_log)
        log_say(&parts->log, LOG_ERROR, "%s: %s; the log goes on in the old file", config->log_file, strerror(errno));
    const bool has_keys = parts->keys == NULL || keys_reload(parts->keys, message, sizeof message);
    if (!has_keys)
        log_say(&parts->log, LOG_ERROR, "%s; the old keys go on", message);
    const bool has_certificate = http_daemon_reload(parts->server, message, sizeof message);
    if (!has_certificate)
        log_say(&parts->log, LOG_ERROR, "%s; the old certificate goes on", message);
    if (has_log && has_keys && has_certificate)
        log_say(&parts->log, LOG_INFO, "reloaded");
    else
        log_say(&parts->log, LOG_WARN, "reloaded in part: what could not be read goes on as it was");
    supervisor_ready();
}

/* A second signal to end cuts the delay short. */
static void await_delay(const struct config *config)
{
    for (uint64_t left_s = config->drain_delay_s; left_s > 0; left_s--)
        if (signals_wait(1000) == SIGNAL_STOP)
            return;
}

static void drain(const struct parts *parts, const struct config *config)
{
    log_say(&parts->log, LOG_INFO, "draining");
    supervisor_stopping();
    http_daemon_begin_drain(parts->server);
    await_delay(config);
    http_daemon_stop_listening(parts->server);
    if (!http_daemon_await_idle(parts->server, (unsigned)config->drain_timeout_s))
        log_say(&parts->log, LOG_WARN, "requests still run after %llu s and are ended",
                (unsigned long long)config->drain_timeout_s);
    http_daemon_stop(parts->server);
    log_say(&parts->log, LOG_INFO, "stopped");
}

static void say_fonts(const struct log *log, const struct font_set *fonts)
{
    for (size_t i = 0; i < fonts->count; i++)
        log_say(log, LOG_DEBUG, "labels of pictures: %s", fonts->file[i].path);
    if (fonts->count == 0)
        log_say(log, LOG_DEBUG, "labels of pictures: no font was found, a built-in one for ASCII is used");
}

/* A look takes a microsecond or two per file. */
enum { LAYERS_LOOK_MS = 1000 };

static struct layer_keeper *open_layers(const struct config *config, const struct log *log, char *message,
                                        size_t message_size)
{
    const struct layer_settings settings = {
        .directory = config->layers_directory,
        .is_read_only = config->layers_readonly == SWITCH_ON,
        .verifies_at_start = config->layers_verify == LAYERS_VERIFY_AT_START,
        .look_ms = LAYERS_LOOK_MS,
        .max_count = config->layers_max,
        .max_bytes = config->layers_bytes,
        .older = config->layers_versions,
        .prepared_bytes = config->layers_prepared_bytes,
    };
    return layer_keeper_open(&settings, log, message, message_size);
}

static struct checkpoint_source source_of(const struct config *config)
{
    return (struct checkpoint_source){config->checkpoint, config->checkpoint_mapping, config->checkpoint_prefix};
}

static int import(const struct config *config, const struct log *log)
{
    char message[512];
    const struct checkpoint_source source = source_of(config);
    if (checkpoint_layers_write(&source, config->layers_directory, log, message, sizeof message))
        return EXIT_SUCCESS;
    fprintf(stderr, "attnd: %s\n", message);
    return EXIT_FAILURE;
}

/* The layers of --checkpoint, in memory for as long as the process lives. */
static bool adopt_checkpoint(const struct config *config, const struct parts *parts, char *message, size_t message_size)
{
    const struct checkpoint_source source = source_of(config);
    return source.directory == NULL ||
           checkpoint_layers_adopt(&source, parts->layers, &parts->log, message, message_size);
}

static struct log log_of(const struct config *config)
{
    return (struct log){.fd = STDERR_FILENO, .format = config->log_format, .level = config->log_level};
}

static void finish_log(void *writer)
{
    log_writer_finish(writer, LOG_PATIENCE_MS);
}

/* Without memory for a writer, lines go on being written one by one. */
static void start_log_writer(struct parts *parts)
{
    parts->log.writer = log_writer_start(parts->log.fd);
    if (parts->log.writer != NULL)
        signals_before_death(finish_log, parts->log.writer);
}

/* Standard error stays what it was: there the supervisor reads why the server does not start. */
static bool open_log(struct log *log, const char *path, char *message, size_t message_size)
{
    const int fd = log_open(path);
    if (fd < 0) {
        snprintf(message, message_size, "log-file: %s: %s", path, strerror(errno));
        return false;
    }
    log->fd = fd;
    return true;
}

/* False: message says what is missing. */
static bool prepare(struct parts *parts, const struct config *config, const attn_kernel *kernel, char *message,
                    size_t message_size)
{
    *parts = (struct parts){.log = log_of(config)};
    if (*config->log_file != '\0' && !open_log(&parts->log, config->log_file, message, message_size))
        return false;
    if (*config->keys != '\0' && (parts->keys = keys_create(config->keys, message, message_size)) == NULL)
        return false;
    start_log_writer(parts);
    parts->layers = open_layers(config, &parts->log, message, message_size);
    if (parts->layers == NULL || !adopt_checkpoint(config, parts, message, message_size))
        return false;
    parts->caches = cache_store_create(config->cache_bytes, config->cache_max, config->cache_idle_s);
    parts->executor = executor_create(config->compute_threads, config->queue, kernel);
    parts->budget = attn_budget_create(config->memory.requests_bytes);
    parts->metrics = calloc(1, sizeof *parts->metrics);
    if (parts->executor != NULL && parts->budget != NULL && parts->metrics != NULL && parts->caches != NULL)
        return true;
    snprintf(message, message_size, "the system has no memory, or no %llu threads",
             (unsigned long long)config->compute_threads);
    return false;
}

static void give_back(struct parts *parts)
{
    executor_destroy(parts->executor);
    layer_keeper_close(parts->layers);
    cache_store_destroy(parts->caches);
    attn_budget_destroy(parts->budget);
    keys_destroy(parts->keys);
    free(parts->metrics);
    signals_before_death(NULL, NULL);
    (void)log_writer_stop(parts->log.writer, LOG_PATIENCE_MS);
}

/* It answers probes already, and says that it is starting. */
static bool test_itself(const struct parts *parts, const struct config *config, char *message, size_t message_size)
{
    if (!selftest_run(parts->executor, config->max_memory_bytes, message, message_size))
        return false;
    http_daemon_set_ready(parts->server);
    supervisor_ready();
    return true;
}

static bool start(struct parts *parts, const struct config *config, const attn_kernel *kernel,
                  const struct font_set *fonts, char *message, size_t message_size)
{
    const struct http_setup setup = setup_of(config, parts, kernel, fonts);
    parts->server = http_daemon_start(&setup, message, message_size);
    if (parts->server == NULL)
        return false;
    say_started(&parts->log, config, parts->server, kernel);
    say_fonts(&parts->log, fonts);
    allow_descriptors(config->memory.connections, &parts->log);
    if (test_itself(parts, config, message, message_size))
        return true;
    http_daemon_stop(parts->server);
    return false;
}

/* On standard error, and as a line of the log where that is a file. */
static void say_why_not(const struct log *log, const char *message)
{
    fprintf(stderr, "attnd: %s\n", message);
    if (log->fd != STDERR_FILENO)
        log_say(log, LOG_ERROR, "%s", message);
}

static int serve(const struct config *config, const attn_kernel *kernel, const struct font_set *fonts)
{
    char message[512];
    struct parts parts;
    int outcome = EXIT_FAILURE;
    if (prepare(&parts, config, kernel, message, sizeof message) &&
        start(&parts, config, kernel, fonts, message, sizeof message)) {
        while (wait_for_wish(&parts, config) == SIGNAL_RELOAD)
            reload(&parts, config);
        drain(&parts, config);
        outcome = EXIT_SUCCESS;
    } else {
        say_why_not(&parts.log, message);
    }
    give_back(&parts);
    return outcome;
}

/* attnd key NAME [RIGHTS [QUOTA]]: the key for its owner on standard error, its line for the file on standard output.
 */
static int make_key(int argc, char **argv)
{
    enum { WORDS_MIN = 3, WORDS_MAX = 5 };
    char token[KEYS_TOKEN_MAX], line[512], message[320];
    if (argc < WORDS_MIN || argc > WORDS_MAX) {
        fprintf(stderr, "usage: attnd key NAME [RIGHTS [QUOTA]] >> FILE\n");
        return EXIT_FAILURE;
    }
    if (!keys_make(argv[2], argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL, token, line, sizeof line, message,
                   sizeof message)) {
        fprintf(stderr, "attnd: %s\n", message);
        return EXIT_FAILURE;
    }
    printf("%s\n", line);
    fprintf(stderr, "The key of %s, which is not kept anywhere: %s\n", argv[2], token);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int ask_health(const struct config *config)
{
    char message[320];
    const struct probe probe = {.host = config->listen_host,
                                .port = config->listen_port,
                                .path = config->probe_path,
                                .tls_certificate = config->tls_cert,
                                .takes_any_certificate = config->health_insecure == SWITCH_ON};
    if (probe_ask(&probe, message, sizeof message))
        return EXIT_SUCCESS;
    fprintf(stderr, "attnd: %s\n", message);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "key") == 0)
        return make_key(argc, argv);
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
    case CONFIG_IMPORT:
    case CONFIG_RUN:
        break;
    }
    envelope_prepare();
    const struct log log = log_of(&config);
    if (config.is_import)
        return import(&config, &log);
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
    memory_keep_small_blocks();
    attn_blas_prepare();
    const int outcome = serve(&config, kernel, &fonts);
    font_set_close(&fonts);
    return outcome;
}

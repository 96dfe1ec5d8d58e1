/* serve.c: runs a server: prepare, start, wait for a signal, drain, free. */
#include "program/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log_writer.h"
#include "base/memory.h"
#include "base/process.h"
#include "codec/picture/fonts/fonts.h"
#include "codec/request/envelope.h"
#include "http/daemon.h"
#include "service/cache/cache.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"

/* A server. serve owns the parts of it that setup has. */
struct serving {
    const struct config *config;
    struct log log;
    const attn_kernel *kernel;
    struct font_set fonts;
    struct http_setup setup;
    struct http_server *server;
    bool was_ready;
};

/* Fills in the setup, beside the parts that prepare has made. */
static void complete_setup(struct serving *serving)
{
    const struct config *config = serving->config;
    struct http_setup *setup = &serving->setup;
    setup->host = config->listen.host;
    setup->port = config->listen.port;
    setup->cors_origin = config->cors_origin;
    setup->host_names = config->host_names;
    setup->trusted_proxies = config->trusted_proxies;
    setup->io_threads = (unsigned)config->io_threads;
    setup->tls_certificate = config->tls_cert;
    setup->tls_key = config->tls_key;
    setup->connections_per_address = (unsigned)config->connections_per_address;
    setup->idle_timeout_s = (unsigned)config->idle_timeout_s;
    setup->header_timeout_s = (unsigned)config->header_timeout_s;
    setup->receive_timeout_s = (unsigned)config->receive_timeout_s;
    setup->request_timeout_s = (unsigned)config->request_timeout_s;
    setup->cancels_on_half_close = config->half_close == HALF_CLOSE_CANCEL;
    setup->deadline_s = (unsigned)config->deadline_s;
    setup->budget_bytes = config->memory.requests_bytes;
    setup->is_open = config->open == SWITCH_ON;
    setup->max_body_bytes = config->max_body_bytes;
    setup->limits = (struct call_limits){
        .result_bytes = config->max_result_bytes, .memory_bytes = config->max_memory_bytes, .flops = config->max_flops};
    setup->fonts = &serving->fonts;
    setup->log = &serving->log;
    setup->started_s = (double)time(NULL);
    setup->facts = (struct health_facts){.kernel = attn_kernel_name(serving->kernel),
                                         .io_threads = config->io_threads,
                                         .compute_threads = config->compute_threads};
}

/* ---- the first lines of the log, and the address of the page on a terminal ---- */

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

/*
 * Says where the server listens, what it computes with, how its memory is divided, and which variables are not settings.
 */
static void say_start(const struct serving *serving)
{
    const struct log *log = &serving->log;
    const struct config *config = serving->config;
    struct log_line line;
    char unknown[SETTING_SAID_MAX];
    const bool is_open = http_daemon_is_open_to_all(serving->server);
    log_say(log, is_open ? LOG_WARN : LOG_INFO, "listening on %s%s", http_daemon_url(serving->server),
            is_open ? ", without keys: anybody who reaches it may compute, and read, replace and delete what is kept "
                      "(--keys)"
                    : "");
    log_begin(&line, log, LOG_INFO, "attnd " ATTN_VERSION);
    log_text(&line, "kernel", attn_kernel_name(serving->kernel));
    log_text(&line, "blas", attn_blas_description());
    log_count(&line, "io_threads", config->io_threads);
    log_count(&line, "compute_threads", config->compute_threads);
    log_end(&line);
    say_memory(log, config);
    for (uint64_t i = 0; i < config->unknown_variables; i++)
        log_say(log, LOG_WARN, "%s", setting_say_unknown(config->unknown_variable[i], unknown));
}

static void say_fonts(const struct log *log, const struct font_set *fonts)
{
    for (size_t i = 0; i < fonts->count; i++)
        log_say(log, LOG_DEBUG, "labels of pictures: %s", fonts->file[i].path);
    if (fonts->count == 0)
        log_say(log, LOG_DEBUG, "labels of pictures: no font was found; the built-in font for ASCII is used");
}

/* Tells a human where the page is, and how the server ends. */
static void say_page(const struct http_server *server)
{
    if (!isatty(STDOUT_FILENO))
        return;
    printf("\nOpen %s/ in a browser. Ctrl+C ends the server.\n\n", http_daemon_url(server));
    fflush(stdout);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* All members but growth.bound_bytes start at 0. */
struct tidying {
    struct memory_growth growth;
    uint64_t known_bytes; /* bytes received and sent when the server was last idle */
};

/*
 * Returns all free memory to the system when the server has become idle, and the free blocks of the heap when they have
 * grown beyond the bound.
 */
static void tidy_memory(struct tidying *tidying, attn_budget *budget, const struct metrics *metrics)
{
    const uint64_t bytes = metrics->received_bytes + metrics->sent_bytes;
    const size_t in_use = attn_budget_bytes(budget);
    const bool is_idle = in_use == 0 && bytes != tidying->known_bytes;
    if (is_idle) {
        tidying->known_bytes = bytes;
        attn_budget_trim(budget);
    }
    if (memory_has_grown(&tidying->growth, in_use + attn_budget_spare_bytes(budget)) || is_idle) {
        memory_return_free_blocks();
        memory_growth_is_dealt_with(&tidying->growth, attn_budget_bytes(budget) + attn_budget_spare_bytes(budget));
    }
}

/*
 * Sleeps until a signal arrives. Every 250 ms or sooner, reports to the supervisor that the server is alive, and frees
 * memory.
 */
static signal_wish wait_for_wish(const struct serving *serving)
{
    enum { TIDY_EVERY_MS = 250 };
    signal_wish wish;
    struct tidying tidying = {.growth.bound_bytes = serving->config->memory.heap_bytes / 2};
    const int alive_every_ms = supervisor_alive_every_ms();
    const int every_ms = alive_every_ms > 0 && alive_every_ms < TIDY_EVERY_MS ? alive_every_ms : TIDY_EVERY_MS;
    while ((wish = signals_wait(every_ms)) == SIGNAL_NONE) {
        supervisor_alive();
        tidy_memory(&tidying, serving->setup.budget, serving->setup.metrics);
    }
    return wish;
}

/* How long the server waits for a slow reader of the log: at its end, and before the log continues in another file. */
enum { LOG_PATIENCE_MS = 2000 };

/*
 * A file that cannot be read again leaves the old state in place, because a mistake in a file must not end the service.
 */
static void reload(const struct serving *serving)
{
    char message[320];
    const struct log *log = &serving->log;
    const char *log_file = serving->config->log_file;
    supervisor_reloading();
    log_writer_flush(log->writer, LOG_PATIENCE_MS);
    const bool has_log = log_file == NULL || log_open_again(log->fd, log_file);
    if (!has_log)
        log_say(log, LOG_ERROR, "%s: %s; the log goes on in the old file", log_file, strerror(errno));
    const bool has_keys = serving->setup.keys == NULL || keys_reload(serving->setup.keys, message, sizeof message);
    if (!has_keys)
        log_say(log, LOG_ERROR, "%s; the old keys stay in use", message);
    const bool has_certificate = http_daemon_reload(serving->server, message, sizeof message);
    if (!has_certificate)
        log_say(log, LOG_ERROR, "%s; the old certificate stays in use", message);
    if (has_log && has_keys && has_certificate)
        log_say(log, LOG_INFO, "reloaded");
    else
        log_say(log, LOG_WARN, "reloaded in part: what could not be read stays as it was");
    supervisor_ready();
}

/* Waits before the drain. A second signal to end cuts the wait short. */
static void await_delay(uint64_t delay_s)
{
    for (; delay_s > 0; delay_s--)
        if (signals_wait(1000) == SIGNAL_STOP)
            return;
}

static void drain(const struct serving *serving)
{
    const struct config *config = serving->config;
    log_say(&serving->log, LOG_INFO, "draining");
    supervisor_stopping();
    http_daemon_begin_drain(serving->server);
    await_delay(serving->was_ready ? config->drain_delay_s : 0);
    http_daemon_stop_listening(serving->server);
    if (!http_daemon_await_idle(serving->server, (unsigned)config->drain_timeout_s))
        log_say(&serving->log, LOG_WARN, "requests still run after %llu s and are ended",
                (unsigned long long)config->drain_timeout_s);
    http_daemon_stop(serving->server);
    log_say(&serving->log, LOG_INFO, "stopped");
}

/* ---- preparing --------------------------------------------------------------------------------------------------- */

/* Starts the log's writer. Without memory for it, each thread writes its own lines. */
static void start_log_writer(struct log *log)
{
    log->writer = log_writer_start(log->fd);
    crash_report_to(log);
}

/* Opens the log. Standard error stays unchanged, because the supervisor reads there why the server does not start. */
static bool open_log(struct log *log, const char *path, char *message, size_t message_size)
{
    const int fd = path != NULL ? log_open(path) : log->fd;
    if (fd < 0) {
        snprintf(message, message_size, "log-file: %s: %s", path, strerror(errno));
        return false;
    }
    log->fd = fd;
    return true;
}

static bool choose_kernel(struct serving *serving, char *message, size_t message_size)
{
    const char *name = serving->config->kernel;
    serving->kernel = strcmp(name, "auto") == 0 ? attn_kernel_best() : attn_kernel_by_name(name);
    if (serving->kernel != NULL)
        return true;
    const char *why = attn_kernel_is_left_out(name) ? "this program was built without the kernel (make KERNELS=all)"
                                                    : "this processor cannot run";
    int length = snprintf(message, message_size, "kernel: %s \"%.64s\"; expected auto", why, name);
    for (size_t i = 0; attn_kernel_at(i) != NULL && length > 0 && (size_t)length < message_size; i++)
        length +=
            snprintf(message + length, message_size - (size_t)length, " or %s", attn_kernel_name(attn_kernel_at(i)));
    return false;
}

/* Checking a file takes one or two microseconds. */
enum { LAYERS_LOOK_MS = 1000 };

static bool open_layers(struct serving *serving, char *message, size_t message_size)
{
    const struct config *config = serving->config;
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
    serving->setup.layers = layer_keeper_open(&settings, &serving->log, message, message_size);
    return serving->setup.layers != NULL;
}

static bool open_models(struct serving *serving, char *message, size_t message_size)
{
    const struct config *config = serving->config;
    const struct models_settings settings = {.named = &config->models,
                                             .parent = config->models_directory,
                                             .has_only_demo = config->no_models == SWITCH_ON,
                                             .registry = layer_keeper_registry(serving->setup.layers),
                                             .budget = serving->setup.models_budget,
                                             .look_ms = LAYERS_LOOK_MS};
    serving->setup.models = models_create(&settings, &serving->log, message, message_size);
    return serving->setup.models != NULL;
}

static bool create_budgets(struct serving *serving, char *message, size_t message_size)
{
    const struct memory_division *memory = &serving->config->memory;
    serving->setup.budget = attn_budget_create(memory->requests_bytes);
    serving->setup.models_budget = attn_budget_create(memory->models_bytes);
    if (serving->setup.budget != NULL && serving->setup.models_budget != NULL)
        return true;
    snprintf(message, message_size, "the system has no memory");
    return false;
}

static bool open_keys(struct serving *serving, char *message, size_t message_size)
{
    const char *path = serving->config->keys;
    if (path != NULL)
        serving->setup.keys = keys_create(path, message, message_size);
    return path == NULL || serving->setup.keys != NULL;
}

static bool create_workers(struct serving *serving, char *message, size_t message_size)
{
    const struct config *config = serving->config;
    serving->setup.caches = cache_store_create(config->cache_bytes, config->cache_max, config->cache_idle_s);
    serving->setup.executor = executor_create(config->compute_threads, config->queue, serving->kernel);
    serving->setup.metrics = calloc(1, sizeof *serving->setup.metrics);
    if (serving->setup.executor != NULL && serving->setup.metrics != NULL && serving->setup.caches != NULL)
        return true;
    snprintf(message, message_size, "the system has no memory, or no %llu threads",
             (unsigned long long)config->compute_threads);
    return false;
}

/*
 * The descriptors that are not for connections. Some 12 are always open, and reading a file takes one for a moment. An
 * I/O thread has two of its own and reads files, a compute thread writes the file of a layer, and a model keeps its
 * folder open.
 */
static uint64_t other_descriptors(const struct serving *serving)
{
    enum { PROCESS = 24, IO_THREAD = 3 };
    const struct config *config = serving->config;
    size_t models, bytes;
    registry_totals(layer_keeper_registry(serving->setup.layers), KIND_MODEL, &models, &bytes);
    return PROCESS + IO_THREAD * config->io_threads + config->compute_threads + models;
}

/*
 * Raises the limit of descriptors as far as it may. Each connection takes one, and the usual soft limit of 1024 is less
 * than --connections allows. Where the limit stays too low, there are fewer connections, because a connection without a
 * descriptor would wait until another one ends. The spare descriptors are for uploads that are written to the disk
 * while they arrive, and for models that are added.
 */
static bool allow_descriptors(struct serving *serving, char *message, size_t message_size)
{
    enum { SPARE = 128 };
    const uint64_t asked = serving->config->memory.connections, others = other_descriptors(serving),
                   least = others + memory_places(1), wanted = others + memory_places(asked) + SPARE;
    struct rlimit limit;
    serving->setup.connections = (unsigned)asked;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return true;
    const struct rlimit raised = {wanted < limit.rlim_max ? wanted : limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        limit = raised;
    if (limit.rlim_cur < least) {
        snprintf(message, message_size,
                 "%llu open files are too few: the server needs at least %llu with %llu threads; raise the limit "
                 "(ulimit -n, LimitNOFILE=)",
                 (unsigned long long)limit.rlim_cur, (unsigned long long)least,
                 (unsigned long long)(serving->config->io_threads + serving->config->compute_threads));
        return false;
    }
    serving->setup.connections = (unsigned)memory_connections(asked, limit.rlim_cur - others);
    if (serving->setup.connections < asked)
        log_say(&serving->log, LOG_WARN,
                "%llu open files are allowed (ulimit -n): room for %llu connections, not for %llu",
                (unsigned long long)limit.rlim_cur, (unsigned long long)serving->setup.connections,
                (unsigned long long)asked);
    return true;
}

/* Prepares everything that serving needs. signals_take and memory_keep_small_blocks come before the first thread. */
static bool prepare(struct serving *serving, char *message, size_t message_size)
{
    const struct config *config = serving->config;
    if (!choose_kernel(serving, message, message_size) ||
        !font_set_open(&serving->fonts, config->fonts, message, message_size))
        return false;
    if (!supervisor_socket(&serving->setup.passed_socket, message, message_size))
        return false;
    if (!signals_take()) {
        snprintf(message, message_size, "signals: %s", strerror(errno));
        return false;
    }
    memory_keep_small_blocks();
    attn_blas_use_one_thread();
    envelope_prepare();
    if (!open_log(&serving->log, config->log_file, message, message_size) || !open_keys(serving, message, message_size))
        return false;
    start_log_writer(&serving->log);
    return create_budgets(serving, message, message_size) && open_layers(serving, message, message_size) &&
           open_models(serving, message, message_size) && allow_descriptors(serving, message, message_size) &&
           create_workers(serving, message, message_size);
}

static void give_back(struct serving *serving)
{
    executor_destroy(serving->setup.executor);
    models_destroy(serving->setup.models);
    layer_keeper_close(serving->setup.layers);
    cache_store_destroy(serving->setup.caches);
    attn_budget_destroy(serving->setup.budget);
    attn_budget_destroy(serving->setup.models_budget);
    keys_destroy(serving->setup.keys);
    free(serving->setup.metrics);
    font_set_close(&serving->fonts);
    crash_report_to(NULL);
    (void)log_writer_stop(serving->log.writer, LOG_PATIENCE_MS);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/*
 * Runs the self-test and reads the models. The server listens already; until both are done, probes say that it is
 * starting.
 */
static bool test_itself(struct serving *serving, char *message, size_t message_size)
{
    models_load(serving->setup.models);
    if (signals_ask_to_stop()) /* which ends the reading */
        return true;
    if (!selftest_run(serving->setup.executor, serving->config->max_memory_bytes, message, message_size))
        return false;
    http_daemon_set_ready(serving->server);
    serving->was_ready = true;
    supervisor_ready();
    return true;
}

static bool start(struct serving *serving, char *message, size_t message_size)
{
    complete_setup(serving);
    serving->server = http_daemon_start(&serving->setup, message, message_size);
    if (serving->server == NULL)
        return false;
    say_start(serving);
    say_fonts(&serving->log, &serving->fonts);
    if (test_itself(serving, message, message_size)) {
        log_writer_flush(serving->log.writer, LOG_PATIENCE_MS);
        say_page(serving->server);
        return true;
    }
    http_daemon_stop(serving->server);
    return false;
}

/* Says why the server does not start: on standard error, and in the log when the log is a file. */
static void say_why_not(const struct log *log, const char *message)
{
    fprintf(stderr, "attnd: %s\n", message);
    if (log->fd != STDERR_FILENO)
        log_say(log, LOG_ERROR, "%s", message);
}

int serve(const struct config *config)
{
    char message[512];
    struct serving serving = {
        .config = config,
        .log = {.fd = STDERR_FILENO, .format = config->log_format, .level = config->log_level},
    };
    const bool is_started = prepare(&serving, message, sizeof message) && start(&serving, message, sizeof message);
    if (is_started) {
        while (wait_for_wish(&serving) == SIGNAL_RELOAD)
            reload(&serving);
        drain(&serving);
    } else {
        say_why_not(&serving.log, message);
    }
    give_back(&serving);
    return is_started ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

/* Many messages begin with the name of their part, which is not said twice. */
static bool say_outcome(const char *part, const char *failure)
{
    const size_t length = strlen(part);
    const bool has_name = failure != NULL && strncmp(failure, part, length) == 0 && failure[length] == ':';
    printf("%-11s %s\n", part,
           failure == NULL ? "ok"
           : has_name      ? failure + length + strspn(failure + length, ": ")
                           : failure);
    return failure == NULL;
}

static bool open_log_file(struct serving *serving, char *message, size_t size)
{
    return open_log(&serving->log, serving->config->log_file, message, size);
}

static bool open_fonts(struct serving *serving, char *message, size_t size)
{
    return font_set_open(&serving->fonts, serving->config->fonts, message, size);
}

static bool has_certificate(struct serving *serving, char *message, size_t size)
{
    complete_setup(serving);
    return http_daemon_has_certificate(&serving->setup, message, size);
}

static bool can_listen(struct serving *serving, char *message, size_t size)
{
    complete_setup(serving);
    /* Keys that cannot be read have a line of their own; the address is not asked to do without them. */
    serving->setup.is_open |= serving->config->keys != NULL;
    return http_daemon_can_listen(&serving->setup, message, size);
}

/* Says which things of the kind cannot be used. */
static bool check_things(const struct serving *serving, thing_kind kind, const char *part)
{
    struct registry_row row = {.name = ""};
    char failure[LAYER_NAME_MAX + REGISTRY_REASON_MAX + 8];
    bool is_right = true;
    while (registry_page(layer_keeper_registry(serving->setup.layers), kind, row.name, 1, &row) > 0) {
        version_release(row.version);
        if (row.reason[0] == '\0')
            continue;
        snprintf(failure, sizeof failure, "\"%s\": %s", row.name, row.reason);
        is_right = say_outcome(part, failure);
    }
    return is_right && say_outcome(part, NULL);
}

int check(const struct config *config)
{
    static const struct {
        const char *name;
        bool (*try)(struct serving *serving, char *message, size_t size);
        bool is_needed;     /* the parts behind it need it */
        bool is_said_later; /* each of the things is looked at below */
    } parts[] = {{"kernel", choose_kernel, true, false},
                 {"memory", create_budgets, true, false},
                 {"threads", create_workers, true, false},
                 {"fonts", open_fonts, false, false},
                 {"log", open_log_file, false, false},
                 {"keys", open_keys, false, false},
                 {"certificate", has_certificate, false, false},
                 {"address", can_listen, false, false},
                 {"layers", open_layers, true, true},
                 {"models", open_models, true, true},
                 {"files", allow_descriptors, false, false}};
    char message[512];
    struct serving serving = {.config = config, .log = {.fd = STDERR_FILENO, .level = LOG_OFF}};
    bool is_right = true, goes_on = true;
    for (uint64_t i = 0; i < config->unknown_variables; i++)
        printf("%-11s %s\n", "settings", setting_say_unknown(config->unknown_variable[i], message));
    if (config->open == SWITCH_ON && config->keys == NULL)
        printf("%-11s %s\n", "open",
               "without keys: anybody who reaches the address may compute, and read, replace and delete what is kept");
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && goes_on; i++) {
        const bool is_done = parts[i].try(&serving, message, sizeof message);
        if (!is_done || !parts[i].is_said_later)
            is_right &= say_outcome(parts[i].name, is_done ? NULL : message);
        goes_on = is_done || !parts[i].is_needed;
    }
    if (goes_on) {
        models_load(serving.setup.models);
        is_right &= check_things(&serving, KIND_LAYER, "layers");
        is_right &= check_things(&serving, KIND_MODEL, "models");
    }
    give_back(&serving);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

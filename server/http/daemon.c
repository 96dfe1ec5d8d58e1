/* daemon.c: starts, drains and stops the HTTP server. */
#include "http/daemon.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/connections/server.h"
#include "http/route.h"
#include "http/steps.h"

/*
 * The memory of the library for one connection. It holds the largest header that is admitted, some fifty bytes per
 * field and a window of the body. The library clears one and a half times as much per request: with 128 KiB, that took
 * 2.2 µs and displaced the second-level cache.
 */
enum { CONNECTION_MEMORY = 64 << 10 };

/* ---- start ------------------------------------------------------------------------------------------------------- */

/* The library refuses what the standard refuses, as far as it can. */
#if MHD_VERSION >= 0x01000000
#define STRICT_OPTION MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICT_OPTION MHD_OPTION_STRICT_FOR_CLIENT
#endif

/*
 * TLS 1.2 and 1.3 (RFC 8996). No SHA-1, and therefore none of the CBC ciphers that need it. No RSA key exchange, with
 * which a stolen key would open recorded connections (RFC 9325, section 4.1).
 */
static const char tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-SHA1:-RSA";

/*
 * The acceptor limits the number of connections (has_room). The library must never reach its own limit: it divides the
 * limit by its threads, connections are spread unevenly over the threads, and version 0.9.75 locks up in a thread that
 * is full. So each thread has room for all connections, and for those that were just handed over.
 */
enum { LIBRARY_SPARE = 64 };

static struct MHD_Daemon *start_library(struct http_server *server)
{
    const struct http_setup *setup = &server->setup;
    const unsigned connections = ((unsigned)memory_places(setup->connections) + LIBRARY_SPARE) * setup->io_threads;
    struct MHD_OptionItem more[5] = {{MHD_OPTION_END, 0, NULL}};
    size_t count = 0;
    if (setup->io_threads > 1)
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, setup->io_threads, NULL};
    if (setup->connections_per_address > 0)
        more[count++] =
            (struct MHD_OptionItem){MHD_OPTION_PER_IP_CONNECTION_LIMIT, setup->connections_per_address, NULL};
    if (server->tls != NULL)
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_callback()};
    if (server->tls != NULL)
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)tls_priorities};
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
                           MHD_USE_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                           (server->tls != NULL ? (unsigned)MHD_USE_TLS : 0);
    return MHD_start_daemon(flags, 0, NULL, NULL, fsm_handle, server, MHD_OPTION_EXTERNAL_LOGGER, library_says, server,
                            MHD_OPTION_URI_LOG_CALLBACK, fsm_begin, server, MHD_OPTION_NOTIFY_COMPLETED, fsm_end,
                            server, MHD_OPTION_NOTIFY_CONNECTION, connection_notify, server,
                            MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
                            setup->idle_timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                            STRICT_OPTION, 1, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

static bool start_threads(struct http_server *server)
{
    if (!watch_start(server))
        return false;
    server->mhd = start_library(server);
    if (server->mhd != NULL && acceptor_start(server))
        return true;
    if (server->mhd != NULL)
        MHD_stop_daemon(server->mhd);
    watch_stop(server);
    return false;
}

static void server_free(struct http_server *server)
{
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    pthread_cond_destroy(&server->changed);
    pthread_cond_destroy(&server->watch_wakes);
    pthread_mutex_destroy(&server->lock);
    tls_destroy(server->tls);
    free(server);
}

static struct http_server *server_create(const struct http_setup *setup)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return NULL;
    server->setup = *setup;
    server->listen_fd = -1;
    server->refused_ms = server->memory_refused_ms = -(double)INFINITY;
    server->routes = routes_all(&server->route_count);
    snprintf(server->http_library, sizeof server->http_library, "libmicrohttpd %s", MHD_get_version());
    server->setup.facts.http_library = server->http_library;
    if (getrandom(&server->id_seed, sizeof server->id_seed, GRND_NONBLOCK) != (ssize_t)sizeof server->id_seed)
        server->id_seed = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
    clock_init_condition(&server->changed);
    clock_init_condition(&server->watch_wakes);
    pthread_mutex_init(&server->lock, NULL);
    return server;
}

/* Reads the certificate and takes the address. NULL: message says what failed. */
static struct http_server *server_open(const struct http_setup *setup, char *message, size_t message_size)
{
    struct http_server *server = server_create(setup);
    if (server == NULL) {
        snprintf(message, message_size, "no memory to start");
        return NULL;
    }
    const bool wants_tls = setup->tls_certificate != NULL;
    if (wants_tls)
        server->tls = tls_create(setup->tls_certificate, setup->tls_key, message, message_size);
    if ((!wants_tls || server->tls != NULL) && acceptor_listen(server, message, message_size))
        return server;
    server_free(server);
    return NULL;
}

struct http_server *http_daemon_start(const struct http_setup *setup, char *message, size_t message_size)
{
    struct http_server *server = server_open(setup, message, message_size);
    if (server == NULL)
        return NULL;
    server->checks_host = setup->keys == NULL && (server->is_loopback || *server->setup.host_names != '\0');
    server->is_listening = start_threads(server);
    if (server->is_listening)
        return server;
    snprintf(message, message_size, "cannot start the threads of the server: %s", strerror(errno));
    server_free(server);
    return NULL;
}

bool http_daemon_has_certificate(const struct http_setup *setup, char *message, size_t message_size)
{
    if (setup->tls_certificate == NULL)
        return true;
    struct tls *tls = tls_create(setup->tls_certificate, setup->tls_key, message, message_size);
    tls_destroy(tls);
    return tls != NULL;
}

bool http_daemon_can_listen(const struct http_setup *setup, char *message, size_t message_size)
{
    struct http_setup plain = *setup;
    plain.tls_certificate = NULL;
    struct http_server *server = server_open(&plain, message, message_size);
    if (server != NULL)
        server_free(server);
    return server != NULL;
}

bool http_daemon_is_open_to_all(const struct http_server *server)
{
    return !server->is_loopback && server->setup.keys == NULL;
}

const char *http_daemon_url(const struct http_server *server)
{
    return server->url;
}

void http_daemon_set_ready(struct http_server *server)
{
    atomic_store(&server->is_ready, true);
}

bool http_daemon_reload(struct http_server *server, char *message, size_t message_size)
{
    return server->tls == NULL || tls_reload(server->tls, message, message_size);
}

/* ---- drain and stop ---------------------------------------------------------------------------------------------- */

void http_daemon_begin_drain(struct http_server *server)
{
    atomic_store(&server->is_draining, true);
}

void http_daemon_stop_listening(struct http_server *server)
{
    http_daemon_begin_drain(server);
    if (server->is_listening)
        acceptor_stop(server);
    server->is_listening = false;
}

/*
 * A client whose connection was accepted may be about to send its request. The server waits so long for it, but not for
 * a client that sends nothing.
 */
enum { FIRST_WORDS_MS = 500 };

bool http_daemon_await_idle(struct http_server *server, unsigned timeout_s)
{
    const unsigned long timeout_ms = 1000UL * timeout_s;
    const struct timespec deadline = clock_after_ms(timeout_ms),
                          first_words = clock_after_ms(timeout_ms < FIRST_WORDS_MS ? timeout_ms : FIRST_WORDS_MS);
    pthread_mutex_lock(&server->lock);
    int waited = 0;
    while (!server->is_listening && server->newcomers > 0 && waited == 0)
        waited = pthread_cond_timedwait(&server->changed, &server->lock, &first_words);
    waited = 0;
    while (server->requests > 0 && waited == 0)
        waited = pthread_cond_timedwait(&server->changed, &server->lock, &deadline);
    const bool is_idle = server->requests == 0;
    pthread_mutex_unlock(&server->lock);
    return is_idle;
}

/* The library must not be stopped while a connection is suspended. Every job resumes its connection. */
static void await_jobs(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->is_closed = true;
    while (server->jobs > 0)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

enum { LAST_WORDS_S = 1 };

void http_daemon_stop(struct http_server *server)
{
    if (server == NULL)
        return;
    http_daemon_stop_listening(server);
    atomic_store(&server->is_cancelled, true);
    await_jobs(server);
    /* The last answers need a moment. The server does not wait longer for a client that does not read its answer. */
    (void)http_daemon_await_idle(server, LAST_WORDS_S);
    MHD_stop_daemon(server->mhd);
    watch_stop(server);
    server_free(server);
}

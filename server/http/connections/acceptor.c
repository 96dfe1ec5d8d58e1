/*
 * acceptor.c: the listening socket, and the thread that accepts new connections and hands them to the library.
 *
 * The library could listen by itself. But its way to stop listening while it serves (MHD_quiesce_daemon) removes the
 * socket from the sets of its threads at the same time as the threads do, and the loser of that race aborts the
 * process. It also drops connections that the system has accepted already; these should still be served.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"
#include "http/connections/server.h"

/* ---- the listening socket ---------------------------------------------------------------------------------------- */

static int listen_at(const struct addrinfo *address)
{
    const int yes = 1, no = 0;
    const int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (address->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    const int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        return ntohl(ipv4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    struct sockaddr_in6 ipv6;
    memcpy(&ipv6, address, sizeof ipv6);
    return IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
}

static bool are_loopback(const struct addrinfo *addresses)
{
    bool are_loopback = true;
    for (const struct addrinfo *address = addresses; address != NULL; address = address->ai_next)
        are_loopback &= is_loopback(address->ai_addr);
    return are_loopback;
}

static void write_url(struct http_server *server)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getsockname(server->listen_fd, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    const bool is_ipv6 = strchr(host, ':') != NULL;
    snprintf(server->url, sizeof server->url, "%s://%s%.100s%s:%.8s", server->tls != NULL ? "https" : "http",
             is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

/* Listening beyond the loopback without keys is most likely an oversight. */
static bool may_listen(const struct http_server *server, char *message, size_t message_size)
{
    const struct http_setup *setup = &server->setup;
    const bool is_passed = setup->passed_socket != 0;
    if (server->is_loopback || setup->keys != NULL || setup->is_open)
        return true;
    snprintf(
        message, message_size,
        "%s%s%s can be reached from other machines and there are no keys: give --keys FILE, or --open (ATTND_OPEN=1) "
        "if something else guards the way here",
        is_passed ? "the socket that was passed on" : setup->host, is_passed ? "" : ":", is_passed ? "" : setup->port);
    return false;
}

static bool take_passed_socket(struct http_server *server, char *message, size_t message_size)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof address;
    if (getsockname(server->setup.passed_socket, (struct sockaddr *)&address, &length) != 0) {
        snprintf(message, message_size, "the socket that was passed on: %s", strerror(errno));
        return false;
    }
    server->is_loopback = is_loopback((const struct sockaddr *)&address);
    if (!may_listen(server, message, message_size))
        return false;
    server->listen_fd = server->setup.passed_socket;
    write_url(server);
    return true;
}

static bool listen_at_one(struct http_server *server, const struct addrinfo *addresses, char *message,
                          size_t message_size)
{
    const struct http_setup *setup = &server->setup;
    server->is_loopback = are_loopback(addresses);
    if (!may_listen(server, message, message_size))
        return false;
    for (const struct addrinfo *at = addresses; at != NULL && server->listen_fd < 0; at = at->ai_next)
        server->listen_fd = listen_at(at);
    if (server->listen_fd < 0)
        snprintf(message, message_size, "cannot listen on %s:%s: %s%s", setup->host, setup->port, strerror(errno),
                 errno == EADDRINUSE ? "; --listen or ATTND_LISTEN takes another address:port" : "");
    else
        write_url(server);
    return server->listen_fd >= 0;
}

bool acceptor_listen(struct http_server *server, char *message, size_t message_size)
{
    const char *host = server->setup.host;
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    if (server->setup.passed_socket != 0)
        return take_passed_socket(server, message, message_size);
    const int failure = getaddrinfo(host[0] != '\0' ? host : NULL, server->setup.port, &hints, &addresses);
    if (failure != 0) {
        snprintf(message, message_size, "cannot listen on \"%s\": %s", host, gai_strerror(failure));
        return false;
    }
    const bool is_listening = listen_at_one(server, addresses, message, message_size);
    freeaddrinfo(addresses);
    return is_listening;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* At most IN_A_ROW connections are accepted in a row. Without room or a descriptor, the others wait for PAUSE_MS. */
enum { IN_A_ROW = 64, PAUSE_MS = 20 };

typedef enum { TAKEN, NOBODY_THERE, TRY_LATER, NO_DESCRIPTOR } acceptance;

/* accept(2) also returns errors of one new connection and of its network. The next connection may succeed. */
static acceptance acceptance_of_failure(void)
{
    static const int lasting[] = {ENFILE, ENOBUFS, ENOMEM, EINVAL, EBADF, ENOTSOCK, EPERM};
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return NOBODY_THERE;
    if (errno == EMFILE)
        return NO_DESCRIPTOR;
    for (size_t i = 0; i < ARRAY_LENGTH(lasting); i++)
        if (errno == lasting[i])
            return TRY_LATER;
    return TAKEN;
}

static void hand_over(struct http_server *server, int fd, const struct sockaddr_storage *address, socklen_t length)
{
    connection_expect(server);
    atomic_fetch_add_explicit(&server->places_taken, 1, memory_order_relaxed);
    /* The library closes the descriptor if it cannot take it. */
    if (MHD_add_connection(server->mhd, fd, (const struct sockaddr *)address, length) == MHD_YES)
        return;
    atomic_fetch_sub_explicit(&server->places_taken, 1, memory_order_relaxed);
    connection_expect_no_more(server);
}

/*
 * Connections beyond the limit stay in the kernel's backlog. Accepted connections get room by eviction (lifecycle.c).
 */
static bool has_room(const struct http_server *server)
{
    return atomic_load_explicit(&server->places_taken, memory_order_relaxed) < memory_places(server->setup.connections);
}

static acceptance take_one(struct http_server *server)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (!has_room(server))
        return TRY_LATER;
    const int fd = accept4(server->listen_fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return acceptance_of_failure();
    hand_over(server, fd, &address, length);
    return TAKEN;
}

static void say_why(const struct http_server *server, bool *is_said)
{
    const int reason = errno;
    if (!*is_said && has_room(server))
        log_say(server->setup.log, LOG_WARN, "new connections have to wait: %s", strerror(reason));
    *is_said = true;
}

static void *accept_connections(void *argument)
{
    struct http_server *server = argument;
    struct pollfd polled[] = {{.fd = server->acceptor_wake, .events = POLLIN},
                              {.fd = server->listen_fd, .events = POLLIN}};
    bool pauses = false, is_said = false;
    for (;;) {
        (void)poll(polled, pauses ? 1 : 2, pauses ? PAUSE_MS : -1);
        if (polled[0].revents != 0)
            return NULL;
        acceptance last = TAKEN;
        for (int i = 0; i < IN_A_ROW && last == TAKEN; i++)
            last = take_one(server);
        pauses = last == TRY_LATER || last == NO_DESCRIPTOR;
        if (pauses)
            say_why(server, &is_said);
        else
            is_said = false;
        if (last == NO_DESCRIPTOR) /* other files took what was left for connections */
            connection_evict_one(server);
    }
}

bool acceptor_start(struct http_server *server)
{
    server->acceptor_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->acceptor_wake < 0)
        return false;
    const int failure = pthread_create(&server->acceptor, NULL, accept_connections, server);
    if (failure == 0)
        return true;
    close(server->acceptor_wake);
    errno = failure;
    return false;
}

/*
 * Makes the system drop every SYN from now on, so that no new connection follows the last one in the backlog. Returns
 * false on a system without filters.
 */
static bool let_nobody_in(int fd)
{
    enum { FLAGS_AT = 13, SYN = 2 };
    struct sock_filter drop_syn[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),
                                     BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SYN, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
                                     BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)};
    const struct sock_fprog program = {.len = ARRAY_LENGTH(drop_syn), .filter = drop_syn};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

/*
 * A handshake that has begun ends within HANDSHAKE_MS: a busy system may run its last step late. On a system without
 * filters new clients could follow for ever, and LOOKS bounds them.
 */
enum { HANDSHAKE_MS = 50, LOOKS = 16 };

static void take_the_last(struct http_server *server)
{
    struct pollfd listening = {.fd = server->listen_fd, .events = POLLIN};
    int looks = 0;
    do {
        while (take_one(server) == TAKEN)
            continue;
    } while (++looks < LOOKS && poll(&listening, 1, HANDSHAKE_MS) > 0);
}

/*
 * A client whose SYN is dropped sends it again and is refused then. A client in the kernel's backlog would be reset by
 * the close instead. On a system without filters, the backlog is at least as short as possible. The shutdown ends the
 * socket even when another process holds a copy of it.
 */
static void end_listening(struct http_server *server)
{
    if (!let_nobody_in(server->listen_fd))
        listen(server->listen_fd, 0);
    take_the_last(server);
    shutdown(server->listen_fd, SHUT_RDWR);
}

/* The backlog of a socket that was passed stays for the next process. */
void acceptor_stop(struct http_server *server)
{
    const uint64_t one = 1;
    if (write(server->acceptor_wake, &one, sizeof one) != (ssize_t)sizeof one)
        return; /* cannot happen, because no other thread writes to it */
    pthread_join(server->acceptor, NULL);
    close(server->acceptor_wake);
    if (server->setup.passed_socket == 0)
        end_listening(server);
    close(server->listen_fd);
    server->listen_fd = -1;
}

/* client.c: sends one GET, with or without TLS, and reads the status of the answer. */
#include "health/client.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "health/tls.h"

/* The time limit of connecting, of sending and of receiving, each. */
enum { PATIENCE_S = 2 };

/* The address at which this machine can connect to a server that listens on host. */
static const char *reachable(const char *host)
{
    if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

static int connect_to(const struct addrinfo *address)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    const int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static int open_connection(const char *host, const char *port, char *message, size_t message_size)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    const int failure = getaddrinfo(host, port, &hints, &addresses);
    if (failure != 0) {
        snprintf(message, message_size, "\"%s\" is not an address: %s", host, gai_strerror(failure));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *address = addresses; address != NULL && fd < 0; address = address->ai_next)
        fd = connect_to(address);
    if (fd < 0)
        snprintf(message, message_size, "no server answers at %s:%s: %s", host, port, strerror(errno));
    freeaddrinfo(addresses);
    return fd;
}

/* Sends all bytes. tls NULL: plain HTTP. */
static bool send_all(int fd, struct health_tls *tls, const char *bytes, size_t size)
{
    return tls != NULL ? health_tls_send(tls, bytes, size) : send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool receive_all(int fd, struct health_tls *tls, char *bytes, size_t size)
{
    return tls != NULL ? health_tls_receive(tls, bytes, size) : recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

/* Sends the request and returns the status of the answer. 0: no answer. */
static int exchange(int fd, struct health_tls *tls, const char *path)
{
    static const char wanted[] = "HTTP/1.1 ";
    char request[256], reply[sizeof wanted - 1 + 3 + 1] = {0};
    const int length = snprintf(request, sizeof request,
                                "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: attnd-health\r\n"
                                "Connection: close\r\n\r\n",
                                path);
    int status = 0;
    if (length < 0 || (size_t)length >= sizeof request || !send_all(fd, tls, request, (size_t)length) ||
        !receive_all(fd, tls, reply, sizeof reply - 1) || memcmp(reply, wanted, sizeof wanted - 1) != 0 ||
        sscanf(reply + sizeof wanted - 1, "%3d", &status) != 1)
        return 0;
    return status;
}

/* Returns false when there is no answer; message says why. */
static bool ask_on(int fd, const struct health_question *question, int *status, char *message, size_t message_size)
{
    struct health_tls *tls = NULL;
    if (question->tls_certificate != NULL) {
        const char *wanted = question->takes_any_certificate ? NULL : question->tls_certificate;
        tls = health_tls_open(fd, wanted, PATIENCE_S * 1000, message, message_size);
        if (tls == NULL)
            return false;
    }
    *status = exchange(fd, tls, question->path);
    health_tls_close(tls);
    if (*status == 0)
        snprintf(message, message_size, "no answer to GET %s from %s:%s", question->path, reachable(question->host),
                 question->port);
    return *status != 0;
}

bool health_ask(const struct health_question *question, char *message, size_t message_size)
{
    enum { OK = 200 };
    const char *host = reachable(question->host);
    int status = 0;
    const int fd = open_connection(host, question->port, message, message_size);
    if (fd < 0)
        return false;
    const bool is_answered = ask_on(fd, question, &status, message, message_size);
    close(fd);
    if (is_answered)
        snprintf(message, message_size, "GET %s at %s:%s answers %d", question->path, host, question->port, status);
    return status == OK;
}

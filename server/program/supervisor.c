/* supervisor.c: takes the socket of the service manager, and reports the state of the process to it. */
#include "program/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

/* A name that begins with @ is abstract; the kernel expects a NUL in place of the @. */
static void say(const char *message)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
        return;
    const size_t length = strlen(path);
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* A manager that does not read must not stop the server. */
    (void)!sendto(fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
}

void supervisor_ready(void)
{
    say("READY=1\nSTATUS=serving\n");
}

/* The time tells the manager which reload request this message answers. */
void supervisor_reloading(void)
{
    char message[80];
    snprintf(message, sizeof message, "RELOADING=1\nMONOTONIC_USEC=%lld\n", (long long)(1e3 * clock_now_ms()));
    say(message);
}

void supervisor_stopping(void)
{
    say("STOPPING=1\nSTATUS=draining\n");
}

void supervisor_alive(void)
{
    say("WATCHDOG=1\n");
}

/* Whether the variable names this process, because children inherit the variables of their parents. */
static bool is_own_pid(const char *variable)
{
    uint64_t pid = 0;
    return text_read_count(variable, &pid) && pid == (uint64_t)getpid();
}

static bool listens(int fd)
{
    int is_listening = 0, family = 0;
    socklen_t length = sizeof is_listening;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &length) == 0 && is_listening != 0 &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && (family == AF_INET || family == AF_INET6);
}

bool supervisor_socket(int *fd, char *message, size_t message_size)
{
    enum { FIRST = 3 }; /* SD_LISTEN_FDS_START */
    const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
    *fd = 0;
    if (count == NULL || pid == NULL || !is_own_pid(pid))
        return true;
    if (strcmp(count, "1") != 0 || !listens(FIRST)) {
        snprintf(message, message_size,
                 "LISTEN_FDS=%.20s: expected one TCP socket that listens (ListenStream=address:port)", count);
        return false;
    }
    const int flags = fcntl(FIRST, F_GETFL);
    if (flags < 0 || fcntl(FIRST, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(FIRST, F_SETFD, FD_CLOEXEC) != 0) {
        snprintf(message, message_size, "LISTEN_FDS: %s", strerror(errno));
        return false;
    }
    *fd = FIRST;
    return true;
}

int supervisor_alive_every_ms(void)
{
    const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t us = 0;
    if (interval == NULL || !text_read_count(interval, &us) || us == 0 || (pid != NULL && !is_own_pid(pid)))
        return -1;
    const uint64_t half_ms = us / 2000;
    return half_ms < 1 ? 1 : half_ms > INT_MAX ? INT_MAX : (int)half_ms;
}

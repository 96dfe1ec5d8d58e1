/*
 * written.c: how much was ever written to a socket. The system's own header has fields that the C library's lacks.
 */
#include "http/wire/written.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* What the peer has acknowledged, and what still waits for that. */
uint64_t written_bytes(int fd)
{
    struct tcp_info info = {.tcpi_bytes_acked = 0};
    socklen_t length = sizeof info;
    int waiting = 0;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || ioctl(fd, SIOCOUTQ, &waiting) != 0)
        return 0;
    const uint64_t acknowledged = info.tcpi_bytes_acked;
    return waiting > 0 ? acknowledged + (unsigned)waiting : acknowledged;
}

/*
 * peer.c: asks the system about the other end of a TCP connection. The kernel's own header has fields that the header
 * of the C library lacks.
 */
#include "http/wire/wire.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static bool read_info(int fd, struct tcp_info *info)
{
    socklen_t length = sizeof *info;
    *info = (struct tcp_info){.tcpi_state = 0};
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0;
}

struct peer peer_of(int fd)
{
    /* From <netinet/tcp.h>, which cannot be included because it has an older tcp_info. */
    enum { CLOSE = 7, CLOSE_WAIT = 8 };
    struct tcp_info info;
    if (!read_info(fd, &info))
        return (struct peer){.presence = PEER_PRESENT, .has_all = true};
    const enum peer_presence presence = info.tcpi_state == CLOSE_WAIT ? PEER_HALF_CLOSED
                                        : info.tcpi_state == CLOSE    ? PEER_GONE
                                                                      : PEER_PRESENT;
    const bool is_nothing_underway = info.tcpi_unacked == 0;
    return (struct peer){presence, info.tcpi_bytes_acked, is_nothing_underway && info.tcpi_notsent_bytes == 0,
                         is_nothing_underway && info.tcpi_notsent_bytes > 0};
}

/* Bytes that the peer has acknowledged, and bytes in the send queue. */
uint64_t peer_written_bytes(int fd)
{
    struct tcp_info info;
    int waiting = 0;
    if (!read_info(fd, &info) || ioctl(fd, SIOCOUTQ, &waiting) != 0)
        return 0;
    const uint64_t acknowledged = info.tcpi_bytes_acked;
    return waiting > 0 ? acknowledged + (unsigned)waiting : acknowledged;
}

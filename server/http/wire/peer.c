/*
 * peer.c: the other end of a connection: the address that a request comes from, and what the system says of it. The
 * kernel's own header has fields that the header of the C library lacks.
 */
#include "http/wire/wire.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* ---- the address ---- */

/* The end of the list of hops in all fields X-Forwarded-For. The first hops are lost where it becomes too long. */
struct hops {
    size_t length;
    char list[1024];
};

/* A list that begins without a comma has a hop that is cut off. */
static enum MHD_Result add_hops(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct hops *hops = cls;
    (void)kind;
    if (!text_equal_fold(text_span_of(name), "X-Forwarded-For"))
        return MHD_YES;
    const size_t length = strlen(value), most = sizeof hops->list - sizeof ",";
    if (length > most) {
        hops->length = (size_t)snprintf(hops->list, sizeof hops->list, "%s", value + length - most);
        return MHD_YES;
    }
    if (hops->length + length > most)
        hops->length = 0;
    hops->length += (size_t)snprintf(hops->list + hops->length, sizeof hops->list - hops->length, ",%s", value);
    return MHD_YES;
}

/*
 * Follows the hops from the last one. Each proxy adds the address that it was asked from at the end, so a hop is true
 * as long as all behind it are trusted.
 */
static void follow_hops(const char *trusted, const struct hops *hops, struct in6_addr *client)
{
    struct text_span rest = {hops->list, hops->length};
    struct in6_addr hop;
    while (network_list_has(trusted, client)) {
        const char *comma = memrchr(rest.at, ',', rest.length);
        if (comma == NULL)
            return;
        const struct text_span last = {comma + 1, rest.length - (size_t)(comma - rest.at) - 1};
        if (!network_read_address(text_trim(last), &hop))
            return;
        *client = hop;
        rest.length = (size_t)(comma - rest.at);
    }
}

bool client_address(struct MHD_Connection *mhd, const char *trusted, char text[CLIENT_TEXT])
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct in6_addr client;
    if (info == NULL || !network_address_of(info->client_addr, &client))
        return false;
    if (network_list_has(trusted, &client)) {
        struct hops hops = {0};
        MHD_get_connection_values(mhd, MHD_HEADER_KIND, add_hops, &hops);
        follow_hops(trusted, &hops, &client);
    }
    network_write_address(&client, text);
    return true;
}

/* ---- the connection ---- */

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

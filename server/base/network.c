/* network.c: addresses of machines, and lists of networks. */
#include "base/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { BITS = 128, IPV4_LEAD = 96 };

struct network {
    struct in6_addr address;
    uint64_t bits; /* how many leading bits an address of the network shares */
};

static void map_ipv4(const void *ipv4, struct in6_addr *address)
{
    static const struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    *address = mapped;
    memcpy(&address->s6_addr[IPV4_LEAD / 8], ipv4, sizeof(struct in_addr));
}

/* Removes the brackets and the port, if there are any. */
static struct text_span bare_of(struct text_span text)
{
    const char *first = memchr(text.at, ':', text.length), *last = memrchr(text.at, ':', text.length);
    const char *bracket = memchr(text.at, ']', text.length);
    if (text.length > 0 && text.at[0] == '[' && bracket != NULL)
        return (struct text_span){text.at + 1, (size_t)(bracket - text.at) - 1};
    return first != NULL && first == last ? (struct text_span){text.at, (size_t)(first - text.at)} : text;
}

/* Reads an address alone. */
static bool read_bare(struct text_span text, struct in6_addr *address)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr ipv4;
    if (text.length >= sizeof copy)
        return false;
    snprintf(copy, sizeof copy, "%.*s", (int)text.length, text.at);
    if (inet_pton(AF_INET, copy, &ipv4) != 1)
        return inet_pton(AF_INET6, copy, address) == 1;
    map_ipv4(&ipv4, address);
    return true;
}

bool network_read_address(struct text_span text, struct in6_addr *address)
{
    return read_bare(bare_of(text), address);
}

bool network_address_of(const struct sockaddr *socket, struct in6_addr *address)
{
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    if (socket->sa_family == AF_INET6) {
        memcpy(&ipv6, socket, sizeof ipv6);
        *address = ipv6.sin6_addr;
    } else if (socket->sa_family == AF_INET) {
        memcpy(&ipv4, socket, sizeof ipv4);
        map_ipv4(&ipv4.sin_addr, address);
    }
    return socket->sa_family == AF_INET6 || socket->sa_family == AF_INET;
}

const char *network_write_address(const struct in6_addr *address, char text[INET6_ADDRSTRLEN])
{
    if (!IN6_IS_ADDR_V4MAPPED(address))
        return inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN) != NULL ? text : "";
    char *to = text; /* inet_ntop prints it by sprintf, and each request's line of the log has it */
    for (size_t i = IPV4_LEAD / 8; i < sizeof address->s6_addr; i++) {
        to = text_write_count(to, address->s6_addr[i]);
        *to++ = i + 1 < sizeof address->s6_addr ? '.' : '\0';
    }
    return text;
}

static bool read_network(struct text_span text, struct network *network)
{
    const char *slash = memchr(text.at, '/', text.length);
    const struct text_span address = {text.at, slash != NULL ? (size_t)(slash - text.at) : text.length};
    char bits[TEXT_COUNT_MAX];
    network->bits = BITS;
    if (!read_bare(address, &network->address))
        return false;
    if (slash == NULL)
        return true;
    snprintf(bits, sizeof bits, "%.*s", (int)(text.length - address.length - 1), slash + 1);
    if (!text_read_count(bits, &network->bits) || network->bits > BITS)
        return false;
    network->bits += IN6_IS_ADDR_V4MAPPED(&network->address) ? IPV4_LEAD : 0;
    return network->bits <= BITS;
}

static bool has(const struct network *network, const struct in6_addr *address)
{
    const size_t bytes = network->bits / 8, rest = network->bits % 8;
    return memcmp(&network->address, address, bytes) == 0 &&
           (rest == 0 || (network->address.s6_addr[bytes] ^ address->s6_addr[bytes]) >> (8 - rest) == 0);
}

bool network_is_valid(struct text_span text)
{
    struct network network;
    return read_network(text, &network);
}

bool network_list_has(const char *list, const struct in6_addr *address)
{
    struct text_span rest = text_span_of(list), element;
    struct network network;
    while (text_next(&rest, ',', &element))
        if (read_network(element, &network) && has(&network, address))
            return true;
    return false;
}

/* IPv4 and IPv6 addresses. */
#pragma once

#include "agent.h"

static inline in_port_t *address_port(struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)address)->sin6_port
                                          : &((struct sockaddr_in *)address)->sin_port;
}

static inline void *address_bytes(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)address)->sin6_addr
                                          : (void *)&((struct sockaddr_in *)address)->sin_addr;
}

static inline socklen_t address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Tell whether two addresses are equal; their ports may differ. */
static inline bool address_equal(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
    return one->ss_family == other->ss_family &&
           memcmp(address_bytes(one), address_bytes(other),
                  one->ss_family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr)) == 0;
}

/* Return the address as text in a static buffer, which the next call overwrites. */
static inline const char *address_text(const struct sockaddr_storage *address)
{
    static char text[INET6_ADDRSTRLEN];

    return inet_ntop(address->ss_family, address_bytes(address), text, sizeof text) != NULL ? text : "";
}

/* Read an IPv4 or IPv6 address from `text`. Returns false if `text` is NULL or is not an address. */
static inline bool address_parse(const char *text, int64_t port, struct sockaddr_storage *address)
{
    static const sa_family_t families[] = {AF_INET, AF_INET6};

    for (size_t i = 0; text != NULL && i < sizeof families / sizeof *families; i++) {
        memset(address, 0, sizeof *address);
        address->ss_family = families[i];
        if (inet_pton(families[i], text, address_bytes(address)) == 1) {
            *address_port(address) = htons((uint16_t)port);
            return true;
        }
    }
    return false;
}

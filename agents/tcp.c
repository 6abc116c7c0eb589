/* TCP: sockets with the settings asked for, set before listen or connect, so that they hold from the first segment on. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"
#include "marks.h"
#include "mptcp.h"
#include "system.h"

#define TRIES 16 /* for a port of the kernel's choice that is free for UDP, too */

static int failed(struct endpoint *endpoint, const char *where, int error)
{
    endpoint_note(endpoint, error, "%s: %s", where, strerror(error));
    return -1;
}

static int new_socket(struct endpoint *endpoint, int family)
{
    const char *refused;
    int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = endpoint->settings.mptcp ? mptcp_socket(family, flags) : socket(family, SOCK_STREAM | flags, IPPROTO_TCP);

    if (fd < 0 && endpoint->settings.mptcp && errno == EPROTONOSUPPORT) {
        endpoint_note(endpoint, errno, "mptcp: this kernel has no Multipath TCP");
        return -1;
    }
    if (fd < 0)
        return failed(endpoint, "socket", errno);
    refused = sockopts_apply(fd, family, true, &endpoint->settings.sockopts);
    if (refused == NULL && endpoint->settings.zerocopy && zerocopy_enable(fd) != 0)
        refused = "SO_ZEROCOPY";
    if (refused != NULL) {
        failed(endpoint, refused, errno);
        close(fd);
        return -1;
    }
    return fd;
}

static in_port_t *port_of(struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)address)->sin6_port
                                          : &((struct sockaddr_in *)address)->sin_port;
}

/* Further subflows come to any address of this host; connections are taken at the endpoint's own only (opening.c). */
static void widen(int fd, struct sockaddr_storage *address)
{
    int on = 1;

    if (address->ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        ((struct sockaddr_in6 *)address)->sin6_addr = in6addr_any;
    } else {
        ((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_ANY);
    }
}

/* Listen on `port`, or where it is 0 on one that the kernel chooses, and keep the same one for datagrams where the flows send such. */
static int listen_on(struct endpoint *endpoint, int port)
{
    struct openings *openings = &endpoint->openings;
    struct sockaddr_storage address = endpoint->settings.address;
    socklen_t length = sizeof address;
    int on = 1, fd = new_socket(endpoint, address.ss_family), datagram_fd = -1, error;

    if (fd < 0)
        return endpoint->failure.error;
    if (sockopts_marked(&endpoint->settings.sockopts))
        marks_keep(fd);
    if (endpoint->settings.mptcp)
        widen(fd, &address);
    *port_of(&address) = htons((in_port_t)port);
    if (bind(fd, (struct sockaddr *)&address, endpoint->settings.address_length) != 0 || listen(fd, FLOWS_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        goto out;
    if (endpoint->settings.work->open != NULL) {
        datagram_fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
        if (datagram_fd < 0 || setsockopt(datagram_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
            bind(datagram_fd, (struct sockaddr *)&address, endpoint->settings.address_length) != 0)
            goto out;
    }
    openings->listen_fd = fd;
    openings->datagram_fd = datagram_fd;
    endpoint_set_port(endpoint, ntohs(*port_of(&address)));
    return 0;
out:
    error = errno;
    if (datagram_fd >= 0)
        close(datagram_fd);
    close(fd);
    return error;
}

int tcp_listen(struct endpoint *endpoint)
{
    int first = (int)endpoint->settings.first_port, last = first == 0 ? TRIES - 1 : (int)endpoint->settings.last_port;
    int error = EADDRINUSE;

    for (int port = first; port <= last && error == EADDRINUSE; port++)
        error = listen_on(endpoint, first == 0 ? 0 : port);
    if (error == 0)
        return 0;
    endpoint_set_port(endpoint, first);
    if (error == EADDRINUSE && first != 0)
        endpoint_note(endpoint, error, "bind %s to %d: none of these ports is free", endpoint->peer, last);
    else
        endpoint_note(endpoint, error, "bind %s: %s", endpoint->peer, strerror(error));
    return -1;
}

int tcp_connect(struct endpoint *endpoint)
{
    struct settings *settings = &endpoint->settings;
    const struct sockaddr *bind_to = (const struct sockaddr *)&settings->bind;

    endpoint_set_port(endpoint, ntohs(*port_of(&settings->address)));
    for (int i = 0; i < endpoint->flow_count; i++) {
        int fd = new_socket(endpoint, bind_to->sa_family);

        if (fd < 0)
            return -1;
        endpoint->flows[i].fd = fd;
        if (bind(fd, bind_to, settings->address_length) != 0)
            return failed(endpoint, "bind to the data address", errno);
        if (connect(fd, (const struct sockaddr *)&settings->address, settings->address_length) != 0 && errno != EINPROGRESS) {
            endpoint_note(endpoint, errno, "flow %d to %s: connect: %s", i, endpoint->peer, strerror(errno));
            return -1;
        }
    }
    return 0;
}

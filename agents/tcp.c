/* TCP sockets. The requested settings are applied before listen or connect, so that they hold from the first segment on. */
#include "address.h"
#include "endpoint.h"
#include "marks.h"
#include "mptcp.h"
#include "system.h"

#define PROBES_BYTES (192 << 10) /* receive buffer for a step of probes: the controller sends up to 100,000 bytes at once */
#define TRIES 16 /* ports of the kernel's choice that are tried, until one is free for UDP too */

static int note_failure(struct endpoint *endpoint, const char *where, int error)
{
    endpoint_note(endpoint, error, "%s: %s", where, strerror(error));
    return -1;
}

static int new_socket(struct endpoint *endpoint, int family)
{
    const char *refused;
    int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = endpoint->request.mptcp ? mptcp_socket(family, flags) : socket(family, SOCK_STREAM | flags, IPPROTO_TCP);

    if (fd < 0 && endpoint->request.mptcp && errno == EPROTONOSUPPORT)
        endpoint_note(endpoint, errno, "mptcp: this kernel has no Multipath TCP");
    if (fd < 0)
        return note_failure(endpoint, "socket", errno);
    refused = sockopts_apply(fd, family, true, &endpoint->request.sockopts);
    if (refused == NULL && endpoint->request.zerocopy && zerocopy_enable(fd) != 0)
        refused = "SO_ZEROCOPY";
    if (refused != NULL) {
        note_failure(endpoint, refused, errno);
        close(fd);
        return -1;
    }
    return fd;
}

/* Listen at all addresses, because further subflows may come to any. opening.c refuses connections to other addresses than requested. */
static void widen(int fd, struct sockaddr_storage *address)
{
    int on = 1;

    if (address->ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    *address = (struct sockaddr_storage){.ss_family = address->ss_family};
}

/* Listen on `port`; 0: the kernel chooses one. For datagrams, reserve the same UDP port. Returns 0 or an errno value. */
static int listen_on(struct endpoint *endpoint, int port)
{
    struct openings *openings = &endpoint->openings;
    struct sockaddr_storage address = endpoint->request.address;
    socklen_t length = sizeof address;
    int fd = new_socket(endpoint, address.ss_family), datagram_fd = -1, error;

    if (fd < 0)
        return endpoint->failure.error;
    if (sockopts_number(&endpoint->request.sockopts, "dscp") >= 0)
        marks_keep(fd);
    if (endpoint->request.mptcp)
        widen(fd, &address);
    *address_port(&address) = htons((in_port_t)port);
    /* Without SO_REUSEADDR, with which another user could take the port before listen(2). */
    if (bind(fd, (struct sockaddr *)&address, address_length(&address)) != 0 || listen(fd, FLOWS_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        goto out;
    if (work_has_datagrams(endpoint->request.work)) {
        /* The port is shared only once nobody else has it. */
        datagram_fd = udp_reserve(&address);
        if (datagram_fd < 0 || (SYSTEM_SHARES_PORTS && udp_share(datagram_fd) != 0))
            goto out;
    }
    openings->listen_fd = fd;
    openings->datagram_fd = datagram_fd;
    if (datagram_fd >= 0)
        sockopts_enlarge_buffer(datagram_fd, SO_RCVBUF, PROBES_BYTES);
    endpoint_set_port(endpoint, ntohs(*address_port(&address)));
    return 0;
out:
    error = errno;
    system_close(&datagram_fd);
    system_close(&fd);
    return error;
}

int tcp_listen(struct endpoint *endpoint)
{
    int first = (int)endpoint->request.first_port, last = first == 0 ? TRIES - 1 : (int)endpoint->request.last_port;
    int error = EADDRINUSE;

    for (int port = first; port <= last && error == EADDRINUSE; port++)
        error = listen_on(endpoint, first == 0 ? 0 : port);
    if (error == 0)
        return 0;
    endpoint_set_port(endpoint, first);
    if (error == EADDRINUSE && first != 0)
        endpoint_note(endpoint, error, "bind %s to %d: none of these ports is free", endpoint->peer, last);
    else if (error == EADDRINUSE)
        endpoint_note(endpoint, error, "bind %s: none of %d ports is free for datagrams too",
                      address_text(&endpoint->request.address), TRIES);
    else
        endpoint_note(endpoint, error, "bind %s: %s", endpoint->peer, strerror(error));
    return -1;
}

/* Bind a flow's connection to a port of the kernel's choice and, for datagrams, a socket to the same UDP port. Returns 0 or an errno. */
static int bind_flow(struct flow *flow)
{
    struct sockaddr_storage here = flow->request->bind;
    socklen_t length = sizeof here;

    if (bind(flow->fd, (struct sockaddr *)&here, address_length(&here)) != 0)
        return errno;
    if (!work_has_datagrams(flow->work))
        return 0;
    if (getsockname(flow->fd, (struct sockaddr *)&here, &length) != 0)
        return errno;
    flow->datagram.fd = udp_reserve(&here);
    return flow->datagram.fd < 0 ? errno : 0;
}

/* Make the socket of a flow. Returns 0, or -1 with the failure stored. */
static int open_sender(struct endpoint *endpoint, struct flow *flow)
{
    int error = EADDRINUSE;

    for (int tries = 0; tries < TRIES && error == EADDRINUSE; tries++) {
        system_close(&flow->fd);
        flow->fd = new_socket(endpoint, endpoint->request.bind.ss_family);
        if (flow->fd < 0)
            return -1;
        error = bind_flow(flow);
    }
    if (error == EADDRINUSE && work_has_datagrams(flow->work))
        endpoint_note(endpoint, error, "bind to the data address: none of %d ports is free for datagrams too", TRIES);
    if (error != 0)
        return note_failure(endpoint, "bind to the data address", error);
    system_reset_at_close(flow->fd, true);
    return 0;
}

int tcp_connect(struct endpoint *endpoint)
{
    struct request *request = &endpoint->request;

    endpoint_set_port(endpoint, ntohs(*address_port(&request->address)));
    for (int i = 0; i < endpoint->flow_count; i++) {
        if (open_sender(endpoint, &endpoint->flows[i]) != 0)
            return -1;
        if (connect(endpoint->flows[i].fd, (const struct sockaddr *)&request->address, address_length(&request->address)) != 0 &&
            errno != EINPROGRESS) {
            endpoint_fail_flow(endpoint, i, "connect", errno);
            return -1;
        }
    }
    return 0;
}

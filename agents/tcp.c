/* TCP: sockets with the settings asked for, set before listen or connect, so that they hold from the first segment on. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "endpoint.h"
#include "file.h"
#include "messages.h"
#include "udp.h"

static int set_number(int fd, int level, int name, int64_t value)
{
    int number = (int)value;

    return value < 0 ? 0 : setsockopt(fd, level, name, &number, sizeof number);
}

/* Returns what could not be set, by name, or NULL. */
static const char *set_before(int fd, const struct settings *settings)
{
    if (set_number(fd, SOL_SOCKET, SO_SNDBUF, settings->window) != 0)
        return "SO_SNDBUF";
    if (set_number(fd, SOL_SOCKET, SO_RCVBUF, settings->window) != 0)
        return "SO_RCVBUF";
    if (set_number(fd, IPPROTO_TCP, TCP_MAXSEG, settings->mss) != 0)
        return "TCP_MAXSEG";
    if (set_number(fd, IPPROTO_TCP, TCP_NODELAY, settings->nodelay) != 0)
        return "TCP_NODELAY";
    if (settings->congestion[0] != '\0' &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, settings->congestion, (socklen_t)strlen(settings->congestion)) != 0)
        return "TCP_CONGESTION";
    return NULL;
}

static int fail_at(struct endpoint *endpoint, const char *where, int error)
{
    endpoint->error = error;
    snprintf(endpoint->message, sizeof endpoint->message, "%s: %s", where, strerror(error));
    return -1;
}

static int new_socket(struct endpoint *endpoint, int family)
{
    const char *refused;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

    if (fd < 0)
        return fail_at(endpoint, "socket", errno);
    refused = set_before(fd, &endpoint->settings);
    if (refused != NULL) {
        fail_at(endpoint, refused, errno);
        close(fd);
        return -1;
    }
    return fd;
}

int tcp_listen(struct endpoint *endpoint, int *port)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    const struct sockaddr *address = (const struct sockaddr *)&endpoint->settings.address;
    int fd = new_socket(endpoint, address->sa_family);

    if (fd < 0)
        return -1;
    endpoint->listen_fd = fd;
    if (bind(fd, address, endpoint->settings.address_length) != 0)
        return fail_at(endpoint, "bind", errno);
    if (listen(fd, FLOWS_MAX) != 0)
        return fail_at(endpoint, "listen", errno);
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
        return fail_at(endpoint, "getsockname", errno);
    *port = endpoint->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return 0;
}

int tcp_connect(struct endpoint *endpoint, int *flow)
{
    const struct settings *settings = &endpoint->settings;
    const struct sockaddr *bind_to = (const struct sockaddr *)&settings->bind;

    endpoint->port = ntohs(settings->address.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&settings->address)->sin6_port
                                                                  : ((const struct sockaddr_in *)&settings->address)->sin_port);
    for (*flow = 0; *flow < endpoint->flow_count; ++*flow) {
        int fd = new_socket(endpoint, bind_to->sa_family);

        if (fd < 0)
            return -1;
        endpoint->flows[*flow].fd = fd;
        if (bind(fd, bind_to, settings->address_length) != 0)
            return fail_at(endpoint, "bind", errno);
        if (connect(fd, (const struct sockaddr *)&settings->address, settings->address_length) != 0 && errno != EINPROGRESS)
            return fail_at(endpoint, "connect", errno);
    }
    return 0;
}

static int reserve(struct endpoint *endpoint, struct flow *flow, int64_t duration_ns)
{
    /* Until the drain is over, and one more at the end. */
    struct tcp_totals totals;
    int64_t rows = (duration_ns + (GRACE_S + 2) * SECOND) / endpoint->settings.interval_ns + 2;

    sample_tcp(flow->fd, &totals);
    flow->offered = totals.peer_window >= 0;
    flow->samples = calloc((size_t)rows * (size_t)flow_columns(flow), sizeof *flow->samples);
    flow->sample_room = flow->samples == NULL ? 0 : (int)rows;
    return flow->samples == NULL ? ENOMEM : 0;
}

static int reserve_bins(struct flow *flow, int64_t bin_ns, int64_t duration_ns)
{
    if (bin_ns == 0 || flow->sender || (flow->work != STREAM && flow->work != PUT))
        return 0;
    flow->bin_ns = bin_ns;
    flow->bin_room = (duration_ns + GRACE_SILENT_S * SECOND) / bin_ns + 1;
    flow->bins = calloc((size_t)flow->bin_room, sizeof *flow->bins);
    return flow->bins == NULL ? ENOMEM : 0;
}

/* Returns 0 or an errno value; flows that were started already are ended by the caller's endpoint_free(). */
int tcp_start(struct endpoint *endpoint, const struct start *start)
{
    const struct settings *settings = &endpoint->settings;
    int error = 0;

    if (start->capture > 0) {
        endpoint->capture = capture_start(settings->interface, endpoint->port, (size_t)start->capture);
        if (endpoint->capture == NULL)
            return errno;
    }
    endpoint->at_ns = start->at_ns;
    endpoint->end_ns = start->at_ns + start->duration_ns;
    endpoint->next_sample_ns = start->at_ns + settings->interval_ns;
    for (int i = 0; i < endpoint->flow_count && error == 0; i++) {
        struct flow *flow = &endpoint->flows[i];
        int flags = fcntl(flow->fd, F_GETFL);

        flow->at_ns = start->at_ns;
        flow->bulk_ns = start->at_ns + start->hold_ns;
        flow->end_ns = endpoint->end_ns;
        flow->work = settings->work;
        flow->message_bytes = settings->message_bytes;
        flow->iterations = start->iterations;
        flow->window = settings->udp ? -1 : (int)settings->window;
        flow->unheld = 4 * settings->window;
        flow->busy = settings->busy;
        flow->rate = start->rate;
        /* Threads block in the kernel; only openings are served by poll. */
        if (flags < 0 || fcntl(flow->fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
            return errno;
        if (settings->udp)
            error = udp_prepare(flow, settings->window);
        if (error == 0)
            error = reserve(endpoint, flow, start->duration_ns);
        if (error == 0)
            error = reserve_bins(flow, start->bin_ns, start->duration_ns);
        if (error == 0 && flow->work == PUT)
            error = file_prepare(flow);
        else if (error == 0 && flow->work != STREAM && !settings->udp)
            error = messages_prepare(flow);
        if (error == 0)
            error = flow_start(flow);
    }
    endpoint->state = RUNNING;
    return error;
}

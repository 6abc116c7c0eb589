/* What both kinds of datagram flows share: the socket, its memory, and its end. */
#include "udp.h"

#include <errno.h>
#if defined(__linux__)
#include <linux/sock_diag.h>
#endif
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "clock.h"
#include "data.h"
#include "flow.h"
#include "marks.h"

#define RECEIVER_BYTES (4 << 20) /* of its buffer where no window is asked for, as far as the node grants it */

static int connected_socket(const struct flow *flow)
{
    struct sockaddr_storage here, there;
    socklen_t here_length = sizeof here, there_length = sizeof there;
    int on = 1, fd, error;

    if (getsockname(flow->fd, (struct sockaddr *)&here, &here_length) != 0 ||
        getpeername(flow->fd, (struct sockaddr *)&there, &there_length) != 0)
        return -1;
    fd = socket(here.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
    if (fd < 0)
        return -1;
    /* All flows of a receiver share its port: their peers tell them apart. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 && bind(fd, (struct sockaddr *)&here, here_length) == 0 &&
        connect(fd, (struct sockaddr *)&there, there_length) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

int udp_open(struct flow *flow)
{
    int large = RECEIVER_BYTES;
    bool streams = !flow->work->messages;

    flow->datagram.fd = connected_socket(flow);
    if (flow->datagram.fd < 0)
        return errno;
    if (sockopts_apply(flow->datagram.fd, flow->family, false, flow->asked) != NULL)
        return errno;
    if (flow->marks != NULL)
        marks_receive(flow->datagram.fd, flow->family);
    if (flow->window.bytes >= 0)
        return 0;
    /* What a host drops because its processor was elsewhere for a millisecond says nothing of the network. */
#if defined(SO_RCVBUFFORCE)
    if (streams && !flow->sender && setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large) == 0)
        return 0;
#endif
    if (streams && !flow->sender)
        setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    return 0;
}

int udp_prepare(struct flow *flow, size_t room)
{
    struct timeval quiet = {.tv_usec = UDP_QUIET_US}, trip = {.tv_sec = UDP_TRIP_S};

    flow->buffer = malloc(room);
    flow->datagram.counts = calloc(1, sizeof *flow->datagram.counts);
    if (flow->buffer == NULL || flow->datagram.counts == NULL)
        return ENOMEM;
    datagrams_begin(flow->datagram.counts, flow->datagram.tag);
    if (flow->sender)
        data_fill(flow->buffer, room);
    return setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVTIMEO, flow->sender ? &trip : &quiet, sizeof quiet) == 0 ? 0 : errno;
}

bool udp_ended(const struct flow *flow)
{
    char byte;

    return recv(flow->fd, &byte, 1, MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* What the kernel says of the socket, and no more: a UDP socket has no TCP_INFO. */
static void sample_socket(struct flow *flow)
{
    sample_unknown(&flow->totals);
    sockopts_read(flow->datagram.fd, &flow->totals.sockopts, false);
#if defined(SO_MEMINFO)
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof memory;

    if (!flow->sender && getsockopt(flow->datagram.fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == 0 &&
        length > SK_MEMINFO_DROPS * sizeof *memory)
        flow->datagram.counts->overflow = memory[SK_MEMINFO_DROPS];
#endif
}

void udp_finish(struct flow *flow)
{
    sample_socket(flow);
    flow_finish(flow);
}

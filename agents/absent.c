/* Stubs for systems other than Linux, which lack captures, zero-copy sends, Multipath TCP, multicast and counts of a listening socket. An
 * order that requests one of the former fails. */
#include "capture.h"
#include "control.h"
#include "flow.h"
#include "mptcp.h"
#include "system.h"

#if !defined(__linux__)
struct capture *capture_start(const char *interface, const int *ports, int count, size_t room)
{
    (void)interface, (void)ports, (void)count, (void)room;
    errno = EOPNOTSUPP;
    return NULL;
}

void capture_stop(struct capture *capture)
{
    (void)capture;
}

void capture_free(struct capture *capture)
{
    (void)capture;
}

int zerocopy_enable(int fd)
{
    (void)fd;
    errno = ENOPROTOOPT;
    return -1;
}

ssize_t zerocopy_send(struct flow *flow, const void *bytes, size_t count)
{
    return send(flow->fd, bytes, count, MSG_NOSIGNAL);
}

bool zerocopy_collect(struct flow *flow)
{
    (void)flow;
    return false;
}

void zerocopy_finish(struct flow *flow)
{
    (void)flow;
}

bool system_queue(int listen_fd, int *room, int64_t *dropped)
{
    (void)listen_fd, (void)room, (void)dropped;
    return false;
}

int mptcp_socket(int family, int flags)
{
    (void)family, (void)flags;
    errno = EPROTONOSUPPORT;
    return -1;
}

/* The order for it is refused by its key `close`. */
const struct work connect_work = {.name = "connect", .transport = "tcp", .size_low = 1, .size_high = 1, .messages = true, .connects = true};

/* Likewise by its key `role`. */
const struct work multicast_work = {.name = "multicast", .transport = "udp", .size_low = DATAGRAM_HEADER, .size_high = DATAGRAM_MAX, .multicast = true};

const char *multicast_parse(struct order *order, bool sender, struct request *request)
{
    static const char *const keys[] = {"role", "group", "group_port", "ttl", "join_ms", "leave_ms"};

    (void)sender, (void)request;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        order_value(order, keys[i]);
    return order_value(order, "role") == NULL ? "role: expected send, wait, join or watch" : NULL;
}

struct multipath *mptcp_new(void)
{
    errno = EPROTONOSUPPORT;
    return NULL;
}

void mptcp_sample(int fd, struct multipath *paths, struct tcp_totals *totals)
{
    (void)fd, (void)paths, (void)totals;
}

void mptcp_report(const struct multipath *paths, bool sender)
{
    (void)paths, (void)sender;
    line_add(",\"mptcp\":null");
}
#endif

/* Sends with MSG_ZEROCOPY. The kernel reports completed ones in the socket's error queue. */
#include "system.h"

#include <poll.h>

#include <linux/errqueue.h>

#include "clock.h"
#include "flow.h"

#define COLLECT_EVERY 16 /* unreported sends after which the error queue is read, whose memory is limited (net.core.optmem_max) */
#define WAIT_MS 100

int zerocopy_enable(int fd)
{
    int on = 1;

    return setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on);
}

/* Count a report. It is about all sends that the kernel numbered from ee_info to ee_data. */
static void take_report(struct flow *flow, struct msghdr *message)
{
    const struct cmsghdr *part = CMSG_FIRSTHDR(message);
    struct sock_extended_err said;
    int64_t sends;

    if (part == NULL || part->cmsg_len < CMSG_LEN(sizeof said))
        return;
    memcpy(&said, CMSG_DATA(part), sizeof said);
    if (said.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
        return;
    sends = (int64_t)(uint32_t)(said.ee_data - said.ee_info) + 1;
    flow->sends.pending -= sends;
    if ((said.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) == 0)
        flow->sends.uncopied += sends;
}

bool zerocopy_collect(struct flow *flow)
{
    bool any = false;

    for (;;) {
        union {
            struct cmsghdr aligned;
            char bytes[256];
        } control;
        struct msghdr message = {.msg_control = &control, .msg_controllen = sizeof control};

        if (recvmsg(flow->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return any;
        take_report(flow, &message);
        any = true;
    }
}

static bool await_report(struct flow *flow)
{
    /* poll(2) reports a filled error queue (POLLERR) even if no event is requested. */
    struct pollfd queue = {.fd = flow->fd, .events = 0};

    return poll(&queue, 1, WAIT_MS) > 0 && zerocopy_collect(flow);
}

ssize_t zerocopy_send(struct flow *flow, const void *bytes, size_t count)
{
    for (;;) {
        ssize_t put = send(flow->fd, bytes, count, MSG_NOSIGNAL | MSG_ZEROCOPY);

        if (put > 0) {
            flow->sends.pending++;
            if (flow->sends.pending >= COLLECT_EVERY)
                zerocopy_collect(flow);
        }
        if (put >= 0 || errno != ENOBUFS)
            return put;
        /* Too many pages or reports are pending (RLIMIT_MEMLOCK, net.core.optmem_max). */
        if (flow_is_stopping(flow) || flow->sends.pending <= 0 || !await_report(flow))
            return send(flow->fd, bytes, count, MSG_NOSIGNAL);
    }
}

void zerocopy_finish(struct flow *flow)
{
    int64_t until = clock_now() + WAIT_MS * MS;

    while (flow->sends.pending > 0 && clock_now() < until && await_report(flow))
        continue;
}

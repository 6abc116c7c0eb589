/* Reads the subflows of a connection: MPTCP_INFO, MPTCP_TCPINFO and MPTCP_SUBFLOW_ADDRS of Linux 5.16, which C libraries do not define. */
#include "mptcp.h"

#include <netinet/tcp.h>

#include "address.h"
#include "control.h"

#define PROTOCOL_MPTCP 262
#define LEVEL_MPTCP 284
#define OPTION_INFO 1
#define OPTION_TCPINFO 2
#define OPTION_ADDRESSES 3
#define INFO_BYTES 512

struct head { /* struct mptcp_subflow_data of linux/mptcp.h */
    uint32_t size, subflows, size_kernel, size_user;
} __attribute__((aligned(8)));

struct addresses {
    struct head head;
    struct ends of[SUBFLOWS_MAX];
};

struct infos {
    struct head head;
    unsigned char bytes[SUBFLOWS_MAX * INFO_BYTES];
};

int mptcp_socket(int family, int flags)
{
    int fd = socket(family, SOCK_STREAM | flags, PROTOCOL_MPTCP);

    /* Multipath TCP is disabled (net.mptcp.enabled). Use TCP, to which connections would fall back anyway. */
    if (fd < 0 && errno == ENOPROTOOPT)
        return socket(family, SOCK_STREAM | flags, IPPROTO_TCP);
    if (fd < 0 && errno == EINVAL)
        errno = EPROTONOSUPPORT;
    return fd;
}

struct multipath *mptcp_new(void)
{
    struct multipath *paths = calloc(1, sizeof *paths);

    if (paths != NULL && (errno = pthread_mutex_init(&paths->lock, NULL)) != 0) {
        free(paths);
        return NULL;
    }
    return paths;
}

static bool has_info(int fd)
{
    unsigned char info[INFO_BYTES];
    socklen_t length = sizeof info;

    return getsockopt(fd, LEVEL_MPTCP, OPTION_INFO, info, &length) == 0;
}

/* Tell whether this kernel supports MPTCP_INFO; if so, a connection without MPTCP_INFO has fallen back to TCP. */
static bool kernel_has_info(void)
{
    static _Atomic int known = -1;

    if (known < 0) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, PROTOCOL_MPTCP);

        known = fd >= 0 && has_info(fd);
        if (fd >= 0)
            close(fd);
    }
    return known == 1;
}

static enum multipath_state read_state(int fd)
{
    int protocol = 0;
    socklen_t length = sizeof protocol;

    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) != 0)
        return MULTIPATH_UNKNOWN;
    if (protocol == IPPROTO_TCP)
        return MULTIPATH_FELL_BACK;
    if (has_info(fd))
        return MULTIPATH_USED;
    return kernel_has_info() ? MULTIPATH_FELL_BACK : MULTIPATH_UNKNOWN;
}

static bool read_array(int fd, int option, struct head *head, size_t room, uint32_t size_user)
{
    socklen_t length = (socklen_t)room;

    memset(head, 0, room);
    head->size = sizeof *head;
    head->size_user = size_user;
    return getsockopt(fd, LEVEL_MPTCP, option, head, &length) == 0 && head->subflows <= SUBFLOWS_MAX;
}

/* Read all subflows. Returns false if a subflow came or went between the calls, so that addresses and TCP_INFO do not match. */
static bool read_subflows(int fd, struct addresses *addresses, struct infos *infos)
{
    struct addresses again;

    return read_array(fd, OPTION_ADDRESSES, &addresses->head, sizeof *addresses, sizeof *addresses->of) &&
           read_array(fd, OPTION_TCPINFO, &infos->head, sizeof *infos, INFO_BYTES) &&
           read_array(fd, OPTION_ADDRESSES, &again.head, sizeof again, sizeof *again.of) &&
           memcmp(addresses, &again, sizeof again) == 0 && infos->head.subflows == again.head.subflows;
}

/* Tell whether the subflow has a peer: the kernel clears the peer's address when a subflow ends. */
static bool has_peer(const struct ends *ends)
{
    return !address_equal(&ends->remote, &(struct sockaddr_storage){.ss_family = ends->remote.ss_family});
}

/* Return the record of a subflow, made if needed; NULL if the subflow has ended or if there are too many. */
static struct subflow *find_subflow(struct multipath *paths, const struct ends *ends, bool closed)
{
    struct subflow *new;

    for (int i = 0; i < paths->count; i++)
        if (memcmp(&paths->found[i].ends, ends, sizeof *ends) == 0)
            return &paths->found[i];
    if (closed || !has_peer(ends) || paths->count == SUBFLOWS_MAX)
        return NULL;
    new = &paths->found[paths->count++];
    new->ends = *ends;
    return new;
}

/* Store the TCP_INFO of a subflow. The kernel counts a FIN as a received byte. After a reset, it counts from 0 again. */
static void update_subflow(struct subflow *subflow, const unsigned char *bytes, socklen_t length)
{
    struct tcp_totals totals;
    bool finished = bytes[0] == TCP_CLOSE_WAIT || bytes[0] == TCP_LAST_ACK || bytes[0] == TCP_CLOSING;

    sample_clear(&totals);
    sample_parse(bytes, length, &totals);
    if (finished && totals.received_bytes > 0)
        totals.received_bytes--;
    subflow->open = true;
    subflow->lost = false;
    if (totals.segs_in >= subflow->totals.segs_in)
        subflow->totals = totals;
}

static void update_subflows(int fd, struct multipath *paths)
{
    struct addresses addresses;
    struct infos infos;
    bool were[SUBFLOWS_MAX];

    if (!read_subflows(fd, &addresses, &infos))
        return;
    for (int i = 0; i < paths->count; i++) {
        were[i] = paths->found[i].open;
        paths->found[i].open = false;
    }
    for (uint32_t i = 0; i < addresses.head.subflows; i++) {
        const unsigned char *info = infos.bytes + i * infos.head.size_user;
        struct subflow *subflow = find_subflow(paths, &addresses.of[i], info[0] == TCP_CLOSE);

        if (subflow != NULL)
            update_subflow(subflow, info, (socklen_t)infos.head.size_user);
    }
    for (int i = 0; i < paths->count; i++) {
        struct subflow *subflow = &paths->found[i];

        if (!subflow->open && were[i]) {
            subflow->lost = !paths->ending;
            subflow->totals.unacked = 0; /* the kernel sends the data of this subflow over another one */
        }
    }
}

#define SUM(name) whole->name = whole->name < 0 || part->name < 0 ? -1 : whole->name + part->name;
#define SAME(name) whole->name = whole->name == part->name ? whole->name : -1;
#define NONE(name) whole->name = -1;
#define AS_ADDED(name, field, rule) rule(name)

/* Add the values of another subflow to the connection's totals. */
static void add_subflow(struct tcp_totals *whole, const struct tcp_totals *part)
{
    TCP_COUNTS(AS_ADDED)
    SUM(received_ce)
    SAME(timestamps)
}

static void add_up_subflows(const struct multipath *paths, struct tcp_totals *totals)
{
    struct sockopts kept = totals->sockopts;
    int64_t timeouts = -1;

    for (int i = 0; i < paths->count; i++) {
        const struct subflow *subflow = &paths->found[i];

        if (i == 0)
            *totals = subflow->totals;
        else
            add_subflow(totals, &subflow->totals);
        /* A connection counts as timed out only if all its subflows have timed out. */
        if (subflow->open && (timeouts < 0 || subflow->totals.timeouts < timeouts))
            timeouts = subflow->totals.timeouts;
    }
    totals->timeouts = timeouts;
    totals->mss = -1; /* unknown: the options of Multipath TCP use up some bytes of tcpi_snd_mss */
    totals->sockopts = kept;
}

void mptcp_sample(int fd, struct multipath *paths, struct tcp_totals *totals)
{
    pthread_mutex_lock(&paths->lock);
    if (!paths->settled)
        paths->state = read_state(fd);
    if (paths->state == MULTIPATH_FELL_BACK) {
        sample_info(fd, totals);
    } else if (paths->state == MULTIPATH_USED) {
        if (!paths->settled)
            update_subflows(fd, paths);
        add_up_subflows(paths, totals);
    }
    paths->settled = atomic_load(&paths->last);
    pthread_mutex_unlock(&paths->lock);
}

void mptcp_report(const struct multipath *paths, bool sender)
{
    if (paths == NULL || paths->state == MULTIPATH_UNKNOWN) {
        line_add(",\"mptcp\":null");
        return;
    }
    line_add(",\"mptcp\":[");
    for (int i = 0; i < paths->count && paths->state == MULTIPATH_USED; i++) {
        const struct subflow *subflow = &paths->found[i];
        const struct tcp_totals *totals = &subflow->totals;

        line_add("%s[", i > 0 ? "," : "");
        line_add_string(address_text(sender ? &subflow->ends.local : &subflow->ends.remote));
        line_add(",");
        line_add_string(address_text(sender ? &subflow->ends.remote : &subflow->ends.local));
        line_add(",%lld,", (long long)(sender ? totals->acked_bytes : totals->received_bytes));
        if (subflow->lost)
            line_add("null]");
        else
            line_add("%lld]", (long long)totals->timeouts);
    }
    line_add("]");
}

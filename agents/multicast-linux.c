/* Multicast: one sender, and receivers that join its group after the start and leave before the end. Each receiver has a flow of its own,
 * whose connection begins and ends it; datagrams are sent once, by the sender whose role is `send`. All flows have the same token, so that
 * datagrams of the one sender have the tag of each. A second thread of a receiver joins, leaves and watches the interface (watch.h). */
#include <ifaddrs.h>
#include <net/if.h>

#include "address.h"
#include "clock.h"
#include "control.h"
#include "flow.h"
#include "system.h"
#include "watch.h"

#define FIRST_PORT 61000 /* ports above Linux' default range for sockets that choose none (ip(7)), of which nearly none is taken */
#define PORTS 4000
#define GROUP_NUMBER UINT32_MAX /* in place of a flow's number, for a number made of the token: the group */
#define LOOK_NS (20 * MS)       /* interval at which the watching thread checks whether the flow has ended */
#if !defined(IPV6_MULTICAST_ALL)
#define IPV6_MULTICAST_ALL 29 /* linux/in6.h, since 4.20 */
#endif

/* What a receiver counts. Times are 0 if they did not come. */
struct membership {
    struct watch watch;
    struct flow *flow;
    pthread_t thread;
    _Atomic bool over;
    int interface;
    int64_t joined_ns, left_ns;
    int error; /* errno value of the call that joins */
};

static struct membership *membership_of(const struct flow *flow)
{
    return flow->counts;
}

static const struct multicast *order_of(const struct flow *flow)
{
    return &flow->request->multicast;
}

/* Make a group of the token: of 239.255.0.0/16 (RFC 2365), or of ff15::/16, transient groups of a site (RFC 4291). */
static void choose_group(struct request *request, struct sockaddr_storage *group)
{
    uint64_t number = datagram_tag(request->token, GROUP_NUMBER), words = htobe64(number);
    unsigned char *bytes;

    memset(group, 0, sizeof *group);
    group->ss_family = request->address.ss_family;
    bytes = address_bytes(group);
    if (group->ss_family == AF_INET6) {
        bytes[0] = 0xff;
        bytes[1] = 0x15;
        memcpy(bytes + 8, &words, sizeof words);
    } else {
        bytes[0] = 239;
        bytes[1] = 255;
        memcpy(bytes + 2, &words, 2);
    }
    *address_port(group) = htons((in_port_t)(FIRST_PORT + number % PORTS));
}

/* Tell whether switches and routers treat a group as any other: not one of the link, which is always flooded (RFC 4541). */
static bool is_ordinary(const struct sockaddr_storage *group)
{
    const unsigned char *bytes = address_bytes(group);

    if (group->ss_family == AF_INET6)
        return bytes[0] == 0xff && (bytes[1] & 15) > 2;
    return bytes[0] >= 224 && bytes[0] <= 239 && !(bytes[0] == 224 && bytes[1] == 0 && bytes[2] == 0);
}

const char *multicast_parse(struct order *order, bool sender, struct request *request)
{
    static const char *const names[] = {
        [MULTICAST_SEND] = "send", [MULTICAST_WAIT] = "wait", [MULTICAST_JOIN] = "join", [MULTICAST_WATCH] = "watch"};
    struct multicast *multicast = &request->multicast;
    const char *role = order_value(order, "role"), *group = order_value(order, "group"), *wrong;
    int64_t port = 0, join_ms = 0, leave_ms = 0;
    int first = sender ? MULTICAST_SEND : MULTICAST_JOIN, found = -1;
    const struct order_key keys[] = {
        {sender ? "ttl" : NULL, 1, 255, &multicast->ttl, true},
        {sender ? NULL : "join_ms", 0, 600000, &join_ms, true},
        {sender ? NULL : "leave_ms", 0, 600000, &leave_ms, true},
        {"group_port", 1, 65535, &port, true},
    };

    multicast->ttl = 1;
    for (int i = first; i <= first + 1 && role != NULL; i++)
        if (strcmp(role, names[i]) == 0)
            found = i;
    if (found < 0)
        return sender ? "role: expected send or wait" : "role: expected join or watch";
    if ((wrong = order_numbers(order, keys, sizeof keys / sizeof *keys)) != NULL)
        return wrong;
    multicast->role = (enum multicast_role)found;
    multicast->join_ns = join_ms * MS;
    multicast->leave_ns = leave_ms * MS;
    choose_group(request, &multicast->group);
    if (port == 0)
        port = ntohs(*address_port(&multicast->group));
    if (group != NULL && (!address_parse(group, port, &multicast->group) || !is_ordinary(&multicast->group)))
        return "group: expected a multicast address that is not of the link, as 239.255.0.7 or ff15::7";
    if (multicast->group.ss_family != request->address.ss_family)
        return "group: expected an address of the same family as the nodes' addresses";
    *address_port(&multicast->group) = htons((in_port_t)port);
    return NULL;
}

/* Return the index of the interface with the connection's own address, or 0 with errno. */
static int find_interface(const struct flow *flow)
{
    struct sockaddr_storage here;
    socklen_t length = sizeof here;
    struct ifaddrs *all;
    int index = 0;

    if (getsockname(flow->fd, (struct sockaddr *)&here, &length) != 0 || getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *one = all; one != NULL && index == 0; one = one->ifa_next)
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == here.ss_family &&
            address_equal((const struct sockaddr_storage *)(const void *)one->ifa_addr, &here))
            index = (int)if_nametoindex(one->ifa_name);
    freeifaddrs(all);
    if (index == 0)
        errno = ENODEV;
    return index;
}

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
}

/* Let a socket, which has a port already, send to the group by an interface. The sender's own host gets no copy. */
static int aim(struct flow *flow, int interface)
{
    const struct multicast *multicast = order_of(flow);
    struct ip_mreqn by = {.imr_ifindex = interface};
    int fd = flow->datagram.fd, error;

    if (multicast->group.ss_family == AF_INET6) {
        if ((error = set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, interface)) != 0 ||
            (error = set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, (int)multicast->ttl)) != 0 ||
            (error = set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0)) != 0)
            return error;
    } else if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by) != 0) {
        return errno;
    } else if ((error = set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, (int)multicast->ttl)) != 0 ||
               (error = set_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0)) != 0) {
        return error;
    }
    if (connect(fd, (const struct sockaddr *)&multicast->group, address_length(&multicast->group)) != 0)
        return errno;
    return 0;
}

/* Make a receiver's socket at the group's address, which gets nothing before this socket itself has joined. */
static int listen_to(struct flow *flow)
{
    const struct sockaddr_storage *group = &order_of(flow)->group;
    int fd = udp_reserve(group);

    if (fd < 0)
        return errno;
    flow->datagram.fd = fd;
    /* A kernel that lacks the option for IPv6 filters by the address to which the socket is bound all the same. */
    if (group->ss_family == AF_INET6)
        set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
    else
        set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    return 0;
}

static int multicast_open(struct flow *flow, int *reserved)
{
    int interface = find_interface(flow), error;

    (void)reserved; /* the port of the opening stays with the endpoint */
    if (interface == 0)
        return errno;
    flow->datagram.port = ntohs(*address_port((struct sockaddr_storage *)&order_of(flow)->group));
    error = flow->sender ? aim(flow, interface) : listen_to(flow);
    if (error == 0)
        error = udp_set_options(flow);
    if (error != 0 || flow->sender)
        return error;
    flow->counts = calloc(1, sizeof(struct membership));
    if (flow->counts == NULL)
        return ENOMEM;
    membership_of(flow)->interface = interface;
    membership_of(flow)->flow = flow;
    /* Before the order to start: a driver takes its time to let all groups through, and meanwhile its card drops what the sender sends. */
    watch_open(&membership_of(flow)->watch, interface, &order_of(flow)->group, flow->request->size);
    return 0;
}

static void multicast_release(struct flow *flow)
{
    if (flow->counts != NULL)
        watch_close(&membership_of(flow)->watch);
}

static int multicast_prepare(struct flow *flow)
{
    int error = udp_stream_prepare(flow);

    if (error == 0 && !flow->sender)
        flow->datagram.counts->joins = true;
    return error;
}

static int set_membership(const struct flow *flow, bool join)
{
    const struct sockaddr_storage *group = &order_of(flow)->group;
    int interface = membership_of(flow)->interface;
    struct ip_mreqn four = {.imr_ifindex = interface};
    struct ipv6_mreq six = {.ipv6mr_interface = (unsigned)interface};

    if (group->ss_family == AF_INET6) {
        memcpy(&six.ipv6mr_multiaddr, address_bytes(group), sizeof six.ipv6mr_multiaddr);
        return setsockopt(flow->datagram.fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &six, sizeof six);
    }
    memcpy(&four.imr_multiaddr, address_bytes(group), sizeof four.imr_multiaddr);
    return setsockopt(flow->datagram.fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &four, sizeof four);
}

static void join(struct membership *membership)
{
    struct watch *watch = &membership->watch;

    membership->joined_ns = watch->joined_ns = clock_now();
    if (set_membership(membership->flow, true) != 0)
        membership->error = errno;
    watch_group(watch, false);
}

static void leave(struct membership *membership)
{
    struct watch *watch = &membership->watch;

    watch_group(watch, true);
    watch_read(watch);
    membership->left_ns = watch->left_ns = clock_now();
    set_membership(membership->flow, false);
}

/* Join and leave at their times, and count frames, until the flow has ended. */
static void *watch_flow(void *argument)
{
    struct membership *membership = argument;
    const struct flow *flow = membership->flow;
    const struct multicast *multicast = order_of(flow);
    int64_t join_at = flow->start->at_ns + multicast->join_ns, leave_at = flow->start->end_ns - multicast->leave_ns;
    bool over = false;

    while (!over) {
        struct pollfd frames = {.fd = membership->watch.fd, .events = POLLIN};
        int64_t now = clock_now(), next = now + LOOK_NS;
        struct timespec nap;

        over = atomic_load(&membership->over);
        if (multicast->role == MULTICAST_JOIN && membership->joined_ns == 0) {
            if (now >= join_at && !over)
                join(membership);
            next = clock_sooner(next, join_at);
        } else if (multicast->role == MULTICAST_JOIN && membership->left_ns == 0) {
            if (now >= leave_at || over)
                leave(membership);
            next = clock_sooner(next, leave_at);
        }
        watch_read(&membership->watch);
        nap = clock_spec(next - now);
        if (!over)
            ppoll(&frames, 1, &nap, NULL);
    }
    return NULL;
}

static void multicast_send(struct flow *flow)
{
    if (order_of(flow)->role == MULTICAST_SEND)
        udp_stream_send(flow);
    else
        flow_sleep_until(flow, flow->start->end_ns);
}

static void multicast_receive(struct flow *flow)
{
    struct membership *membership = membership_of(flow);
    int error = pthread_create(&membership->thread, NULL, watch_flow, membership);

    if (error == 0) {
        udp_stream_receive(flow);
        atomic_store(&membership->over, true);
        pthread_join(membership->thread, NULL);
        error = membership->error;
    }
    watch_close(&membership->watch);
    if (error != 0)
        flow_fail_unless_stopping(flow, "joining the group", error);
}

/* Add a time as ns after the start, or null if it did not come. */
static void add_time(const char *name, const struct flow *flow, int64_t at)
{
    line_add_count(name, at == 0 ? -1 : at < flow->start->at_ns ? 0 : at - flow->start->at_ns);
}

/* Add a count of the watch, or null if there was none. */
static void add_watched(const char *name, const struct watch *watch, int64_t count)
{
    line_add_count(name, watch->watched ? count : -1);
}

static void add_versions(const char *name, const struct watch *watch, const int64_t counts[WATCH_VERSIONS])
{
    if (watch->watched)
        line_add(",\"%s\":[%lld,%lld,%lld]", name, (long long)counts[1], (long long)counts[2], (long long)counts[3]);
    else
        line_add(",\"%s\":null", name);
}

static void multicast_report(const struct flow *flow)
{
    const struct membership *membership = membership_of(flow);
    const struct watch *watch = &membership->watch;
    bool came = flow->datagram.counts->count > 0;

    line_add(",\"multicast\":{\"group\":\"%s\"", address_text(&order_of(flow)->group));
    line_add_flag("joins", order_of(flow)->role == MULTICAST_JOIN);
    add_time("joined_ns", flow, membership->joined_ns);
    add_time("first_ns", flow, came ? flow->first_byte_ns : 0);
    add_time("last_ns", flow, came ? flow->last_byte_ns : 0);
    add_time("left_ns", flow, membership->left_ns);
    line_add_count("ended_ns", flow->start->end_ns - flow->start->at_ns);
    line_add_count("first_number", came ? flow->datagram.counts->first : -1);
    add_watched("before", watch, watch->before.count);
    add_time("before_first_ns", flow, watch->before.first_ns);
    add_time("before_last_ns", flow, watch->before.last_ns);
    add_watched("after", watch, watch->after.count);
    add_time("after_last_ns", flow, watch->after.last_ns);
    add_versions("queries", watch, watch->queries);
    add_watched("group_queries", watch, watch->specific);
    add_time("query_first_ns", flow, watch->first_query_ns);
    add_time("query_last_ns", flow, watch->last_query_ns);
    line_add_count("response_ns", watch->first_query_ns == 0 ? -1 : watch->response_ns);
    line_add_text("querier", watch->first_query_ns == 0 ? NULL : watch->querier);
    add_versions("reports", watch, watch->reports);
    line_add_count("before_gap_ns", watch->before.first_ns == 0 ? -1 : watch->before.gap_ns);
    line_add("}");
}

const struct work multicast_work = {"multicast", "udp", multicast_open, multicast_prepare, multicast_send, multicast_receive, udp_finish,
                                    DATAGRAM_HEADER, DATAGRAM_MAX, .report = multicast_report, .release = multicast_release, .rate = true,
                                    .bursts = true, .multicast = true};

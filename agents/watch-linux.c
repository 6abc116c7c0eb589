/* A packet socket with PACKET_MR_ALLMULTI (packet(7)), which ends with the socket. It counts by the group's address, not by the card's
 * filter: 32 groups of IPv4 share one address of Ethernet (RFC 1112). Sources: IGMP RFC 1112, 2236, 3376; MLD RFC 2710, 3810. */
#include "watch.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "address.h"
#include "clock.h"
#include "system.h"

#define HEAD_BYTES 192 /* bytes read of a frame: Ethernet, IP with options, and a membership message without its list of sources */
#define BUFFER_BYTES (16 << 20)
#define ETHERNET 14
#define IPV6_HEADER 40
#define UDP_HEADER 8
#define FILTER_MAX 32
#define IGMP_QUERY 0x11
#define MLD_QUERY 130
#define HOP_BY_HOP 0
#define FRAGMENT 44

#define LOAD(size, at) ((struct sock_filter)BPF_STMT(BPF_LD | (size) | BPF_ABS, (uint32_t)(at)))
#define JUMP(value, if_true, if_false) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), if_true, if_false))
#define ACCEPT ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffffffff))
#define REFUSE ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0))

/* Accept membership messages and, if `wanted`, packets to the group. */
static int set_filter(int fd, const struct sockaddr_storage *group, bool wanted)
{
    struct sock_filter code[FILTER_MAX];
    struct sock_fprog program = {.filter = code};
    int to = ETHERNET + 16, words = 1; /* place and length of the destination */
    unsigned short count = 0;
    uint32_t word;

    /* All membership messages of IGMP are of protocol 2; those of MLD, and little else, begin with hop-by-hop options. */
    code[count++] = LOAD(BPF_H, 12);
    code[count++] = group->ss_family == AF_INET6 ? JUMP(ETH_P_IPV6, 1, 0) : JUMP(ETH_P_IP, 1, 0);
    code[count++] = REFUSE;
    code[count++] = LOAD(BPF_B, group->ss_family == AF_INET6 ? ETHERNET + 6 : ETHERNET + 9);
    code[count++] = group->ss_family == AF_INET6 ? JUMP(HOP_BY_HOP, 0, 1) : JUMP(IPPROTO_IGMP, 0, 1);
    code[count++] = ACCEPT;
    if (group->ss_family == AF_INET6) {
        to = ETHERNET + 24;
        words = 4;
    }
    for (int i = 0; i < words && wanted; i++) {
        memcpy(&word, (const unsigned char *)address_bytes(group) + 4 * i, sizeof word);
        code[count++] = LOAD(BPF_W, to + 4 * i);
        code[count++] = JUMP(ntohl(word), 1, 0);
        code[count++] = REFUSE;
    }
    code[count++] = wanted ? ACCEPT : REFUSE;
    program.len = count;
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void watch_open(struct watch *watch, int interface, const struct sockaddr_storage *group, int64_t size)
{
    struct packet_mreq all = {.mr_ifindex = interface, .mr_type = PACKET_MR_ALLMULTI};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = interface};
    int buffer = BUFFER_BYTES, on = 1;
    /* Protocol 0: the socket receives no frame before bind(2), and so none before its filter is set. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    watch->fd = -1;
    watch->group = *group;
    watch->size = size;
    if (fd < 0)
        return;
    if (set_filter(fd, group, true) != 0 || setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    watch->fd = fd;
    watch->watched = true;
}

void watch_group(struct watch *watch, bool wanted)
{
    if (watch->fd >= 0)
        set_filter(watch->fd, &watch->group, wanted);
}

static uint16_t read16(const unsigned char *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Return the number that a code of IGMPv3 or MLDv2 stands for: from `linear` on, it has a mantissa of `bits` bits and an exponent of 3. */
static int64_t decode_time(uint32_t code, uint32_t linear, int bits)
{
    uint32_t mantissa = code & ((1U << bits) - 1), exponent = code >> bits & 7;

    return code < linear ? code : (int64_t)(mantissa | 1U << bits) << (exponent + 3);
}

static void count_query(struct watch *watch, int version, bool general, int64_t response_ns, const void *source, int64_t at)
{
    if (!general) {
        watch->specific++;
        return;
    }
    watch->queries[version]++;
    if (watch->first_query_ns == 0)
        watch->first_query_ns = at;
    watch->last_query_ns = at;
    watch->response_ns = response_ns;
    inet_ntop(watch->group.ss_family, source, watch->querier, sizeof watch->querier);
}

/* Take a message of IGMP; `length` is its own, without the IP header. */
static void take_igmp(struct watch *watch, const unsigned char *message, size_t length, const unsigned char *source, bool outgoing,
                      int64_t at)
{
    static const uint32_t all;
    int version = length >= 12 ? 3 : message[1] == 0 ? 1 : 2;
    int64_t tenths = version == 1 ? 100 : version == 2 ? message[1] : decode_time(message[1], 128, 4);
    bool general = memcmp(message + 4, &all, sizeof all) == 0;

    if (message[0] == IGMP_QUERY && !outgoing) {
        if (general || memcmp(message + 4, address_bytes(&watch->group), sizeof all) == 0)
            count_query(watch, version, general, tenths * 100 * MS, source, at);
    } else if (outgoing) {
        watch->reports[1] += message[0] == 0x12;
        watch->reports[2] += message[0] == 0x16;
        watch->reports[3] += message[0] == 0x22;
    }
}

/* Take a message of ICMPv6, of which MLD is a part. */
static void take_mld(struct watch *watch, const unsigned char *message, size_t length, const unsigned char *source, bool outgoing,
                     int64_t at)
{
    static const struct in6_addr all;
    int version = length >= 28 ? 2 : 1;
    uint32_t code = read16(message + 4);
    bool general = memcmp(message + 8, &all, sizeof all) == 0;

    if (message[0] == MLD_QUERY && !outgoing) {
        if (general || memcmp(message + 8, address_bytes(&watch->group), sizeof all) == 0)
            count_query(watch, version, general, (version == 1 ? code : decode_time(code, 32768, 12)) * MS, source, at);
    } else if (outgoing) {
        watch->reports[1] += message[0] == 131;
        watch->reports[2] += message[0] == 143;
    }
}

/* Count the datagrams of a packet to the group, with `bytes` bytes after the IP header. */
static void take_datagrams(struct watch *watch, int64_t bytes, bool outgoing, int64_t at)
{
    int64_t payload = bytes - UDP_HEADER;
    struct watch_seen *seen = watch->joined_ns == 0 || at < watch->joined_ns ? &watch->before : &watch->after;

    if (outgoing || (seen == &watch->after && (watch->left_ns == 0 || at < watch->left_ns)))
        return;
    seen->count += payload <= watch->size ? 1 : (payload + watch->size - 1) / watch->size;
    if (seen->first_ns == 0)
        seen->first_ns = at;
    else if (at - seen->last_ns > seen->gap_ns)
        seen->gap_ns = at - seen->last_ns;
    seen->last_ns = at;
}

static void take_ipv4(struct watch *watch, const unsigned char *packet, size_t have, size_t length, bool outgoing, int64_t at)
{
    size_t header = (size_t)(packet[0] & 15) * 4;
    bool later_fragment = (read16(packet + 6) & 0x1fff) != 0;

    if (header < 20 || length < header || later_fragment)
        return;
    if (packet[9] == IPPROTO_IGMP && have >= header + 8)
        take_igmp(watch, packet + header, read16(packet + 2) - header, packet + 12, outgoing, at);
    else if (memcmp(packet + 16, address_bytes(&watch->group), 4) == 0)
        take_datagrams(watch, (int64_t)(length - header), outgoing, at);
}

static void take_ipv6(struct watch *watch, const unsigned char *packet, size_t have, size_t length, bool outgoing, int64_t at)
{
    const unsigned char *rest = packet + IPV6_HEADER;
    size_t options = 8;

    if (packet[6] == HOP_BY_HOP) {
        options += have < IPV6_HEADER + 8 ? 0 : (size_t)rest[1] * 8;
        if (have >= IPV6_HEADER + options + 24 && rest[0] == IPPROTO_ICMPV6 && read16(packet + 4) >= options + 24)
            take_mld(watch, rest + options, read16(packet + 4) - options, packet + 8, outgoing, at);
        return;
    }
    if (packet[6] == FRAGMENT && (have < IPV6_HEADER + 8 || (read16(rest + 2) & 0xfff8) != 0))
        return;
    if (memcmp(packet + 24, address_bytes(&watch->group), 16) == 0)
        take_datagrams(watch, (int64_t)(length - IPV6_HEADER), outgoing, at);
}

void watch_take(struct watch *watch, const unsigned char *frame, size_t have, size_t length, bool outgoing, int64_t at)
{
    size_t least = ETHERNET + (watch->group.ss_family == AF_INET6 ? IPV6_HEADER : 20);

    if (have < least || length < have)
        return;
    if (read16(frame + 12) == ETH_P_IP && watch->group.ss_family == AF_INET)
        take_ipv4(watch, frame + ETHERNET, have - ETHERNET, length - ETHERNET, outgoing, at);
    else if (read16(frame + 12) == ETH_P_IPV6 && watch->group.ss_family == AF_INET6)
        take_ipv6(watch, frame + ETHERNET, have - ETHERNET, length - ETHERNET, outgoing, at);
}

/* Return when the frame arrived. The kernel's time is that of the wall clock. */
static int64_t arrival_ns(struct msghdr *header)
{
    const struct cmsghdr *note = CMSG_FIRSTHDR(header);
    int64_t now = clock_now(), ago;
    struct timespec when;

    if (note == NULL || note->cmsg_level != SOL_SOCKET || note->cmsg_type != SO_TIMESTAMPNS)
        return now;
    memcpy(&when, CMSG_DATA(note), sizeof when);
    ago = clock_wall() - clock_ns(&when);
    return now - (ago > 0 && ago < SECOND ? ago : 0); /* not where the wall clock was set meanwhile */
}

void watch_read(struct watch *watch)
{
    unsigned char frame[HEAD_BYTES];
    struct sockaddr_ll from;
    union {
        struct cmsghdr aligned;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } notes;

    for (;;) {
        struct iovec vector = {.iov_base = frame, .iov_len = sizeof frame};
        struct msghdr header = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &vector, .msg_iovlen = 1,
                                .msg_control = &notes, .msg_controllen = sizeof notes};
        ssize_t got = watch->fd < 0 ? -1 : recvmsg(watch->fd, &header, MSG_TRUNC);

        if (got < 0)
            return;
        watch_take(watch, frame, (size_t)got < sizeof frame ? (size_t)got : sizeof frame, (size_t)got,
                   from.sll_pkttype == PACKET_OUTGOING, arrival_ns(&header));
    }
}

/* Count the frames that the kernel dropped as this program was late, too: they arrived. */
static void add_dropped(struct watch *watch)
{
    struct tpacket_stats stats = {0};
    socklen_t length = sizeof stats;
    struct watch_seen *seen = watch->left_ns != 0 ? &watch->after : &watch->before;

    if (getsockopt(watch->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0 && seen->count > 0)
        seen->count += stats.tp_drops;
}

void watch_close(struct watch *watch)
{
    watch_read(watch);
    if (watch->fd >= 0)
        add_dropped(watch);
    system_close(&watch->fd);
}

/* Captures frames with a packet socket and a filter. A thread reads the frames into a pcap file in memory, so nothing stays on a disk. */
#include "capture.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <time.h>

#include "system.h"

#define FRAMES 32        /* most frames read in one call */
#define HEADER_BYTES 128 /* captured bytes per frame: Ethernet, IP and TCP headers with all but rare options */
#define BUFFER_BYTES (16 << 20)
#define LOOK_US 20000 /* interval at which the thread checks whether to stop */
#define FILTER_MAX (40 + 8 * CAPTURE_PORTS)
#define PCAP_FILE 24
#define PCAP_FRAME 16

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short length;
};

static void add(struct filter *filter, struct sock_filter statement)
{
    filter->code[filter->length++] = statement;
}

#define LOAD(size, mode, at) ((struct sock_filter)BPF_STMT(BPF_LD | (size) | (mode), (uint32_t)(at)))
#define JUMP(test, value, if_true, if_false) ((struct sock_filter)BPF_JUMP(BPF_JMP | (test) | BPF_K, (uint32_t)(value), if_true, if_false))
#define ACCEPT ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffffffff))
#define REFUSE ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0))

/* Refuse frames whose loaded number is not `value`. */
static void add_refusal(struct filter *filter, uint32_t value)
{
    add(filter, JUMP(BPF_JEQ, value, 1, 0));
    add(filter, REFUSE);
}

/* Refuse frames whose protocol, the byte `at`, is neither TCP nor UDP. */
static void add_protocols(struct filter *filter, int at)
{
    add(filter, LOAD(BPF_B, BPF_ABS, at));
    add(filter, JUMP(BPF_JEQ, IPPROTO_TCP, 2, 0));
    add_refusal(filter, IPPROTO_UDP);
}

/* Accept frames with one of the ports in one of two places; refuse all others. */
static void add_ports(struct filter *filter, int mode, int at, const int *ports, int count)
{
    for (int place = at; place <= at + 2; place += 2) {
        add(filter, LOAD(BPF_H, mode, place));
        for (int i = 0; i < count; i++) {
            add(filter, JUMP(BPF_JEQ, ports[i], 0, 1));
            add(filter, ACCEPT);
        }
    }
    add(filter, REFUSE);
}

/* Accept only TCP and UDP packets from or to a port, but neither later fragments (IPv4) nor extension headers (IPv6). */
static int set_filter(int fd, const int *ports, int count, bool loopback)
{
    struct filter filter = {.length = 0};
    struct sock_fprog program = {.filter = filter.code};
    int other;

    if (loopback) { /* it shows each frame twice, sent and received; the sent ones are in sending order */
        add(&filter, LOAD(BPF_B, BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE));
        add_refusal(&filter, PACKET_OUTGOING);
    }
    add(&filter, LOAD(BPF_H, BPF_ABS, 12));
    add(&filter, JUMP(BPF_JEQ, ETH_P_IP, 1, 0));
    other = filter.length;
    add(&filter, JUMP(BPF_JA, 0, 0, 0));
    add_protocols(&filter, 23);
    add(&filter, LOAD(BPF_H, BPF_ABS, 20));
    add(&filter, JUMP(BPF_JSET, 0x1fff, 0, 1));
    add(&filter, REFUSE);
    add(&filter, (struct sock_filter)BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14));
    add_ports(&filter, BPF_IND, 14, ports, count);
    filter.code[other].k = (uint32_t)(filter.length - other - 1);
    add_refusal(&filter, ETH_P_IPV6);
    add_protocols(&filter, 20);
    add_ports(&filter, BPF_ABS, 54, ports, count);
    program.len = filter.length;
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static bool is_loopback(int fd, const char *interface)
{
    struct ifreq request = {0};

    memcpy(request.ifr_name, interface, strnlen(interface, sizeof request.ifr_name - 1));
    return ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK) != 0;
}

static int packet_socket(const char *interface, const int *ports, int count)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    struct timeval look = {.tv_usec = LOOK_US};
    int buffer = BUFFER_BYTES, on = 1;
    /* Protocol 0: the socket receives no frame before bind(2), and so none before its filter is set. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    address.sll_ifindex = (int)if_nametoindex(interface);
    if (address.sll_ifindex != 0 && set_filter(fd, ports, count, is_loopback(fd, interface)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0)
            setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
        return fd;
    }
    return system_close_failed(fd);
}

static void put32(struct capture *capture, uint32_t value)
{
    memcpy(capture->data + capture->used, &value, sizeof value);
    capture->used += sizeof value;
}

static void write_file_header(struct capture *capture)
{
    put32(capture, 0xa1b23c4d); /* pcap's magic number for times in nanoseconds */
    put32(capture, 2 | 4 << 16);
    put32(capture, 0);
    put32(capture, 0);
    put32(capture, HEADER_BYTES);
    put32(capture, 1); /* pcap's link type for Ethernet */
}

static void write_frame(struct capture *capture, const unsigned char *frame, size_t length, const struct timespec *when)
{
    size_t kept = length < HEADER_BYTES ? length : HEADER_BYTES;

    capture->frames++;
    if (capture->used + PCAP_FRAME + kept > capture->room) {
        capture->cut = true;
        return;
    }
    put32(capture, (uint32_t)when->tv_sec);
    put32(capture, (uint32_t)when->tv_nsec);
    put32(capture, (uint32_t)kept);
    put32(capture, (uint32_t)length);
    memcpy(capture->data + capture->used, frame, kept);
    capture->used += kept;
}

static void *run(void *argument)
{
    static const struct timespec unknown;
    struct capture *capture = argument;
    unsigned char frames[FRAMES][HEADER_BYTES];
    struct mmsghdr messages[FRAMES];
    struct iovec vectors[FRAMES];
    union {
        struct cmsghdr aligned;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } notes[FRAMES];

    for (;;) {
        int got;

        for (int i = 0; i < FRAMES; i++) {
            vectors[i] = (struct iovec){.iov_base = frames[i], .iov_len = HEADER_BYTES};
            messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1, .msg_control = &notes[i],
                                                       .msg_controllen = sizeof notes[i]}};
        }
        got = recvmmsg(capture->fd, messages, FRAMES, MSG_WAITFORONE | MSG_TRUNC, NULL);
        if (got < 0 && atomic_load(&capture->stopping))
            return NULL; /* all frames that arrived before the stop are stored */
        for (int i = 0; i < got; i++) {
            const struct cmsghdr *note = CMSG_FIRSTHDR(&messages[i].msg_hdr);
            struct timespec when = unknown;

            if (note != NULL && note->cmsg_level == SOL_SOCKET && note->cmsg_type == SO_TIMESTAMPNS)
                memcpy(&when, CMSG_DATA(note), sizeof when);
            write_frame(capture, frames[i], messages[i].msg_len, &when);
        }
    }
}

struct capture *capture_start(const char *interface, const int *ports, int count, size_t room)
{
    struct capture *capture = calloc(1, sizeof *capture);
    int error;

    if (capture == NULL)
        return NULL;
    capture->room = room;
    capture->fd = packet_socket(interface, ports, count);
    capture->data = capture->fd < 0 ? NULL : malloc(room);
    error = capture->data == NULL ? errno : 0;
    if (error == 0) {
        write_file_header(capture);
        error = pthread_create(&capture->thread, NULL, run, capture);
    }
    if (error == 0)
        return capture;
    system_close(&capture->fd);
    free(capture->data);
    free(capture);
    errno = error;
    return NULL;
}

void capture_stop(struct capture *capture)
{
    struct tpacket_stats stats;
    socklen_t length = sizeof stats;

    if (capture->fd < 0)
        return;
    atomic_store(&capture->stopping, true);
    pthread_join(capture->thread, NULL);
    capture->lost = getsockopt(capture->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0 ? (int64_t)stats.tp_drops : -1;
    system_close(&capture->fd);
}

void capture_free(struct capture *capture)
{
    if (capture == NULL)
        return;
    capture_stop(capture);
    free(capture->data);
    free(capture);
}

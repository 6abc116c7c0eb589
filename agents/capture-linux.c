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
#define PCAP_FILE 24
#define PCAP_FRAME 16

static int set_filter(int fd, unsigned port, bool loopback)
{
    /* The filter accepts TCP and UDP packets from or to `port`, but neither later fragments (IPv4) nor extension headers (IPv6). */
    struct sock_filter code[] = {
        /* Loopback shows each frame twice, sent and received. Only the sent ones are accepted, in sending order. */
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 10),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 16),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 14, 0),
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 10, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 8, 9),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 8),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 5),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 54),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 2, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 56),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    unsigned skipped = loopback ? 0 : 3;
    struct sock_fprog program = {.len = (unsigned short)(sizeof code / sizeof *code - skipped), .filter = code + skipped};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static bool is_loopback(int fd, const char *interface)
{
    struct ifreq request = {0};

    memcpy(request.ifr_name, interface, strnlen(interface, sizeof request.ifr_name - 1));
    return ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK) != 0;
}

static int packet_socket(const char *interface, int port)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    struct timeval look = {.tv_usec = LOOK_US};
    int buffer = BUFFER_BYTES, on = 1;
    /* Protocol 0: the socket receives no frame before bind(2), and so none before its filter is set. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    address.sll_ifindex = (int)if_nametoindex(interface);
    if (address.sll_ifindex != 0 && set_filter(fd, (unsigned)port, is_loopback(fd, interface)) == 0 &&
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

struct capture *capture_start(const char *interface, int port, size_t room)
{
    struct capture *capture = calloc(1, sizeof *capture);
    int error;

    if (capture == NULL)
        return NULL;
    capture->room = room;
    capture->fd = packet_socket(interface, port);
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

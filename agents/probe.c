/*
 * Probes of the paths to other nodes. A receiver is an endpoint that listens with transport=udp: its two sockets take what comes.
 * A sender is a target: two sockets towards one such receiver. Nothing waits here: the controller asks again.
 */
#include "probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"
#include "orders.h"
#include "system.h"
#include "text.h"

#define TARGETS_MAX 256
#define SIZE_MAX_BYTES 65507
#define HEAD_BYTES (TOKEN_BYTES + 4)
#define TAKEN_MAX 8192 /* datagrams of one socket in one order: a stranger may send them without end */
#define LINE_ROOM 4000 /* of ANSWER_MAX, for what comes after */

struct target {
    int number, datagram_fd, stream_fd;
};

static struct target targets[TARGETS_MAX];
static int target_count;

static struct target *find(int64_t number)
{
    for (int i = 0; i < target_count; i++)
        if (targets[i].number == number)
            return &targets[i];
    return NULL;
}

static int new_socket(int type, const struct settings *settings)
{
    const struct sockaddr *here = (const struct sockaddr *)&settings->bind, *there = (const struct sockaddr *)&settings->address;
    int fd = socket(here->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if ((type == SOCK_STREAM || probe_whole(fd, here->sa_family) == 0) && bind(fd, here, settings->address_length) == 0 &&
        (connect(fd, there, settings->address_length) == 0 || errno == EINPROGRESS))
        return fd;
    return system_close_failed(fd);
}

/* Send one datagram for each size of the list; adds those that were refused here to the answer, as `9000:EPERM`. */
static void send_all(int fd, const char *sizes, unsigned char *datagram)
{
    const char *gap = "";

    while (*sizes != '\0') {
        const char *end;
        int size = (int)text_number(sizes, &end);
        int old;
        socklen_t length = sizeof old;

        /* What an earlier datagram met is in the queue of errors, too; it is not to fail this one. */
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &old, &length);
        if (send(fd, datagram, (size_t)size, 0) < 0) {
            line_add("%s%d:%s", gap, size, errno_name(errno));
            gap = " ";
        }
        sizes = *end == ',' ? end + 1 : end;
    }
}

static bool sizes_valid(const char *sizes)
{
    if (sizes == NULL)
        return false;
    while (true) {
        const char *end;
        int64_t size = text_number(sizes, &end);

        if (size < HEAD_BYTES || size > SIZE_MAX_BYTES || (*end != ',' && *end != '\0'))
            return false;
        if (*end == '\0')
            return true;
        sizes = end + 1;
    }
}

static const char *parse(struct order *order, struct settings *settings, int64_t *number, int64_t *source, int64_t *stream)
{
    int64_t port = 0;
    const struct order_key keys[] = {
        {"target", 1, 65535, number, false},
        {"source", 1, 65535, source, false},
        {"stream", 0, 1, stream, false},
        {"port", 1, 65535, &port, false},
    };
    const char *wrong = order_numbers(order, keys, sizeof keys / sizeof *keys);

    return wrong != NULL ? wrong : orders_parse_path(order, port, true, settings);
}

void orders_probe(struct order *order)
{
    static unsigned char datagram[SIZE_MAX_BYTES];
    struct settings settings = {0};
    int64_t number = 0, source = 0, stream = 0;
    const char *wrong = parse(order, &settings, &number, &source, &stream), *sizes = order_value(order, "sizes");
    struct target *target;

    if (wrong == NULL && !sizes_valid(sizes))
        wrong = "sizes: expected 20 to 65507, with commas between them";
    if (order_refused(order, wrong))
        return;
    target = find(number);
    if (target == NULL && target_count == TARGETS_MAX) {
        answer_error(order->id, ENOBUFS, "no room for another target");
        return;
    }
    if (target == NULL) {
        int fd = new_socket(SOCK_DGRAM, &settings);

        if (fd < 0) {
            answer_error(order->id, errno, "%s", strerror(errno));
            return;
        }
        target = &targets[target_count++];
        *target = (struct target){.number = (int)number, .datagram_fd = fd, .stream_fd = -1};
    }
    answer_begin_ok(order->id);
    line_add(",\"refused\":\"");
    memcpy(datagram, settings.token, TOKEN_BYTES);
    for (int i = 0; i < 4; i++)
        datagram[TOKEN_BYTES + i] = (unsigned char)((uint32_t)source >> (24 - 8 * i));
    send_all(target->datagram_fd, sizes, datagram);
    line_add("\"");
    if (stream == 1 && target->stream_fd < 0) {
        target->stream_fd = new_socket(SOCK_STREAM, &settings);
        if (target->stream_fd < 0)
            line_add(",\"stream\":\"%s\"", errno_name(errno));
    }
    line_end();
}

/* What came to the receivers, as `source:size`. */
static void add_heard(void)
{
    unsigned char head[HEAD_BYTES];
    const char *gap = "";

    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        ssize_t got;
        int left = TAKEN_MAX;

        if (endpoints[i] == NULL || endpoints[i]->openings.datagram_fd < 0)
            continue;
        while (line_length() < ANSWER_MAX - 2 * LINE_ROOM && left-- > 0 &&
               (got = recv(endpoints[i]->openings.datagram_fd, head, sizeof head, MSG_DONTWAIT | MSG_TRUNC)) >= 0) {
            if (got < HEAD_BYTES || memcmp(head, endpoints[i]->settings.token, TOKEN_BYTES) != 0)
                continue;
            line_add("%s%d:%d", gap, head[TOKEN_BYTES + 2] << 8 | head[TOKEN_BYTES + 3], (int)got);
            gap = " ";
        }
    }
}

/* What ICMP told the targets, as `number:EMSGSIZE:3:4:1500:10.0.0.1`; the address is the last, as it may hold colons. */
static void add_errors(void)
{
    struct probe_error found;
    const char *gap = "";

    for (int i = 0; i < target_count; i++)
        while (line_length() < ANSWER_MAX - LINE_ROOM && probe_error_next(targets[i].datagram_fd, &found)) {
            line_add("%s%d:%s:%d:%d:%u:%s", gap, targets[i].number, errno_name(found.error), found.type, found.code,
                     (unsigned)found.mtu, found.from);
            gap = " ";
        }
}

/* What became of a connection, once: its errno, or 0 with its round trip in microseconds. */
static void add_stream(struct target *target, const char *gap)
{
    struct tcp_info info;
    int error = 0;
    socklen_t length = sizeof error, size = sizeof info;

    memset(&info, 0, sizeof info);
    getsockopt(target->stream_fd, SOL_SOCKET, SO_ERROR, &error, &length);
    getsockopt(target->stream_fd, IPPROTO_TCP, TCP_INFO, &info, &size);
    line_add("%s%d:%s:%u", gap, target->number, error == 0 ? "0" : errno_name(error), (unsigned)info.tcpi_rtt);
    close(target->stream_fd);
    target->stream_fd = -1;
}

void orders_probed(struct order *order)
{
    int64_t last = 0;
    const char *gap = "";

    if (order_refused(order, order_number(order, "last", 0, 1, &last)))
        return;
    answer_begin_ok(order->id);
    line_add(",\"heard\":\"");
    add_heard();
    line_add("\",\"errors\":\"");
    add_errors();
    line_add("\",\"streams\":\"");
    for (int i = 0; i < target_count; i++) {
        struct pollfd ready = {.fd = targets[i].stream_fd, .events = POLLOUT};

        if (ready.fd < 0 || line_length() > ANSWER_MAX - 200 || poll(&ready, 1, 0) != 1)
            continue;
        add_stream(&targets[i], gap);
        gap = " ";
    }
    line_add("\"");
    line_end();
    while (last == 1 && target_count > 0) {
        close(targets[--target_count].datagram_fd);
        if (targets[target_count].stream_fd >= 0)
            close(targets[target_count].stream_fd);
    }
}

/* Probes the paths to other nodes. The receiver is an endpoint that listens with transport=udp. A sender is called a target: two
 * sockets, for datagrams and a connection, to one receiver. No order waits for results; the controller asks for them with `probed`. */
#include "probe.h"

#include "address.h"
#include "endpoint.h"
#include "orders.h"
#include "system.h"
#include "text.h"

#define TARGETS_MAX 256
#define SIZE_MAX_BYTES 65507
#define TAKEN_MAX 8192 /* most datagrams taken from a socket per order, because a stranger may send without end */
#define LINE_ROOM 4000 /* bytes of ANSWER_MAX reserved for the rest of the answer */

struct target {
    int number, datagram_fd, stream_fd;
};

static struct target targets[TARGETS_MAX];
static int target_count;

static struct target *find_target(int64_t number)
{
    for (int i = 0; i < target_count; i++)
        if (targets[i].number == number)
            return &targets[i];
    return NULL;
}

static int new_socket(int type, const struct request *request)
{
    const struct sockaddr *here = (const struct sockaddr *)&request->bind, *there = (const struct sockaddr *)&request->address;
    socklen_t length = address_length(&request->address);
    int fd = socket(here->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (type == SOCK_DGRAM) /* FreeBSD sends no datagram that is larger than the send buffer */
        sockopts_enlarge_buffer(fd, SO_SNDBUF, SIZE_MAX_BYTES);
    if (type == SOCK_STREAM)
        system_reset_at_close(fd, true);
    if ((type == SOCK_STREAM || probe_forbid_fragments(fd, here->sa_family) == 0) && bind(fd, here, length) == 0 &&
        (connect(fd, there, length) == 0 || errno == EINPROGRESS))
        return fd;
    return system_close_failed(fd);
}

/* Send one datagram of each size. Add those that this host refused to the answer, as `9000:EPERM`. */
static void send_all(int fd, const char *sizes, unsigned char *datagram)
{
    const char *gap = "";

    while (*sizes != '\0') {
        const char *end;
        int size = (int)text_number(sizes, &end);
        int old;
        socklen_t length = sizeof old;

        /* Clear the error of an earlier datagram, which would fail this one and is in the error queue anyway. */
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &old, &length);
        if (send(fd, datagram, (size_t)size, 0) < 0) {
            line_add("%s%d:%s", gap, size, errno_name(errno));
            gap = " ";
        }
        sizes = *end == ',' ? end + 1 : end;
    }
}

static bool is_size_list(const char *sizes)
{
    if (sizes == NULL)
        return false;
    while (true) {
        const char *end;
        int64_t size = text_number(sizes, &end);

        if (size < OPENING_BYTES || size > SIZE_MAX_BYTES || (*end != ',' && *end != '\0'))
            return false;
        if (*end == '\0')
            return true;
        sizes = end + 1;
    }
}

static const char *parse_probe(struct order *order, struct request *request, int64_t *number, int64_t *source, int64_t *stream)
{
    int64_t port = 0;
    const struct order_key keys[] = {
        {"target", 1, 65535, number, false},
        {"source", 1, 65535, source, false},
        {"stream", 0, 1, stream, false},
        {"port", 1, 65535, &port, false},
    };
    const char *wrong = order_numbers(order, keys, sizeof keys / sizeof *keys);

    return wrong != NULL ? wrong : endpoint_parse_path(order, port, true, request);
}

void orders_probe(struct order *order)
{
    static unsigned char datagram[SIZE_MAX_BYTES];
    struct request request = {0};
    int64_t number = 0, source = 0, stream = 0;
    const char *wrong = parse_probe(order, &request, &number, &source, &stream), *sizes = order_value(order, "sizes");
    struct target *target;

    if (wrong == NULL && !is_size_list(sizes))
        wrong = "sizes: expected 20 to 65507, with commas between them";
    if (order_refuse(order, wrong))
        return;
    target = find_target(number);
    if (target == NULL && target_count == TARGETS_MAX) {
        answer_error(order->id, ENOBUFS, "no room for another target");
        return;
    }
    if (target == NULL) {
        int fd = new_socket(SOCK_DGRAM, &request);

        if (fd < 0) {
            answer_error(order->id, errno, "%s", strerror(errno));
            return;
        }
        target = &targets[target_count++];
        *target = (struct target){.number = (int)number, .datagram_fd = fd, .stream_fd = -1};
    }
    answer_begin_ok(order->id);
    line_add(",\"refused\":\"");
    memcpy(datagram, request.token, TOKEN_BYTES);
    memcpy(datagram + TOKEN_BYTES, &(uint32_t){htonl((uint32_t)source)}, sizeof(uint32_t));
    send_all(target->datagram_fd, sizes, datagram);
    line_add("\"");
    if (stream == 1 && target->stream_fd < 0) {
        target->stream_fd = new_socket(SOCK_STREAM, &request);
        if (target->stream_fd < 0)
            line_add(",\"stream\":\"%s\"", errno_name(errno));
    }
    line_end();
}

/* Add the datagrams that receivers got, as `source:size`. */
static void add_heard(void)
{
    unsigned char head[OPENING_BYTES];
    const char *gap = "";

    for (const struct endpoint *endpoint = endpoints; endpoint != NULL; endpoint = endpoint->next) {
        ssize_t got;
        int left = TAKEN_MAX, fd = endpoint->openings.datagram_fd;

        while (fd >= 0 && line_length() < ANSWER_MAX - 2 * LINE_ROOM && left-- > 0 &&
               (got = recv(fd, head, sizeof head, MSG_DONTWAIT | MSG_TRUNC)) >= 0) {
            if (got < OPENING_BYTES || memcmp(head, endpoint->request.token, TOKEN_BYTES) != 0)
                continue;
            line_add("%s%d:%d", gap, head[TOKEN_BYTES + 2] << 8 | head[TOKEN_BYTES + 3], (int)got);
            gap = " ";
        }
    }
}

/* Add the ICMP errors, as `target:EMSGSIZE:3:4:1500:10.0.0.1`. The address comes last because it may contain colons. */
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

/* Add the result of a connection and close it: `target:ECONNREFUSED:0`, or `target:0:` and the round trip in microseconds. */
static void add_stream(struct target *target, const char *gap)
{
    struct tcp_totals totals;
    int error = 0;
    socklen_t length = sizeof error;

    getsockopt(target->stream_fd, SOL_SOCKET, SO_ERROR, &error, &length);
    sample_clear(&totals);
    sample_info(target->stream_fd, &totals);
    line_add("%s%d:%s:%lld", gap, target->number, error == 0 ? "0" : errno_name(error),
             (long long)(totals.rtt_us < 0 ? 0 : totals.rtt_us));
    system_close(&target->stream_fd);
}

void orders_probed(struct order *order)
{
    int64_t last = 0;
    const char *gap = "";

    if (order_refuse(order, order_number(order, "last", 0, 1, &last)))
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
        system_close(&targets[--target_count].datagram_fd);
        system_close(&targets[target_count].stream_fd);
    }
}

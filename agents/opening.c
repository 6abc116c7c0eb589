/* Opens data connections, and fills a sender's files. Connections without the token are closed and counted as strangers. */
#include "address.h"
#include "clock.h"
#include "control.h"
#include "endpoint.h"
#include "marks.h"
#include "mptcp.h"
#include "system.h"

#define ACCEPTED 0x06
#define OPENING_S 2
#define PAUSE_NS (100 * MS) /* pause before the next accept after descriptors ran out */

bool opening_is_valid(const unsigned char *bytes, const unsigned char *token, int flows, int *number)
{
    unsigned char difference = 0;
    uint32_t value;

    /* Compare in constant time, so that a stranger cannot find the token byte by byte. */
    for (int i = 0; i < TOKEN_BYTES; i++)
        difference |= (unsigned char)(bytes[i] ^ token[i]);
    memcpy(&value, bytes + TOKEN_BYTES, sizeof value);
    *number = (int)ntohl(value);
    return difference == 0 && ntohl(value) < (uint32_t)flows;
}

static void remove_pending(struct endpoint *endpoint, int place)
{
    endpoint->openings.pending[place] = endpoint->openings.pending[--endpoint->openings.count];
}

static void drop_stranger(struct endpoint *endpoint, int place)
{
    close(endpoint->openings.pending[place].fd);
    endpoint->openings.strangers++;
    remove_pending(endpoint, place);
}

/* Answer the order that waits for all flows to open. */
static void answer_waiting(struct endpoint *endpoint)
{
    if (endpoint->openings.waiting_id != 0 && endpoint->state == READY)
        answer_ok(endpoint->openings.waiting_id);
    else if (endpoint->openings.waiting_id != 0)
        answer_error(endpoint->openings.waiting_id, endpoint->failure.error, "%s", endpoint->failure.message);
    endpoint->openings.waiting_id = 0;
}

static bool is_opening(const struct endpoint *endpoint)
{
    return endpoint->state == LISTENING || endpoint->state == CONNECTING;
}

/* Make the endpoint ready if all its flows are open and all its files are filled. */
static void finish_if_complete(struct endpoint *endpoint)
{
    if (!is_opening(endpoint) || endpoint->openings.opened < endpoint->flow_count || endpoint->files.filling)
        return;
    endpoint->state = READY;
    /* The listening socket stays open for Multipath TCP, because the kernel accepts further subflows only on it. */
    if (!endpoint->request.mptcp)
        endpoint_stop_listening(endpoint);
    while (endpoint->openings.count > 0)
        drop_stranger(endpoint, 0);
    answer_waiting(endpoint);
}

static void drop_oldest(struct endpoint *endpoint)
{
    int oldest = 0;

    for (int i = 1; i < endpoint->openings.count; i++)
        if (endpoint->openings.pending[i].until_ns < endpoint->openings.pending[oldest].until_ns)
            oldest = i;
    drop_stranger(endpoint, oldest);
}

/* End the endpoint because flow `number` or its file could not be opened. */
static void fail(struct endpoint *endpoint, int number, const char *where, int error)
{
    endpoint->state = ENDED;
    endpoint_fail_flow(endpoint, number, where, error);
    answer_waiting(endpoint);
    for (int i = 0; i < endpoint->flow_count; i++)
        flow_close(&endpoint->flows[i]);
}

static bool is_at_own_address(const struct endpoint *endpoint, int fd)
{
    struct sockaddr_storage here;
    socklen_t length = sizeof here;

    return getsockname(fd, (struct sockaddr *)&here, &length) == 0 && address_equal(&here, &endpoint->request.address);
}

static void accept_one(struct endpoint *endpoint, int64_t now)
{
    struct openings *openings = &endpoint->openings;
    int fd = accept4(openings->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        /* The connection stays in the queue. An immediate retry would fail too, for lack of descriptors or memory. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            openings->accept_at_ns = now + PAUSE_NS;
        return;
    }
    /* Until its sender has ended, whoever closes the connection resets it: a stranger, or a failed test, must not keep the port. */
    system_reset_at_close(fd, true);
    if (endpoint->request.mptcp && !is_at_own_address(endpoint, fd)) {
        close(fd);
        openings->strangers++;
        return;
    }
    if (openings->count == OPENINGS_MAX)
        drop_oldest(endpoint);
    openings->accepted++;
    openings->pending[openings->count++] = (struct opening){.fd = fd, .until_ns = now + OPENING_S * SECOND};
}

static int send_acceptance(const struct flow *flow)
{
    const unsigned char bytes[ACCEPTANCE_BYTES] = {ACCEPTED, (unsigned char)(flow->datagram.port >> 8),
                                                   (unsigned char)flow->datagram.port};

    return send(flow->fd, bytes, sizeof bytes, MSG_NOSIGNAL) == (ssize_t)sizeof bytes ? 0 : errno;
}

/* Return what of a flow's opening failed. */
static const char *find_failed_part(const struct flow *flow, int error)
{
    if (error == EADDRINUSE)
        return work_has_datagrams(flow->work) ? "a port for its datagrams" : "a port for its connections";
    return flow->sender ? "datagram socket" : "accept";
}

/* Prepare flow `number`, whose connection was accepted, for its kind of work. A failure ends the endpoint. */
static void open_flow(struct endpoint *endpoint, int number, int fd)
{
    struct flow *flow = &endpoint->flows[number];
    bool marked = sockopts_number(&endpoint->request.sockopts, "dscp") >= 0;
    int error = 0;

    flow->fd = fd;
    if (marked)
        flow->marks = calloc(1, sizeof *flow->marks);
    if (endpoint->request.mptcp)
        flow->multipath = mptcp_new();
    if ((marked && flow->marks == NULL) || (endpoint->request.mptcp && flow->multipath == NULL))
        error = ENOMEM;
    else if (flow->work->open != NULL)
        error = flow->work->open(flow, &endpoint->openings.datagram_fd);
    else if (marked && !flow->sender)
        marks_handshake(fd, endpoint->request.address.ss_family, flow->marks);
    if (error == 0 && !flow->sender)
        error = send_acceptance(flow);
    if (error != 0) {
        fail(endpoint, number, find_failed_part(flow, error), error);
        return;
    }
    endpoint->openings.opened++;
    finish_if_complete(endpoint);
}

static void read_opening(struct endpoint *endpoint, int place)
{
    struct opening *opening = &endpoint->openings.pending[place];
    int number, fd = opening->fd;
    ssize_t got = recv(fd, opening->bytes + opening->got, (size_t)(OPENING_BYTES - opening->got), 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    opening->got += got > 0 ? (int)got : 0;
    if (got > 0 && opening->got < OPENING_BYTES)
        return;
    if (got <= 0 || !opening_is_valid(opening->bytes, endpoint->request.token, endpoint->flow_count, &number) ||
        endpoint->flows[number].fd >= 0) {
        drop_stranger(endpoint, place);
        return;
    }
    remove_pending(endpoint, place);
    open_flow(endpoint, number, fd);
}

static void write_opening(struct endpoint *endpoint, struct opening *opening)
{
    unsigned char bytes[OPENING_BYTES];
    uint32_t number = htonl((uint32_t)opening->number);
    int error = 0;
    socklen_t length = sizeof error;

    if (getsockopt(opening->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    memcpy(bytes, endpoint->request.token, TOKEN_BYTES);
    memcpy(bytes + TOKEN_BYTES, &number, sizeof number);
    if (error == 0 && send(opening->fd, bytes, sizeof bytes, MSG_NOSIGNAL) != (ssize_t)sizeof bytes)
        error = errno;
    if (error != 0)
        fail(endpoint, opening->number, "connect", error);
    else
        opening->got = OPENING_BYTES;
}

static void read_acceptance(struct endpoint *endpoint, int place)
{
    struct opening *opening = &endpoint->openings.pending[place];
    int number = opening->number, fd = opening->fd;
    ssize_t got = recv(fd, opening->bytes + opening->answered, (size_t)(ACCEPTANCE_BYTES - opening->answered), 0);

    if (got < 0 && errno != EAGAIN && errno != EINTR)
        fail(endpoint, number, "connect", errno);
    if (got < 0)
        return;
    opening->answered += (int)got;
    if (got == 0 || opening->bytes[0] != ACCEPTED) {
        fail(endpoint, number, "connect", ECONNABORTED);
    } else if (opening->answered == ACCEPTANCE_BYTES) {
        endpoint->flows[number].datagram.port = opening->bytes[1] << 8 | opening->bytes[2];
        remove_pending(endpoint, place);
        open_flow(endpoint, number, fd);
    }
}

void opening_poll(struct endpoint *endpoint, struct pollfd *polls, int room)
{
    struct openings *openings = &endpoint->openings;

    openings->polled = 0;
    if (!is_opening(endpoint))
        return;
    if (openings->listen_fd >= 0 && room > 0 && openings->accept_at_ns <= clock_now())
        polls[openings->polled++] = (struct pollfd){.fd = openings->listen_fd, .events = POLLIN};
    for (int i = 0; i < openings->count && openings->polled < room; i++) {
        bool writing = endpoint->sender && openings->pending[i].got == 0;

        polls[openings->polled++] = (struct pollfd){.fd = openings->pending[i].fd, .events = writing ? POLLOUT : POLLIN};
    }
}

static int find_place(const struct endpoint *endpoint, int fd)
{
    for (int i = 0; i < endpoint->openings.count; i++)
        if (endpoint->openings.pending[i].fd == fd)
            return i;
    return -1;
}

static void serve_one(struct endpoint *endpoint, int fd)
{
    int place = find_place(endpoint, fd);

    if (fd == endpoint->openings.listen_fd)
        accept_one(endpoint, clock_now());
    else if (place < 0)
        return;
    else if (!endpoint->sender)
        read_opening(endpoint, place);
    else if (endpoint->openings.pending[place].got == 0)
        write_opening(endpoint, &endpoint->openings.pending[place]);
    else
        read_acceptance(endpoint, place);
}

/* Return why some flows are not open. */
static const char *explain_missing(const struct endpoint *endpoint)
{
    const struct openings *openings = &endpoint->openings;

    if (!endpoint->sender)
        return openings->accepted == 0 ? "no connection came" : "no more connections came with their opening";
    if (openings->count == 0)
        return "the files to be sent were not made in time";
    for (int i = 0; i < openings->count; i++)
        if (openings->pending[i].got != 0)
            return "connected, but not accepted";
    return openings->opened == 0 ? "no answer, not even a refusal (a firewall that drops, or no such host)"
                                 : "no answer to the others (a firewall that limits connections, or a full queue of the receiver)";
}

/* Say that the listening socket dropped connections, and what makes its queue longer. Returns false if it dropped none, or if that is
 * unknown. */
static bool blame_queue(struct endpoint *endpoint)
{
    const struct openings *openings = &endpoint->openings;
    int64_t dropped = 0;
    int room = 0;

    if (endpoint->sender || !system_queue(openings->listen_fd, &room, &dropped) || dropped == 0)
        return false;
    endpoint_fail(endpoint, ENOBUFS,
                  "%d of %d flows opened in time at %s: its listening socket, whose queue holds %d, dropped connections %lld times: "
                  "raise %s",
                  openings->opened, endpoint->flow_count, endpoint->peer, room, (long long)dropped,
                  room < FLOWS_MAX ? "net.core.somaxconn" : "net.ipv4.tcp_max_syn_backlog");
    return true;
}

static void expire(struct endpoint *endpoint, int64_t now)
{
    if (!is_opening(endpoint))
        return;
    for (int i = endpoint->openings.count - 1; i >= 0 && !endpoint->sender; i--)
        if (endpoint->openings.pending[i].until_ns <= now)
            drop_stranger(endpoint, i);
    if (now < endpoint->openings.until_ns)
        return;
    endpoint->state = ENDED;
    if (!blame_queue(endpoint))
        endpoint_fail(endpoint, ETIMEDOUT, "%d of %d flows opened in time %s %s: %s", endpoint->openings.opened, endpoint->flow_count,
                      endpoint->sender ? "to" : "at", endpoint->peer, explain_missing(endpoint));
    answer_waiting(endpoint);
    endpoint_stop_listening(endpoint);
}

static void *fill_files(void *argument)
{
    struct endpoint *endpoint = argument;

    for (int i = 0; i < endpoint->flow_count && endpoint->files.error == 0; i++)
        endpoint->files.error = file_fill(endpoint->flows[i].file.fd, endpoint->request.size, &endpoint->files.stop);
    atomic_store(&endpoint->files.filled, true);
    wake_main_loop();
    return NULL;
}

int opening_begin_files(struct endpoint *endpoint)
{
    int error;

    if (!endpoint->request.disk)
        return 0;
    for (int i = 0; i < endpoint->flow_count; i++) {
        endpoint->flows[i].file.fd = file_open(endpoint->request.folder, endpoint->sender);
        if (endpoint->flows[i].file.fd < 0)
            return errno;
        endpoint->flows[i].file.disk_ns = 0;
    }
    if (!endpoint->sender)
        return 0;
    error = pthread_create(&endpoint->files.thread, NULL, fill_files, endpoint);
    endpoint->files.filling = error == 0;
    return error;
}

static void serve_files(struct endpoint *endpoint)
{
    if (!endpoint->files.filling || !atomic_load(&endpoint->files.filled))
        return;
    pthread_join(endpoint->files.thread, NULL);
    endpoint->files.filling = false;
    if (endpoint->files.error != 0)
        fail(endpoint, 0, "making the file", endpoint->files.error);
    else
        finish_if_complete(endpoint);
}

void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int64_t now)
{
    for (int i = 0; polls != NULL && i < endpoint->openings.polled; i++)
        if (polls[i].revents != 0 && is_opening(endpoint))
            serve_one(endpoint, polls[i].fd);
    expire(endpoint, now);
    serve_files(endpoint);
}

int64_t opening_deadline(const struct endpoint *endpoint, int64_t now)
{
    const struct openings *openings = &endpoint->openings;
    int64_t first = openings->until_ns;

    if (!is_opening(endpoint))
        return INT64_MAX;
    if (openings->accept_at_ns > now)
        first = clock_sooner(first, openings->accept_at_ns);
    for (int i = 0; i < openings->count && !endpoint->sender; i++)
        first = clock_sooner(first, openings->pending[i].until_ns);
    return first;
}

void opening_begin(struct endpoint *endpoint)
{
    for (int i = 0; i < endpoint->flow_count; i++)
        endpoint->openings.pending[endpoint->openings.count++] = (struct opening){.fd = endpoint->flows[i].fd, .number = i};
}

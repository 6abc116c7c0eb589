/* The openings of data connections, and a sender's files, which have to be there before its flows count as open. Connections that do not
 * bring the token are dropped and counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "endpoint.h"
#include "marks.h"
#include "mptcp.h"

#define ACCEPTED 0x06
#define OPENING_S 2
#define PAUSE_NS (100 * MS) /* without a descriptor for a connection, until the next try */

bool opening_valid(const unsigned char *bytes, const unsigned char *token, int flows, int *number)
{
    const unsigned char *n = bytes + TOKEN_BYTES;
    uint32_t value = (uint32_t)n[0] << 24 | (uint32_t)n[1] << 16 | (uint32_t)n[2] << 8 | n[3];
    unsigned char difference = 0;

    /* In constant time: a stranger must not learn the token byte by byte. */
    for (int i = 0; i < TOKEN_BYTES; i++)
        difference |= (unsigned char)(bytes[i] ^ token[i]);
    if (difference != 0 || value >= (uint32_t)flows)
        return false;
    *number = (int)value;
    return true;
}

static void forget(struct endpoint *endpoint, int place)
{
    endpoint->openings.pending[place] = endpoint->openings.pending[--endpoint->openings.count];
}

static void drop_stranger(struct endpoint *endpoint, int place)
{
    close(endpoint->openings.pending[place].fd);
    endpoint->openings.strangers++;
    forget(endpoint, place);
}

void opening_stop(struct openings *openings)
{
    if (openings->listen_fd >= 0)
        close(openings->listen_fd);
    if (openings->datagram_fd >= 0)
        close(openings->datagram_fd);
    openings->listen_fd = openings->datagram_fd = -1;
}

/* Answer the order that waits for the flows: they are open, or why they are not. */
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

/* Make the endpoint ready once all its flows and files are there. */
static void finish_if_complete(struct endpoint *endpoint)
{
    if (!is_opening(endpoint) || endpoint->openings.opened < endpoint->flow_count || endpoint->files.filling)
        return;
    endpoint->state = READY;
    /* A further subflow is only taken where there is a listening socket. */
    if (!endpoint->settings.mptcp)
        opening_stop(&endpoint->openings);
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

/* End the endpoint: flow `number` could not be opened, or its file not be made. */
static void fail(struct endpoint *endpoint, int number, const char *where, int error)
{
    endpoint->state = ENDED;
    endpoint_fail(endpoint, error, "flow %d %s %s: %s: %s", number, endpoint->sender ? "to" : "at", endpoint->peer, where,
                  strerror(error));
    answer_waiting(endpoint);
    for (int i = 0; i < endpoint->flow_count; i++)
        flow_close(&endpoint->flows[i]);
}

static bool at_own_address(const struct endpoint *endpoint, int fd)
{
    const struct sockaddr_storage *own = &endpoint->settings.address;
    struct sockaddr_storage here;
    socklen_t length = sizeof here;

    return getsockname(fd, (struct sockaddr *)&here, &length) == 0 && here.ss_family == own->ss_family &&
           memcmp(address_bytes(&here), address_bytes(own),
                  own->ss_family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr)) == 0;
}

static void accept_one(struct endpoint *endpoint, int64_t now)
{
    struct openings *openings = &endpoint->openings;
    int fd = accept4(openings->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        /* Without a descriptor or memory for the connection it stays in the queue: a try at once would fail, too. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            openings->accept_at_ns = now + PAUSE_NS;
        return;
    }
    if (endpoint->settings.mptcp && !at_own_address(endpoint, fd)) {
        close(fd);
        openings->strangers++;
        return;
    }
    if (openings->count == OPENINGS_MAX)
        drop_oldest(endpoint);
    openings->accepted++;
    openings->pending[openings->count++] = (struct opening){.fd = fd, .until_ns = now + OPENING_S * SECOND};
}

/* Make what the kind of work needs, now that the connection of flow `number` is accepted. If that fails, the
 * endpoint ends. */
static void open_flow(struct endpoint *endpoint, int number, int fd)
{
    static const unsigned char accepted = ACCEPTED;
    struct flow *flow = &endpoint->flows[number];
    bool marked = sockopts_marked(&endpoint->settings.sockopts);
    int error = 0;

    flow->fd = fd;
    if (marked)
        flow->marks = calloc(1, sizeof *flow->marks);
    if (endpoint->settings.mptcp)
        flow->multipath = mptcp_new();
    if ((marked && flow->marks == NULL) || (endpoint->settings.mptcp && flow->multipath == NULL))
        error = ENOMEM;
    else if (flow->work->open != NULL)
        error = flow->work->open(flow);
    else if (marked && !flow->sender)
        marks_handshake(fd, endpoint->settings.address.ss_family, flow->marks);
    if (error == 0 && !flow->sender && send(fd, &accepted, 1, MSG_NOSIGNAL) != 1)
        error = errno;
    if (error != 0) {
        fail(endpoint, number, flow->sender ? "datagram socket" : "accept", error);
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
    if (got <= 0 || !opening_valid(opening->bytes, endpoint->settings.token, endpoint->flow_count, &number) ||
        endpoint->flows[number].fd >= 0) {
        drop_stranger(endpoint, place);
        return;
    }
    forget(endpoint, place);
    open_flow(endpoint, number, fd);
}

static void write_opening(struct endpoint *endpoint, struct opening *opening)
{
    unsigned char bytes[OPENING_BYTES];
    int error = 0;
    socklen_t length = sizeof error;

    if (getsockopt(opening->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    memcpy(bytes, endpoint->settings.token, TOKEN_BYTES);
    for (int i = 0; i < 4; i++)
        bytes[TOKEN_BYTES + i] = (unsigned char)((unsigned)opening->number >> (24 - 8 * i));
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
    unsigned char byte;
    ssize_t got = recv(opening->fd, &byte, 1, 0);

    if (got == 1 && byte == ACCEPTED) {
        int number = opening->number, fd = opening->fd;

        forget(endpoint, place);
        open_flow(endpoint, number, fd);
    } else if (got >= 0) {
        fail(endpoint, opening->number, "connect", ECONNABORTED);
    } else if (errno != EAGAIN && errno != EINTR) {
        fail(endpoint, opening->number, "connect", errno);
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

static int place_of(const struct endpoint *endpoint, int fd)
{
    for (int i = 0; i < endpoint->openings.count; i++)
        if (endpoint->openings.pending[i].fd == fd)
            return i;
    return -1;
}

static void serve_one(struct endpoint *endpoint, int fd)
{
    int place = place_of(endpoint, fd);

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

/* Return what the flows that are not open lack. */
static const char *missing(const struct endpoint *endpoint)
{
    const struct openings *openings = &endpoint->openings;

    if (!endpoint->sender)
        return openings->accepted == 0 ? "no connection came" : "no more connections came with their opening";
    if (openings->count == 0)
        return "the files to be sent were not made in time";
    return openings->pending[0].got == 0 ? "no answer, not even a refusal (a firewall that drops, or no such host)"
                                         : "connected, but not accepted";
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
    endpoint_fail(endpoint, ETIMEDOUT, "%d of %d flows opened in time %s %s: %s", endpoint->openings.opened, endpoint->flow_count,
                  endpoint->sender ? "to" : "at", endpoint->peer, missing(endpoint));
    answer_waiting(endpoint);
    opening_stop(&endpoint->openings);
}

static void *fill_files(void *argument)
{
    struct endpoint *endpoint = argument;
    uint64_t one = 1;

    for (int i = 0; i < endpoint->flow_count && endpoint->files.error == 0; i++)
        endpoint->files.error = file_fill(endpoint->flows[i].file.fd, endpoint->settings.size, &endpoint->files.stop);
    atomic_store(&endpoint->files.filled, true);
    return write(wake_fd, &one, sizeof one) < 0 ? NULL : NULL; /* a full counter: the main loop is awake anyway */
}

int opening_begin_files(struct endpoint *endpoint)
{
    int error;

    if (!endpoint->settings.disk)
        return 0;
    for (int i = 0; i < endpoint->flow_count; i++) {
        endpoint->flows[i].file.fd = file_open(endpoint->settings.folder);
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
    if (openings->accept_at_ns > now && openings->accept_at_ns < first)
        first = openings->accept_at_ns;
    for (int i = 0; i < openings->count && !endpoint->sender; i++)
        if (openings->pending[i].until_ns < first)
            first = openings->pending[i].until_ns;
    return first;
}

void opening_begin(struct endpoint *endpoint)
{
    for (int i = 0; i < endpoint->flow_count; i++)
        endpoint->openings.pending[endpoint->openings.count++] = (struct opening){.fd = endpoint->flows[i].fd, .number = i};
}

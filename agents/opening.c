/* Connections that do not bring the token are dropped and counted. */
#include "opening.h"

#include <errno.h>
#include <netinet/in.h>
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

/* Tell who waits for the flows that they are open, or why they are not. */
static void answer_waiting(struct endpoint *endpoint)
{
    if (endpoint->openings.waiting_id != 0 && endpoint->state == READY)
        answer_ok(endpoint->openings.waiting_id);
    else if (endpoint->openings.waiting_id != 0)
        answer_error(endpoint->openings.waiting_id, endpoint->failure.error, "%s", endpoint->failure.message);
    endpoint->openings.waiting_id = 0;
}

static void opened(struct endpoint *endpoint)
{
    if (++endpoint->openings.opened == endpoint->flow_count && !endpoint->files.filling)
        opening_finish(endpoint);
}

void opening_finish(struct endpoint *endpoint)
{
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

static bool at_own_address(const struct endpoint *endpoint, int fd)
{
    const struct sockaddr_storage *own = &endpoint->settings.address;
    struct sockaddr_storage here;
    socklen_t length = sizeof here;

    if (getsockname(fd, (struct sockaddr *)&here, &length) != 0 || here.ss_family != own->ss_family)
        return false;
    if (here.ss_family == AF_INET6)
        return memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, &((const struct sockaddr_in6 *)own)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    return ((struct sockaddr_in *)&here)->sin_addr.s_addr == ((const struct sockaddr_in *)own)->sin_addr.s_addr;
}

static void accept_one(struct endpoint *endpoint, int64_t now)
{
    struct openings *openings = &endpoint->openings;
    int fd = accept4(openings->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        /* It went away again; or there is no descriptor or memory for it: it stays in the queue, and asking at once would be in vain. */
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

/* The connection of flow `number` is accepted: what its kind of work needs is made. 0 or an errno value. */
static int open_flow(struct endpoint *endpoint, int number, int fd)
{
    struct flow *flow = &endpoint->flows[number];

    flow->fd = fd;
    if (sockopts_marked(flow->asked)) {
        flow->marks = calloc(1, sizeof *flow->marks);
        if (flow->marks == NULL)
            return ENOMEM;
    }
    if (endpoint->settings.mptcp && (flow->multipath = mptcp_new()) == NULL)
        return ENOMEM;
    if (flow->work->open != NULL)
        return flow->work->open(flow);
    if (flow->marks != NULL && !flow->sender)
        marks_handshake(fd, flow->family, flow->marks);
    return 0;
}

static void read_opening(struct endpoint *endpoint, int place)
{
    static const unsigned char accepted = ACCEPTED;
    struct opening *opening = &endpoint->openings.pending[place];
    int number, fd, error;
    ssize_t got = recv(opening->fd, opening->bytes + opening->got, (size_t)(OPENING_BYTES - opening->got), 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        drop_stranger(endpoint, place);
        return;
    }
    opening->got += (int)got;
    if (opening->got < OPENING_BYTES)
        return;
    if (!opening_valid(opening->bytes, endpoint->settings.token, endpoint->flow_count, &number) ||
        endpoint->flows[number].fd >= 0) {
        drop_stranger(endpoint, place);
        return;
    }
    fd = opening->fd;
    forget(endpoint, place);
    error = open_flow(endpoint, number, fd);
    if (error == 0 && send(fd, &accepted, 1, MSG_NOSIGNAL) != 1)
        error = errno;
    if (error != 0)
        opening_fail(endpoint, number, "accept", error);
    else
        opened(endpoint);
}

void opening_fail(struct endpoint *endpoint, int number, const char *where, int error)
{
    endpoint->state = ENDED;
    endpoint_fail(endpoint, error, "flow %d %s %s: %s: %s", number, endpoint->sender ? "to" : "at", endpoint->peer, where,
                  strerror(error));
    answer_waiting(endpoint);
    for (int i = 0; i < endpoint->flow_count; i++)
        flow_free(&endpoint->flows[i]);
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
        opening_fail(endpoint, opening->number, "connect", error);
    else
        opening->got = OPENING_BYTES;
}

static void read_acceptance(struct endpoint *endpoint, int place)
{
    struct opening *opening = &endpoint->openings.pending[place];
    unsigned char byte;
    ssize_t got = recv(opening->fd, &byte, 1, 0);

    if (got == 1 && byte == ACCEPTED) {
        int number = opening->number, error = open_flow(endpoint, number, opening->fd);

        forget(endpoint, place);
        if (error != 0)
            opening_fail(endpoint, number, "datagram socket", error);
        else
            opened(endpoint);
    } else if (got >= 0) {
        opening_fail(endpoint, opening->number, "connect", ECONNABORTED);
    } else if (errno != EAGAIN && errno != EINTR) {
        opening_fail(endpoint, opening->number, "connect", errno);
    }
}

int opening_polls(const struct endpoint *endpoint, struct pollfd *polls, int room)
{
    int count = 0;
    bool paused = endpoint->openings.accept_at_ns > clock_now();

    if (endpoint->state != LISTENING && endpoint->state != CONNECTING)
        return 0;
    if (endpoint->openings.listen_fd >= 0 && count < room && !paused)
        polls[count++] = (struct pollfd){.fd = endpoint->openings.listen_fd, .events = POLLIN};
    for (int i = 0; i < endpoint->openings.count && count < room; i++) {
        const struct opening *opening = &endpoint->openings.pending[i];
        bool writing = endpoint->sender && opening->got == 0;

        polls[count++] = (struct pollfd){.fd = opening->fd, .events = writing ? POLLOUT : POLLIN};
    }
    return count;
}

static int place_of(const struct endpoint *endpoint, int fd)
{
    for (int i = 0; i < endpoint->openings.count; i++)
        if (endpoint->openings.pending[i].fd == fd)
            return i;
    return -1;
}

void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int count)
{
    int place;

    for (int i = 0; i < count; i++) {
        if (polls[i].revents == 0 || (endpoint->state != LISTENING && endpoint->state != CONNECTING))
            continue;
        if (polls[i].fd == endpoint->openings.listen_fd)
            accept_one(endpoint, clock_now());
        else if ((place = place_of(endpoint, polls[i].fd)) < 0)
            continue;
        else if (!endpoint->sender)
            read_opening(endpoint, place);
        else if (endpoint->openings.pending[place].got == 0)
            write_opening(endpoint, &endpoint->openings.pending[place]);
        else
            read_acceptance(endpoint, place);
    }
}

/* What those that are not open lack. */
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

void opening_expire(struct endpoint *endpoint, int64_t now)
{
    if (endpoint->state != LISTENING && endpoint->state != CONNECTING)
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

int64_t opening_deadline(const struct endpoint *endpoint, int64_t now)
{
    const struct openings *openings = &endpoint->openings;
    int64_t first = openings->until_ns;

    if (endpoint->state != LISTENING && endpoint->state != CONNECTING)
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

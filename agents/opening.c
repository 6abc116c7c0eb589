/* The opening of data connections: who brings the token is let in; whoever else is dropped and counted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "endpoint.h"

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
    endpoint->openings[place] = endpoint->openings[--endpoint->opening_count];
}

static void drop_stranger(struct endpoint *endpoint, int place)
{
    close(endpoint->openings[place].fd);
    endpoint->strangers++;
    forget(endpoint, place);
}

static void answer_waiting(struct endpoint *endpoint)
{
    if (endpoint->waiting_id != 0)
        answer_ok(endpoint->waiting_id);
    endpoint->waiting_id = 0;
}

static void opened(struct endpoint *endpoint)
{
    if (++endpoint->flows_open == endpoint->flow_count && !endpoint->filling)
        opening_finish(endpoint);
}

void opening_finish(struct endpoint *endpoint)
{
    endpoint->state = READY;
    if (endpoint->listen_fd >= 0)
        close(endpoint->listen_fd);
    endpoint->listen_fd = -1;
    while (endpoint->opening_count > 0)
        drop_stranger(endpoint, 0);
    answer_waiting(endpoint);
}

static void accept_one(struct endpoint *endpoint, int64_t now)
{
    int oldest = 0;
    int fd = accept4(endpoint->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return; /* it went away again, or there is no descriptor for it: its peer will see */
    if (endpoint->opening_count == OPENINGS_MAX) {
        for (int i = 1; i < endpoint->opening_count; i++)
            if (endpoint->openings[i].until_ns < endpoint->openings[oldest].until_ns)
                oldest = i;
        drop_stranger(endpoint, oldest);
    }
    endpoint->openings[endpoint->opening_count++] = (struct opening){.fd = fd, .until_ns = now + OPENING_S * SECOND};
}

static void read_opening(struct endpoint *endpoint, int place)
{
    static const unsigned char accepted = ACCEPTED;
    struct opening *opening = &endpoint->openings[place];
    struct flow *flow;
    int number;
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
        endpoint->flows[number].fd >= 0 || send(opening->fd, &accepted, 1, MSG_NOSIGNAL) != 1) {
        drop_stranger(endpoint, place);
        return;
    }
    flow = &endpoint->flows[number];
    flow->fd = opening->fd;
    forget(endpoint, place);
    opened(endpoint);
}

void opening_fail(struct endpoint *endpoint, int number, const char *where, int error)
{
    endpoint->state = ENDED;
    endpoint_fail(endpoint, error, "flow %d: %s: %s", number, where, strerror(error));
    if (endpoint->waiting_id != 0)
        answer_error(endpoint->waiting_id, error, "%s", endpoint->message);
    endpoint->waiting_id = 0;
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
    struct opening *opening = &endpoint->openings[place];
    unsigned char byte;
    ssize_t got = recv(opening->fd, &byte, 1, 0);

    if (got == 1 && byte == ACCEPTED) {
        forget(endpoint, place);
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

    if (endpoint->state != LISTENING && endpoint->state != CONNECTING)
        return 0;
    if (endpoint->listen_fd >= 0 && count < room)
        polls[count++] = (struct pollfd){.fd = endpoint->listen_fd, .events = POLLIN};
    for (int i = 0; i < endpoint->opening_count && count < room; i++) {
        const struct opening *opening = &endpoint->openings[i];
        bool writing = endpoint->sender && opening->got == 0;

        polls[count++] = (struct pollfd){.fd = opening->fd, .events = writing ? POLLOUT : POLLIN};
    }
    return count;
}

static int place_of(const struct endpoint *endpoint, int fd)
{
    for (int i = 0; i < endpoint->opening_count; i++)
        if (endpoint->openings[i].fd == fd)
            return i;
    return -1;
}

void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int count)
{
    int place;

    for (int i = 0; i < count; i++) {
        if (polls[i].revents == 0 || (endpoint->state != LISTENING && endpoint->state != CONNECTING))
            continue;
        if (polls[i].fd == endpoint->listen_fd)
            accept_one(endpoint, clock_now());
        else if ((place = place_of(endpoint, polls[i].fd)) < 0)
            continue;
        else if (!endpoint->sender)
            read_opening(endpoint, place);
        else if (endpoint->openings[place].got == 0)
            write_opening(endpoint, &endpoint->openings[place]);
        else
            read_acceptance(endpoint, place);
    }
}

void opening_expire(struct endpoint *endpoint, int64_t now)
{
    if (endpoint->state != LISTENING && endpoint->state != CONNECTING)
        return;
    for (int i = endpoint->opening_count - 1; i >= 0 && !endpoint->sender; i--)
        if (endpoint->openings[i].until_ns <= now)
            drop_stranger(endpoint, i);
    if (now < endpoint->wait_until_ns)
        return;
    endpoint->state = ENDED;
    endpoint_fail(endpoint, ETIMEDOUT, "%d of %d flows opened in time", endpoint->flows_open, endpoint->flow_count);
    if (endpoint->waiting_id != 0)
        answer_error(endpoint->waiting_id, ETIMEDOUT, "%s", endpoint->message);
    endpoint->waiting_id = 0;
    if (endpoint->listen_fd >= 0)
        close(endpoint->listen_fd);
    endpoint->listen_fd = -1;
}

int64_t opening_deadline(const struct endpoint *endpoint)
{
    int64_t first = endpoint->wait_until_ns;

    if (endpoint->state != LISTENING && endpoint->state != CONNECTING)
        return INT64_MAX;
    for (int i = 0; i < endpoint->opening_count && !endpoint->sender; i++)
        if (endpoint->openings[i].until_ns < first)
            first = endpoint->openings[i].until_ns;
    return first;
}

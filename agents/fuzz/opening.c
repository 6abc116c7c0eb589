/* Fuzz: strangers and flows on the connections of a receiver or a sender, in any pieces and order. Each step of the input names a
 * connection and what it does. Only a connection that begins with the token and the number of a flow may become a flow. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "endpoint.h"
#include "work.h"

#define PEERS 12
#define FLOWS 5
#define KEPT 64

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char token[TOKEN_BYTES + 1] = "0123456789abcdef";

/* The ends of the connections that do not belong to the agent. */
static struct peer {
    int fd, theirs; /* this end, and the agent's end; -1: none */
    size_t sent;
    unsigned char bytes[KEPT];
} peers[PEERS];

int LLVMFuzzerInitialize(int *count, char ***words)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)count;
    (void)words;
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        abort();
    return 0;
}

static void come(struct endpoint *endpoint, struct peer *peer, int number)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    *peer = (struct peer){.fd = ends[0], .theirs = ends[1]};
    if (number >= 0)
        endpoint->flows[number].fd = ends[1];
    if (endpoint->openings.count == OPENINGS_MAX)
        abort();
    if (!endpoint->sender)
        endpoint->openings.pending[endpoint->openings.count++] =
            (struct opening){.fd = ends[1], .until_ns = clock_now() + SECOND};
}

static void go(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
}

static void serve(struct endpoint *endpoint)
{
    struct pollfd polls[OPENINGS_MAX];

    opening_poll(endpoint, polls, OPENINGS_MAX);
    if (poll(polls, (nfds_t)endpoint->openings.polled, 0) > 0)
        opening_serve(endpoint, polls, clock_now());
    if (!control_flush() || control_has_lost_line())
        abort();
}

/* Every flow of a receiver must have sent the token and its number. */
static void check(const struct endpoint *endpoint)
{
    int open = 0;

    for (int i = 0; i < endpoint->flow_count && !endpoint->sender; i++) {
        bool entitled = endpoint->flows[i].fd < 0;

        open += endpoint->flows[i].fd >= 0;
        for (int k = 0; k < PEERS && !entitled; k++)
            entitled = peers[k].sent >= OPENING_BYTES && memcmp(peers[k].bytes, token, TOKEN_BYTES) == 0 &&
                       memcmp(peers[k].bytes + TOKEN_BYTES, (unsigned char[4]){0, 0, 0, (unsigned char)i}, 4) == 0;
        if (!entitled)
            abort();
    }
    if (endpoint->openings.count < 0 || endpoint->openings.opened > endpoint->flow_count ||
        (!endpoint->sender && endpoint->state != ENDED && endpoint->openings.opened != open))
        abort();
}

static void step(struct endpoint *endpoint, struct peer *peer, int act, const uint8_t *bytes, size_t length)
{
    if (act == 0 && peer->fd < 0 && !endpoint->sender && endpoint->state == LISTENING && peer->theirs < 0)
        come(endpoint, peer, -1);
    else if (act == 1)
        go(peer);
    else if (act == 2)
        opening_serve(endpoint, NULL, clock_now() + 2 * SECOND * (int64_t)length);
    else if (peer->fd >= 0 && send(peer->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length) {
        if (peer->sent + length <= KEPT)
            memcpy(peer->bytes + peer->sent, bytes, length);
        peer->sent += length;
    }
    serve(endpoint);
    check(endpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request request = {.work = work_find("", "tcp"), .interval_ns = SECOND};
    struct endpoint *endpoint;
    int number = -1;

    if (size < OPENING_BYTES + 1)
        return 0;
    /* Call opening_is_valid directly, with any number of flows. */
    if (opening_is_valid(data, token, data[OPENING_BYTES] % FLOWS_MAX + 1, &number) !=
        (memcmp(data, token, TOKEN_BYTES) == 0 && number >= 0 && number <= data[OPENING_BYTES] % FLOWS_MAX))
        abort();
    memcpy(request.token, token, TOKEN_BYTES);
    sockopts_clear(&request.sockopts);
    endpoint = endpoint_new(1, (data[0] & 1) != 0, 1 + data[1] % FLOWS, &request);
    if (endpoint == NULL)
        return 0;
    endpoint->openings.until_ns = clock_now() + 60 * SECOND;
    endpoint->openings.waiting_id = (data[0] & 2) != 0 ? 7 : 0;
    for (int i = 0; i < PEERS; i++)
        peers[i] = (struct peer){.fd = -1, .theirs = -1};
    for (int i = 0; i < endpoint->flow_count && endpoint->sender; i++)
        come(endpoint, &peers[i], i);
    if (endpoint->sender)
        opening_begin(endpoint);
    for (size_t at = OPENING_BYTES; at + 2 <= size;) {
        size_t length = data[at + 1] % 32;

        if (at + 2 + length > size)
            length = size - at - 2;
        step(endpoint, &peers[(data[at] >> 2) % PEERS], data[at] & 3, data + at + 2, length);
        at += 2 + length;
    }
    endpoint_free(endpoint);
    for (int i = 0; i < PEERS; i++)
        go(&peers[i]);
    return 0;
}

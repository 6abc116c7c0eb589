/* The list of endpoints. Makes, finds and frees endpoints with their threads and sockets. */
#include "endpoint.h"

#include <stdarg.h>

#include "address.h"
#include "control.h"
#include "system.h"
#include "text.h"

struct endpoint *endpoints;

struct endpoint *endpoint_find(int64_t number)
{
    struct endpoint *endpoint = endpoints;

    while (endpoint != NULL && endpoint->number != number)
        endpoint = endpoint->next;
    return endpoint;
}

static bool parse_token(const char *text, unsigned char *token)
{
    if (text == NULL || strlen(text) != 2 * TOKEN_BYTES)
        return false;
    for (int i = 0; i < TOKEN_BYTES; i++) {
        int byte = text_hex(text + 2 * i);

        if (byte < 0)
            return false;
        token[i] = (unsigned char)byte;
    }
    return true;
}

const char *endpoint_parse_path(struct order *order, int64_t port, bool bind, struct request *request)
{
    if (!address_parse(order_value(order, "address"), port, &request->address))
        return "address: expected an IPv4 or IPv6 address";
    if (bind && (!address_parse(order_value(order, "bind"), 0, &request->bind) ||
                 request->bind.ss_family != request->address.ss_family))
        return "bind: expected an address of the family of address";
    if (!parse_token(order_value(order, "token"), request->token))
        return "token: expected 32 hexadecimal digits";
    return NULL;
}

struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows, const struct request *request)
{
    struct endpoint *endpoint, **last = &endpoints;
    int count = 0;

    for (; *last != NULL; last = &(*last)->next)
        count++;
    if (count == ENDPOINTS_MAX) {
        errno = ENOBUFS;
        return NULL;
    }
    endpoint = calloc(1, sizeof *endpoint + (size_t)flows * sizeof *endpoint->flows);
    if (endpoint == NULL)
        return NULL;
    endpoint->number = (int)number;
    endpoint->sender = sender;
    endpoint->state = sender ? CONNECTING : LISTENING;
    endpoint->request = *request;
    endpoint->flow_count = (int)flows;
    endpoint->openings.listen_fd = endpoint->openings.datagram_fd = -1;
    /* -1: unknown, until it starts. */
    memset(&endpoint->life.before, 0xff, sizeof endpoint->life.before);
    memset(&endpoint->life.nic, 0xff, sizeof endpoint->life.nic);
    memset(&endpoint->life.stack, 0xff, sizeof endpoint->life.stack);
    for (int i = 0; i < endpoint->flow_count; i++)
        flow_init(&endpoint->flows[i], i, sender, &endpoint->request, &endpoint->start);
    *last = endpoint;
    return endpoint;
}

void endpoint_set_port(struct endpoint *endpoint, int port)
{
    endpoint->port = port;
    snprintf(endpoint->peer, sizeof endpoint->peer, "%s port %d", address_text(&endpoint->request.address), port);
}

int64_t endpoint_bytes(const struct endpoint *endpoint)
{
    int64_t bytes = 0;

    for (int i = 0; i < endpoint->flow_count; i++)
        bytes += atomic_load_explicit(&endpoint->flows[i].bytes, memory_order_relaxed);
    return bytes;
}

void endpoint_stop(struct endpoint *endpoint)
{
    for (int i = 0; i < endpoint->flow_count; i++) {
        if (!endpoint->flows[i].running)
            continue;
        atomic_store(&endpoint->flows[i].stopped, true);
        flow_stop(&endpoint->flows[i]);
    }
}

void endpoint_stop_listening(struct endpoint *endpoint)
{
    system_close(&endpoint->openings.listen_fd);
    system_close(&endpoint->openings.datagram_fd);
}

void endpoint_free(struct endpoint *endpoint)
{
    struct endpoint **place = &endpoints;

    if (endpoint->files.filling) {
        atomic_store(&endpoint->files.stop, true);
        pthread_join(endpoint->files.thread, NULL);
    }
    endpoint_stop(endpoint);
    for (int i = 0; i < endpoint->flow_count; i++) {
        struct flow *flow = &endpoint->flows[i];

        if (flow->running) {
            atomic_store(&flow->stopped, true);
            flow_stop(flow);
            if (flow->sender) /* its thread may wait for its receiver to end */
                shutdown(flow->fd, SHUT_RDWR);
            pthread_join(flow->thread, NULL);
        }
        flow_free(flow);
    }
    for (int i = 0; i < endpoint->openings.count && !endpoint->sender; i++) /* flow_free closed a sender's sockets */
        close(endpoint->openings.pending[i].fd);
    endpoint_stop_listening(endpoint);
    while (*place != endpoint)
        place = &(*place)->next;
    *place = endpoint->next;
    capture_free(endpoint->capture);
    free(endpoint);
}

void endpoint_note(struct endpoint *endpoint, int error, const char *format, ...)
{
    va_list values;

    if (endpoint->failure.error != 0)
        return;
    endpoint->failure.error = error;
    va_start(values, format);
    vsnprintf(endpoint->failure.message, sizeof endpoint->failure.message, format, values);
    va_end(values);
}

void endpoint_fail_flow(struct endpoint *endpoint, int number, const char *where, int error)
{
    endpoint_fail(endpoint, error, "flow %d %s %s: %s: %s", number, endpoint->sender ? "to" : "at", endpoint->peer, where,
                  strerror(error));
}

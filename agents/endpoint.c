/* Endpoints come, are found by number, and go without leaving a thread or a socket. */
#include "endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct endpoint *endpoints[ENDPOINTS_MAX];

struct endpoint *endpoint_find(int64_t number)
{
    for (int i = 0; i < ENDPOINTS_MAX; i++)
        if (endpoints[i] != NULL && endpoints[i]->number == number)
            return endpoints[i];
    return NULL;
}

struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows, const struct settings *settings)
{
    struct endpoint *endpoint;
    int place = 0;

    while (place < ENDPOINTS_MAX && endpoints[place] != NULL)
        place++;
    if (place == ENDPOINTS_MAX) {
        errno = ENOBUFS;
        return NULL;
    }
    endpoint = calloc(1, sizeof *endpoint);
    if (endpoint == NULL)
        return NULL;
    endpoint->flows = calloc((size_t)flows, sizeof *endpoint->flows);
    if (endpoint->flows == NULL) {
        free(endpoint);
        return NULL;
    }
    endpoint->number = (int)number;
    endpoint->sender = sender;
    endpoint->state = sender ? CONNECTING : LISTENING;
    endpoint->settings = *settings;
    endpoint->flow_count = (int)flows;
    endpoint->openings.listen_fd = endpoint->openings.datagram_fd = -1;
    for (int i = 0; i < endpoint->flow_count; i++)
        flow_init(&endpoint->flows[i], i, sender, &endpoint->settings, &endpoint->start);
    endpoints[place] = endpoint;
    return endpoint;
}

const void *address_bytes(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return &((const struct sockaddr_in6 *)address)->sin6_addr;
    return &((const struct sockaddr_in *)address)->sin_addr;
}

const char *address_text(const struct sockaddr_storage *address)
{
    static char text[INET6_ADDRSTRLEN];

    return inet_ntop(address->ss_family, address_bytes(address), text, sizeof text) != NULL ? text : "";
}

void endpoint_set_port(struct endpoint *endpoint, int port)
{
    endpoint->port = port;
    snprintf(endpoint->peer, sizeof endpoint->peer, "%s port %d", address_text(&endpoint->settings.address), port);
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

void endpoint_free(struct endpoint *endpoint)
{
    if (endpoint->files.filling) {
        atomic_store(&endpoint->files.stop, true);
        pthread_join(endpoint->files.thread, NULL);
    }
    endpoint_stop(endpoint);
    for (int i = 0; i < endpoint->flow_count; i++) {
        struct flow *flow = &endpoint->flows[i];

        if (flow->running) {
            /* A sender may wait for its peer: without its connection it ends at once. */
            shutdown(flow->fd, SHUT_RDWR);
            pthread_join(flow->thread, NULL);
        }
        flow_free(flow);
    }
    for (int i = 0; i < endpoint->openings.count && !endpoint->sender; i++) /* a sender's belong to its flows */
        close(endpoint->openings.pending[i].fd);
    opening_stop(&endpoint->openings);
    for (int i = 0; i < ENDPOINTS_MAX; i++)
        if (endpoints[i] == endpoint)
            endpoints[i] = NULL;
    capture_free(endpoint->capture);
    free(endpoint->flows);
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

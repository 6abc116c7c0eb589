/* Endpoints come, are found by number, and go without leaving a thread or a socket. */
#include "endpoint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct endpoint *endpoints[ENDPOINTS_MAX];
int wake_fd = -1;

struct endpoint *endpoint_find(int64_t number)
{
    for (int i = 0; i < ENDPOINTS_MAX; i++)
        if (endpoints[i] != NULL && endpoints[i]->number == number)
            return endpoints[i];
    return NULL;
}

struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows)
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
    endpoint->flow_count = (int)flows;
    endpoint->listen_fd = -1;
    for (int i = 0; i < endpoint->flow_count; i++) {
        endpoint->flows[i].fd = endpoint->flows[i].datagram_fd = endpoint->flows[i].file_fd = -1;
        endpoint->flows[i].disk_ns = endpoint->flows[i].sync_ns = -1;
        endpoint->flows[i].number = i;
        endpoint->flows[i].sender = sender;
        endpoint->flows[i].wake = wake_fd;
    }
    endpoints[place] = endpoint;
    return endpoint;
}

void endpoint_stop(struct endpoint *endpoint)
{
    for (int i = 0; i < endpoint->flow_count; i++)
        if (endpoint->flows[i].running)
            flow_stop(&endpoint->flows[i]);
}

void endpoint_free(struct endpoint *endpoint)
{
    if (endpoint->filling) {
        atomic_store(&endpoint->fill_stop, true);
        pthread_join(endpoint->filler, NULL);
    }
    for (int i = 0; i < endpoint->flow_count; i++) {
        struct flow *flow = &endpoint->flows[i];

        if (flow->running) {
            flow->at_ns = 0;
            flow_stop(flow);
            /* A sender may wait for its start or for its peer: what it waits on ends, so that the join does too. */
            shutdown(flow->fd, SHUT_RDWR);
            pthread_join(flow->thread, NULL);
        }
        flow_free(flow);
    }
    for (int i = 0; i < endpoint->opening_count && !endpoint->sender; i++) /* a sender's belong to its flows */
        close(endpoint->openings[i].fd);
    if (endpoint->listen_fd >= 0)
        close(endpoint->listen_fd);
    for (int i = 0; i < ENDPOINTS_MAX; i++)
        if (endpoints[i] == endpoint)
            endpoints[i] = NULL;
    capture_free(endpoint->capture);
    free(endpoint->flows);
    free(endpoint);
}

void endpoint_fail(struct endpoint *endpoint, int error, const char *format, ...)
{
    va_list values;

    if (endpoint->error == 0) {
        endpoint->error = error;
        va_start(values, format);
        vsnprintf(endpoint->message, sizeof endpoint->message, format, values);
        va_end(values);
    }
    endpoint_stop(endpoint);
}

int endpoint_cpus(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

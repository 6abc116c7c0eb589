/* The files of an endpoint's flows: opened at once, and a sender's filled by a thread of their own, before any traffic. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"
#include "file.h"

static void *fill(void *argument)
{
    struct endpoint *endpoint = argument;
    uint64_t one = 1;

    for (int i = 0; i < endpoint->flow_count && endpoint->fill_error == 0; i++)
        endpoint->fill_error = file_fill(endpoint->flows[i].file_fd, endpoint->settings.message_bytes, &endpoint->fill_stop);
    atomic_store(&endpoint->filled, true);
    return write(wake_fd, &one, sizeof one) < 0 ? NULL : NULL; /* a full counter: the main loop is awake anyway */
}

int files_begin(struct endpoint *endpoint)
{
    int error;

    if (endpoint->settings.work != PUT || !endpoint->settings.disk)
        return 0;
    for (int i = 0; i < endpoint->flow_count; i++) {
        endpoint->flows[i].file_fd = file_open(endpoint->settings.folder);
        if (endpoint->flows[i].file_fd < 0)
            return errno;
        endpoint->flows[i].disk_ns = 0;
    }
    if (!endpoint->sender)
        return 0;
    error = pthread_create(&endpoint->filler, NULL, fill, endpoint);
    endpoint->filling = error == 0;
    return error;
}

void files_serve(struct endpoint *endpoint)
{
    if (!endpoint->filling || !atomic_load(&endpoint->filled))
        return;
    pthread_join(endpoint->filler, NULL);
    endpoint->filling = false;
    if (endpoint->fill_error != 0)
        opening_fail(endpoint, 0, "making the file", endpoint->fill_error);
    else if (endpoint->state == CONNECTING && endpoint->flows_open == endpoint->flow_count)
        opening_finish(endpoint);
}

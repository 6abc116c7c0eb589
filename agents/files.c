/* The files of an endpoint's flows: opened at once, and a sender's filled by a thread of their own, before any traffic. */
#include "files.h"

#include <errno.h>
#include <unistd.h>

#include "endpoint.h"
#include "file.h"
#include "opening.h"

static void *fill(void *argument)
{
    struct endpoint *endpoint = argument;
    uint64_t one = 1;

    for (int i = 0; i < endpoint->flow_count && endpoint->files.error == 0; i++)
        endpoint->files.error = file_fill(endpoint->flows[i].file.fd, endpoint->settings.size, &endpoint->files.stop);
    atomic_store(&endpoint->files.filled, true);
    return write(wake_fd, &one, sizeof one) < 0 ? NULL : NULL; /* a full counter: the main loop is awake anyway */
}

int files_begin(struct endpoint *endpoint)
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
    error = pthread_create(&endpoint->files.thread, NULL, fill, endpoint);
    endpoint->files.filling = error == 0;
    return error;
}

void files_serve(struct endpoint *endpoint)
{
    if (!endpoint->files.filling || !atomic_load(&endpoint->files.filled))
        return;
    pthread_join(endpoint->files.thread, NULL);
    endpoint->files.filling = false;
    if (endpoint->files.error != 0)
        opening_fail(endpoint, 0, "making the file", endpoint->files.error);
    else if (endpoint->state == CONNECTING && endpoint->openings.opened == endpoint->flow_count)
        opening_finish(endpoint);
}

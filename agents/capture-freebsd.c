/* Frames are not captured: bpf(4) has another interface, which nobody has written to yet. */
#include "capture.h"

#include <errno.h>
#include <stddef.h>

struct capture *capture_start(const char *interface, int port, size_t room)
{
    (void)interface;
    (void)port;
    (void)room;
    errno = EOPNOTSUPP;
    return NULL;
}

void capture_stop(struct capture *capture)
{
    (void)capture;
}

void capture_free(struct capture *capture)
{
    (void)capture;
}

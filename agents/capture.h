/* The frames of an endpoint's flows, their headers only, in a memory of bounded size (docs/reference/agent-protocol.md, "Capture"). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_MOST (64 << 20)

struct capture {
    int fd;
    pthread_t thread;
    _Atomic bool stopping;
    unsigned char *data; /* a pcap file */
    size_t room, used;
    int64_t frames;
    int64_t lost; /* by the kernel, because this process was late; -1: unknown */
    bool cut;     /* there was no room for more */
};

/* Begin with what passes `interface` from or to `port`, in `room` bytes. NULL with errno. */
struct capture *capture_start(const char *interface, int port, size_t room);
/* No more frames; the thread has ended. */
void capture_stop(struct capture *capture);
void capture_free(struct capture *capture);

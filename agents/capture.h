/* The headers of the frames of an endpoint's flows, captured in memory (docs/reference/agent-protocol.md, "Capture"). */
#pragma once

#include "agent.h"

#define CAPTURE_MOST (64 << 20)

struct capture {
    int fd;
    pthread_t thread;
    _Atomic bool stopping;
    unsigned char *data; /* a pcap file */
    size_t room, used;
    int64_t frames;
    int64_t lost; /* frames that the kernel dropped because this process was late; -1: unknown */
    bool cut;     /* there was no room for all frames */
};

/* Begin to capture the frames that pass `interface` from or to `port`, in `room` bytes. Returns NULL with errno if that fails. */
struct capture *capture_start(const char *interface, int port, size_t room);
/* Stop capturing, and wait for the end of the thread. */
void capture_stop(struct capture *capture);
void capture_free(struct capture *capture);

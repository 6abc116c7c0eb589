/* Captures the headers of an endpoint's frames in memory (docs/reference/agent-protocol.md, "Capture"). */
#pragma once

#include "agent.h"

#define CAPTURE_MOST (64 << 20)
#define CAPTURE_PORTS 129 /* most ports of an endpoint: of its connections, and of the datagrams of 128 flows */

struct capture {
    int fd;
    pthread_t thread;
    _Atomic bool stopping;
    unsigned char *data; /* content of the pcap file */
    size_t room, used;
    int64_t frames;
    int64_t lost; /* frames that the kernel dropped because the thread was late; -1: unknown */
    bool cut;     /* some frames did not fit `room` bytes */
};

/* Capture the frames from or to `ports` on `interface` into a pcap file of at most `room` bytes. Returns NULL with errno on failure. */
struct capture *capture_start(const char *interface, const int *ports, int count, size_t room);
void capture_stop(struct capture *capture);
void capture_free(struct capture *capture);

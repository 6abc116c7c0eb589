/* An endpoint: one agent's side of the flows of one pair and direction in one cell (docs/reference/agent-protocol.md). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "capture.h"
#include "flow.h"
#include "sample.h"
#include "sockopts.h"

#define ENDPOINTS_MAX 256
#define FLOWS_MAX 128
#define TOKEN_BYTES 16
#define OPENING_BYTES (TOKEN_BYTES + 4)
#define OPENINGS_MAX (FLOWS_MAX + 64) /* all flows at once, and some strangers; then the oldest goes */

enum state { LISTENING, CONNECTING, READY, RUNNING, ENDED };

/* What both sides are made with. */
struct settings {
    struct sockaddr_storage address; /* where to listen, or where to connect to */
    struct sockaddr_storage bind;    /* of a sender */
    socklen_t address_length;
    int first_port, last_port; /* of a receiver: the range that its port is taken from; 0: any */
    unsigned char token[TOKEN_BYTES];
    int64_t interval_ns;
    struct sockopts sockopts;
    const struct work *work;
    int64_t size; /* of a message, datagram or file */
    bool busy;
    bool zerocopy; /* of a sender: MSG_ZEROCOPY */
    bool copy;     /* of a receiver: into its memory */
    bool mptcp;
    bool disk; /* read from, or written to, a file in `folder` */
    char folder[256];
    struct placement placement;
    char interface[16]; /* whose counters are reported; "": none */
};

/* A connection whose opening is on its way. Of a sender, `number` is known. */
struct opening {
    int fd;
    int number;
    int got; /* bytes of it */
    int64_t until_ns;
    unsigned char bytes[OPENING_BYTES];
};

/* While the flows are opened. */
struct openings {
    int listen_fd;   /* -1: none */
    int datagram_fd; /* keeps the receiver's UDP port free for its flows; -1: none */
    struct opening pending[OPENINGS_MAX];
    int count, opened;
    int64_t strangers, accepted;
    int64_t until_ns; /* for all flows to be there */
    int64_t accept_at_ns; /* not before: there was no descriptor for a connection */
    int64_t waiting_id;   /* the connect or ready order to answer; 0: none */
};

/* A sender's files, while they are made; the openings go on meanwhile. */
struct files {
    pthread_t thread;
    bool filling;
    _Atomic bool stop, filled;
    int error;
};

/* From the start to the end. */
struct life {
    int64_t at_ns, end_ns, next_sample_ns;
    int64_t moved_ns, moved_bytes; /* when a receiver last saw bytes, after its end */
    bool cpu_taken;
    struct cpu_times before, after;
    struct nic_counters nic;
};

/* How far a report is written. */
struct report {
    int64_t id; /* of its order; 0: none is being written */
    int flow, row, bucket;
    int64_t bin;
    size_t captured;
};

struct endpoint {
    int number;
    bool sender;
    enum state state;
    struct settings settings;
    int port;      /* the receiver's */
    char peer[80]; /* the receiver's address and port, for messages */
    int flow_count;
    struct flow *flows;
    struct openings openings;
    struct files files;
    struct life life;
    struct report report;
    struct capture *capture; /* NULL: not asked for */
    struct {
        int error;
        char message[320];
    } failure;
};

/* All endpoints of this agent; NULL where there is none. */
extern struct endpoint *endpoints[ENDPOINTS_MAX];
/* An eventfd that ending flows write to. */
extern int wake_fd;

struct endpoint *endpoint_find(int64_t number);
/* A new endpoint with `flows` flows; NULL with errno. */
struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows, const struct settings *settings);
/* Forget it: its threads end, its sockets close. */
void endpoint_free(struct endpoint *endpoint);
/* Note why it failed; the first reason stays. */
void endpoint_note(struct endpoint *endpoint, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* End the whole endpoint with an error; the first one stays. */
#define endpoint_fail(endpoint, ...) (endpoint_note(endpoint, __VA_ARGS__), endpoint_stop(endpoint))
/* Bytes that its flows have moved so far. */
int64_t endpoint_bytes(const struct endpoint *endpoint);
void endpoint_stop(struct endpoint *endpoint);
/* The receiver's port is known. */
void endpoint_set_port(struct endpoint *endpoint, int port);

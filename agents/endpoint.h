/* An endpoint: one agent's side of all flows of a pair, in one direction of one test (docs/reference/agent-protocol.md). The files in
 * order of its life: sockets (tcp.c), opening of connections (opening.c), traffic (life.c), report (report.c). */
#pragma once

#include "capture.h"
#include "flow.h"
#include "sample.h"

#define ENDPOINTS_MAX 256
#define FLOWS_MAX 128
#define SAMPLES_MAX 36000
#define BINS_MAX 4000000
#define OPENING_BYTES (TOKEN_BYTES + 4)
#define ACCEPTANCE_BYTES 3
#define OPENINGS_MAX (FLOWS_MAX + 64) /* most pending connections: of all flows, and 64 others; if more come, the oldest is dropped */

enum state { LISTENING, CONNECTING, READY, RUNNING, ENDED };

/* A connection that no flow has yet. Its first bytes, the opening, are the token and the number of a flow. The receiver's answer, the
 * acceptance, is a byte and the port of the flow's datagrams. */
struct opening {
    int fd;
    int number; /* number of the flow, known only to a sender */
    int got;    /* bytes of the opening received or sent so far */
    int answered; /* bytes of the acceptance that a sender has received so far */
    int64_t until_ns;
    unsigned char bytes[OPENING_BYTES];
};

/* State while the flows are being opened. */
struct openings {
    int listen_fd;   /* listening socket; -1: none */
    int datagram_fd; /* socket that reserves the receiver's UDP port for its flows; -1: none */
    struct opening pending[OPENINGS_MAX];
    int count, opened;
    int polled; /* number of sockets in `pending` that the main loop polls */
    int64_t strangers, accepted;
    int64_t until_ns;     /* deadline for opening all flows */
    int64_t accept_at_ns; /* when to call accept(2) again after descriptors ran out */
    int64_t waiting_id;   /* id of the order `connect` or `ready` to be answered; 0: none */
};

/* The files that a sender reads. A thread fills them while the connections are being opened. */
struct files {
    pthread_t thread;
    bool filling;
    _Atomic bool stop, filled;
    int error;
};

/* State from the start to the end of the traffic. */
struct life {
    int64_t next_sample_ns;
    int64_t moved_ns, moved_bytes; /* for a receiver after the end of the test: when bytes last arrived, and the byte count then */
    struct cpu_times before, after;
    struct nic_counters nic;
    struct stack_counters stack;
};

/* Progress of writing the report. */
struct report {
    int64_t id; /* id of the report order; 0: no report is being written */
    int flow, row, bucket;
    int64_t bin;
    size_t captured;
};

struct endpoint {
    struct endpoint *next;
    int number;
    bool sender;
    enum state state;
    struct request request;
    struct start start;
    int port;      /* port of the receiver */
    char peer[80]; /* address and port of the receiver, for messages */
    int flow_count;
    struct openings openings;
    struct files files;
    struct life life;
    struct report report;
    struct capture *capture; /* capture of the endpoint's frames; NULL: not requested */
    struct {
        int error;
        char message[320];
    } failure;
    struct flow flows[]; /* `flow_count` flows */
};

extern struct endpoint *endpoints;

/* Read the keys `address`, `token` and, for a sender, `bind` of an order. Returns NULL, or what is wrong. */
struct order;
const char *endpoint_parse_path(struct order *order, int64_t port, bool bind, struct request *request);
struct endpoint *endpoint_find(int64_t number);
/* Make an endpoint with `flows` flows. Returns NULL with errno on failure. */
struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows, const struct request *request);
void endpoint_free(struct endpoint *endpoint);
/* Store why the endpoint failed; an earlier reason stays. */
void endpoint_note(struct endpoint *endpoint, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Store why the endpoint failed, and stop all its flows. */
#define endpoint_fail(endpoint, ...) (endpoint_note(endpoint, __VA_ARGS__), endpoint_stop(endpoint))
/* Store that the call `where` of flow `number` failed with `error`, and stop all flows. */
void endpoint_fail_flow(struct endpoint *endpoint, int number, const char *where, int error);
/* Return the bytes that all flows have moved so far. */
int64_t endpoint_bytes(const struct endpoint *endpoint);
void endpoint_stop(struct endpoint *endpoint);
void endpoint_stop_listening(struct endpoint *endpoint);
/* Store the receiver's port, for answers and messages. */
void endpoint_set_port(struct endpoint *endpoint, int port);

/* tcp.c: make the sockets with the requested settings. Returns 0, or -1 with the failure stored. */
int tcp_listen(struct endpoint *endpoint);
int tcp_connect(struct endpoint *endpoint);

/* opening.c: open the files of the flows and, for a sender, start to fill them. Returns 0 or an errno value. */
int opening_begin_files(struct endpoint *endpoint);
/* Let a sender's connections send their openings once they are established. */
void opening_begin(struct endpoint *endpoint);
/* Add the sockets to be polled to `polls`, at most `room`. */
void opening_poll(struct endpoint *endpoint, struct pollfd *polls, int room);
/* Serve the sockets that `polls` reports as ready (NULL: none). Drop connections, or fail the endpoint, after their deadline. */
void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int64_t now);
/* Return when opening_serve must be called even if nothing arrives. */
int64_t opening_deadline(const struct endpoint *endpoint, int64_t now);
/* Tell whether an opening has this token and a flow number below `flows`. Stores the number in `*number`. */
bool opening_is_valid(const unsigned char *bytes, const unsigned char *token, int flows, int *number);

/* life.c: start the flows. Returns 0, or an errno value, after which the caller must free the endpoint. */
int life_start(struct endpoint *endpoint);
/* Take the samples that are due. End flows whose time is over or whose peer is silent. */
void life_serve(struct endpoint *endpoint, int64_t now);
/* Return when life_serve must be called next. */
int64_t life_deadline(const struct endpoint *endpoint);

/* report.c: start the report for order `id`, and write as much as the output has room for. */
void report_begin(struct endpoint *endpoint, int64_t id);
void report_serve(struct endpoint *endpoint);

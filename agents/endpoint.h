/* An endpoint: one agent's side of the flows of one pair and direction in one test (docs/reference/agent-protocol.md). In the order of
 * its life: sockets (tcp.c), openings (opening.c), from start to end (life.c), report (report.c). */
#pragma once

#include <poll.h>

#include "capture.h"
#include "flow.h"
#include "sample.h"

#define ENDPOINTS_MAX 256
#define FLOWS_MAX 128
#define SAMPLES_MAX 36000
#define BINS_MAX 4000000
#define OPENING_BYTES (TOKEN_BYTES + 4)
#define OPENINGS_MAX (FLOWS_MAX + 64) /* all flows and some strangers; if more come, the oldest is dropped */

enum state { LISTENING, CONNECTING, READY, RUNNING, ENDED };

/* A connection whose opening is not complete. */
struct opening {
    int fd;
    int number; /* of the flow; known to a sender only */
    int got;    /* bytes of the opening received, or sent */
    int64_t until_ns;
    unsigned char bytes[OPENING_BYTES];
};

/* The state while the flows are opened. */
struct openings {
    int listen_fd;   /* -1: none */
    int datagram_fd; /* reserves the receiver's UDP port for its flows; -1: none */
    struct opening pending[OPENINGS_MAX];
    int count, opened;
    int polled; /* how many of the sockets the main loop polls */
    int64_t strangers, accepted;
    int64_t until_ns;     /* when all flows must be open */
    int64_t accept_at_ns; /* when to accept again after there was no descriptor for a connection */
    int64_t waiting_id;   /* the order `connect` or `ready` to answer; 0: none */
};

/* A sender's files, filled by a thread while the connections are opened. */
struct files {
    pthread_t thread;
    bool filling;
    _Atomic bool stop, filled;
    int error;
};

/* The state from start to end. */
struct life {
    int64_t next_sample_ns;
    int64_t moved_ns, moved_bytes; /* when a receiver whose time is over last got bytes, and how many it had */
    struct cpu_times before, after;
    struct nic_counters nic;
};

/* How much of the report is written. */
struct report {
    int64_t id; /* number of the report order; 0: no report is being written */
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
    int port;      /* the receiver's */
    char peer[80]; /* the receiver's address and port, for messages */
    int flow_count;
    struct openings openings;
    struct files files;
    struct life life;
    struct report report;
    struct capture *capture; /* NULL: not requested */
    struct {
        int error;
        char message[320];
    } failure;
    struct flow flows[]; /* `flow_count` of them */
};

/* All endpoints of this agent, as a list. */
extern struct endpoint *endpoints;

/* Read the keys `address`, `token` and, for a sender, `bind` of an order. Returns what is wrong, or NULL. */
struct order;
const char *endpoint_parse_path(struct order *order, int64_t port, bool bind, struct request *request);
struct endpoint *endpoint_find(int64_t number);
/* Make an endpoint with `flows` flows. Returns NULL with errno if there is no room. */
struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows, const struct request *request);
/* End the threads of an endpoint, close its sockets and free it. */
void endpoint_free(struct endpoint *endpoint);
/* Note why the endpoint failed; the first reason stays. */
void endpoint_note(struct endpoint *endpoint, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same, and stop all flows. */
#define endpoint_fail(endpoint, ...) (endpoint_note(endpoint, __VA_ARGS__), endpoint_stop(endpoint))
/* The same because of flow `number`, where the call `where` failed with `error`. */
void endpoint_fail_flow(struct endpoint *endpoint, int number, const char *where, int error);
/* Return how many bytes the flows have moved so far. */
int64_t endpoint_bytes(const struct endpoint *endpoint);
void endpoint_stop(struct endpoint *endpoint);
void endpoint_stop_listening(struct endpoint *endpoint);
/* Note the receiver's port, for answers and messages. */
void endpoint_set_port(struct endpoint *endpoint, int port);

/* tcp.c: make the sockets with the requested settings. Returns 0, or -1 after noting the failure. */
int tcp_listen(struct endpoint *endpoint);
int tcp_connect(struct endpoint *endpoint);

/* opening.c: open the files of the flows and begin to fill a sender's. Returns 0 or an errno value. */
int opening_begin_files(struct endpoint *endpoint);
/* Have the openings of a sender's connections sent once they are established. */
void opening_begin(struct endpoint *endpoint);
/* Add the sockets to poll, at most `room`, to `polls`. */
void opening_poll(struct endpoint *endpoint, struct pollfd *polls, int room);
/* Serve the sockets that `polls` (NULL: none) reports, and end what has expired by `now`. */
void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int64_t now);
/* Return when opening_serve has something to do even if nothing arrives. */
int64_t opening_deadline(const struct endpoint *endpoint, int64_t now);
/* Tell whether the OPENING_BYTES `bytes` hold this token and a flow number below `flows`. Store the flow number in `*number`. */
bool opening_is_valid(const unsigned char *bytes, const unsigned char *token, int flows, int *number);

/* life.c: start the flows. Returns 0 or an errno value; then the caller has to free the endpoint. */
int life_start(struct endpoint *endpoint);
/* Take the samples that are due, and end flows whose time is over or whose peer is silent. */
void life_serve(struct endpoint *endpoint, int64_t now);
/* Return when life_serve has something to do. */
int64_t life_deadline(const struct endpoint *endpoint);

/* report.c: begin the report that order `id` requests, and write as much of it as there is room for. */
void report_begin(struct endpoint *endpoint, int64_t id);
void report_serve(struct endpoint *endpoint);

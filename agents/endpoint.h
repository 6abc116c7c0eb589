/* An endpoint: one agent's side of the flows of one pair and direction in one test (docs/reference/agent-protocol.md), and its life:
 * sockets (tcp.c), openings (opening.c), from start to end (life.c), report (report.c). */
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "capture.h"
#include "flow.h"
#include "sample.h"

#define ENDPOINTS_MAX 256
#define FLOWS_MAX 128
#define SAMPLES_MAX 36000
#define BINS_MAX 4000000
#define OPENING_BYTES (TOKEN_BYTES + 4)
#define OPENINGS_MAX (FLOWS_MAX + 64) /* all flows at once, and some strangers; then the oldest is dropped */

enum state { LISTENING, CONNECTING, READY, RUNNING, ENDED };

/* A connection whose opening is not complete. A sender knows its `number`. */
struct opening {
    int fd;
    int number;
    int got; /* bytes received; of a sender: sent */
    int64_t until_ns;
    unsigned char bytes[OPENING_BYTES];
};

/* While the flows are opened. */
struct openings {
    int listen_fd;   /* -1: none */
    int datagram_fd; /* keeps the receiver's UDP port free for its flows; -1: none */
    struct opening pending[OPENINGS_MAX];
    int count, opened;
    int polled; /* how many sockets of this endpoint the main loop polls */
    int64_t strangers, accepted;
    int64_t until_ns;     /* when all flows have to be open */
    int64_t accept_at_ns; /* not before: there was no descriptor for a connection */
    int64_t waiting_id;   /* the connect or ready order to answer; 0: none */
};

/* A sender's files while a thread fills them; openings go on meanwhile. */
struct files {
    pthread_t thread;
    bool filling;
    _Atomic bool stop, filled;
    int error;
};

/* From the start to the end. */
struct life {
    int64_t next_sample_ns;
    int64_t moved_ns, moved_bytes; /* when a receiver last saw bytes, after its end */
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
    struct start start;
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

struct endpoint *endpoint_find(int64_t number);
/* Make an endpoint with `flows` flows. NULL with errno. */
struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows, const struct settings *settings);
/* End its threads, close its sockets and forget it. */
void endpoint_free(struct endpoint *endpoint);
/* Note why it failed; the first reason stays. */
void endpoint_note(struct endpoint *endpoint, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* End the whole endpoint with an error; the first one stays. */
#define endpoint_fail(endpoint, ...) (endpoint_note(endpoint, __VA_ARGS__), endpoint_stop(endpoint))
/* Return the bytes that its flows have moved so far. */
int64_t endpoint_bytes(const struct endpoint *endpoint);
void endpoint_stop(struct endpoint *endpoint);
/* Note the receiver's port, once it is known. */
void endpoint_set_port(struct endpoint *endpoint, int port);

/* The bytes of an IP address, and the address as text (until the next call). */
const void *address_bytes(const struct sockaddr_storage *address);
const char *address_text(const struct sockaddr_storage *address);

/* tcp.c: make the sockets, with the requested settings. 0, or -1 with the endpoint's failure. */
int tcp_listen(struct endpoint *endpoint);
int tcp_connect(struct endpoint *endpoint);

/* opening.c: openings of data connections. Only connections with the token are accepted. */
/* Open the files of the flows, and begin to fill a sender's. 0 or an errno value. */
int opening_begin_files(struct endpoint *endpoint);
/* Wait for a sender's connections, to send their openings. */
void opening_begin(struct endpoint *endpoint);
/* Write the sockets to be polled, at most `room`, to `polls`. */
void opening_poll(struct endpoint *endpoint, struct pollfd *polls, int room);
/* Serve the sockets that `polls` reports (NULL: none), and what has expired by `now`. */
void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int64_t now);
int64_t opening_deadline(const struct endpoint *endpoint, int64_t now);
/* Stop listening. */
void opening_stop(struct openings *openings);
/* Tell whether these 20 bytes open flow `*number` of an endpoint with this token and that many flows. */
bool opening_valid(const unsigned char *bytes, const unsigned char *token, int flows, int *number);

/* life.c: from start to end. 0 or an errno value; on an error the caller frees the endpoint. */
int life_start(struct endpoint *endpoint);
/* Take the samples that are due, and end the flows whose time is over or whose peer fell silent. */
void life_serve(struct endpoint *endpoint, int64_t now);
int64_t life_deadline(const struct endpoint *endpoint);

/* report.c: begin the report that order `id` asked for, and write as much of it as the output takes now. */
void report_begin(struct endpoint *endpoint, int64_t id);
void report_serve(struct endpoint *endpoint);

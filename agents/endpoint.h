/* An endpoint: one agent's side of the flows of one pair and direction in one cell (docs/agent-protocol.md). */
#ifndef RIGCTL_ENDPOINT_H
#define RIGCTL_ENDPOINT_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "capture.h"
#include "control.h"
#include "flow.h"

#define ENDPOINTS_MAX 256
#define FLOWS_MAX 128
#define TOKEN_BYTES 16
#define OPENING_BYTES (TOKEN_BYTES + 4)
#define ACCEPTED 0x06
#define OPENINGS_MAX (FLOWS_MAX + 64) /* all flows at once, and so many strangers; then the oldest goes */
#define OPENING_S 2
#define SAMPLES_MAX 36000
#define BINS_MAX 4000000
#define GRACE_SILENT_S 2 /* a receiver without end-of-file: no data any more … */
#define GRACE_S 10       /* … or still some */

enum state { LISTENING, CONNECTING, READY, RUNNING, ENDED };

/* What both sides are made with. */
struct settings {
    struct sockaddr_storage address; /* where to listen, or whereto to connect */
    struct sockaddr_storage bind;    /* of a sender */
    socklen_t address_length;
    unsigned char token[TOKEN_BYTES];
    int64_t interval_ns;
    int64_t window, mss, nodelay; /* -1: not asked for */
    enum work work;
    int64_t message_bytes; /* of PINGPONG, BLAST, PUT and UDP */
    bool disk;             /* of PUT: read from, or written to, a file in `folder` */
    char folder[256];
    bool udp;
    bool busy;
    char congestion[16];
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

struct endpoint {
    int number;
    bool sender;
    enum state state;
    struct settings settings;
    int flow_count, flows_open;
    struct flow *flows;
    int listen_fd;
    struct opening openings[OPENINGS_MAX];
    int opening_count;
    int64_t strangers;
    int64_t wait_until_ns; /* for all flows to be there */
    int64_t waiting_id;    /* the connect or ready order to answer; 0: none */
    int64_t at_ns, end_ns, next_sample_ns;
    int64_t moved_ns, moved_bytes; /* when a receiver last saw bytes, after its end */
    int64_t report_id; /* the report being written; 0: none */
    int report_flow, report_row, report_bucket;
    int64_t report_bin;
    bool cpu_taken;
    struct cpu_times before, after;
    struct nic_counters nic_before;
    int port; /* the receiver's */
    struct capture *capture; /* NULL: not asked for */
    size_t report_captured;
    /* A sender's files, while they are made; the openings go on meanwhile. */
    pthread_t filler;
    bool filling;
    _Atomic bool fill_stop, filled;
    int fill_error;
    int error;
    char message[160];
};

/* All endpoints of this agent; NULL where there is none. */
extern struct endpoint *endpoints[ENDPOINTS_MAX];
/* An eventfd that ending flows write to. */
extern int wake_fd;

struct endpoint *endpoint_find(int64_t number);
/* A new endpoint with room for `flows` flows; NULL with errno. */
struct endpoint *endpoint_new(int64_t number, bool sender, int64_t flows);
/* Forget it: its threads end, its sockets close. */
void endpoint_free(struct endpoint *endpoint);
/* End the whole endpoint with an error; the first one stays. */
void endpoint_fail(struct endpoint *endpoint, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
void endpoint_stop(struct endpoint *endpoint);
/* CPUs of this node that are online. */
int endpoint_cpus(void);

/* tcp.c: the sockets of an endpoint. */
int tcp_listen(struct endpoint *endpoint, int *port);
int tcp_connect(struct endpoint *endpoint, int *flow);
/* What an order `start` says. */
struct start {
    int64_t at_ns, hold_ns, duration_ns;
    int64_t iterations; /* of messages */
    int64_t rate;       /* of datagrams; 0: as fast as they go */
    int64_t bin_ns;     /* 0: no bins */
    int64_t capture;    /* bytes of its memory; 0: none */
};
int tcp_start(struct endpoint *endpoint, const struct start *start);
/* opening.c: accept, token, acceptance. `polled` tells which sockets have news. */
int opening_polls(const struct endpoint *endpoint, struct pollfd *polls, int room);
void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int count);
void opening_expire(struct endpoint *endpoint, int64_t now);
/* All flows and files are there: say so. */
void opening_finish(struct endpoint *endpoint);
void opening_fail(struct endpoint *endpoint, int number, const char *where, int error);
int64_t opening_deadline(const struct endpoint *endpoint);
/* Whether the 20 bytes open flow `*number` of an endpoint with this token and so many flows. */
bool opening_valid(const unsigned char *bytes, const unsigned char *token, int flows, int *number);
/* life.c: from start to end. */
void life_serve(struct endpoint *endpoint, int64_t now);
int64_t life_deadline(const struct endpoint *endpoint);
/* files.c: the files of an endpoint. 0 or an errno value. */
int files_begin(struct endpoint *endpoint);
void files_serve(struct endpoint *endpoint);
/* report.c */
void report_serve(struct endpoint *endpoint);

#endif

/* The start of an endpoint's flows. */
#pragma once

#include <stdint.h>

struct endpoint;

#define SAMPLES_MAX 36000
#define BINS_MAX 4000000
#define ITERATIONS_MAX 1000000000

/* What an order `start` says. */
struct start {
    int64_t at_ns, hold_ns, duration_ns;
    int64_t iterations; /* of messages */
    int64_t rate;       /* of datagrams; 0: as fast as they go */
    int64_t burst;      /* of datagrams; 0: as the agent likes */
    int64_t bin_ns;     /* 0: no bins */
    int64_t capture;    /* bytes of its memory; 0: none */
};

/* 0 or an errno value; flows that were started already are ended by the caller's endpoint_free(). */
int start_flows(struct endpoint *endpoint, const struct start *start);

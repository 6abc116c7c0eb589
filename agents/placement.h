/* The processors on which the threads of flows run: key `placement` of listen and connect. */
#pragma once

#include "agent.h"

#define PLACES_MAX 16

/* The requested placement. Without a request, the scheduler chooses. */
struct placement {
    bool packets; /* run the thread on the processor that handles its socket's packets */
    bool fixed;   /* run the thread only on `processors` */
    cpu_set_t processors;
    int card_node; /* NUMA node of the interface; -1: unknown */
};

/* The processors on which the main loop found a flow's thread when it took samples. */
struct places {
    _Atomic int processor; /* processor on which the thread last moved bytes; -1: it moved none yet */
    int moved_to;          /* processor to which placement_follow moved the thread; -1: it did not move it */
    int64_t steps;
    struct {
        int processor, samples;
    } found[PLACES_MAX];
};

/* Read `text`: `packets`, `nic`, or processors such as 2,4-7. Returns NULL, or what is wrong or impossible on this machine. */
const char *placement_parse(const char *text, const char *interface, struct placement *placement);
/* Restrict this thread to `processors`. Returns 0 or an errno value. */
int placement_apply(const struct placement *placement);
/* Move this thread to the processor that handled the last packet of `fd`, if possible. `processor`: the previous result, at first -1. */
int placement_follow(int fd, int processor);
/* Return the NUMA node of a processor, or -1 if it is unknown. */
int placement_node_of(int processor);

/* The processors that the threads of flows run on: `placement=` of listen and connect. */
#pragma once

#include "agent.h"

#include <sched.h>

#define PLACES_MAX 16

/* What an order requests. Without it, the scheduler chooses. */
struct placement {
    bool packets; /* run on the processor that handles the socket's packets */
    bool fixed;   /* run on `processors` */
    cpu_set_t processors;
    int card_node; /* NUMA node of the interface; -1: unknown */
};

/* The processors on which the main loop found a flow's thread when it took samples. */
struct places {
    _Atomic int processor; /* where the thread last moved bytes; -1: nowhere yet */
    int moved_to;          /* where placement_follow moved the thread; -1: nowhere */
    int64_t steps;
    struct {
        int processor, samples;
    } found[PLACES_MAX];
};

/* Read `text`: packets, nic, or processors as in 2,4-7. Returns what is wrong with it, or why this machine cannot do it, or NULL. */
const char *placement_parse(const char *text, const char *interface, struct placement *placement);
/* Move this thread to the `processors`. Returns 0 or an errno value. */
int placement_apply(const struct placement *placement);
/* Move this thread to the processor that handled the last packet of the socket, if the system tells and allows it. `processor` is what
 * the previous call returned, at first -1. Returns the processor where the thread was moved last. */
int placement_follow(int fd, int processor);
/* Return the NUMA node of a processor, or -1. */
int placement_node_of(int processor);

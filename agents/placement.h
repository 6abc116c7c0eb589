/* Where the threads of flows run: `placement=` of listen and connect. One file per system: placement-linux.c, placement-freebsd.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PROCESSORS_MAX 1024
#define PLACES_MAX 16

/* What an order asks for. All false: wherever the scheduler puts them. */
struct placement {
    bool packets; /* on the processor that handles the socket's packets */
    bool fixed;   /* on these processors */
    uint64_t processors[PROCESSORS_MAX / 64];
    int card_node; /* NUMA node of the interface; -1: not known */
};

/* The processors on which a flow's thread was found, by the main loop at its samples. */
struct places {
    _Atomic int processor; /* where it last moved bytes; -1: none were moved yet */
    int moved_to;          /* where it was moved after its packets; -1: nowhere */
    int64_t steps;
    struct {
        int processor, samples;
    } found[PLACES_MAX];
};

static inline bool placement_has(const struct placement *placement, int processor)
{
    return (placement->processors[processor / 64] >> (processor % 64) & 1) != 0;
}

/* Processors as 2,4-7, as the kernel and taskset(1) write them. Returns how many; -1: it is no such text. */
int placement_list(const char *text, struct placement *placement);
/* `text`: packets, nic, or processors as 2,4-7. Returns what is wrong with it, or with this machine, or NULL. */
const char *placement_parse(const char *text, const char *interface, struct placement *placement);
/* Move this thread there. 0 or an errno value. */
int placement_apply(const struct placement *placement);
/* Move this thread to the processor that handled the last packet of this socket, where the system tells and allows it. Returns that
 * processor, or `processor`, where an earlier call moved it (-1: nowhere). */
int placement_follow(int fd, int processor);
/* The processor that this thread runs on; -1: not known. */
int placement_now(void);
/* NUMA node of a processor, or of a network interface; -1: not known. */
int placement_node_of(int processor);
int placement_card_node(const char *interface);
/* Whether this process may run on a processor. */
bool placement_allowed(int processor);
/* The processors of a NUMA node. False: not known. */
bool placement_of_node(int node, struct placement *placement);

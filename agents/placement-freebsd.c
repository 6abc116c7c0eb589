/* cpuset_setaffinity(2). Which processor handles a socket's packets, and where a card sits, is not asked for here. */
#include "placement.h"

#include <errno.h>
#include <sched.h>
#include <sys/param.h>
#include <sys/cpuset.h>

int placement_apply(const struct placement *placement)
{
    cpuset_t set;

    CPU_ZERO(&set);
    for (int processor = 0; processor < PROCESSORS_MAX && processor < CPU_SETSIZE; processor++)
        if (placement_has(placement, processor))
            CPU_SET(processor, &set);
    return cpuset_setaffinity(CPU_LEVEL_WHICH, CPU_WHICH_TID, -1, sizeof set, &set) == 0 ? 0 : errno;
}

bool placement_allowed(int processor)
{
    cpuset_t set;

    return processor < CPU_SETSIZE && cpuset_getaffinity(CPU_LEVEL_WHICH, CPU_WHICH_PID, -1, sizeof set, &set) == 0 &&
           CPU_ISSET(processor, &set);
}

int placement_now(void)
{
    return sched_getcpu();
}

int placement_follow(int fd, int processor)
{
    (void)fd;
    return processor;
}

int placement_node_of(int processor)
{
    (void)processor;
    return -1;
}

int placement_card_node(const char *interface)
{
    (void)interface;
    return -1;
}

bool placement_of_node(int node, struct placement *placement)
{
    (void)node;
    (void)placement;
    return false;
}

/* What `placement=` asks for: its text, and whether this machine can do it: sched_setaffinity(2), SO_INCOMING_CPU of socket(7), and NUMA
 * nodes by sysfs. FreeBSD has only the first; there the others are not known. */
#include "placement.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "text.h"

static char wrong[200];

int placement_list(const char *text, struct placement *placement)
{
    int count = 0;

    memset(placement->processors, 0, sizeof placement->processors);
    for (;;) {
        const char *end;
        int64_t first = text_number(text, &end), last = first;

        if (first >= 0 && *end == '-')
            last = text_number(end + 1, &end);
        if (first < 0 || last < first || last >= PROCESSORS_MAX)
            return -1;
        for (; first <= last; first++, count++)
            placement->processors[first / 64] |= UINT64_C(1) << (first % 64);
        if (*end == '\0' || *end == '\n')
            return count;
        if (*end != ',')
            return -1;
        text = end + 1;
    }
}

/* The processors that this process may use, as a list. */
static void allowed_list(char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (int first = 0; first < PROCESSORS_MAX && used < room; first++) {
        int last = first;

        if (!placement_allowed(first))
            continue;
        while (last + 1 < PROCESSORS_MAX && placement_allowed(last + 1))
            last++;
        used += (size_t)snprintf(text + used, room - used, last > first ? "%s%d-%d" : "%s%d", used > 0 ? "," : "", first, last);
        first = last;
    }
}

static const char *check_processors(const struct placement *placement)
{
    char list[100];

    for (int processor = 0; processor < PROCESSORS_MAX; processor++) {
        if (!placement_has(placement, processor) || placement_allowed(processor))
            continue;
        allowed_list(list, sizeof list);
        snprintf(wrong, sizeof wrong, "placement: processor %d is not among those that the agent may use: %s", processor, list);
        return wrong;
    }
    return NULL;
}

/* Those of the card's node that this process may use. */
static const char *take_node(const char *interface, struct placement *placement)
{
    bool any = false;

    if (placement->card_node < 0 || !placement_of_node(placement->card_node, placement)) {
        snprintf(wrong, sizeof wrong, "placement: nic: this system does not tell the NUMA node of %s; name processors instead",
                 *interface != '\0' ? interface : "the data interface");
        return wrong;
    }
    for (int processor = 0; processor < PROCESSORS_MAX; processor++) {
        if (placement_has(placement, processor) && !placement_allowed(processor))
            placement->processors[processor / 64] &= ~(UINT64_C(1) << (processor % 64));
        any = any || placement_has(placement, processor);
    }
    if (any)
        return NULL;
    snprintf(wrong, sizeof wrong, "placement: nic: the agent may use no processor of NUMA node %d, the node of %s",
             placement->card_node, interface);
    return wrong;
}

const char *placement_parse(const char *text, const char *interface, struct placement *placement)
{
    *placement = (struct placement){.card_node = placement_card_node(interface)};
    if (text == NULL)
        return NULL;
#if !defined(__linux__)
    if (strcmp(text, "packets") == 0 || strcmp(text, "nic") == 0)
        return "placement: packets and nic are not supported on this system; name processors instead";
#endif
    if (strcmp(text, "packets") == 0) {
        placement->packets = true;
        return NULL;
    }
    placement->fixed = true;
    if (strcmp(text, "nic") == 0)
        return take_node(interface, placement);
    if (placement_list(text, placement) <= 0)
        return "placement: expected packets, nic or processors, as in 2,4-7";
    return check_processors(placement);
}

int placement_apply(const struct placement *placement)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int processor = 0; processor < PROCESSORS_MAX && processor < CPU_SETSIZE; processor++)
        if (placement_has(placement, processor))
            CPU_SET((size_t)processor, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : errno;
}

int placement_follow(int fd, int processor)
{
#if defined(SO_INCOMING_CPU)
    int found = -1;
    socklen_t length = sizeof found;
    cpu_set_t only;

    if (getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &found, &length) != 0 || found < 0 || found >= CPU_SETSIZE || found == processor)
        return processor;
    CPU_ZERO(&only);
    CPU_SET((size_t)found, &only);
    return sched_setaffinity(0, sizeof only, &only) == 0 ? found : processor;
#else
    (void)fd;
    return processor;
#endif
}

int placement_now(void)
{
    return sched_getcpu();
}

bool placement_allowed(int processor)
{
    cpu_set_t set;

    return processor < CPU_SETSIZE && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET((size_t)processor, &set);
}

int placement_node_of(int processor)
{
    char path[80];

    for (int node = 0; node < 64; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpu%d", node, processor);
        if (access(path, F_OK) == 0)
            return node;
    }
    return -1;
}

int placement_card_node(const char *interface)
{
    char path[80], above[80], text[512];
    const char *end;
    int64_t node;

    /* A virtio device has none of its own: that of the PCI device above it. */
    snprintf(path, sizeof path, "/sys/class/net/%s/device/numa_node", interface);
    snprintf(above, sizeof above, "/sys/class/net/%s/device/../numa_node", interface);
    if (*interface == '\0' || (!text_read(path, text, sizeof text) && !text_read(above, text, sizeof text)))
        return -1; /* a virtual interface has no device */
    node = text_number(text, &end);
    if (node >= 0)
        return (int)node;
    /* The firmware does not say (-1). With one node there is nothing to say. */
    return text_read("/sys/devices/system/node/online", text, sizeof text) && strcmp(text, "0\n") == 0 ? 0 : -1;
}

bool placement_of_node(int node, struct placement *placement)
{
    char path[80], text[512];

    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    return text_read(path, text, sizeof text) && placement_list(text, placement) > 0;
}

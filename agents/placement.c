/* Places flows on processors: sched_setaffinity(2), SO_INCOMING_CPU (socket(7)), NUMA nodes in /sys. FreeBSD has only the first. */
#include "placement.h"
#include "text.h"

static char wrong[200];

/* Read a list such as 2,4-7, as the kernel and taskset(1) write it. Returns the number of processors, or -1 for a malformed list. */
static int parse_list(const char *text, cpu_set_t *set)
{
    int count = 0;

    CPU_ZERO(set);
    for (;;) {
        const char *end;
        int64_t first = text_number(text, &end), last = first;

        if (first >= 0 && *end == '-')
            last = text_number(end + 1, &end);
        if (first < 0 || last < first || last >= CPU_SETSIZE)
            return -1;
        for (; first <= last; first++, count++)
            CPU_SET((size_t)first, set);
        if (*end == '\0' || *end == '\n')
            return count;
        if (*end != ',')
            return -1;
        text = end + 1;
    }
}

static void write_list(const cpu_set_t *set, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t first = 0; first < CPU_SETSIZE && used < room; first++) {
        size_t last = first;

        if (!CPU_ISSET(first, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        used += (size_t)snprintf(text + used, room - used, last > first ? "%s%zu-%zu" : "%s%zu", used > 0 ? "," : "", first, last);
        first = last;
    }
}

static const char *check_processors(const cpu_set_t *wanted, const cpu_set_t *allowed)
{
    char list[100];

    for (size_t processor = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, wanted) || CPU_ISSET(processor, allowed))
            continue;
        write_list(allowed, list, sizeof list);
        snprintf(wrong, sizeof wrong, "placement: processor %zu is not among those that the agent may use: %s", processor, list);
        return wrong;
    }
    return NULL;
}

/* Return the NUMA node of a network interface, or -1 if it is unknown. */
static int find_card_node(const char *interface)
{
    char path[80], above[80], text[512];
    const char *end;
    int64_t node;

    /* A virtio device has no NUMA node, but the PCI device above it has. */
    snprintf(path, sizeof path, "/sys/class/net/%s/device/numa_node", interface);
    snprintf(above, sizeof above, "/sys/class/net/%s/device/../numa_node", interface);
    if (*interface == '\0' || (!text_read(path, text, sizeof text) && !text_read(above, text, sizeof text)))
        return -1; /* unknown: a virtual interface has no device */
    node = text_number(text, &end);
    if (node >= 0)
        return (int)node;
    /* The firmware does not report the node, which does not matter if there is only one node. */
    return text_read("/sys/devices/system/node/online", text, sizeof text) && strcmp(text, "0\n") == 0 ? 0 : -1;
}

/* Select the processors of the card's NUMA node that this process may use. Returns NULL, or why that fails. */
static const char *take_card_node(const char *interface, const cpu_set_t *allowed, struct placement *placement)
{
    char path[80], text[512];

    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", placement->card_node);
    if (placement->card_node < 0 || !text_read(path, text, sizeof text) || parse_list(text, &placement->processors) <= 0) {
        snprintf(wrong, sizeof wrong, "placement: nic: this system does not tell the NUMA node of %s; name processors instead",
                 *interface != '\0' ? interface : "the data interface");
        return wrong;
    }
    for (size_t processor = 0; processor < CPU_SETSIZE; processor++)
        if (!CPU_ISSET(processor, allowed))
            CPU_CLR(processor, &placement->processors);
    if (CPU_COUNT(&placement->processors) > 0)
        return NULL;
    snprintf(wrong, sizeof wrong, "placement: nic: the agent may use no processor of NUMA node %d, the node of %s",
             placement->card_node, interface);
    return wrong;
}

const char *placement_parse(const char *text, const char *interface, struct placement *placement)
{
    cpu_set_t allowed;

    *placement = (struct placement){.card_node = find_card_node(interface)};
    if (text == NULL)
        return NULL;
#if !defined(__linux__)
    if (strcmp(text, "packets") == 0 || strcmp(text, "nic") == 0)
        return "placement: packets and nic are not supported on this system; name processors instead";
#endif
    placement->packets = strcmp(text, "packets") == 0;
    placement->fixed = !placement->packets;
    if (placement->packets)
        return NULL;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        CPU_ZERO(&allowed);
    if (strcmp(text, "nic") == 0)
        return take_card_node(interface, &allowed, placement);
    if (parse_list(text, &placement->processors) <= 0)
        return "placement: expected packets, nic or processors, as in 2,4-7";
    return check_processors(&placement->processors, &allowed);
}

int placement_apply(const struct placement *placement)
{
    return sched_setaffinity(0, sizeof placement->processors, &placement->processors) == 0 ? 0 : errno;
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

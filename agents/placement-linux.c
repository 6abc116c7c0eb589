/* sched_setaffinity(2), SO_INCOMING_CPU of socket(7), and NUMA nodes by sysfs. */
#include "placement.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "text.h"

static bool read_text(const char *path, char text[static 512])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, 511);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
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
    if (*interface == '\0' || (!read_text(path, text) && !read_text(above, text)))
        return -1; /* a virtual interface has no device */
    node = text_number(text, &end);
    if (node >= 0)
        return (int)node;
    /* The firmware does not say (-1). With one node there is nothing to say. */
    return read_text("/sys/devices/system/node/online", text) && strcmp(text, "0\n") == 0 ? 0 : -1;
}

bool placement_of_node(int node, struct placement *placement)
{
    char path[80], text[512];

    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    return read_text(path, text) && placement_list(text, placement) > 0;
}

/* A card with rings, coalescing, channels and pause frames in place of v0's, for an agent that is started with this library
 * (LD_PRELOAD). It is kept in the file FAKE_CARD, so that it outlives the agent as a card does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct card {
    struct ethtool_ringparam rings;
    struct ethtool_coalesce coalesce;
    struct ethtool_channels channels;
    struct ethtool_pauseparam pause;
};

static struct card *card(void)
{
    int fd = open(getenv("FAKE_CARD"), O_RDWR | O_CLOEXEC);
    struct card *at = mmap(NULL, sizeof(struct card), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd < 0 || at == MAP_FAILED)
        abort();
    close(fd);
    return at;
}

static int set_rings(struct card *at, const struct ethtool_ringparam *wanted)
{
    if (wanted->rx_pending > at->rings.rx_max_pending || wanted->tx_pending > at->rings.tx_max_pending)
        return EINVAL;
    at->rings.tx_pending = wanted->tx_pending;
    for (at->rings.rx_pending = 64; at->rings.rx_pending < wanted->rx_pending;)
        at->rings.rx_pending *= 2; /* only powers of two */
    return 0;
}

static int set(struct card *at, unsigned command, void *asked)
{
    if (command == ETHTOOL_SRINGPARAM)
        return set_rings(at, asked);
    if (command == ETHTOOL_SCHANNELS)
        memcpy(&at->channels, asked, sizeof at->channels);
    if (command == ETHTOOL_SPAUSEPARAM)
        memcpy(&at->pause, asked, sizeof at->pause);
    if (command == ETHTOOL_SPAUSEPARAM && at->pause.autoneg)
        at->pause.rx_pause = at->pause.tx_pause = 1; /* what was negotiated */
    if (command == ETHTOOL_SCOALESCE)
        memcpy(&at->coalesce, asked, sizeof at->coalesce);
    at->coalesce.cmd = at->channels.cmd = at->pause.cmd = 0;
    if (command == ETHTOOL_SCOALESCE && at->coalesce.use_adaptive_rx_coalesce)
        at->coalesce.rx_coalesce_usecs = 3; /* its own choice */
    return 0;
}

static int carry_out(struct card *at, unsigned command, void *asked)
{
    const struct {
        unsigned get, set;
        void *held;
        size_t size;
    } families[] = {{ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM, &at->rings, sizeof at->rings},
                    {ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE, &at->coalesce, sizeof at->coalesce},
                    {ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS, &at->channels, sizeof at->channels},
                    {ETHTOOL_GPAUSEPARAM, ETHTOOL_SPAUSEPARAM, &at->pause, sizeof at->pause}};

    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (command == families[i].get)
            memcpy(asked, families[i].held, families[i].size);
        if (command == families[i].set)
            return set(at, command, asked);
        if (command == families[i].get)
            return 0;
    }
    return -1;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    void *argument;

    va_start(list, request);
    argument = va_arg(list, void *);
    va_end(list);
    if (request == SIOCETHTOOL) {
        struct ifreq *ask = argument;
        struct card *at = card();
        int error = strcmp(ask->ifr_name, "v0") == 0 ? carry_out(at, *(unsigned *)(void *)ask->ifr_data, ask->ifr_data) : -1;

        munmap(at, sizeof *at);
        errno = error > 0 ? error : errno;
        if (error >= 0)
            return error > 0 ? -1 : 0;
    }
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

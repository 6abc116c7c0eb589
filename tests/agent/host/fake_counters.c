/* A card of the driver FAKE_DRIVER in place of v0, whose private counters have the names in the file FAKE_NAMES, for an agent that is
 * started with this library (LD_PRELOAD). From one reading to the next each counter rises by its line number. With FAKE_MORE, as many
 * counters more are there when they are read than when they were counted. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMES_MAX 2000

static char names[NAMES_MAX][ETH_GSTRING_LEN];

static unsigned read_names(void)
{
    FILE *file = fopen(getenv("FAKE_NAMES"), "r");
    char line[256];
    unsigned count = 0;

    if (file == NULL)
        abort();
    while (count < NAMES_MAX && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        strncpy(names[count++], line, ETH_GSTRING_LEN);
    }
    fclose(file);
    return count;
}

static int carry_out(void *asked)
{
    static unsigned long long readings;
    unsigned count = read_names(), more = getenv("FAKE_MORE") != NULL ? (unsigned)atoi(getenv("FAKE_MORE")) : 0;
    struct ethtool_drvinfo *about = asked;
    struct ethtool_gstrings *strings = asked;
    struct ethtool_stats *numbers = asked;

    switch (*(unsigned *)asked) {
    case ETHTOOL_GDRVINFO:
        snprintf(about->driver, sizeof about->driver, "%s", getenv("FAKE_DRIVER"));
        about->n_stats = count;
        return 0;
    case ETHTOOL_GSTRINGS:
        if (strings->string_set != ETH_SS_STATS)
            return -1;
        memcpy(strings->data, names, (size_t)count * ETH_GSTRING_LEN);
        strings->len = count;
        return 0;
    case ETHTOOL_GSTATS:
        for (unsigned i = 0; i < count + more; i++)
            numbers->data[i] = readings * (i + 1);
        numbers->n_stats = count + more;
        readings++;
        return 0;
    default:
        return -1;
    }
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

        if (strcmp(ask->ifr_name, "v0") == 0 && carry_out(ask->ifr_data) == 0)
            return 0;
    }
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

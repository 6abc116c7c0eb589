/* Counters of an interface: struct if_data (net/if.h) of its link-level address, by getifaddrs(3). It knows no drops of queueing
 * disciplines, and of its carrier only when it changed last. */
#include "sample.h"

#include <ifaddrs.h>
#include <string.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <net/if.h>

void sample_nic(const char *interface, struct nic_counters *counters)
{
    struct ifaddrs *all;

    memset(counters, 0xff, sizeof *counters); /* every one unknown */
    if (*interface == '\0' || getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        const struct if_data *data = at->ifa_data;

        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_LINK || data == NULL || strcmp(at->ifa_name, interface) != 0)
            continue;
        counters->rx_bytes = (int64_t)data->ifi_ibytes;
        counters->rx_packets = (int64_t)data->ifi_ipackets;
        counters->rx_dropped = (int64_t)data->ifi_iqdrops;
        counters->rx_errors = (int64_t)data->ifi_ierrors;
        counters->tx_bytes = (int64_t)data->ifi_obytes;
        counters->tx_packets = (int64_t)data->ifi_opackets;
        counters->tx_dropped = (int64_t)data->ifi_oqdrops;
        counters->tx_errors = (int64_t)data->ifi_oerrors;
    }
    freeifaddrs(all);
}

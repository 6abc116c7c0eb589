/* What the kernel says of a connection, an interface and of CPU time. -1 stands for unknown.
 * sample.c for every system, and one file for each: sample-linux.c, nic-linux.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sockopts.h"

struct tcp_totals {
    int64_t mss, rcv_mss, advmss, pmtu;
    int64_t rtt_us, rtt_min_us;
    int64_t retransmits, retransmitted_bytes;
    int64_t cwnd;
    int64_t busy_us, rwnd_limited_us, sndbuf_limited_us;
    int64_t advertised_window; /* by the peer */
    int64_t segs_out, segs_in;
    int64_t acked_bytes, unacked; /* bytes acknowledged, segments sent and not */
    int64_t received_bytes;
    int64_t max_pacing_bps;       /* that a rate was asked for */
    int64_t timeouts;             /* retransmission timeouts in a row, by now */
    int64_t delivered, delivered_ce; /* segments that arrived, and of those the ones acknowledged with the echo of a mark (ECN) */
    int64_t received_ce;             /* segments that arrived marked */
    int timestamps; /* 0, 1 or -1 */
    struct sockopts sockopts; /* as read back */
};

/* rtnl_link_stats64 of an interface, as /proc/net/dev shows it, the drops of its queueing disciplines, and how often its carrier
 * came or went. */
struct nic_counters {
    int64_t rx_bytes, rx_packets, rx_dropped, rx_errors, tx_bytes, tx_packets, tx_dropped, tx_errors, queue_drops,
        carrier_changes;
};

#define MOST_CPUS 256

struct cpu_times {
    int64_t at_ns;
    int64_t agent_us; /* user + system of this process */
    int64_t node_busy_us; /* all CPUs, all but idle and iowait */
    int64_t node_irq_us;  /* of that, irq and softirq */
    int64_t throttled_us; /* this process was kept from all CPUs by a quota of its control group, or of one above it */
    uint32_t busy_ms[MOST_CPUS]; /* of each; UINT32_MAX of one that is off */
    int cpus; /* the highest number of one, and one; -1: not known, or too many */
};

void sample_unknown(struct tcp_totals *totals);
struct multipath;
/* Everything the kernel says of the connection `fd`, or of all its subflows; `paths` NULL: it has none. */
void sample_tcp(int fd, struct multipath *paths, struct tcp_totals *totals);
/* Of that, what its system's TCP_INFO holds. */
void sample_info(int fd, struct tcp_totals *totals);
/* Of Linux, a TCP_INFO of `length` bytes. */
void sample_parse(const unsigned char *bytes, size_t length, struct tcp_totals *totals);
/* How many this process may run on. */
int sample_cpus(void);
void sample_cpu(struct cpu_times *times);
/* Of that, what is not this process's own: how busy the node's CPUs were, how long a quota held it back. */
void sample_node(struct cpu_times *times);
/* How long the CPU was busy that was so longest between the two; -1 where that is not known. */
int64_t sample_busiest_us(const struct cpu_times *before, const struct cpu_times *after);
/* The counters of `interface`; all unknown where it is "" or not there. */
void sample_nic(const char *interface, struct nic_counters *counters);

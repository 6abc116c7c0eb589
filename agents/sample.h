/* What the kernel says of a connection, an interface and of CPU time. -1 stands for unknown.
 * sample.c for every system, and one file for each: sample-linux.c, nic-linux.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sockopts.h"

/* What TCP_INFO counts: the name in reports, the field of Linux's struct tcp_info, and what a connection of several subflows has: the SUM,
 * the SAME value or nothing, or NONE, as each subflow has its own. */
#define TCP_COUNTS(X) \
    X(mss, tcpi_snd_mss, NONE) \
    X(rcv_mss, tcpi_rcv_mss, NONE) \
    X(advmss, tcpi_advmss, NONE) \
    X(pmtu, tcpi_pmtu, SAME) \
    X(rtt_us, tcpi_rtt, NONE) \
    X(rtt_min_us, tcpi_min_rtt, NONE) \
    X(retransmits, tcpi_total_retrans, SUM) \
    X(retransmitted_bytes, tcpi_bytes_retrans, SUM) \
    X(cwnd, tcpi_snd_cwnd, NONE) \
    X(busy_us, tcpi_busy_time, NONE) \
    X(rwnd_limited_us, tcpi_rwnd_limited, NONE) \
    X(sndbuf_limited_us, tcpi_sndbuf_limited, NONE) \
    X(advertised_window, tcpi_snd_wnd, NONE) /* by the peer */ \
    X(segs_out, tcpi_segs_out, SUM) \
    X(segs_in, tcpi_segs_in, SUM) \
    X(acked_bytes, tcpi_bytes_acked, SUM) \
    X(unacked, tcpi_unacked, SUM) /* segments */ \
    X(timeouts, tcpi_retransmits, NONE) /* retransmission timeouts in a row, by now */ \
    X(max_pacing_bps, tcpi_max_pacing_rate, NONE) \
    X(delivered, tcpi_delivered, SUM) /* segments that arrived, and those acknowledged with the echo of a mark (ECN) */ \
    X(delivered_ce, tcpi_delivered_ce, SUM)

#define AS_FIELD(name, field, rule) int64_t name;
struct tcp_totals {
    TCP_COUNTS(AS_FIELD)
    int64_t received_ce; /* segments that arrived marked */
    int64_t received_bytes;
    int timestamps; /* 0, 1 or -1 */
    struct sockopts sockopts; /* as read back */
};

/* The counters of an interface: the first eight as rtnl_link_stats64 begins, the drops of its queueing disciplines, and how often its
 * carrier came or went. */
#define NIC_COUNTS(X) \
    X(rx_packets) X(tx_packets) X(rx_bytes) X(tx_bytes) X(rx_errors) X(tx_errors) X(rx_dropped) X(tx_dropped) \
    X(queue_drops) X(carrier_changes)

#define AS_COUNTER(name) int64_t name;
struct nic_counters {
    NIC_COUNTS(AS_COUNTER)
};

#define MOST_CPUS 256

struct cpu_times {
    int64_t at_us;
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

/* What the kernel reports about a connection, an interface and CPU time. -1 means unknown. */
#pragma once

#include "sockopts.h"

/* Values of TCP_INFO, each with its name in reports, field of struct tcp_info, and total of several subflows: SUM, SAME if equal, NONE. */
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
    X(advertised_window, tcpi_snd_wnd, NONE) /* window advertised by the peer */ \
    X(segs_out, tcpi_segs_out, SUM) \
    X(segs_in, tcpi_segs_in, SUM) \
    X(acked_bytes, tcpi_bytes_acked, SUM) \
    X(unacked, tcpi_unacked, SUM) /* segments sent but not acknowledged */ \
    X(timeouts, tcpi_retransmits, NONE) /* current number of retransmission timeouts in a row */ \
    X(max_pacing_bps, tcpi_max_pacing_rate, NONE) \
    X(delivered, tcpi_delivered, SUM) /* segments that the peer has received; the next row counts those with an ECN mark */ \
    X(delivered_ce, tcpi_delivered_ce, SUM)

#define AS_FIELD(name, field, rule) int64_t name;
struct tcp_totals {
    TCP_COUNTS(AS_FIELD)
    int64_t received_ce; /* received segments with an ECN mark */
    int64_t received_bytes;
    int timestamps;           /* whether TCP timestamps are in use: 1, 0, or -1 for unknown */
    struct sockopts sockopts; /* values of the socket options, read back */
};

/* The counters of an interface, the first eight in the order of rtnl_link_stats64. `queue_drops` are those of its queueing disciplines. */
#define NIC_COUNTS(X) \
    X(rx_packets) X(tx_packets) X(rx_bytes) X(tx_bytes) X(rx_errors) X(tx_errors) X(rx_dropped) X(tx_dropped) \
    X(queue_drops) X(carrier_changes)

/* What the card counts on the wire (IEEE 802.3, 30.3, 30.5): pause frames, and signs of a bad cable. */
#define WIRE_COUNTS(X) \
    X(rx_pause) X(tx_pause) X(fcs_errors) X(alignment_errors) X(late_collisions) X(symbol_errors) X(fec_corrected) X(fec_uncorrectable)

#define AS_COUNTER(name) int64_t name;
struct wire_counters {
    WIRE_COUNTS(AS_COUNTER)
};

struct nic_counters {
    NIC_COUNTS(AS_COUNTER)
    struct wire_counters wire;
};

/* What the network stack of this namespace counts of connections: of TcpExt in /proc/net/netstat, and packets that the connection tracking
 * of its firewall dropped (drop of /proc/net/stat/nf_conntrack), and of these the packets whose connection clashed with another one
 * (insert_failed). */
#define STACK_COUNTS(X) \
    X(syn_retransmits) X(listen_overflows) X(listen_drops) X(cookies_sent) X(conntrack_failures) X(conntrack_clashes)

struct stack_counters {
    STACK_COUNTS(AS_COUNTER)
};

#define CPUS_MAX 256

struct cpu_times {
    int64_t at_us;
    int64_t agent_us;           /* user and system time of this process in µs */
    int64_t node_busy_us;       /* busy time of all CPUs in µs, without idle and iowait */
    int64_t node_irq_us;        /* part of `node_busy_us` spent in irq and softirq */
    int64_t throttled_us;       /* time in µs for which CPU quotas have stopped this process */
    uint32_t busy_ms[CPUS_MAX]; /* busy time of each CPU in ms; UINT32_MAX: the CPU is off */
    int cpus;                   /* highest CPU number plus one; -1: unknown or too many */
};

/* Set all totals to -1, unknown. */
void sample_clear(struct tcp_totals *totals);
/* Read the TCP_INFO of the connection `fd`. Values that the kernel does not report stay unchanged. */
void sample_info(int fd, struct tcp_totals *totals);
/* Linux only: read the values from a TCP_INFO of `length` bytes. */
void sample_parse(const unsigned char *bytes, size_t length, struct tcp_totals *totals);
/* Return the number of CPUs that this process may use. */
int sample_cpus(void);
void sample_cpu(struct cpu_times *times);
/* Read all fields but `at_us` and `agent_us`. The sample-*.c file of each system has this function. */
void sample_node(struct cpu_times *times);
/* Return the busy time of the busiest CPU between two readings, or -1 if it is unknown. */
int64_t sample_busiest_us(const struct cpu_times *before, const struct cpu_times *after);
/* Read the counters of `interface`; all are unknown if the name is "" or no interface has it. */
void sample_nic(const char *interface, struct nic_counters *counters);
/* Read the counters of the network stack; all are unknown where the system does not report them. */
void sample_stack(struct stack_counters *counters);

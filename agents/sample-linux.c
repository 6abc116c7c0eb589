/* TCP_INFO, /proc/stat and cpu.stat of control groups. An older kernel gives a shorter TCP_INFO: what it lacks stays unknown. */
#include "sample.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include "text.h"

#define RECEIVED_CE_AT 248 /* bytes into TCP_INFO: tcpi_received_ce of Linux 6.18, which headers do not have yet */

/* The field of TCP_INFO, or -1 where the kernel's struct ends before it. */
#define FIELD(name) (offsetof(struct tcp_info, name) + sizeof info.name <= length ? (int64_t)info.name : -1)

void sample_info(int fd, struct tcp_totals *totals)
{
    unsigned char bytes[512];
    socklen_t length = sizeof bytes;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, bytes, &length) == 0)
        sample_parse(bytes, length, totals);
}

void sample_parse(const unsigned char *bytes, size_t length, struct tcp_totals *totals)
{
    struct tcp_info info = {0};
    uint32_t received_ce;

    memcpy(&info, bytes, length < sizeof info ? length : sizeof info);
    totals->mss = FIELD(tcpi_snd_mss);
    totals->rcv_mss = FIELD(tcpi_rcv_mss);
    totals->advmss = FIELD(tcpi_advmss);
    totals->pmtu = FIELD(tcpi_pmtu);
    totals->rtt_us = FIELD(tcpi_rtt);
    totals->rtt_min_us = FIELD(tcpi_min_rtt);
    if (totals->rtt_min_us == UINT32_MAX) /* no round trip was measured yet */
        totals->rtt_min_us = -1;
    totals->retransmits = FIELD(tcpi_total_retrans);
    totals->retransmitted_bytes = FIELD(tcpi_bytes_retrans);
    totals->cwnd = FIELD(tcpi_snd_cwnd);
    totals->busy_us = FIELD(tcpi_busy_time);
    totals->rwnd_limited_us = FIELD(tcpi_rwnd_limited);
    totals->sndbuf_limited_us = FIELD(tcpi_sndbuf_limited);
    totals->advertised_window = FIELD(tcpi_snd_wnd);
    totals->segs_out = FIELD(tcpi_segs_out);
    totals->segs_in = FIELD(tcpi_segs_in);
    totals->acked_bytes = FIELD(tcpi_bytes_acked);
    totals->unacked = FIELD(tcpi_unacked);
    totals->received_bytes = FIELD(tcpi_bytes_received);
    totals->max_pacing_bps = FIELD(tcpi_max_pacing_rate) < 0 ? -1 : 8 * FIELD(tcpi_max_pacing_rate);
    totals->timeouts = FIELD(tcpi_retransmits);
    totals->delivered = FIELD(tcpi_delivered);
    /* Without ECN nothing can be marked: then there is no count. */
    if (info.tcpi_options & TCPI_OPT_ECN) {
        totals->delivered_ce = FIELD(tcpi_delivered_ce);
        if (length >= RECEIVED_CE_AT + sizeof received_ce) {
            memcpy(&received_ce, bytes + RECEIVED_CE_AT, sizeof received_ce);
            totals->received_ce = received_ce;
        }
    }
    totals->timestamps = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
}

/* Of a line of /proc/stat, behind its name: user nice system idle iowait irq softirq steal …; those that were busy, or -1, and
 * those of interrupts. */
static int64_t busy_ticks(const char *at, int64_t *irq)
{
    int64_t busy = 0;

    *irq = 0;
    for (int i = 0; i < 7; i++) {
        const char *end;
        int64_t ticks = text_number(at + strspn(at, " "), &end);

        if (ticks < 0)
            return -1;
        at = end;
        busy += i == 3 || i == 4 ? 0 : ticks;
        *irq += i > 4 ? ticks : 0;
    }
    return busy;
}

/* One line of /proc/stat; false behind those of the CPUs, which come first. */
static bool take_cpu(struct cpu_times *times, const char *line, int64_t tick_us)
{
    const char *rest;
    int64_t irq, cpu;

    if (strncmp(line, "cpu", 3) != 0)
        return false;
    if (line[3] == ' ') {
        int64_t busy = busy_ticks(line + 3, &irq);

        times->node_busy_us = busy < 0 ? -1 : busy * tick_us;
        times->node_irq_us = busy < 0 ? -1 : irq * tick_us;
        return true;
    }
    cpu = text_number(line + 3, &rest);
    if (cpu >= 0 && cpu < MOST_CPUS)
        times->busy_ms[cpu] = (uint32_t)(busy_ticks(rest, &irq) * tick_us / 1000);
    times->cpus = cpu < MOST_CPUS ? (int)cpu + 1 : -1;
    return true;
}

int sample_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* What the file at `path` begins with, as a string; "" where it cannot be read. */
static char *begins(const char *path, char text[static 1024])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, 1023);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

/* How long quotas held back this process's control group and those above it, by their cpu.stat; -1 where none has one. A line of
 * /proc/self/cgroup is `number:controllers:/path`, version 2's has no controllers; cgroups(7). Version 1 counts in ns. What is not
 * visible here, as of a container, is passed over. */
static int64_t throttled_us(void)
{
    char text[1024], path[1100];
    const char *group = strstr(begins("/proc/self/cgroup", text), ":cpu,");
    int64_t sum = -1;
    int end, root;

    if (group == NULL)
        group = strstr(text, ":cpu:");
    root = snprintf(path, 20, group != NULL ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup");
    if (group == NULL && (group = strstr(text, "::")) == NULL)
        return -1;
    end = root + snprintf(path + root, 1024, "%s", strchr(group + 1, ':') + 1);
    for (int at = root; at < end; at++)
        if (path[at] == '\n')
            end = at;
    while (end >= root) {
        const char *line, *rest;

        strcpy(path + end, "/cpu.stat");
        line = strstr(begins(path, text), "\nthrottled_");
        if (line != NULL)
            sum = (sum < 0 ? 0 : sum) + text_number(line + 16, &rest) / (line[11] == 'u' ? 1 : 1000);
        while (--end >= root && path[end] != '/')
            ;
    }
    return sum;
}

void sample_node(struct cpu_times *times)
{
    char text[2048];
    size_t have = 0;
    ssize_t got;
    bool more = true;
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    long ticks = (long)getauxval(AT_CLKTCK);

    times->throttled_us = throttled_us();
    times->node_busy_us = -1;
    times->node_irq_us = -1;
    times->cpus = -1;
    memset(times->busy_ms, 0xff, sizeof times->busy_ms);
    if (fd < 0)
        return;
    while (ticks > 0 && more && (got = read(fd, text + have, sizeof text - 1 - have)) > 0) {
        char *line = text, *end;

        text[have + (size_t)got] = '\0';
        while (more && (end = strchr(line, '\n')) != NULL) {
            more = take_cpu(times, line, 1000000 / ticks);
            line = end + 1;
        }
        have = strlen(line);
        memmove(text, line, have);
    }
    close(fd);
}

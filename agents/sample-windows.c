/* SIO_TCP_INFO (TCP_INFO_v1 of Windows 10 1809, v0 of 1703), processor times and interface counters of Windows. */
#include "sample.h"

#include <iphlpapi.h>
#include <mstcpip.h>
#include <netioapi.h>
#include <winternl.h>
#undef interface /* COM defines this name as a macro */
/* Declared in headers of drivers only; the input is the number of a processor group. */
NTSYSAPI NTSTATUS NTAPI NtQuerySystemInformationEx(SYSTEM_INFORMATION_CLASS kind, void *input, ULONG input_bytes, void *output, ULONG bytes,
                                                   ULONG *length);

#define GROUP_CPUS 64 /* most processors of a group; here processor n of group g has the number 64 g + n */

static int64_t in_segments(int64_t bytes, int64_t mss)
{
    return mss > 0 ? (bytes + mss - 1) / mss : -1;
}

void sample_info(int fd, struct tcp_totals *totals)
{
    TCP_INFO_v1 info = {0};
    DWORD version = 1, got;

    if (WSAIoctl((SOCKET)fd, SIO_TCP_INFO, &version, sizeof version, &info, sizeof info, &got, NULL, NULL) != 0) {
        version = 0; /* TCP_INFO_v1 begins with the fields of TCP_INFO_v0 */
        if (WSAIoctl((SOCKET)fd, SIO_TCP_INFO, &version, sizeof version, &info, sizeof(TCP_INFO_v0), &got, NULL, NULL) != 0)
            return;
    }
    totals->mss = info.Mss;
    totals->rtt_us = info.RttUs;
    totals->rtt_min_us = info.MinRttUs == UINT32_MAX ? -1 : (int64_t)info.MinRttUs;
    totals->retransmitted_bytes = info.BytesRetrans;
    totals->retransmits = in_segments(info.BytesRetrans, info.Mss);
    totals->cwnd = info.Mss > 0 ? info.Cwnd / info.Mss : -1; /* in segments, as on Linux */
    totals->unacked = in_segments(info.BytesInFlight, info.Mss);
    totals->advertised_window = info.SndWnd;
    totals->timestamps = info.TimestampsEnabled != 0;
    if (version == 0)
        return;
    /* SndLimTimeSnd is the time in which the sender limited itself, by a full buffer or because the program sent nothing. So the time with
     * a full buffer, and the time with data to send, are unknown. */
    totals->rwnd_limited_us = (int64_t)info.SndLimTimeRwin * 1000;
}

/* Read the times of the processors of a group, at most 64. Returns their number, or -1. */
static int read_group(USHORT group, USHORT groups, SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION found[GROUP_CPUS])
{
    ULONG bytes = GROUP_CPUS * sizeof *found, length = 0;
    NTSTATUS status = groups == 1 ? NtQuerySystemInformation(SystemProcessorPerformanceInformation, found, bytes, &length)
                                  : NtQuerySystemInformationEx(SystemProcessorPerformanceInformation, &group, sizeof group, found,
                                                               bytes, &length);

    return status == 0 ? (int)(length / sizeof *found) : -1;
}

void sample_node(struct cpu_times *times)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION found[GROUP_CPUS];
    USHORT groups = GetActiveProcessorGroupCount();

    times->node_busy_us = times->node_irq_us = 0;
    times->throttled_us = -1;
    times->cpus = 0;
    memset(times->busy_ms, 0xff, sizeof times->busy_ms);
    for (USHORT group = 0; group < groups; group++) {
        int count = group < CPUS_MAX / GROUP_CPUS ? read_group(group, groups, found) : -1;

        if (count < 0) { /* without one of the groups nothing is known of the node */
            times->node_busy_us = times->node_irq_us = times->cpus = -1;
            return;
        }
        for (int i = 0; i < count; i++) {
            /* Times in units of 100 ns. KernelTime includes IdleTime and the times of deferred calls and interrupts (Reserved1). */
            int64_t busy = found[i].KernelTime.QuadPart - found[i].IdleTime.QuadPart + found[i].UserTime.QuadPart;

            times->busy_ms[group * GROUP_CPUS + i] = (uint32_t)(busy / 10000);
            times->node_busy_us += busy / 10;
            times->node_irq_us += (found[i].Reserved1[0].QuadPart + found[i].Reserved1[1].QuadPart) / 10;
        }
        times->cpus = group * GROUP_CPUS + count;
    }
}

int sample_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void sample_nic(const char *interface, struct nic_counters *counters)
{
    wchar_t alias[NDIS_IF_MAX_STRING_SIZE + 1];
    MIB_IF_ROW2 row = {0};

    memset(counters, 0xff, sizeof *counters); /* -1: unknown */
    if (*interface == '\0' || !posix_wide(interface, alias, NDIS_IF_MAX_STRING_SIZE + 1) ||
        ConvertInterfaceAliasToLuid(alias, &row.InterfaceLuid) != NO_ERROR || GetIfEntry2(&row) != NO_ERROR)
        return;
    counters->rx_bytes = (int64_t)row.InOctets;
    counters->rx_packets = (int64_t)(row.InUcastPkts + row.InNUcastPkts);
    counters->rx_dropped = (int64_t)row.InDiscards;
    counters->rx_errors = (int64_t)row.InErrors;
    counters->tx_bytes = (int64_t)row.OutOctets;
    counters->tx_packets = (int64_t)(row.OutUcastPkts + row.OutNUcastPkts);
    counters->tx_dropped = (int64_t)row.OutDiscards;
    counters->tx_errors = (int64_t)row.OutErrors;
}

void sample_stack(struct stack_counters *counters)
{
    memset(counters, 0xff, sizeof *counters); /* -1: unknown */
}

/* Writes the report line by line, as the controller reads it, so that the report needs no extra memory. */
#include "control.h"
#include "endpoint.h"
#include "marks.h"
#include "mptcp.h"
#include "system.h"

#define PIECE_ROWS 200
#define PIECE_PCAP 9000 /* bytes of the pcap file in a line, a multiple of 3 for base64 */
#define PIECE_BINS 1400 /* most bins in a line */
#define BIN_MAX 21      /* most bytes of a bin: a 64-bit number and a comma */
#define ROW_MAX 160     /* most bytes of a row: seven 64-bit numbers with commas and brackets */

static int64_t unknown_if_zero(int64_t ns)
{
    return ns > 0 ? ns : -1;
}

/* Add the processors on which samples found the flow's thread, with counts, as [[2,98],[3,2]]; then the NUMA node found most often. */
static void write_places(const struct flow *flow)
{
    const struct places *places = &flow->places;
    int node = -1, most = 0;

    line_add(",\"processors\":%s", places->found[0].samples > 0 ? "[" : "null");
    for (int i = 0; i < PLACES_MAX && places->found[i].samples > 0; i++) {
        line_add("%s[%d,%d]", i > 0 ? "," : "", places->found[i].processor, places->found[i].samples);
        if (places->found[i].samples > most) {
            most = places->found[i].samples;
            node = placement_node_of(places->found[i].processor);
        }
    }
    if (most > 0)
        line_add("]");
    line_add_count("numa_node", node);
    line_add_count("card_numa_node", flow->request->placement.card_node);
}

static void begin_flow_line(int64_t id, const struct flow *flow)
{
    answer_begin(id);
    line_add_count("flow", flow->number);
}

#define AS_COUNT(name, field, rule) line_add_count(#name, totals->name);

static void write_totals(int64_t id, const struct flow *flow)
{
    struct tcp_totals unknown;
    const struct tcp_totals *totals = flow->work->connects ? &unknown : &flow->totals; /* not of the connection that opened the flow */
    const struct histogram *trips = flow->trips;

    sample_clear(&unknown);
    begin_flow_line(id, flow);
    line_add_count("bytes", flow->bytes);
    line_add_count("first_byte_ns", unknown_if_zero(flow->first_byte_ns));
    line_add_count("last_byte_ns", unknown_if_zero(flow->last_byte_ns));
    TCP_COUNTS(AS_COUNT)
    line_add_count("received_ce", totals->received_ce);
    sockopts_report(&totals->sockopts);
    line_add_flag("buffers_doubled", SYSTEM_DOUBLES_BUFFERS);
    line_add_flag("timestamps", totals->timestamps);
    line_add_count("round_trips", trips != NULL ? trips->count : -1);
    line_add_count("rtt_sum_ns", trips != NULL && trips->count > 0 ? trips->sum_ns : -1);
    line_add_count("rtt_min_ns", trips != NULL && trips->count > 0 ? trips->min_ns : -1);
    line_add_count("rtt_max_ns", trips != NULL && trips->count > 0 ? trips->max_ns : -1);
    line_add_count("disk_us", flow->file.disk_ns < 0 ? -1 : flow->file.disk_ns / 1000);
    line_add_count("sync_us", flow->file.sync_ns < 0 ? -1 : flow->file.sync_ns / 1000);
    line_add_count("sends", flow->work->copies && flow->sender ? flow->sends.count : -1);
    line_add_count("uncopied_sends", flow->request->zerocopy ? flow->sends.uncopied : -1);
    marks_report(flow->marks);
    mptcp_report(flow->multipath, flow->sender);
    write_places(flow);
    line_add_flag("copied", flow->work->copies && !flow->sender ? flow->request->copy || !SYSTEM_DISCARDS : -1);
    line_end();
}

/* Write rows from index `from` on, as differences to the row before; row 0 is absolute. Returns the index after the last written row. */
static int write_samples(int64_t id, const struct flow *flow, int from)
{
    int columns = flow_columns(flow);
    int row = from;
    const char *names = flow->work->by_burst ? "bytes\",\"span_ns"
                        : flow->sender && flow->work->paced ? "answered\",\"rtt_ns"
                        : flow_samples_highest(flow) ? "bytes\",\"highest"
                        : columns == COLUMNS_SUBFLOWS ? "bytes\",\"retransmits"
                        : columns == COLUMNS_ADVERTISED ? "bytes\",\"retransmits\",\"rtt_us\",\"cwnd\",\"mss\",\"advertised_window"
                        : columns == COLUMNS_SENDER ? "bytes\",\"retransmits\",\"rtt_us\",\"cwnd\",\"mss" : "bytes";

    begin_flow_line(id, flow);
    line_add(",\"from\":%d,\"columns\":[\"t_ns\",\"%s\"],\"rows\":[", from, names);
    for (; row < flow->samples.count && row < from + PIECE_ROWS && line_length() + ROW_MAX < ANSWER_MAX; row++) {
        const int64_t *now = flow->samples.rows + (size_t)row * (size_t)columns;

        for (int i = 0; i < columns; i++)
            line_add("%s%lld", i > 0 ? "," : row > from ? ",[" : "[",
                     (long long)(row > 0 ? now[i] - now[i - columns] : now[i]));
        line_add("]");
    }
    line_add("]");
    line_end();
    return row;
}

static void write_datagrams(int64_t id, const struct flow *flow)
{
    const struct datagrams *datagrams = flow->datagram.counts;

    begin_flow_line(id, flow);
    line_add_count("datagrams", datagrams->count);
    line_add_count("refused", flow->sender || flow->work->messages ? datagrams->refused : -1);
    line_add_count("duplicates", flow->sender ? -1 : datagrams->duplicates);
    line_add_count("reordered", flow->sender ? -1 : datagrams->reordered);
    line_add_count("strays", datagrams->strays);
    line_add_count("highest", flow->sender ? -1 : datagrams->next);
    line_add_count("overflow", datagrams->overflow);
    line_add_count("jitter_ns", datagrams->jitter_ns);
    line_add_count("jitter_max_ns", datagrams->jitter_max_ns);
    line_add_count("burst", datagrams->burst);
    line_add_flag("segmented", datagrams->segmented);
    line_end();
}

static void write_own_counts(int64_t id, const struct flow *flow)
{
    begin_flow_line(id, flow);
    flow->work->report(flow);
    line_end();
}

/* Return a flow's histogram: of round trips (sender of a ping-pong or of requests), of times to connect, of loss bursts (receiver of
 * datagrams), or NULL. */
static const struct histogram *find_histogram(const struct flow *flow)
{
    if (flow->trips != NULL)
        return flow->trips;
    return flow->datagram.counts != NULL && !flow->sender && flow->work->bursts ? &flow->datagram.counts->bursts : NULL;
}

/* Write the non-empty buckets from `from` on. Returns the next non-empty bucket, or HISTOGRAM_BUCKETS. */
static int write_buckets(int64_t id, const struct flow *flow, int from)
{
    const uint32_t *buckets = find_histogram(flow)->buckets;
    int bucket = from;

    begin_flow_line(id, flow);
    line_add(",\"buckets\":[");
    for (int written = 0; bucket < HISTOGRAM_BUCKETS && written < PIECE_ROWS; bucket++) {
        if (buckets[bucket] == 0)
            continue;
        line_add("%s[%d,%lu]", written > 0 ? "," : "", bucket, (unsigned long)buckets[bucket]);
        written++;
    }
    line_add("]");
    line_end();
    while (bucket < HISTOGRAM_BUCKETS && buckets[bucket] == 0)
        bucket++;
    return bucket;
}

/* Return the number of a flow's bins up to the last non-empty one. */
static int64_t count_bins(const struct flow *flow)
{
    int64_t used = flow->bins.bytes == NULL ? 0 : flow->bins.room;

    while (used > 0 && flow->bins.bytes[used - 1] == 0)
        used--;
    return used;
}

/* Write bins from `from` on. Returns the bin after the last written one. */
static int64_t write_bins(int64_t id, const struct flow *flow, int64_t from, int64_t used)
{
    int64_t bin = from;

    begin_flow_line(id, flow);
    line_add_count("bin_us", flow->start->bin_ns / 1000);
    line_add_count("from", from);
    line_add(",\"bins\":[");
    for (; bin < used && bin < from + PIECE_BINS && line_length() + BIN_MAX + 2 < ANSWER_MAX; bin++)
        line_add("%s%llu", bin > from ? "," : "", (unsigned long long)flow->bins.bytes[bin]);
    line_add("]");
    line_end();
    return bin;
}

static void write_capture(int64_t id, const struct capture *capture)
{
    answer_begin(id);
    line_add(",\"capture\":{\"frames\":%lld", (long long)capture->frames);
    line_add_count("lost", capture->lost);
    line_add_count("bytes", (int64_t)capture->used);
    line_add_flag("cut", capture->cut);
    line_add("}");
    line_end();
}

/* Write the pcap file from byte `from` on, in base64 (RFC 4648). Returns the byte after the last written one. */
static size_t write_pcap(int64_t id, const struct capture *capture, size_t from)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t until = capture->used - from < PIECE_PCAP ? capture->used : from + PIECE_PCAP;

    answer_begin(id);
    line_add(",\"pcap\":\"");
    for (size_t at = from; at < until; at += 3) {
        size_t left = until - at;
        uint32_t group = (uint32_t)capture->data[at] << 16 | (left > 1 ? (uint32_t)capture->data[at + 1] << 8 : 0) |
                         (left > 2 ? capture->data[at + 2] : 0);

        line_add("%c%c%c%c", digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
                 left > 2 ? digits[group & 63] : '=');
    }
    line_add("\"");
    line_end();
    return until;
}

/* Add the increase of a value, or null if it is unknown or the value fell. */
static void add_difference(const char *name, int64_t after, int64_t before)
{
    line_add_count(name, after < 0 || before < 0 || after < before ? -1 : after - before);
}

#define AS_DIFFERENCE(name) add_difference(#name, nic.name, endpoint->life.nic.name);
#define AS_STACK_DIFFERENCE(name) add_difference(#name, stack.name, endpoint->life.stack.name);
#define AS_WIRE_DIFFERENCE(name) add_difference(#name, nic.wire.name, endpoint->life.nic.wire.name);

static void write_last(const struct endpoint *endpoint)
{
    const struct cpu_times *before = &endpoint->life.before, *after = &endpoint->life.after;
    struct nic_counters nic;
    struct stack_counters stack;

    sample_stack(&stack);
    sample_nic(endpoint->request.interface, &nic);
    answer_begin_ok(endpoint->report.id);
    line_add_count("endpoint", endpoint->number);
    line_add_count("strangers", endpoint->openings.strangers);
    add_difference("span_us", after->at_us, before->at_us);
    add_difference("agent_cpu_us", after->agent_us, before->agent_us);
    add_difference("node_busy_us", after->node_busy_us, before->node_busy_us);
    add_difference("node_irq_us", after->node_irq_us, before->node_irq_us);
    add_difference("throttled_us", after->throttled_us, before->throttled_us);
    line_add_count("busiest_cpu_us", sample_busiest_us(before, after));
    line_add_count("cpus", sample_cpus());
    NIC_COUNTS(AS_DIFFERENCE)
    WIRE_COUNTS(AS_WIRE_DIFFERENCE)
    STACK_COUNTS(AS_STACK_DIFFERENCE)
    line_end();
}

void report_begin(struct endpoint *endpoint, int64_t id)
{
    endpoint->report = (struct report){.id = id, .row = -1};
}

/* Write the next lines of a flow's report. Returns false if nothing is left to write. */
static bool write_flow(struct report *report, const struct flow *flow)
{
    if (report->row < 0) {
        write_totals(report->id, flow);
        if (flow->datagram.counts != NULL)
            write_datagrams(report->id, flow);
        if (flow->counts != NULL)
            write_own_counts(report->id, flow);
        report->row = 0;
    } else if (report->row < flow->samples.count) {
        report->row = write_samples(report->id, flow, report->row);
    } else if (find_histogram(flow) != NULL && report->bucket < HISTOGRAM_BUCKETS) {
        report->bucket = write_buckets(report->id, flow, report->bucket);
    } else if (report->bin < count_bins(flow)) {
        report->bin = write_bins(report->id, flow, report->bin, count_bins(flow));
    } else {
        return false;
    }
    return true;
}

void report_serve(struct endpoint *endpoint)
{
    struct report *report = &endpoint->report;
    const struct capture *capture = endpoint->capture;

    while (report->id != 0 && control_has_room()) {
        if (report->flow < endpoint->flow_count) {
            if (!write_flow(report, &endpoint->flows[report->flow]))
                *report = (struct report){.id = report->id, .flow = report->flow + 1, .row = -1};
        } else if (capture != NULL && report->captured < capture->used) {
            if (report->captured == 0)
                write_capture(report->id, capture);
            report->captured = write_pcap(report->id, capture, report->captured);
        } else {
            write_last(endpoint);
            report->id = 0;
        }
    }
}

/* Prints the report of a receiver that has counted the bytes of its arguments, `NANOSECONDS BYTES …`, in bins of a second. */
#include "control.h"
#include "endpoint.h"

static int64_t number(const char *text)
{
    return (int64_t)strtoll(text, NULL, 10);
}

int main(int argc, char **argv)
{
    struct request request = {.work = &stream_work};
    struct endpoint *endpoint;
    struct flow *flow;

    sockopts_clear(&request.sockopts);
    endpoint = endpoint_new(1, false, 1, &request);
    if (endpoint == NULL)
        return 1;
    flow = &endpoint->flows[0];
    endpoint->state = ENDED;
    endpoint->start = (struct start){.at_ns = 0, .bin_ns = 1000000000};
    flow->bins.room = 4;
    flow->bins.bytes = calloc((size_t)flow->bins.room, sizeof *flow->bins.bytes);
    for (int i = 1; i + 1 < argc && flow->bins.bytes != NULL; i += 2)
        flow_count_received(flow, -1, number(argv[i]), number(argv[i + 1]));
    report_begin(endpoint, 8);
    while (endpoint->report.id != 0 || control_pending() > 0) {
        report_serve(endpoint);
        if (!control_flush())
            return 1;
    }
    endpoint_free(endpoint);
    return 0;
}

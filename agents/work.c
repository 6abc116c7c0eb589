/* The list of kinds of work (work.h). */
#include "work.h"

static const struct work *const works[] = {&stream_work, &pingpong_work, &blast_work, &file_work, &connect_work,
                                           &requests_work, &udp_stream_work, &udp_pingpong_work, &probe_work, &burst_work, &multicast_work};

const struct work *work_find(const char *name, const char *transport)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i]->name, name) == 0 && strcmp(works[i]->transport, transport) == 0)
            return works[i];
    return NULL;
}

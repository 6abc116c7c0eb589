/* The table of kinds. */
#include "work.h"

#include <stddef.h>
#include <string.h>

#include "datagrams.h"
#include "file.h"
#include "messages.h"
#include "stream.h"
#include "udp.h"

static const struct work works[] = {
    {.name = "", .transport = "tcp", .prepare = stream_prepare, .run = stream_run, .bins = true, .copies = true},
    {.name = "pingpong",
     .transport = "tcp",
     .prepare = messages_prepare_pingpong,
     .run = messages_pingpong,
     .size_low = 1,
     .size_high = MESSAGE_MAX,
     .messages = true,
     .busy = true},
    {.name = "blast",
     .transport = "tcp",
     .prepare = messages_prepare_blast,
     .run = messages_blast,
     .size_low = 1,
     .size_high = MESSAGE_MAX,
     .messages = true},
    {.name = "file",
     .transport = "tcp",
     .prepare = file_prepare,
     .run = file_run,
     .size_low = 1,
     .size_high = FILE_MAX,
     .messages = true,
     .disk = true,
     .bins = true},
    {.name = "",
     .transport = "udp",
     .open = udp_open,
     .prepare = udp_prepare_stream,
     .run = udp_stream,
     .size_low = DATAGRAM_HEADER,
     .size_high = DATAGRAM_MAX,
     .rate = true,
     .bins = true,
     .bursts = true},
    {.name = "pingpong",
     .transport = "udp",
     .open = udp_open,
     .prepare = udp_prepare_pingpong,
     .run = udp_pingpong,
     .size_low = 1,
     .size_high = DATAGRAM_MAX,
     .messages = true,
     .busy = true},
    {.name = "probe",
     .transport = "udp",
     .open = udp_open,
     .prepare = udp_prepare_probe,
     .run = udp_probe,
     .size_low = DATAGRAM_HEADER,
     .size_high = DATAGRAM_MAX,
     .messages = true,
     .paced = true},
};

const struct work *work_find(const char *name, const char *transport)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, name) == 0 && strcmp(works[i].transport, transport) == 0)
            return &works[i];
    return NULL;
}

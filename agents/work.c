/* The table of kinds. */
#include "work.h"

#include <stddef.h>
#include <string.h>

#include "datagrams.h"
#include "file.h"
#include "messages.h"
#include "stream.h"
#include "udp.h"

/* Name, transport; open, prepare, run; bounds of the size. */
static const struct work works[] = {
    {"", "tcp", NULL, stream_prepare, stream_run, 0, 0, .rate = true, .bins = true, .copies = true},
    {"pingpong", "tcp", NULL, messages_prepare_pingpong, messages_pingpong, 1, MESSAGE_MAX, .messages = true, .busy = true},
    {"blast", "tcp", NULL, messages_prepare_blast, messages_blast, 1, MESSAGE_MAX, .messages = true},
    {"file", "tcp", NULL, file_prepare, file_run, 1, FILE_MAX, .messages = true, .disk = true, .bins = true},
    {"", "udp", udp_open, udp_prepare_stream, udp_stream, DATAGRAM_HEADER, DATAGRAM_MAX, .rate = true, .bins = true, .bursts = true},
    {"pingpong", "udp", udp_open, udp_prepare_pingpong, udp_pingpong, 1, DATAGRAM_MAX, .messages = true, .busy = true},
    {"probe", "udp", udp_open, udp_prepare_probe, udp_probe, DATAGRAM_HEADER, DATAGRAM_MAX, .messages = true, .paced = true},
};

const struct work *work_find(const char *name, const char *transport)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, name) == 0 && strcmp(works[i].transport, transport) == 0)
            return &works[i];
    return NULL;
}

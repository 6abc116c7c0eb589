/* The table of kinds. */
#include "work.h"

#include <stddef.h>
#include <string.h>

#include "datagrams.h"

/* Name, transport; open, prepare, send, receive, finish; bounds of the size. */
static const struct work works[] = {
    {"", "tcp", NULL, stream_prepare, stream_send, stream_receive, stream_finish, 0, 0, .rate = true, .bins = true, .copies = true},
    {"pingpong", "tcp", NULL, messages_prepare, messages_ping, messages_pong, flow_end, 1, MESSAGE_MAX, .messages = true, .trips = true},
    {"blast", "tcp", NULL, messages_prepare, messages_blast, messages_swallow, flow_end, 1, MESSAGE_MAX, .messages = true},
    {"file", "tcp", NULL, file_prepare, file_send, file_receive, flow_end, 1, FILE_MAX, .messages = true, .disk = true, .bins = true},
    {"", "udp", udp_open, udp_stream_prepare, udp_stream_send, udp_stream_receive, udp_finish, DATAGRAM_HEADER, DATAGRAM_MAX,
     .rate = true, .bins = true, .bursts = true},
    {"pingpong", "udp", udp_open, udp_prepare, udp_ping, udp_pong, udp_finish, 1, DATAGRAM_MAX, .messages = true, .trips = true},
    {"probe", "udp", udp_open, udp_prepare, udp_probe, udp_pong, udp_finish, DATAGRAM_HEADER, DATAGRAM_MAX, .messages = true, .paced = true},
};

const struct work *work_find(const char *name, const char *transport)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, name) == 0 && strcmp(works[i].transport, transport) == 0)
            return &works[i];
    return NULL;
}

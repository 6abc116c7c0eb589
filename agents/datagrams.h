/* Datagrams by their sequence numbers: what was lost, came twice or out of order, and how steadily (docs/reference/agent-protocol.md, "Datagrams"). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"

#define DATAGRAM_HEADER 16        /* tag (64 bits), sequence number and sender's clock in ns (the low 32 bits of each), big-endian */
#define DATAGRAM_MAX 65507        /* RFC 768 in IPv4 */
#define DATAGRAM_WINDOW (1 << 18) /* a datagram that comes later than so many others counts as lost */
#define TAG_BYTES 8

struct datagrams {
    int64_t count;    /* handed to the kernel; at the receiver each one once */
    int64_t refused;  /* a sender's that its own kernel would not take */
    int64_t duplicates, reordered;
    int64_t strays;   /* not of this flow, or later than the window */
    int64_t next;     /* the highest sequence number seen, and one */
    int64_t overflow; /* dropped because the receiver's buffer was full, as the kernel counts them; -1: unknown */
    int64_t jitter_ns, jitter_max_ns; /* RFC 3550, section 6.4.1; -1: fewer than two came */
    int64_t burst;    /* a sender's with a rate: most datagrams ahead of an even flow at that rate; -1: no rate */
    int segmented;    /* a sender's: the kernel cut larger pieces into datagrams; -1: a receiver */
    /* The receiver's own. */
    uint64_t tag;
    int64_t low; /* below it all is settled: came, or lost */
    int64_t run; /* lost in a row, up to `low` */
    int64_t jitter_16;
    uint32_t transit; /* of the last one, by both clocks: their offset cancels out */
    struct histogram bursts; /* datagrams lost in a row */
    uint64_t seen[DATAGRAM_WINDOW / 64];
};

/* The tag of a flow's datagrams: SipHash-2-4 of its number, keyed with the token, so that the token can't be told from it. */
uint64_t datagram_tag(const unsigned char token[16], uint32_t flow);
void datagram_put_tag(unsigned char *data, uint64_t tag);
/* The low 32 bits of its number. */
int64_t datagram_number(const unsigned char *data);
bool datagram_has_tag(const unsigned char *data, uint64_t tag);

/* For new ones, all zero. */
void datagrams_begin(struct datagrams *datagrams, uint64_t tag);
/* One that arrived; whether it counts (its first coming). `data` holds DATAGRAM_HEADER bytes; `most`: its sender can't have sent
 * more than so many by now. */
bool datagrams_take(struct datagrams *datagrams, const unsigned char *data, int64_t now, int64_t most);
/* Nothing comes any more: settle what is missing. */
void datagrams_end(struct datagrams *datagrams);
void datagram_write(unsigned char *data, uint64_t tag, int64_t number, int64_t now);

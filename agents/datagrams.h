/* Datagrams by their sequence numbers: how many were lost, duplicated or reordered, and their jitter (docs/reference/agent-protocol.md,
 * "Datagrams"). */
#pragma once

#include "histogram.h"

#define DATAGRAM_HEADER 16        /* tag (64 bits), sequence number and sender's clock in ns (the low 32 bits of each), big-endian */
#define DATAGRAM_MAX 65507        /* RFC 768 in IPv4 */
#define DATAGRAM_WINDOW (1 << 18) /* a datagram that arrives after so many later ones counts as lost */
#define TAG_BYTES 8

struct datagrams {
    int64_t count;   /* sent, or received without duplicates */
    int64_t refused; /* the sender's own kernel did not take them */
    int64_t duplicates, reordered;
    int64_t strays;                   /* of another flow, or older than the window */
    int64_t next;                     /* the highest sequence number seen, plus one */
    int64_t overflow;                 /* dropped because the receiver's buffer was full, counted by the kernel; -1: unknown */
    int64_t jitter_ns, jitter_max_ns; /* RFC 3550, section 6.4.1; -1: fewer than two arrived */
    int64_t burst;                    /* how many datagrams a sender was ahead of its rate, at most; -1: no rate */
    int segmented;                    /* the sender's kernel cut larger pieces into datagrams; -1: a receiver */
    /* For a receiver only. */
    uint64_t tag;
    int64_t low; /* each datagram with a lower number is known to have arrived or to be lost */
    int64_t run; /* datagrams lost in a row, up to `low` */
    int64_t jitter_16;
    uint32_t transit;        /* of the last datagram; the offset between the clocks cancels out */
    struct histogram bursts; /* how many datagrams were lost in a row */
    uint64_t seen[DATAGRAM_WINDOW / 64];
};

/* Return the tag of a flow's datagrams: SipHash-2-4 of the flow's number with the token as key, from which nobody can derive the token. */
uint64_t datagram_tag(const unsigned char token[16], uint32_t flow);
void datagram_put_tag(unsigned char *data, uint64_t tag);
/* Return the low 32 bits of the datagram's number. */
int64_t datagram_number(const unsigned char *data);
bool datagram_has_tag(const unsigned char *data, uint64_t tag);

/* Begin to count; `datagrams` must be all zero. */
void datagrams_begin(struct datagrams *datagrams, uint64_t tag);
/* Take a datagram that arrived, of which `data` has DATAGRAM_HEADER bytes. `most` is how many its sender can have sent by now. Returns
 * true if it counts: it is of this flow, within the window, and no duplicate. */
bool datagrams_take(struct datagrams *datagrams, const unsigned char *data, int64_t now, int64_t most);
/* End counting: datagrams that have not arrived are lost. */
void datagrams_end(struct datagrams *datagrams);
void datagram_write(unsigned char *data, uint64_t tag, int64_t number, int64_t now);

/* Counts lost, duplicated and reordered datagrams, and measures jitter (docs/reference/agent-protocol.md, "Datagrams"). */
#pragma once

#include "histogram.h"

#define DATAGRAM_HEADER 16        /* header bytes: tag (64 bits), sequence number and sender's clock in ns (low 32 bits each), big-endian */
#define DATAGRAM_MAX 65507        /* most payload bytes of a datagram in IPv4 (RFC 768) */
#define DATAGRAM_WINDOW (1 << 18) /* a missing datagram counts as lost once the datagram with a number this much higher has arrived */
#define TAG_BYTES 8

struct datagrams {
    int64_t count;   /* datagrams sent, or received without duplicates */
    int64_t refused; /* datagrams that the sender's kernel did not accept */
    int64_t duplicates, reordered; /* -1: unknown, as datagrams have no numbers */
    int64_t strays;                   /* datagrams of another flow, older than the window, or with a number not sent yet */
    int64_t next;                     /* highest sequence number so far, plus one; -1: datagrams have no numbers */
    int64_t overflow;                 /* datagrams that the kernel dropped because the receive buffer was full; -1: unknown */
    int64_t jitter_ns, jitter_max_ns; /* present and largest jitter (RFC 3550, section 6.4.1); -1: fewer than two datagrams arrived */
    int64_t burst;                    /* most datagrams by which a sender was ahead of its rate; -1: no rate */
    int segmented;                    /* 1: the sender's kernel cuts larger pieces into datagrams, 0: it does not; -1: a receiver */
    /* The following fields are for a receiver only. */
    uint64_t tag;
    bool joins;    /* the receiver joins a stream that has begun: lower numbers than that of its first datagram are not lost */
    int64_t first; /* number of the first datagram that arrived */
    int64_t low; /* every datagram with a lower number has arrived or is lost */
    int64_t run; /* number of consecutive lost datagrams just before `low` */
    int64_t jitter_16;
    uint32_t transit;        /* the last datagram's transit time plus the clocks' offset, in ns */
    struct histogram bursts; /* lengths of loss bursts, in consecutive lost datagrams */
    uint64_t seen[DATAGRAM_WINDOW / 64];
};

/* Return the tag of a flow's datagrams: SipHash-2-4 of the flow number with the token as key. The tag does not reveal the token. */
uint64_t datagram_tag(const unsigned char token[16], uint32_t flow);
void datagram_put_tag(unsigned char *data, uint64_t tag);
/* Return the low 32 bits of the sequence number. */
int64_t datagram_number(const unsigned char *data);
bool datagram_has_tag(const unsigned char *data, uint64_t tag);

/* Start to count; all bytes of `datagrams` must be zero. */
void datagrams_begin(struct datagrams *datagrams, uint64_t tag);
/* Count an arrived datagram; `data` begins with its header. The sender can have sent at most `most` datagrams by now.
 * Returns false for a duplicate and for a stray. */
bool datagrams_take(struct datagrams *datagrams, const unsigned char *data, int64_t now, int64_t most);
/* Stop counting. Datagrams that have not arrived by now count as lost. */
void datagrams_end(struct datagrams *datagrams);
void datagram_write(unsigned char *data, uint64_t tag, int64_t number, int64_t now);

/* A datagram that is shorter than the header has as much of the tag as fits, then zeros: no number, so no order and no duplicates. */
void datagrams_begin_short(struct datagrams *datagrams, uint64_t tag);
void datagram_write_short(unsigned char *data, size_t size, uint64_t tag);
/* Count an arrived short datagram. Returns false for a stray. */
bool datagrams_take_short(struct datagrams *datagrams, const unsigned char *data, size_t size);

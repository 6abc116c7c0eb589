/* A window over the sequence numbers says of each datagram whether it came before; what leaves the window unseen is lost. */
#include "datagrams.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

void datagram_write(unsigned char *data, int64_t number, int64_t now)
{
    uint64_t words[2] = {htobe64((uint64_t)number), htobe64((uint64_t)now)};

    memcpy(data, words, sizeof words);
}

static int64_t word(const unsigned char *data)
{
    uint64_t value;

    memcpy(&value, data, sizeof value);
    return (int64_t)be64toh(value);
}

int64_t datagram_number(const unsigned char *data)
{
    return word(data);
}

static uint64_t bit(int64_t number)
{
    return UINT64_C(1) << (number % 64);
}

static uint64_t *place(struct datagrams *datagrams, int64_t number)
{
    return &datagrams->seen[number % DATAGRAM_WINDOW / 64];
}

static void settle(struct datagrams *datagrams, int64_t until)
{
    for (; datagrams->low < until; datagrams->low++) {
        if ((*place(datagrams, datagrams->low) & bit(datagrams->low)) == 0) {
            datagrams->run++;
        } else if (datagrams->run > 0) {
            histogram_add(&datagrams->bursts, datagrams->run);
            datagrams->run = 0;
        }
    }
}

/* Make room for `number`, which is `next` or later. */
static void advance(struct datagrams *datagrams, int64_t number)
{
    if (number - datagrams->next >= DATAGRAM_WINDOW) {
        settle(datagrams, datagrams->next);
        datagrams->run += number - DATAGRAM_WINDOW + 1 - datagrams->next;
        datagrams->low = datagrams->next = number - DATAGRAM_WINDOW + 1;
    }
    for (; datagrams->next <= number; datagrams->next++) {
        if (datagrams->next - datagrams->low == DATAGRAM_WINDOW)
            settle(datagrams, datagrams->low + 1);
        *place(datagrams, datagrams->next) &= ~bit(datagrams->next);
    }
}

/* RFC 3550, A.8: in sixteenths, rounded. The clocks' offset cancels out. */
static void add_jitter(struct datagrams *datagrams, int64_t sent_ns, int64_t now)
{
    if (datagrams->arrived_ns != 0) {
        int64_t difference = now - datagrams->arrived_ns - (sent_ns - datagrams->sent_ns);

        if (datagrams->jitter_ns < 0)
            datagrams->jitter_ns = 0;
        datagrams->jitter_16 += (difference < 0 ? -difference : difference) - ((datagrams->jitter_16 + 8) >> 4);
        datagrams->jitter_ns = datagrams->jitter_16 >> 4;
        if (datagrams->jitter_ns > datagrams->jitter_max_ns)
            datagrams->jitter_max_ns = datagrams->jitter_ns;
    }
    datagrams->arrived_ns = now;
    datagrams->sent_ns = sent_ns;
}

void datagrams_begin(struct datagrams *datagrams)
{
    datagrams->overflow = datagrams->jitter_ns = datagrams->jitter_max_ns = -1;
    datagrams->segmented = -1;
}

int datagrams_take(struct datagrams *datagrams, const unsigned char *data, int64_t now)
{
    int64_t number = word(data);

    if (number < datagrams->low || number > INT64_MAX / 2) {
        datagrams->strays++;
        return false;
    }
    if (number >= datagrams->next) {
        advance(datagrams, number);
    } else if (*place(datagrams, number) & bit(number)) {
        datagrams->duplicates++;
        return false;
    } else {
        datagrams->reordered++; /* RFC 4737: a later one came before it */
    }
    *place(datagrams, number) |= bit(number);
    datagrams->count++;
    add_jitter(datagrams, word(data + 8), now);
    return true;
}

void datagrams_end(struct datagrams *datagrams)
{
    settle(datagrams, datagrams->next);
    if (datagrams->run > 0)
        histogram_add(&datagrams->bursts, datagrams->run);
    datagrams->run = 0;
}

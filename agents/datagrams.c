/* A bitmap of the last DATAGRAM_WINDOW sequence numbers shows duplicates. A number that leaves this window unseen counts as lost. */
#include "datagrams.h"

static uint64_t rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

uint64_t datagram_tag(const unsigned char token[16], uint32_t flow)
{
    uint64_t keys[2], word = UINT64_C(4) << 56 | flow; /* SipHash's last word: length of the input in bytes, then the flow number */
    uint64_t v[4] = {UINT64_C(0x736f6d6570736575), UINT64_C(0x646f72616e646f6d), UINT64_C(0x6c7967656e657261),
                     UINT64_C(0x7465646279746573)};

    memcpy(keys, token, sizeof keys);
    for (int i = 0; i < 4; i++)
        v[i] ^= le64toh(keys[i % 2]);
    v[3] ^= word;
    for (int i = 0; i < 2; i++)
        sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void datagram_put_tag(unsigned char *data, uint64_t tag)
{
    tag = htobe64(tag);
    memcpy(data, &tag, sizeof tag);
}

bool datagram_has_tag(const unsigned char *data, uint64_t tag)
{
    uint64_t found;

    memcpy(&found, data, sizeof found);
    return be64toh(found) == tag;
}

void datagram_write(unsigned char *data, uint64_t tag, int64_t number, int64_t now)
{
    uint32_t words[2] = {htobe32((uint32_t)number), htobe32((uint32_t)now)};

    datagram_put_tag(data, tag);
    memcpy(data + TAG_BYTES, words, sizeof words);
}

static uint32_t word_at(const unsigned char *data)
{
    uint32_t word;

    memcpy(&word, data, sizeof word);
    return be32toh(word);
}

int64_t datagram_number(const unsigned char *data)
{
    return word_at(data + TAG_BYTES);
}

/* Return the sequence number with these low 32 bits that is nearest to the next expected number. */
static int64_t extend_number(const struct datagrams *datagrams, uint32_t low_bits)
{
    return datagrams->next + (int32_t)(low_bits - (uint32_t)datagrams->next);
}

static uint64_t mask_of(int64_t number)
{
    return UINT64_C(1) << (number % 64);
}

static uint64_t *find_word(struct datagrams *datagrams, int64_t number)
{
    return &datagrams->seen[number % DATAGRAM_WINDOW / 64];
}

static void settle(struct datagrams *datagrams, int64_t until)
{
    for (; datagrams->low < until; datagrams->low++) {
        if ((*find_word(datagrams, datagrams->low) & mask_of(datagrams->low)) == 0) {
            datagrams->run++;
        } else if (datagrams->run > 0) {
            histogram_add(&datagrams->bursts, datagrams->run);
            datagrams->run = 0;
        }
    }
}

/* Move the window forward to `number`, which is at least `next`. */
static void move_window(struct datagrams *datagrams, int64_t number)
{
    if (number - datagrams->next >= DATAGRAM_WINDOW) {
        settle(datagrams, datagrams->next);
        datagrams->run += number - DATAGRAM_WINDOW + 1 - datagrams->next;
        datagrams->low = datagrams->next = number - DATAGRAM_WINDOW + 1;
    }
    for (; datagrams->next <= number; datagrams->next++) {
        if (datagrams->next - datagrams->low == DATAGRAM_WINDOW)
            settle(datagrams, datagrams->low + 1);
        *find_word(datagrams, datagrams->next) &= ~mask_of(datagrams->next);
    }
}

/* Update the jitter as in RFC 3550, A.8, in sixteenths of ns. Times are modulo 2^32 ns, so a difference above 2 s counts as less. */
static void add_jitter(struct datagrams *datagrams, uint32_t sent, int64_t now)
{
    uint32_t transit = (uint32_t)now - sent;

    if (datagrams->count > 1) {
        int64_t difference = (int32_t)(transit - datagrams->transit);

        datagrams->jitter_16 += (difference < 0 ? -difference : difference) - ((datagrams->jitter_16 + 8) >> 4);
        datagrams->jitter_ns = datagrams->jitter_16 >> 4;
        if (datagrams->jitter_ns > datagrams->jitter_max_ns)
            datagrams->jitter_max_ns = datagrams->jitter_ns;
    }
    datagrams->transit = transit;
}

void datagrams_begin(struct datagrams *datagrams, uint64_t tag)
{
    datagrams->overflow = datagrams->jitter_ns = datagrams->jitter_max_ns = -1;
    datagrams->segmented = -1;
    datagrams->burst = -1;
    datagrams->tag = tag;
}

bool datagrams_take(struct datagrams *datagrams, const unsigned char *data, int64_t now, int64_t most)
{
    int64_t number = extend_number(datagrams, word_at(data + TAG_BYTES));

    if (!datagram_has_tag(data, datagrams->tag) || number < datagrams->low || number >= most) {
        datagrams->strays++;
        return false;
    }
    if (datagrams->joins && datagrams->count == 0)
        datagrams->low = datagrams->next = datagrams->first = number;
    if (number >= datagrams->next) {
        move_window(datagrams, number);
    } else if (*find_word(datagrams, number) & mask_of(number)) {
        datagrams->duplicates++;
        return false;
    } else {
        datagrams->reordered++; /* the datagram is late: one with a higher number arrived before it (RFC 4737) */
    }
    *find_word(datagrams, number) |= mask_of(number);
    datagrams->count++;
    add_jitter(datagrams, word_at(data + TAG_BYTES + 4), now);
    return true;
}

void datagrams_begin_short(struct datagrams *datagrams, uint64_t tag)
{
    datagrams_begin(datagrams, tag);
    datagrams->duplicates = datagrams->reordered = datagrams->next = -1;
}

void datagram_write_short(unsigned char *data, size_t size, uint64_t tag)
{
    unsigned char header[DATAGRAM_HEADER] = {0};

    datagram_put_tag(header, tag);
    memcpy(data, header, size);
}

bool datagrams_take_short(struct datagrams *datagrams, const unsigned char *data, size_t size)
{
    unsigned char expected[DATAGRAM_HEADER];

    datagram_write_short(expected, size, datagrams->tag);
    if (memcmp(data, expected, size) != 0) {
        datagrams->strays++;
        return false;
    }
    datagrams->count++;
    return true;
}

void datagrams_end(struct datagrams *datagrams)
{
    settle(datagrams, datagrams->next);
    if (datagrams->run > 0)
        histogram_add(&datagrams->bursts, datagrams->run);
    datagrams->run = 0;
}

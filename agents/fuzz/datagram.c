/* Fuzz: datagrams in any order, at any time. Each 16 bytes of the input are a datagram: whether its tag is right, its number, its time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "datagrams.h"

#define STEP 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char token[16] = "0123456789abcde";
    uint64_t tag = datagram_tag(token, 3);
    struct datagrams *datagrams = calloc(1, sizeof *datagrams);
    int64_t taken = 0, now = 0;

    if (datagrams == NULL)
        return 0;
    datagrams_begin(datagrams, tag);
    for (size_t at = 0; at + STEP <= size; at += STEP, taken++) {
        unsigned char datagram[DATAGRAM_HEADER];
        int64_t most, strays = datagrams->strays, before = datagrams->count;

        memcpy(datagram, data + at, sizeof datagram);
        memcpy(&most, data + at, sizeof most);
        now += data[at + 1] << 20;
        if ((data[at] & 1) != 0)
            datagram_put_tag(datagram, tag);
        if ((data[at] & 2) != 0)
            most = INT64_MAX;
        if (datagrams_take(datagrams, datagram, now, most) != (datagrams->count == before + 1))
            abort();
        if ((data[at] & 1) == 0 && !datagram_has_tag(datagram, tag) && datagrams->strays != strays + 1)
            abort();
    }
    datagrams_end(datagrams);
    /* Each datagram must count once: as received, as duplicate or as stray. No more may be received than there were numbers. */
    if (datagrams->count + datagrams->duplicates + datagrams->strays != taken || datagrams->count > datagrams->next ||
        datagrams->reordered > datagrams->count || datagrams->jitter_ns > datagrams->jitter_max_ns)
        abort();
    free(datagrams);
    return 0;
}

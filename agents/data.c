/* Made by a xorshift generator, once. */
#include "data.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *data;

int data_make(void)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    if (data != NULL)
        return 0;
    data = aligned_alloc(PAGE_BYTES, DATA_BYTES);
    if (data == NULL)
        return -1;
    for (size_t i = 0; i < DATA_BYTES; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data[i] = (unsigned char)state;
    }
    return 0;
}

const unsigned char *data_bytes(void)
{
    return data;
}

void data_fill(unsigned char *bytes, size_t count)
{
    for (size_t done = 0; done < count; done += DATA_BYTES)
        memcpy(bytes + done, data, count - done < DATA_BYTES ? count - done : DATA_BYTES);
}

/* Fuzz: any 20 bytes as the opening of a data connection; the first 16 of the input are the token. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "opening.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int number = -1;

    if (size < TOKEN_BYTES + OPENING_BYTES + 1)
        return 0;
    if (opening_valid(data + TOKEN_BYTES, data, data[TOKEN_BYTES + OPENING_BYTES] % FLOWS_MAX + 1, &number)) {
        if (memcmp(data, data + TOKEN_BYTES, TOKEN_BYTES) != 0)
            abort();
        if (number < 0 || number > data[TOKEN_BYTES + OPENING_BYTES] % FLOWS_MAX)
            abort();
    } else if (number != -1) {
        abort();
    }
    return 0;
}

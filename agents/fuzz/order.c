/* Fuzz: any bytes as an order line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char line[ORDER_MAX];
    struct order order;
    int64_t number;

    if (size >= sizeof line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    if (order_parse(line, &order) == NULL) {
        /* An accepted line must have a number, a verb, and keys whose values can be read. */
        if (order.id < 1 || order.verb == NULL || order.count > WORDS_MAX)
            abort();
        for (int i = 0; i < order.count; i++) {
            if (order_value(&order, order.keys[i]) == NULL)
                abort();
            if (order_number(&order, order.keys[i], 0, 1000, &number) == NULL && (number < 0 || number > 1000))
                abort();
        }
        if (order_refuse(&order, NULL))
            abort();
    }
    return 0;
}

/* Fuzz: any bytes as a journal, and as a percent-encoded word. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct setting settings[64];
    char word[SETTING_TEXT], decoded[SETTING_TEXT], encoded[3 * SETTING_TEXT + 8], again[SETTING_TEXT];
    int fd = memfd_create("journal", 0);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    if (journal_read(fd, settings, 64) > 64)
        abort();
    close(fd);
    if (size < sizeof word) {
        memcpy(word, data, size);
        word[size] = '\0';
        if (percent_decode(word, decoded, sizeof decoded)) {
            /* What was decoded once encodes to what decodes to the same. */
            percent_encode(decoded, encoded, sizeof encoded);
            if (*decoded != '\0' && (!percent_decode(encoded, again, sizeof again) || strcmp(again, decoded) != 0))
                abort();
        }
    }
    return 0;
}

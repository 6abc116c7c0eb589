/* Fuzz: any bytes as a journal, of this boot if the first byte is odd, and as a percent-encoded word. Settings that were read must be the
 * same after they are written to a journal and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "settings.h"
#include "system.h"

#define MOST 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

bool system_boot_id(char text[64])
{
    snprintf(text, 64, "%s", "boot");
    return true;
}

ssize_t system_program(char *path, size_t room)
{
    (void)path;
    (void)room;
    return -1;
}

bool system_network(unsigned long long *number)
{
    (void)number;
    return false;
}

static int file_of(const char *head, const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("journal", MFD_CLOEXEC);
    size_t length = strlen(head);

    if (fd < 0 || write(fd, head, length) != (ssize_t)length || write(fd, bytes, size) != (ssize_t)size)
        abort();
    return fd;
}

static void again(const struct setting *settings, int count)
{
    static struct setting second[MOST];
    char line[4 * 3 * SETTING_TEXT], kind[64], name[3 * SETTING_TEXT + 8], interface[64], old[3 * SETTING_TEXT + 8];
    int fd = file_of("rigctl-settings 1 boot\n", NULL, 0);

    for (int i = 0; i < count; i++) {
        percent_encode(settings[i].kind, kind, sizeof kind);
        percent_encode(settings[i].name, name, sizeof name);
        percent_encode(settings[i].interface, interface, sizeof interface);
        percent_encode(settings[i].old, old, sizeof old);
        snprintf(line, sizeof line, "set %s %s %s %s\n", kind, name, interface, old);
        if (write(fd, line, strlen(line)) != (ssize_t)strlen(line))
            abort();
    }
    if (journal_read(fd, second, MOST) != count || memcmp(settings, second, (size_t)count * sizeof *settings) != 0)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct setting settings[MOST];
    char word[SETTING_TEXT], decoded[SETTING_TEXT], encoded[3 * SETTING_TEXT + 8], twice[SETTING_TEXT];
    bool ours = size > 0 && (data[0] & 1) != 0;
    int fd, count;

    if (size == 0)
        return 0;
    data++;
    size--;
    fd = file_of(ours ? "rigctl-settings 1 boot\n" : "", data, size);
    count = journal_read(fd, settings, MOST);
    if (count > MOST)
        abort();
    close(fd);
    if (count > 0)
        again(settings, count);
    if (size < sizeof word) {
        memcpy(word, data, size);
        word[size] = '\0';
        if (percent_decode(word, decoded, sizeof decoded)) {
            /* A decoded text that is encoded and decoded again must stay the same. */
            percent_encode(decoded, encoded, sizeof encoded);
            if (*decoded != '\0' && (!percent_decode(encoded, twice, sizeof twice) || strcmp(twice, decoded) != 0))
                abort();
        }
    }
    return 0;
}

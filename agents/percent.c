/* Percent-encoding of values in orders and journals. */
#include "settings.h"

#include "text.h"

static bool is_plain(char byte)
{
    return byte > ' ' && byte < 0x7f && byte != '%' && byte != '-';
}

void percent_encode(const char *text, char *encoded, size_t room)
{
    size_t used = 0;

    for (; *text != '\0' && used + 4 < room; text++)
        used += (size_t)snprintf(encoded + used, room - used, is_plain(*text) ? "%c" : "%%%02X", (unsigned char)*text);
    /* An empty text is written as a single -. */
    snprintf(encoded + used, room - used, "%s", used == 0 ? "-" : "");
}

bool percent_decode(const char *text, char *decoded, size_t room)
{
    size_t used = 0;

    for (; *text != '\0'; text++) {
        int byte = (unsigned char)*text;

        if (*text == '%') {
            byte = text_hex(text + 1);
            text += 2;
        }
        if (byte < ' ' || used + 1 >= room)
            return false;
        decoded[used++] = (char)byte;
    }
    decoded[used] = '\0';
    return true;
}

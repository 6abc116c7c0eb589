/* Parses numbers, and reads and writes small text files. A number has digits only, while strtoll(3) also accepts blanks and signs. */
#pragma once

#include "agent.h"

/* Return the decimal number at the beginning of `text`, or -1 if there is none or it exceeds INT64_MAX. Sets `end` to the rest. */
static inline int64_t text_number(const char *text, const char **end)
{
    int64_t number;

    *end = text;
    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    number = strtoll(text, (char **)end, 10);
    return errno == 0 ? number : -1;
}

static inline int text_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Return the value of the two hexadecimal digits at the beginning of `text`, or -1 if there are none. */
static inline int text_hex(const char *text)
{
    int high = text_hex_digit(text[0]), low = high < 0 ? -1 : text_hex_digit(text[1]);

    return low < 0 ? -1 : high * 16 + low;
}

/* Read at most `room` - 1 bytes from the beginning of a file as a string; "" if the file cannot be read. Returns the number of bytes. */
static inline size_t text_read(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, room - 1);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

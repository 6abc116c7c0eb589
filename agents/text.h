/* Numbers and files as texts. Numbers are digits only: strtoll(3) would also take blanks and signs. */
#pragma once

#include "agent.h"

/* Return the decimal number at the beginning of `text`, or -1 if there is none or it is above INT64_MAX. Sets `end` behind the number. */
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

/* Return the value of the two hexadecimal digits at the beginning of `text`, or -1. */
static inline int text_hex(const char *text)
{
    int high = text_hex_digit(text[0]), low = high < 0 ? -1 : text_hex_digit(text[1]);

    return low < 0 ? -1 : high * 16 + low;
}

/* Read the first bytes of a file as a string, at most `room` - 1; "" if it cannot be read. Returns how many bytes. */
static inline size_t text_read(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, room - 1);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

/* Numbers in texts of this protocol and of /proc: digits only, where strtoll(3) also takes blanks and signs. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The decimal number that `text` begins with, without a sign; `end` is set behind it. -1: no digit, or above INT64_MAX. */
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

/* The two hexadecimal digits that `text` begins with; -1 where there are not two. */
static inline int text_hex(const char *text)
{
    int high = text_hex_digit(text[0]), low = high < 0 ? -1 : text_hex_digit(text[1]);

    return low < 0 ? -1 : high * 16 + low;
}

/* Read the beginning of a file, at most `room` - 1 bytes, as a string: "" if it cannot be read. Returns how many bytes. */
static inline size_t text_read(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, room - 1);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

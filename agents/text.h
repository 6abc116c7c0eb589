/* Numbers, names and lines as text. The C library's printf and strtol bring floating point, locales and streams with them: an eighth
 * of an agent that never prints a fraction. */
#ifndef RIGCTL_TEXT_H
#define RIGCTL_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_ADDRESS 46 /* an IPv6 address with its NUL */

/* As snprintf(3), for %d %u %x %X with l or ll, a width and leading zeros, %s with a precision, %c and %%. Anything else is a defect
 * and ends the agent. */
int text_format(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
int text_vformat(char *text, size_t room, const char *format, va_list values) __attribute__((format(printf, 3, 0)));
/* As text_format, to a descriptor; at most 511 bytes. */
void text_print(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The decimal number that `text` begins with, without a sign; `end` is set behind it. -1: no digit, or above INT64_MAX. */
int64_t text_number(const char *text, const char **end);
/* The two hexadecimal digits that `text` begins with; -1 where there are not two. */
int text_hex(const char *text);
/* An address of the family as text (RFC 5952); empty for another family. */
void text_address(int family, const void *bytes, char text[TEXT_ADDRESS]);

#endif

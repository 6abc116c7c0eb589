/* Text from numbers, and numbers from text. */
#include "text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIGITS_MAX 20 /* of 2^64 */
#define GROUPS 8      /* of an IPv6 address */

struct writer {
    char *text;
    size_t room, length;
};

static void put(struct writer *writer, char byte)
{
    if (writer->length + 1 < writer->room)
        writer->text[writer->length] = byte;
    writer->length++;
}

static void put_number(struct writer *writer, uint64_t number, unsigned base, char ten, int width, char filler)
{
    char digits[DIGITS_MAX];
    int count = 0;

    do {
        unsigned digit = (unsigned)(number % base);

        digits[count++] = (char)(digit < 10 ? '0' + digit : ten + (digit - 10));
        number /= base;
    } while (number != 0);
    for (; width > count; width--)
        put(writer, filler);
    while (count > 0)
        put(writer, digits[--count]);
}

static void put_string(struct writer *writer, const char *string, int most)
{
    for (; *string != '\0' && most != 0; string++, most -= most > 0)
        put(writer, *string);
}

static int take_digits(const char **format)
{
    int number = 0;

    while (**format >= '0' && **format <= '9')
        number = number * 10 + *(*format)++ - '0';
    return number;
}

static uint64_t take_unsigned(int longs, va_list *values)
{
    return longs == 0 ? va_arg(*values, unsigned) : longs == 1 ? va_arg(*values, unsigned long) : va_arg(*values, unsigned long long);
}

static void put_signed(struct writer *writer, int64_t number, int width, char filler)
{
    if (number < 0)
        put(writer, '-');
    put_number(writer, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10, 'a', width - (number < 0), filler);
}

/* What follows a % sign. Returns where the rest of the format begins. */
static const char *put_value(struct writer *writer, const char *format, va_list *values)
{
    char filler = *format == '0' ? '0' : ' ';
    int width = take_digits(&format), most = -1, longs = 0;

    if (*format == '.') {
        format++;
        most = take_digits(&format);
    }
    for (; *format == 'l'; format++)
        longs++;
    if (*format == 'd')
        put_signed(writer, longs == 0 ? va_arg(*values, int) : longs == 1 ? va_arg(*values, long) : va_arg(*values, long long), width,
                   filler);
    else if (*format == 'u')
        put_number(writer, take_unsigned(longs, values), 10, 'a', width, filler);
    else if (*format == 'x' || *format == 'X')
        put_number(writer, take_unsigned(longs, values), 16, *format == 'x' ? 'a' : 'A', width, filler);
    else if (*format == 's')
        put_string(writer, va_arg(*values, const char *), most);
    else if (*format == 'c')
        put(writer, (char)va_arg(*values, int));
    else if (*format == '%')
        put(writer, '%');
    else
        abort();
    return format + 1;
}

int text_vformat(char *text, size_t room, const char *format, va_list values)
{
    struct writer writer = {.text = text, .room = room};
    va_list rest;

    va_copy(rest, values);
    while (*format != '\0') {
        if (*format == '%')
            format = put_value(&writer, format + 1, &rest);
        else
            put(&writer, *format++);
    }
    va_end(rest);
    if (room > 0)
        text[writer.length < room ? writer.length : room - 1] = '\0';
    return (int)writer.length;
}

int text_format(char *text, size_t room, const char *format, ...)
{
    va_list values;
    int length;

    va_start(values, format);
    length = text_vformat(text, room, format, values);
    va_end(values);
    return length;
}

void text_print(int fd, const char *format, ...)
{
    char text[512];
    va_list values;

    va_start(values, format);
    text_vformat(text, sizeof text, format, values);
    va_end(values);
    if (write(fd, text, strlen(text)) < 0)
        return; /* nobody reads */
}

int64_t text_number(const char *text, const char **end)
{
    int64_t number = *text >= '0' && *text <= '9' ? 0 : -1;

    for (; *text >= '0' && *text <= '9'; text++) {
        int digit = *text - '0';

        if (number >= 0)
            number = number > (INT64_MAX - digit) / 10 ? -1 : number * 10 + digit;
    }
    *end = text;
    return number;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

int text_hex(const char *text)
{
    int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

    return low < 0 ? -1 : high * 16 + low;
}

/* The longest run of zero groups, of at least two, in `from` and `until`; both GROUPS where there is none. */
static void longest_zeros(const unsigned groups[GROUPS], int *from, int *until)
{
    *from = *until = GROUPS;
    for (int begin = 0; begin < GROUPS; begin++) {
        int end = begin;

        while (end < GROUPS && groups[end] == 0)
            end++;
        if (end - begin > 1 && end - begin > *until - *from) {
            *from = begin;
            *until = end;
        }
        if (end > begin)
            begin = end;
    }
}

void text_address(int family, const void *bytes, char text[TEXT_ADDRESS])
{
    const unsigned char *byte = bytes;
    unsigned groups[GROUPS];
    size_t used = 0;
    int from, until;

    text[0] = '\0';
    if (family == AF_INET)
        text_format(text, TEXT_ADDRESS, "%d.%d.%d.%d", byte[0], byte[1], byte[2], byte[3]);
    if (family != AF_INET6)
        return;
    for (int i = 0; i < GROUPS; i++)
        groups[i] = (unsigned)byte[2 * i] << 8 | byte[2 * i + 1];
    longest_zeros(groups, &from, &until);
    for (int i = 0; i < GROUPS; i++) {
        if (i >= from && i < until)
            used += i == from ? (size_t)text_format(text + used, TEXT_ADDRESS - used, "::") : 0;
        else
            used += (size_t)text_format(text + used, TEXT_ADDRESS - used, "%s%x", i > 0 && i != until ? ":" : "", groups[i]);
    }
}

/* Reads and writes lines on the control channel. Writing never blocks, because a slow controller must not disturb the traffic. */
#include "control.h"

#include <stdarg.h>

#define OUT_MAX (8 * ANSWER_MAX)

static char input[ORDER_MAX];
static size_t input_used;
static bool input_cut; /* the current line is too long for `input` */
static char output[OUT_MAX];
static size_t output_start, output_end;
static char line[ANSWER_MAX];
static size_t line_used;
static bool has_lost_line;

static void take_byte(char byte, void (*take)(char *, bool))
{
    if (byte == '\n') {
        input[input_used] = '\0';
        if (take != NULL && (input_used > 0 || input_cut))
            take(input, !input_cut);
        input_used = 0;
        input_cut = false;
    } else if (input_used + 1 < sizeof input) {
        /* NUL would end the string early, so \x01 replaces it: the parser refuses the order for this unprintable character. */
        input[input_used++] = byte != '\0' ? byte : '\x01';
    } else {
        input_cut = true;
    }
}

bool control_read(void (*take)(char *line, bool whole))
{
    char block[4096];
    ssize_t got = read(STDIN_FILENO, block, sizeof block);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    for (ssize_t i = 0; i < got; i++)
        take_byte(block[i], take);
    return got > 0;
}

bool control_flush(void)
{
    while (output_start < output_end) {
        ssize_t put = write(STDOUT_FILENO, output + output_start, output_end - output_start);

        if (put < 0)
            return errno == EAGAIN || errno == EINTR;
        output_start += (size_t)put;
    }
    output_start = output_end = 0;
    return true;
}

size_t control_pending(void)
{
    return output_end - output_start;
}

bool control_has_room(void)
{
    return control_pending() + 3 * ANSWER_MAX <= OUT_MAX;
}

bool control_has_lost_line(void)
{
    return has_lost_line;
}

void answer_begin(int64_t id)
{
    line_used = 0;
    line_add("{\"id\":%lld", (long long)id);
}

void answer_begin_ok(int64_t id)
{
    answer_begin(id);
    line_add(",\"ok\":true");
}

void event_begin(const char *name)
{
    line_used = 0;
    line_add("{\"event\":\"%s\"", name);
}

void line_add(const char *format, ...)
{
    va_list values;
    int more;

    va_start(values, format);
    more = vsnprintf(line + line_used, sizeof line - line_used, format, values);
    va_end(values);
    if (more < 0 || (size_t)more >= sizeof line - line_used)
        abort();
    line_used += (size_t)more;
}

void line_add_string(const char *text)
{
    line_add("\"");
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            line_add("\\%c", *text);
        else if (*text < ' ' || *text > '~')
            line_add("\\u%04x", (unsigned)(unsigned char)*text);
        else
            line_add("%c", *text);
    }
    line_add("\"");
}

void line_add_text(const char *name, const char *text)
{
    line_add(",\"%s\":", name);
    if (text != NULL)
        line_add_string(text);
    else
        line_add("null");
}

void line_add_count(const char *name, int64_t number)
{
    if (number < 0)
        line_add(",\"%s\":null", name);
    else
        line_add(",\"%s\":%lld", name, (long long)number);
}

void line_add_flag(const char *name, int64_t flag)
{
    line_add(",\"%s\":%s", name, flag < 0 ? "null" : flag ? "true" : "false");
}

size_t line_length(void)
{
    return line_used;
}

void line_end(void)
{
    line_add("}\n");
    memmove(output, output + output_start, control_pending());
    output_end -= output_start;
    output_start = 0;
    if (output_end + line_used > sizeof output) {
        has_lost_line = true;
        return;
    }
    memcpy(output + output_end, line, line_used);
    output_end += line_used;
}

void answer_ok(int64_t id)
{
    answer_begin_ok(id);
    line_end();
}

void answer_error(int64_t id, int error, const char *format, ...)
{
    char message[512];
    va_list values;

    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    answer_begin(id);
    line_add(",\"ok\":false");
    line_add_text("error", errno_name(error));
    line_add_text("message", message);
    line_end();
}

const char *errno_name(int error)
{
    static char other[16];
#define NAMED(error) {error, #error}
    static const struct {
        int error;
        const char *name;
    } names[] = {
        NAMED(EACCES), NAMED(EADDRINUSE), NAMED(EADDRNOTAVAIL), NAMED(EAFNOSUPPORT), NAMED(EAGAIN), NAMED(EBADF), NAMED(EBUSY),
        NAMED(ECONNABORTED), NAMED(ECONNREFUSED), NAMED(ECONNRESET), NAMED(EEXIST), NAMED(EHOSTUNREACH), NAMED(EINVAL), NAMED(EIO),
        NAMED(EISDIR), NAMED(ELOOP), NAMED(EMFILE), NAMED(EMSGSIZE), NAMED(ENETDOWN), NAMED(ENETUNREACH), NAMED(ENFILE),
        NAMED(ENOBUFS), NAMED(ENODEV), NAMED(ENOENT), NAMED(ENOMEM), NAMED(ENOPROTOOPT), NAMED(ENOSPC), NAMED(ENOTCONN),
        NAMED(ENOTDIR), NAMED(EOPNOTSUPP), NAMED(EPERM), NAMED(EPIPE), NAMED(EPROTO), NAMED(ERANGE), NAMED(EROFS), NAMED(ETIMEDOUT),
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    snprintf(other, sizeof other, "E%d", error);
    return other;
}

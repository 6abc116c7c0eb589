/* The control channel: bounded lines in, never-blocking lines out (docs/reference/agent-protocol.md). */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDER_MAX 1024  /* bytes of an order with its newline */
#define ANSWER_MAX 16384 /* bytes of an answer with its newline */
#define WORDS_MAX 32

/* An order, split in place: `id verb key=value …`. */
struct order {
    int64_t id;
    const char *verb;
    int count;
    const char *keys[WORDS_MAX];
    const char *values[WORDS_MAX];
    bool used[WORDS_MAX];
};

/* Split `line` (NUL-terminated, without its newline). Returns NULL, or what is wrong with it; `id` is set where it could be read. */
const char *order_parse(char *line, struct order *order);
/* Return the value of `key` and mark it as used; NULL if it is not given. */
const char *order_value(struct order *order, const char *key);
/* A key whose value is a whole number within [low, high]. If an optional one is not given, `number` keeps its value. */
struct order_key {
    const char *key;
    int64_t low, high, *number;
    bool optional;
};
/* Read these keys, but for rows without a key. Returns NULL, or what the first wrong one should be. */
const char *order_numbers(struct order *order, const struct order_key *keys, size_t count);
/* Read one that must be there. */
const char *order_number(struct order *order, const char *key, int64_t low, int64_t high, int64_t *number);
/* Refuse an order because of `wrong`, or, if that is NULL, because of a key that nobody used. Returns false if all keys are right. */
bool order_refused(const struct order *order, const char *wrong);

/* Read what has arrived, and call `take` (NULL: nothing) for every line. Returns false at end-of-file or on a broken input. */
bool control_read(void (*take)(char *line, bool whole));
/* Write what the peer takes now. Returns false if the output is broken. */
bool control_flush(void);
/* Return how many bytes wait for the peer. */
size_t control_pending(void);
/* Tell whether a line of ANSWER_MAX fits and leaves room for short answers. */
bool control_roomy(void);
/* Tell whether a line found no room: the peer does not read, and has missed what it must know. */
bool control_lost(void);

/* A line under construction: an answer to an order or an event, a JSON object. A line that grew past ANSWER_MAX is a defect and ends the
 * agent. */
void answer_begin(int64_t id);    /* {"id":ID */
void answer_begin_ok(int64_t id); /* {"id":ID,"ok":true */
void event_begin(const char *name);
void line_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Add `"text"` as a JSON string; what is not printable ASCII is escaped. */
void line_add_string(const char *text);
/* Add `,"name":"text"`, or null without a text. */
void line_add_text(const char *name, const char *text);
/* Add `,"name":number`, or null if it is negative, which no count is. */
void line_add_count(const char *name, int64_t number);
/* The same of 1 or 0, as true or false. */
void line_add_flag(const char *name, int64_t flag);
size_t line_length(void);
/* Close the object and queue the line. */
void line_end(void);

/* The usual answers. `error` is an errno value. */
void answer_ok(int64_t id);
void answer_error(int64_t id, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define answer_refused(id, ...) answer_error(id, EPROTO, __VA_ARGS__)
const char *errno_name(int error);

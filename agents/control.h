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
/* The value of `key`, marked as used; NULL where it is not given. */
const char *order_value(struct order *order, const char *key);
/* A key whose value is a whole number within [low, high]. One that is optional and not given keeps its value. */
struct order_key {
    const char *key;
    int64_t low, high, *number;
    bool optional;
};
/* Read these keys. NULL, or what the first wrong one should be. */
const char *order_numbers(struct order *order, const struct order_key *keys, size_t count);
/* Read one that must be there. */
const char *order_number(struct order *order, const char *key, int64_t low, int64_t high, int64_t *number);
/* NULL, or that the first key that nobody used is unknown. */
const char *order_unused(const struct order *order);

/* Read what is there; calls `take`, if there is one, for every whole line. False at end-of-file or on a broken input. */
bool control_read(void (*take)(char *line, bool whole));
/* Write what the peer takes now. False when it can't be written any more. */
bool control_flush(void);
/* Bytes waiting for the peer. */
size_t control_pending(void);
/* Whether a line of ANSWER_MAX fits and leaves room for short answers besides. */
bool control_roomy(void);
/* True once a line found no room: the peer does not read, and what it must know was lost. */
bool control_lost(void);

/* A line under construction: begin, add, end. A line that grew past ANSWER_MAX is a defect and ends the agent. */
void line_begin(void);
void line_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `"text"` as a JSON string; anything outside printable ASCII is escaped. */
void line_add_string(const char *text);
/* `,"name":number`, or `,"name":null` where it is negative: no counter of ours is. */
void line_add_count(const char *name, int64_t number);
/* The same of 1 or 0. */
void line_add_flag(const char *name, int64_t flag);
size_t line_length(void);
void line_end(void);

/* The usual answers. `error` is an errno value. */
void answer_ok(int64_t id);
void answer_error(int64_t id, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define answer_refused(id, ...) answer_error(id, EPROTO, __VA_ARGS__)
const char *errno_name(int error);

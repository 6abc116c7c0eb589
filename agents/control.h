/* The control channel: orders come in as bounded lines, answers and events go out without blocking (docs/reference/agent-protocol.md). */
#pragma once

#include "agent.h"

#define ORDER_MAX 1024   /* bytes of an order, with its newline */
#define ANSWER_MAX 16384 /* bytes of an answer, with its newline */
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

/* Split `line`, which has no newline. Returns NULL, or what is wrong with the line. The `id` is set if it could be read. */
const char *order_parse(char *line, struct order *order);
/* Return the value of `key`, or NULL if the order does not have it. Marks the key as used. */
const char *order_value(struct order *order, const char *key);
/* A key whose value is a whole number from `low` to `high`. Without an optional key, `*number` stays as it is. */
struct order_key {
    const char *key;
    int64_t low, high, *number;
    bool optional;
};
/* Read the keys of these rows; a row without a key is skipped. Returns NULL, or what the first wrong value should be. */
const char *order_numbers(struct order *order, const struct order_key *keys, size_t count);
/* Read one key, which the order must have. */
const char *order_number(struct order *order, const char *key, int64_t low, int64_t high, int64_t *number);
/* Refuse the order because of `wrong` or, if that is NULL, because of a key that was never read. Returns whether it was refused. */
bool order_refuse(const struct order *order, const char *wrong);

/* Read what has arrived and call `take` (unless it is NULL) for every line. Returns false at end-of-file or if reading failed. */
bool control_read(void (*take)(char *line, bool whole));
/* Write as much as the controller takes now. Returns false if writing failed. */
bool control_flush(void);
/* Return how many bytes wait until the controller takes them. */
size_t control_pending(void);
/* Tell whether there is room for a line of ANSWER_MAX bytes and some short answers. */
bool control_has_room(void);
/* Tell whether a line was lost for lack of room: the controller does not read any more. */
bool control_has_lost_line(void);

/* Answers and events are JSON objects, one a line, written piece by piece. The agent aborts if one exceeds ANSWER_MAX: that is a defect. */
void answer_begin(int64_t id);    /* {"id":ID */
void answer_begin_ok(int64_t id); /* {"id":ID,"ok":true */
void event_begin(const char *name);
void line_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Add `text` as a JSON string. Bytes that are not printable ASCII are escaped. */
void line_add_string(const char *text);
/* Add `,"name":"text"`, or null if `text` is NULL. */
void line_add_text(const char *name, const char *text);
/* Add `,"name":number`, or null if the number is negative: unknown. */
void line_add_count(const char *name, int64_t number);
/* Add `,"name":true` or false for 1 or 0, or null if the flag is negative. */
void line_add_flag(const char *name, int64_t flag);
size_t line_length(void);
/* Close the object and queue the line for the controller. */
void line_end(void);

/* Queue a whole answer; `error` is an errno value. */
void answer_ok(int64_t id);
void answer_error(int64_t id, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define answer_refusal(id, ...) answer_error(id, EPROTO, __VA_ARGS__)
const char *errno_name(int error);

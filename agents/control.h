/* The control channel: reads orders as lines, and writes answers and events without blocking (docs/reference/agent-protocol.md). */
#pragma once

#include "agent.h"

#define ORDER_MAX 4096   /* most bytes of an order, newline included */
#define ANSWER_MAX 16384 /* most bytes of an answer, newline included */
#define WORDS_MAX 32

/* A parsed order, with pointers into its line: `id verb key=value …`. */
struct order {
    int64_t id;
    const char *verb;
    int count;
    const char *keys[WORDS_MAX];
    const char *values[WORDS_MAX];
    bool used[WORDS_MAX];
};

/* Parse `line`, which has no newline. Returns NULL, or what is wrong with the line. Sets `id` if it is readable. */
const char *order_parse(char *line, struct order *order);
/* Return the value of `key` and mark the key as used, or NULL if the order lacks it. */
const char *order_value(struct order *order, const char *key);
/* A key with a whole number from `low` to `high`. If an optional key is missing, `*number` stays unchanged. */
struct order_key {
    const char *key;
    int64_t low, high, *number;
    bool optional;
};
/* Read the keys of an order; a row with a NULL key is skipped. Returns NULL, or what the first wrong value should be. */
const char *order_numbers(struct order *order, const struct order_key *keys, size_t count);
/* Read a required key. Returns NULL, or what its value should be. */
const char *order_number(struct order *order, const char *key, int64_t low, int64_t high, int64_t *number);
/* Refuse the order if `wrong` is not NULL, or if the order has a key that was never read. Returns true if the order was refused. */
bool order_refuse(const struct order *order, const char *wrong);

/* Read the available input and call `take` (unless NULL) for every line. Returns false at end-of-file or on a read error. */
bool control_read(void (*take)(char *line, bool whole));
/* Write as much output as the controller accepts now. Returns false on a write error. */
bool control_flush(void);
/* Return the number of output bytes that the controller has not accepted yet. */
size_t control_pending(void);
/* Tell whether the output has room for a line of ANSWER_MAX bytes and some short answers. */
bool control_has_room(void);
/* Tell whether an output line was lost for lack of room, because the controller has stopped reading. */
bool control_has_lost_line(void);

/* Answers and events are JSON objects, one per line, written in pieces. The agent aborts on a line above ANSWER_MAX, which is a bug. */
void answer_begin(int64_t id);    /* {"id":ID */
void answer_begin_ok(int64_t id); /* {"id":ID,"ok":true */
void event_begin(const char *name);
void line_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Add `text` as a JSON string; bytes other than printable ASCII are escaped. */
void line_add_string(const char *text);
/* Add `,"name":"text"`, or null if `text` is NULL. */
void line_add_text(const char *name, const char *text);
/* Add `,"name":number`, or null if the number is negative (unknown). */
void line_add_count(const char *name, int64_t number);
/* Add `,"name":true` for 1, false for 0, or null for a negative flag. */
void line_add_flag(const char *name, int64_t flag);
size_t line_length(void);
/* Close the object and queue the line for output. */
void line_end(void);

void answer_ok(int64_t id);
void answer_error(int64_t id, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define answer_refusal(id, ...) answer_error(id, EPROTO, __VA_ARGS__)
const char *errno_name(int error);

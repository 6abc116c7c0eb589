/* Orders: one line of words in, names and numbers out. What is not known by name is refused (docs/reference/agent-protocol.md). */
#include "control.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

/* A decimal number without sign, blanks or leading plus, as the protocol has them. */
static bool parse_number(const char *text, int64_t low, int64_t high, int64_t *number)
{
    const char *end;
    int64_t value = text_number(text, &end);

    if (value < 0 || *end != '\0' || value < low || value > high)
        return false;
    *number = value;
    return true;
}

static bool printable(const char *line)
{
    for (; *line != '\0'; line++)
        if (*line < ' ' || *line > '~')
            return false;
    return true;
}

static const char *parse_word(char *word, struct order *order)
{
    char *equals = strchr(word, '=');

    if (equals == NULL || equals == word)
        return "expected key=value";
    if (order->count == WORDS_MAX)
        return "too many keys";
    *equals = '\0';
    for (int i = 0; i < order->count; i++)
        if (strcmp(order->keys[i], word) == 0)
            return "a key stands twice";
    order->keys[order->count] = word;
    order->values[order->count] = equals + 1;
    order->used[order->count++] = false;
    return NULL;
}

const char *order_parse(char *line, struct order *order)
{
    const char *wrong = NULL;
    char *rest = NULL;
    char *word;

    memset(order, 0, sizeof *order);
    if (!printable(line))
        return "a byte that is not printable ASCII";
    word = strtok_r(line, " ", &rest);
    if (word == NULL || !parse_number(word, 1, INT32_MAX, &order->id))
        return "expected a number from 1 to 2147483647 first";
    order->verb = strtok_r(NULL, " ", &rest);
    if (order->verb == NULL)
        return "expected a verb";
    while (wrong == NULL && (word = strtok_r(NULL, " ", &rest)) != NULL)
        wrong = parse_word(word, order);
    return wrong;
}

const char *order_value(struct order *order, const char *key)
{
    for (int i = 0; i < order->count; i++)
        if (strcmp(order->keys[i], key) == 0) {
            order->used[i] = true;
            return order->values[i];
        }
    return NULL;
}

const char *order_numbers(struct order *order, const struct order_key *keys, size_t count)
{
    static char wrong[80];

    for (const struct order_key *at = keys; at < keys + count; at++) {
        const char *text = at->key == NULL ? NULL : order_value(order, at->key);

        if (text == NULL ? at->optional || at->key == NULL : parse_number(text, at->low, at->high, at->number))
            continue;
        snprintf(wrong, sizeof wrong, "%s: expected %lld %s %lld", at->key, (long long)at->low, at->high == 1 ? "or" : "to",
                 (long long)at->high);
        return wrong;
    }
    return NULL;
}

const char *order_number(struct order *order, const char *key, int64_t low, int64_t high, int64_t *number)
{
    return order_numbers(order, &(struct order_key){key, low, high, number, false}, 1);
}

bool order_refused(const struct order *order, const char *wrong)
{
    for (int i = 0; i < order->count && wrong == NULL; i++)
        if (!order->used[i]) {
            answer_refused(order->id, "%s: unknown key", order->keys[i]);
            return true;
        }
    if (wrong != NULL)
        answer_refused(order->id, "%s", wrong);
    return wrong != NULL;
}

/* Parses an order, which is a line of words, into keys and values (docs/reference/agent-protocol.md). Unknown keys are refused. */
#include "control.h"
#include "text.h"

static bool parse_number(const char *text, int64_t low, int64_t high, int64_t *number)
{
    const char *end;
    int64_t value = text_number(text, &end);

    if (value < 0 || *end != '\0' || value < low || value > high)
        return false;
    *number = value;
    return true;
}

static bool is_printable(const char *line)
{
    while (*line >= ' ' && *line <= '~')
        line++;
    return *line == '\0';
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
    if (!is_printable(line))
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

bool order_refuse(const struct order *order, const char *wrong)
{
    for (int i = 0; i < order->count && wrong == NULL; i++)
        if (!order->used[i]) {
            answer_refusal(order->id, "%s: unknown key", order->keys[i]);
            return true;
        }
    if (wrong != NULL)
        answer_refusal(order->id, "%s", wrong);
    return wrong != NULL;
}

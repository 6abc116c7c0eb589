/* The orders that change and restore host settings. */
#include "orders.h"
#include "settings.h"

#define GOVERNORS_MAX 1024

/* Set the governor of each CPU that has one; each CPU is a separate setting. */
static int set_governors(struct setting *setting, const char *value, bool dry, char *old, char *now, char *message, size_t room)
{
    int error = ENOENT;
    bool any = false;

    for (int cpu = 0; cpu < GOVERNORS_MAX; cpu++) {
        snprintf(setting->name, sizeof setting->name, "cpu%d", cpu);
        if (setting_carry_out(setting, NULL, now) == ENOENT)
            continue;
        error = settings_set(setting, value, dry, old, now, message, room);
        any = true;
        if (error != 0)
            return error;
    }
    if (!any)
        snprintf(message, room, "governor: no CPU has one (cpufreq): %s", strerror(ENOENT));
    return error;
}

static const char *parse_setting(struct order *order, struct setting *setting, char *value)
{
    const char *kind = order_value(order, "kind"), *name = order_value(order, "name");
    const char *interface = order_value(order, "interface"), *text = order_value(order, "value");
    const struct setting_kind *known = setting_find_kind(kind);
    static char wrong[256];

    memset(setting, 0, sizeof *setting);
    if (known == NULL) {
        snprintf(wrong, sizeof wrong, "kind: expected %s", setting_list_kinds(setting_is_any, " or "));
        return wrong;
    }
    if (text == NULL || !percent_decode(text, value, SETTING_TEXT) || *value == '\0')
        return "value: expected a text of 1 to 255 characters";
    if ((name != NULL) != known->has_name || (name != NULL && !percent_decode(name, setting->name, sizeof setting->name))) {
        snprintf(wrong, sizeof wrong, "name: expected with %s, and with no other kind", setting_list_kinds(setting_is_named, " and "));
        return wrong;
    }
    if ((interface != NULL) != known->has_interface) {
        snprintf(wrong, sizeof wrong, "interface: expected with all kinds but %s", setting_list_kinds(setting_is_of_node, " and "));
        return wrong;
    }
    if (interface != NULL && (*interface == '\0' || !percent_decode(interface, setting->interface, sizeof setting->interface)))
        return "interface: expected a name of 1 to " INTERFACE_MOST;
    if (known->wrong != NULL && known->wrong(value) != NULL)
        return known->wrong(value);
    snprintf(setting->kind, sizeof setting->kind, "%s", kind);
    return NULL;
}

void orders_set(struct order *order)
{
    struct setting setting;
    char value[SETTING_TEXT], old[SETTING_TEXT], now[SETTING_TEXT], message[512 + INTERFACE_ROOM];
    const char *wrong = parse_setting(order, &setting, value);
    int64_t dry = 0;
    int error;

    if (wrong == NULL)
        wrong = order_numbers(order, &(struct order_key){"dry", 0, 1, &dry, true}, 1);
    if (order_refuse(order, wrong))
        return;
    error = setting_find_kind(setting.kind)->each_cpu
                ? set_governors(&setting, value, dry == 1, old, now, message, sizeof message)
                : settings_set(&setting, value, dry == 1, old, now, message, sizeof message);
    if (error != 0) {
        answer_error(order->id, error, "%s", message);
        return;
    }
    answer_begin_ok(order->id);
    line_add_text("old", old);
    line_add_text("value", now);
    line_end();
}

void orders_restore(struct order *order)
{
    char message[512];
    int error, done = settings_restore(&error, message, sizeof message);

    if (done < 0) {
        answer_error(order->id, error, "%s", message);
        return;
    }
    answer_begin_ok(order->id);
    line_add_count("restored", done);
    line_end();
}

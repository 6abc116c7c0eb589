/* The orders that change and restore host settings. */
#include "orders.h"
#include "settings.h"
#include "text.h"

#define GOVERNORS_MAX 1024

static const struct kind {
    const char *kind;
    bool has_name, has_interface;
} kinds[] = {
    {"mtu", false, true},
    {"sysctl", true, false},
    {"offload", true, true},
    {"governor", false, false},
    {"rings", true, true},
    {"coalesce", true, true},
    {"channels", true, true},
    {"pause", true, true},
    {"qdisc", false, true},
    {"rps", false, true},
};

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

static const struct kind *find_kind(const char *kind)
{
    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return &kinds[i];
    return NULL;
}

static const char *parse_setting(struct order *order, struct setting *setting, char *value)
{
    const char *kind = order_value(order, "kind"), *name = order_value(order, "name");
    const char *interface = order_value(order, "interface"), *text = order_value(order, "value");
    const struct kind *known = find_kind(kind);
    const char *end;

    memset(setting, 0, sizeof *setting);
    if (known == NULL)
        return "kind: expected mtu, sysctl, offload, governor, rings, coalesce, channels, pause, qdisc or rps";
    if (text == NULL || !percent_decode(text, value, SETTING_TEXT) || *value == '\0')
        return "value: expected a text of 1 to 255 characters";
    if ((name != NULL) != known->has_name || (name != NULL && !percent_decode(name, setting->name, sizeof setting->name)))
        return "name: expected with sysctl, offload, rings, coalesce, channels and pause, and with no other kind";
    if ((interface != NULL) != known->has_interface)
        return "interface: expected with all kinds but sysctl and governor";
    if (interface != NULL && (*interface == '\0' || !percent_decode(interface, setting->interface, sizeof setting->interface)))
        return "interface: expected a name of 1 to " INTERFACE_MOST;
    if (strcmp(kind, "mtu") == 0 && (text_number(value, &end) < 1280 || text_number(value, &end) > 65535 || *end != '\0'))
        return "value: expected 1280 to 65535";
    if (strcmp(kind, "offload") == 0 && strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        return "value: expected on or off";
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
    error = strcmp(setting.kind, "governor") == 0 ? set_governors(&setting, value, dry == 1, old, now, message, sizeof message)
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

/* The table of kinds of host settings; a new kind is a new row. What a system does with a kind is in settings-linux.c and its like. */
#include "settings.h"

#include "text.h"

static const char *check_mtu(const char *value)
{
    const char *end;
    int64_t mtu = text_number(value, &end);

    return mtu < 1280 || mtu > 65535 || *end != '\0' ? "value: expected 1280 to 65535" : NULL;
}

static const char *check_switch(const char *value)
{
    return strcmp(value, "on") != 0 && strcmp(value, "off") != 0 ? "value: expected on or off" : NULL;
}

static const char *check_eee(const char *value)
{
    return strcmp(value, "off") != 0 ? "value: expected off" : NULL;
}

static const struct setting_kind kinds[] = {
    {"mtu", .has_interface = true, .wrong = check_mtu, .ways = &setting_ways_mtu},
    {"sysctl", .has_name = true, .ways = &setting_ways_sysctl},
    {"offload", .has_name = true, .has_interface = true, .wrong = check_switch, .ways = &setting_ways_offload},
    {"governor", .each_cpu = true, .ways = &setting_ways_governor},
    {"rings", .has_name = true, .has_interface = true, .ways = &setting_ways_card},
    {"coalesce", .has_name = true, .has_interface = true, .ways = &setting_ways_card},
    {"channels", .has_name = true, .has_interface = true, .ways = &setting_ways_card},
    {"pause", .has_name = true, .has_interface = true, .ways = &setting_ways_card},
    {"eee", .has_interface = true, .wrong = check_eee, .ways = &setting_ways_eee},
    {"qdisc", .has_interface = true, .ways = &setting_ways_qdisc},
    {"rps", .has_interface = true, .ways = &setting_ways_rps},
};

#define KINDS (sizeof kinds / sizeof *kinds)

const struct setting_kind *setting_find_kind(const char *name)
{
    for (size_t i = 0; name != NULL && i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

bool setting_is_any(const struct setting_kind *kind)
{
    (void)kind;
    return true;
}

bool setting_is_named(const struct setting_kind *kind)
{
    return kind->has_name;
}

bool setting_is_of_node(const struct setting_kind *kind)
{
    return !kind->has_interface;
}

static bool is_known_here(const struct setting_kind *kind)
{
    return kind->ways->carry_out != NULL;
}

const char *setting_list_kinds(bool (*holds)(const struct setting_kind *kind), const char *last)
{
    static char text[KINDS * (sizeof ((struct setting *)NULL)->kind + 2) + 8];
    size_t used = 0, left = 0;

    for (size_t i = 0; i < KINDS; i++)
        left += holds(&kinds[i]);
    text[0] = '\0';
    for (size_t i = 0; i < KINDS; i++) {
        const char *gap = used == 0 ? "" : left > 1 ? ", " : last;

        if (!holds(&kinds[i]))
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", gap, kinds[i].name);
        left--;
    }
    return text;
}

int setting_carry_out(const struct setting *setting, const char *value, char *text)
{
    const struct setting_kind *kind = setting_find_kind(setting->kind);

    if (kind == NULL)
        return EINVAL;
    if (is_known_here(kind))
        return kind->ways->carry_out(setting, value, text);
    snprintf(setting_reason, sizeof setting_reason, "; on this system there are %s", setting_list_kinds(is_known_here, " and "));
    return EOPNOTSUPP;
}

int setting_check(const struct setting *setting, const char *value)
{
    const struct setting_kind *kind = setting_find_kind(setting->kind);

    return kind != NULL && kind->ways->check != NULL ? kind->ways->check(setting, value) : 0;
}

bool setting_fits(const struct setting *setting, const char *value, const char *old, const char *now)
{
    const struct setting_kind *kind = setting_find_kind(setting->kind);

    return strcmp(now, value) == 0 || (kind != NULL && kind->ways->fits != NULL && kind->ways->fits(value, old, now));
}

int setting_parts(const struct setting *setting, const char *old, struct setting *parts, int most)
{
    const struct setting_kind *kind = setting_find_kind(setting->kind);

    return kind != NULL && kind->ways->parts != NULL ? kind->ways->parts(setting, old, parts, most) : 0;
}

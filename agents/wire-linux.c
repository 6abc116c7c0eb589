/* Reads what a card counts on the wire: by ethtool netlink (STATS_GET since Linux 5.13, PAUSE_GET, FEC_GET) and, where a driver reports
 * nothing there, from its private counters (`ethtool -S`). Only names that were read in the driver's source are known: what a name like
 * `rx_pause` counts differs between drivers. */
#include "wire.h"

#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>

#include "ethtool.h"

#define LAYERS_MAX 8           /* of the kernel: MAX_NEST_DEV */
#define PRIVATE_MAX (1U << 14) /* most private counters that are read */

#define ROOM_LEFT 1024         /* for private counters that appear while they are read */

#define AT(name) offsetof(struct wire_counters, name)

/* A counter of a group of ETHTOOL_MSG_STATS_GET. */
static const struct standard {
    uint32_t group;
    int number;
    size_t at;
} standards[] = {
    {ETHTOOL_STATS_ETH_PHY, ETHTOOL_A_STATS_ETH_PHY_5_SYM_ERR, AT(symbol_errors)},
    {ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_6_FCS_ERR, AT(fcs_errors)},
    {ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_7_ALIGN_ERR, AT(alignment_errors)},
    {ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_10_LATE_COL, AT(late_collisions)},
};

/* Private counters, from the drivers of Linux 6.1; docs/reference/counters-of-the-wire.md has the line of each and a recording of each
 * driver. Where a driver counts the frames that ask to stop (XOFF) apart, the others (XON) are left out. */
static const struct private {
    const char *driver, *name;
    size_t at;
} privates[] = {
    /* intel/igc/igc_ethtool.c, intel/igb/igb_ethtool.c, intel/e1000e/ethtool.c */
    {"igc", "rx_flow_control_xoff", AT(rx_pause)},
    {"igc", "tx_flow_control_xoff", AT(tx_pause)},
    {"igc", "rx_crc_errors", AT(fcs_errors)},
    {"igc", "rx_align_errors", AT(alignment_errors)},
    {"igc", "tx_abort_late_coll", AT(late_collisions)},
    {"igb", "rx_flow_control_xoff", AT(rx_pause)},
    {"igb", "tx_flow_control_xoff", AT(tx_pause)},
    {"igb", "rx_crc_errors", AT(fcs_errors)},
    {"igb", "rx_align_errors", AT(alignment_errors)},
    {"igb", "tx_abort_late_coll", AT(late_collisions)},
    {"e1000e", "rx_flow_control_xoff", AT(rx_pause)},
    {"e1000e", "tx_flow_control_xoff", AT(tx_pause)},
    {"e1000e", "rx_crc_errors", AT(fcs_errors)},
    {"e1000e", "rx_align_errors", AT(alignment_errors)},
    {"e1000e", "tx_abort_late_coll", AT(late_collisions)}, /* read only in half duplex */
    /* broadcom/genet/bcmgenet.c; rx_crc counts good frames */
    {"bcmgenet", "rx_pause", AT(rx_pause)},
    {"bcmgenet", "tx_pause", AT(tx_pause)},
    {"bcmgenet", "rx_fcs", AT(fcs_errors)},
    {"bcmgenet", "rx_align", AT(alignment_errors)},
    {"bcmgenet", "tx_late_col", AT(late_collisions)},
    /* cadence/macb.h */
    {"macb", "rx_pause_frames", AT(rx_pause)},
    {"macb", "tx_pause_frames", AT(tx_pause)},
    {"macb", "rx_frame_check_sequence_errors", AT(fcs_errors)},
    {"macb", "rx_alignment_errors", AT(alignment_errors)},
    {"macb", "tx_late_collisions", AT(late_collisions)},
    {"macb", "rx_symbol_errors", AT(symbol_errors)},
    /* realtek/r8169_main.c */
    {"r8169", "align_errors", AT(alignment_errors)},
    /* mellanox/mlx5/core/en_stats.c; rx_global_pause, where it is listed, counts the same frames */
    {"mlx5_core", "rx_pause_ctrl_phy", AT(rx_pause)},
    {"mlx5_core", "tx_pause_ctrl_phy", AT(tx_pause)},
    {"mlx5_core", "rx_crc_errors_phy", AT(fcs_errors)},
    {"mlx5_core", "rx_symbol_err_phy", AT(symbol_errors)},
    /* intel/ixgbe/ixgbe_ethtool.c, intel/i40e/i40e_ethtool.c, intel/ice/ice_ethtool.c */
    {"ixgbe", "rx_flow_control_xoff", AT(rx_pause)}, /* stands still where the card does not heed pause frames */
    {"ixgbe", "tx_flow_control_xoff", AT(tx_pause)},
    {"ixgbe", "rx_crc_errors", AT(fcs_errors)},
    {"i40e", "port.link_xoff_rx", AT(rx_pause)},
    {"i40e", "port.link_xoff_tx", AT(tx_pause)},
    {"i40e", "port.rx_crc_errors", AT(fcs_errors)},
    {"ice", "link_xoff_rx.nic", AT(rx_pause)},
    {"ice", "link_xoff_tx.nic", AT(tx_pause)},
    {"ice", "rx_crc_errors.nic", AT(fcs_errors)},
    /* broadcom/tg3.c */
    {"tg3", "rx_xoff_pause_rcvd", AT(rx_pause)},
    {"tg3", "tx_xoff_sent", AT(tx_pause)},
    {"tg3", "rx_fcs_errors", AT(fcs_errors)},
    {"tg3", "rx_align_errors", AT(alignment_errors)},
    {"tg3", "tx_late_collisions", AT(late_collisions)},
    /* stmicro/stmmac/stmmac_ethtool.c */
    {"st_gmac", "mmc_rx_pause_frames", AT(rx_pause)},
    {"st_gmac", "mmc_tx_pause_frame", AT(tx_pause)},
    {"st_gmac", "mmc_rx_crc_error", AT(fcs_errors)},
    {"st_gmac", "mmc_rx_align_error", AT(alignment_errors)},
    {"st_gmac", "mmc_tx_latecol", AT(late_collisions)},
};

static int64_t *counter_at(struct wire_counters *counters, size_t at)
{
    return (int64_t *)(void *)((char *)counters + at);
}

static void take_number(struct wire_counters *counters, size_t at, struct rtattr *found)
{
    uint64_t number;

    if (found == NULL)
        return;
    memcpy(&number, RTA_DATA(found), sizeof number);
    if (number <= INT64_MAX)
        *counter_at(counters, at) = (int64_t)number;
}

/* The standard counters: each is alone in an attribute STAT. */
static void take_group(struct rtattr *group, struct wire_counters *counters)
{
    int length = (int)RTA_PAYLOAD(group);
    uint32_t number;
    struct rtattr *found = netlink_attribute(RTA_DATA(group), length, ETHTOOL_A_STATS_GRP_ID, sizeof number);

    if (found == NULL)
        return;
    memcpy(&number, RTA_DATA(found), sizeof number);
    for (struct rtattr *each = RTA_DATA(group); RTA_OK(each, length); each = RTA_NEXT(each, length)) {
        if ((each->rta_type & NLA_TYPE_MASK) != ETHTOOL_A_STATS_GRP_STAT)
            continue;
        for (size_t i = 0; i < sizeof standards / sizeof *standards; i++)
            if (standards[i].group == number)
                take_number(counters, standards[i].at,
                            netlink_attribute(RTA_DATA(each), (int)RTA_PAYLOAD(each), standards[i].number, sizeof(uint64_t)));
    }
}

static void take_stats(struct rtattr *first, int length, void *into)
{
    for (struct rtattr *each = first; RTA_OK(each, length); each = RTA_NEXT(each, length))
        if ((each->rta_type & NLA_TYPE_MASK) == ETHTOOL_A_STATS_GRP)
            take_group(each, into);
}

static void take_nested(struct rtattr *first, int length, int nest, int type, struct wire_counters *counters, size_t at)
{
    struct rtattr *stats = netlink_attribute(first, length, nest, 0);

    if (stats != NULL)
        take_number(counters, at, netlink_attribute(RTA_DATA(stats), (int)RTA_PAYLOAD(stats), type, sizeof(uint64_t)));
}

static void take_pause(struct rtattr *first, int length, void *into)
{
    take_nested(first, length, ETHTOOL_A_PAUSE_STATS, ETHTOOL_A_PAUSE_STAT_RX_FRAMES, into, AT(rx_pause));
    take_nested(first, length, ETHTOOL_A_PAUSE_STATS, ETHTOOL_A_PAUSE_STAT_TX_FRAMES, into, AT(tx_pause));
}

/* The first number of each array is the total, those of the lanes follow. */
static void take_fec(struct rtattr *first, int length, void *into)
{
    take_nested(first, length, ETHTOOL_A_FEC_STATS, ETHTOOL_A_FEC_STAT_CORRECTED, into, AT(fec_corrected));
    take_nested(first, length, ETHTOOL_A_FEC_STATS, ETHTOOL_A_FEC_STAT_UNCORR, into, AT(fec_uncorrectable));
}

static bool is_known(const char *driver)
{
    for (size_t i = 0; i < sizeof privates / sizeof *privates; i++)
        if (strcmp(privates[i].driver, driver) == 0)
            return true;
    return false;
}

static void take_private(struct wire_counters *counters, const char *driver, const char *name, uint64_t number)
{
    for (size_t i = 0; i < sizeof privates / sizeof *privates; i++)
        if (strcmp(privates[i].driver, driver) == 0 && strncmp(privates[i].name, name, ETH_GSTRING_LEN) == 0 && number <= INT64_MAX)
            *counter_at(counters, privates[i].at) = (int64_t)number;
}

static void read_private(const char *card, struct wire_counters *counters)
{
    struct ethtool_drvinfo about = {.cmd = ETHTOOL_GDRVINFO};
    struct ethtool_gstrings *names;
    struct ethtool_stats *numbers;
    uint32_t room;

    if (ethtool_call(card, &about) != 0 || !is_known(about.driver) || about.n_stats > PRIVATE_MAX)
        return;
    /* The kernel writes as many as there are, which may be more by now. */
    room = about.n_stats + ROOM_LEFT;
    names = calloc(1, sizeof *names + (size_t)room * ETH_GSTRING_LEN);
    numbers = calloc(1, sizeof *numbers + (size_t)room * sizeof *numbers->data);
    if (names != NULL && numbers != NULL) {
        names->cmd = ETHTOOL_GSTRINGS, names->string_set = ETH_SS_STATS, names->len = about.n_stats;
        numbers->cmd = ETHTOOL_GSTATS, numbers->n_stats = about.n_stats;
        if (ethtool_call(card, names) == 0 && ethtool_call(card, numbers) == 0 && names->len == numbers->n_stats)
            for (uint32_t i = 0; i < names->len; i++)
                take_private(counters, about.driver, (const char *)names->data + (size_t)i * ETH_GSTRING_LEN, numbers->data[i]);
    }
    free(names);
    free(numbers);
}

static void add_groups(struct netlink_request *request)
{
    uint32_t groups = 1U << ETHTOOL_STATS_ETH_PHY | 1U << ETHTOOL_STATS_ETH_MAC, size = ETHTOOL_STATS_ETH_MAC + 1;
    struct rtattr *nest = netlink_open_nest(request, ETHTOOL_A_STATS_GROUPS);

    netlink_add(request, ETHTOOL_A_BITSET_NOMASK, "", 0);
    netlink_add(request, ETHTOOL_A_BITSET_SIZE, &size, sizeof size);
    netlink_add(request, ETHTOOL_A_BITSET_VALUE, &groups, sizeof groups);
    netlink_close_nest(request, nest);
}

static void read_standard(const char *card, struct wire_counters *counters)
{
    struct netlink_request request;

    if (ethtool_begin(&request, ETHTOOL_MSG_STATS_GET, ETHTOOL_A_STATS_HEADER, card, 0) != 0)
        return;
    add_groups(&request);
    ethtool_ask(&request, take_stats, counters);
    ethtool_begin(&request, ETHTOOL_MSG_PAUSE_GET, ETHTOOL_A_PAUSE_HEADER, card, ETHTOOL_FLAG_STATS);
    ethtool_ask(&request, take_pause, counters);
    ethtool_begin(&request, ETHTOOL_MSG_FEC_GET, ETHTOOL_A_FEC_HEADER, card, ETHTOOL_FLAG_STATS);
    ethtool_ask(&request, take_fec, counters);
}

/* Replace the name of an interface that is no hardware by that of the one below. Returns how many there are below. */
static int step_down(char *name)
{
    char path[96], below[INTERFACE_ROOM] = "";
    const struct dirent *entry;
    int count = 0;
    DIR *folder;

    snprintf(path, sizeof path, "/sys/class/net/%s/device", name);
    if (access(path, F_OK) == 0)
        return 0;
    *strrchr(path, '/') = '\0';
    folder = opendir(path);
    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, "lower_", 6) == 0) {
            snprintf(below, sizeof below, "%s", entry->d_name + 6);
            count++;
        }
    closedir(folder);
    if (count == 1)
        snprintf(name, INTERFACE_ROOM, "%s", below);
    return count;
}

void wire_read(const char *interface, struct wire_counters *counters)
{
    char card[INTERFACE_ROOM];
    int below = 1;

    snprintf(card, sizeof card, "%s", interface);
    for (int depth = 0; below == 1 && depth < LAYERS_MAX; depth++)
        below = step_down(card);
    if (below != 0) /* several, as below a bridge: which one carries the frames is unknown */
        return;
    read_private(card, counters);
    read_standard(card, counters);
}

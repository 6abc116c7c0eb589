"""Sentences on links and cards: down, slow, half duplex, PCIe, offloads, rings, pause frames, other traffic."""

from typing import Final

from rigctl.findings import error, good, note, warning

LINK_UP: Final = good("link-up", "the data interface has a link.")
LINK_DOWN: Final = error("link-down", "{interface} is down.", "{command}")
NO_CARRIER: Final = error("no-carrier", "{interface} has no link.", "Look at cable, transceiver and the switch's port.")
INTERFACE_UNKNOWN: Final = warning(
    "interface-unknown", "the interface of its data address was not found.", "Give data_interface in the rig file."
)
HALF_DUPLEX: Final = warning(
    "half-duplex",
    "{interface} runs half duplex: both directions share the link.",
    "Let both ends negotiate: {command}; the same on the switch's port.",
)
LATE_COLLISIONS: Final = warning(
    "late-collisions",
    "{places}, as on a cable of which one end runs half duplex.",
    "Let both ends negotiate: ethtool -s DEVICE autoneg on; the same on the switch's port.",
)
FEC_UNCORRECTABLE: Final = warning(
    "fec-uncorrectable",
    "Forward error correction could not repair {places}: frames were lost.",
    "Clean or replace the transceivers and the cable there; look at ethtool --show-fec DEVICE at both ends.",
)
LINK_SLOW: Final = warning(
    "link-slow",
    "{interface} runs at {speed}, the rig file has {wanted}.",
    "Look at the cable and the switch's port ({command}), or correct the rig file.",
)
LINK_FAST: Final = note("link-fast", LINK_SLOW.text, "Correct the rig file, unless the other end is slower.")
LINK_BELOW_OFFER: Final = warning(
    "link-below-offer",
    "{interface} runs at {speed}, though both ends offer {offered}, as with a bad cable or plug.",
    "Try another cable; then look at the switch's port ({command}).",
)
_SLEEPS: Final = "an idle link sleeps, and takes about 17 µs at 1 Gbit/s to wake up. Latencies include this time"
EEE: Final = note(
    "eee",
    f"{{interface}} uses Energy-Efficient Ethernet: {_SLEEPS}; some cards and switches lose packets.",
    "Set the condition eee: off.",
)
EEE_USED: Final = note(
    "eee",
    f"Energy-Efficient Ethernet was active at {{nodes}}: {_SLEEPS}{{lost}}.",
    "Measure again with the condition eee: off, or with EEE off on the switch's ports.",
)
BOND: Final = note(
    "bond",
    "{interface} sends over a bond of {cards} cards of {card} ({bond}). One flow gets one card; {cards} flows to one "
    "other node get {most} at most. The switch spreads what the node receives, in a way that no node knows.",
    "For several cards in one pair: layer3+4 as hash, on the nodes and on the switch, and several flows.",
)
BOND_CEILING: Final = note(
    "bond-ceiling",
    "{nodes}: a bond of {cards} cards of {card} ({bond}). Ceilings count one card for one flow, and {most} for {cards} "
    "flows from there to one other node. How the switch spreads flows to there is unknown; their ceilings are bounds.",
)
LINK_NOT_AS_STATED: Final = warning(
    "link-not-as-stated", "The link of {node} runs at {found}; the rig file has {stated}."
)
MTU_NOT_AS_STATED: Final = warning("mtu-not-as-stated", "The MTU of {node} is {found}; the rig file has {stated}.")
NO_OTHER_TRAFFIC: Final = good("no-other-traffic", "no other traffic on the data interface.")
OTHER_TRAFFIC: Final = warning(
    "other-traffic",
    "other traffic on {interface} now: {rx_mbps:.1f} Mbit/s in, {tx_mbps:.1f} Mbit/s out.",
    "Find the cause, as with: {command}; or measure when the traffic is over.",
)
CARD_DRIVER: Final = good("card", "driver {driver}, firmware {firmware}.")
DRIVER_OLD: Final = warning(
    "driver-old",
    "the driver of {interface}, {driver} {driver_version}, is of {driver_date}, more than two years old.",
    "Install the current driver of the card's manufacturer.",
)
_PCIE: Final = "the card of {interface} has PCIe {pcie_gts:g} GT/s × {pcie_lanes}: {rate}"
_LOOK: Final = "lspci -vv shows LnkCap and LnkSta."
PCIE: Final = good("pcie", f"{_PCIE}.")
PCIE_SLOW: Final = warning(
    "pcie-slow", f"{_PCIE}, less than its link of {{link}}.", f"Put the card into a faster slot: {_LOOK}"
)
PCIE_PART: Final = note(
    "pcie-part",
    f"{_PCIE}; it can do {{gts_max:g}} GT/s × {{lanes_max:g}}.",
    f"A faster slot would allow this rate: {_LOOK}",
)
OFFLOADS_OFF: Final = note(
    "offloads-off",
    "offloads of {interface} are off: {off}. The processor does their work.",
    "On the node, as root: ethtool -K {interface} {on}",
)
RINGS_SMALL: Final = note(
    "rings-small",
    "rings of {interface} are small: {sizes}. Bursts may be dropped.",
    "On the node, as root: ethtool -G {interface} {most}",
)
INTERRUPT_PER_PACKET: Final = note(
    "interrupt-per-packet",
    "{interface} interrupts for every packet received (rx-usecs 0): low latency, high processor load.",
    "On the node, as root: ethtool -C {interface} adaptive-rx on",
)
PAUSE_IGNORED: Final = note(
    "pause-ignored",
    "{interface} does not heed pause frames, and the switch has dropped {dropped:,} frames to {receivers} since its "
    "counters began ({lost_pct} %).",
    "Set the condition pause: {{rx: on}}, and flow control on the switch's ports. A paused card sends to nobody.",
)

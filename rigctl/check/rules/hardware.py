"""Rules on hardware: PCIe, offloads, rings, pause frames, governors, throttling. Not for virtual rigs and FreeBSD."""

from collections.abc import Iterator
from typing import Final

from rigctl.base.units import format_rate
from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.findings import fine, found, listed, note, warning
from rigctl.findings import Finding, Number, Severity

PCIE_BPS: Final = {2.5: 2.0e9, 5.0: 4.0e9, 8.0: 7.877e9, 16.0: 15.754e9, 32.0: 31.508e9}
"""GT/s of a lane → bit/s after line coding: 8b/10b up to 5 GT/s, 128b/130b above (PCI Express Base, 4.2)."""
PCIE_SHARE: Final = 0.85
"""Share of that rate for data: headers and flow control of 256-byte packets take the rest."""
FAST_BPS: Final = 5e9
OFFLOADED_BPS: Final = 1e9
"""Below this rate any processor can do without offloads."""
DROPPED_SHARE: Final = 1e-5
"""A switch drops frames if this share of those to a port is lost: enough to hold a flow below 10 Gbit/s at a round trip
of 0.45 ms, by 1.22 × MSS / (round trip × √loss) (Mathis et al., 1997)."""
OFFLOADS: Final = ("tso", "gro", "sg", "tx", "rx")


def pcie(seen: Seen) -> Iterator[Finding]:
    """Compare PCIe speed × width with the card's maximum, and the bandwidth with the link's rate."""
    for each in real(seen):
        slot = each.facts.get("pcie") or {}
        gts, width = slot.get("speed_gts", 0.0), slot.get("width")
        lane_bps = PCIE_BPS.get(gts)
        if lane_bps is None or width is None:
            continue
        gts_max, width_max = slot.get("speed_max_gts", gts), slot.get("width_max", width)
        left_bps, link_bps = lane_bps * width * PCIE_SHARE, seen.rate_bps(each.name)
        numbers: dict[str, Number] = {"pcie_gts": gts, "pcie_lanes": int(width), "pcie_mbps": left_bps / 1e6}
        text = f"the card of {each.interface} has PCIe {gts:g} GT/s × {width:g}: {format_rate(left_bps)}"
        look = "lspci -vv shows LnkCap and LnkSta."
        if link_bps is not None and left_bps < link_bps:
            text = f"{text}, less than its link of {format_rate(link_bps)}."
            yield warning(each, text, f"Put the card into a faster slot: {look}", **numbers)
        elif lane_bps * width < PCIE_BPS.get(gts_max, lane_bps) * width_max:
            text = f"{text}; it can do {gts_max:g} GT/s × {width_max:g}."
            yield note(each, text, f"A faster slot would give it all: {look}", **numbers)
        else:
            yield from fine([each.name], f"{text}.", **numbers)


def card(seen: Seen) -> Iterator[Finding]:
    """Report driver and firmware, offloads that are off, small rings, interrupts for every packet."""
    for each in real(seen):
        driver, firmware = each.facts.get("driver"), each.facts.get("firmware")
        if driver is not None:
            yield from fine([each.name], f"driver {driver}, firmware {firmware or 'unknown'}.")
        rate_bps = seen.rate_bps(each.name)
        fast = (rate_bps or 0) >= FAST_BPS
        offloads = each.facts.get("offloads") or {}
        off = [name for name in OFFLOADS if offloads.get(name) is False]
        if off and (rate_bps is None or rate_bps >= OFFLOADED_BPS):
            text = f"offloads of {each.interface} are off: {', '.join(off)}. The processor does their work."
            level = Severity.WARNING if fast else Severity.NOTE
            names = " ".join(f"{name} on" for name in off)
            yield found(level, each, text, f"On the node, as root: ethtool -K {each.interface} {names}")
        if fast:
            yield from _rings(each)


def _rings(each: NodeSeen) -> Iterator[Finding]:
    rings, coalescing = each.facts.get("rings") or {}, each.facts.get("coalescing") or {}
    small = {way: rings[way] for way in ("rx", "tx") if way in rings and rings[way] * 4 <= rings.get(f"{way}_max", 0)}
    if small:
        most = " ".join(f"{way} {rings[f'{way}_max']}" for way in small)
        sizes = ", ".join(f"{way} {size}" for way, size in small.items())
        text = f"rings of {each.interface} are small: {sizes}. Bursts may be dropped."
        yield note(each, text, f"On the node, as root: ethtool -G {each.interface} {most}", **small)
    if coalescing.get("rx-usecs") == "0" and coalescing.get("adaptive-rx") != "on":
        text = f"{each.interface} interrupts for every packet received (rx-usecs 0): low latency, high processor load."
        yield note(each, text, f"On the node, as root: ethtool -C {each.interface} adaptive-rx on")


def pause(seen: Seen) -> Iterator[Finding]:
    """Report senders that do not heed pause frames, where the switch has dropped frames to their receivers."""
    dropping = {name: own for name in seen.ports if (own := _dropped(seen, name)) is not None}
    for each in real(seen):
        if (each.facts.get("pause") or {}).get("rx") is not False:
            continue
        switch = each.node.link.switch
        receivers = [name for name in dropping if name in _receivers(seen, each) and _switch_of(seen, name) == switch]
        if not receivers:
            continue
        dropped, share = max((dropping[name] for name in receivers), key=lambda found: found[1])
        text = (
            f"{each.interface} does not heed pause frames, and the switch has dropped {dropped:,} frames to "
            f"{listed('node', receivers)} since its counters began ({100 * share:.2g} %)."
        )
        remedy = "A condition: pause: {rx: on}, and flow control on the switch's ports; a paused card sends to nobody."
        yield note(each, text, remedy, dropped=dropped)


def _dropped(seen: Seen, name: str) -> tuple[int, float] | None:
    """Return how many frames to a node its switch has dropped, and their share; None: too few, or not known."""
    dropped, passed = seen.ports[name].out_discards, seen.ports[name].out_packets
    if not dropped or passed is None or dropped < DROPPED_SHARE * (dropped + passed):
        return None
    return dropped, dropped / (dropped + passed)


def _receivers(seen: Seen, each: NodeSeen) -> set[str]:
    """Return the nodes that a node sends to, in tests whose condition leaves pause frames as they are."""
    if seen.plan is None:
        return seen.nodes.keys() - {each.name}
    cells = [cell for cell in seen.cells() if "pause" not in seen.kinds_of(cell)]
    return {stream.receiver for cell in cells for stream in cell.streams if stream.sender == each.name}


def _switch_of(seen: Seen, name: str) -> str | None:
    return seen.nodes[name].node.link.switch


def processor(seen: Seen) -> Iterator[Finding]:
    """Report frequency governors, and under-voltage and throttling of a Raspberry Pi."""
    for each in real(seen):
        governor, flags = each.facts.get("governor"), each.facts.get("throttled")
        if governor not in (None, "performance"):
            remedy = "cpupower frequency-set -g performance; or a condition: governor: performance"
            text = f"CPU governor {governor}: the frequency follows the load."
            yield note(each, text, f"On the node, as root: {remedy}")
        if flags:
            level = Severity.WARNING if any(flag.endswith(" now") for flag in flags) else Severity.NOTE
            remedy = "Check power supply and cooling; repetitions during which it is throttled do not count."
            yield found(level, each, f"{', '.join(flags)} (vcgencmd get_throttled).", remedy)
        elif flags == []:
            yield from fine([each.name], "neither under-voltage nor throttling.")


def real(seen: Seen) -> Iterator[NodeSeen]:
    """Yield the nodes whose hardware is judged."""
    return (each for each in seen.reached() if seen.rig.virtual is None and not each.is_freebsd)

"""Rules on hardware: PCIe, offloads, rings, pause frames, EEE, governors, throttling, interrupts, NUMA, idle states.

They only judge Linux nodes of rigs that are not virtual.
"""

from collections.abc import Iterator
from typing import Final

from rigctl.base.units import format_rate
from rigctl.findings import Finding, FindingValue, Severity
from rigctl.findings import link as cards
from rigctl.findings import nodes as said
from rigctl.findings.text import join_list, pct_text
from rigctl.hosts.processors import on_nodes, read_processor_list
from rigctl.paths.commands import find_on, list_names
from rigctl.paths.state import NodeState, RigState
from rigctl.records import Cell
from rigctl.settings import BUSY_POLL, PLACEMENT
from rigctl.settings.kinds import AGENT, PINGPONG, REQUESTS, UDP
from rigctl.settings.placement import NIC, PACKETS, of_end

_PCIE_BPS: Final = {2.5: 2.0e9, 5.0: 4.0e9, 8.0: 7.877e9, 16.0: 15.754e9, 32.0: 31.508e9}
"""GT/s of a PCIe lane → bit/s without line coding: 8b/10b up to 5 GT/s, 128b/130b above (PCI Express Base, 4.2)."""
_PCIE_SHARE: Final = 0.85
"""Share of a PCIe lane's bit/s for data; headers and flow control of 256-byte packets take the rest."""
_FAST_BPS: Final = 5e9
_OFFLOADED_BPS: Final = 1e9
"""Below this rate, any processor is fast enough without offloads."""
_DROPPED_SHARE: Final = 1e-5
"""Share of frames that a switch may drop at a port before this is reported. This loss limits a flow to 10 Gbit/s at a
round trip of 0.45 ms, by 1.22 × MSS / (round trip × √loss) (Mathis et al., 1997)."""
_OFFLOADS: Final = ("tso", "gro", "sg", "tx", "rx")


def pcie(state: RigState) -> Iterator[Finding]:
    """Check that a card's PCIe link is as fast as its network link, and as fast and wide as the card allows."""
    for each in real(state):
        slot = each.facts.get("pcie") or {}
        gts, width = slot.get("speed_gts", 0.0), slot.get("width")
        lane_bps = _PCIE_BPS.get(gts)
        if lane_bps is None or width is None:
            continue
        gts_max, width_max = slot.get("speed_max_gts", gts), slot.get("width_max", width)
        left_bps, link_bps = lane_bps * width * _PCIE_SHARE, state.rate_bps(each.name)
        numbers: dict[str, FindingValue] = {"pcie_gts": gts, "pcie_lanes": int(width), "pcie_mbps": left_bps / 1e6}
        rate = format_rate(left_bps)
        if link_bps is not None and left_bps < link_bps:
            yield find_on(each, cards.PCIE_SLOW, numbers, rate=rate, link=format_rate(link_bps))
        elif lane_bps * width < _PCIE_BPS.get(gts_max, lane_bps) * width_max:
            yield find_on(each, cards.PCIE_PART, numbers, rate=rate, gts_max=gts_max, lanes_max=width_max)
        else:
            yield find_on(each, cards.PCIE, numbers, rate=rate)


def check_card(state: RigState) -> Iterator[Finding]:
    """Report driver and firmware, and warn of disabled offloads, small rings, and interrupts for every packet."""
    for each in real(state):
        driver, firmware = each.facts.get("driver"), each.facts.get("firmware")
        if driver is not None:
            yield find_on(each, cards.CARD_DRIVER, driver=driver, firmware=firmware or "unknown")
        rate_bps = state.rate_bps(each.name)
        fast = (rate_bps or 0) >= _FAST_BPS
        offloads = each.facts.get("offloads") or {}
        fixed = each.facts.get("offloads_fixed") or {}  # as all of a bridge; no command changes them
        off = [name for name in _OFFLOADS if offloads.get(name) is False and name not in fixed]
        if off and (rate_bps is None or rate_bps >= _OFFLOADED_BPS):
            level = Severity.WARNING if fast else Severity.NOTE
            names = " ".join(f"{name} on" for name in off)
            yield find_on(each, cards.OFFLOADS_OFF.at(level), off=", ".join(off), on=names)
        if fast:
            yield from _rings(each)


def _rings(each: NodeState) -> Iterator[Finding]:
    rings, coalescing = each.facts.get("rings") or {}, each.facts.get("coalescing") or {}
    small = {way: rings[way] for way in ("rx", "tx") if way in rings and rings[way] * 4 <= rings.get(f"{way}_max", 0)}
    if small:
        most = " ".join(f"{way} {rings[f'{way}_max']}" for way in small)
        sizes = ", ".join(f"{way} {size}" for way, size in small.items())
        yield find_on(each, cards.RINGS_SMALL, small, sizes=sizes, most=most)
    if coalescing.get("rx-usecs") == "0" and coalescing.get("adaptive-rx") != "on":
        yield find_on(each, cards.INTERRUPT_PER_PACKET)


def pause(state: RigState) -> Iterator[Finding]:
    """Report senders that ignore pause frames, if the switch has dropped frames to their receivers."""
    dropping = {name: own for name in state.ports if (own := _drops_of(state, name)) is not None}
    for each in real(state):
        if (each.facts.get("pause") or {}).get("rx") is not False:
            continue
        receivers = [name for name in dropping if name in _receivers(state, each)]
        if not receivers:
            continue
        dropped, share = max((dropping[name] for name in receivers), key=lambda one: one[1])
        words = {"receivers": list_names("node", receivers), "lost_pct": pct_text(100 * share)}
        yield find_on(each, cards.PAUSE_IGNORED, {"dropped": dropped}, **words)


def _drops_of(state: RigState, name: str) -> tuple[int, float] | None:
    """Return the number and share of frames that the switch dropped at a node's port; None if few or unknown."""
    dropped, passed = state.ports[name].out_discards, state.ports[name].out_packets
    if not dropped or passed is None or dropped < _DROPPED_SHARE * (dropped + passed):
        return None
    return dropped, dropped / (dropped + passed)


def _receivers(state: RigState, each: NodeState) -> set[str]:
    """Return a node's receivers on the same switch, in tests whose condition does not set pause frames."""
    names = state.nodes.keys() - {each.name}
    if state.plan is not None:
        cells = [cell for cell in state.cells() if "pause" not in state.kinds_of(cell)]
        names = {stream.receiver for cell in cells for stream in cell.streams if stream.sender == each.name}
    return {name for name in names if state.nodes[name].node.link.switch == each.node.link.switch}


def processor(state: RigState) -> Iterator[Finding]:
    """Report frequency governors other than `performance`, and under-voltage and throttling of a Raspberry Pi."""
    for each in real(state):
        governor, flags = each.facts.get("governor"), each.facts.get("throttled")
        if governor not in (None, "performance"):
            yield find_on(each, said.GOVERNOR_FOLLOWS_LOAD, governor=governor)
        if flags:
            level = Severity.WARNING if any(flag.endswith(" now") for flag in flags) else Severity.NOTE
            yield find_on(each, said.CPU_THROTTLED.at(level), flags=", ".join(flags))
        elif flags == []:
            yield find_on(each, said.NOT_THROTTLED)


def real(state: RigState) -> Iterator[NodeState]:
    """Yield the nodes whose hardware is judged: Linux nodes of rigs that are not virtual."""
    known = (each for each in state.reached() if not (each.is_freebsd or each.is_windows))
    return (each for each in known if state.rig.virtual is None)


_INTERRUPTS_BPS: Final = 10e9
"""From this rate on, interrupts on one processor only, or memory on another NUMA node, limit receiving."""
_DEEP_US: Final = 20
"""Idle states with this exit latency or more are reported. In Linux (drivers/idle/intel_idle.c), C1 and C1E take up to
15 µs, all other states at least 20 µs. A round trip between two hosts takes some tens of µs."""


def interrupts(state: RigState) -> Iterator[Finding]:
    """Check that a fast card's interrupts go to several processors, or that RPS distributes its packets to several."""
    for each in real(state):
        where = read_processor_list(each.facts.get("interrupt_processors"))
        node = _all_processors(each)
        if where is None or len(where) > 1 or len(node) < 2 or not _is_fast(each):
            continue
        spread = read_processor_list(each.facts.get("rps"))
        if (spread is not None and len(spread) > 1) or all(_spread_by_conditions(state, each) or [False]):
            continue
        (only,) = where
        queues = each.facts.get("rx_queues")
        sentence, numbers = said.QUEUE if queues == 1 else said.INTERRUPTS, {"processor": only, "rx_queues": queues}
        yield find_on(each, sentence, numbers, count=len(node))


def numa(state: RigState) -> Iterator[Finding]:
    """Check that the setting `placement` or else the login's cpuset makes flows run on the network card's NUMA node."""
    for each in real(state):
        nodes, card = each.facts.get("numa_processors") or {}, each.facts.get("numa_node")
        if card is None or str(card) not in nodes or len(nodes) < 2:
            continue
        placements = dict.fromkeys(
            of_end(cell[PLACEMENT], stream.sender == each.name)
            for cell in state.cells()
            if cell.engine == AGENT
            for stream in cell.streams
            if each.name in stream.ends
        )
        for placement in placements:
            yield from _judge_placement(state, each, placement, card, nodes)


def _judge_placement(
    state: RigState, each: NodeState, placement: str | None, card: int, nodes: dict[str, str]
) -> Iterator[Finding]:
    """Yield a finding if flows run on other NUMA nodes than the network card's, `card`. `placement` None: not set."""
    own = nodes[str(card)]
    if placement is None:
        where = read_processor_list(each.facts.get("allowed_processors"))
        text = "flows run"
        remedy = f"Let the login use processors {own}: look at its cpuset, taskset or the job's allocation."
    elif placement == PACKETS:
        is_moved = each.facts.get("rps") != "off" or any(_spread_by_conditions(state, each))
        where = None if is_moved else read_processor_list(each.facts.get("interrupt_processors"))
        text = f"`placement: {PACKETS}` runs flows where the interrupts of {each.interface} go,"
        move = f"Move its interrupts to processors {own} (irqbalance, /proc/irq/*/smp_affinity_list)"
        remedy = f"{move}, or set placement: {NIC}"
    else:
        where = None if placement == NIC else read_processor_list(placement)
        text = f"`placement: {placement}` runs flows"
        remedy = f"`placement: {NIC}` runs them on the card's NUMA node, processors {own}."
    near = read_processor_list(own) or frozenset()
    if where is None or where <= near:  # emulated NUMA nodes, as of a Raspberry Pi, share processors
        return
    there = list(on_nodes(where, nodes))
    numbers = {"card_numa_node": card}
    words = {"what": text, "there": join_list(list(map(str, there)))}
    if there and not where & near:
        level = Severity.WARNING if _is_fast(each) else Severity.NOTE
        yield find_on(each, said.NUMA_FAR.at(level), numbers, remedy=remedy, **words)
    elif len(there) > 1 and _is_fast(each):
        yield find_on(each, said.NUMA_SEVERAL, numbers, own=own, **words)


def idle(state: RigState) -> Iterator[Finding]:
    """Report idle states that take long to leave, if a test measures latency without busy polling."""
    cells = [cell for cell in state.cells() if _sleeps(cell)]
    for each in real(state):
        own = [cell for cell in cells if each.name in cell.nodes]
        latency_us, idle_state = each.facts.get("idle_latency_us"), each.facts.get("idle_state")
        held_us = each.facts.get("dma_latency_us")
        if not own or latency_us is None or latency_us < _DEEP_US or (held_us is not None and held_us < latency_us):
            continue
        unless = "" if held_us is not None else ", unless a process holds /dev/cpu_dma_latency (tuned does)"
        polling = "; or in the scenario: busy_poll: true" if all(cell.kind is PINGPONG for cell in own) else ""
        words = {"state": idle_state or "a state", "unless": unless, "deep_us": _DEEP_US, "polling": polling}
        yield find_on(each, said.IDLE_STATE, {"idle_latency_us": latency_us}, **words)


def eee(state: RigState) -> Iterator[Finding]:
    """Report Energy-Efficient Ethernet that is active, if a test measures latency or counts lost datagrams."""
    cells = [cell for cell in state.cells() if "eee" not in state.kinds_of(cell)]
    measured = {name for cell in cells if _heeds_gaps(cell) for name in cell.nodes}
    for each in real(state):
        if each.facts.get("eee") == "active" and (each.name in measured or state.plan is None):
            yield find_on(each, cards.EEE)


def _heeds_gaps(cell: Cell) -> bool:
    return cell.latency_ms is not None or cell.kind in (PINGPONG, REQUESTS, UDP)


def _sleeps(cell: Cell) -> bool:
    return cell.latency_ms is not None or cell.kind is REQUESTS or (cell.kind is PINGPONG and not cell[BUSY_POLL])


def _is_fast(each: NodeState) -> bool:
    """Tell whether the link has 10 Gbit/s or more, as negotiated, else as in the rig file."""
    rate_bps: int | None = each.facts.get("speed_bps") or each.node.link.rate_bps
    return rate_bps is not None and rate_bps >= _INTERRUPTS_BPS


def _all_processors(each: NodeState) -> frozenset[int]:
    lists = (each.facts.get("numa_processors") or {}).values()
    return frozenset[int]().union(*(read_processor_list(text) or () for text in lists))


def _spread_by_conditions(state: RigState, each: NodeState) -> list[bool]:
    """Return for each test of a node whether the test's condition sets RPS or the number of queues."""
    return [bool(state.kinds_of(cell) & {"rps", "channels"}) for cell in state.cells() if each.name in cell.nodes]

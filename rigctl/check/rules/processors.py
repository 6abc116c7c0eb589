"""Rules on processors: where a card's interrupts go, NUMA nodes of card and flows, idle states of latency tests."""

from collections.abc import Iterator
from typing import Final

from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.findings import found, note, warning
from rigctl.check.rules.hardware import real
from rigctl.findings import Finding, Severity
from rigctl.probe.processors import on_nodes, processors
from rigctl.records import Cell
from rigctl.settings import BUSY_POLL, PLACEMENT
from rigctl.settings.kinds import AGENT, PINGPONG
from rigctl.settings.placement import NIC, PACKETS, of_end

FAST_BPS: Final = 10e9
"""From this rate on one processor's interrupts, and memory of another NUMA node, limit what a card receives."""
DEEP_US: Final = 20
"""Exit latency from which an idle state is deep. In the tables of Linux (drivers/idle/intel_idle.c) C1 and C1E take at
most 15 µs and all others 20 µs and more; a round trip between two hosts takes some tens of µs."""


def interrupts(seen: Seen) -> Iterator[Finding]:
    """Check that the interrupts of a fast card go to several processors, or that RPS spreads its packets."""
    for each in real(seen):
        where = processors(each.facts.get("interrupt_processors"))
        node, interface = _machine(each), each.interface
        if where is None or len(where) > 1 or len(node) < 2 or not _is_fast(each):
            continue
        spread = processors(each.facts.get("rps"))
        if (spread is not None and len(spread) > 1) or _set_in_all(seen, each, "rps", "channels"):
            continue
        (only,) = where
        queues = each.facts.get("rx_queues")
        text = f"all interrupts of {interface} go to processor {only} of {len(node)}: it alone takes all packets."
        remedy = "or a condition: rps: all"
        if queues == 1:
            remedy = (
                f"Give the card more queues (ethtool -l {interface} shows how many), a condition: channels; {remedy}"
            )
        else:
            remedy = f"On the node, as root: systemctl start irqbalance; {remedy}"
        yield warning(each, text, remedy, processor=only, rx_queues=queues)


def numa(seen: Seen) -> Iterator[Finding]:
    """Check that flows run on the NUMA node of the card, as far as `placement` and the login's cpuset decide it."""
    for each in real(seen):
        nodes, card = each.facts.get("numa_processors") or {}, each.facts.get("numa_node")
        if card is None or str(card) not in nodes or len(nodes) < 2:
            continue
        placements = dict.fromkeys(
            of_end(cell[PLACEMENT], stream.sender == each.name)
            for cell in seen.cells()
            if cell.engine == AGENT
            for stream in cell.streams
            if each.name in stream.ends
        )
        for placement in placements:
            yield from _placed(seen, each, placement, card, nodes)


def _placed(seen: Seen, each: NodeSeen, placement: str | None, card: int, nodes: dict[str, str]) -> Iterator[Finding]:
    """Yield what is wrong with one placement on a node whose card is on NUMA node `card`."""
    own = nodes[str(card)]
    if placement is None:
        where = processors(each.facts.get("allowed_processors"))
        text = "flows run"
        remedy = f"Let the login use processors {own}: look at its cpuset, taskset or the job's allocation."
    elif placement == PACKETS:
        is_moved = each.facts.get("rps") != "off" or _set_in_some(seen, each, "rps", "channels")
        where = None if is_moved else processors(each.facts.get("interrupt_processors"))
        text = f"placement packets runs flows where the interrupts of {each.interface} go,"
        remedy = (
            f"Move its interrupts to processors {own} (irqbalance, /proc/irq/*/smp_affinity_list); or placement: {NIC}"
        )
    else:
        where = None if placement == NIC else processors(placement)
        text = f"placement {placement} runs flows"
        remedy = f"placement: {NIC} runs them on the node of the card, processors {own}."
    near = processors(own) or frozenset()
    if where is None or where <= near:  # nodes that the firmware makes up, as a Raspberry Pi's, share processors
        return
    there = list(on_nodes(where, nodes))
    numbers = {"card_numa_node": card}
    if there and not where & near:
        level = Severity.WARNING if _is_fast(each) else Severity.NOTE
        text = f"{text} on NUMA node {_and(there)}, the card of {each.interface} is on node {card}."
        yield found(level, each, text, remedy, **numbers)
    elif len(there) > 1 and _is_fast(each):
        remedy = f"placement: {NIC} runs them on the node of the card, processors {own}."
        text = f"{text} on NUMA nodes {_and(there)}, the card of {each.interface} is on node {card}."
        yield note(each, text, remedy, **numbers)


def idle(seen: Seen) -> Iterator[Finding]:
    """Report idle states that take long to leave, where a test measures latency with processors that sleep."""
    cells = [cell for cell in seen.cells() if _sleeps(cell)]
    for each in real(seen):
        own = [cell for cell in cells if each.name in cell.nodes]
        latency_us, state = each.facts.get("idle_latency_us"), each.facts.get("idle_state")
        held_us = each.facts.get("dma_latency_us")
        if not own or latency_us is None or latency_us < DEEP_US or (held_us is not None and held_us < latency_us):
            continue
        unless = "" if held_us is not None else ", unless a process holds /dev/cpu_dma_latency (tuned does)"
        text = (
            f"idle processors enter {state or 'a state'}, which takes {latency_us} µs to leave{unless}: "
            "latencies have that time in them."
        )
        remedy = f"On the node, as root: cpupower idle-set -D {DEEP_US} (afterwards cpupower idle-set -E)"
        if all(cell.kind is PINGPONG for cell in own):
            remedy += "; or in the scenario: busy_poll: true"
        yield note(each, text, remedy, idle_latency_us=latency_us)


def _sleeps(cell: Cell) -> bool:
    return cell.latency_ms is not None or (cell.kind is PINGPONG and not cell[BUSY_POLL])


def _is_fast(each: NodeSeen) -> bool:
    """Tell whether the link has 10 Gbit/s or more: as negotiated, else as the rig file has it."""
    rate_bps: int | None = each.facts.get("speed_bps") or each.node.link.rate_bps
    return rate_bps is not None and rate_bps >= FAST_BPS


def _machine(each: NodeSeen) -> frozenset[int]:
    """Return all processors of the node; empty: not known."""
    lists = (each.facts.get("numa_processors") or {}).values()
    return frozenset[int]().union(*(processors(text) or () for text in lists))


def _set_in_all(seen: Seen, each: NodeSeen, *kinds: str) -> bool:
    """Tell whether the conditions of all tests of a node set something of these kinds."""
    held = [bool(seen.kinds_of(cell) & set(kinds)) for cell in seen.cells() if each.name in cell.nodes]
    return bool(held) and all(held)


def _set_in_some(seen: Seen, each: NodeSeen, *kinds: str) -> bool:
    return any(seen.kinds_of(cell) & set(kinds) for cell in seen.cells() if each.name in cell.nodes)


def _and(numbers: list[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last

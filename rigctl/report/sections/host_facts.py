"""Host facts for people: what is the same on all nodes once, what differs a row for each node."""

from collections.abc import Iterator
from typing import Final

from rigctl.analysis.nights.setup_changes import flattened
from rigctl.base.units import format_duration, format_rate
from rigctl.findings import Finding, Severity, Subject, Weight
from rigctl.model.contract import link_departures
from rigctl.records import RunInfo
from rigctl.report.blocks import Block, Column, Entry, Folded, Row, Section, Table
from rigctl.report.words.setup import FACT_TITLES, fact_text
from rigctl.report.words.text import UNKNOWN, listed, plural

MOST_NODES: Final = 24
"""A table of more nodes than this is folded."""
_HIDDEN: Final = frozenset({"boot_id", "mac", "addresses"})
"""Facts that identify a machine and say nothing of how it is set."""


def sections(info: RunInfo) -> Iterator[Section]:
    """Yield the section with the facts that all nodes share, and a table of those that differ."""
    flat = {
        node: {name: value for name, value in flattened(known) if name not in _HIDDEN}
        for node, known in info.facts.items()
    }
    names = list(dict.fromkeys(name for known in flat.values() for name in known))
    order = {name: number for number, name in enumerate(FACT_TITLES)}
    names.sort(key=lambda name: (order.get(name, len(order)), name if name not in order else ""))
    same: list[Row] = []
    differing: list[tuple[str, list[str]]] = []
    for name in names:
        values = [fact_text(name, known.get(name)) for known in flat.values()]
        title = FACT_TITLES.get(name, name)
        if len(set(values)) > 1:
            differing.append((title, values))
        elif values and values[0] != UNKNOWN:
            same.append(Row((Entry(title, title), Entry(values[0], values[0]))))
    blocks: list[Block] = []
    if differing:
        columns = (Column("Node", "", "requested", words=True), *(_words(title) for title, _ in differing))
        rows = [
            Row((Entry(node, node), *(Entry(values[number], values[number]) for _, values in differing)))
            for number, node in enumerate(flat)
        ]
        table = Table(columns, tuple(rows), label="What differs between nodes")
        few = len(rows) <= MOST_NODES
        blocks.append(table if few else Folded(f"What differs between {len(rows)} nodes", (table,)))
    if same:
        table = Table((_words("Fact"), _words("Value")), tuple(same), label="Facts of the rig")
        blocks.append(Folded(f"The same on all nodes: {plural(len(same), 'fact')}", (table,)))
    if blocks:
        yield Section("The rig", tuple(blocks))


def _words(title: str) -> Column:
    return Column(title, "", "derived", words=True)


def findings(info: RunInfo) -> Iterator[Finding]:
    """Yield what the rig is, and where its links differ from the rig file."""
    if info.plan.imported:
        text = (
            f"The results were imported from {info.plan.scenario_name}; rigctl did not measure them. Goodput is what "
            "the receiver counted, “–” if the files do not have it."
        )
        yield Finding(text, Weight.RIG)
    if info.plan.virtual == "namespaces":
        text = "The rig is virtual: network namespaces with shaped links on one machine."
        far = [f"{node} ({format_duration(link.rtt_s)})" for node, link in info.plan.links.items() if link.rtt_s]
        if far:
            text += f" A relay delays the frames of {listed(far)} for the round-trip time in the rig file."
        yield Finding(text, Weight.RIG)
    if info.plan.virtual == "machines":
        yield Finding(
            "The rig is virtual: QEMU machines on one machine, joined by a hub. No link is shaped.", Weight.RIG
        )
        if slow := [node for node, known in info.facts.items() if known.get("emulated")]:
            which = "all nodes" if len(slow) == len(info.facts) else listed(slow)
            text = f"The processors of {which} are emulated: the figures are emulation's, not those of such hardware."
            yield Finding(text, Weight.SUSPECT, Severity.WARNING)
    if info.plan.virtual == "loopback":
        yield Finding("The rig is the loopback interface of one machine: no link, no switch.", Weight.RIG)
        return
    for departure in link_departures(info.plan.links, info.facts):
        subject = Subject("link", (departure.where,))
        if departure.setting == "link speed":
            stated, found = format_rate(float(departure.requested)), format_rate(float(departure.effective))
            text = f"The link of {departure.where} runs at {found}; the rig file has {stated}."
        else:
            text = f"The MTU of {departure.where} is {departure.effective}; the rig file has {departure.requested}."
        yield Finding(text, Weight.SUSPECT, Severity.WARNING, subject)

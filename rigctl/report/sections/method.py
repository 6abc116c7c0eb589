"""Describes how a run was measured: rig, settings in effect, durations, start skew, and commands to repeat it."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final

from rigctl.analysis.nights.setup_changes import flatten_facts
from rigctl.analysis.run_view import RunView
from rigctl.base.resources import bundled_text
from rigctl.base.units import format_duration, format_rate
from rigctl.base.values import group_by, most
from rigctl.figures.effective import COUNTED_FIGURES
from rigctl.figures.streams import RETRANSMITS
from rigctl.findings import Finding, Subject, about_nodes, link, nodes
from rigctl.findings.text import MOST_NAMED, UNKNOWN, join_list, plural, some, span, time_text
from rigctl.model.bonds import bond_of_facts
from rigctl.model.contract import link_departures
from rigctl.records import RepetitionHead, RunInfo, RunPlan, Status, host_system, user_tags
from rigctl.remote.build import KERNELS
from rigctl.report.blocks import Block, Column, Entry, Folded, Paragraph, Row, Section, Table, Verbatim
from rigctl.report.setup import FACT_TITLES, fact_text
from rigctl.results.rows import ExportRow as Values
from rigctl.settings import ITERATIONS, SETTINGS
from rigctl.settings.kinds import PINGPONG, REQUESTS

_ANONYMOUS: Final = (
    "Nodes and switches have letters and numbers in place of their names; addresses and texts of the user are left out."
)


def sentences(info: RunInfo, repetitions: Sequence[RepetitionHead], own: Sequence[str]) -> list[str]:
    """Return the sentences of the section “Method”; `own` are sentences of the report parts."""
    anonymous = [_ANONYMOUS] if info.plan.anonymous else []
    return [_times(info), *own, *_quality(repetitions), *_software_texts(info), *anonymous]


def _times(info: RunInfo) -> str:
    durations = sorted({cell.duration_s for cell in info.plan.cells})
    omitted = sorted({cell.omit_s for cell in info.plan.cells})
    counted = f"{plural(len(info.plan.cells), 'test')}, {plural(info.plan.repeat, 'repetition')} each"
    if any(cell[ITERATIONS] is not None for cell in info.plan.cells) or not durations:
        return f"{counted}."
    each = span(format_duration(duration_s) for duration_s in (durations[0], durations[-1]))
    omit = f"; the first {format_duration(omitted[-1])} of each are omitted" if omitted[-1] > 0 else ""
    return f"{counted}, of {each}{omit}."


def _quality(repetitions: Sequence[RepetitionHead]) -> Iterator[str]:
    skews = [repetition.start_skew_us for repetition in repetitions if repetition.start_skew_us is not None]
    # Without a start skew, the program that measured the streams does not report when each began.
    by_start = group_by(repetitions, lambda own: own.window_start_ns is not None and own.start_skew_us is None)
    error_us, start_us = (most(own.clock_error_us for own in by_start.get(unknown, ())) for unknown in (False, True))
    if skews:
        yield f"Start skew between flows: {median(skews) / 1e3:.2f} ms (median), {max(skews) / 1e3:.2f} ms at most."
    if error_us is not None:
        yield f"Clock offsets between nodes are known within {error_us / 1e3:.2f} ms."
    if start_us is not None:
        yield f"Where the start skew is unknown, the start of each pair is known within {start_us / 1e3:.2f} ms."
    statuses = Counter(repetition.status for repetition in repetitions)
    invalid, failed = statuses[Status.INVALID], statuses[Status.FAILED]
    if invalid or failed:
        yield f"{invalid} invalid and {failed} failed repetitions are listed with the reason and not averaged."
    if strangers := sum(usage.strangers for repetition in repetitions for usage in repetition.nodes):
        yield f"{plural(strangers, 'connection')} without the test's token reached a data port and got no answer."


def _software_texts(info: RunInfo) -> Iterator[str]:
    unused = _agents_not_used(info)
    if versions := [f"{name} {value[:12]}" for name, value in info.versions.items() if name not in unused]:
        yield f"Measured with {', '.join(versions)}."


def _agents_not_used(info: RunInfo) -> set[str]:
    """Return which agents in `versions` are for machine types that no node has; empty if a type is unknown."""
    kernels = [str(facts.get("kernel") or "").split() for facts in info.facts.values()]
    used = {KERNELS.get(f"{words[0]} {words[-1]}") if words else None for words in kernels}
    return set() if None in used or not used else {f"agent {each} sha256" for each in {*KERNELS.values()} - used}


def reproduce(plan: RunPlan, run: str) -> Section:
    """Return the section with the commands that measure the run again and export its data."""
    data = (Paragraph("Export data, a row per test, repetition and pair:", small=True), Verbatim(export_command(run)))
    if plan.imported or plan.anonymous:
        return Section("Data", data)
    files = "" if _is_bundled(plan) else f" {_file(plan)} is below, under “Scenario and rig file”."
    again = (Paragraph(f"Measure the same again:{files}", small=True), Verbatim(rerun_command(plan)))
    return Section("Reproduce", (*again, *data))


def rerun_command(plan: RunPlan) -> str:
    """Return the command that measures a plan again: `rigctl run gigablox --duration 60s`, quoted for a shell."""
    words = ["rigctl", "run", plan.scenario_name if _is_bundled(plan) else _file(plan)]
    for given in plan.overrides:
        words += filter(None, given.split(" ", 1))
    return shlex.join(words)


def export_command(run: str) -> str:
    return f"rigctl export {run} --format csv --level pairs -o {run}.csv"


def _file(plan: RunPlan) -> str:
    return f"{plan.scenario_name}.yaml"


def _is_bundled(plan: RunPlan) -> bool:
    return bundled_text(plan.scenario_name) == plan.scenario_yaml


_MOST_NODES: Final = 24
_TIMED: Final = (PINGPONG, REQUESTS)  # kinds of tests that measure times
"""A table with more nodes than this is folded."""
_HIDDEN: Final = frozenset({"boot_id", "mac", "addresses"})
"""Facts that identify a machine and say nothing about its configuration."""


def rig_sections(info: RunInfo) -> Iterator[Section]:
    """Yield the section on the rig: a table of facts that differ between nodes, and one of shared facts."""
    flat = {
        node: {name: value for name, value in flatten_facts(known) if name not in _HIDDEN}
        for node, known in info.facts.items()
    }
    names = dict.fromkeys(name for known in flat.values() for name in known)
    ordered = [*(name for name in FACT_TITLES if name in names), *sorted(names.keys() - FACT_TITLES.keys())]
    same: list[Row] = []
    differing: list[tuple[str, list[str]]] = []
    for name in ordered:
        values = [fact_text(name, known.get(name)) for known in flat.values()]
        title = FACT_TITLES.get(name, name)
        if len(set(values)) > 1:
            differing.append((title, values))
        elif values[0] != UNKNOWN:
            same.append(_fact_row(title, values[0]))
    blocks: list[Block] = []
    if differing:
        columns = (Column("Node", "", "requested", words=True), *(_fact_column(title) for title, _ in differing))
        by_node = zip(flat, *(values for _, values in differing), strict=True)
        table = Table(columns, tuple(_fact_row(*texts) for texts in by_node), label="What differs between nodes")
        few = len(flat) <= _MOST_NODES
        blocks.append(table if few else Folded(f"What differs between {len(flat)} nodes", (table,)))
    if same:
        table = Table((_fact_column("Fact"), _fact_column("Value")), tuple(same), label="Facts of the rig")
        blocks.append(Folded(f"The same on all nodes: {plural(len(same), 'fact')}", (table,)))
    if blocks:
        yield Section("The rig", tuple(blocks))


def _fact_row(*texts: str) -> Row:
    return Row(tuple(Entry(text, text) for text in texts))


def _fact_column(title: str) -> Column:
    return Column(title, "", "derived", words=True)


def rig_findings(info: RunInfo) -> Iterator[Finding]:
    """Yield findings on the kind of rig, and on links that differ from the rig file."""
    if info.plan.imported:
        yield nodes.IMPORTED.say(scenario=info.plan.scenario_name)
        if info.plan.notes:
            yield nodes.IMPORT_NOTES.say(notes=info.plan.notes.replace("\n", " "))
    if info.plan.virtual == "loopback":
        yield nodes.LOOPBACK.say()
        return
    if info.plan.virtual == "namespaces":
        far = [f"{node} ({format_duration(link.rtt_s)})" for node, link in info.plan.links.items() if link.rtt_s]
        yield (nodes.NAMESPACES_FAR if far else nodes.NAMESPACES).say(far=join_list(far))
    elif info.plan.virtual is not None:
        yield nodes.MACHINES.say()
    emulated = [node for node, known in info.facts.items() if known.get("emulated")]
    if emulated and info.plan.virtual == "machines":
        yield nodes.EMULATED.say(nodes="all nodes" if len(emulated) == len(info.facts) else join_list(emulated))
    for departure in link_departures(info.plan.links, info.facts):
        subject = Subject("link", (departure.where,))
        if departure.setting == "link speed":
            stated, found = format_rate(float(departure.requested)), format_rate(float(departure.effective))
            yield link.LINK_NOT_AS_STATED.say(subject, node=departure.where, found=found, stated=stated)
        else:
            words = {"found": departure.effective, "stated": departure.requested}
            yield link.MTU_NOT_AS_STATED.say(subject, node=departure.where, **words)
    yield from _bond_findings(info)


def link_sleep(view: RunView) -> Iterator[Finding]:
    """Yield a finding on links that sleep when idle (EEE), if their nodes' tests measure latency or lost datagrams."""
    cells = [cell for cell in view.plan.cells if "eee" not in {own.kind for own in view.plan.settings_of(cell)}]
    latency = {name for cell in cells if cell.latency_ms is not None or cell.kind in _TIMED for name in cell.nodes}
    asleep = {cell.number for cell in cells}
    lossy = [row for row in view.results.pairs if row["datagrams_lost"] and row["cell"] in asleep]
    losing = {row[end] for row in lossy for end in ("source", "destination")}
    active = [name for name, facts in view.info.facts.items() if facts.get("eee") == "active"]
    if names := [name for name in active if name in latency | losing]:
        lost = "; it may also be why datagrams were lost" if losing.intersection(names) else ""
        yield link.EEE_USED.say(about_nodes(names), nodes=some(names), lost=lost)


def _bond_findings(info: RunInfo) -> Iterator[Finding]:
    """Yield what the ceilings assume of bonds through which one flow gets less than several."""
    bonds = {node: bond for node, facts in info.facts.items() if (bond := bond_of_facts(facts)) is not None}
    for bond, own in group_by(bonds, bonds.__getitem__).items():
        if bond.card_bps is not None and not bond.is_plain:
            most = format_rate(bond.bound_bps(bond.cards, sends=True) or bond.card_bps)
            words = {"nodes": join_list(own), "bond": bond.name, "card": format_rate(bond.card_bps), "most": most}
            yield link.BOND_CEILING.say(about_nodes(own), {"cards": bond.cards}, **words)


def experimental_findings(view: RunView) -> Iterator[Finding]:
    """Yield that nodes with FreeBSD and Windows are experimental, and whose retransmits are computed from bytes."""
    for system, own in group_by(view.info.facts, lambda node: host_system(view.info.facts[node])).items():
        if system not in nodes.EXPERIMENTAL:
            continue
        counted = [node for node in own if node in _nodes_with_retransmits(view)] if system == "Windows" else []
        text = f" Retransmits of {join_list(counted)} are bytes sent again ÷ MSS, rounded up." if counted else ""
        yield nodes.EXPERIMENTAL[system].say(about_nodes(own), nodes=join_list(own), retransmits=text)


def _nodes_with_retransmits(view: RunView) -> set[str]:
    streams = (
        (stream, one.figure(stream, RETRANSMITS.name)) for one in view.stored.each for stream in one.cell.streams
    )
    return {stream.sender for stream, retransmits in streams if retransmits is not None}


_FIRMWARE: Final = "firmware"
"""Tag with the firmware of the tested device; without the tag, a real rig's firmware is unknown."""


def settings(view: RunView, pairs: Sequence[Values]) -> tuple[tuple[str, str], ...]:
    """Return names and values of the settings in effect; `pairs` are the export rows of level `pairs`."""
    rows = [row for row in pairs if row["counted"]]
    return (*_of_flows(rows), *_links(view, rows), *_tags(view))


def _of_flows(rows: Sequence[Values]) -> Iterator[tuple[str, str]]:
    tcp = [row for row in rows if row["transport"] == "tcp"]
    if tcp:
        yield "Congestion control", _names(row["congestion"] for row in tcp)
    for name, figure in COUNTED_FIGURES.items():
        if asking := [row for row in rows if row[name] is not None]:
            yield f"Effective {SETTINGS[name].noun or name}", _names(row[figure.name] for row in asking)
    idle, loaded, least = (
        [row[name] for row in rows if row[name] is not None]
        for name in ("latency_idle_p50_us", "latency_loaded_p50_us", "rtt_min_us")
    )
    if idle:
        yield "Idle round trip", time_text(median(idle))
        yield "Loaded round trip", time_text(median(loaded)) if loaded else UNKNOWN
    elif rows:
        yield "Least round trip", span(time_text(end(least)) for end in (min, max) if least) or UNKNOWN


def _links(view: RunView, rows: Sequence[Values]) -> Iterator[tuple[str, str]]:
    if view.plan.virtual == "loopback":
        return
    facts = {node: view.info.facts.get(node) or {} for node in view.plan.links}
    rates = [link.rate_bps or facts[node].get("speed_bps") for node, link in view.plan.links.items()]
    if rates:
        yield "Links", _names(None if rate is None else format_rate(float(rate)) for rate in rates)
    if known := [row["mtu"] for row in rows if row["mtu"] is not None]:
        yield "Path MTU", _names(known)
    elif rates:
        # Kernels report no path MTU for datagrams, so the interfaces' MTU is used unless a condition changed it.
        changed = any(condition.mtu is not None for condition in view.plan.conditions)
        yield "MTU", _names(None if changed else own.get("mtu") for own in facts.values())


def _tags(view: RunView) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the user's tags, and `firmware` as unknown if a real rig lacks this tag."""
    tags = user_tags(view.info.tags)
    if _FIRMWARE not in tags and view.plan.virtual is None:
        yield _FIRMWARE, UNKNOWN
    yield from ((name, value) for name, value in tags.items() if value)
    if bare := [name for name, value in tags.items() if not value]:
        yield "Tags", ", ".join(bare)


def _names(found: Iterable[object]) -> str:
    """Return the distinct values: `bbr, cubic` or `1500, 9000, 1400 and 2 more`; `–` if none is known."""
    names = list(dict.fromkeys(UNKNOWN if name is None else str(name) for name in found)) or [UNKNOWN]
    return some(names, MOST_NAMED, last=", ")

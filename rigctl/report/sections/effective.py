"""Findings on settings that are in effect otherwise than requested: marks that arrived, subflows, processors."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from rigctl.analysis.limits.hosts import sysctl_value
from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.rows.flows import COUNTED
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.classes import CountedValues, counted_values
from rigctl.findings import Finding, Severity, Subject, Weight, tests
from rigctl.records import Cell, Flow, Repetition, Side
from rigctl.report.blocks import Part
from rigctl.report.words.text import MOST_NAMED, listed, numbers_text, plural, some
from rigctl.settings import MPTCP, PLACEMENT, Subflows
from rigctl.settings.placement import NIC, of_end
from rigctl.settings.sockets import MPTCP_ENABLED


def part(view: RunView) -> Part | None:
    """Return the findings on settings that are in effect otherwise than requested; None if there are none."""
    placement, mptcp = (_numa_nodes_differ, _shared_processors), (_fallen, _alone, _failed)
    findings = tuple(finding for each in (*placement, *mptcp, _arrived_otherwise) for finding in each(view))
    return Part(findings=findings) if findings else None


def _arrived_otherwise(view: RunView) -> Iterator[Finding]:
    """Yield one finding for each requested value and what was seen instead, with the counts of all its pairs."""
    otherwise = [each for each in counted_values(view) if each.others]
    alike = grouped(otherwise, lambda each: (each.setting, each.asked, tuple(sorted(each.others)), each.units))
    for own in alike.values():
        yield _finding(own)


def _pair(each: CountedValues) -> str:
    packets = sum(each.values.values())
    return f"{each.sender} → {each.receiver} ({packets - each.values.get(each.asked, 0):,} of {packets:,})"


def _finding(own: Sequence[CountedValues]) -> Finding:
    first, counted = own[0], COUNTED[own[0].setting]
    totals = {value: sum(each.values.get(value, 0) for each in own) for value in (*first.others, first.asked)}
    packets = sum(totals.values())
    pairs = some([_pair(each) for each in own], MOST_NAMED)
    first_value, *others = [value for value, count in totals.items() if count]
    counts = [f"{totals[first_value]:,} arrived as {first_value}", *(f"{totals[each]:,} as {each}" for each in others)]
    text = (
        f"{first.asked} arrived as {listed(first.others)} on {pairs}: {counted.cause}. "
        f"Of {packets:,} {first.units} {listed(counts)}."
    )
    numbers = {"packets": packets, counted.share: 100 * totals[first.asked] / packets}
    subject = tests(sorted({number for each in own for number in each.tests}))
    return Finding(text, Weight.GRANTED, Severity.WARNING, subject, numbers, counted.remedy)


MANY_TIMEOUTS: Final = 3
"""Timeouts in a row, at least 1.4 s, after which a subflow is told to have failed; as the agent has it of a flow."""

_Key = TypeVar("_Key")


def _flows(view: RunView) -> Iterator[tuple[Cell, Flow]]:
    cells = {cell.number: cell for cell in view.plan.cells}
    asking = [(cells[each.cell], each) for each in view.repetitions if cells[each.cell][MPTCP]]
    return ((cell, flow) for cell, repetition in asking for flow in repetition.flows)


def _by(view: RunView, key: Callable[[Cell, Flow], _Key | None]) -> dict[_Key, tuple[list[str], list[int]]]:
    """Return the pairs and the tests by a key, without flows that have none."""
    found: dict[_Key, tuple[dict[str, None], set[int]]] = defaultdict(lambda: ({}, set()))
    for cell, flow in _flows(view):
        if (own := key(cell, flow)) is not None:
            found[own][0][str(flow.stream)] = None
            found[own][1].add(cell.number)
    return {own: ([*pairs], sorted(numbers)) for own, (pairs, numbers) in found.items()}


def _fallen(view: RunView) -> Iterator[Finding]:
    """Yield which connections fell back, with the kernels that have Multipath TCP switched off."""

    def ends(cell: Cell, flow: Flow) -> tuple[tuple[str, str, str | None], ...] | None:
        if not flow.fell_back:
            return None
        named = zip(("sender", "receiver"), flow.stream.ends, strict=True)
        return tuple((end, node, sysctl_value(view.info, cell, node, MPTCP_ENABLED)) for end, node in named)

    for known, (pairs, own) in _by(view, ends).items():
        off = [(end, node) for end, node, value in known if value == "0"]
        untold = [node for _, node, value in known if value is None]
        remedy = None
        if off:
            whose = " and ".join(f"the {end}'s kernel ({node})" for end, node in off)
            cause = f"{whose} {'has' if len(off) == 1 else 'have'} {MPTCP_ENABLED} = 0"
            remedy = f"On {listed([node for _, node in off])}, as root: sysctl -w {MPTCP_ENABLED}=1"
        elif untold:
            cause = f"the cause is unknown, as {MPTCP_ENABLED} of {listed(untold)} is"
        else:
            cause = (
                f"both kernels have {MPTCP_ENABLED} = 1, so a device on the path may have removed TCP's option, or a "
                "kernel had another reason"
            )
            remedy = "On both nodes: nstat -asz 'MPTcpExt*' counts fallbacks by their reason."
        text = f"{some(pairs, MOST_NAMED)} fell back to TCP: {cause}; {numbers_text(own)}."
        numbers = {f"enabled_{end}": value for end, _, value in known}
        yield Finding(text, Weight.GRANTED, Severity.WARNING, Subject("pair", tuple(pairs)), numbers, remedy)


def _alone(view: RunView) -> Iterator[Finding]:
    def alone(_: Cell, flow: Flow) -> bool | None:
        subflows = flow.receiver.subflows if flow.receiver is not None else None
        if flow.fell_back or not subflows or subflows.used != 1:
            return None
        sent = flow.sender.subflows if flow.sender is not None else None
        return len(subflows) > 1 or len(sent or ()) > 1

    for several, (pairs, own) in _by(view, alone).items():
        why = "the others carried nothing" if several else "there is no second address or `ip mptcp` endpoint"
        text = f"{some(pairs, MOST_NAMED)} used one subflow of MPTCP: {why}; {numbers_text(own)}."
        remedy = (
            "Check that the others reach their address, and that their endpoint is no `backup`: ip mptcp endpoint."
            if several
            else "On the sender, as root: ip mptcp endpoint add ADDRESS dev INTERFACE subflow; see ip mptcp limits."
        )
        yield Finding(text, Weight.GRANTED, Severity.NOTE, Subject("pair", tuple(pairs)), {"subflows": 1}, remedy)


def _failed(view: RunView) -> Iterator[Finding]:
    """Yield each subflow whose segments were not acknowledged any more, or that ended before its test."""
    for cell, flow in _flows(view):
        sent = flow.sender.subflows if flow.sender is not None else None
        for source, destination, acknowledged, timeouts in sent or ():
            if timeouts is not None and timeouts < MANY_TIMEOUTS:
                continue
            got = flow.receiver.subflows if flow.receiver is not None else None
            here = _bytes(got, source, destination)
            came = acknowledged if here is None else here
            others = sum(each[2] for each in got or sent or ()) - came
            how = "ended before the test did" if timeouts is None else f"had {plural(timeouts, 'timeout')} in a row"
            text = (
                f"{flow.stream}: the subflow {source} → {destination} {how}: {came:,} bytes came over it, {others:,} "
                f"over the others; test {cell.number}."
            )
            remedy = "Check the link, and that the address stays with its interface."
            numbers = {"timeouts": timeouts, "bytes": came, "bytes_of_others": others}
            yield Finding(text, Weight.LOSS, Severity.WARNING, Subject("pair", (str(flow.stream),)), numbers, remedy)


def _bytes(subflows: Subflows | None, source: str, destination: str) -> int | None:
    found = [count for one, other, count, _ in subflows or () if (one, other) == (source, destination)]
    return sum(found) if found else None


MAINLY: Final = 0.5
"""A thread ran on a processor if it did in more than this share of its samples."""
_ENDS: Final = ((True, "sender"), (False, "receiver"))
_FEW: Final = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def _sides(view: RunView) -> Iterator[tuple[Repetition, str, Side, str]]:
    """Yield the ends of flows for which their place matters: repetition, node, side, and the end's name."""
    cells = {cell.number: cell for cell in view.plan.cells}
    limits = {(row["cell"], row["repetition"]): row["limit"] for row in view.frames.derived.cells}
    for repetition in view.repetitions:
        cell, limit = cells[repetition.cell], limits.get((repetition.cell, repetition.repetition))
        for flow in repetition.flows:
            for sends, end in _ENDS:
                side = flow.sender if sends else flow.receiver
                if side is not None and (_asked(cell, sends) or limit == end):
                    yield repetition, flow.stream.sender if sends else flow.stream.receiver, side, end


def _asked(cell: Cell, sends: bool) -> bool:
    return of_end(cell[PLACEMENT], sends) is not None


def _numa_nodes_differ(view: RunView) -> Iterator[Finding]:
    found: dict[tuple[str, str, int, int], set[int]] = defaultdict(set)
    for repetition, node, side, end in _sides(view):
        if side.numa.node is not None and side.numa.card is not None and side.numa.node != side.numa.card:
            found[node, end, side.numa.node, side.numa.card].add(repetition.cell)
    for (node, end, own, card), in_tests in found.items():
        text = (
            f"{end.capitalize()} and card of {node} are on different NUMA nodes, {own} and {card}: "
            f"{numbers_text(sorted(in_tests))}."
        )
        remedy = f"placement: {{{end}: {NIC}}} runs the {end} on the node of its card."
        numbers = {"numa_node": own, "card_numa_node": card}
        yield Finding(text, Weight.GRANTED, Severity.WARNING, Subject("node", (node,)), numbers, remedy)


def _shared_processors(view: RunView) -> Iterator[Finding]:
    """Yield the processors on which several flows ran, with the most flows in one repetition."""
    flows = Counter[tuple[str, int, int, int]]()
    for repetition, node, side, _ in _sides(view):
        if (processor := _mainly(side)) is not None:
            flows[node, processor, repetition.cell, repetition.repetition] += 1
    found: dict[tuple[str, int, int], set[int]] = defaultdict(set)
    for (node, processor, cell, _), count in flows.items():
        if count > 1:
            found[node, processor, count].add(cell)
    for (node, processor, count), in_tests in found.items():
        many = _FEW[count] if count < len(_FEW) else str(count)
        text = f"{many} flows share processor {processor} of {node}: {numbers_text(sorted(in_tests))}."
        remedy = "Give placement as many processors as there are flows, or leave it to the scheduler."
        numbers = {"processor": processor, "flows": count}
        yield Finding(text, Weight.GRANTED, Severity.NOTE, Subject("node", (node,)), numbers, remedy)


def _mainly(side: Side) -> int | None:
    counts = side.counts(PLACEMENT) or ()
    whole = sum(count for _, count in counts)
    return next((processor for processor, count in counts if count > MAINLY * whole), None)

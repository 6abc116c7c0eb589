"""Report part on effective values that differ from the requested ones: host settings, processors, MPTCP, DSCP marks.

Processors of a sender or receiver are reported if their placement was requested or if they limited the test.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.classes import CountedValues, count_values
from rigctl.base.values import group_by
from rigctl.figures.effective import COUNTED
from rigctl.findings import Finding, about_nodes, about_pairs, connections, path
from rigctl.findings import nodes as hosts
from rigctl.findings import tests as tests_of
from rigctl.findings.text import join_list, numbers_text, plural, some
from rigctl.limits.hosts import sysctl_value
from rigctl.limits.limit import LIMITS
from rigctl.records import Cell, Flow, Repetition, RepetitionHead, Side
from rigctl.report.blocks import Part
from rigctl.settings import MPTCP, PLACEMENT, Subflows
from rigctl.settings.placement import of_end
from rigctl.settings.sockets import MPTCP_ENABLED

_MAINLY: Final = 0.5
"""A thread's main processor has more than this share of the thread's samples."""
_MANY_TIMEOUTS: Final = 3
"""A subflow counts as failed after this number of timeouts in a row (at least 1.4 s), as in the agent."""
_CONDITION: Final = "condition "
_GRANTED: Final = re.compile(r".* -> (?P<value>.*) \((?P<asked>.*) was asked for\)", re.DOTALL)
"""Matches a text made by `hosts.setting.setting_text`."""
_FEW: Final = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
_Key = TypeVar("_Key")


def part(view: RunView) -> Part | None:
    """Return the report part on settings that did not take effect as requested, or None if all did."""
    findings = (
        *_rounding_findings(view),
        *_numa_nodes_differ(view),
        *_processor_findings(view),
        *_fell_back(view),
        *_single_subflow(view),
        *_subflow_findings(view),
        *_mark_findings(view),
    )
    return Part(findings=findings) if findings else None


def _sides(view: RunView) -> Iterator[tuple[Repetition, str, Side, str]]:
    """Yield repetition, node, measurements and role (`sender`) of each end of a flow whose processor is reported."""
    cells = {cell.number: cell for cell in view.plan.cells}
    limits = {(row["cell"], row["repetition"]): row["limit"] for row in view.results.cells}

    def ends_of(repetition: RepetitionHead) -> list[str]:
        placement = cells[repetition.cell][PLACEMENT]
        limit = limits.get((repetition.cell, repetition.repetition))
        slow_end = None if limit is None else LIMITS[limit].end
        return [
            end for end in ("sender", "receiver") if slow_end == end or of_end(placement, end == "sender") is not None
        ]

    for repetition in view.stored.whole([one for one in view.repetitions if ends_of(one)]):
        for flow in repetition.flows:
            for end in ends_of(repetition):
                side: Side | None = getattr(flow, end)
                if side is not None:
                    yield repetition, getattr(flow.stream, end), side, end


def _rounding_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding for each host setting for which a card or kernel granted another value, with all its nodes."""
    nodes: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for node, facts in view.info.facts.items():
        for fact, granted in facts.items():
            for label, text in granted.items() if fact.startswith(_CONDITION) and isinstance(granted, Mapping) else ():
                if (other := _GRANTED.fullmatch(str(text))) is not None:
                    nodes[fact.removeprefix(_CONDITION), label, other["asked"], other["value"]].append(node)
    for (condition, label, asked, value), names in nodes.items():
        words = {"condition": condition, "label": label, "asked": asked, "value": value, "nodes": some(sorted(names))}
        yield hosts.CONDITION_NOT_GRANTED.say(about_nodes(sorted(names)), **words)


def _numa_nodes_differ(view: RunView) -> Iterator[Finding]:
    found: dict[tuple[str, str, int, int], set[int]] = defaultdict(set)
    for repetition, node, side, end in _sides(view):
        if side.numa.node is not None and side.numa.card is not None and side.numa.node != side.numa.card:
            found[node, end, side.numa.node, side.numa.card].add(repetition.cell)
    for (node, end, own, card), tests in found.items():
        words = {"end": end.capitalize(), "role": end, "node": node, "tests": numbers_text(sorted(tests))}
        yield hosts.NUMA_DIFFERS.say(about_nodes([node]), {"numa_node": own, "card_numa_node": card}, **words)


def _processor_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding for each processor on which several flows of one repetition ran most of the time."""
    flows = Counter[tuple[str, int, int, int]]()
    for repetition, node, side, _ in _sides(view):
        counts = side.counts(PLACEMENT) or ()
        whole = sum(count for _, count in counts)
        main = next((processor for processor, count in counts if count > _MAINLY * whole), None)
        if main is not None:
            flows[node, main, repetition.cell, repetition.repetition] += 1
    found: dict[tuple[str, int, int], set[int]] = defaultdict(set)
    for (node, processor, cell, _), count in flows.items():
        if count > 1:
            found[node, processor, count].add(cell)
    for (node, processor, count), tests in found.items():
        many = _FEW[count] if count < len(_FEW) else str(count)
        words = {"many": many, "node": node, "tests": numbers_text(sorted(tests))}
        yield hosts.SHARED.say(about_nodes([node]), {"processor": processor, "flows": count}, **words)


def _mptcp_flows(view: RunView) -> Iterator[tuple[Cell, Flow]]:
    cells = {cell.number: cell for cell in view.plan.cells if cell[MPTCP]}
    asking = view.stored.whole([each for each in view.repetitions if each.cell in cells])
    return ((cells[repetition.cell], flow) for repetition in asking for flow in repetition.flows)


def _pairs_by(view: RunView, key: Callable[[Cell, Flow], _Key | None]) -> Iterator[tuple[_Key, list[str], list[int]]]:
    """Group the MPTCP flows by `key`; omit flows whose key is None. Yield each key with its pairs and tests."""
    keyed = ((key(cell, flow), str(flow.stream), cell.number) for cell, flow in _mptcp_flows(view))
    for own, flows in group_by(keyed, lambda flow: flow[0]).items():
        if own is not None:
            yield own, list(dict.fromkeys(pair for _, pair, _ in flows)), sorted({number for *_, number in flows})


def _fell_back(view: RunView) -> Iterator[Finding]:
    """Yield findings on connections that fell back to TCP, with the nodes whose kernel has MPTCP disabled."""

    def ends(cell: Cell, flow: Flow) -> tuple[tuple[str, str, str | None], ...] | None:
        if not flow.fell_back:
            return None
        named = zip(("sender", "receiver"), flow.stream.ends, strict=True)
        return tuple((end, node, sysctl_value(view.info, cell, node, MPTCP_ENABLED)) for end, node in named)

    for known, pairs, tests in _pairs_by(view, ends):
        off = [(end, node) for end, node, value in known if value == "0"]
        unreported = [node for _, node, value in known if value is None]
        remedy = None
        if off:
            whose = " and ".join(f"the {end}'s kernel ({node})" for end, node in off)
            cause = f"{whose} {'has' if len(off) == 1 else 'have'} {MPTCP_ENABLED} = 0"
            remedy = f"On {join_list([node for _, node in off])}, as root: sysctl -w {MPTCP_ENABLED}=1"
        elif unreported:
            cause = f"the cause is unknown: {MPTCP_ENABLED} of {join_list(unreported)} could not be read"
        else:
            cause = (
                f"both kernels have {MPTCP_ENABLED} = 1, so a device on the path may have removed TCP's option, or a "
                "kernel had another reason"
            )
            remedy = "On both nodes: nstat -asz 'MPTcpExt*' counts fallbacks by their reason."
        words = {"pairs": some(pairs), "cause": cause, "tests": numbers_text(tests), "remedy": remedy}
        numbers = {f"enabled_{end}": value for end, _, value in known}
        yield connections.FELL_BACK.advising(remedy is not None).say(about_pairs(pairs), numbers, **words)


def _single_subflow(view: RunView) -> Iterator[Finding]:
    """Yield findings on MPTCP connections that used only one subflow, and whether they had opened others."""

    def has_others(_: Cell, flow: Flow) -> bool | None:
        subflows = flow.receiver.subflows if flow.receiver is not None else None
        if flow.fell_back or not subflows or subflows.used != 1:
            return None
        sent = flow.sender.subflows if flow.sender is not None else None
        return len(subflows) > 1 or len(sent or ()) > 1

    for several, pairs, tests in _pairs_by(view, has_others):
        sentence = connections.SUBFLOWS_UNUSED if several else connections.NO_OTHER_SUBFLOW
        yield sentence.say(about_pairs(pairs), {"subflows": 1}, pairs=some(pairs), tests=numbers_text(tests))


def _subflow_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding for each MPTCP subflow that was no longer acknowledged or that ended before its test."""
    for cell, flow in _mptcp_flows(view):
        sent = flow.sender.subflows if flow.sender is not None else None
        received = flow.receiver.subflows if flow.receiver is not None else None
        for source, destination, acknowledged, timeouts in sent or ():
            if timeouts is not None and timeouts < _MANY_TIMEOUTS:
                continue
            counted = _bytes(received, source, destination)
            came = acknowledged if counted is None else counted
            others = sum(each[2] for each in received or sent or ()) - came
            how = "ended before the test did" if timeouts is None else f"had {plural(timeouts, 'timeout')} in a row"
            words = {"pair": flow.stream, "source": source, "destination": destination, "test": cell.number, "how": how}
            numbers = {"timeouts": timeouts, "bytes": came, "bytes_of_others": others}
            yield connections.SUBFLOW_FAILED.say(about_pairs([flow.stream]), numbers, **words)


def _bytes(subflows: Subflows | None, source: str, destination: str) -> int | None:
    found = [count for one, other, count, _ in subflows or () if (one, other) == (source, destination)]
    return sum(found) if found else None


def _mark_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding for each requested value, such as a DSCP mark, that packets did not have on arrival."""
    otherwise = [each for each in count_values(view) if each.others]
    alike = group_by(otherwise, lambda each: (each.setting, each.asked, tuple(sorted(each.others)), each.units))
    return map(_mark_finding, alike.values())


def _mark_finding(own: Sequence[CountedValues]) -> Finding:
    first, counted = own[0], COUNTED[own[0].setting]
    totals = {value: sum(each.values.get(value, 0) for each in own) for value in (*first.others, first.asked)}
    packets = sum(totals.values())
    first_value, *others = [value for value, count in totals.items() if count]
    counts = [f"{totals[first_value]:,} arrived as {first_value}", *(f"{totals[each]:,} as {each}" for each in others)]
    words = {"asked": first.asked, "others": join_list(first.others), "pairs": some([_pair_text(each) for each in own])}
    words |= {"cause": counted.cause, "units": first.units, "counts": join_list(counts), "remedy": counted.remedy}
    numbers = {"packets": packets, counted.share: 100 * totals[first.asked] / packets}
    subject = tests_of(sorted({number for each in own for number in each.tests}))
    return path.VALUE_CHANGED.advising(counted.remedy is not None).say(subject, numbers, **words)


def _pair_text(each: CountedValues) -> str:
    packets = sum(each.values.values())
    return f"{each.sender} → {each.receiver} ({packets - each.values.get(each.asked, 0):,} of {packets:,})"

"""Findings on Multipath TCP: connections that fell back to TCP, that used one subflow, and subflows that failed."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from rigctl.analysis.limits.window_cause import sysctl_value
from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Severity, Subject, Weight
from rigctl.records import Cell, Flow
from rigctl.report.blocks import Part
from rigctl.report.words.text import MOST_NAMED, listed, numbers_text, plural, some
from rigctl.settings import MPTCP, Subflows
from rigctl.settings.sockets import MPTCP_ENABLED

MANY_TIMEOUTS: Final = 3
"""Timeouts in a row, at least 1.4 s, after which a subflow is told to have failed; as the agent has it of a flow."""

_Key = TypeVar("_Key")


def part(view: RunView) -> Part | None:
    """Return the findings on tests that request Multipath TCP; None if there are none."""
    findings = (*_fallen(view), *_alone(view), *_failed(view))
    return Part(findings=findings) if findings else None


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
    return {own: ([*pairs], sorted(tests)) for own, (pairs, tests) in found.items()}


def _fallen(view: RunView) -> Iterator[Finding]:
    """Yield which connections fell back, with the kernels that have Multipath TCP switched off."""

    def ends(cell: Cell, flow: Flow) -> tuple[tuple[str, str, str | None], ...] | None:
        if not flow.fell_back:
            return None
        named = zip(("sender", "receiver"), flow.stream.ends, strict=True)
        return tuple((end, node, sysctl_value(view.info, cell, node, MPTCP_ENABLED)) for end, node in named)

    for known, (pairs, tests) in _by(view, ends).items():
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
        text = f"{some(pairs, MOST_NAMED)} fell back to TCP: {cause}; {numbers_text(tests)}."
        numbers = {f"enabled_{end}": value for end, _, value in known}
        yield Finding(text, Weight.GRANTED, Severity.WARNING, Subject("pair", tuple(pairs)), numbers, remedy)


def _alone(view: RunView) -> Iterator[Finding]:
    def alone(_: Cell, flow: Flow) -> bool | None:
        subflows = flow.receiver.subflows if flow.receiver is not None else None
        if flow.fell_back or not subflows or subflows.used != 1:
            return None
        sent = flow.sender.subflows if flow.sender is not None else None
        return len(subflows) > 1 or len(sent or ()) > 1

    for several, (pairs, tests) in _by(view, alone).items():
        why = "the others carried nothing" if several else "there is no second address or `ip mptcp` endpoint"
        text = f"{some(pairs, MOST_NAMED)} used one subflow of MPTCP: {why}; {numbers_text(tests)}."
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

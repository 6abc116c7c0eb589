"""What limits a test, in a sentence, where it is no window, processor or loss; and what would lift it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rigctl.analysis.summary import CellSummary
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.report.words.text import numbers_text, rate_text

_WARNED: Final = ("path", "other-traffic", "sender", "receiver", "disk", "mtu")


def limit_text(cell: CellSummary) -> str:
    """Of one test; empty where no rule of this file's named its limit."""
    named = _named(cell)
    return f"Limited by {named[0]}: {named[1]}." if named else ""


def limit_findings(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """One for each limit and rule: its tests, and the numbers of the first."""
    groups: dict[tuple[str, str], list[CellSummary]] = {}
    for cell in cells:
        if _named(cell) is not None:
            groups.setdefault((cell.verdict.limit, cell.verdict.rule), []).append(cell)
    for own in groups.values():
        named = _named(own[0])
        if named is None:
            continue
        what, why = named
        numbers = [cell.cell.number for cell in own]
        which = numbers_text(numbers) if len(own) == 1 else f"{numbers_text(numbers)}, of which test {numbers[0]}"
        level = Severity.WARNING if own[0].verdict.limit in _WARNED else Severity.NOTE
        text = f"Limited by {what}: {which}; {why}."
        yield Finding(text, Weight.BOTTLENECK, level, tests(numbers), dict(own[0].verdict.numbers), _remedy(own[0]))


def _named(cell: CellSummary) -> tuple[str, str] | None:
    """What limits, and the evidence."""
    if cell.verdict.rule == "quota":
        return f"the {cell.limit}", _quota(cell)
    if cell.verdict.cause == "clamp":
        return "the MSS", _clamp(cell)
    return (_WHAT[cell.limit], _WHY[cell.limit](cell)) if cell.limit in _WHAT else None


def _path(cell: CellSummary) -> str:
    seen, own = cell.verdict.numbers, cell.verdict.numbers.get("goodput_mbps")
    rate = f"{rate_text(own)} Mbit/s" if isinstance(own, float) else "an unknown rate"
    lost = _percent(seen.get("lost_share"))
    if cell.verdict.rule == "shaper":
        longer = f"round trips took {_three(seen.get('queue_ms'))} ms longer than without a queue"
        how = f"and the goodput stayed at {rate}" if "variation" in seen else f"at a goodput of {rate}"
        return f"{longer}, {how}: a shaper or a slower hop, whose queue fills"
    if cell.verdict.rule == "policer":
        how = f"while the goodput stayed at {rate}" if "unevenness" in seen else f"many at once, and {rate} passed"
        return f"{lost} of the segments were dropped {how}: a policer"
    if cell.verdict.rule == "slow interface":
        return f"{rate} left the sender at a constant rate and nothing was lost: a shaper at its interface"
    dropped = f"{rate} passed at a constant rate and {lost} of the datagrams were dropped"
    return f"{dropped}: a policer, or a shaper whose queue is full"


def _shared(cell: CellSummary) -> str:
    link, share = cell.verdict.numbers.get("shared_link"), cell.verdict.numbers.get("shared_share")
    return f"{_link(str(link))}, which other pairs use too, was {_percent(share)} full"


def _quota(cell: CellSummary) -> str:
    share = _percent(cell.verdict.numbers.get(f"quota_{cell.limit}"))
    return f"a processor quota of its control group held its agent back {share} of the time"


def _disk(cell: CellSummary) -> str:
    end, verb = ("sender", "reading") if cell.verdict.cause == "read" else ("receiver", "writing")
    return f"the {end} spent {_percent(cell.verdict.numbers.get(f'disk_{cell.verdict.cause}'))} of the time {verb}"


def _mtu(cell: CellSummary) -> str:
    return f"the line is full with frames smaller than the links' MTU; {_more(cell)}"


def _more(cell: CellSummary) -> str:
    larger = cell.verdict.numbers.get("larger_frames")
    return f"full ones would carry {_percent(larger - 1 if isinstance(larger, float) else None)} more"


def _clamp(cell: CellSummary) -> str:
    seen, mtu = cell.verdict.numbers, cell.binding.mtu if cell.binding else None
    path = f", though its path has an MTU of {mtu}" if mtu else ""
    return (
        f"segments carry {_three(seen.get('clamped_mss'))} bytes{path}: something between clamps the MSS; {_more(cell)}"
    )


def _other_traffic(cell: CellSummary) -> str:
    link, share = other_link(cell), cell.verdict.numbers.get("link_share")
    full = "full" if isinstance(share, float) and share >= 1 else f"{_percent(share)} full"
    return f"{other_text(cell)}, and {link} was {full}"


def other_link(cell: CellSummary) -> str:
    """The link that carries other traffic, by name."""
    return _link(str(cell.verdict.numbers.get("other_link")))


def other_text(cell: CellSummary) -> str:
    """`pc3's eth0 received 31.1 Mbit/s more than this run sent to it`."""
    seen = cell.verdict.numbers
    kind, _, node = str(seen.get("other_link")).partition(" ")
    owner, _, name = str(seen.get("other_counter")).partition(" ")
    rate = seen.get("other_mbps")
    more = f"{rate_text(rate)} Mbit/s more than this run" if isinstance(rate, float) else "more than this run"
    if owner == node and name:
        return f"{node}'s {name} received {more} sent to it" if kind == "to" else f"{node}'s {name} sent {more}"
    return f"{seen.get('other_counter')} counted {more} sent there"


_WHAT: Final = {
    "path": "the path",
    "shared-link": "a shared link",
    "other-traffic": "other traffic",
    "disk": "the disk",
    "mtu": "the MTU",
}
_WHY: Final[dict[str, Callable[[CellSummary], str]]] = {
    "path": _path,
    "shared-link": _shared,
    "other-traffic": _other_traffic,
    "disk": _disk,
    "mtu": _mtu,
}


def _remedy(cell: CellSummary) -> str | None:
    ends = f"{cell.binding.stream.sender} and {cell.binding.stream.receiver}" if cell.binding else "both ends"
    if cell.verdict.rule == "quota":
        return (
            f"Raise the quota (cpu.max, cpu.cfs_quota_us) of the control group that the {cell.limit}'s agent runs in."
        )
    if cell.verdict.cause == "clamp":
        return (
            f"Look for a rule that sets the MSS (TCPMSS, maxseg) in routers and firewalls between {ends}, and for a "
            "route with advmss."
        )
    remedies = {
        "path": f"Look for the shaper, policer or slower link between {ends}, or correct the rate in the rig file.",
        "shared-link": "Fewer pairs on this link, or a faster link, lift this limit.",
        "other-traffic": f"Stop the other traffic on {other_link(cell)}, or measure while there is none.",
        "disk": "Compare with a transfer from memory to memory.",
        "mtu": f"Give {ends} the same MTU, and check what lies between them.",
    }
    return remedies.get(cell.limit)


def _link(name: str) -> str:
    kind, _, node = name.partition(" ")
    return f"the trunk from {node}" if kind == "trunk" else f"the link {kind} {node}"


def _percent(share: object) -> str:
    return f"{100 * share:.3g} %" if isinstance(share, float | int) else "an unknown share"


def _three(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float | int) else "–"

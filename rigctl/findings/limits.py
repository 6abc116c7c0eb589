"""Sentences on the limit of a test, and on its remedy: one record of `LimitSentences` for each record in `LIMITS`."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rigctl.analysis.views.mesh import Way
from rigctl.base.units import digits_text
from rigctl.base.values import group_by
from rigctl.findings import Finding, FindingValue, Severity, Weight, tests
from rigctl.findings.text import (
    MOST_LISTED,
    UNKNOWN,
    count_text,
    join_list,
    lost_text,
    numbers_text,
    pct_text,
    rate_text,
    span,
)
from rigctl.findings.window import LARGER_WINDOW, raise_sysctl, window_findings, window_limit_text
from rigctl.limits import limit as limits
from rigctl.limits.ceilings import losses_allow_mbps
from rigctl.limits.limit import LIMITS, Limit
from rigctl.limits.rules import Evidence
from rigctl.results.summary import CellSummary

FULL: Final = 1.005  # share of a link's rate above which rounded times cannot explain the excess


@dataclass(frozen=True, slots=True)
class Explanation:
    """The limit of a test, its evidence, and what the reader can do. A finding joins tests with the same `subject`."""

    name: str  # such as `the path`
    why: str
    remedy: str
    kind: str | None = None  # tells apart explanations with the same name

    @property
    def subject(self) -> tuple[str, str | None]:
        return self.name, self.kind


Explain = Callable[[CellSummary], Explanation | None]


def _nothing_beside(_: Sequence[Way]) -> str:
    return ""


def _no_advice(_: str, __: Sequence[Way]) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSentences:
    """The sentences of reports on a limit.

    `tell` returns the sentence on one test, empty if there is none. `find` yields the findings on all tests with the
    limit; its second argument is True if most pairs of the run have the limit, so that advice is worth while.
    """

    limit: Limit
    tell: Callable[[CellSummary], str]
    find: Callable[[Sequence[CellSummary], bool], Iterator[Finding]]
    remedy: str  # template of what lifts the limit; empty if nothing is to be lifted
    beside: Callable[[Sequence[Way]], str] = _nothing_beside  # in a mesh: what the pairs of a slow node suffer from
    advice: Callable[[str, Sequence[Way]], str | None] = _no_advice  # in a mesh: what to do about a slow node


def limit_words(cell: CellSummary) -> str:
    """Return the limit of a test in words: `limited by the window`; empty if it is unknown or below line rate."""
    limit = LIMITS[cell.limit]
    return "" if limit.is_full and not cell.at_line_rate else limit.phrase


def bottleneck_text(cell: CellSummary) -> str:
    """Return a text on what limits a test, and on the limit of each pair if they differ; empty without evidence."""
    counts = Counter(stream.limit for stream in cell.streams)
    by_pair = ""
    if len(counts) > 1:
        by_pair = f"By pair: {join_list([f'{count} {limit}' for limit, count in counts.most_common()])}."
        if len(cell.streams) <= MOST_LISTED:
            by_pair = f"By pair: {', '.join(f'{stream} {stream.limit}' for stream in cell.streams)}."
    return " ".join(filter(None, (LIMIT_SENTENCES[cell.limit].tell(cell), by_pair)))


def bottleneck_findings(cells: Sequence[CellSummary], without: Limit | None = None) -> Iterator[Finding]:
    """Yield findings on what limits which tests, except for the limit `without`."""
    for word, sentences in LIMIT_SENTENCES.items():
        own = [cell for cell in cells if cell.limit == word]
        if own and sentences.limit != without:
            yield from sentences.find(own, _most_have(cells, word))


def _most_have(cells: Sequence[CellSummary], word: str) -> bool:
    """Tell whether more than half of the pairs of these tests have the limit `word`."""
    known = [stream.limit == word for cell in cells if cell.counted for stream in cell.streams]
    return 2 * sum(known) > len(known)


def _say_nothing(_: CellSummary) -> str:
    return ""


def _find_nothing(_: Sequence[CellSummary], __: bool) -> Iterator[Finding]:
    return iter(())


def _tell(explain: Explain, cell: CellSummary) -> str:
    found = explain(cell)
    return f"Limited by {found.name}: {found.why}." if found else ""


def _find(explain: Explain, cells: Sequence[CellSummary], advised: bool) -> Iterator[Finding]:
    """Yield a finding for each subject of explanations. A fault has its remedy also if few pairs have it."""
    explained = [(cell, found) for cell in cells if (found := explain(cell)) is not None]
    for own in group_by(explained, lambda each: each[1].subject).values():
        tested, (first, found) = [cell for cell, _ in own], own[0]
        alike = len({each for _, each in own}) == 1
        evidence = f"; {found.why}" if alike else f". In test {first.cell.number}, {found.why}"
        text = f"Limited by {found.name}: {_which(tested)}{evidence}."
        fault = LIMITS[first.limit].is_fault
        level = Severity.WARNING if fault else Severity.NOTE
        yield _finding(tested, text, level, first.verdict.numbers, found.remedy if fault or advised else None)


def _explained(
    limit: Limit,
    explain: Explain,
    remedy: str,
    beside: Callable[[Sequence[Way]], str] = _nothing_beside,
    advice: Callable[[str, Sequence[Way]], str | None] = _no_advice,
) -> LimitSentences:
    """Return the sentences on a limit that `explain` explains."""
    tell, find = partial(_tell, explain), partial(_find, explain)
    return LimitSentences(limit=limit, tell=tell, find=find, remedy=remedy, beside=beside, advice=advice)


def _finding(
    cells: Sequence[CellSummary],
    text: str,
    level: Severity,
    numbers: Mapping[str, FindingValue],
    remedy: str | None = None,
) -> Finding:
    subject = tests(cell.cell.number for cell in cells)
    return Finding(f"limit-{cells[0].limit}", text, Weight.BOTTLENECK, level, subject, dict(numbers), remedy)


def _which(cells: Sequence[CellSummary]) -> str:
    return numbers_text([cell.cell.number for cell in cells])


def _ends(cell: CellSummary) -> str:
    return f"{cell.binding.stream.sender} and {cell.binding.stream.receiver}" if cell.binding else "both ends"


_LESS_PAUSE: Final = (
    "Find the full port, whose queue makes the switch ask. Lower its load, or turn off flow control at {ports} and at "
    "the sender's card (ethtool -A DEVICE rx off): the switch then drops what does not fit."
)


def _explain_pause(cell: CellSummary) -> Explanation:
    numbers = cell.verdict.numbers
    frames, ports = numbers.get("pause_frames"), numbers.get("paused_by")
    sender = cell.binding.stream.sender if cell.binding else "the sender"
    count = count_text(frames if isinstance(frames, float | int) else None)
    why = f"{ports} sent {count} pause frames to {sender}, whose own queue stood meanwhile"
    return Explanation("pause frames", why, _LESS_PAUSE.format(ports=ports))


_SLOWER_PATH: Final = "Look for the {what} between {ends}, or correct the rate in the rig file."


def _explain_path(cell: CellSummary) -> Explanation:
    what = "queue that marks" if cell.verdict.cause == "marks" else "shaper, policer or slower link"
    return Explanation("the path", _why_path(cell), _SLOWER_PATH.format(what=what, ends=_ends(cell)), cell.verdict.rule)


def _why_path(cell: CellSummary) -> str:
    numbers = cell.verdict.numbers
    own = numbers.get("goodput_mbps")
    rate = f"{rate_text(own)} Mbit/s" if isinstance(own, float) else "an unknown rate"
    lost = _percent(numbers.get("lost_share"))
    match cell.verdict.rule:
        case "shaper":
            how = f"and the goodput stayed at {rate}" if "variation" in numbers else f"at a goodput of {rate}"
            longer = f"round trips took {_digits(numbers.get('queue_ms'))} ms longer than without a queue"
            return f"{longer}, {how}: a shaper or a slower hop, whose queue fills"
        case "policer":
            how = (
                f"while the goodput stayed at {rate}" if "unevenness" in numbers else f"many at once, and {rate} passed"
            )
            return f"{lost} of the segments were dropped {how}: a policer"
        case "marks":
            marked = _percent(numbers.get("marked_share"))
            return (
                f"{marked} of the segments were acknowledged with an ECN echo, at which the sender cuts its window: a "
                "queue on the way marks packets instead of dropping them"
            )
        case "slow interface":
            return f"{rate} left the sender at a constant rate and nothing was lost: a shaper at its interface"
    dropped = f"{rate} passed at a constant rate and {lost} of the datagrams were dropped"
    return f"{dropped}: a policer, or a shaper whose queue is full"


_FEWER: Final = "Fewer {others} on this link, or a faster link, lift this limit."


def _explain_shared_link(cell: CellSummary) -> Explanation:
    numbers, others = cell.verdict.numbers, "pairs" if cell.cell.traffic_class is None else "classes"
    shared, full = link_text(str(numbers.get("shared_link"))), full_text(numbers.get("shared_share"))
    why = f"{shared}, which other {others} use too, was {full}"
    return Explanation("a shared link", why, _FEWER.format(others=others))


_STOP_OTHERS: Final = "Stop the other traffic on {link}, or measure while there is none."


def _explain_other_traffic(cell: CellSummary) -> Explanation:
    part, link = cell.verdict.numbers.get("link_share"), other_link(cell)
    full = "full" if isinstance(part, float) and part >= 1 else full_text(part)
    return Explanation("other traffic", f"{other_text(cell)}, and {link} was {full}", _STOP_OTHERS.format(link=link))


_FROM_MEMORY: Final = "Compare with a transfer from memory to memory."


def _explain_disk(cell: CellSummary) -> Explanation:
    cause = cell.verdict.cause
    end, verb = ("sender", "reading") if cause == "read" else ("receiver", "writing")
    why = f"the {end} spent {_percent(cell.verdict.numbers.get(f'disk_{cause}'))} of the time {verb}"
    return Explanation("the disk", why, _FROM_MEMORY)


_SAME_MTU: Final = "Give {ends} the same MTU, and check the MTU of the devices between them."
_CLAMP: Final = (
    "Look for a rule that sets the MSS (TCPMSS, maxseg) in routers and firewalls between {ends}, and for a route with "
    "advmss."
)


def _explain_small_frames(cell: CellSummary) -> Explanation:
    numbers, binding, ends = cell.verdict.numbers, cell.binding, _ends(cell)
    larger = numbers.get("larger_frames")
    full_frames = f"full frames would carry {_percent(larger - 1 if isinstance(larger, float) else None)} more"
    if cell.verdict.cause != "clamp":
        why = f"the link is full of frames smaller than the links' MTU; {full_frames}"
        return Explanation("the MTU", why, _SAME_MTU.format(ends=ends))
    path = f", though its path has an MTU of {binding.mtu}" if binding and binding.mtu else ""
    mss = _digits(numbers.get("clamped_mss"))
    why = f"segments carry {mss} bytes{path}: a device on the path clamps the MSS; {full_frames}"
    return Explanation("the MSS", why, _CLAMP.format(ends=ends))


_RAISE_QUOTA: Final = "Raise the quota (cpu.max, cpu.cfs_quota_us) of the control group that the {end}'s agent runs in."
_LARGER_BUFFER: Final = "A larger window sets a larger buffer."


def _explain_host(limit: Limit, cell: CellSummary) -> Explanation | None:
    """Explain a quota or a full socket buffer; None if processors are the limit."""
    numbers, end = cell.verdict.numbers, limit.end
    if cell.verdict.rule == "quota":
        held = _percent(numbers.get(f"quota_{end}"))
        why = f"the CPU quota of a control group held the agent of the {end} back for {held} of the time"
        return Explanation(f"the {end}", why, _RAISE_QUOTA.format(end=end), "quota")
    if cell.verdict.rule == "receive buffer full":
        full = _percent(numbers.get("overflow_share"))
        why = f"{full} of the lost datagrams were dropped at its full socket buffer"
        return Explanation(f"the {end}", why, _LARGER_BUFFER, "buffer")
    return None


_OWN_PROCESSORS: Final = "Nodes with processors of their own may achieve more."


def _host(limit: Limit) -> LimitSentences:
    """Return the sentences on a host whose processors, quota or buffer is the limit."""
    name, why = f"the {limit.end}", "processors of its node, or its agent's threads, were busy"
    if limit.end is None:
        name, why = "processors", "the processors of the one machine that all virtual nodes share were busy"
    explain = partial(_explain_host, limit)

    def tell(cell: CellSummary) -> str:
        return _tell(explain, cell) or f"Limited by {name}: {why} {cell.busy.highest_pct:.0f} % of the time."

    def find(cells: Sequence[CellSummary], advised: bool) -> Iterator[Finding]:
        yield from _find(explain, cells, advised)
        bound = [cell for cell in cells if explain(cell) is None]
        if bound:
            shares = [cell.busy.highest_pct for cell in bound]
            text = f"Limited by {name}: {_which(bound)}; {why} {_percents(shares)} % of the time."
            remedy = _OWN_PROCESSORS if advised and limit.end is None else None
            yield _finding(bound, text, Severity.WARNING, {"busy_pct": max(shares)}, remedy)

    remedy = _OWN_PROCESSORS if limit.end is None else _RAISE_QUOTA
    return LimitSentences(limit=limit, tell=tell, find=find, remedy=remedy)


def other_link(cell: CellSummary) -> str:
    """Return the name of the link with other traffic, in words: `the link to pc3`."""
    return link_text(str(cell.verdict.numbers.get("other_link")))


def other_text(cell: CellSummary) -> str:
    """Return the evidence of other traffic: `pc3's eth0 received 31.1 Mbit/s more than this run sent to it`."""
    numbers = cell.verdict.numbers
    kind, _, node = str(numbers.get("other_link")).partition(" ")
    owner, _, name = str(numbers.get("other_counter")).partition(" ")
    rate = numbers.get("other_mbps")
    more = f"{rate_text(rate)} Mbit/s more than this run" if isinstance(rate, float) else "more than this run"
    if owner == node and name:
        return f"{node}'s {name} received {more} sent to it" if kind == "to" else f"{node}'s {name} sent {more}"
    return f"{numbers.get('other_counter')} counted {more} sent there"


def link_text(name: str) -> str:
    """Return a link's name in words: `the trunk from force10`, `the link to pc3`."""
    kind, _, node = name.partition(" ")
    return f"the trunk from {node}" if kind == "trunk" else f"the link {kind} {node}"


def full_text(share: object) -> str:
    """Return how full a link is: `99.1 % full`; above 100 %, add why more than its rate may have been counted."""
    if not isinstance(share, float | int) or share <= FULL:
        return f"{_percent(min(share, 1) if isinstance(share, float | int) else share)} full"
    more = f"{_percent(share)} of its rate in the rig file was counted"
    return f"full ({more}: that rate is wrong, or a virtual link passed bursts or small frames)"


def _percent(share: object) -> str:
    return f"{pct_text(100 * share, 3)} %" if isinstance(share, float | int) else "an unknown share"


def _digits(value: object) -> str:
    return digits_text(value) if isinstance(value, float | int) else UNKNOWN


def _percents(shares_pct: Collection[float]) -> str:
    return span(f"{pct:.0f}" for pct in (min(shares_pct), max(shares_pct)))


_LONGER: Final = "Measure longer."
_ALONE: Final = "Measure while {link} carries nothing else."


def _explain_unknown(cell: CellSummary) -> tuple[str, str]:
    """Return why the limit is unknown (other traffic, losses, missing evidence) and a remedy; else two empty texts."""
    share, allows, own = (cell.verdict.numbers.get(name) for name in ("lost_share", "loss_allows", "goodput_mbps"))
    match cell.verdict.cause:
        case "traffic":
            return other_text(cell), _ALONE.format(link=other_link(cell))
        case "missing":
            without, ruled = join_list(cell.verdict.missing), join_list(cell.verdict.may_be)
            return f"without {without}, {ruled} cannot be ruled out" if ruled else f"{without} are not known", _LONGER
        case "refuted" if isinstance(share, float) and isinstance(allows, float) and isinstance(own, float):
            by_rule = f"{lost_text(share)}, which by the rule of Mathis et al. allows {rate_text(allows * own)} Mbit/s"
            return f"{by_rule}, but {rate_text(own)} Mbit/s were achieved", _LONGER
        case "refuted":
            return "losses do not explain the goodput", _LONGER
    return "", ""


def _tell_unknown(cell: CellSummary) -> str:
    why, _ = _explain_unknown(cell)
    if not why and cell.verdict.cause != "above" and cell.busy.others_pct is not None:
        why = f"processors were busy, {cell.busy.others_pct:.0f} % of them with programs that are not part of the run"
    return f"Limit unknown: {why}." if why else ""


def _find_unknown(cells: Sequence[CellSummary], _: bool) -> Iterator[Finding]:
    disturbed = [cell for cell in cells if cell.verdict.cause in (None, "others")]
    others = {cell.cell.number: pct for cell in disturbed if (pct := cell.busy.others_pct) is not None}
    if others:
        text = (
            f"Limit unknown: {numbers_text(list(others))}; programs that are not part of the run took "
            f"{_percents(others.values())} % of the processors, which were busy all the time."
        )
        remedy = "Measure again while nothing else runs."
        numbers = {"others_pct": max(others.values())}
        yield Finding("limit-unknown", text, Weight.SUSPECT, Severity.WARNING, tests(list(others)), numbers, remedy)
    for (why, remedy), own in group_by(cells, _explain_unknown).items():
        if why:
            yield _finding(own, f"Limit unknown: {_which(own)}; {why}.", Severity.NOTE, own[0].verdict.numbers, remedy)


_FIND_DROPS: Final = "Counters of interfaces and switch ports tell where drops occur."


def _tell_losses(cell: CellSummary) -> str:
    seen, mss = (cell.binding.evidence, cell.binding.mss_effective) if cell.binding else (Evidence(), None)
    share, allowed_mbps = seen.lost_share, losses_allow_mbps(mss, seen.rtt_ms, seen.lost_share)
    if share is None or allowed_mbps is None or cell.verdict.rule != "losses":
        uncut = f". {_why_losses(cell)}" if cell.verdict.numbers.get("halves") is False else ""
        parts = "datagrams" if cell.cell.kind.counts == "datagrams" else "segments"
        return f"Limited by losses: {lost_text(share, parts)}{uncut}." if share is not None else ""
    return (
        f"Limited by losses: {lost_text(share)}, and a round trip took {_digits(seen.rtt_ms)} ms. By the rule of "
        f"Mathis et al. a flow then achieves about {rate_text(allowed_mbps)} Mbit/s, more if several segments are "
        f"lost at once."
    )


def _find_losses(cells: Sequence[CellSummary], advised: bool) -> Iterator[Finding]:
    for why, own in group_by(cells, _why_losses).items():
        text = f"Limited by losses: {_which(own)}; {why}."
        yield _finding(own, text, Severity.WARNING, {}, _FIND_DROPS if advised else None)


def _why_losses(cell: CellSummary) -> str:
    halves = cell.verdict.numbers.get("halves")
    if halves is False:
        used = (cell.binding.congestion if cell.binding else None) or "The congestion control"
        return f"{used} does not cut its window at each loss; goodput falls only by the lost data"
    return "each loss cuts the congestion window of its flow" if halves else "goodput lacks the lost data"


def _sysctls(ways: Sequence[Way]) -> list[tuple[str, str]]:
    """Return the sysctls that bound the windows of these pairs, each with its node."""
    causes = [way.window for way in ways if way.window is not None]
    return list(dict.fromkeys((cause.sysctl, cause.node) for cause in causes if cause.sysctl is not None))


def _bounding(ways: Sequence[Way]) -> str:
    return join_list([f"{sysctl} of {node} allows no more" for sysctl, node in _sysctls(ways)])


def _raise_first(_: str, ways: Sequence[Way]) -> str | None:
    return next((raise_sysctl(sysctl, node) for sysctl, node in _sysctls(ways)), None)


def _look_before(node: str, _: Sequence[Way]) -> str:
    return f"Check what is before {node}: a firewall, shaper or switch port; or correct the rate in the rig file."


LIMIT_SENTENCES: Final[Mapping[str, LimitSentences]] = {
    sentences.limit.word: sentences
    for sentences in (
        LimitSentences(
            limit=limits.BY_WINDOW,
            tell=window_limit_text,
            find=window_findings,
            remedy=LARGER_WINDOW,
            beside=_bounding,
            advice=_raise_first,
        ),
        _explained(
            limits.BY_PATH,
            _explain_path,
            _SLOWER_PATH,
            beside=lambda _: "a firewall, a shaper or a slower hop",
            advice=_look_before,
        ),
        _explained(limits.BY_SHARED_LINK, _explain_shared_link, _FEWER),
        _explained(limits.BY_PAUSE, _explain_pause, _LESS_PAUSE),
        _explained(
            limits.BY_OTHER_TRAFFIC,
            _explain_other_traffic,
            _STOP_OTHERS,
            beside=lambda _: "traffic from outside this run",
        ),
        _explained(limits.BY_DISK, _explain_disk, _FROM_MEMORY),
        _explained(limits.BY_MTU, _explain_small_frames, _SAME_MTU),
        _host(limits.BY_MACHINE),
        _host(limits.BY_SENDER),
        _host(limits.BY_RECEIVER),
        LimitSentences(limit=limits.UNKNOWN_LIMIT, tell=_tell_unknown, find=_find_unknown, remedy=_LONGER),
        LimitSentences(limit=limits.BY_LOSSES, tell=_tell_losses, find=_find_losses, remedy=_FIND_DROPS),
        LimitSentences(limit=limits.AT_LINE_RATE, tell=_say_nothing, find=_find_nothing, remedy=""),
        LimitSentences(limit=limits.AS_REQUESTED, tell=_say_nothing, find=_find_nothing, remedy=""),
    )
}
"""The sentences on each limit by its word, in the order of findings."""

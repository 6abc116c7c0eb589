"""Sentences on the limit of a test (window, processors, losses, path, other traffic), and on its remedy."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from rigctl.analysis.summary import CellSummary
from rigctl.base.values import group_by
from rigctl.findings import Finding, FindingValue, Severity, Weight, tests
from rigctl.findings.text import MOST_LISTED, UNKNOWN, join_list, lost_text, numbers_text, rate_text, span
from rigctl.findings.window import window_findings, window_limit_text
from rigctl.limits.evidence import losses_allow_mbps
from rigctl.limits.hosts import PROCESSORS
from rigctl.limits.limit import LIMITS
from rigctl.limits.rules import Evidence

FULL: Final = 1.005  # share of a link's rate above which rounded times cannot explain the excess


def limit_words(cell: CellSummary) -> str:
    """Return the limit of a test in words: `limited by the window`; empty if the limit is unknown."""
    return LIMITS[cell.limit].phrase


def most_have(cells: Sequence[CellSummary], limits: Collection[str]) -> bool:
    """Tell whether more than half of the pairs of these tests have one of `limits`."""
    known = [stream.limit in limits for cell in cells if cell.counted for stream in cell.streams]
    return 2 * sum(known) > len(known)


def bottleneck_text(cell: CellSummary) -> str:
    """Return a text on what limits a test, and on the limit of each pair if they differ; empty without evidence."""
    limits = Counter(stream.limit for stream in cell.streams)
    by_pair = ""
    if len(limits) > 1:
        by_pair = f"By pair: {join_list([f'{count} {limit}' for limit, count in limits.most_common()])}."
        if len(cell.streams) <= MOST_LISTED:
            by_pair = f"By pair: {', '.join(f'{stream} {stream.limit}' for stream in cell.streams)}."
    return " ".join(filter(None, (_bottleneck(cell), by_pair)))


def _bottleneck(cell: CellSummary) -> str:
    if named := _describe(cell):
        return f"Limited by {named[0]}: {named[1]}."
    if cell.limit == "window":
        return window_limit_text(cell)
    if cell.limit == "loss":
        return _losses(cell)
    if cell.limit in PROCESSORS:
        name, why = _processors(cell.limit)
        return f"Limited by {name}: {why} {cell.busy.highest_pct:.0f} % of the time."
    why = _explain_unknown(cell)[0]
    if not why and cell.verdict.cause != "above" and cell.limit == "unknown" and cell.busy.others_pct is not None:
        why = f"processors were busy, {cell.busy.others_pct:.0f} % of them with programs that are not part of the run"
    return f"Limit unknown: {why}." if why else ""


def bottleneck_findings(cells: Sequence[CellSummary], without: str = "") -> Iterator[Finding]:
    """Yield findings on what limits which tests, except for the limit `without`."""
    held = [cell for cell in cells if cell.limit == "window"]
    yield from window_findings(held, advised=most_have(cells, ("window",)))
    described = [cell for cell in cells if cell.limit != without and _describe(cell) is not None]
    for own in group_by(described, _sentence_key).values():
        name, why, remedy = _describe(own[0]) or ("", "", "")
        alike = len({_describe(cell) for cell in own}) == 1
        evidence = f"; {why}" if alike else f". In test {own[0].cell.number}, {why}"
        fault = LIMITS[own[0].verdict.limit].is_fault
        advice = remedy if fault or most_have(cells, (own[0].limit,)) else None
        level = Severity.WARNING if fault else Severity.NOTE
        yield _finding(own, f"Limited by {name}: {_which(own)}{evidence}.", level, own[0].verdict.numbers, advice)
    for limit in PROCESSORS:
        bound = [cell for cell in cells if cell.limit == limit and cell.verdict.rule == "processors"]
        if bound:
            shares, (name, why) = [cell.busy.highest_pct for cell in bound], _processors(limit)
            text = f"Limited by {name}: {_which(bound)}; {why} {_percents(shares)} % of the time."
            advised = limit == "machine" and most_have(cells, (limit,))
            own_processors = "Nodes with processors of their own may achieve more." if advised else None
            yield _finding(bound, text, Severity.WARNING, {"busy_pct": max(shares)}, own_processors)
    yield from _find_disturbed(cells)
    for (why, remedy), own in group_by(cells, _explain_unknown).items():
        if why:
            yield _finding(own, f"Limit unknown: {_which(own)}; {why}.", Severity.NOTE, own[0].verdict.numbers, remedy)
    for why, own in group_by([cell for cell in cells if cell.limit == "loss"], _why_losses).items():
        yield _finding(own, f"Limited by losses: {_which(own)}; {why}.", Severity.WARNING, {})


def _sentence_key(cell: CellSummary) -> tuple[str, str | None]:
    name, _, _ = _describe(cell) or ("", "", "")
    return name, cell.verdict.rule if cell.limit == "path" else None


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


def _describe(cell: CellSummary) -> tuple[str, str, str] | None:
    """Return a limit's name, evidence and remedy; None for a limit that another function describes."""
    numbers, cause, binding = cell.verdict.numbers, cell.verdict.cause, cell.binding
    ends = f"{binding.stream.sender} and {binding.stream.receiver}" if binding else "both ends"
    larger = numbers.get("larger_frames")
    full_frames = f"full frames would carry {_percent(larger - 1 if isinstance(larger, float) else None)} more"
    if cell.verdict.rule == "quota":
        held = _percent(numbers.get(f"quota_{cell.limit}"))
        return (
            f"the {cell.limit}",
            f"the CPU quota of a control group held the agent of the {cell.limit} back for {held} of the time",
            f"Raise the quota (cpu.max, cpu.cfs_quota_us) of the control group that the {cell.limit}'s agent runs in.",
        )
    if cause == "clamp":
        path = f", though its path has an MTU of {binding.mtu}" if binding and binding.mtu else ""
        mss = _digits(numbers.get("clamped_mss"))
        return (
            "the MSS",
            f"segments carry {mss} bytes{path}: a device on the path clamps the MSS; {full_frames}",
            f"Look for a rule that sets the MSS (TCPMSS, maxseg) in routers and firewalls between {ends}, and for a "
            "route with advmss.",
        )
    match cell.limit:
        case "path":
            what = "queue that marks" if cause == "marks" else "shaper, policer or slower link"
            remedy = f"Look for the {what} between {ends}, or correct the rate in the rig file."
            described = ("the path", _path(cell), remedy)
        case "shared-link":
            others = "pairs" if cell.cell.traffic_class is None else "classes"
            shared, full = link_text(str(numbers.get("shared_link"))), full_text(numbers.get("shared_share"))
            why = f"{shared}, which other {others} use too, was {full}"
            described = ("a shared link", why, f"Fewer {others} on this link, or a faster link, lift this limit.")
        case "other-traffic":
            part, link = numbers.get("link_share"), other_link(cell)
            full = "full" if isinstance(part, float) and part >= 1 else full_text(part)
            remedy = f"Stop the other traffic on {link}, or measure while there is none."
            described = ("other traffic", f"{other_text(cell)}, and {link} was {full}", remedy)
        case "disk":
            end, verb = ("sender", "reading") if cause == "read" else ("receiver", "writing")
            why = f"the {end} spent {_percent(numbers.get(f'disk_{cause}'))} of the time {verb}"
            described = ("the disk", why, "Compare with a transfer from memory to memory.")
        case "mtu":
            why = f"the link is full of frames smaller than the links' MTU; {full_frames}"
            described = ("the MTU", why, f"Give {ends} the same MTU, and check the MTU of the devices between them.")
        case _:
            return None
    return described


def _path(cell: CellSummary) -> str:
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
    return f"{100 * share:.3g} %" if isinstance(share, float | int) else "an unknown share"


def _digits(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float | int) else UNKNOWN


def _processors(limit: str) -> tuple[str, str]:
    if limit == "machine":
        return "processors", "the processors of the one machine that all virtual nodes share were busy"
    return f"the {limit}", "processors of its node, or its agent's threads, were busy"


def _percents(shares_pct: Collection[float]) -> str:
    return span(f"{pct:.0f}" for pct in (min(shares_pct), max(shares_pct)))


def _find_disturbed(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    unknown = [cell for cell in cells if cell.limit == "unknown" and cell.verdict.cause in (None, "others")]
    others = {cell.cell.number: pct for cell in unknown if (pct := cell.busy.others_pct) is not None}
    if others:
        text = (
            f"Limit unknown: {numbers_text(list(others))}; programs that are not part of the run took "
            f"{_percents(others.values())} % of the processors, which were busy all the time."
        )
        remedy = "Measure again while nothing else runs."
        numbers = {"others_pct": max(others.values())}
        yield Finding("limit-unknown", text, Weight.SUSPECT, Severity.WARNING, tests(list(others)), numbers, remedy)


def _explain_unknown(cell: CellSummary) -> tuple[str, str]:
    """Return why the limit is unknown (other traffic, losses, missing evidence) and a remedy; else two empty texts."""
    if cell.limit != "unknown" or cell.verdict.cause not in ("traffic", "refuted", "missing"):
        return "", ""
    if cell.verdict.cause == "missing":
        without, limits = join_list(cell.verdict.missing), join_list(cell.verdict.may_be)
        return (
            f"without {without}, {limits} cannot be ruled out" if limits else f"{without} are not known",
            "Measure longer.",
        )
    if cell.verdict.cause == "traffic":
        return other_text(cell), f"Measure while {other_link(cell)} carries nothing else."
    share, allows, own = (cell.verdict.numbers.get(name) for name in ("lost_share", "loss_allows", "goodput_mbps"))
    why = "losses do not explain the goodput"
    if isinstance(share, float) and isinstance(allows, float) and isinstance(own, float):
        why = (
            f"{lost_text(share)}, which by the rule of Mathis et al. allows {rate_text(allows * own)} Mbit/s, "
            f"but {rate_text(own)} Mbit/s were achieved"
        )
    return why, "Measure longer."


def _losses(cell: CellSummary) -> str:
    seen, mss = (cell.binding.evidence, cell.binding.mss_effective) if cell.binding else (Evidence(), None)
    share, allowed_mbps = seen.lost_share, losses_allow_mbps(mss, seen.rtt_ms, seen.lost_share)
    if share is None or allowed_mbps is None or cell.verdict.rule != "losses":
        uncut = f". {_why_losses(cell)}" if cell.verdict.numbers.get("halves") is False else ""
        return f"Limited by losses: {lost_text(share)}{uncut}." if share is not None else ""
    return (
        f"Limited by losses: {lost_text(share)}, and a round trip took {seen.rtt_ms:.3g} ms. By the rule of Mathis et "
        f"al. a flow then achieves about {rate_text(allowed_mbps)} Mbit/s, more if several segments are lost at once."
    )


def _why_losses(cell: CellSummary) -> str:
    halves = cell.verdict.numbers.get("halves")
    if halves is False:
        used = (cell.binding.congestion if cell.binding else None) or "The congestion control"
        return f"{used} does not cut its window at each loss; goodput falls only by the lost data"
    return "each loss cuts the congestion window of its flow" if halves else "goodput lacks the lost data"

"""The words of a comparison: changes, verdicts, the sentence on top, and what else differs."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.apart import Apart, Source
from rigctl.analysis.comparison import Change, Comparison
from rigctl.analysis.figures import GOODPUT, LOADED_LATENCY, ROUND_TRIP, THROUGHPUT, Metric
from rigctl.findings import Finding, Number, Severity, Weight, tests
from rigctl.model.comparing import LEAST, Difference, Verdict
from rigctl.records import Cell
from rigctl.report.fact_text import FACT_TITLES, fact_text
from rigctl.report.text import UNKNOWN, listed, numbers_text, pairs_text, plural, settings_text, told_apart

METRICS: Final[dict[Metric, tuple[str, str, float]]] = {
    GOODPUT: ("goodput", "Mbit/s", 1.0),
    ROUND_TRIP: ("mean round trip", "µs", 1.0),
    THROUGHPUT: ("throughput", "MB/s", 1e-6),
    LOADED_LATENCY: ("latency under load, p50", "µs", 1.0),
}
"""What a figure is called, its unit in print, and what it is multiplied by for that."""
MOST_NAMED: Final = 3
_TITLES: Final = {
    "scenario_name": "Scenario",
    "scenario_yaml": "Scenario file",
    "rig_name": "Rig",
    "rig_yaml": "Rig file",
    "overrides": "Options",
    "repeat": "Repetitions",
    "virtual": "Virtual rig",
    "ip_version": "IP version",
    "trunk rate_bps": "Rate of the trunk",
    "trunk ends": "Ends of the trunk",
    "max_skew_s": "Start skew at most, s",
    "max_loss": "Loss at most",
    "retest variation": "Retest from a variation of",
    "retest repeat": "Repetitions of a retest",
    "until ci95": "Until an interval of",
    "until most": "Repetitions at most",
    "link rate_bps": "Link rate in the rig file",
    "link mtu": "MTU in the rig file",
    "link rtt_s": "Round-trip time in the rig file",
    "link switch": "Switch in the rig file",
    "node": "Node",
    "congestion": "Congestion control in use",
    "mss_effective": "MSS in use",
    "window_effective_bytes": "Window in use",
    "duration_s": "Duration",
    "omit_s": "Omitted",
    "capture": "Capture",
    "bin_us": "Bins",
    "latency_ms": "Probes every, ms",
}


def signed(share: float, decimals: int = 1) -> str:
    """A change in percent: `+0.3`, `−9.8`."""
    text = f"{100 * share:+.{decimals}f}".replace("-", "−")
    return text if float(text[1:]) else f"{0:.{decimals}f}"


def interval_text(difference: Difference) -> str:
    """`−10.2 to −9.5`."""
    if difference.low is None or difference.high is None:
        return UNKNOWN
    return f"{signed(difference.low)} to {signed(difference.high)}"


def up(share: float) -> str:
    """A bound in percent, rounded up: what is within 0.31 % is within 0.4 %, not within 0.3 %."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f}"


def verdict_text(change: Change) -> str:
    difference = change.difference
    if difference.verdict is Verdict.SAME and difference.within is not None:
        return f"same within {up(difference.within)} %"
    return str(difference.verdict)


def why(change: Change, bound: float) -> str | None:
    """Why there is no verdict on a test."""
    difference = change.difference
    if difference.verdict is Verdict.INVALID:
        return f"Invalid: {change.reason}." if change.reason else "Invalid."
    if difference.verdict is not Verdict.INCONCLUSIVE:
        return None
    if difference.low is None or difference.high is None:
        few = min(len(change.before.values), len(change.after.values))
        return f"Inconclusive: {plural(few, 'repetition')}; a verdict needs {LEAST} on either side. " + _seeable(
            difference
        )
    if not difference.low <= 0 <= difference.high:
        if abs(difference.change or 0.0) < bound:
            return f"Inconclusive: a difference, but smaller than the bound of {100 * bound:g} %."
        return f"Inconclusive: a difference that chance may explain. {_seeable(difference)}"
    return "Inconclusive: the repetitions differ too much. " + _seeable(difference)


def _seeable(difference: Difference) -> str:
    if difference.seeable is None:
        return "Their spread is unknown."
    return f"Changes from {up(difference.seeable)} % on could have been seen."


def named(cell: Cell, cells: Sequence[Cell]) -> str:
    """`test 7 (n04 → hub)`: by what tells it apart from the others."""
    if len(cells) == 1:
        return "the test"
    words = pairs_text(cell.pairs) if told_apart(cells) == "names" else settings_text(cell, told_apart(cells))
    return f"test {cell.number} ({words})"


def answer(comparison: Comparison) -> Finding:
    """One sentence on top: what got worse or better, by how much; and the others in numbers."""
    parts = [(verdict, comparison.with_verdict(verdict)) for verdict in Verdict]
    count = {verdict: len(changes) for verdict, changes in parts}
    news = [(verdict, changes) for verdict, changes in parts[:2] if changes]
    if not comparison.tests:
        text = "The runs have no test in common."
    elif news:
        text = " ".join(_news(verdict, changes, comparison) for verdict, changes in reversed(news))
    else:
        text = "No test got better or worse."
    text = " ".join(filter(None, [text, _rest(comparison)]))
    level = Severity.WARNING if comparison.worse else Severity.NOTE
    numbers: dict[str, Number] = {str(verdict): count[verdict] for verdict in Verdict}
    return Finding(
        text, Weight.ANSWER, level, tests(change.cell.number for _, all_ in news for change in all_), numbers
    )


def _news(verdict: Verdict, changes: Sequence[Change], comparison: Comparison) -> str:
    cells = [change.cell for change in comparison.tests]
    first = changes[0]
    count = "" if len(cells) == 1 else f"{len(changes)} of {plural(len(comparison.tests), 'test')} got {verdict}: "
    said = f"{count}{named(first.cell, cells)} has {_times(first)}"
    if len(changes) > 1:
        others = [change.cell.number for change in changes[1:]]
        said += f"; then {numbers_text(others)}"
    return f"{said[:1].upper()}{said[1:]}."


def _times(change: Change) -> str:
    """`0.902 times its goodput (−10.2 to −9.5 %)`."""
    name = METRICS[change.metric][0]
    ratio = 1 + (change.difference.change or 0.0)
    return f"{ratio:.3f} times its {name} ({interval_text(change.difference)} %)"


def _rest(comparison: Comparison) -> str:
    """The tests without news, in numbers."""
    same = comparison.with_verdict(Verdict.SAME)
    words = []
    if same:
        widest = max(change.difference.within or 0.0 for change in same)
        words.append(f"{len(same)} {'is' if len(same) == 1 else 'are'} the same within {up(widest)} %")
    for verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID):
        if found := comparison.with_verdict(verdict):
            words.append(f"{len(found)} {'is' if len(found) == 1 else 'are'} {verdict}")
    text = listed(words)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def findings(comparison: Comparison) -> Iterator[Finding]:
    """The answer; streams of tests with news of their own; tests in one run only; what else differs."""
    yield answer(comparison)
    yield from _of_streams(comparison)
    for cells, which in ((comparison.only_before, "first"), (comparison.only_after, "second")):
        if cells:
            numbers = numbers_text([cell.number for cell in cells])
            are = "is" if len(cells) == 1 else "are"
            text = f"{numbers[:1].upper()}{numbers[1:]} of the {which} run {are} in that run only."
            yield Finding(text, Weight.MISSING, Severity.WARNING)
    if comparison.apart:
        titles = list(dict.fromkeys(apart_title(each) for each in comparison.apart))
        more = len(titles) - MOST_NAMED
        named_ = [*titles[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
        yield Finding(f"What else differs: {listed(named_)}.", Weight.COMPARISON)


def _of_streams(comparison: Comparison) -> Iterator[Finding]:
    for verdict, level in ((Verdict.WORSE, Severity.WARNING), (Verdict.BETTER, Severity.NOTE)):
        found = [change for change in comparison.streams if change.difference.verdict is verdict]
        if found:
            first = found[0]
            which = f"{first.stream} of test {first.cell.number}"
            text = f"{plural(len(found), 'pair')} got {verdict}: {which} has {_times(first)}"
            more = f"; {len(found) - 1} more in the table of pairs" if len(found) > 1 else ""
            yield Finding(f"{text}{more}.", Weight.BOTTLENECK, level, tests({change.cell.number for change in found}))


def apart_title(each: Apart) -> str:
    """What differs, by its name in tables."""
    if each.source is Source.GRANTED and each.name == "mtu":
        return "Path MTU in use"
    if each.source is Source.VERSION:
        return "Agent" if each.name.startswith("agent ") and each.name.endswith("sha256") else each.name
    if each.source is Source.TAG:
        return f"Tag {each.name}"
    return FACT_TITLES.get(each.name, each.name) if each.source is Source.FACT else _TITLES.get(each.name, each.name)


def apart_texts(each: Apart) -> tuple[str, str]:
    """Both values."""
    if each.name in ("scenario_yaml", "rig_yaml"):
        return UNKNOWN, "changed, see below"
    name = each.name.removeprefix("link ") if each.source is Source.RIG else each.name
    texts = [fact_text(name, value) for value in (each.before, each.after)]
    if each.source is Source.VERSION:
        texts = [text[:12] for text in texts]
    return texts[0], texts[1]


def where_text(each: Apart) -> str:
    """Nodes or tests; `all`."""
    if not each.where:
        return "all"
    of_tests = each.source in (Source.GRANTED, Source.SCENARIO)
    return numbers_text([int(number) for number in each.where]) if of_tests else listed(each.where)

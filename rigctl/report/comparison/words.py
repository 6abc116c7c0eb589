"""The words of a comparison: changes, verdicts, the sentence on top, and what else differs."""

import math
from collections.abc import Iterator, Sequence

from rigctl.analysis.nights.comparison import Change, Comparison
from rigctl.findings import Finding, Number, Severity, Weight, tests
from rigctl.model.statistics.samples import LEAST, Difference, Verdict
from rigctl.records import Cell
from rigctl.report.words.setup import setup_title
from rigctl.report.words.text import (
    METRICS,
    MOST_NAMED,
    UNKNOWN,
    listed,
    numbers_text,
    pairs_text,
    plural,
    sentence,
    settings_text,
    some,
    sum_words,
    told_apart,
)


def signed(share: float, decimals: int = 1) -> str:
    """Return a change in percent: `+0.3`, `−9.8`."""
    text = f"{100 * share:+.{decimals}f}".replace("-", "−")
    return text if float(text[1:]) else f"{0:.{decimals}f}"


def interval_text(difference: Difference) -> str:
    """Return `−10.2 to −9.5`."""
    if difference.low is None or difference.high is None:
        return UNKNOWN
    return f"{signed(difference.low)} to {signed(difference.high)}"


def up(share: float) -> str:
    """Return a bound in percent, rounded up: what is within 0.31 % is within 0.4 %, not within 0.3 %."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f}"


def verdict_text(change: Change) -> str:
    difference = change.difference
    if difference.verdict is Verdict.SAME and difference.within is not None:
        return f"same within {up(difference.within)} %"
    return str(difference.verdict)


def why(change: Change, bound: float) -> str | None:
    """Return why a test has no verdict; None if it has one."""
    found = change.difference
    if found.verdict is Verdict.INVALID:
        return sentence(f"Invalid: {change.reason}") if change.reason else "Invalid."
    if found.verdict is not Verdict.INCONCLUSIVE:
        return None
    if found.low is None or found.high is None:
        few = min(len(change.before.values), len(change.after.values))
        reason = f"{plural(few, 'repetition')}; a verdict needs {LEAST} on either side"
    elif found.low <= 0 <= found.high:
        reason = "the repetitions differ too much"
    elif abs(found.change or 0.0) < bound:
        return f"Inconclusive: a difference, but smaller than the bound of {100 * bound:g} %."
    else:
        reason = "a difference that chance may explain"
    visible = "Their spread is unknown."
    if found.seeable is not None:
        visible = f"Changes from {up(found.seeable)} % on could have been seen."
    return f"Inconclusive: {reason}. {visible}"


def named(cell: Cell, cells: Sequence[Cell]) -> str:
    """Return `test 7 (n04 → hub)`: a test with the settings that tell it apart from the others."""
    if len(cells) == 1:
        return "the test"
    words = pairs_text(cell.pairs) if told_apart(cells) == "names" else settings_text(cell, told_apart(cells))
    return f"test {cell.number} ({words})"


def answer(comparison: Comparison) -> Finding:
    """Return what got worse or better and by how much, and the number of other tests."""
    found = {verdict: comparison.with_verdict(verdict) for verdict in Verdict}
    news = [*found[Verdict.BETTER], *found[Verdict.WORSE]]
    said = [_news(verdict, found[verdict], comparison) for verdict in (Verdict.WORSE, Verdict.BETTER) if found[verdict]]
    if not comparison.tests:
        said = ["The runs have no test in common."]
    rest = []
    if same := found[Verdict.SAME]:
        widest = max(change.difference.within or 0.0 for change in same)
        rest.append(f"{plural(len(same), 'is', 'are')} the same within {up(widest)} %")
    rest += [
        f"{plural(len(found[verdict]), 'is', 'are')} {verdict}"
        for verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID)
        if found[verdict]
    ]
    said = said or ["No test got better or worse."]
    if rest:
        said.append(f"{listed(rest)}.")
    level = Severity.WARNING if comparison.worse else Severity.NOTE
    numbers: dict[str, Number] = {str(verdict): len(found[verdict]) for verdict in Verdict}
    return Finding(" ".join(said), Weight.ANSWER, level, tests(change.cell.number for change in news), numbers)


def _news(verdict: Verdict, changes: Sequence[Change], comparison: Comparison) -> str:
    cells = [change.cell for change in comparison.tests]
    first = changes[0]
    count = "" if len(cells) == 1 else f"{len(changes)} of {plural(len(cells), 'test')} got {verdict}: "
    then = f"; then {numbers_text([change.cell.number for change in changes[1:]])}" if len(changes) > 1 else ""
    said = f"{count}{named(first.cell, cells)} has {_times(first)}{then}."
    return f"{said[:1].upper()}{said[1:]}"


def _times(change: Change) -> str:
    """Return `0.902 times its goodput (−10.2 to −9.5 %)`."""
    sums = sum_words([change.cell], change.metric) if change.stream is None else ""
    name = f"{METRICS[change.metric].name} {sums}".strip()
    ratio = 1 + (change.difference.change or 0.0)
    return f"{ratio:.3f} times its {name} ({interval_text(change.difference)} %)"


def findings(comparison: Comparison) -> Iterator[Finding]:
    """Yield the answer, the pairs with changes, tests in one run only, and what else differs."""
    yield answer(comparison)
    yield from _of_streams(comparison)
    for cells, which in ((comparison.only_before, "first"), (comparison.only_after, "second")):
        if cells:
            numbers = numbers_text([cell.number for cell in cells])
            are = "is" if len(cells) == 1 else "are"
            text = f"{numbers[:1].upper()}{numbers[1:]} of the {which} run {are} in that run only."
            yield Finding(text, Weight.MISSING, Severity.WARNING)
    if comparison.differs:
        titles = list(dict.fromkeys(setup_title(change) for change in comparison.differs))
        most = MOST_NAMED if len(titles) > 2 * MOST_NAMED else len(titles)
        yield Finding(f"What else differs: {some(titles, most, 'more in the table')}.", Weight.COMPARISON)


def _of_streams(comparison: Comparison) -> Iterator[Finding]:
    for verdict, level in ((Verdict.WORSE, Severity.WARNING), (Verdict.BETTER, Severity.NOTE)):
        found = [change for change in comparison.streams if change.difference.verdict is verdict]
        if found:
            first = found[0]
            which = f"{first.stream} of test {first.cell.number}"
            text = f"{plural(len(found), 'pair')} got {verdict}: {which} has {_times(first)}"
            more = f"; {len(found) - 1} more in the table of pairs" if len(found) > 1 else ""
            yield Finding(f"{text}{more}.", Weight.BOTTLENECK, level, tests({change.cell.number for change in found}))

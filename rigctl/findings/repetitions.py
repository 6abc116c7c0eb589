"""Findings on repetitions that failed, that are not in the means, or that were measured again."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.values import group_by
from rigctl.figures.streams import RETRANSMITS
from rigctl.findings import Finding, Severity, Weight, good, note, tests, warning
from rigctl.findings.text import (
    MOST_LISTED,
    MOST_NAMED,
    all_tests,
    end_sentence,
    lower_first,
    numbers_text,
    pct_text,
    plural,
    rate_text,
    span,
    tests_named,
    upper_first,
)
from rigctl.model.repeating import ci95, variation
from rigctl.model.statistics.spread import Retransmits, Steadier, blame_retransmits, steadier
from rigctl.records import Cell, RepetitionHead, RunInfo, RunStatus, Status
from rigctl.results.summary import CellSummary, Exclusion

_NUMBER: Final = re.compile(r"\d[\d.]*")
_PAIRS_MISSING: Final = warning(
    "pairs-missing",
    "Some pairs are missing in {tests}; {reason}{more}. The sum of all pairs is unknown in these tests.",
    weight=Weight.MISSING,
)
_LEFT_OUT: Final = warning(
    "repetitions-left-out",
    "Half of the repetitions of {tests}, or more, are not counted; the notes give the reasons.",
    weight=Weight.MISSING,
)
_NARROW: Final = good(
    "interval-narrow", "Half the 95 % confidence interval of every mean is below {bound}.", weight=Weight.DETAIL
)
_WIDE: Final = warning(
    "interval-wide", "After {count} repetitions half the 95 % confidence interval is not below {bound} in {tests}."
)


_STEADIER: Final = note(
    "steadier",
    "{best} are steadier than {other}: repetitions vary by {less} of their mean, with {other} by {more} ({each})",
    weight=Weight.ANSWER,
)
_ALIKE: Final = note(
    "alike-steady",
    "It may be chance that repetitions vary by {less} of their mean with {best} and by {more} with {other} ({each}).",
    weight=Weight.COMPARISON,
)
_NOT_RETRANSMITTED: Final = note(
    "retest-retransmits",
    "Nothing was retransmitted in any repetition of {tests}: retransmits are not why the repetitions vary.",
    weight=Weight.COMPARISON,
)
_RETRANSMITTED: Final = "Test {test} has {count} in {some} of {all} repetitions"
_RETRANSMITS: Final = {
    verdict: note("retest-retransmits", f"{_RETRANSMITTED}{rest}.", weight=Weight.COMPARISON)
    for verdict, rest in (
        (Retransmits.CAUSE, ", which are why it varies: the other {quiet} vary by {left}"),
        (Retransmits.NOT_ALONE, ", which are not the only cause: the other {quiet} vary by {left}"),
        (Retransmits.UNKNOWN, "; whether they are why it varies is unknown"),
    )
}


def exclusion_texts(exclusions: Sequence[Exclusion]) -> tuple[str, ...]:
    """Return notes on measurements that do not count; measurements with the same reason share a note."""
    alike = group_by(exclusions, lambda own: (own.status, _NUMBER.sub("", own.reason or "")))
    return tuple(_exclusion_text(own[0]) if len(own) == 1 else _same_text(own) for own in alike.values())


def _same_text(same: Sequence[Exclusion]) -> str:
    """Return `Test 2: invalid 4 times, at last: start skew … (905–941 Mbit/s, not counted)`."""
    last = same[-1]
    when = ", at last" if len({own.reason for own in same}) > 1 else ""
    text = f"Test {last.test}: {last.status} {len(same)} times{when}: "
    text += (last.reason or "no reason was stored").rstrip(".")
    rates = sorted(mbps for own in same for mbps in own.goodput_mbps.values() if mbps is not None)
    if last.status is Status.INVALID and rates:
        text += f" ({span(map(rate_text, (rates[0], rates[-1])))} Mbit/s, not counted)"
    return end_sentence(text)


def _exclusion_text(excluded: Exclusion) -> str:
    """Return `Test 3, repetition 2: invalid: start skew … (911, 941 Mbit/s, not counted); measured once more`."""
    which = f"Test {excluded.test}"
    if excluded.status is None:
        return f"Not measured{' yet' if excluded.running else ''}."
    if excluded.repetition is not None:
        which += f", repetition {excluded.repetition}"
    if excluded.attempt > 1:
        which += ", measured once more"
    if excluded.status is Status.OK:
        return f"{which}: {(excluded.reason or '').rstrip('.')}."
    text = f"{which}: {excluded.status}: {(excluded.reason or 'no reason was stored').rstrip('.')}"
    if excluded.status is Status.INVALID and any(rate_mbps is not None for rate_mbps in excluded.goodput_mbps.values()):
        text += f" ({_rates(excluded)}, not counted)"
    if not excluded.measured_again:
        return end_sentence(text)
    return f"{text} Measured once more." if text.endswith("?") else f"{text}; measured once more."


def _rates(excluded: Exclusion) -> str:
    """Return the goodput of each pair; for many pairs, the range and the names of the three slowest."""
    each_mbps = excluded.goodput_mbps
    if len(each_mbps) <= MOST_LISTED:
        return ", ".join(map(rate_text, each_mbps.values())) + " Mbit/s"
    known = sorted((mbps, name) for name, mbps in each_mbps.items() if mbps is not None)
    ends = dict.fromkeys((rate_text(known[0][0]), rate_text(known[-1][0])))
    rates = f"{' to '.join(ends)} Mbit/s on {len(each_mbps)} pairs"
    slowest = ", ".join(f"{name} {rate_text(mbps)}" for mbps, name in known[:MOST_NAMED])
    return rates + (f"; the slowest: {slowest}" if len(ends) > 1 else "")


def shortfall(view: RunView) -> Iterator[Finding]:
    """Yield a finding on tests that failed or were not measured; it is the headline if nothing was measured."""
    over = [repetition for repetition in view.every if repetition.status is not Status.INTERRUPTED]
    by_cell = group_by(over, lambda repetition: repetition.cell)
    numbers = [cell.number for cell in view.plan.cells]
    left_out = [number for number in numbers if number not in by_cell]
    failed = {number: own for number, own in by_cell.items() if all(one.status is not Status.OK for one in own)}
    sentences = [*_end_text(view.info, len(numbers), left_out), *_find_failed(failed, len(numbers))]
    if sentences:
        ended_well = view.info.status in (RunStatus.COMPLETE, RunStatus.PARTIAL)
        level = Severity.ERROR if failed or ended_well else Severity.WARNING
        counts = {"tests": len(numbers), "failed": len(failed), "not_measured": len(left_out)}
        weight = Weight.MISSING if any(one.status is Status.OK for one in over) else Weight.FAILED
        brief = lower_first(sentences[0][0]) if weight is Weight.FAILED else ""
        text = " ".join(f"{what}{rest}" for what, rest in sentences)
        yield Finding("not-measured", text, weight, level, tests(sorted([*left_out, *failed])), counts, brief=brief)


def _end_text(info: RunInfo, count: int, left_out: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield a sentence on tests that were not measured, as (headline, rest): `Interrupted after 3 of 7 tests`, `.`."""
    done = count - len(left_out)
    if info.status is RunStatus.INTERRUPTED:
        yield f"Interrupted after {done} of {plural(count, 'test')}", "."
    elif info.status is RunStatus.RUNNING:
        yield "The run has not ended, or its controller died", f": {done} of {plural(count, 'test')} measured so far."
    elif not done:
        yield "No test was measured", "."
    elif left_out:
        yield f"{len(left_out)} of {plural(count, 'test')} not measured", f": {numbers_text(left_out)}."


def _find_failed(failed: dict[int, list[RepetitionHead]], count: int) -> Iterator[tuple[str, str]]:
    if not failed:
        return
    which = numbers_text(sorted(failed)) if len(failed) == count == 1 else f"{len(failed)} of {plural(count, 'test')}"
    what = "failed" if any(one.status is Status.FAILED for own in failed.values() for one in own) else "gave no result"
    reasons = Counter(own[-1].reason or "no reason was stored" for own in failed.values())
    more = " The notes give the other reasons." if len(reasons) > 1 else ""
    which = all_tests(count) if len(failed) == count > 1 else upper_first(which)
    yield f"{which} {what}", f": {end_sentence(reasons.most_common(1)[0][0])}{more}"


def findings_on_exclusions(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield findings on tests that lack pairs, and on tests of which half of the repetitions or more do not count."""
    in_part = [cell for cell in cells if any(excluded.status is Status.OK for excluded in cell.exclusions)]
    if in_part:
        numbers = [cell.cell.number for cell in in_part]
        reasons = [each.reason or "" for cell in in_part for each in cell.exclusions if each.status is Status.OK]
        different = list(dict.fromkeys(reason.rstrip(".") for reason in reasons))
        more = f", and {len(different) - 1} more in the notes" if len(different) > 1 else ""
        yield _PAIRS_MISSING.say(tests(numbers), tests=numbers_text(numbers), reason=different[0], more=more)
    most = [cell.cell.number for cell in cells if 0 < cell.counted <= len(_left_out(cell))]
    if most:
        yield _LEFT_OUT.say(tests(most), tests=numbers_text(most))


def _left_out(cell: CellSummary) -> list[Exclusion]:
    """Return the repetitions of a test that are not counted and were not measured again."""
    return [each for each in cell.exclusions if each.status is not Status.OK and not each.measured_again]


def retest_finding(view: RunView, again: RunView, cell: Cell, together: str) -> Finding:
    """Return the finding on a retest: `Test 3 varied by 28 % over 5 repetitions; over 15 more by 12 %, …`.

    `again` has the repetitions of the retest; `together` says what all repetitions give.
    """
    first, second = view.values_of(cell, view.planned), view.values_of(cell, again.every)
    spread, later = variation(first), variation(second)
    text = f"Test {cell.number} varied by {_percent(spread)} over {plural(len(first), 'repetition')}"
    subject, numbers = tests([cell.number]), {"variation": spread, "variation_again": later}
    if later is None:
        text += "; measured again, it gave no valid result."
        return Finding("retest-failed", text, Weight.MISSING, Severity.WARNING, subject, numbers)
    change = fmean(second) / fmean(first) - 1
    way = "higher" if change > 0 else "lower"
    mean = "with the same mean" if abs(change) < 0.005 else f"its mean {100 * abs(change):.0f} % {way}"
    text += f"; over {len(second)} more by {_percent(later)}, {mean}{together and f'; {together}'}."
    return Finding("retest", text, Weight.DETAIL, subject=subject, numbers=numbers)


def retransmit_findings(view: RunView, again: RunView) -> Iterator[Finding]:
    """Yield findings on whether retransmits make the tests vary that were measured again, over all repetitions."""
    assert view.plan.retest is not None
    quiet: list[int] = []
    for cell in again.plan.cells:
        own = [one for one in (*view.results.each, *again.results.each) if one.cell.number == cell.number]
        known = [
            (value if cell.in_messages else 1 / value, one.rows[None][RETRANSMITS.name])
            for one in own
            if (value := view.stored.value(one.repetition)) and one.rows[None][RETRANSMITS.name] is not None
        ]
        if not known:
            continue
        times_s, counts = zip(*known, strict=True)
        verdict = blame_retransmits(times_s, counts, view.plan.retest.variation)
        if verdict is Retransmits.NONE:
            quiet.append(cell.number)
            continue
        others_s = [time_s for time_s, count in known if not count]
        numbers = {"retransmits": sum(counts), "variation_of_others": variation(others_s)}
        words = {"test": cell.number, "count": plural(sum(counts), "retransmit"), "all": len(known)}
        words |= {"some": len(known) - len(others_s), "quiet": len(others_s), "left": _percent(variation(others_s))}
        yield _RETRANSMITS[verdict].say(tests([cell.number]), numbers, **words)
    if quiet:
        yield _NOT_RETRANSMITTED.say(tests(quiet), {"retransmits": 0}, tests=numbers_text(quiet))


def steadiness_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding on whether more flows vary less, if tests differ in nothing else and were repeated."""
    alike = {replace(cell, number=0, parallel=1) for cell in view.plan.cells}
    few, *others = sorted(view.plan.cells, key=lambda cell: cell.parallel)
    if len(alike) > 1 or not others:
        return
    ends = (few, others[-1])
    values = [view.values_of(cell, view.planned) for cell in ends]
    verdict = steadier(*values)
    if verdict is None:
        return
    rows = [(plural(cell.parallel, "flow"), variation(own), len(own)) for cell, own in zip(ends, values, strict=True)]
    best, other = rows if verdict is Steadier.FIRST else reversed(rows)
    numbers = {f"variation_{cell.parallel}_flows": row[1] for cell, row in zip(ends, rows, strict=True)}
    each = f"{best[2]} repetitions each" if best[2] == other[2] else f"{best[2]} and {other[2]} repetitions"
    words = {"best": best[0], "other": other[0], "each": each, "less": _percent(best[1]), "more": _percent(other[1])}
    sentence = _ALIKE if verdict is Steadier.NEITHER else _STEADIER
    found = sentence.say(tests(cell.number for cell in ends), numbers, **words)
    yield replace(found, brief=f"{best[0]} vary less than {other[0]}" if sentence is _STEADIER else "")


def until_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding on the confidence intervals of the means, if the scenario sets a bound (`until`)."""
    until = view.plan.until
    if until is None:
        return
    widths = {cell.number: ci95(view.values_of(cell, view.every)) for cell in view.plan.cells}
    wide = {number: width for number, width in widths.items() if width is None or width >= until.ci95}
    bound = f"{100 * until.ci95:g} %"
    if not wide:
        yield _NARROW.say(bound=bound)
        return
    worst = sorted(wide, key=lambda number: -(wide[number] or float("inf")))
    which = tests_named([f"test {number} ({_percent(wide[number])})" for number in worst], "widest in")
    yield _WIDE.say(tests(sorted(wide)), count=until.most, bound=bound, tests=which)


def _percent(share: float | None) -> str:
    return "an unknown amount" if share is None else f"{pct_text(100 * share)} %"

"""What the answer of `regress` begins with, night after night: what made its exit code; and patterns of weekdays."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from mesh_histories import LEVEL, Fault, History, judge

from rigctl.analysis.nights.history import Nights
from rigctl.analysis.nights.regressions import Regressions, judge_nights
from rigctl.cli.results.regress import regress_json
from rigctl.model.statistics.changes import NightPoint
from rigctl.report.regressions import as_junit, as_markdown, regressions_document

NODES = ("a", "b", "c", "d")
MONDAY = datetime(2026, 6, 1, 2, 30, tzinfo=UTC)
AB, CD = ("a", "b"), ("c", "d")


def nights(faults: Sequence[Fault], last: int, nodes: Sequence[str] = NODES) -> Iterator[Regressions]:
    """Yield the verdict on each night from the first change on."""
    seen = History(tuple(nodes), last + 1, 0.001, tuple(faults), "answers").seen()
    for night in range(min(own.begin for own in faults), last + 1):
        yield judge(seen, night)


def first_told(text: str) -> str:
    """Return the first change in a text: `above` or `below` for a sentence, `+` or `−` for a table."""
    found = re.search(r"\d % (above|below)|\| ([+−])\d", text)
    return "" if found is None else found[1] or found[2]


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(AB, 0.94, 15), Fault(CD, 1.10, 15)],  # on one night
        [Fault(AB, 0.90, 15), Fault(AB, 0.95 / 0.90, 25)],  # half of a drop comes back
        [Fault(AB, 0.96, 15), Fault(CD, 1.15, 25)],  # a gain after a drop that nobody accepted
        [Fault(CD, 1.15, 15), Fault(AB, 0.96, 25)],
        [Fault(("a", "sending"), 0.95, 15), Fault(("d", "receiving"), 1.2, 22)],
        # Made after the fix: three gains, beside one drop; a drop that ends while another lasts.
        [Fault(("b", "a"), 0.97, 15), *(Fault(("c", own), 1.08, 15) for own in "ab"), Fault(("d", "a"), 1.09, 15)],
        [Fault(AB, 0.85, 15, 22), Fault(CD, 0.96, 18)],
    ],
)
def test_what_made_the_exit_code_leads_on_every_night(faults: list[Fault]) -> None:
    codes = []
    for found in nights(faults, 32):
        document = regressions_document(found)
        codes.append(found.failed)
        if found.failed:
            assert first_told(document.answer) == "below", document.answer
            table = as_markdown(found).partition(document.answer)[2]
            assert first_told(table) == "−", table
            assert json.loads(regress_json(found))["answer"] == document.answer  # as a night's message has it
        else:
            assert "below" not in document.answer
    assert any(codes)


def test_a_half_of_a_drop_that_comes_back_is_told_after_what_is_left_of_the_drop() -> None:
    *_, found = nights([Fault(AB, 0.90, 15), Fault(AB, 0.95 / 0.90, 25)], 26)
    assert re.fullmatch(
        r"Not accepted: a → b, test 1: goodput 89\d(\.\d)? Mbit/s, 5\.\d % below the level before 2026-11-16 \(.*\)\. "
        r"New: a → b, test 1: goodput .*, 5\.\d % above the level before 2026-11-26 \(.*\)\.",
        regressions_document(found).answer,
    )


def test_junit_fails_the_case_of_a_node_that_is_named_with_some_of_its_tests() -> None:
    *_, found = nights([Fault(("a", own), 0.9, 15) for own in "bc"], 16)
    assert [shift.series.tests for shift in found.news] == [(1, 2)]
    assert 'failures="1"' in as_junit(found).partition("<testcase")[0]


def of_weekdays(ratios: dict[int, float], count: int, begin: datetime = MONDAY, days: int = 1) -> Nights:
    """Return nights of one pair, with a ratio for each of some weekdays (0 is Monday)."""
    seen = History(("a", "b"), count, 0.001, (), "weekdays").seen()
    times = [begin + timedelta(days=days * night) for night in range(count)]
    runs = tuple(replace(run, started_at=at.timestamp()) for run, at in zip(seen.runs, times, strict=True))
    points = tuple(
        NightPoint((point.value or LEVEL) * ratios.get(at.weekday(), 1.0))
        for point, at in zip(seen.series[0].points, times, strict=True)
    )
    return replace(seen, runs=runs, series=(replace(seen.series[0], points=points),))


def each(seen: Nights) -> Iterator[tuple[int, Regressions, str]]:
    """Yield (night, verdict, answer)."""
    for night in range(6, len(seen.runs)):
        found = judge(seen, night)
        yield night, found, regressions_document(found).answer


WEEKEND = {5: 0.95, 6: 0.95}


@pytest.mark.parametrize("ratio", [0.95, 0.88, 0.97])
def test_weekends_that_are_slower_fail_no_monday_and_are_named_once_there_are_four(ratio: float) -> None:
    told = f"Saturdays and Sundays {round(100 - 100 * ratio)} % lower: goodput of a → b, test 1."
    for night, found, answer in each(of_weekdays(dict.fromkeys(WEEKEND, ratio), 50)):
        if night % 7 < 5:
            assert (found.failed, found.standing) == (False, ()), answer
        if night >= 28:
            assert (found.failed, found.news) == (False, ()), answer
        assert (told in answer) is (night >= 27), answer
    new = [night for night, found, _ in each(of_weekdays(WEEKEND, 50)) if any(own.new for own in found.weekly)]
    assert new == [27]  # the fourth Sunday


@pytest.mark.parametrize(
    ("ratios", "told"),
    [
        ({6: 0.9}, "Sundays 10 % lower: goodput of a → b, test 1."),
        ({0: 1.06, 2: 1.06}, "Mondays and Wednesdays 6 % higher: goodput of a → b, test 1."),
        ({4: 0.976}, "Fridays 2.4 % lower: goodput of a → b, test 1."),
        ({0: 0.93, 1: 0.93, 2: 0.93}, "Mondays, Tuesdays and Wednesdays 7 % lower: goodput of a → b, test 1."),
    ],
)
def test_a_pattern_is_named_by_its_weekdays(ratios: dict[int, float], told: str) -> None:
    *_, (_, found, answer) = each(of_weekdays(ratios, 45))
    assert answer.endswith(told)
    assert not found.failed
    [pattern] = json.loads(regress_json(found))["weekly"]
    assert pattern["weekdays"] == [weekday + 1 for weekday in ratios]


def test_a_change_of_level_beside_a_pattern_is_found_as_elsewhere() -> None:
    seen = of_weekdays(WEEKEND, 50)
    points = [
        NightPoint((point.value or LEVEL) * (0.9 if night >= 40 else 1))
        for night, point in enumerate(seen.series[0].points)
    ]
    seen = replace(seen, series=(replace(seen.series[0], points=tuple(points)),))
    found = judge(seen, 42)
    [shift] = (*found.news, *found.standing)
    assert (shift.change.at, found.failed) == (40, True)
    assert shift.ratio == pytest.approx(0.9, abs=0.01)
    assert regressions_document(found).answer.endswith("Saturdays and Sundays 5 % lower: goodput of a → b, test 1.")


def test_the_weekday_is_that_of_the_local_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that begins at 23:00 UTC on Friday begins on Saturday where clocks are ahead."""
    import time

    seen = of_weekdays({4: 0.95, 5: 0.95}, 45, MONDAY.replace(hour=23))
    monkeypatch.setenv("TZ", "XXX-3")
    time.tzset()
    try:
        found = judge_nights(seen, ())
        assert [list(own.pattern.ratios) for own in found.weekly] == [[5, 6]]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_level_that_is_back_tonight_does_not_stand() -> None:
    faults = [Fault(AB, 0.9, 15, 20)]
    verdicts = list(nights(faults, 22))
    assert [found.failed for found in verdicts] == [False, True, True, True, True, False, False, False]
    assert verdicts[5].standing == ()  # one night: whether it has ended, the next one decides
    assert verdicts[6].news[0].better
    half = [Fault(AB, 0.9, 15), Fault(AB, 0.95 / 0.9, 20)]
    assert all(found.failed for found in list(nights(half, 22))[1:])  # the rest of the drop stands

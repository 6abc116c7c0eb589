"""What is news of a run: from nights in a store."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import builders as make
import many_nights as nightly
import pytest
from cases import from_file
from known import known

from rigctl.analysis.nights.regressions import Regressions, Shift, judge_run
from rigctl.base.errors import InputError
from rigctl.model.statistics.changes import Rules
from rigctl.records import CONFIRMS, Acceptance, Pair, RunPlan, RunStatus
from rigctl.site.pages import changes
from rigctl.store import Store, open_store

Measured: TypeAlias = Callable[..., Store]
PLAN = nightly.mesh_plan(("a", "b", "c"))
ONE_WAY = replace(PLAN, cells=PLAN.cells[:1])
SLOW = [("c", "sending", (5, 6))]
KERNEL = {"kernel": "Linux 6.12.47+rpt-rpi-v8 aarch64"}
CHANGED, NIGHTS = 12, 16  # the night of the change, and all of them


def slow_sender(night: int, pair: Pair) -> float:
    return 0.95 if night >= CHANGED and pair.source == "c" else 1.0


def slow_all(night: int, pair: Pair) -> float:
    return 0.95 if night >= CHANGED else 1.0


@contextmanager
def stored(path: Path, plan: RunPlan, nights: int, change: nightly.Change, facts: Any = None) -> Iterator[Store]:
    """Open a store of that many nights; from the night of the change on the nodes have these facts."""
    with open_store(str(path), create=True) as store:
        for night in range(nights):
            nightly.measure(store, plan, night, change, facts=facts if night >= CHANGED else None)
        yield store


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores that were made, by the change in them."""
    return {"folder": tmp_path_factory.mktemp("nights")}


@pytest.fixture
def measured(kept: dict[str, Path], tmp_path: Path) -> Iterator[Measured]:
    """Makes a store of 16 nights; each change is measured once, and each test has a copy."""
    with ExitStack() as opened:

        def made(change: nightly.Change, facts: dict[str, Any] | None = None) -> Store:
            name = f"{change.__name__}{len(facts or {})}.db"
            if name not in kept:
                kept[name] = kept["folder"] / name
                with stored(kept[name], PLAN, NIGHTS, change, facts) as store:
                    judge_run(store, store.run())  # which keeps each night's figures
            return opened.enter_context(open_store(str(shutil.copy(kept[name], tmp_path))))

        yield made


def of(store: Store, night: int) -> Regressions:
    return judge_run(store, store.run(store.run_ids()[night]))


def subjects(shifts: tuple[Shift, ...]) -> list[tuple[str | None, str | None, tuple[int, ...]]]:
    return [(shift.series.subject.node, shift.series.subject.role, shift.series.tests) for shift in shifts]


def test_a_slow_node_is_news_once_by_its_role_with_what_changed_and_not_once_for_each_pair(measured: Measured) -> None:
    store = measured(slow_sender, KERNEL)
    found = of(store, CHANGED + 1)
    (shift,) = found.news
    assert subjects(found.news) == SLOW
    assert shift.ratio == pytest.approx(0.95, abs=0.005)
    assert (shift.better, shift.since.run, found.failed) == (False, store.run_ids()[CHANGED], True)
    assert len(shift.explains) == 2
    facts = {(fact.name, fact.after, node) for fact in shift.facts for node in fact.where}
    assert facts == {("kernel", KERNEL["kernel"], node) for node in "abc"}


def test_what_all_nodes_have_in_common_is_not_called_a_node(measured: Measured) -> None:
    found = of(measured(slow_all), CHANGED + 1)
    assert sorted(subjects(found.news)) == [(None, None, (number,)) for number in range(1, 7)]


@from_file
def test_the_pair_that_bears_a_change_is_named(tmp_path: Path, shares: Any, leader: Any, explained: int) -> None:
    pairs = (Pair("a", "b"), Pair("c", "d"), Pair("e", "f"), Pair("g", "h"))[: len(shares)]
    cell = make.cell(1, pairs=pairs, duration_s=1.0)  # all pairs at once
    plan = make.plan([cell], scenario_name="nightly", rig_name="lab", virtual=None)

    def change(night: int, pair: Pair) -> float:
        return shares[pairs.index(pair)] if night >= CHANGED else 1.0

    with stored(tmp_path / "store.db", plan, CHANGED + 2, change) as store:
        found = judge_run(store, store.run())
    streams = [shift.series.subject.stream for shift in found.news]
    assert [stream and f"{stream.sender} → {stream.receiver}" for stream in streams] == [leader]
    assert found.news[0].ratio == pytest.approx(0.9, abs=0.01)
    assert len(found.news[0].explains) == explained


def test_a_dip_of_two_nights_ends_and_its_end_is_news(tmp_path: Path) -> None:
    def dip(night: int, pair: Pair) -> float:
        return 0.92 if night in (CHANGED, CHANGED + 1) else 1.0

    with stored(tmp_path / "store.db", ONE_WAY, CHANGED + 5, dip) as store:
        assert of(store, CHANGED + 1).failed
        found, after = of(store, CHANGED + 3), of(store, CHANGED + 4)
        first, last = store.run_ids()[CHANGED], store.run_ids()[CHANGED + 2]
    [back] = found.news
    assert (back.better, back.since.run, known(back.returns).run, found.standing) == (True, last, first, ())
    assert (after.news, after.standing, after.failed) == ((), (), False)
    assert [shift.better for shift in after.history] == [False, True]


def test_the_steps_of_a_drift_stand_as_one_change(tmp_path: Path) -> None:
    def drift(night: int, pair: Pair) -> float:
        return 1 - 0.06 * min(max(night - 15, 0) / 20, 1)

    with stored(tmp_path / "store.db", ONE_WAY, 50, drift) as store:
        [standing] = of(store, 49).standing
        store_runs = store.run_ids()
    assert standing.change.gradual
    assert standing.ratio == pytest.approx(0.94, abs=0.01)
    assert standing.since.run < store_runs[40]


@from_file
def test_what_stands_is_a_level_now_against_the_best_held(levels: Any, ratio: Any, since: Any, tmp_path: Path) -> None:
    nights = [level for level, count in levels for _ in range(count)]
    with stored(tmp_path / "store.db", ONE_WAY, len(nights), lambda night, _: nights[night]) as store:
        found = of(store, len(nights) - 1)
        runs = store.run_ids()
    assert found.news == ()
    assert [shift.since.run for shift in found.standing] == ([] if since is None else [runs[since]])
    assert [shift.ratio for shift in found.standing] == ([] if ratio is None else [pytest.approx(ratio, abs=0.005)])
    assert found.failed == (ratio is not None and ratio < 1)


def test_a_change_is_news_once_and_stands_until_it_is_accepted(measured: Measured) -> None:
    store = measured(slow_sender)
    found = of(store, CHANGED + 3)
    assert (found.news, subjects(found.standing), found.failed) == ((), SLOW, True)
    store.history.accept(Acceptance(found.run.run, 1.8e9, "anna@lab", "a new cable"))
    nightly.measure(store, PLAN, NIGHTS, slow_sender)
    later = judge_run(store, store.run())
    assert (later.news, later.standing, later.failed) == ((), (), False)
    assert (known(later.accepted).because, subjects(later.history)) == ("a new cable", SLOW)


def test_a_node_that_is_found_after_one_of_its_pairs_stands_with_all_of_them(tmp_path: Path) -> None:
    def pair_by_pair(night: int, pair: Pair) -> float:
        return 0.95 if pair.source == "c" and night >= CHANGED + 2 * (pair.destination == "b") else 1.0

    with stored(tmp_path / "store.db", PLAN, CHANGED + 4, pair_by_pair) as store:
        found = of(store, CHANGED + 3)
    assert (found.news, subjects(found.standing), found.failed) == ((), SLOW, True)
    assert len(found.standing[0].explains) == 2
    assert known(changes(found)).rows[0].entries[-1].text == "not accepted"


def test_a_night_that_is_accepted_at_once_is_never_news(measured: Measured) -> None:
    store = measured(slow_sender)
    found = of(store, CHANGED)
    assert sorted(own.series.tests for own in found.suspected) == [(5,), (6,)]
    store.history.accept(Acceptance(found.run.run, 1.8e9, "anna@lab", "a new cable"))
    for night in range(CHANGED + 1, NIGHTS):
        later = of(store, night)
        assert (later.news, later.standing, later.history) == ((), (), ())


def test_what_changed_before_a_night_without_a_value_is_named_and_one_night_twice_is_enough(measured: Measured) -> None:
    store = measured(nightly.steady)
    at_s = nightly.FIRST_S + NIGHTS * nightly.DAY_S
    broken = store.begin(PLAN, {"rigctl": "0.1.0"}, {node: make.facts(**KERNEL) for node in PLAN.links}, at_s)
    store.finish(broken, RunStatus.PARTIAL, at_s + 60)
    run = nightly.measure(store, PLAN, NIGHTS + 1, slow_sender, facts=KERNEL)
    nightly.measure(store, PLAN, NIGHTS + 1, slow_sender, facts=KERNEL, tags={CONFIRMS: run})
    (shift,) = judge_run(store, store.run(run)).news
    assert (subjects((shift,)), [fact.name for fact in shift.facts]) == (SLOW, ["kernel"])


def test_a_second_measurement_makes_a_changed_night_with_a_changed_fact_news_at_once(measured: Measured) -> None:
    store = measured(slow_sender, KERNEL)
    found = of(store, CHANGED)
    assert (found.news, found.to_confirm) == ((), (5, 6))
    cells = [cell for cell in PLAN.cells if cell.number in found.to_confirm]
    nightly.measure(store, PLAN, CHANGED, slow_sender, tags={CONFIRMS: found.run.run}, cells=cells)
    again = of(store, CHANGED)
    assert subjects(again.news) == SLOW
    assert [again.confirmed, *(shift.confirmed for shift in again.news)] == [True, True]


def test_what_a_second_measurement_contradicts_is_no_news_and_the_run_of_it_is_no_night(measured: Measured) -> None:
    store = measured(slow_sender)
    found = of(store, CHANGED + 1)
    assert subjects(found.news) == SLOW
    nightly.confirm(store, PLAN, CHANGED + 1, found.run.run)
    again = judge_run(store, store.run(found.run.run))
    assert (again.news, len(again.nights.runs)) == ((), CHANGED + 2)


def test_runs_of_another_scenario_or_rig_and_runs_that_go_on_are_no_nights(measured: Measured) -> None:
    store = measured(slow_sender)
    for other in (replace(PLAN, scenario_name="other"), replace(PLAN, rig_name="other")):
        nightly.measure(store, other, NIGHTS)
    store.begin(PLAN, {}, {}, nightly.FIRST_S + (NIGHTS + 1) * nightly.DAY_S)
    nightly.measure(store, PLAN, NIGHTS + 2)
    assert len(judge_run(store, store.run()).nights.runs) == NIGHTS + 1


def test_a_run_is_compared_with_a_baseline_run_or_the_latest_with_a_tag(measured: Measured) -> None:
    store = measured(slow_sender, KERNEL)
    runs = store.run_ids()
    store.history.tag(runs[3], {"firmware": "1.2"})
    for baseline in (runs[3], "firmware=1.2"):
        found = judge_run(store, store.run(), baseline=baseline)
        assert known(found.baseline).run == runs[3]
        assert {shift.series.tests for shift in found.news} == {(5,), (6,)}
        assert {(shift.better, shift.since.run) for shift in found.news} == {(False, runs[-1])}
        assert (found.judged, found.too_few) == (6, 0)
        assert {change.name for shift in found.news for change in shift.facts} == {"kernel", "firmware"}
    assert judge_run(store, store.run(), baseline=runs[CHANGED + 1]).news == ()
    early = judge_run(store, store.run(runs[2]), baseline=runs[0])
    assert (early.judged, early.too_few, early.news) == (0, 6, ())  # three nights: their noise is not known


def test_the_last_nights_only_know_no_earlier_level_and_a_baseline_that_is_none_is_refused(measured: Measured) -> None:
    store = measured(slow_sender)
    found = judge_run(store, store.run(), baseline="8")
    assert (len(found.nights.runs), found.given) == (9, "8")
    for baseline in ("3", "firmware=9", "nonsense", store.run().run):
        with pytest.raises(InputError):
            judge_run(store, store.run(), baseline=baseline)


def test_few_nights_are_counted_not_judged_and_a_test_that_failed_tonight_neither(measured: Measured) -> None:
    store = measured(slow_sender)
    found = of(store, 3)
    assert (found.judged, found.too_few) == (0, 12)  # six tests, three nodes in two roles
    larger = Rules(bound=0.10)  # ignores what is smaller
    assert judge_run(store, store.run(), rules=larger).history == ()
    at = nightly.FIRST_S + NIGHTS * nightly.DAY_S
    store.finish(store.begin(PLAN, {}, {}, at), RunStatus.PARTIAL, at + 1)
    found = judge_run(store, store.run())
    assert (found.judged, found.too_few, found.news) == (0, 0, ())

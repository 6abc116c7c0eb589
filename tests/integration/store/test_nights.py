"""The figures of nights, in both databases."""

import random
import tracemalloc
from dataclasses import replace
from typing import Any, Final

import builders as make
import pytest
from many_nights import DAY_S, FIRST_S, change

from rigctl.analysis.nights.history import load_figures, load_nights
from rigctl.analysis.nights.regressions import judge_run
from rigctl.base.errors import InputError
from rigctl.records import Direction, Pair, Repetition, Retest, RunInfo, RunPlan, RunStatus, Status
from rigctl.report.regressions import regressions_document
from rigctl.store import Store

PAIRS: Final = (Pair("a", "b"), Pair("c", "d"), Pair("a", "d"))
CELLS: Final = (
    make.cell(1, pairs=PAIRS[:1], duration_s=1.0),
    make.cell(2, pairs=PAIRS, duration_s=1.0),
    make.cell(3, pairs=PAIRS, duration_s=1.0, parallel=3),
    make.cell(4, pairs=PAIRS[:2], duration_s=1.0, direction=Direction.BOTH),
    make.cell(5, pairs=PAIRS[:1], duration_s=1.0, parallel=2, direction=Direction.REVERSE),
    make.cell(6, pairs=PAIRS[:1], duration_s=1.0),  # as the first: they are told apart by their order
)


def odd(repetition: Repetition, draws: random.Random) -> Repetition:
    """As it was measured, or as one that was not, or not whole."""
    flows = list(repetition.flows)
    match draws.randrange(9):
        case 0:
            return make.failed(CELLS[repetition.cell - 1], repetition=repetition.repetition)
        case 1:
            return replace(repetition, status=Status.INVALID, reason="skew")
        case 2:
            return replace(repetition, window_start_ns=None, window_end_ns=None)
        case 3:
            del flows[draws.randrange(len(flows))]
        case 4:
            flows[draws.randrange(len(flows))] = replace(flows[0], bytes=None)
        case 5:
            flows.append(flows[-1])
        case 6:
            draws.shuffle(flows)
        case 7:
            flows = []
    return replace(repetition, flows=tuple(flows))


def night(store: Store, plan: RunPlan, at: int, *, whole: bool = False) -> RunInfo:
    draws = random.Random(at)
    run = store.begin(plan, {}, {}, FIRST_S + at * DAY_S)
    for cell in plan.cells:
        for number in range(1, plan.repeat + 2):
            made = make.repetition(cell, [draws.gauss(900, 20) for _ in cell.streams], number=number)
            store.add(run, made if whole else odd(made, draws))
    store.finish(run, RunStatus.COMPLETE, FIRST_S + at * DAY_S + 60)
    return store.run(run)


@pytest.mark.parametrize("fields", [{}, {"retest": Retest(0.05, 2)}], ids=["plain", "with a retest"])
def test_figures_of_nights_are_read_from_kept_results_once_these_are_kept(store: Store, fields: dict[str, Any]) -> None:
    infos = [night(store, make.plan(CELLS, repeat=1, **fields), at) for at in range(4)]
    computed = load_figures(store, infos, {})
    change(store, "DELETE FROM flows")  # nothing is left to compute from
    again = load_figures(store, infos, {})
    assert again == computed
    assert [list(own) for own in again.values()] == [list(own) for own in computed.values()], "in the plan's order"
    assert any(value is None for own in again.values() for value in own.values())
    assert sum(value is not None for own in again.values() for value in own.values()) > 20


def test_a_night_with_a_name_that_no_flow_has_has_no_value_of_its_stream(store: Store) -> None:
    info = night(store, make.plan(CELLS[:2]), 0, whole=True)
    change(store, "UPDATE flows SET source = :name WHERE position = 1", name="a\x1fb")
    values = list(load_figures(store, [info], {})[info.run].values())
    assert [value is None for value in values] == [False, True, False, True, False]


def test_a_damaged_night_or_plan_is_named_and_left_out(store: Store) -> None:
    infos = [night(store, make.plan(CELLS[:2]), at, whole=True) for at in range(3)]
    change(store, "UPDATE repetitions SET cell = 77 WHERE run = :run", run=infos[1].run)
    seen = load_nights(store, infos[2])
    assert [info.run for info in seen.runs] == [infos[0].run, infos[2].run]
    assert [f"run {infos[1].run}, test 77" in message for message in seen.damaged] == [True]
    found = regressions_document(judge_run(store, infos[2])).findings
    assert "runs-damaged" in [finding.code for finding in found]
    with pytest.raises(InputError, match=rf"run {infos[1].run}, test 77.*the run's plan has no such test"):
        load_nights(store, infos[1])
    change(store, "UPDATE runs SET plan = '{}' WHERE run = :run", run=infos[1].run)
    (message,) = load_nights(store, infos[2]).damaged
    assert f"run {infos[1].run} can't be read" in message


def test_the_flows_that_a_plan_claims_take_no_memory(store: Store) -> None:
    cells = [make.cell(number, parallel=10_000) for number in range(1, 40)]
    info = store.run(store.begin(make.plan(cells), {}, {}, FIRST_S))
    store.add(info.run, make.repetition(make.cell(1), [900, 900]))
    tracemalloc.start()
    load_figures(store, [info], {})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


def test_flows_of_unknown_directions_leave_their_stream_unknown(store: Store) -> None:
    run = store.begin(make.plan(CELLS[:1]), {}, {}, FIRST_S)
    store.add(run, make.changing_flows(make.repetition(CELLS[0], [900]), direction=Direction.REVERSE))
    assert list(load_figures(store, [store.run(run)], {})[run].values()) == [None]

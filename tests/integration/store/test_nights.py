"""Nights that are read many at a time have the values of nights that are read one by one, in both databases."""

import random
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import builders as make
import pytest
from many_nights import DAY_S, FIRST_S
from sqlalchemy import text

from rigctl.analysis.nights.history import Values, measured, night_values, nights
from rigctl.analysis.nights.night_totals import suffices
from rigctl.analysis.nights.regressions import news
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.records import Direction, Flow, Pair, Repetition, Retest, RunInfo, RunPlan, RunStatus, Status
from rigctl.report.nights.page import document
from rigctl.store import Store
from rigctl.store.history import writing

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


def changed(store: Store, statement: str, **values: str) -> None:
    with writing(store._engine) as connection:
        connection.execute(text(statement), values)


def one_by_one(store: Store, infos: Sequence[RunInfo]) -> dict[str, Values]:
    return {info.run: night_values(RunView(info, store.repetitions(info.run))) for info in infos}


@pytest.mark.parametrize("fields", [{}, {"retest": Retest(0.05, 2)}], ids=["plain", "with a retest"])
def test_nights_read_at_once_have_the_values_of_nights_read_one_by_one(store: Store, fields: dict[str, Any]) -> None:
    plan = make.plan(CELLS, repeat=1, **fields)
    infos = [night(store, plan, at) for at in range(4)]
    assert suffices(plan)
    found = measured(store, infos, {})
    expected = one_by_one(store, infos)
    assert found == expected
    assert [list(own) for own in found.values()] == [list(own) for own in expected.values()], "in the plan's order"
    assert any(value is None for own in found.values() for value in own.values())
    assert sum(value is not None for own in found.values() for value in own.values()) > 20


def test_nights_of_messages_and_probes_are_read_whole(store: Store) -> None:
    plans = [
        make.plan([make.cell(1, test="pingpong", message_bytes=64, iterations=10, duration_s=1.0)]),
        make.plan([make.cell(1, latency_ms=10, duration_s=1.0)]),
    ]
    infos = [night(store, plan, at, whole=True) for at, plan in enumerate(plans)]
    assert not any(map(suffices, plans))
    assert measured(store, infos, {}) == one_by_one(store, infos)


def test_a_night_with_a_name_that_no_flow_has_is_read_whole(store: Store) -> None:
    info = night(store, make.plan(CELLS[:2]), 0, whole=True)
    changed(store, "UPDATE flows SET source = :name WHERE position = 1", name="a\x1fb")
    assert measured(store, [info], {}) == one_by_one(store, [info])


def test_a_damaged_night_is_named_and_left_out(store: Store) -> None:
    infos = [night(store, make.plan(CELLS[:2]), at, whole=True) for at in range(3)]
    changed(store, "UPDATE repetitions SET cell = 77 WHERE run = :run", run=infos[1].run)
    seen = nights(store, infos[2])
    assert [info.run for info in seen.runs] == [infos[0].run, infos[2].run]
    assert [f"run {infos[1].run}, test 77" in message for message in seen.damaged] == [True]
    assert any(infos[1].run in finding.text for finding in document(news(store, infos[2])).findings)
    with pytest.raises(InputError, match=rf"run {infos[1].run}, test 77.*the run's plan has no such test"):
        nights(store, infos[1])


def test_only_runs_of_the_scenario_on_the_rig_are_nights(store: Store) -> None:
    plan = make.plan(CELLS[:1])
    others = [replace(plan, scenario_name="other"), replace(plan, rig_name="other")]
    infos = [night(store, own, at, whole=True) for at, own in enumerate([plan, *others, plan])]
    assert [info.run for info in nights(store, infos[-1]).runs] == [infos[0].run, infos[3].run]
    assert [info.run for info in store.latest_first(others[0])] == [infos[1].run]
    assert [info.run for info in store.latest_first()] == [info.run for info in infos[::-1]]


def test_a_plan_that_cannot_be_read_is_named_where_nights_are_looked_for(store: Store) -> None:
    infos = [night(store, make.plan(CELLS[:1]), at, whole=True) for at in range(3)]
    changed(store, "UPDATE runs SET plan = '{}' WHERE run = :run", run=infos[1].run)
    (message,) = nights(store, infos[2]).damaged
    assert f"run {infos[1].run} can't be read" in message


def test_the_flows_that_a_plan_claims_take_no_memory(store: Store) -> None:
    cells = [make.cell(number, parallel=10_000) for number in range(1, 200)]
    info = store.run(store.begin(make.plan(cells), {}, {}, FIRST_S))
    store.add(info.run, make.repetition(make.cell(1), [900, 900]))
    tracemalloc.start()
    measured(store, [info], {})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


def test_the_nights_of_a_scenario_share_their_plan_and_facts(store: Store) -> None:
    plan, known = make.plan(CELLS[:1]), {"a": make.facts(), "b": make.facts(mac="02:00:00:00:00:02")}
    for at in range(2):
        store.begin(plan, {}, known, FIRST_S + at * DAY_S)
    first, second = store.runs()
    assert first.plan is second.plan
    assert first.plan == plan
    assert first.facts["a"] is second.facts["a"]
    assert first.facts == known


def test_flows_of_unknown_directions_leave_their_stream_unknown(store: Store) -> None:
    def turned(flow: Flow) -> Flow:
        return replace(flow, direction=Direction.REVERSE)

    cell = CELLS[0]
    run = store.begin(make.plan([cell]), {}, {}, FIRST_S)
    made = make.repetition(cell, [900])
    store.add(run, replace(made, flows=tuple(map(turned, made.flows))))
    info = store.run(run)
    assert list(measured(store, [info], {})[run].values()) == [None]
    assert measured(store, [info], {}) == one_by_one(store, [info])

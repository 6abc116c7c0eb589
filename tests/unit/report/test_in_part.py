"""A run of which some tests were measured without some of their pairs."""

from dataclasses import replace

import builders

from rigctl.analysis.nights.history import night_values
from rigctl.analysis.run_view import RunView
from rigctl.records import Comparison, Expectation, Pair, Repetition, RunInfo, RunStatus, Status
from rigctl.report.document import document
from rigctl.store import open_store

REASON = "not measured: pi3 → pi4 (pi4: no answer)"
CELLS = tuple(builders.cell(number, parallel=number) for number in (1, 2))
PER_PAIR = Expectation("goodput", "goodput_mbps", ">= 900M per pair", Comparison.AT_LEAST, (1, 2), 900.0, per_pair=True)


def in_part(result: Repetition) -> Repetition:
    flows = tuple(flow for flow in result.flows if flow.pair == Pair("pi1", "pi2"))
    return replace(result, flows=flows, reason=REASON, goodput_median_bps=None)


def run_of(*lacking: int, expected: tuple[Expectation, ...] = ()) -> tuple[RunInfo, list[Repetition]]:
    info = builders.run(builders.plan(CELLS, expectations=expected), status=RunStatus.PARTIAL)
    whole = [builders.repetition(cell, (941.0, 930.0)) for cell in CELLS]
    return info, [in_part(each) if each.cell in lacking else each for each in whole]


def test_the_pairs_that_were_measured_are_kept_and_the_sum_is_unknown() -> None:
    frames = RunView(*run_of(2)).frames
    sums = {row["cell"]: row["goodput_mbps"] for row in frames.derived.cells}
    assert sums[2] is None
    assert round(sums[1]) == 1871
    pairs = {(row["cell"], row["source"]): row["goodput_mbps"] for row in frames.derived.pairs}
    assert (round(pairs[2, "pi1"]), pairs[2, "pi3"]) == (941, None)


def test_only_the_pairs_that_were_not_measured_miss_what_is_expected_of_each() -> None:
    verdicts = document(*run_of(1, 2, expected=(PER_PAIR,))).verdicts
    assert [(verdict.pair, verdict.met) for verdict in verdicts] == [("pi1 → pi2", True), ("pi3 → pi4", False)] * 2
    assert all("pi4: no answer" in verdict.measured for verdict in verdicts if not verdict.met)


def test_a_night_has_the_values_of_its_pairs_and_none_of_the_test() -> None:
    values = night_values(RunView(*run_of(1, 2)))
    by_pair = {str(key.stream): value for key, value in values.items()}
    assert by_pair["None"] is None
    assert round(by_pair["pi1 → pi2"] or 0) == 941
    assert by_pair["pi3 → pi4"] is None


def test_such_a_repetition_is_still_to_be_measured_when_its_run_is_resumed(tmp_path: object) -> None:
    info, repetitions = run_of(2)
    with open_store(f"{tmp_path}/store.db") as store:
        run = store.begin(info.plan, {}, {}, 0.0)
        for repetition in repetitions:
            store.add(run, repetition)
        assert store.statuses(run) == {(1, 1, 1): Status.OK, (2, 1, 1): Status.FAILED}
        assert store.repetitions(run)[1].reason == REASON

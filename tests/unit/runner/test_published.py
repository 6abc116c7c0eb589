"""What a run publishes of itself."""

from dataclasses import replace
from unittest.mock import call, create_autospec

import builders
from progressing import board_of

from rigctl.display.state import MOST_HISTORY, State
from rigctl.measure.orders import channels
from rigctl.records import RunStatus, Status
from rigctl.runner.progress import Everybody, Progress
from rigctl.runner.published import Board

PLAN = builders.plan(builders.gigablox_cells()[:2], repeat=2)
FIRST = PLAN.cells[0]
LIVE = channels([FIRST], lambda: "0" * 32)


def board() -> Board:
    made = board_of(PLAN)
    made.stored(builders.run(PLAN))
    return made


def measuring(seconds: int) -> Board:
    """The first test, whose pairs have received 941 Mbit/s each for so long."""
    made = board()
    made.began(FIRST, 1, 1)
    for second in range(seconds + 1):
        for channel in LIVE:
            made.received(channel, (second + 1) * 10**9, second * 941 * 125_000)
    return made


def test_before_the_first_test_nodes_are_prepared_and_a_resumed_run_begins_where_it_was() -> None:
    state = board_of(PLAN).snapshot()
    assert (state.phase, state.run, state.test, state.streams) == ("preparing", None, None, ())
    assert (state.tests, state.done, state.total, state.left_s) == (2, 0, 4, 40.0)
    done = {(1, 1, 1): Status.OK, (1, 2, 1): Status.OK, (2, 1, 1): Status.OK}
    state = board_of(PLAN, done).snapshot()
    assert (state.done, state.total, state.left_s) == (3, 4, 10.0)


def test_while_a_test_runs_each_pair_has_what_its_receiver_counted_last() -> None:
    state = measuring(3).snapshot()
    assert [stream.name for stream in state.streams] == ["pi1 → pi2", "pi3 → pi4"]
    assert [round(stream.now_mbps or 0) for stream in state.streams] == [941, 941]
    assert [len(stream.history_mbps) for stream in state.streams] == [3, 3]
    assert round(state.streams[0].ceiling_mbps or 0) == 941
    assert state.test is not None
    assert state.test.running
    # Before two counts there is no figure, and a long test keeps its latest figures.
    assert [stream.now_mbps for stream in measuring(0).snapshot().streams] == [None, None]
    assert len(measuring(MOST_HISTORY + 50).snapshot().streams[0].history_mbps) == MOST_HISTORY


def test_after_a_repetition_its_goodput_and_its_row_stand_there() -> None:
    made = measuring(3)
    made.ended(FIRST, builders.repetition(FIRST, (911, 941)))
    made.over(RunStatus.COMPLETE)
    state = made.snapshot()
    assert [stream.now_mbps for stream in state.streams] == [None, None]
    assert [round(stream.measured_mbps or 0) for stream in state.streams] == [911, 941]
    assert (state.done, state.total) == (1, 4)
    assert [(row.level, row.text.split()[3:]) for row in state.rows] == [("ok", ["1,852", "911", "941", "0"])]


def test_the_next_test_does_not_inherit_figures() -> None:
    made = measuring(3)
    made.ended(FIRST, builders.failed(FIRST))
    made.began(PLAN.cells[1], 1, 1)
    (first, _) = made.snapshot().streams
    assert (first.now_mbps, first.measured_mbps, first.history_mbps) == (None, None, ())


def test_a_failure_is_an_error_and_an_invalid_first_attempt_is_not_done() -> None:
    made = board()
    made.began(FIRST, 1, 1)
    made.ended(FIRST, builders.failed(FIRST, "pi4: connection refused"))
    made.ended(FIRST, replace(builders.failed(FIRST, "started too late"), status=Status.INVALID))
    state = made.snapshot()
    assert [(said.level, said.text) for said in state.messages] == [
        ("error", "test 1: failed: pi4: connection refused"),
        ("warning", "test 1: invalid: started too late; measured once more"),
    ]
    assert state.done == 1


def test_the_progress_beside_it_hears_everything() -> None:
    made, heard, changes = board(), create_autospec(Progress, instance=True), []
    made.changed = lambda: changes.append(1)
    everybody, failed = Everybody(made, heard), builders.failed(FIRST)
    everybody.began(FIRST, 1, 1)
    everybody.received(LIVE[0], 1, 1)
    everybody.say("measuring 2 more")
    everybody.ended(FIRST, failed)
    heard.assert_has_calls(
        [call.began(FIRST, 1, 1), call.received(LIVE[0], 1, 1), call.say("measuring 2 more"), call.ended(FIRST, failed)]
    )
    assert changes


def test_the_most_that_is_published_is_read_back() -> None:
    made = measuring(MOST_HISTORY + 1)
    for number in range(300):
        made.say(f"line {number} " + "x" * 2000)
    published = made.snapshot()
    text = published.model_dump_json()
    assert len(text) < 100_000
    assert State.model_validate_json(text) == published

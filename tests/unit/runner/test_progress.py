"""What a user sees while a run goes on, and what it publishes of itself."""

from dataclasses import replace
from io import StringIO
from threading import Event
from types import SimpleNamespace
from unittest.mock import call, create_autospec

import builders
import pytest
from known import known
from progressing import board_of, lines_of
from rich.cells import cell_len
from rich.console import Console, Group

from rigctl.display.layout import draw_progress
from rigctl.display.live_run import MOST_HISTORY, LiveRun
from rigctl.measure.orders import channels
from rigctl.records import Pair, Repetition, RunPlan, RunStatus, Status
from rigctl.runner import board as board_file
from rigctl.runner.board import Board, LinePrinter, print_progress
from rigctl.runner.engine import interval_ms
from rigctl.runner.progress import Broadcast, Progress
from rigctl.settings import Direction

RUN, MEASURED = builders.gigablox()
PLAN = RUN.plan
FIRST, SECOND = PLAN.cells[:2]
LATE = replace(builders.failed(FIRST, "start skew 14 ms exceeds the limit of 10 ms"), status=Status.INVALID)


TWICE = replace(PLAN, cells=PLAN.cells[:2], repeat=2)
LIVE = channels([FIRST], lambda: "0" * 32)


def board_after(plan: RunPlan, *results: Repetition) -> Board:
    """The first tests of a run have ended with these results."""
    made = board_of(plan)
    made.on_run(builders.run(plan))
    for cell, result in zip(plan.cells, results, strict=False):
        made.on_begin(cell, 1, 1)
        made.on_result(cell, result)
    return made


def measuring(plan: RunPlan, *results: Repetition, quarters: int) -> Board:
    """In the test after these, each pair has received 941 Mbit/s for so many quarters of a second."""
    made, cell = board_after(plan, *results), plan.cells[len(results)]
    made.on_begin(cell, 1, 1)
    for quarter in range(quarters + 1):
        for channel in channels([cell], lambda: "0" * 32):
            made.on_bytes(channel, quarter * 250_000_000, quarter * 941 * 125_000 // 4)
    return made


@pytest.mark.parametrize(
    ("result", "left_s"),
    [
        (replace(MEASURED[0], wall_s=12.0), 72.0),  # it learns what a test costs
        (builders.failed(FIRST, wall_s=100.0), 60.0),
        (LATE, 70.0),  # measured once more
    ],
)
def test_the_time_left_is_that_of_the_pace_so_far(result: Repetition, left_s: float) -> None:
    assert board_of(PLAN).snapshot().left_s == 70.0
    assert board_after(PLAN, result).snapshot().left_s == pytest.approx(left_s)


def test_what_a_node_said_commands_no_terminal() -> None:
    failed = builders.failed(FIRST, "pi1: \x1b]0;pwned\x07\x1b[2J\r no")
    assert lines_of(PLAN, [MEASURED[0], failed]).endswith("failed: pi1: ?]0;pwned??[2J? no\n")


def test_what_was_not_granted_stands_at_the_end_of_the_line_where_it_has_no_column() -> None:
    assert lines_of(replace(PLAN, cells=PLAN.cells[2:3]), [MEASURED[2]]).endswith("  MSS 8960→1448\n")


def test_a_message_has_one_size_whatever_carries_it() -> None:
    shapes = (("tcp", 1), ("udp", 3))
    cells = [builders.cell(n, test="pingpong", transport=by, message_bytes=b) for n, (by, b) in enumerate(shapes, 1)]
    assert board_of(builders.plan(cells)).head.split()[:4] == ["Test", "Messages", "Transport", "Median"]


def test_a_line_has_the_direction_of_its_test() -> None:
    cells = [builders.cell(number, direction=each) for number, each in enumerate(Direction, 1)]
    lines = lines_of(builders.plan(cells), [builders.repetition(cell, (900,) * 4) for cell in cells]).splitlines()
    assert [line.split()[1] for line in lines[-3:]] == ["forward", "reverse", "both"]


def test_long_names_and_reasons_never_make_a_line_longer_than_the_terminal() -> None:
    pairs = [Pair(f"a-long-name-of-a-workstation-{n}", f"a-long-name-of-a-server-{n}") for n in range(3)]
    cells = [builders.cell(n, pairs=(pair,), condition="a condition of many words") for n, pair in enumerate(pairs, 1)]
    plan, result = builders.plan(cells), builders.failed(cells[0], " ".join(["unreachable"] * 30))
    for width in (20, 80, 132):
        lines = draw_progress(board_after(plan, result).snapshot(), width, 10)
        assert max(cell_len(line.plain) for line in lines) <= width
    assert max(map(len, lines_of(plan, [result]).splitlines())) <= 80


@pytest.mark.parametrize("height", [3, 5, 20])
def test_a_terminal_shows_the_last_rows_that_fit_the_running_test_and_the_time_left(height: int) -> None:
    board = measuring(PLAN, *MEASURED[:6], quarters=4)
    head, *rows, bar = (line.plain for line in draw_progress(board.snapshot(), 80, height))
    assert head.split()[0] == "Test"
    assert [row.split()[0] for row in rows] == [f"{n}/7" for n in range(1, 8)][-(height - 2) :]
    assert rows[-1].split() == ["7/7", "200", "KiB", "8960", "5", "1,882", "941", "941", "████", "1", "s"]
    assert "6 of 7" in bar
    assert bar.endswith("s left")
    over = board_after(PLAN, *MEASURED)
    over.on_end(RunStatus.COMPLETE)
    assert draw_progress(over.snapshot(), 80, height)[-1].plain.endswith("7 of 7  ")


@pytest.mark.parametrize(
    ("colours", "shown"), [({"force_terminal": True}, True), ({"no_color": True}, False), ({}, False)]
)
def test_the_reason_why_a_test_has_no_result_is_in_the_colour_of_warnings(
    colours: dict[str, bool], shown: bool
) -> None:
    text = StringIO()
    console = Console(file=text, width=80, color_system="standard" if colours else None, **colours)  # type: ignore[arg-type]
    console.print(Group(*draw_progress(board_after(PLAN, LATE).snapshot(), 80, 10)))
    assert ("\x1b[1;35m" in text.getvalue()) is shown


def test_a_sign_of_life_follows_a_minute_without_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, text = [0.0], StringIO()
    monkeypatch.setattr(board_file, "time", SimpleNamespace(monotonic=lambda: now_s[-1], time=lambda: 0.0))
    board, over = measuring(PLAN, *MEASURED[:6], quarters=4), create_autospec(Event, instance=True)
    lines, later = LinePrinter(board, Console(file=text, width=80)), iter((59.0, 60.0, 61.0))

    def wait(_: float) -> bool:
        now_s.append(next(later, 0.0))
        return not now_s[-1]

    over.wait.side_effect = wait
    lines.alive(over)
    words = text.getvalue().split()
    assert words.count("7/7") == 1
    assert words[-9:-4] == ["████", "1m", "00s", "6", "of"]


@pytest.mark.parametrize(("quiet", "dumb"), [(True, False), (False, True)])
def test_quiet_says_nothing_and_a_terminal_that_moves_no_cursor_gets_lines(quiet: bool, dumb: bool) -> None:
    text, board = StringIO(), board_of(PLAN)
    console = Console(file=text, width=80, force_terminal=True, _environ={"TERM": "dumb" if dumb else "xterm"})
    with print_progress(console, board, quiet) as progress:
        board.on_begin(FIRST, 1, 1)
        progress.on_begin(FIRST, 1, 1)
        board.on_result(FIRST, MEASURED[0])
        progress.on_result(FIRST, MEASURED[0])
    assert len(text.getvalue().splitlines()) == (0 if quiet else 2)


def test_samples_are_100_ms_apart_and_never_more_than_3000() -> None:
    assert interval_ms(0.5) == interval_ms(300) == 100
    for duration_s in (301, 1800, 86400):
        assert duration_s * 1000 / interval_ms(duration_s) <= 3000


def test_before_the_first_test_nodes_are_prepared_and_a_resumed_run_begins_where_it_was() -> None:
    state = board_of(TWICE).snapshot()
    assert (state.phase, state.run, state.test, state.streams) == ("preparing", None, None, ())
    assert (state.tests, state.done, state.total, state.left_s) == (2, 0, 4, 40.0)
    done = {(1, 1, 1): Status.OK, (1, 2, 1): Status.OK, (2, 1, 1): Status.OK}
    state = board_of(TWICE, done).snapshot()
    assert (state.done, state.total, state.left_s) == (3, 4, 10.0)


def test_while_a_test_runs_each_pair_has_what_its_receiver_counted_last() -> None:
    state = measuring(TWICE, quarters=3).snapshot()
    streams = [(stream.name, round(stream.now_mbps or 0), len(stream.history_mbps)) for stream in state.streams]
    assert streams == [("pi1 → pi2", 941, 3), ("pi3 → pi4", 941, 3)]
    assert round(state.streams[0].ceiling_mbps or 0) == 941
    assert known(state.test).running
    # Before two counts there is no figure, and a long test keeps its latest figures.
    assert [stream.now_mbps for stream in measuring(TWICE, quarters=0).snapshot().streams] == [None, None]
    long = measuring(TWICE, quarters=MOST_HISTORY + 50).snapshot()
    assert len(long.streams[0].history_mbps) == MOST_HISTORY


def test_after_a_repetition_its_goodput_and_its_row_stand_there() -> None:
    made = measuring(TWICE, quarters=3)
    made.on_result(FIRST, MEASURED[0])
    made.on_end(RunStatus.COMPLETE)
    state = made.snapshot()
    assert [(stream.now_mbps, round(stream.measured_mbps or 0)) for stream in state.streams] == [
        (None, 911),
        (None, 941),
    ]
    assert (state.done, state.total) == (1, 4)
    assert [(row.level, row.text.split()[3:]) for row in state.rows] == [("ok", ["1,852", "911", "941", "135"])]


def test_the_next_test_does_not_inherit_figures() -> None:
    made = measuring(TWICE, quarters=3)
    made.on_result(FIRST, builders.failed(FIRST))
    made.on_begin(SECOND, 1, 1)
    (first, _) = made.snapshot().streams
    assert (first.now_mbps, first.measured_mbps, first.history_mbps) == (None, None, ())


def test_a_failure_is_an_error_and_an_invalid_first_attempt_is_not_done() -> None:
    state = board_after(TWICE, builders.failed(FIRST, "pi4: connection refused"), LATE).snapshot()
    assert [(said.level, said.text) for said in state.messages] == [
        ("error", "test 1: failed: pi4: connection refused"),
        ("warning", "test 2: invalid: start skew 14 ms exceeds the limit of 10 ms; measured once more"),
    ]
    assert state.done == 1


def test_the_progress_beside_it_hears_everything() -> None:
    made, heard, changes = board_of(TWICE), create_autospec(Progress, instance=True), []
    made.changed = lambda: changes.append(1)
    everybody, failed = Broadcast(made, heard), builders.failed(FIRST)
    everybody.on_begin(FIRST, 1, 1)
    everybody.on_bytes(LIVE[0], 1, 1)
    everybody.say("measuring 2 more")
    everybody.on_result(FIRST, failed)
    heard.assert_has_calls(
        [
            call.on_begin(FIRST, 1, 1),
            call.on_bytes(LIVE[0], 1, 1),
            call.say("measuring 2 more"),
            call.on_result(FIRST, failed),
        ]
    )
    assert changes


def test_the_most_that_is_published_is_read_back() -> None:
    made = measuring(TWICE, quarters=MOST_HISTORY + 1)
    for number in range(300):
        made.say(f"line {number} " + "x" * 2000)
    published = made.snapshot()
    text = published.model_dump_json()
    assert len(text) < 100_000
    assert LiveRun.model_validate_json(text) == published

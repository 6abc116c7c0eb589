"""What a user sees while a run goes on."""

from dataclasses import replace
from io import StringIO
from threading import Event
from types import SimpleNamespace
from unittest.mock import create_autospec

import builders
import pytest
from progressing import board_of, lines_of
from rich.cells import cell_len
from rich.console import Console, Group

from rigctl.display.layout import progress_lines
from rigctl.measure.orders import channels
from rigctl.records import Cell, Pair, Repetition, Status
from rigctl.runner import published
from rigctl.runner.engine import interval_ms
from rigctl.runner.published import Board, Lines, progress_on

RUN, MEASURED = builders.gigablox()
PLAN = RUN.plan
FIRST, SECOND = PLAN.cells[:2]
LATE = replace(builders.failed(FIRST, "start skew 14 ms exceeds the limit of 10 ms"), status=Status.INVALID)


def measuring() -> Board:
    """Six of seven tests have ended; in the last one each pair has received 941 Mbit/s for a second."""
    board = board_of(PLAN)
    for cell, result in zip(PLAN.cells[:6], MEASURED[:6], strict=True):
        board.began(cell, 1, 1)
        board.ended(cell, result)
    last = PLAN.cells[6]
    board.began(last, 1, 1)
    for quarter in range(5):
        for channel in channels([last], lambda: "0" * 32):
            board.received(channel, quarter * 250_000_000, quarter * 941 * 125_000 // 4)
    return board


@pytest.mark.parametrize(
    ("result", "left_s"),
    [
        (replace(MEASURED[0], wall_s=12.0), 72.0),  # it learns what a test costs
        (builders.failed(FIRST, wall_s=100.0), 60.0),
        (LATE, 70.0),  # measured once more
    ],
)
def test_the_time_left_is_that_of_the_pace_so_far(result: Repetition, left_s: float) -> None:
    board = board_of(PLAN)
    assert board.snapshot().left_s == 70.0
    board.began(FIRST, 1, 1)
    board.ended(FIRST, result)
    assert board.snapshot().left_s == pytest.approx(left_s)


def test_a_pipe_gets_a_line_for_each_test_with_its_result_or_the_reason_why_it_has_none() -> None:
    head, *rows = lines_of(PLAN, [MEASURED[0], LATE, builders.failed(SECOND)]).splitlines()
    assert head.split() == ["Test", "Window", "MSS", "Flows", "Mbit/s", "pi1→pi2", "pi3→pi4", "Retransmits"]
    assert rows[0].split() == ["1/7", "64", "KiB", "1460", "1", "1,852", "911", "941", "135"]
    assert " ".join(" ".join(rows[1:]).split()) == (
        "1/7 64 KiB 1460 1 invalid: start skew 14 ms exceeds the limit of 10 ms; measured once more "
        "2/7 64 KiB 1460 5 failed: pi4: connection refused"
    )


def test_what_a_node_said_commands_no_terminal() -> None:
    failed = builders.failed(FIRST, "pi1: \x1b]0;pwned\x07\x1b[2J\r no")
    assert lines_of(PLAN, [failed]).endswith("failed: pi1: ?]0;pwned??[2J? no\n")


@pytest.mark.parametrize(("cells", "shown"), [(PLAN.cells, "8960→1448  "), (PLAN.cells[2:3], "  MSS 8960→1448")])
def test_what_was_not_granted_stands_in_its_column_or_at_the_end_of_the_line(
    cells: tuple[Cell, ...], shown: str
) -> None:
    plan = replace(PLAN, cells=cells)
    assert shown in lines_of(plan, [MEASURED[2]])


def test_long_names_and_reasons_never_make_a_line_longer_than_the_terminal() -> None:
    pairs = [Pair(f"a-long-name-of-a-workstation-{n}", f"a-long-name-of-a-server-{n}") for n in range(3)]
    cells = [builders.cell(n, pairs=(pair,), condition="a condition of many words") for n, pair in enumerate(pairs, 1)]
    reason = builders.failed(cells[0], " ".join(["unreachable"] * 30))
    board, plan = board_of(builders.plan(cells)), builders.plan(cells)
    board.began(cells[0], 1, 1)
    board.ended(cells[0], reason)
    for width in (20, 80, 132):
        assert max(cell_len(line.plain) for line in progress_lines(board.snapshot(), width, 10)) <= width
    assert max(map(len, lines_of(plan, [reason]).splitlines())) <= 80


@pytest.mark.parametrize("height", [3, 5, 20])
def test_a_terminal_shows_the_last_rows_that_fit_the_running_test_and_the_time_left(height: int) -> None:
    head, *rows, bar = (line.plain for line in progress_lines(measuring().snapshot(), 80, height))
    assert head.split()[0] == "Test"
    assert [row.split()[0] for row in rows] == [f"{n}/7" for n in range(1, 8)][-(height - 2) :]
    assert rows[-1].split() == ["7/7", "200", "KiB", "8960", "5", "1,882", "941", "941", "████", "1", "s"]
    assert "6 of 7" in bar
    assert bar.endswith("s left")


@pytest.mark.parametrize(
    ("colours", "shown"), [({"force_terminal": True}, True), ({"no_color": True}, False), ({}, False)]
)
def test_the_reason_why_a_test_has_no_result_is_in_the_colour_of_warnings(
    colours: dict[str, bool], shown: bool
) -> None:
    board, text = board_of(PLAN), StringIO()
    board.began(FIRST, 1, 1)
    board.ended(FIRST, LATE)
    console = Console(file=text, width=80, color_system="standard" if colours else None, **colours)  # type: ignore[arg-type]
    console.print(Group(*progress_lines(board.snapshot(), 80, 10)))
    assert ("\x1b[33m" in text.getvalue()) is shown


def test_a_sign_of_life_follows_a_minute_without_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, text = [0.0], StringIO()
    monkeypatch.setattr(published, "time", SimpleNamespace(monotonic=lambda: now_s[-1], time=lambda: 0.0))
    lines, over = Lines(measuring(), Console(file=text, width=80)), create_autospec(Event, instance=True)
    later = iter((59.0, 60.0, 61.0))

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
    with progress_on(console, board, quiet) as progress:
        board.began(FIRST, 1, 1)
        progress.began(FIRST, 1, 1)
        board.ended(FIRST, MEASURED[0])
        progress.ended(FIRST, MEASURED[0])
    assert len(text.getvalue().splitlines()) == (0 if quiet else 2)


def test_samples_are_100_ms_apart_and_never_more_than_3000() -> None:
    assert interval_ms(0.5) == interval_ms(300) == 100
    for duration_s in (301, 1800, 86400):
        assert duration_s * 1000 / interval_ms(duration_s) <= 3000

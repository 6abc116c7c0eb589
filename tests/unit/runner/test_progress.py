"""What a user sees while a run goes on."""

from dataclasses import replace
from io import StringIO

import builders
import pytest
from rich.console import Console

from rigctl.measure.orders import channels
from rigctl.records import Direction, Flow, Pair, Repetition, RunPlan, Side, Status, TcpInfo
from rigctl.runner.engine import interval_ms
from rigctl.runner.progress import Lines, departure_notes, progress_on
from rigctl.runner.schedule import missing

PAIR = (Pair("pi1", "pi2"),)
CELL = builders.cell(pairs=PAIR, parallel=5)
AGAIN = "measured once more"
WHAT = "1 pair, window 64 KiB, MSS 1460, 5 flows"
PLAN = RunPlan("t", "", "s", "", "r", "", (), 1, (CELL, replace(CELL, number=2)))


def result(status: Status = Status.OK, wall_s: float = 10.5) -> Repetition:
    return Repetition(1, 1, 1, status, None if status is Status.OK else "it broke", 0.0, wall_s)


def lines(quiet: bool = False) -> tuple[Lines, StringIO]:
    text = StringIO()
    with progress_on(Console(file=text), PLAN, missing(PLAN, {}), quiet) as progress:
        assert quiet or isinstance(progress, Lines)
        return progress, text  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("ended", "attempt", "said"),
    [
        (None, 1, f"test 1/2: {WHAT}; 10 s, 20 s left\n"),
        (result(wall_s=12.0), 1, f"test 1/2: {WHAT}; 10 s, 12 s left\n"),  # it learns what a test costs
        (result(Status.FAILED, 100.0), 1, f"test 1: failed: it broke\ntest 1/2: {WHAT}; 10 s, 10 s left\n"),
        (result(Status.INVALID), 2, f"test 1: invalid: it broke\ntest 1/2, {AGAIN}: {WHAT}; 10 s, 20 s left\n"),
    ],
)
def test_a_test_is_announced_with_the_time_left(ended: Repetition | None, attempt: int, said: str) -> None:
    progress, text = lines()
    if ended is not None:
        progress.ended(CELL, ended)
    progress.began(CELL, 1, attempt)
    assert text.getvalue() == said


def test_what_a_node_said_commands_no_terminal() -> None:
    progress, text = lines()
    progress.ended(CELL, replace(result(Status.FAILED), reason="pi1: \x1b]0;pwned\x07\x1b[2J\r no"))
    assert text.getvalue() == "test 1: failed: pi1: ?]0;pwned??[2J? no\n"


def test_what_was_not_granted_as_asked_is_said_once_for_all_pairs() -> None:
    asked = builders.asking(CELL, mss=8960)
    sender = Side(9, 1, 2, sndbuf_bytes=131072, tcp=TcpInfo(mss=1448, timestamps=True))
    flows = tuple(
        Flow(Pair(source, "x"), Direction.FORWARD, number, sender, Side(9, 1, 2, rcvbuf_bytes=131072))
        for source in ("a", "b")
        for number in (1, 2)
    )
    progress, text = lines()
    progress.ended(asked, result(), departure_notes(asked, replace(result(), flows=flows)))
    assert text.getvalue() == "test 1: mss 8960 requested, 1448 effective (2 pairs)\n"


def test_quiet_says_nothing() -> None:
    progress, text = lines(quiet=True)
    (channel,) = channels([CELL], lambda: "0" * 32)
    progress.began(CELL, 1, 1)
    progress.received(channel, 1, 1)
    progress.ended(CELL, result(Status.FAILED))
    assert text.getvalue() == ""


def test_samples_are_100_ms_apart_and_never_more_than_3000() -> None:
    assert interval_ms(0.5) == interval_ms(300) == 100
    for duration_s in (301, 1800, 86400):
        assert duration_s * 1000 / interval_ms(duration_s) <= 3000


def test_many_pairs_are_shown_as_their_sum_with_what_is_left() -> None:
    text = StringIO()
    pairs = tuple(Pair(f"a{number}", f"b{number}") for number in range(12))
    many = builders.asking(CELL, pairs=pairs, condition="jumbo", window_bytes=6553, window_total_bytes=32768)
    with progress_on(Console(file=text, force_terminal=True, width=160), PLAN, missing(PLAN, {}), False) as progress:
        progress.began(many, 1, 1)
        for channel in channels([many], lambda: "0" * 32):
            progress.received(channel, 10**9, 0)
            progress.received(channel, 2 * 10**9, 125_000_000)
    assert "jumbo, 12 pairs, total window 32 KiB, MSS 1460, 5 flows" in text.getvalue()
    assert "sum 12,000 Mbit/s   pairs 1,000 to 1,000, 20 s left" in text.getvalue()

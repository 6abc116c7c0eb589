import os
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies
from known import known
from rich.cells import cell_len

from rigctl.base.processes import process
from rigctl.display import layout, live_run
from rigctl.display.layout import PAGE_S, add_streams, draw_bars, draw_screen
from rigctl.display.live_run import LiveLine, LiveRun, LiveRunFile, LiveStatus, LiveStream, LiveTest

SIZES = ((100, 30), (80, 24), (60, 20), (200, 60), (20, 5), (1, 1))
BIG_941 = "████████████    ████    ████        ████"
HISTORY = tuple(900 + second % 41 for second in range(30))


def state(streams: int = 2, **fields: Any) -> LiveRun:
    test = LiveTest(
        number=3, settings="2 pairs, window 64K, MSS 8960, 1 flow, cubic", repetition=1, repetitions=1, attempt=1,
        duration_s=60, gone_s=30, running=True, live=True,
    )  # fmt: skip
    made = tuple(
        LiveStream(name=f"pi{2 * at + 1} → pi{2 * at + 2}", ceiling_mbps=941.5, now_mbps=941 - at, history_mbps=HISTORY)
        for at in range(streams)
    )
    values: dict[str, Any] = {
        "pid": 4711, "started": 1, "rig": "gigablox", "scenario": "gigablox", "title": "GigaBlox, seven tests",
        "run": "20261122-134338-dd07", "began_at": 0.0, "written_at": 10.0, "clock_s": 100.0, "phase": "measuring",
        "tests": 7, "done": 2, "total": 7, "left_s": 260.0, "test": test, "streams": made,
        "head": "Test  MSS", "rows": (LiveLine(level="ok", text=" 2/7  8960→1448"),) * 120,
        "messages": (LiveLine(level="warning", text="test 3: invalid: start skew 14 ms"),),
    }  # fmt: skip
    return LiveRun.model_validate(values | fields)


def drawn(
    made: LiveRun, width: int = 100, height: int = 30, clock_s: float = 102.0, fate: LiveStatus = LiveStatus.RUNNING
) -> list[str]:
    return [line.plain for line in draw_screen(LiveRunFile(made, "anna", fate), width, height, clock_s)]


def ended(rows: int = 7, columns: int = 4) -> LiveRun:
    table = [" ".join(f"{row}.{at}" for at in range(columns)) for row in range(rows)]
    results = ("Line rate in all tests.", "", *table, "", "MSS 8960 was requested, 1448 went over the wire.")
    return state(phase="ended", outcome="complete", results=results)


def fits(lines: list[str], width: int, height: int) -> None:
    assert len(lines) == height
    assert [line for line in lines if cell_len(line) > width or "\n" in line] == []


EVERY = {f"{count} pairs": state(count) for count in (1, 2, 3, 4, 12, 132)} | {
    "preparing": state(0, phase="preparing", test=None),
    "ended": ended(),
    "a long table": ended(200, 30),
    "a title of wide characters": state(title="千兆交换机测试" * 20),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_line_is_wider_or_lower_than_the_terminal(name: str, width: int, height: int) -> None:
    for clock_s in (100.0, 100.0 + PAGE_S, 100.0 + 5 * PAGE_S):
        fits(drawn(EVERY[name], width, height, clock_s), width, height)


FIGURES = strategies.none() | strategies.floats(0, 1e9)
HISTORIES = strategies.lists(strategies.floats(0, 1e9), max_size=130).map(tuple)
FIELDS = {"ceiling_mbps": FIGURES, "now_mbps": FIGURES, "measured_mbps": FIGURES, "history_mbps": HISTORIES}
STREAMS = strategies.lists(strategies.builds(LiveStream, name=strategies.text(max_size=40), **FIELDS), max_size=8)


@settings(max_examples=50, deadline=None)
@given(STREAMS, strategies.integers(1, 210), strategies.integers(1, 60), strategies.sampled_from(LiveStatus))
def test_whatever_streams_report_is_drawn(streams: list[LiveStream], width: int, height: int, fate: LiveStatus) -> None:
    made = state(0).model_copy(update={"streams": tuple(streams)})
    fits(drawn(made, width, height, 130.0, fate), width, height)


def test_the_rig_screen_has_a_figure_per_pair_the_course_the_progress_and_the_last_message() -> None:
    text = "\n".join(drawn(state()))
    assert text.count("Mbit/s now, ceiling 941.5") == 2
    left = " 2 of 7  4m 18s left"  # two seconds after it was written
    wanted = (BIG_941, "test 3 of 7: 2 pairs, window 64K", left, "start skew 14 ms", "8960→1448")
    assert [words for words in wanted if words not in text] == []


def test_of_pairs_that_report_at_different_instants_the_total_is_that_of_the_seconds_all_have() -> None:
    for first, second in product(((), (1.0,), (1.0, 2.0)), repeat=2):
        pair = [LiveStream(name="a", history_mbps=each) for each in (first, second)]
        assert len(add_streams(pair).history_mbps) == min(len(first), len(second))
    assert add_streams(pair).history_mbps == (2.0, 4.0)


def test_a_killed_controller_is_said_with_how_to_go_on() -> None:
    text = " ".join(" ".join(drawn(state(), fate=LiveStatus.DIED)).split())
    wanted = ("process 4711 is gone", "--resume 20261122-134338-dd07", "left", " now")
    assert [words in text for words in wanted] == [True, True, False, False]


def test_every_line_of_the_results_has_its_page_which_ends_at_an_empty_line() -> None:
    pages = ["\n".join(drawn(ended(70, 15), clock_s=100.0 + number * PAGE_S)) for number in range(3)]
    assert [f"page {number}/3" in text for number, text in enumerate(pages, 1)] == [True] * 3
    assert [f"{row}.{at}" for row in range(70) for at in range(15) if f"{row}.{at}" not in "".join(pages)] == []
    first, second = ("\n".join(drawn(ended(16), height=22, clock_s=100.0 + number * PAGE_S)) for number in (0, 1))
    assert "15.3" in first
    assert ["MSS 8960" in text for text in (first, second)] == [False, True]


def test_markup_on_the_screen_is_shown_as_it_is() -> None:
    said = LiveLine(level="warning", text="[red]x[/red] \x1b[2J\u202e[link=http://evil]y[/link]")
    text = "\n".join(drawn(state(title="[bold]t[/bold]", messages=(said,))))
    assert "[red]x[/red] ?[2J?[link=http://evil]y[/link]" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("scale", range(1, 9))
def test_the_size_that_is_promised_is_the_size_that_is_drawn(scale: int) -> None:
    rows = layout.draw_digits("1,234.50–", scale)
    assert (len(rows[0]), len(rows)) == layout.size_of_digits("1,234.50–", scale)
    assert len({len(row) for row in rows}) == 1


def test_the_largest_scale_that_fits_is_taken() -> None:
    assert [layout.scale_for("941", *room) for room in ((48, 10), (43, 10), (48, 9), (10, 9))] == [4, 3, 3, 0]


def test_bars_show_half_a_row_the_latest_figures_and_never_hide_what_is_not_nothing() -> None:
    assert draw_bars([0, 25, 50, 100], 100, 4, 2) == ["   █", " ▄██"]
    assert (draw_bars([1], 1000, 1, 3), draw_bars([100, 100, 0, 50], 100, 2, 1)) == ([" ", " ", "▄"], [" ▄"])


def test_figures_have_the_digits_that_one_reads_at_a_glance() -> None:
    texts = [
        layout.rate_and_unit(mbps)[0] for mbps in (None, 0.5, 12.34, 941.4, 1879.2, 9999.4, 18312.0, 99990.0, 123456.0)
    ]
    assert texts == ["–", "0.50", "12.3", "941", "1,879", "9,999", "18.31", "100.0", "123.5"]
    assert layout.rate_and_unit(18312.0)[1] == "Gbit/s"


NOBODY = 2**22 + 1  # above the highest process id of Linux
NOW_S = 5000.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIGCTL_DISPLAY_FOLDER", str(tmp_path))
    monkeypatch.setattr(live_run, "time", SimpleNamespace(monotonic=lambda: NOW_S, time=lambda: NOW_S))
    made = live_run.make_own_folder()
    assert made is not None
    return made


def own(**fields: Any) -> LiveRun:
    me = known(process(os.getpid()))
    return state(**{"pid": me.pid, "started": me.started, "clock_s": NOW_S, "done": 0} | fields)


def test_what_was_written_is_read_by_whoever_may_look(folder: Path) -> None:
    state = own()
    before = os.umask(0o077)
    try:
        live_run.write_live_run(folder, state)
    finally:
        os.umask(before)
    assert [(found.state, found.is_going) for found in live_run.read_live_runs()] == [(state, True)]
    assert live_run.state_path(folder, state.pid).stat().st_mode & 0o777 == 0o644
    assert [path.name for path in folder.iterdir()] == [f"{state.pid}.json"]


@pytest.mark.parametrize(
    ("fields", "fate"), [({}, "running"), ({"pid": NOBODY}, "died"), ({"clock_s": NOW_S - live_run.SILENT_S}, "silent")]
)
def test_a_run_whose_process_is_gone_died_else_it_is_silent(folder: Path, fields: dict[str, Any], fate: str) -> None:
    live_run.write_live_run(folder, own(**fields))
    assert [each.fate for each in live_run.read_live_runs()] == [fate]


def test_a_process_that_proc_hides_has_not_died(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    live_run.write_live_run(folder, own(pid=NOBODY))
    monkeypatch.setattr("os.kill", refuse)
    assert [each.fate for each in live_run.read_live_runs()] == ["running"]


def test_a_file_that_is_no_state_of_a_run_is_skipped(folder: Path, tmp_path: Path) -> None:
    (folder / "1.json").write_text("{")
    (folder / "2.json").write_text('{"version": 2}')
    (folder / "3.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "4.json")
    (folder / "5.json").write_text(own(pid=6).model_dump_json())  # named after another process
    (folder / "7.json").write_text(own(pid=7).model_dump_json().replace('"done":0', '"done":1e400'))
    (tmp_path / f"rigctl-runs-{os.geteuid() + 1}").mkdir()  # in the name of another user
    live_run.write_live_run(tmp_path / f"rigctl-runs-{os.geteuid() + 1}", own())
    assert live_run.read_live_runs() == []


def test_a_folder_that_others_can_write_to_is_neither_used_nor_believed(folder: Path) -> None:
    live_run.write_live_run(folder, own())
    folder.chmod(0o777)
    assert live_run.read_live_runs() == []
    assert live_run.make_own_folder() != folder


def test_what_ended_a_while_ago_is_tidied_away_and_nothing_else(folder: Path) -> None:
    for pid, ago_s in ((NOBODY, 61), (NOBODY + 1, 59), (os.getpid(), 61)):
        live_run.write_live_run(folder, own(pid=pid))
        os.utime(live_run.state_path(folder, pid), (NOW_S - ago_s, NOW_S - ago_s))
    live_run.remove_old_files(folder)
    assert {path.stem for path in folder.glob("*.json")} == {str(NOBODY + 1), str(os.getpid())}


def test_of_one_user_a_bounded_number_of_files_is_read(folder: Path) -> None:
    for pid in range(NOBODY, NOBODY + 2 * live_run.MOST_RUNS):
        live_run.write_live_run(folder, own(pid=pid))
    assert len(live_run.read_live_runs()) == live_run.MOST_RUNS

"""File transfers in table and words, and what a scenario may say of them."""

from dataclasses import replace
from pathlib import Path

import builders
import pytest
from documents import finding
from message_runs import measured as measured_messages

from rigctl.base.errors import InputError
from rigctl.findings import Severity, Weight
from rigctl.records import (
    Cell,
    Direction,
    DiskTimes,
    Flow,
    Link,
    Pair,
    Repetition,
    RunInfo,
    Side,
    Status,
    TcpInfo,
)
from rigctl.report.blocks import Table
from rigctl.report.document import document
from rigctl.runner.by_agent import MOST_PREPARE_S, prepare_s
from rigctl.runner.engine import PREPARE_S
from rigctl.scenario.load import Overrides, load_plan
from rigctl.settings import ITERATIONS, READ, WRITE, Settings

PAIR = Pair("a", "b")
SIZE = 100 * 2**20
MIB = 2**20


def cell(number: int = 1, read: str = "disk", write: str = "disk", size: int = SIZE) -> Cell:
    base = Cell(number, "file", (PAIR,), 60.0, 0.0, 1, message_bytes=size)
    return replace(base, settings=Settings({ITERATIONS: 1, READ: read, WRITE: write}), folder="/var/a b")


def measured(*cells: tuple[Cell, float], virtual: str | None = None) -> tuple[RunInfo, list[Repetition]]:
    info = builders.run(builders.plan(tuple(transferred for transferred, _ in cells)))
    links = dict.fromkeys(("a", "b"), Link(10**9, 1500))
    repetitions = []
    for transferred, elapsed_s in cells:
        end_ns = round(elapsed_s * 1e9) + 1
        read_us = round(elapsed_s * 6e5) if transferred[READ] == "disk" else None
        size = transferred.message_bytes or 0
        sender = Side(size, 1, end_ns, tcp=TcpInfo(mss=1448, pmtu=1500, timestamps=True), disk=DiskTimes(read_us))
        written = transferred[WRITE] == "disk"
        receiver = Side(size, 1, end_ns, disk=DiskTimes(200_000, 50_000) if written else None)
        flow = Flow(PAIR, Direction.FORWARD, 1, sender, receiver)
        repetitions.append(Repetition(transferred.number, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,)))
    return replace(info, plan=replace(info.plan, links=links, virtual=virtual), facts={}), repetitions


def table_of(info: RunInfo, repetitions: list[Repetition]) -> Table:
    (block,) = document(info, repetitions).results[0].blocks
    assert isinstance(block, Table)
    return block


class TestAboveTheCeiling:
    def test_a_short_transfer_over_a_virtual_link_is_flagged_in_its_row_with_the_reason(self) -> None:
        # 1 MiB at 941 Mbit/s takes 8.9 ms; a full bucket of 128 KiB spares 1.1 of them.
        info, repetitions = measured((cell(1, "memory", "memory", MIB), 0.0081), virtual="namespaces")
        table = table_of(info, repetitions)
        by_title = dict(zip((column.title for column in table.columns), table.rows[0].entries, strict=True))
        assert (by_title["Efficiency"].text, by_title["Efficiency"].mark) == ("110.0", "warn")
        assert table.notes == (
            "Test 1: 110.0 % of the ceiling: the token buckets of virtual links pass 128 KiB at once, which counts in "
            "so short a test.",
        )
        assert table.rows[0].notes == (1,)
        found = finding(info, repetitions, "Above the ceiling")
        assert found.text == (
            "Above the ceiling: test 1 at 110.0 %: the token buckets of virtual links pass 128 KiB at once, "
            "which counts in so short a test."
        )
        assert (found.weight, found.level) == (Weight.SUSPECT, Severity.WARNING)
        assert found.remedy == "A longer test, or one of more bytes, reduces this."

    def test_short_messages_of_their_own_frames_are_above_it_by_the_shaping(self) -> None:
        info, repetitions = measured_messages("blast", [(64, 1000, (0.0099,))])
        cells = tuple(builders.asking(sent, nodelay=True) for sent in info.plan.cells)
        plan = replace(info.plan, cells=cells, virtual="namespaces")
        assert "shaped for full frames" in finding(replace(info, plan=plan), repetitions, "Above the ceiling").text


def test_a_file_that_must_be_made_first_has_its_time() -> None:
    assert prepare_s(cell(read="memory")) == PREPARE_S
    assert prepare_s(cell()) == pytest.approx(PREPARE_S + SIZE / 5e6)
    assert prepare_s(replace(cell(), message_bytes=2**40)) == MOST_PREPARE_S


def planned(folder: Path, text: str) -> list[Cell]:
    (folder / "s.yaml").write_text(f"rig: gigablox\npairs: [pi1 -> pi2]\ntest: file\n{text}\n")
    return list(load_plan(str(folder / "s.yaml"), Overrides())[0].cells)


def test_a_file_is_read_from_disk_and_written_to_disk_where_nothing_is_said(tmp_path: Path) -> None:
    (one,) = planned(tmp_path, "matrix: {size: 100M}\nfolder: /data")
    assert (one[READ], one[WRITE], one.folder) == ("disk", "disk", "/data")
    assert (one[ITERATIONS], one.message_bytes) == (1, SIZE)
    both = planned(tmp_path, "matrix: {size: 1M, read: [disk, memory]}")
    assert [one[READ] for one in both] == ["disk", "memory"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "size: test: file needs one, as in size: 1 or size: 64K"),
        ("matrix: {size: 1M, read: tape}", 'read "tape": expected disk or memory'),
        (
            "matrix: {size: 1M, iterations: 3}",
            "only for test: pingpong or blast. To measure more often use repeat",
        ),
        ("matrix: {size: 1M}\nfolder: here", 'folder "here": expected an absolute path'),
    ],
)
def test_what_makes_no_sense_of_a_file_is_reported(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(tmp_path, text)
    assert said in str(caught.value)

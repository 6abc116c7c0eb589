"""File transfers in table and words, and what a scenario may say of them."""

from dataclasses import replace
from pathlib import Path

import builders
import pytest

from rigctl.errors import InputError
from rigctl.measure import TESTS
from rigctl.records import (
    Cell,
    Direction,
    DiskTimes,
    FileSettings,
    Flow,
    Link,
    MessageSettings,
    Pair,
    Repetition,
    RunInfo,
    Side,
    Status,
    TcpInfo,
)
from rigctl.report.printers.html import render
from rigctl.report.sections.messages.table import message_results, message_table, message_words
from rigctl.runner.cell import MOST_PREPARE_S, PREPARE_S, prepare_s
from rigctl.scenario.load import Overrides, load_plan

PAIR = Pair("a", "b")
SIZE = 100 * 2**20


def cell(number: int = 1, read: str = "disk", write: str = "disk") -> Cell:
    base = Cell(number, "file", (PAIR,), 60.0, 0.0, 1, message_bytes=SIZE)
    return replace(base, messages=MessageSettings(1), file=FileSettings(read, write, "/var/a b"))


def measured(*cells: tuple[Cell, float]) -> tuple[RunInfo, list[Repetition]]:
    info = builders.run(builders.plan(tuple(one for one, _ in cells)))
    links = dict.fromkeys(("a", "b"), Link(10**9, 1500))
    repetitions = []
    for one, elapsed_s in cells:
        end_ns = round(elapsed_s * 1e9) + 1
        read_us = round(elapsed_s * 6e5) if one.file.read == "disk" else None
        sender = Side(SIZE, 1, end_ns, tcp=TcpInfo(mss=1448, pmtu=1500, timestamps=True), disk=DiskTimes(read_us))
        written = one.file.write == "disk"
        receiver = Side(SIZE, 1, end_ns, disk=DiskTimes(200_000, 50_000) if written else None)
        flow = Flow(PAIR, Direction.FORWARD, 1, sender, receiver)
        repetitions.append(Repetition(one.number, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,)))
    return replace(info, plan=replace(info.plan, links=links, virtual=None), facts={}), repetitions


def test_each_kind_of_transfer_stands_beside_the_one_from_memory() -> None:
    info, repetitions = measured((cell(1), 2.0), (cell(2, "memory", "memory"), 1.0))
    results = message_results(info, repetitions)
    table = message_table(results)
    first, second = (dict(zip((c.title for c in table.columns), row.cells, strict=True)) for row in table.rows)
    assert (first["Read"], first["Write"], first["Elapsed"], first["Reading"], first["Writing"], first["Sync"]) == (
        "disk", "disk", "2", "60.0", "10.0", "0.05",
    )  # fmt: skip
    assert (second["Reading"], second["Writing"], second["Sync"]) == ("–", "–", "–")
    assert first["Throughput"] == "52,428,800"
    assert "Iterations" not in first
    said = message_words(results)
    assert said[0].startswith(
        "The fastest transfer of 100 MiB, memory to memory, brought 104.9 MB/s, 89.1 % of the ceiling."
    )
    assert said[1] == (
        "Disk to disk it was 52.4 MB/s, 50 % of memory to memory; 60 % of the time went into reading the file and "
        "10 % of the time went into writing the file."
    )
    assert "Sync: what the receiver&#39;s disk took" in render(info, repetitions)


def test_a_side_has_a_folder_only_where_it_has_a_disk() -> None:
    sending, receiving = (TESTS["file"].settings(cell(write="memory"), sender=sender) for sender in (True, False))
    assert (sending["disk"], sending["folder"]) == (True, "/var/a%20b")
    assert (receiving["disk"], receiving["folder"], receiving["size"]) == (False, None, SIZE)


def test_a_file_that_must_be_made_first_has_its_time() -> None:
    assert prepare_s(cell(read="memory")) == PREPARE_S
    assert prepare_s(cell()) == pytest.approx(PREPARE_S + SIZE / 5e6)
    assert prepare_s(replace(cell(), message_bytes=2**40)) == MOST_PREPARE_S


def planned(folder: Path, text: str) -> list[Cell]:
    (folder / "s.yaml").write_text(f"rig: gigablox\npairs: [pi1 -> pi2]\ntest: file\n{text}\n")
    return list(load_plan(str(folder / "s.yaml"), Overrides())[0].cells)


def test_a_file_is_read_from_disk_and_written_to_disk_where_nothing_is_said(tmp_path: Path) -> None:
    (one,) = planned(tmp_path, "matrix: {size: 100M}\nfolder: /data")
    assert (one.file, one.messages.iterations, one.message_bytes) == (FileSettings("disk", "disk", "/data"), 1, SIZE)
    both = planned(tmp_path, "matrix: {size: 1M, read: [disk, memory]}")
    assert [one.file.read for one in both] == ["disk", "memory"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "size: test: file needs one, as in size: 1 or size: 64K"),
        ("matrix: {size: 1M, read: tape}", 'read "tape": expected disk or memory'),
        (
            "matrix: {size: 1M, iterations: 3}",
            "is of test: pingpong or blast. To measure more often use repeat",
        ),
        ("matrix: {size: 1M}\nfolder: here", 'folder "here": expected an absolute path'),
    ],
)
def test_what_makes_no_sense_of_a_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(tmp_path, text)
    assert said in str(caught.value)

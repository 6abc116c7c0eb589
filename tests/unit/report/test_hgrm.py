"""Percentile distributions in the text format of HdrHistogram, against the package hdrhistogram."""

import io
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pages
import pytest
from builders import bucket_of
from hdrh.histogram import HdrHistogram
from request_runs import cell, flow, repetition, run, side

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.cli.app import exit_code
from rigctl.figures.messages import MessageTimes, times_of
from rigctl.model.latency import merge_histograms
from rigctl.records import Pair
from rigctl.report.export.hgrm import percentile_files, percentile_text

LINE: Final = re.compile(r" *(\d+\.\d{3}) ([01]\.\d{12}) +(\d+)(?: +(\d+\.\d\d))?")
FOOTER: Final = re.compile(r"#\[(\w+) += +([\d.]+), ([\w ]+?) += +([\d.]+)\]")
NS: Final = 1000
WITHIN: Final = 0.005
"""The middle of a bucket is within 0.4 % of every time in it, HdrHistogram with three digits within 0.1 %."""


class Row(NamedTuple):
    value_us: float
    percentile: float
    total: int


def read(text: str) -> tuple[list[Row], dict[str, float]]:
    """Return the rows and the footer of a file, each line of which has the format of HdrHistogram."""
    head, blank, *lines = text.splitlines()
    assert (head, blank) == ("       Value     Percentile TotalCount 1/(1-Percentile)", "")
    rows: list[Row] = []
    footer: dict[str, float] = {}
    for line in lines:
        if found := FOOTER.fullmatch(line):
            footer |= {found[1]: float(found[2]), found[3]: float(found[4])}
        else:
            value, percentile, total, rest = (LINE.fullmatch(line) or pytest.fail(line)).groups()
            rows.append(Row(float(value), float(percentile), int(total)))
            assert (
                rest is None
                if percentile == "1.000000000000"
                else float(rest) == pytest.approx(1 / (1 - float(percentile)), abs=0.01)
            )
    return rows, footer


def sample(seed: int) -> list[int]:
    numbers = random.Random(seed)
    count = numbers.choice([1, 7, 100, 1000, 30_000])
    return [round(numbers.lognormvariate(numbers.uniform(7, 16), numbers.uniform(0.1, 2))) for _ in range(count)]


def ours(times_ns: list[int], unanswered: int = 0) -> MessageTimes:
    buckets = merge_histograms([((bucket_of(time), 1),) for time in times_ns])
    return MessageTimes(buckets, min(times_ns), max(times_ns), unanswered)


def theirs(times_ns: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for time in times_ns:
        histogram.record_value(time)
    return histogram


@pytest.mark.parametrize("seed", range(20))
def test_the_lines_have_the_percentiles_and_counts_of_hdrhistogram(seed: int) -> None:
    times_ns = sample(seed)
    oracle, ordered = theirs(times_ns), sorted(times_ns)
    recorded = [(each.value_iterated_to, each.total_count_to_this_value) for each in oracle.get_recorded_iterator()]
    rows, footer = read(percentile_text(ours(times_ns)))
    for row in rows:
        value_ns = next(value for value, total in recorded if total / len(times_ns) >= row.percentile - 1e-12)
        assert row.value_us * NS == pytest.approx(value_ns, rel=WITHIN, abs=1)
        # The count is of all times up to the end of the bucket: the next one is in a bucket above.
        assert row.total >= max(1, round(row.percentile * len(times_ns)))
        following = ordered[row.total : row.total + 1]
        assert all(bucket_of(ordered[row.total - 1]) < bucket_of(time) for time in following)
    assert [row.percentile for row in rows][-1] == 1
    assert footer["Max"] * NS == pytest.approx(ordered[-1])
    assert footer["Total count"] == len(ordered)
    assert footer["Mean"] * NS == pytest.approx(oracle.get_mean_value(), rel=WITHIN, abs=1)
    assert footer["StdDeviation"] * NS == pytest.approx(oracle.get_stddev(), rel=0.02, abs=1)


def test_a_file_of_hdrhistogram_is_read_by_the_same_rules() -> None:
    """The format that the other tests demand is that of the package, but for two words of its footer."""
    written = io.BytesIO()
    theirs(sample(3)).output_percentile_distribution(written, NS)
    text = written.getvalue().decode()
    rows, _ = read(text)
    assert rows[0].percentile == 0
    assert rows[-1].percentile == 1


def test_each_half_of_what_is_left_to_100_percent_has_five_lines() -> None:
    levels = [row.percentile for row in read(percentile_text(ours(list(range(1000, 3_000_000, 100)))))[0]]
    assert levels[:11] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75])
    for power in range(1, 12):
        end = 1 - 0.5**power
        assert sum(end - 0.5**power <= level < end - 1e-9 for level in levels) == 5


def test_requests_without_an_answer_are_longer_than_all_others() -> None:
    *lines, last = percentile_text(ours([1000] * 900 + [2000] * 50, 50)).splitlines()
    assert last == "#[Unanswered = 50, counted as longer than all others]"
    rows, footer = read("\n".join(lines))
    assert max(row.percentile for row in rows) <= 0.95
    assert rows[-1].total == 950
    assert footer["Total count"] == 1000


def test_flows_and_repetitions_are_merged_as_histograms() -> None:
    first, second = [100.0] * 990 + [900.0] * 10, [300.0] * 3000
    repetitions = [
        repetition(cell(parallel=2), flow(side(first, 1.0)), flow(side(second, 1.0), 2), number=number)
        for number in (1, 2)
    ]
    view = RunView.in_memory(run(cell(parallel=2)), repetitions)
    ((name, content),) = percentile_files(view).items()
    assert name == "test-1-n1-n2.hgrm"
    rows, footer = read(content.decode())
    assert footer["Total count"] == 2 * 4000
    oracle = theirs([round(time_us * NS) for time_us in (*first, *second)] * 2)
    for row in rows:
        assert row.value_us * NS == pytest.approx(oracle.get_value_at_percentile(100 * row.percentile), rel=WITHIN)


def test_pairs_whose_names_look_the_same_have_a_file_each() -> None:
    own = replace(cell(), pairs=(Pair("a-b", "c"), Pair("a", "b-c")))
    flows = [replace(flow(side([100.0], 1.0)), pair=pair) for pair in own.pairs]
    files = percentile_files(RunView.in_memory(run(own), [repetition(own, *flows)]))
    assert list(files) == ["test-1-a-b-c.hgrm", "test-1-a-b-c.2.hgrm"]


@pytest.mark.parametrize("name", ["pingpong", "connect", "requests"])
def test_each_kind_that_has_times_has_a_file_for_each_test_and_pair(name: str) -> None:
    view = RunView.in_memory(*pages.stored(name))
    files = percentile_files(view)
    assert len(files) == len(view.all_messages)
    for result, content in zip(view.all_messages, files.values(), strict=True):
        rows, footer = read(content.decode())
        times = times_of(result.group)
        assert times is not None
        assert footer["Total count"] == times.count == rows[-1].total
        median = next(row for row in rows if row.percentile == 0.5)
        assert median.value_us == pytest.approx((times.percentile_ns(50) or 0) / NS, abs=0.001)


def test_a_run_without_such_times_is_refused_by_name() -> None:
    with pytest.raises(
        InputError, match=r"no histograms of times\. Tests of the kinds pingpong, connect, requests have"
    ):
        percentile_files(RunView.in_memory(*pages.stored("streams")))
    with pytest.raises(InputError, match=r"has no measured times\. `rigctl show` tells why"):
        percentile_files(RunView.in_memory(run(cell()), []))


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that exports from a store of a run with six files, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    assert exit_code(["import", str(pages.GOLDEN / "requests.rigctl"), "--store", "s.db"]) == 0
    return lambda *words: exit_code(["export", "--format", "hgrm", "--store", "s.db", *words])


def test_several_files_go_into_a_folder(
    export: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("-o", "made/here") == 0
    assert capsys.readouterr().err == "made/here: 6 files\n"
    names = sorted(path.name for path in (tmp_path / "made/here").iterdir())
    assert names[0] == "test-1-client-far.hgrm"
    assert len(names) == 6
    for words in ((), ("-o", "one.hgrm")):
        assert export(*words) == 2
        assert "hgrm is 6 files, one for each test and pair. Name a folder" in capsys.readouterr().err
    assert not (tmp_path / "one.hgrm").exists()
    (tmp_path / "file").touch()
    assert export("-o", "file/made") == 2
    assert "cannot create this folder" in capsys.readouterr().err

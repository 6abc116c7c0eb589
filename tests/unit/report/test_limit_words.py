"""Sentences on limits are true of what was measured: line rate, results above the ceiling, losses, MSS, windows."""

from typing import Any

import builders
import pytest
from documents import finding, texts

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.findings import Weight
from rigctl.records import Link, Pair, Repetition, RunInfo, Series
from rigctl.report.document import document
from rigctl.report.words.text import rate_of_ceiling

PAIR = (Pair("pi1", "pi2"),)
CEILING = 941.483
SENDING = {"busy_us": 10_000_000, "rwnd_limited_us": 0, "sndbuf_limited_us": 0}


def run(*speeds: float, facts: dict[str, Any] | None = None, **sender: Any) -> tuple[RunInfo, list[Repetition]]:
    """A test for each of `speeds`, on real links of 1 Gbit/s."""
    cells = [builders.cell(at, pairs=PAIR, parallel=1, window_bytes=None, mss=None) for at in range(1, len(speeds) + 1)]
    info = builders.run(builders.plan(cells, virtual=None))
    if facts is not None:
        info = builders.run(builders.plan(cells, virtual=None), facts=facts)
    measured = [
        builders.repetition(cell, (speed,), sender={**SENDING, **sender})
        for cell, speed in zip(cells, speeds, strict=True)
    ]
    return info, measured


def summed(info: RunInfo, measured: list[Repetition]) -> tuple[CellSummary, ...]:
    return summaries(load(info, measured))


def test_a_result_above_the_ceiling_is_the_headline_and_reaches_no_line_rate() -> None:
    info, measured = run(9 * CEILING, 0.99 * CEILING, 0.985 * CEILING)
    (first, *rest) = document(info, measured).findings
    assert (first.weight, first.subject.names) == (Weight.IMPOSSIBLE, ("1",))
    assert "the rig file or a node is wrong" in first.text
    assert "1" not in next(found for found in rest if found.weight is Weight.ANSWER).subject.names
    lines = finding(info, measured, "line rate (")
    assert (lines.numbers["tests"], lines.numbers["at_line_rate"]) == (2, 2)
    assert summed(info, measured)[0].limit == "unknown"


def test_nothing_is_called_fastest_where_all_is_above_the_ceiling() -> None:
    info, measured = run(9 * CEILING, 3 * CEILING)
    found = document(info, measured).findings
    assert [made.weight for made in found].count(Weight.ANSWER) == 0
    assert found[0].weight is Weight.IMPOSSIBLE
    assert not [said for said in texts(info, measured) if "line rate" in said]


def test_losses_cut_the_window_only_of_what_cuts_it() -> None:
    info, _ = run(400.0)
    cell = info.plan.cells[0]
    cubic = [builders.repetition(cell, (400.0,), (5,), sender={**SENDING, "rtt_us": 5000, "series": Series()})]
    assert summed(info, cubic)[0].limit == "loss"
    assert "each loss cuts the congestion window" in finding(info, cubic, "Limited by losses: test 1;").text
    # 3.5 % were lost behind a full line.
    bbr = [builders.repetition(cell, (0.95 * CEILING,), (27_000,), sender={**SENDING, "congestion": "bbr"})]
    assert summed(info, bbr)[0].limit == "loss"
    said = finding(info, bbr, "Limited by losses: test 1;").text
    assert "bbr does not cut its window at each loss" in said
    assert "each loss cuts" not in said


def test_an_mss_that_neither_end_explains_is_a_clamp() -> None:
    info, measured = run(905.0, mss=888, pmtu=1500)
    (cell,) = summed(info, measured)
    assert (cell.limit, cell.verdict.cause) == ("mtu", "clamp")
    found = finding(info, measured, "Limited by the MSS: test 1;")
    assert "888 bytes" in found.text
    assert "TCPMSS" in (found.remedy or "")
    links = {"pi1": Link(10**9, 1500), "pi2": Link(10**9, 940)}
    small = builders.run(builders.plan(info.plan.cells, virtual=None, links=links), facts={})
    (cell,) = summed(small, measured)
    assert (cell.limit, cell.verdict.cause) == ("mtu", None)  # that is pi2's own MTU
    assert "same MTU" in (finding(small, measured, "Limited by the MTU").remedy or "")


@pytest.mark.parametrize("node", ["pi1", "pi2"])
def test_without_window_scaling_no_window_is_larger_than_64_kib(node: str) -> None:
    sysctls = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_window_scaling": "1"}
    facts = {name: builders.facts(sysctls=sysctls) for name in ("pi1", "pi2")}
    facts[node] = builders.facts(sysctls=sysctls | {"net.ipv4.tcp_window_scaling": "0"})
    held = {"rwnd_limited_us": 9_900_000, "rtt_min_us": 20_000, "rtt_us": 20_000, "advertised_window_bytes": 65535}
    info, measured = run(25.5, facts=facts, **held)
    (cell,) = summed(info, measured)
    assert cell.streams[0].window_effective_bytes == 65535
    assert cell.limit == "window"
    found = finding(info, measured, "Limited by the receive window")
    assert f"net.ipv4.tcp_window_scaling of {node}" in found.text
    assert f"to 1 on {node}" in (found.remedy or "")
    scaled = {name: builders.facts(sysctls=sysctls) for name in ("pi1", "pi2")}
    (cell,) = summed(run(25.5, facts=scaled)[0], measured)
    assert cell.streams[0].window_effective_bytes == 212992


@pytest.mark.parametrize(
    ("mbps", "ceiling_mbps", "texts_"),
    [
        (911.2, 941.483, ("911", "941.5")),
        (89.46, 89.44, ("89.46", "89.44")),  # not 89.5 of 89.4, which are 100.1 %
        (9.41, 9.4148, ("9.410", "9.415")),
        (93.1, 9.41, ("93.1", "9.4")),
        (941.9, 941.483, ("941.9", "941.5")),
    ],
)
def test_a_rate_its_ceiling_and_their_share_agree(mbps: float, ceiling_mbps: float, texts_: tuple[str, str]) -> None:
    assert rate_of_ceiling(mbps, ceiling_mbps) == texts_

"""What the window allows is counted in whole segments: the sender sends no part of one while more are to follow."""

import builders
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.findings import Weight
from rigctl.records import Pair
from rigctl.report.words.limits import bottleneck_findings, bottleneck_text

RTT_US = 5170


def held_by(advertised: int, mbps: float) -> CellSummary:
    """A test whose sender waited for the window all the time, at a round trip of 5.17 ms."""
    cell = builders.cell(pairs=(Pair("near", "far"),), window_bytes=8192)
    waiting = {"advertised_window_bytes": advertised, "rtt_min_us": RTT_US, "rwnd_limited_us": 9_900_000}
    info = builders.run(builders.plan((cell,)))
    (summary,) = RunView(info, [builders.repetition(cell, [mbps], sender=waiting)]).cells
    assert summary.limit == "window"
    return summary


def test_a_window_of_8_kib_holds_five_segments_and_the_goodput_is_theirs() -> None:
    # 8192 bytes per round trip would be 12.7 Mbit/s; 5 × 1448 of them are sent.
    text = bottleneck_text(held_by(8192, 11.2))
    assert "The receiver advertised 8 KiB, 5 whole segments of 1448 bytes (7240 bytes), and a round trip" in text
    allowed = float(text.rpartition(" = ")[2].removesuffix(" Mbit/s."))
    assert allowed == pytest.approx(7240 * 8 / RTT_US, abs=0.05) == 11.2


def test_a_window_below_one_segment_has_no_segments() -> None:
    text = bottleneck_text(held_by(1000, 1.5))
    assert "whole segment" not in text
    assert "advertised 1000 bytes, and a round trip" in text


def test_one_segment_is_not_called_several() -> None:
    assert ", 1 whole segment of 1448 bytes (1448 bytes)," in bottleneck_text(held_by(2048, 2.2))


def test_the_finding_names_the_test_and_what_lifts_the_limit() -> None:
    (found,) = bottleneck_findings([held_by(8192, 11.2)])
    assert found.text == "Limited by the receive window of far: test 1; the sender waited for it half the time or more."
    assert found.remedy == "A larger window lifts this limit."
    assert (found.weight, found.subject.names) == (Weight.BOTTLENECK, ("1",))

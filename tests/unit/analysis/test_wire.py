"""Counters of the wire at switch ports: pause frames and damaged frames of one repetition."""

from dataclasses import replace

import pytest
import roles
from documents import document

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.disturbance import DisturbedBy, disturbances_of
from rigctl.model.window import CommonWindow
from rigctl.records import Port, PortSeries, Repetition, RunInfo
from rigctl.results.wire import WireCounts, pause_found, wire_counts

PORTS = tuple(Port("x", number, node=node) for number, node in zip("1234", "abcd", strict=True))
STOPPED = replace(roles.FREE, sent_beside=0.5)


def counted(ports: dict[str, dict[str, list[int]]], **changed: roles.Role) -> tuple[RunInfo, list[Repetition]]:
    """Return a run over a switch whose `ports` counted these columns."""
    info, measured = roles.Lab({**roles.ROLES, **changed}, plan={"ports": PORTS}).run()
    series = tuple(PortSeries("x", name, "snmp", {"t_ns": [1, 2, 3], **columns}) for name, columns in ports.items())
    return info, [replace(one, counters=series) for one in measured]


def test_a_counter_is_its_rise_from_the_first_to_the_last_reading() -> None:
    # Readings during the traffic do not ask for counters of the wire.
    info, (one, *_) = counted({"1": {"out_pause": [7, -1, 19], "in_pause": [0, -1, 0], "fcs_errors": [3, -1, 20]}})
    assert wire_counts(info, one, "a") == WireCounts("x 1", paused=12, asks=0, damaged=17)


def test_what_a_switch_does_not_count_is_unknown() -> None:
    info, (one, *_) = counted({"1": {"out_pause": [7, -1, -1]}})
    assert wire_counts(info, one, "a") == WireCounts("x 1")
    assert wire_counts(info, one, "b") is None
    assert dict(pause_found(info, one, "a", None)) == {}


@pytest.mark.parametrize(("frames", "share"), [(0, 0.0), (1, 0.336), (2, 0.671), (9, 1.0)])
def test_each_frame_stops_a_sender_for_at_most_65535_quanta_of_512_bits(frames: int, share: float) -> None:
    info, (one, *_) = counted({"1": {"out_pause": [0, -1, frames]}})
    window = CommonWindow(0, 10 * 10**9, 0)  # 10 s at 10 Mbit/s; a frame lasts 3.355 s at most
    found = dict(pause_found(info, one, "a", window))
    assert (found["pause_frames"], found["paused_by"]) == (frames, "x 1")
    assert found["pause_allows"] == pytest.approx(share, abs=0.001)


def test_a_sender_that_the_switch_stops_is_paused_and_not_held_by_something_unknown() -> None:
    made = counted({"1": {"out_pause": [0, -1, 400]}}, free=STOPPED)
    (test,) = disturbances_of(RunView.in_memory(*made))
    (free,) = [one for one in test.disturbances if one.victim.name == "free"]
    assert free.cause is DisturbedBy.PAUSED
    findings = document(*made).findings
    assert findings[0].text.endswith("the switch stops a with pause frames (back pressure)")
    (paused,) = [finding for finding in findings if finding.code == "class-paused"]
    assert paused.numbers == {"sender_paused": 400.0}
    (row,) = [row for row in RunView.in_memory(*made).results.pairs if row["class"] == "free"]
    assert row["limit"] == "paused"
    assert row["sender_paused"] == 400


def test_zero_pause_frames_refute_the_limit() -> None:
    made = counted({"1": {"out_pause": [5, -1, 5]}}, free=STOPPED)
    (row,) = [row for row in RunView.in_memory(*made).results.pairs if row["class"] == "free"]
    assert row["limit"] != "paused"

"""Counters of the wire at switch ports and cards: pause frames and damaged frames of one repetition."""

from dataclasses import replace
from typing import Any

import pytest
import roles
from documents import document
from known import known

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.disturbance import DisturbedBy, disturbances_of
from rigctl.model.window import CommonWindow
from rigctl.records import Condition, HostSetting, NicCounters, NodeUsage, Port, PortSeries, Repetition, RunInfo
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
    assert wire_counts(info, replace(one, nodes=()), "b") is None
    assert wire_counts(info, one, "b") == WireCounts("x 2")  # the card tells nothing of the wire
    assert dict(pause_found(info, info.plan.cells[0], one, "a", None)) == {}


@pytest.mark.parametrize(("frames", "share"), [(0, 0.0), (1, 0.336), (2, 0.671), (9, 1.0)])
def test_each_frame_stops_a_sender_for_at_most_65535_quanta_of_512_bits(frames: int, share: float) -> None:
    info, (one, *_) = counted({"1": {"out_pause": [0, -1, frames]}})
    window = CommonWindow(0, 10 * 10**9, 0)  # 10 s at 10 Mbit/s; a frame lasts 3.355 s at most
    found = dict(pause_found(info, info.plan.cells[0], one, "a", window))
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


def of_card(measured: list[Repetition], node: str, **counts: int) -> list[Repetition]:
    """Return repetitions in which the card of `node` counted this, too."""

    def told(usage: NodeUsage) -> NodeUsage:
        return replace(usage, nic=replace(usage.nic or NicCounters(), **counts)) if usage.node == node else usage

    return [replace(one, nodes=tuple(told(usage) for usage in one.nodes)) for one in measured]


def test_the_card_counts_where_no_switch_does_and_the_larger_number_holds_where_both_do() -> None:
    info, measured = counted({"1": {"out_pause": [0, -1, 12], "in_pause": [0, -1, 3], "fcs_errors": [0, -1, 2]}})
    (one, *_) = of_card(measured, "a", rx_pause=15, tx_pause=1, fcs_errors=4, alignment_errors=8)
    assert wire_counts(info, one, "a") == WireCounts("x 1", paused=15, asks=3, damaged=14)
    (alone, *_) = of_card([replace(one, counters=()) for one in measured], "b", rx_pause=0, tx_pause=9)
    assert wire_counts(info, alone, "b") == WireCounts("x 2", paused=0, asks=9)
    unknown_port = replace(info, plan=replace(info.plan, ports=()))
    assert known(wire_counts(unknown_port, alone, "b")).ports == "the other end of the cable of b"


def test_alignment_errors_alone_do_not_tell_how_many_frames_are_damaged() -> None:
    info, measured = counted({})
    (one, *_) = of_card(measured, "a", alignment_errors=0)  # r8169 has no other counter
    assert known(wire_counts(info, one, "a")).damaged is None


def row_of(info: RunInfo, measured: list[Repetition]) -> dict[str, Any]:
    (row,) = [row for row in RunView.in_memory(info, measured).results.pairs if row["class"] == "free"]
    return dict(row)


def test_a_sender_whose_own_card_counts_pause_frames_is_paused() -> None:
    info, measured = counted({}, free=STOPPED)
    row = row_of(info, of_card(measured, "a", rx_pause=400))
    assert (row["limit"], row["sender_paused"]) == ("paused", 400)
    assert row_of(info, of_card(measured, "a", rx_pause=0))["limit"] != "paused"


@pytest.mark.parametrize(
    ("facts", "asked", "limit"),
    [
        ({"rx": True, "tx": True}, {}, "paused"),
        ({"rx": False, "tx": True}, {}, None),
        (None, {"rx": "off"}, None),
        ({"rx": True, "tx": True}, {"autoneg": "off", "rx": "off"}, None),
        ({"rx": False, "tx": False}, {"autoneg": "off", "rx": "on"}, "paused"),
        ({"rx": False, "tx": False}, {"autoneg": "on"}, "paused"),  # unknown what will be negotiated
    ],
)
def test_a_card_that_does_not_heed_pause_frames_is_not_paused(
    facts: dict[str, bool] | None, asked: dict[str, str], limit: str | None
) -> None:
    info, measured = counted({}, free=STOPPED)
    condition = Condition("own", tuple(HostSetting("pause", value, key) for key, value in asked.items()))
    cells = tuple(replace(cell, condition="own" if asked else None) for cell in info.plan.cells)
    plan = replace(info.plan, cells=cells, conditions=(condition,) if asked else ())
    info = replace(info, plan=plan, facts=info.facts | {"a": {**info.facts.get("a", {}), "pause": facts}})
    row = row_of(info, of_card(measured, "a", rx_pause=400))
    assert (row["limit"] == "paused") == (limit == "paused"), row["limit"]
    codes = {finding.code for finding in document(info, of_card(measured, "a", rx_pause=400)).findings}
    assert ("class-paused" in codes) == (limit == "paused")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"late_collisions": 3}, ["3 late collisions at a, as on a cable of which one end runs half duplex."]),
        (
            {"fec_uncorrectable": 1, "fec_corrected": 10**6},
            ["Forward error correction could not repair 1 block at a: frames were lost."],
        ),
        ({"fec_corrected": 10**6, "symbol_errors": 9}, []),
    ],
)
def test_a_link_with_errors_is_named_whether_or_not_a_switch_was_read(counts: dict[str, int], said: list[str]) -> None:
    info, measured = counted({})
    found = document(info, of_card(measured, "a", **counts)).findings
    assert [each.text for each in found if each.code in {"late-collisions", "fec-uncorrectable"}] == said

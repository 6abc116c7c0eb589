"""Scenarios of bursts: what a test needs to know of links, and mistakes at their place."""

from pathlib import Path

import pytest
from planning import message, planned

from rigctl.model.bursts import drained_ms
from rigctl.settings import INTERVAL, LENGTH, MAX

RIG = """virtual: namespaces
switches: {a: , b: }
trunk: {rate: TRUNK}
links: {mtu: 1500}
nodes:
  fast1: {rate: 1G, switch: a}
  fast2: {rate: 1G, switch: a}
  slow: {rate: 10M, switch: a}
  third: {rate: 300M, switch: a}
  far: {rate: 1G, switch: b}
  unknown: {switch: a}
"""
HEAD = "rig: ./r.yaml\ntest: burst\npairs: PAIRS\n"


def head(folder: Path, pairs: str, trunk: str = "10G") -> str:
    (folder / "r.yaml").write_text(RIG.replace("TRUNK", trunk))
    return HEAD.replace("PAIRS", pairs)


FULL = (
    "[fast1 -> slow]",
    "[fast1 -> slow, fast2 -> third]",
    "[fast1 -> fast2, third -> fast2]",
    "[third -> slow, fast1 -> slow]",
)
NEVER = {
    "[fast1 -> fast2]": "fast1 sends at 1 Gbit/s to fast2, whose link carries 1 Gbit/s",
    "[slow -> fast1]": "slow sends at 10 Mbit/s to fast1, whose link carries 1 Gbit/s",
    "[slow -> fast1, third -> fast1]": "slow, third send at 310 Mbit/s to fast1, whose link carries 1 Gbit/s",
    "[fast1 -> slow, third -> fast2]": "third sends at 300 Mbit/s to fast2, whose link carries 1 Gbit/s",
}


@pytest.mark.parametrize("pairs", FULL)
def test_a_port_that_is_fuller_than_it_drains_is_measured(tmp_path: Path, pairs: str) -> None:
    plan = planned(tmp_path, "length: 10", head=head(tmp_path, pairs))
    assert [cell.message_bytes for cell in plan.cells] == [1472]


@pytest.mark.parametrize("pairs", NEVER)
def test_a_port_that_cannot_be_filled_is_refused_with_the_reason_at_the_pairs(tmp_path: Path, pairs: str) -> None:
    said = message(tmp_path, "length: 10", head=head(tmp_path, pairs))
    assert f"s.yaml:3:8: pairs: {NEVER[pairs]}: no queue grows there, however long a burst is." in said
    assert "Name further senders to" in said


def test_an_unknown_rate_refuses_nothing(tmp_path: Path) -> None:
    assert planned(tmp_path, "length: 10", head=head(tmp_path, "[unknown -> fast1]")).cells
    assert planned(tmp_path, "length: 10", head=head(tmp_path, "[fast1 -> unknown]")).cells[0].frame_ns == 12_304


def test_a_trunk_may_be_what_drains_slower_and_what_keeps_a_port_from_filling(tmp_path: Path) -> None:
    assert planned(tmp_path, "length: 10", head=head(tmp_path, "[fast1 -> far]", "100M")).cells
    said = message(tmp_path, "length: 10", head=head(tmp_path, "[fast1 -> far]", "10G"))
    assert "fast1 sends at 1 Gbit/s to far" in said
    assert planned(tmp_path, "length: 10", head=head(tmp_path, "[fast1 -> far, fast2 -> far]", "10G")).cells


def test_the_time_between_bursts_follows_from_the_slowest_link(tmp_path: Path) -> None:
    own = head(tmp_path, "[fast1 -> slow, fast2 -> slow]")
    plan = planned(tmp_path, "matrix: {length: [1, 1000, max]}", head=own)
    short, long, searched = plan.cells
    assert short.frame_ns == 1_230_400  # 1,538 bytes at 10 Mbit/s
    assert drained_ms(short) == 100
    assert drained_ms(long) == 4922  # of both senders, twice
    assert searched[LENGTH] == MAX
    assert long[INTERVAL] is None
    (cell,) = planned(tmp_path, "length: 1000\ninterval: 7s", head=own).cells
    assert (cell[INTERVAL], drained_ms(cell)) == (7000, 7000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("length: 0", 's.yaml:4:9: length "0": expected 1 to 1000000, as in 100'),
        ("length: some", 'length "some": expected a whole number'),
        ("size: 100", "length: test: burst needs one, as in length: 100 or length: max (test 1)."),
        ("length: 10\nsize: 15", "size: 15 bytes are not the payload of a datagram, which has 16 to 65507 (test 1)."),
        (
            "length: 10\nsize: 1473",
            "s.yaml:5:7: size: 1473 bytes are sent in fragments; at most 1472 fit into an MTU of",
        ),
        (
            "length: 10\ninterval: 5ms",
            'interval "5ms": expected the time between two bursts, 10 ms to 60 s in whole ms',
        ),
        ("length: 10\ninterval: 61s", 'interval "61s": expected the time between two bursts, 10 ms to 60 s'),
        (
            "length: 10\niterations: 500",
            "s.yaml:5:13: iterations: 500 bursts every 100 ms take 50 s, and the test 10 s.",
        ),
        ("length: 10\ninterval: 11s", "s.yaml:5:11: interval: a burst every 11 s takes 11 s, and the test 10 s."),
        ("length: 9000", "s.yaml:4:9: length: a burst every 22.1 s takes 22.1 s, and the test 10 s."),
        ("length: 10\nrate: 5M", "rate: only for test: tcp, udp or multicast"),
        ("length: max\nrepeat: 3\nuntil: ci95 < 1%", "until: not for length: max, which searches. Leave until out."),
        ("length: 10\nmss: 1000", "mss: only for"),
    ],
)
def test_a_mistake_is_told_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in message(tmp_path, text, head=head(tmp_path, "[fast1 -> slow]"))


def test_other_kinds_take_no_bursts(tmp_path: Path) -> None:
    for key, value in (("length", "10"), ("interval", "1s")):
        said = message(tmp_path, f"{key}: {value}")
        assert f"{key}: only for test: burst (test 1)." in said

"""Queueing disciplines and processors: from a condition to the agent's value, and back."""

import pytest
from cases import from_file

from rigctl.conditions.keys import RINGS, RPS
from rigctl.conditions.qdisc import QDISC


@from_file
def test_a_bucket_has_the_kernels_struct_and_other_kinds_attributes_or_one_number(text: str, value: str) -> None:
    assert QDISC.to_agent(text) == value
    for handle in ("7267", "8001"):
        assert sorted(QDISC.from_agent(value.replace(":0:", f":{handle}:")).split()) == sorted(text.split())


@pytest.mark.parametrize("rate", ["8", "100k", "125M", "126M", "984395k", "40G", "1000G"])
@pytest.mark.parametrize("burst", ["1600", "5001", "64K", "123457", "1M"])
def test_a_buckets_depth_that_was_read_is_written_as_the_same_again(rate: str, burst: str) -> None:
    first = QDISC.to_agent(f"tbf rate {rate} burst {burst} limit 1M")
    read = QDISC.from_agent(first.replace(":0:", ":7267:"))
    assert QDISC.to_agent(read) == first


def test_whatever_an_agent_reports_can_be_shown() -> None:
    shown = {"fq_codel": "fq_codel (default)", "htb:1:": "htb", "pfifo:7267:00": "pfifo", "pfifo:1:0g": "pfifo:1:0g"}
    shown |= {"tbf:1:08000100": "tbf:1:08000100", "tbf:7267:": "tbf:7267:", ":": ""}
    shown |= {"fq:1:0000": "fq", "fq:1:0000010000000000": "fq"}
    assert {value: QDISC.from_agent(value) for value in shown} == shown
    assert RPS.from_agent("0;3;0") == "rx-0: off, rx-1: 0-1, rx-2: off"  # queues that differ are told one by one
    assert RPS.from_agent("nonsense") == "nonsense"


def test_processors_are_masks_in_groups_of_32() -> None:
    masks = {"0": "00000001", "0-3,6": "0000004f", "31-32": "00000001,80000000", "off": "00000000"}
    for text, mask in masks.items():
        assert (RPS.to_agent(text), RPS.from_agent(mask)) == (mask, text)
        assert [RPS.is_asked(asked, text) for asked in (text, "all", "7")] == [True, True, False]


def test_what_was_not_asked_for_is_no_difference() -> None:
    assert QDISC.is_asked("fq", "fq limit 10000 quantum 3028")
    assert not QDISC.is_asked("fq limit 5000", "fq limit 10000")
    assert not QDISC.is_asked("pfifo", "pfifo_fast")
    assert [RINGS.is_asked(asked, "512") for asked in ("300", "512")] == [False, True]
    assert RINGS.to_agent("300") == RINGS.from_agent("300") == "300"

"""Queueing disciplines and processors: from a condition to the agent's value, and back."""

import pytest
from cases import from_file

from rigctl.protocol.card import from_agent, is_asked, to_agent


@from_file
def test_a_bucket_has_the_kernels_struct_and_other_kinds_attributes_or_one_number(text: str, value: str) -> None:
    assert to_agent("qdisc", text) == value
    for handle in ("7267", "8001"):
        assert sorted(from_agent("qdisc", value.replace(":0:", f":{handle}:")).split()) == sorted(text.split())


@pytest.mark.parametrize("rate", ["8", "100k", "125M", "126M", "984395k", "40G", "1000G"])
@pytest.mark.parametrize("burst", ["1600", "5001", "64K", "123457", "1M"])
def test_a_buckets_depth_that_was_read_is_written_as_the_same_again(rate: str, burst: str) -> None:
    first = to_agent("qdisc", f"tbf rate {rate} burst {burst} limit 1M")
    read = from_agent("qdisc", first.replace(":0:", ":7267:"))
    assert to_agent("qdisc", read) == first


def test_whatever_an_agent_reports_can_be_shown() -> None:
    shown = {"fq_codel": "fq_codel (default)", "htb:1:": "htb", "pfifo:7267:00": "pfifo", "pfifo:1:0g": "pfifo:1:0g"}
    shown |= {"tbf:1:08000100": "tbf:1:08000100", "tbf:7267:": "tbf:7267:", ":": ""}
    shown |= {"fq:1:0000": "fq", "fq:1:0000010000000000": "fq"}
    assert {value: from_agent("qdisc", value) for value in shown} == shown
    assert from_agent("rps", "0;3;0") == "rx-0: off, rx-1: 0-1, rx-2: off"  # queues that differ are told one by one
    assert from_agent("rps", "nonsense") == "nonsense"


def test_processors_are_masks_in_groups_of_32() -> None:
    masks = {"0": "00000001", "0-3,6": "0000004f", "31-32": "00000001,80000000", "off": "00000000", "all": "0000000f"}
    assert {text: to_agent("rps", text, "0-3") for text in masks} == masks
    read = {text: text for text in masks} | {"all": "0-3"}
    assert {text: from_agent("rps", mask) for text, mask in masks.items()} == read
    assert all(is_asked("rps", text, found) for text, found in read.items())


def test_what_was_not_asked_for_is_no_difference() -> None:
    assert is_asked("qdisc", "fq", "fq limit 10000 quantum 3028")
    assert not is_asked("qdisc", "fq limit 5000", "fq limit 10000")
    assert not is_asked("qdisc", "pfifo", "pfifo_fast")
    assert [is_asked("rings", asked, "512") for asked in ("300", "512")] == [False, True]
    assert to_agent("rings", "300") == from_agent("rings", "300") == "300"

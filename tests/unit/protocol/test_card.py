"""Queueing disciplines and processors: from a condition to the agent's value, and back."""

import pytest

from rigctl.protocol.card import from_agent, is_asked, to_agent

TBF = "tbf:0:280001000001000000000000a0acb903000000000000000000000000004006000080000000000000"
"""The kernel's own options after tc's `rate 500mbit burst 128k limit 400k`."""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tbf rate 500M burst 128K limit 400K", TBF),
        ("pfifo limit 1000", "pfifo:0:e8030000"),
        ("bfifo limit 64K", "bfifo:0:00000100"),
        ("pfifo", "pfifo:0:"),
        ("noqueue", "noqueue:0:"),
        ("fq limit 5000 pacing off maxrate 8M", "fq:0:08000100881300000800050000000000080007004042" + "0f00"),
        ("fq_codel target 2500us ecn on", "fq_codel:0:08000100c40900000800040001000000"),
        ("fq_codel target 5ms", "fq_codel:0:0800010088130000"),
    ],
)
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


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("qdisc", "fq_codel", "fq_codel (default)"),
        ("qdisc", "htb:1:", "htb"),
        ("qdisc", "pfifo:7267:00", "pfifo"),
        ("qdisc", "tbf:1:08000100", "tbf:1:08000100"),
        ("qdisc", "tbf:7267:", "tbf:7267:"),
        ("qdisc", "pfifo:1:0g", "pfifo:1:0g"),
        ("qdisc", "fq:1:0000", "fq"),
        ("qdisc", "fq:1:0000010000000000", "fq"),
        ("qdisc", ":", ""),
        ("rps", "0;3;0", "rx-0: off, rx-1: 0-1, rx-2: off"),  # queues that differ are told one by one
        ("rps", "nonsense", "nonsense"),
    ],
)
def test_whatever_an_agent_reports_can_be_shown(kind: str, value: str, text: str) -> None:
    assert from_agent(kind, value) == text


@pytest.mark.parametrize(
    ("text", "mask", "read"),
    [
        ("0", "00000001", "0"),
        ("0-3,6", "0000004f", "0-3,6"),
        ("31-32", "00000001,80000000", "31-32"),
        ("off", "00000000", "off"),
        ("all", "0000000f", "0-3"),
    ],
)
def test_processors_are_masks_in_groups_of_32(text: str, mask: str, read: str) -> None:
    assert to_agent("rps", text, "0-3") == mask
    assert from_agent("rps", mask) == read
    assert is_asked("rps", text, read)


@pytest.mark.parametrize(
    ("kind", "asked", "found", "same"),
    [
        ("qdisc", "fq", "fq limit 10000 quantum 3028", True),
        ("qdisc", "fq limit 5000", "fq limit 10000", False),
        ("qdisc", "pfifo", "pfifo_fast", False),
        ("rings", "300", "512", False),
        ("rings", "512", "512", True),
    ],
)
def test_what_was_not_asked_for_is_no_difference(kind: str, asked: str, found: str, same: bool) -> None:
    assert is_asked(kind, asked, found) is same
    assert to_agent("rings", asked) == asked
    assert from_agent("rings", found) == found

"""The sentences are true to the data they are made from."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from documents import finding, texts

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.findings import Severity, Weight
from rigctl.records import Cell, Direction, Link, Pair, Repetition, RunInfo, Status
from rigctl.report.sections.streams import mss_text, window_text
from rigctl.report.words.goodput import goodput_text

ONE_PAIR = (Pair("pi1", "pi2"),)
STAMPS = "because TCP timestamps take 12 bytes of every segment."
LOWERED = "the MTU of 1500 would carry 1448, so something on the path lowered it."
DEFAULT = "the MTU of 1500 less 40 bytes of headers"


def told(cell: Cell, *measured: Repetition, **run: Any) -> tuple[RunInfo, CellSummary]:
    info = builders.run(builders.plan([cell]), **run)
    return info, summaries(load(info, measured))[0]


@pytest.mark.parametrize(
    ("asked", "sender", "sentence"),
    [
        (1460, {}, f"MSS 1460 was requested; 1448 went over the wire, {STAMPS}"),
        (1460, {"mss": 1460, "timestamps": False}, "MSS 1460 was requested and went over the wire."),
        (1000, {"mss": 988}, f"MSS 1000 was requested; 988 went over the wire, {STAMPS}"),
        (
            8960,
            {"mss": 1460, "timestamps": False},
            "MSS 8960 was requested; 1460 went over the wire, because the MTU is 1500.",
        ),
        (8960, {"mss": 8948, "pmtu": 9000}, f"MSS 8960 was requested; 8948 went over the wire, {STAMPS}"),
        (8960, {"mss": 1400}, f"MSS 8960 was requested; 1400 went over the wire; {LOWERED}"),
        (8960, {"pmtu": None}, "MSS 8960 was requested; 1448 went over the wire."),
        (None, {}, f"No MSS was requested; 1448 went over the wire: {DEFAULT} and 12 of timestamps."),
        (None, {"mss": 1460, "timestamps": False}, f"No MSS was requested; 1460 went over the wire: {DEFAULT}."),
        (1460, {"mss": None}, ""),
    ],
)
def test_why_an_mss_is_not_the_requested_one(asked: int | None, sender: dict[str, Any], sentence: str) -> None:
    cell = builders.cell(mss=asked)
    assert mss_text(*told(cell, builders.repetition(cell, sender=sender))) == sentence


def test_with_ipv6_the_headers_are_twenty_bytes_longer() -> None:
    cell = builders.cell(mss=8960)
    facts = {node: builders.facts(data_address="fd00::1") for node in ("pi1", "pi2", "pi3", "pi4")}
    said = mss_text(*told(cell, builders.repetition(cell, sender={"mss": 1428}), facts=facts))
    assert said == "MSS 8960 was requested; 1428 went over the wire, because the MTU is 1500."
    virtual = builders.run(builders.plan([cell], ip_version=6), facts={})
    measured = builders.repetition(cell, sender={"mss": 1428})
    assert mss_text(virtual, summaries(load(virtual, [measured]))[0]) == said


def test_flows_of_a_pair_that_differ_are_reported() -> None:
    cell = builders.cell(parallel=2, pairs=ONE_PAIR)
    one = builders.repetition(cell, (900,))
    side = one.flows[1].sender
    assert side is not None
    small = replace(one.flows[1], sender=builders.counting(side, mss=1200))
    said = mss_text(*told(cell, replace(one, flows=(one.flows[0], small))))
    assert said.startswith("MSS 1460 was requested; 1200 went")
    assert said.endswith("That is the smallest: the flows of a pair differ.")


@pytest.mark.parametrize(
    ("window", "why"),
    [(8192, "no segment takes more than half of a window"), (10**6, "something on the path lowered it")],
)
def test_segments_of_half_a_small_window_are_not_blamed_on_the_path(window: int, why: str) -> None:
    cell = builders.cell(mss=None, window_bytes=window, pairs=ONE_PAIR)
    sender = {"mss": 4096, "pmtu": 9000, "sndbuf_bytes": 2 * window}
    assert why in mss_text(*told(cell, builders.repetition(cell, sender=sender)))


def test_without_a_link_there_is_no_ceiling_and_without_its_rate_none_is_claimed() -> None:
    cell = builders.cell(pairs=ONE_PAIR)
    one = builders.repetition(cell, (22512,))
    links = {"pi1": Link(None, 65536), "pi2": Link(None, 65536)}
    loopback = builders.run(builders.plan([cell], links=links, virtual="loopback"))
    said = goodput_text(loopback, summaries(load(loopback, [one]))[0])
    assert said == "22512 Mbit/s. The links are unshaped, so there is no ceiling."
    unknown = builders.run(builders.plan([cell], links=links, virtual=None), facts={})
    said = goodput_text(unknown, summaries(load(unknown, [one]))[0])
    assert said == "22512 Mbit/s. The ceiling is unknown, as the rate of a link is: give it in the rig file."
    assert "The rig is the loopback interface of one machine: no link, no switch." in texts(loopback, [one])


def test_a_window_cut_by_the_kernel_names_the_setting_that_cut_it() -> None:
    cell = builders.cell(window_bytes=4 * 1024**2)
    cut = builders.repetition(cell, sender={"sndbuf_bytes": 2 * 212992})
    facts = {
        "pi1": {"sysctls": {"net.core.wmem_max": "212992"}},
        "pi3": {"sysctls": {"net.core.wmem_max": "425984"}},
    }
    assert window_text(*told(cell, cut, facts=facts)) == (
        "A window of 4 MiB was requested; 208 KiB was granted, because of net.core.wmem_max = 212992 on pi1. "
        "Raise it there with sysctl to have more."
    )
    assert "was granted: the kernel cuts it at net.core.wmem_max" in window_text(*told(cell, cut, facts={}))


def test_another_congestion_control_is_named() -> None:
    cell = builders.cell(congestion="bbr")
    info = builders.run(builders.plan([cell]))
    said = [text for text in texts(info, [builders.repetition(cell)]) if "was requested" in text and "bbr" in text]
    assert said == [
        "bbr was requested, cubic was used: test 1. Load its kernel module on the senders: `modprobe tcp_bbr`."
    ]
    asked = builders.asking(cell, congestion="cubic")
    same = builders.run(builders.plan([asked]))
    assert not [text for text in texts(same, [builders.repetition(asked)]) if "cubic was" in text]


def test_links_that_are_not_as_the_rig_file_says_are_named() -> None:
    info, measured = builders.gigablox()
    facts = info.facts | {"pi1": builders.facts(speed_bps=10**8), "pi2": builders.facts(mtu=9000)}
    changed = replace(info, facts=facts)
    slow = finding(changed, measured, "The link of pi1 runs at 100 Mbit/s; the rig file has 1 Gbit/s.")
    assert (slow.weight, slow.level) == (Weight.SUSPECT, Severity.WARNING)
    assert (slow.subject.kind, slow.subject.names) == ("link", ("pi1",))
    assert finding(changed, measured, "The MTU of pi2 is 9000; the rig file has 1500.").weight == Weight.SUSPECT


def test_no_number_of_a_repetition_that_does_not_count_is_in_a_sentence() -> None:
    cell = builders.cell(direction=Direction.REVERSE)
    bad = builders.repetition(cell, (123, 123), status=Status.INVALID, reason="start skew")
    good = builders.repetition(cell, (900, 900), attempt=2)
    info, summary = told(cell, bad, good)
    assert not any("123" in sentence for sentence in texts(info, [bad, good]))
    assert "123" not in goodput_text(info, summary)

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import builders
import pytest
from documents import cells_of, finding, texts

from rigctl.analysis.summary import CellSummary
from rigctl.findings import Severity, Weight
from rigctl.model.contract import departures
from rigctl.records import Cell, Direction, Link, Numa, Pair, Repetition, RunInfo, Series, Status
from rigctl.report.document import document
from rigctl.report.sections.streams import mss_text, window_text
from rigctl.report.words.goodput import excess_cause
from rigctl.report.words.limits import bottleneck_text, full_text
from rigctl.settings.setting import Counts

ONE_PAIR = (Pair("pi1", "pi2"),)
PLAIN = {"mss": 1460, "timestamps": False}
STAMPS = "because TCP timestamps take 12 bytes of every segment."
LOWERED = "the MTU of 1500 would carry 1448, so something on the path lowered it."
DEFAULT = "the MTU of 1500 less 40 bytes of headers"


def summarised(cell: Cell, *measured: Repetition, plan: Any = None, **run: Any) -> tuple[RunInfo, CellSummary]:
    info = builders.run(builders.plan([cell], **(plan or {})), **run)
    return info, cells_of(info, measured)[0]


def alone(cell: Cell, **measured: Any) -> tuple[RunInfo, list[Repetition]]:
    return builders.run(builders.plan([cell])), [builders.repetition(cell, **measured)]


@pytest.mark.parametrize(
    ("asked", "sender", "sentence"),
    [
        (1460, {}, f"MSS 1460 was requested; 1448 went over the wire, {STAMPS}"),
        (1460, PLAIN, "MSS 1460 was requested and went over the wire."),
        (1000, {"mss": 988}, f"MSS 1000 was requested; 988 went over the wire, {STAMPS}"),
        (8960, PLAIN, "MSS 8960 was requested; 1460 went over the wire, because the MTU is 1500."),
        (8960, {"mss": 8948, "pmtu": 9000}, f"MSS 8960 was requested; 8948 went over the wire, {STAMPS}"),
        (8960, {"mss": 1400}, f"MSS 8960 was requested; 1400 went over the wire; {LOWERED}"),
        (8960, {"pmtu": None}, "MSS 8960 was requested; 1448 went over the wire."),
        (None, {}, f"No MSS was requested; 1448 went over the wire: {DEFAULT} and 12 of timestamps."),
        (None, PLAIN, f"No MSS was requested; 1460 went over the wire: {DEFAULT}."),
        (1460, {"mss": None}, ""),
    ],
)
def test_why_an_mss_is_not_the_requested_one(asked: int | None, sender: dict[str, Any], sentence: str) -> None:
    cell = builders.cell(mss=asked)
    assert mss_text(*summarised(cell, builders.repetition(cell, sender=sender))) == sentence


def test_with_ipv6_the_headers_are_twenty_bytes_longer() -> None:
    cell = builders.cell(mss=8960)
    facts = {node: builders.facts(data_address="fd00::1") for node in ("pi1", "pi2", "pi3", "pi4")}
    measured = builders.repetition(cell, sender={"mss": 1428})
    said = mss_text(*summarised(cell, measured, facts=facts))
    assert said == "MSS 8960 was requested; 1428 went over the wire, because the MTU is 1500."
    assert mss_text(*summarised(cell, measured, plan={"ip_version": 6}, facts={})) == said


def test_flows_of_a_pair_that_differ_are_reported() -> None:
    cell = builders.cell(parallel=2, pairs=ONE_PAIR)
    one = builders.repetition(cell, (900,))
    small = builders.changing(one.flows[1], sender={"mss": 1200})
    said = mss_text(*summarised(cell, replace(one, flows=(one.flows[0], small))))
    assert said.startswith("MSS 1460 was requested; 1200 went")
    assert said.endswith("That is the smallest: the flows of a pair differ.")


@pytest.mark.parametrize(
    ("window", "why"), [(8192, "no segment takes more than half of a window"), (10**6, "on the path lowered it")]
)
def test_segments_of_half_a_small_window_are_not_blamed_on_the_path(window: int, why: str) -> None:
    cell = builders.cell(mss=None, window_bytes=window, pairs=ONE_PAIR)
    sender = {"mss": 4096, "pmtu": 9000, "sndbuf_bytes": 2 * window}
    assert why in mss_text(*summarised(cell, builders.repetition(cell, sender=sender)))


def test_without_a_link_there_is_no_ceiling_and_without_its_rate_none_is_claimed() -> None:
    cell = builders.cell(pairs=ONE_PAIR)
    one = builders.repetition(cell, (22512,))
    links = {"pi1": Link(None, 65536), "pi2": Link(None, 65536)}
    loopback = builders.run(builders.plan([cell], links=links, virtual="loopback"))
    assert {"22512 Mbit/s", "The links are unshaped, so there is no ceiling."} <= {*texts(loopback, [one])}
    assert "The rig is the loopback interface of one machine: no link, no switch." in texts(loopback, [one])
    unknown = builders.run(builders.plan([cell], links=links, virtual=None), facts={})
    assert finding(unknown, [one], "The ceiling is unknown, as the rate of a link is: give it in the rig file.")
    several = builders.asking(cell, mptcp=True)
    said = texts(builders.run(builders.plan([several])), [builders.repetition(several, (1800,))])
    assert "Multipath TCP may use several links, so there is no ceiling: the rig file has the rate of one." in said


def test_a_window_cut_by_the_kernel_names_the_setting_that_cut_it() -> None:
    cell = builders.cell(window_bytes=4 * 1024**2)
    cut = builders.repetition(cell, sender={"sndbuf_bytes": 2 * 212992})
    facts = {"pi1": {"sysctls": {"net.core.wmem_max": "212992"}}, "pi3": {"sysctls": {"net.core.wmem_max": "425984"}}}
    assert window_text(*summarised(cell, cut, facts=facts)) == (
        "A window of 4 MiB was requested; 208 KiB was granted, because of net.core.wmem_max = 212992 on pi1. "
        "Raise it there with sysctl to have more."
    )
    assert "was granted: the kernel cuts it at net.core.wmem_max" in window_text(*summarised(cell, cut, facts={}))


def test_another_congestion_control_is_named() -> None:
    found = finding(*alone(builders.cell(congestion="bbr")), "bbr was requested")
    assert found.text == "bbr was requested, cubic was used: test 1."
    assert found.remedy == "Load its kernel module on the senders: `modprobe tcp_bbr`."


def test_links_that_are_not_as_the_rig_file_says_are_named() -> None:
    info, measured = builders.gigablox()
    facts = info.facts | {"pi1": builders.facts(speed_bps=10**8), "pi2": builders.facts(mtu=9000)}
    info = replace(info, facts=facts)
    slow = finding(info, measured, "The link of pi1 runs at 100 Mbit/s; the rig file has 1 Gbit/s.")
    assert (slow.weight, slow.level) == (Weight.SUSPECT, Severity.WARNING)
    assert (slow.subject.kind, slow.subject.names) == ("link", ("pi1",))
    assert finding(info, measured, "The MTU of pi2 is 9000; the rig file has 1500.").weight == Weight.SUSPECT


def test_no_number_of_a_repetition_that_does_not_count_is_in_a_sentence() -> None:
    cell = builders.cell(direction=Direction.REVERSE)
    bad = builders.repetition(cell, (123, 123), status=Status.INVALID, reason="start skew")
    good = builders.repetition(cell, (900, 900), attempt=2)
    info, _ = summarised(cell, bad, good)
    assert not any("123" in sentence for sentence in texts(info, [bad, good]))


CEILING = 941.483
SENDING = {"busy_us": 10_000_000, "rwnd_limited_us": 0, "sndbuf_limited_us": 0}


def run(*speeds: float, facts: dict[str, Any] | None = None, **sender: Any) -> tuple[RunInfo, list[Repetition]]:
    cells = [builders.cell(number, pairs=ONE_PAIR, window_bytes=None, mss=None) for number in range(1, len(speeds) + 1)]
    info = builders.run(builders.plan(cells, virtual=None), **({} if facts is None else {"facts": facts}))
    sent = SENDING | sender
    return info, [builders.repetition(cell, (mbps,), sender=sent) for cell, mbps in zip(cells, speeds, strict=True)]


def test_a_result_above_the_ceiling_is_the_headline_and_reaches_no_line_rate() -> None:
    info, measured = run(9 * CEILING, 0.99 * CEILING, 0.985 * CEILING)
    (first, *rest) = document(info, measured).findings
    assert (first.weight, first.subject.names) == (Weight.IMPOSSIBLE, ("1",))
    assert "the rig file or a node is wrong" in first.text
    assert "1" not in next(found for found in rest if found.weight is Weight.ANSWER).subject.names
    lines = finding(info, measured, "Line rate")
    assert (lines.numbers["tests"], lines.numbers["at_line_rate"]) == (2, 2)
    assert cells_of(info, measured)[0].limit == "unknown"


def test_nothing_is_called_fastest_where_all_is_above_the_ceiling() -> None:
    first, *others = document(*run(9 * CEILING, 3 * CEILING)).findings
    assert first.weight is Weight.IMPOSSIBLE
    assert Weight.ANSWER not in {found.weight for found in others}


def test_losses_cut_the_window_only_of_what_cuts_it() -> None:
    info, _ = run(400.0)
    cell = info.plan.cells[0]
    cubic = [builders.repetition(cell, (400.0,), (5,), sender={**SENDING, "rtt_us": 5000, "series": Series()})]
    assert cells_of(info, cubic)[0].limit == "loss"
    assert "each loss cuts the congestion window" in finding(info, cubic, "Limited by losses: test 1;").text
    # 3.5 % were lost behind a full line.
    bbr = [builders.repetition(cell, (0.95 * CEILING,), (27_000,), sender={**SENDING, "congestion": "bbr"})]
    assert cells_of(info, bbr)[0].limit == "loss"
    said = finding(info, bbr, "Limited by losses: test 1;").text
    assert "bbr does not cut its window at each loss" in said
    assert "each loss cuts" not in said


def test_an_mss_that_neither_end_explains_is_a_clamp() -> None:
    info, measured = run(905.0, mss=888, pmtu=1500)
    (cell,) = cells_of(info, measured)
    assert (cell.limit, cell.verdict.cause) == ("mtu", "clamp")
    found = finding(info, measured, "Limited by the MSS: test 1;")
    assert "888 bytes" in found.text
    assert "TCPMSS" in (found.remedy or "")
    links = {"pi1": Link(10**9, 1500), "pi2": Link(10**9, 940)}
    small = builders.run(builders.plan(info.plan.cells, virtual=None, links=links), facts={})
    (cell,) = cells_of(small, measured)
    assert (cell.limit, cell.verdict.cause) == ("mtu", None)  # that is pi2's own MTU
    assert "same MTU" in (finding(small, measured, "Limited by the MTU").remedy or "")


@pytest.mark.parametrize("node", ["pi1", "pi2"])
def test_without_window_scaling_no_window_is_larger_than_64_kib(node: str) -> None:
    sysctls = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_window_scaling": "1"}
    facts = {name: builders.facts(sysctls=sysctls) for name in ("pi1", "pi2")}
    facts[node] = builders.facts(sysctls=sysctls | {"net.ipv4.tcp_window_scaling": "0"})
    held = {"rwnd_limited_us": 9_900_000, "rtt_min_us": 20_000, "rtt_us": 20_000, "advertised_window_bytes": 65535}
    info, measured = run(25.5, facts=facts, **held)
    (cell,) = cells_of(info, measured)
    assert cell.streams[0].window_effective_bytes == 65535
    assert cell.limit == "window"
    found = finding(info, measured, "Limited by the receive window")
    assert f"net.ipv4.tcp_window_scaling of {node}" in found.text
    assert f"to 1 on {node}" in (found.remedy or "")
    (cell,) = cells_of(run(25.5, facts={name: builders.facts(sysctls=sysctls) for name in ("pi1", "pi2")})[0], measured)
    assert cell.streams[0].window_effective_bytes == 212992


def test_no_link_is_more_than_full() -> None:
    expected = {0.982: "98.2 % full", 1.004: "100 % full", None: "an unknown share full"}
    assert {share: full_text(share) for share in expected} == expected
    assert full_text(1.012).startswith("full (101 % of its rate in the rig file was counted: that rate is wrong, or ")


SHAPED = "virtual links are shaped for full frames and carry more of smaller ones"
UNEXPLAINED = "the rate in the rig file or a node is wrong. Compare that rate with the link"


@pytest.mark.parametrize(("duration_s", "sender"), [(10.0, {"mss": 524}), (0.1, {})])
def test_on_real_links_nothing_about_virtual_ones_is_blamed(duration_s: float, sender: dict[str, Any]) -> None:
    cell = builders.cell(pairs=ONE_PAIR, duration_s=duration_s)
    measured = builders.repetition(cell, (960.0,), sender=sender)
    assert excess_cause(*summarised(cell, measured, plan={"virtual": None})) == UNEXPLAINED


def test_tests_above_the_ceiling_are_grouped_by_their_cause() -> None:
    cells = [builders.cell(number, pairs=ONE_PAIR) for number in (1, 2, 3, 4)]
    rates: list[tuple[float, dict[str, Any]]] = [(890, {"mss": 524}), (960, {}), (900, {"mss": 524}), (940, {})]
    measured = [builders.repetition(cell, (rate,), sender=s) for cell, (rate, s) in zip(cells, rates, strict=True)]
    info = builders.run(builders.plan(cells))
    found = [made for made in document(info, measured).findings if made.text.startswith("Above")]
    assert [made.subject.names for made in found] == [("2",), ("1", "3")]  # what nothing explains comes first
    assert [SHAPED in made.text for made in found] == [False, True]


def bbr(duration_s: float, congestion: str = "bbr") -> tuple[RunInfo, list[Repetition]]:
    tests = ((1, "bbr"), (2, "cubic"))
    cells = [builders.cell(number, congestion=name, duration_s=duration_s) for number, name in tests]
    measured = [builders.repetition(cells[0], sender={"congestion": congestion}), builders.repetition(cells[1])]
    return builders.run(builders.plan(cells)), measured


def one_of_two() -> tuple[RunInfo, list[Repetition]]:
    first, second = builders.cell(1, mss=1460), builders.cell(2, mss=8960)
    return builders.run(builders.plan([first, second])), [builders.repetition(first), builders.failed(second)]


SILENT: dict[str, tuple[Callable[[], tuple[RunInfo, list[Repetition]]], str]] = {
    "dips of a test that is too short for one": (lambda: bbr(9.9), "Dips"),
    "dips of a test without bbr": (lambda: bbr(60.0, "cubic"), "Dips"),
    "the MSS of a test that does not count": (one_of_two, "made no difference"),
    "the congestion control that was requested": (lambda: alone(builders.cell(congestion="cubic")), "cubic was"),
    "a retransmit of very many segments": (lambda: alone(builders.cell(), retransmits=(1, 0)), "etransmits"),
    "the line rate where all is above it": (lambda: run(9 * CEILING, 3 * CEILING), "line rate"),
}


@pytest.mark.parametrize("case", SILENT)
def test_nothing_is_said_of(case: str) -> None:
    made, word = SILENT[case]
    assert not [said for said in texts(*made()) if word in said]
    assert finding(*bbr(10.0), "Dips of goodput").subject.names == ("1",)


def test_retransmits_of_repetitions_are_told_as_their_mean() -> None:
    cell = builders.cell()
    twice = builders.run(builders.plan([cell], repeat=2))
    measured = [builders.repetition(cell, retransmits=(33, again), number=number) for number, again in ((1, 1), (2, 0))]
    said = finding(twice, measured, "Retransmits in all measurement intervals together: 34, 1 in ").text
    assert said.endswith(" segments, the mean of the repetitions.")


APART = "Sender and card of pi1 are on different NUMA nodes, 0 and 1: test 1."
SHARED = "Two flows share processor 3 of pi1: test 1."


def placed(asked: str | None, *samples: tuple[int, int], numa: Numa | None = None) -> tuple[RunInfo, list[Repetition]]:
    """Return a run of two flows whose senders ran on these processors, each with its count of samples."""
    cell = builders.cell(pairs=ONE_PAIR, parallel=2, placement=asked)
    one = builders.repetition(cell, (400.0,), sender={"processors": Counts(samples), "numa": numa or Numa()})
    return builders.run(builders.plan([cell])), [one]


@pytest.mark.parametrize("asked", ["3", "3/scheduler", "scheduler/3", None])
@pytest.mark.parametrize("card", [0, 1, None])
def test_a_sender_on_another_node_than_its_card_is_told(asked: str | None, card: int | None) -> None:
    said = texts(*placed(asked, (2, 1), (3, 98), numa=Numa(0, card)))
    told = asked in ("3", "3/scheduler") and card == 1
    assert any(text.startswith(APART) for text in said) is told
    assert any("different NUMA nodes" in text for text in said) is told


@pytest.mark.parametrize(
    ("asked", "samples", "told"),
    [("3", ((3, 98), (2, 2)), True), (None, ((3, 100),), False), ("2-3", ((3, 50), (2, 50)), False)],
)
def test_flows_that_share_a_processor_are_told(asked: str | None, samples: Any, told: bool) -> None:
    said = texts(*placed(asked, *samples))
    assert any(text.startswith(SHARED) for text in said) is told
    assert any("share processor" in text for text in said) is told


def test_a_flow_elsewhere_than_asked_is_a_departure() -> None:
    as_asked: list[tuple[str, Numa]] = [(asked, Numa()) for asked in ("3", "2-3", "packets", "scheduler/2")]
    elsewhere = [("2", Numa()), ("nic", Numa(0, 1))]
    for asked, numa in (*as_asked, ("nic", Numa(0, 0)), ("nic", Numa(0, None)), *elsewhere):
        info, (repetition,) = placed(asked, (3, 100), numa=numa)
        found = [departure.effective for departure in departures(info.plan.cells[0], repetition.flows)]
        assert found == ["3: 100 %"] * ((asked, numa) in elsewhere), (asked, numa)


@pytest.mark.parametrize(
    ("granted", "said"),
    [
        ("256 -> 64 (100000 was asked for)", ["100000 was requested; 64 is in effect on a and b."]),
        ("1500 -> 9000", []),
        ("pfifo limit 10 -> fq limit 100 (fq limit 99 was asked for)", ["fq limit 99 was requested; fq limit 100 is"]),
    ],
)
def test_a_host_setting_that_was_rounded_is_told(granted: str, said: list[str]) -> None:
    info, repetitions = placed(None, (0, 100))
    facts = {node: builders.facts() | {"condition deep": {"ring rx": granted}} for node in ("a", "b")}
    found = [text for text in texts(replace(info, facts=facts), repetitions) if text.startswith("Condition deep")]
    assert len(found) == len(said)
    assert all(f"Condition deep: ring rx {words}" in text for words, text in zip(said, found, strict=True))


def test_limits_of_very_many_pairs_are_counted() -> None:
    cell = builders.cell(pairs=tuple(Pair(f"a{n}", f"b{n}") for n in range(12)), window_bytes=None, mss=None)
    measured = builders.repetition(cell, [941.0] * 9 + [300.0] * 3, sender=SENDING)
    assert bottleneck_text(summarised(cell, measured)[1]) == "By pair: 9 line-rate and 3 unknown."

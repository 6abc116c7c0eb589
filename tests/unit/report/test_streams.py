from collections.abc import Callable
from dataclasses import replace
from typing import Any

import builders
import pytest
from cases import from_file
from documents import cells_of, codes, document, finding, texts
from known import known

from rigctl.findings import Severity, Weight
from rigctl.findings.goodput import Cause, excess_cause
from rigctl.findings.limits import bottleneck_text, full_text
from rigctl.model.contract import departures
from rigctl.records import Bins, Cell, Direction, Link, Numa, Pair, Repetition, RunInfo, Series, Status
from rigctl.report.sections.streams import effective_mss_finding, window_finding
from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import CellSummary
from rigctl.settings.setting import Counts

ONE_PAIR = (Pair("pi1", "pi2"),)


def summarised(cell: Cell, *measured: Repetition, plan: Any = None, **run: Any) -> tuple[RunInfo, CellSummary]:
    info = builders.run(builders.plan([cell], **(plan or {})), **run)
    return info, cells_of(info, measured)[0]


def alone(cell: Cell, **measured: Any) -> tuple[RunInfo, list[Repetition]]:
    return builders.run(builders.plan([cell])), [builders.repetition(cell, **measured)]


@from_file
def test_why_an_mss_is_not_the_requested_one(asked: int | None, sender: dict[str, Any], code: str | None) -> None:
    cell = builders.cell(mss=asked)
    found = effective_mss_finding(*summarised(cell, builders.repetition(cell, sender=sender)))
    assert (found and found.code) == code


def test_with_ipv6_the_headers_are_twenty_bytes_longer() -> None:
    cell = builders.cell(mss=8960)
    facts = {node: builders.facts(data_address="fd00::1") for node in ("pi1", "pi2", "pi3", "pi4")}
    measured = builders.repetition(cell, sender={"mss": 1428})
    found = known(effective_mss_finding(*summarised(cell, measured, facts=facts)))
    assert found.code == "mss-mtu"
    assert effective_mss_finding(*summarised(cell, measured, plan={"ip_version": 6}, facts={})) == found


def test_flows_of_a_pair_that_differ_are_reported() -> None:
    cell = builders.cell(parallel=2, pairs=ONE_PAIR)
    one = builders.repetition(cell, (900,))
    small = builders.changing(one.flows[1], sender={"mss": 1200})
    measured = [replace(one, flows=(one.flows[0], second)) for second in (small, one.flows[1])]
    alike, apart = (effective_mss_finding(*summarised(cell, each)) for each in measured)
    assert (known(alike).code, known(apart).code) == ("mss-lowered", "mss-timestamps")


@pytest.mark.parametrize(("size", "code"), [(8192, "mss-half-window"), (10**6, "mss-lowered")])
def test_segments_of_half_a_small_window_are_not_blamed_on_the_path(size: int, code: str) -> None:
    cell = builders.cell(mss=None, window_bytes=size, pairs=ONE_PAIR)
    sender = {"mss": 4096, "pmtu": 9000, "sndbuf_bytes": 2 * size}
    assert known(effective_mss_finding(*summarised(cell, builders.repetition(cell, sender=sender)))).code == code


def test_without_a_link_there_is_no_ceiling_and_without_its_rate_none_is_claimed() -> None:
    cell = builders.cell(pairs=ONE_PAIR)
    one = builders.repetition(cell, (22512,))
    links = {"pi1": Link(None, 65536), "pi2": Link(None, 65536)}
    loopback = builders.run(builders.plan([cell], links=links, virtual="loopback"))
    unknown = builders.run(builders.plan([cell], links=links, virtual=None), facts={})
    several = builders.asking(cell, mptcp=True)
    many = builders.run(builders.plan([several])), [builders.repetition(several, (1800,))]
    for run, measured in ((loopback, [one]), (unknown, [one]), many):
        found = finding(run, measured, "goodput")
        assert (found.numbers["ceiling_mbps"], "no-ceiling" in codes(run, measured)) == (None, True)


@pytest.mark.parametrize(("kept", "binned"), [(2**64, None), (2**32, 50_000_000_000 - 10 * 2**32)])
def test_bins_that_do_not_add_up_to_the_bytes_of_their_flow_are_reported(kept: int, binned: int | None) -> None:
    """As those of older agents, which kept 32 bits of the 5 GB that come in a second at 40 Gbit/s."""
    cell = replace(builders.cell(pairs=ONE_PAIR), bin_us=1_000_000)
    one = builders.repetition(cell, (40_000,))
    assert known(one.flows[0].receiver).bytes == 50_000_000_000
    counted = Bins(known(one.window_start_ns), 1_000_000, (5_000_000_000 % kept,) * 10)
    measured = builders.changing_flows(one, receiver={"bins": counted})
    told = [
        found
        for found in document(builders.run(builders.plan([cell])), [measured]).findings
        if "binned" in found.numbers
    ]
    assert [found.numbers for found in told] == (
        [] if binned is None else [{"binned": binned, "received": 50_000_000_000}]
    )
    assert [(found.code, found.level) for found in told] == [("bins-differ", Severity.WARNING)] * len(told)


def test_a_window_cut_by_the_kernel_names_the_setting_that_cut_it() -> None:
    cell = builders.cell(window_bytes=4 * 1024**2)
    cut = builders.repetition(cell, sender={"sndbuf_bytes": 2 * 212992})
    facts = {"pi1": {"sysctls": {"net.core.wmem_max": "212992"}}, "pi3": {"sysctls": {"net.core.wmem_max": "425984"}}}
    by_node, unknown = (window_finding(*summarised(cell, cut, facts=known_facts)) for known_facts in (facts, {}))
    assert (known(by_node).code, known(unknown).code) == ("window-bound", "window-smaller")


def test_another_congestion_control_is_named() -> None:
    found = finding(*alone(builders.cell(congestion="bbr")), "congestion-not-granted")
    assert found.remedy == "Load its kernel module on the senders: `modprobe tcp_bbr`."


def test_links_that_are_not_as_the_rig_file_says_are_named() -> None:
    info, measured = builders.gigablox()
    facts = info.facts | {"pi1": builders.facts(speed_bps=10**8), "pi2": builders.facts(mtu=9000)}
    info = replace(info, facts=facts)
    slow = finding(info, measured, "link-not-as-stated")
    assert (slow.weight, slow.level) == (Weight.SUSPECT, Severity.WARNING)
    assert (slow.subject.kind, slow.subject.names) == ("link", ("pi1",))
    assert finding(info, measured, "mtu-not-as-stated").subject.names == ("pi2",)


LACP = {"mode": "802.3ad", "hash": "layer2", "cards": 2, "card_bps": 10**8, "total_bps": 2 * 10**8}


@pytest.mark.parametrize(
    ("bond", "parallel", "ceiling_mbps"),
    [
        (LACP, 1, 94.15),
        (LACP, 4, 94.15),
        (LACP | {"hash": "layer3+4"}, 1, 94.15),
        (LACP | {"hash": "layer3+4"}, 4, 188.3),
        (LACP | {"mode": "balance-rr"}, 1, 188.3),
    ],
)
def test_a_flow_over_a_bond_fills_the_card_that_it_gets(bond: Any, parallel: int, ceiling_mbps: float) -> None:
    """Two cards of 100 Mbit/s in a bond that reports 200: one flow at 94 is no shaped path (esnet/iperf issue 616)."""
    cell = builders.cell(pairs=(Pair("a", "b"),), parallel=parallel)
    plan = builders.plan([cell], links=dict.fromkeys("ab", Link(None, 1500)), virtual=None)
    facts = builders.facts(speed_bps=2 * 10**8, bond=bond)
    info = builders.run(plan, facts=dict.fromkeys("ab", facts))
    measured = [builders.repetition(cell, (0.99 * ceiling_mbps,))]
    (row,) = condensed_in_memory(info, measured).cells
    assert row["ceiling_mbps"] == pytest.approx(ceiling_mbps, abs=0.05)
    assert row["limit"] == "line-rate"
    told = [sentence for sentence in texts(info, measured) if "bond of 2 cards of 100 Mbit/s" in sentence]
    assert len(told) == (bond["mode"] == "802.3ad")


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
    assert first.code == "above-ceiling"
    assert "1" not in next(found for found in rest if found.weight is Weight.ANSWER).subject.names
    lines = finding(info, measured, "goodput")
    assert (lines.numbers["tests"], lines.numbers["at_line_rate"]) == (2, 2)
    assert cells_of(info, measured)[0].limit == "unknown"


def test_nothing_is_called_fastest_where_all_is_above_the_ceiling() -> None:
    first, *others = document(*run(9 * CEILING, 3 * CEILING)).findings
    assert first.weight is Weight.IMPOSSIBLE
    assert Weight.ANSWER not in {found.weight for found in others}


def test_losses_cut_the_window_only_of_what_cuts_it() -> None:
    at_5_ms = Series({"t_ns": [builders.BEGIN_NS + at for at in range(8)], "rtt_us": [5000] * 8, "cwnd": [300] * 8})
    far = {"rtt_us": 5000, "rtt_min_us": 5000, "advertised_window_bytes": 3_000_000, "series": at_5_ms}
    lossy = {**SENDING, **far}, {**SENDING, "congestion": "bbr"}  # 3.5 % of a full line
    for sender, mbps, again in zip(lossy, (400.0, 0.95 * CEILING), (5, 27_000), strict=True):
        info, _ = run(mbps)
        measured = [builders.repetition(info.plan.cells[0], (mbps,), (again,), sender=sender)]
        (summary,) = cells_of(info, measured)
        assert (summary.limit, summary.verdict.numbers["halves"]) == ("loss", "congestion" not in sender)
        assert finding(info, measured, "limit-loss").subject.names == ("1",)


def test_an_mss_that_neither_end_explains_is_a_clamp() -> None:
    info, measured = run(905.0, mss=888, pmtu=1500)
    (cell,) = cells_of(info, measured)
    assert (cell.limit, cell.verdict.cause) == ("mtu", "clamp")
    found = finding(info, measured, "limit-mtu")
    assert found.numbers["clamped_mss"] == 888
    assert "TCPMSS" in (found.remedy or "")
    links = {"pi1": Link(10**9, 1500), "pi2": Link(10**9, 940)}
    small = builders.run(builders.plan(info.plan.cells, virtual=None, links=links), facts={})
    (cell,) = cells_of(small, measured)
    assert (cell.limit, cell.verdict.cause) == ("mtu", None)  # that is pi2's own MTU
    assert "same MTU" in (finding(small, measured, "limit-mtu").remedy or "")


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
    found = finding(info, measured, "limit-window")
    assert f"to 1 on {node}" in (found.remedy or "")
    (cell,) = cells_of(run(25.5, facts={name: builders.facts(sysctls=sysctls) for name in ("pi1", "pi2")})[0], measured)
    assert cell.streams[0].window_effective_bytes == 212992


def test_no_link_is_more_than_full() -> None:
    expected = {0.982: "98.2 % full", 1.004: "100 % full", None: "an unknown share full"}
    assert {share: full_text(share) for share in expected} == expected
    assert full_text(1.012).startswith("full (101 % of its rate in the rig file was counted: that rate is wrong, or ")


@pytest.mark.parametrize(("duration_s", "sender"), [(10.0, {"mss": 524}), (0.1, {})])
def test_on_real_links_nothing_about_virtual_ones_is_blamed(duration_s: float, sender: dict[str, Any]) -> None:
    cell = builders.cell(pairs=ONE_PAIR, duration_s=duration_s)
    measured = builders.repetition(cell, (960.0,), sender=sender)
    assert excess_cause(*summarised(cell, measured, plan={"virtual": None})) is Cause.UNKNOWN


def test_tests_above_the_ceiling_are_grouped_by_their_cause() -> None:
    cells = [builders.cell(number, pairs=ONE_PAIR) for number in (1, 2, 3, 4)]
    rates: list[tuple[float, dict[str, Any]]] = [(890, {"mss": 524}), (960, {}), (900, {"mss": 524}), (940, {})]
    measured = [builders.repetition(cell, (rate,), sender=s) for cell, (rate, s) in zip(cells, rates, strict=True)]
    info = builders.run(builders.plan(cells))
    found = [made for made in document(info, measured).findings if made.code == "above-ceiling"]
    assert [made.subject.names for made in found] == [("2",), ("1", "3")]  # what nothing explains comes first
    assert [made.weight for made in found] == [Weight.IMPOSSIBLE, Weight.SUSPECT]


def bbr(duration_s: float, congestion: str = "bbr") -> tuple[RunInfo, list[Repetition]]:
    tests = ((1, "bbr"), (2, "cubic"))
    cells = [builders.cell(number, congestion=name, duration_s=duration_s) for number, name in tests]
    measured = [builders.repetition(cells[0], sender={"congestion": congestion}), builders.repetition(cells[1])]
    return builders.run(builders.plan(cells)), measured


def one_of_two() -> tuple[RunInfo, list[Repetition]]:
    first, second = builders.cell(1, mss=1460), builders.cell(2, mss=8960)
    return builders.run(builders.plan([first, second])), [builders.repetition(first), builders.failed(second)]


SILENT: dict[str, tuple[Callable[[], tuple[RunInfo, list[Repetition]]], str]] = {
    "dips of a test that is too short for one": (lambda: bbr(9.9), "bbr-dips"),
    "dips of a test without bbr": (lambda: bbr(60.0, "cubic"), "bbr-dips"),
    "the MSS of a test that does not count": (one_of_two, "mss-alike"),
    "a requested congestion control": (lambda: alone(builders.cell(congestion="cubic")), "congestion-default"),
    "a retransmit of very many segments": (lambda: alone(builders.cell(), retransmits=(1, 0)), "retransmits"),
    "the line rate where all is above it": (lambda: run(9 * CEILING, 3 * CEILING), "goodput"),
}


@pytest.mark.parametrize("case", SILENT)
def test_nothing_is_said_of(case: str) -> None:
    made, code = SILENT[case]
    assert code not in codes(*made())
    assert finding(*bbr(10.0), "bbr-dips").subject.names == ("1",)


def test_retransmits_of_repetitions_are_told_as_their_mean() -> None:
    cell = builders.cell()
    twice = builders.run(builders.plan([cell], repeat=2))
    measured = [builders.repetition(cell, retransmits=(33, again), number=number) for number, again in ((1, 1), (2, 0))]
    assert finding(twice, measured, "retransmits").numbers == {"retransmits": 33.5}


def placed(asked: str | None, *samples: tuple[int, int], numa: Numa | None = None) -> tuple[RunInfo, list[Repetition]]:
    """Return a run of two flows whose senders ran on these processors, each with its count of samples."""
    cell = builders.cell(pairs=ONE_PAIR, parallel=2, placement=asked)
    one = builders.repetition(cell, (400.0,), sender={"processors": Counts(samples), "numa": numa or Numa()})
    return builders.run(builders.plan([cell])), [one]


@pytest.mark.parametrize("asked", ["3", "3/scheduler", "scheduler/3", None])
@pytest.mark.parametrize("card", [0, 1, None])
def test_a_sender_on_another_node_than_its_card_is_told(asked: str | None, card: int | None) -> None:
    told = asked in ("3", "3/scheduler") and card == 1
    made = document(*placed(asked, (2, 1), (3, 98), numa=Numa(0, card))).findings
    found = [(each.subject.names, each.numbers) for each in made if "numa" in each.code]
    assert found == [(("pi1",), {"numa_node": 0, "card_numa_node": 1})] * told


@pytest.mark.parametrize(
    ("asked", "samples", "told"),
    [("3", ((3, 98), (2, 2)), True), (None, ((3, 100),), False), ("2-3", ((3, 50), (2, 50)), False)],
)
def test_flows_that_share_a_processor_are_told(asked: str | None, samples: Any, told: bool) -> None:
    found = [each.numbers for each in document(*placed(asked, *samples)).findings if each.code == "processor-shared"]
    assert found == [{"processor": 3, "flows": 2}] * told


def test_a_flow_elsewhere_than_asked_is_a_departure() -> None:
    as_asked: list[tuple[str, Numa]] = [(asked, Numa()) for asked in ("3", "2-3", "packets", "scheduler/2")]
    elsewhere = [("2", Numa()), ("nic", Numa(0, 1))]
    for asked, numa in (*as_asked, ("nic", Numa(0, 0)), ("nic", Numa(0, None)), *elsewhere):
        info, (repetition,) = placed(asked, (3, 100), numa=numa)
        found = [departure.effective for departure in departures(info.plan.cells[0], repetition.flows)]
        assert found == ["3: 100 %"] * ((asked, numa) in elsewhere), (asked, numa)


@from_file
def test_a_host_setting_that_was_rounded_is_told(granted: str, told: int) -> None:
    info, repetitions = placed(None, (0, 100))
    facts = {node: builders.facts() | {"condition deep": {"ring rx": granted}} for node in ("a", "b")}
    assert codes(replace(info, facts=facts), repetitions).count("condition-not-granted") == told


def test_limits_of_very_many_pairs_are_counted() -> None:
    cell = builders.cell(pairs=tuple(Pair(f"a{n}", f"b{n}") for n in range(12)), window_bytes=None, mss=None)
    measured = builders.repetition(cell, [941.0] * 9 + [300.0] * 3, sender=SENDING)
    assert bottleneck_text(summarised(cell, measured)[1]) == "By pair: 9 line-rate and 3 unknown."

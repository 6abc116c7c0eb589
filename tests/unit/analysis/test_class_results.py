"""Classes that share a link: their limits, their counters, and which one goes first."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from cases import from_file
from known import known

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.classes import of_classes
from rigctl.figures.ceilings import CEILING
from rigctl.figures.probes import IDLE, LOADED
from rigctl.figures.streams import GOODPUT
from rigctl.findings.limits import bottleneck_findings
from rigctl.limits.rules import Diagnosis
from rigctl.model.counters.balance import Framing
from rigctl.model.counters.points import CountingPoint, PointKind, acknowledgements_of, data_of
from rigctl.records import Datagrams, NicCounters, Pair, Repetition, RunInfo, Status, TcpInfo
from rigctl.report.sections.classes import class_findings
from rigctl.results.condensed import StreamNotes
from rigctl.results.counters import Balances
from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import CellSummary, Results

GROUP: dict[str, Any] = {"pairs": (Pair("a", "b"),), "group": 1}
VOICE = builders.cell(
    1, test="udp", transport="udp", message_bytes=1472, traffic_class="voice", rate=3 * 10**8, **GROUP
)
BULK = builders.cell(2, traffic_class="bulk", parallel=2, **GROUP)
OUT = CountingPoint(PointKind.NIC_OUT, "a")


def measured() -> tuple[RunInfo, list[Repetition]]:
    voice, bulk = builders.repetition(VOICE, (300.0,)), builders.repetition(BULK, (640.0,))
    (flow,) = voice.flows
    sent = Datagrams(known(flow.sender).bytes // 1472)
    ends = [replace(known(side), datagrams=sent, tcp=TcpInfo()) for side in (flow.sender, flow.receiver)]
    voice = replace(voice, flows=(replace(flow, sender=ends[0], receiver=ends[1]),))
    return builders.run(builders.plan((VOICE, BULK))), [voice, bulk]


def test_a_class_is_limited_by_the_link_that_all_classes_fill_together() -> None:
    info, repetitions = measured()
    voice, bulk = condensed_in_memory(info, repetitions).cells
    assert (voice["class"], voice["limit"]) == ("voice", "rate")
    assert (bulk["class"], bulk["limit"]) == ("bulk", "shared-link")
    assert (bulk["ceiling_mbps"], bulk["efficiency"]) == pytest.approx((941.48, 0.68), abs=0.01)
    (alone,) = condensed_in_memory(replace(info, plan=replace(info.plan, cells=(BULK,))), repetitions[1:]).cells
    assert alone["limit"] != "shared-link"


def test_interfaces_are_balanced_with_the_payload_of_all_classes() -> None:
    info, repetitions = measured()
    payload = data_of([flow for one in repetitions for flow in one.flows]).payload or 0
    packets = payload // 1448
    nic = NicCounters(tx_bytes=payload + packets * 66, tx_packets=packets, rx_bytes=0, rx_packets=0)
    kept = [builders.using(one, {"a": {"nic": nic}}) for one in repetitions]
    balances = Balances(info, kept)
    (balance,) = balances.each
    assert balances.of(kept[0]) is balances.of(kept[1]) is balance
    assert not balance.points[OUT].flagged
    assert balance.points[OUT].difference_pct == pytest.approx(0, abs=1)
    assert balance.others.get(OUT, 0.0) < 20
    assert Balances(info, kept[1:]).of(kept[1]) is None


def test_the_header_of_a_packet_is_the_mean_over_tcp_and_udp() -> None:
    _, (voice, bulk) = measured()
    segments = {"segs_out": 1000}
    flows = (*voice.flows, *builders.changing_flows(bulk, sender=segments, receiver=segments).flows)
    data, back = data_of(flows), acknowledgements_of(flows)
    assert data.payload == sum(flow.sender.bytes for flow in flows if flow.sender is not None)
    assert (data.datagrams, data.segments) == (data_of(voice.flows).datagrams, data.datagrams + 2000)
    assert 14 + 28 < Framing().header_bytes(OUT, data) < 14 + 52
    assert Framing().header_bytes(OUT, back) == 14 + 52


@from_file
def test_which_class_goes_first_follows_from_its_wait(waits_us: Any, first: list[str], alike: bool) -> None:
    view = RunView.in_memory(*measured())
    view.cells = tuple(probed(cell, *waits_us[cell.cell.traffic_class or ""]) for cell in view.cells)
    (found,) = of_classes(view.cells)
    assert ([each.name for each in found.first], found.alike) == (first, alike)
    answer, *more = class_findings(view)
    column = "goodput_mbps" if waits_us["voice"][0] is None or waits_us["bulk"][0] is None else "latency_loaded_p50_us"
    assert (answer.code, list(answer.numbers)) == ("classes", [f"voice_{column}", f"bulk_{column}"])
    assert [each.code for each in more if each.remedy] == ["classes-unmarked"] * alike


@pytest.mark.parametrize("rule", ["shared link full", "shared link full between losses"])
def test_classes_that_fill_one_link_are_one_finding(rule: str) -> None:
    (bulk,) = [cell for cell in RunView.in_memory(*measured()).cells if cell.limit == "shared-link"]
    other = replace(bulk, cell=replace(bulk.cell, number=3), verdict=replace(bulk.verdict, rule=rule))
    (found,) = bottleneck_findings([bulk, other])
    assert (found.code, found.subject.names) == ("limit-shared-link", ("2", "3"))
    assert found.numbers["shared_link"] == "from a"
    assert ". In test 2" not in found.text


def test_tests_beside_the_same_traffic_are_one_finding() -> None:
    numbers: dict[str, Any] = {"other_link": "to b", "other_counter": "b eth0", "other_mbps": 31.1}
    (one, *_) = RunView.in_memory(*measured()).cells
    unknown = replace(one, verdict=Diagnosis("unknown", cause="traffic", numbers=numbers))
    (found,) = bottleneck_findings([unknown, replace(unknown, cell=replace(one.cell, number=3))])
    assert (found.code, found.subject.names, found.numbers) == ("limit-unknown", ("1", "3"), numbers)


def probed(cell: CellSummary, idle_us: float | None, loaded_us: float) -> CellSummary:
    streams = []
    for stream in cell.streams:
        own = {GOODPUT: known(stream.goodput_mbps).mean, CEILING: stream.ceiling_mbps, IDLE: idle_us, LOADED: loaded_us}
        row = {figure.name: value for figure, value in own.items()}
        streams.append(replace(stream, results=Results([row]), notes=[StreamNotes(probed=True)]))
    return replace(cell, streams=tuple(streams))


def test_a_test_whose_class_was_not_measured_has_no_verdict() -> None:
    info, repetitions = measured()
    invalid = [replace(one, status=Status.INVALID) for one in repetitions]
    assert of_classes(RunView.in_memory(info, invalid).cells) == []

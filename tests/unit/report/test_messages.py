"""Findings on datagrams, on the round trips of messages, and on probes under load."""

import re
from dataclasses import replace
from typing import Any

import builders
import documents
import probing
import pytest
from builders import BEGIN_NS, bucket_of
from cases import from_file
from message_runs import changed, results

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.findings import Finding, Severity, Weight
from rigctl.findings.text import few_text, pct_text
from rigctl.records import (
    Cell,
    Datagrams,
    Direction,
    Flow,
    Link,
    Pair,
    Repetition,
    RoundTrips,
    RunInfo,
    Status,
)
from rigctl.report.sections.datagrams import datagram_findings, explain, search_findings
from rigctl.report.sections.messages import message_round_trips
from rigctl.report.tables.columns import to_loss
from rigctl.settings import BUSY_POLL, ITERATIONS, MAX, RATE, Settings

PAIR = Pair("a", "b")
CELL = Cell(1, "udp", (PAIR,), 1.0, 0.0, 1, transport="udp", message_bytes=1250, settings=Settings({RATE: 10**8}))


def info_of(cell: Cell) -> RunInfo:
    links = dict.fromkeys(("a", "b"), Link(10**9, 1500))
    return builders.run(builders.plan([cell], links=links, virtual=None, max_loss=0.001), facts={})


def flow(sent: int, came: int, burst: int = 1, refused: int = 0, sent_burst: int | None = None, **counted: Any) -> Flow:
    """A second of datagrams of 1250 bytes: so many were sent, so many came, `burst` at most missing in a row."""
    counts = {"duplicates": 0, "reordered": 0, "overflow": 0, "jitter_ns": 5000, "jitter_max_ns": 9000} | counted
    one = builders.datagram_flow(sent, came, **counts)
    there = {"datagrams": Datagrams(sent, refused=refused, burst=sent_burst)}
    return builders.changing(one, sender=there, receiver={"histogram": ((burst, 1),) if came < sent else ()})


def measured(one: Flow, repetition: int = 1, rate_bps: int | None = None, status: Status = Status.OK) -> Repetition:
    reason = None if status is Status.OK else "why"
    base = Repetition(1, repetition, 1, status, reason, 0.0, 1.0, BEGIN_NS, BEGIN_NS + 10**9, 10.0, 5.0)
    return replace(base, load=rate_bps, flows=(one,))


def loss_findings(info: RunInfo, repetitions: list[Repetition]) -> list[Finding]:
    return [
        finding for finding in datagram_findings(RunView.in_memory(info, repetitions)) if finding.weight is Weight.LOSS
    ]


def test_of_many_pairs_the_worst_is_shown() -> None:
    pairs = tuple(Pair(f"a{number}", f"b{number}") for number in range(1, 7))
    info = info_of(replace(CELL, pairs=pairs))
    flows = tuple(replace(flow(10_000, 10_000 - at, burst=at or 1), pair=pair) for at, pair in enumerate(pairs))
    table = documents.result_table(info, [replace(measured(flows[0]), flows=flows)])
    row = documents.rows_of(table)[0]
    assert (row["Loss"], row["Longest loss burst"], row["Goodput of each pair"]) == ("0.050", "5", "99.9 to 100.0")
    assert table.legend[-1].endswith("loss, reordering and jitter are those of the worst pair.")


def test_losses_are_reported_with_whose_they_are() -> None:
    info = info_of(CELL)
    repetitions = [measured(flow(10_000, 9990, burst=7, overflow=4, refused=5, reordered=2))]
    said = " ".join(explain(info, documents.cells_of(info, repetitions)[0]))
    assert [words in said for words in ("refused 5 more", "full socket buffers dropped 4")] == [True, True]
    (row,) = documents.rows_of(documents.result_table(info, repetitions))
    assert (row["Loss"], row["Longest loss burst"], row["Reordered"]) == ("0.10", "7", "2")
    lost, overflow = loss_findings(info, repetitions)
    assert (lost.code, lost.level, lost.subject.names) == ("datagrams-lost", Severity.WARNING, ("1",))
    assert lost.numbers["loss_pct"] == pytest.approx(0.1)
    assert overflow.code == "socket-buffers-full"


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("Linux 6.6.31 x86_64", None),
        ("FreeBSD 14.1-RELEASE amd64", "The buffer has 1 MiB; kern.ipc.maxsockbuf bounds it."),
        ("Windows 10.0.19045 windows-x86_64", "The buffer has 1 MiB."),
    ],
)
def test_losses_at_a_receiver_that_does_not_count_its_drops_are_not_blamed_on_the_network(
    kernel: str, said: str | None
) -> None:
    info = replace(info_of(CELL), facts={"b": {"kernel": kernel}})
    linux = kernel.startswith("Linux")
    lossy = flow(10_000, 9500, burst=7, overflow=0 if linux else None)
    lossy = builders.changing(lossy, receiver={"rcvbuf_bytes": 1 << 20, "buffers_doubled": linux})
    found = [each for each in loss_findings(info, [measured(lossy)]) if each.code == "drops-uncounted"]
    assert [said in each.text for each in found if said] == ([True] if said else [])
    (summary,) = documents.cells_of(info, [measured(lossy)])
    assert summary.limit in (("loss", "path", "unknown") if linux else ("unknown",))


def test_a_sender_that_cannot_keep_up_is_reported() -> None:
    info, repetitions = info_of(CELL), [measured(flow(5000, 5000))]
    said = " ".join(explain(info, documents.cells_of(info, repetitions)[0]))
    assert "100 Mbit/s were requested on each pair; the slowest sender achieved 50.0" in said
    assert loss_findings(info, repetitions) == []
    assert documents.finding(info, repetitions, "load-not-sent").subject.names == ("1",)


def search_finding(*trials: Repetition) -> Finding:
    (found,) = search_findings(RunView.in_memory(info_of(builders.asking(CELL, rate=MAX)), trials))
    return found


def test_a_rate_that_the_senders_did_not_keep_to_is_no_verdict_on_the_network() -> None:
    lost = measured(flow(100_000, 50_000), 1)
    found = search_finding(lost, measured(flow(30_000, 30_000, sent_burst=9), 2, 500_000_000))
    assert found.code == "search"
    assert found.numbers["goodput_bps"] == pytest.approx(3e8, rel=0.01)


@pytest.mark.parametrize(
    ("pct", "said"),
    [
        (99.66, "99.7"),
        (99.4, "99"),
        (99.99, "99.99"),
        (99.9996, "99.9996"),
        (100 - 1e-7, "99.9999999"),
        (100.0, "100"),
        (12.34, "12"),
        (0.000014, "0.000014"),
        (0.0, "0"),
    ],
)
def test_a_percentage_has_no_exponent_and_is_100_only_if_nothing_is_left(pct: float, said: str) -> None:
    assert pct_text(pct) == said
    if said != "0.000014":
        assert few_text(pct / 100 or 1e-9) == (f"{said} %" if pct else "1 in 1,000,000,000")
    assert to_loss([pct, 100.0, None])(pct) != ("100" if pct < 100 else "")


def test_a_link_that_sleeps_is_named_where_datagrams_were_lost() -> None:
    info = replace(info_of(CELL), facts={node: builders.facts(eee="active") for node in ("a", "c")})
    whole, losing = ([measured(flow(1000, came))] for came in (1000, 997))
    assert "eee" not in documents.codes(info, whole)
    found = documents.finding(info, losing, "eee")
    assert found.text.startswith("Energy-Efficient Ethernet was active at a: an idle link sleeps")
    assert found.text.endswith("; it may also be why datagrams were lost.")
    assert "eee" not in documents.codes(replace(info, facts={"a": builders.facts(eee="inactive")}), losing)


@pytest.mark.parametrize("lost", [99_660, 99_990, 99_999])
def test_a_test_in_which_some_datagrams_arrived_has_not_lost_100_percent(lost: int) -> None:
    info, repetitions = info_of(CELL), [measured(flow(100_000, 100_000 - lost), 1)]
    said = documents.finding(info, repetitions, "datagrams-lost").text
    assert "e+" not in said
    assert re.search(r"^99\.[0-9]+ % of the datagrams", said)
    page = documents.document(info, repetitions)
    (answer,) = [found.text for found in page.findings if found.weight is Weight.ANSWER]
    assert "100 %" not in answer


@pytest.mark.parametrize(
    ("sent", "lost", "said"), [(100_000, 10, "0.01 %"), (100_000, 1000, "1 %"), (1_000_000, 1, "1 in 1,000,000")]
)
def test_a_loss_is_never_printed_as_none(sent: int, lost: int, said: str) -> None:
    assert few_text(lost / sent) == said


def test_trials_of_which_none_could_be_measured_are_no_verdict_on_the_network() -> None:
    said = search_finding(measured(flow(1, 1), 1, status=Status.FAILED))
    assert (said.code, said.weight, said.level) == ("search-unmeasured", Weight.MISSING, Severity.ERROR)


def having(trips: dict[int, int], size: int = 1024, **fields: Any) -> MessageResult:
    (result,) = results("pingpong", [(size, 100, (1.0,))])
    buckets = tuple(sorted((bucket_of(time_us * 1000), count) for time_us, count in trips.items()))
    timed = RoundTrips(sum(trips.values()), 1, 1000 * min(trips), 1000 * max(trips))
    return changed(result, histogram=buckets, round_trips=timed, **{"retransmits": None} | fields)


def test_one_kind_of_round_trips_needs_no_word() -> None:
    assert list(message_round_trips([having({20: 900, 22: 50})])) == []
    assert list(message_round_trips([having({40_000: 1000})])) == []  # a usual time, no wait
    assert list(message_round_trips(results("blast", [(1024, 100, (1.0,))]))) == []


@from_file
def test_waits_of_40_ms_are_reported_with_what_shows_why(fields: dict[str, Any], remedy: str | None) -> None:
    (found,) = message_round_trips([having({20: 990, 41_000: 10}, **fields)])
    assert (found.code, found.remedy) == ("round-trip-waits", remedy)
    assert (found.weight, found.level, found.numbers) == (Weight.SUSPECT, Severity.WARNING, {"round_trips": 10})


def test_a_wait_of_200_ms_is_reported_too() -> None:
    (found,) = message_round_trips([having({20: 999, 205_000: 1}, retransmits=7)])
    assert (found.code, found.numbers) == ("round-trip-waits", {"round_trips": 1})


def test_busy_polling_is_not_advised_where_it_is_a_setting_of_the_run() -> None:
    sleeping, polled = having({18: 600, 75: 400}), having({18: 1000})
    polled = replace(polled, cell=replace(polled.cell, settings=Settings({ITERATIONS: 100, BUSY_POLL: True})))
    (found,) = message_round_trips([sleeping, polled])
    assert found.remedy is None


@pytest.mark.parametrize("settings", [{"direction": Direction.BOTH}, {"pairs": (probing.PAIR, Pair("pi3", "pi2"))}])
def test_where_others_fill_queues_on_the_path_no_size_is_given(settings: dict[str, Any]) -> None:
    cell = probing.cell(**settings)
    repetition = probing.repetition(cell, probing.probes([100] * 50, [3350] * 100), mbps=470.0)
    found = documents.finding(builders.run(builders.plan((cell,))), [repetition], "latency-rise")
    assert found.numbers["queue_bytes"] is None


def test_probes_that_none_answered_are_a_warning() -> None:
    repetition = probing.repetition(probing.cell(), probing.probes([None] * 50, [None] * 100))
    found = documents.finding(builders.run(builders.plan((probing.cell(),))), [repetition], "probes-unanswered")
    assert (found.level, found.subject.names) == (Severity.WARNING, ("1",))

"""Marks of packets: names and numbers, what is ordered, what arrived instead, and marks of congestion."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import builders
import pytest
from documents import codes, finding
from wire import TOTALS

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import summaries
from rigctl.base.errors import NodeError
from rigctl.measure.iperf3 import client_words
from rigctl.measure.orders import channels, sockets
from rigctl.model.contract import departures
from rigctl.protocol.lines import FlowTotals, parse_line
from rigctl.protocol.orders import Connect
from rigctl.records import Cell, Datagrams, Pair, Repetition, Series, Side
from rigctl.records.flat import flatten, side_values
from rigctl.settings import DSCP, Counts
from rigctl.settings.sockets import mark_number
from rigctl.yamlfile.fields import FieldError

EF, BE, CS1 = 46 << 2, 0, 8 << 2
PAIRS = (Pair("a", "b"), Pair("c", "d"))


@pytest.mark.parametrize(
    ("value", "mark"),
    [
        *(("EF", "EF"), ("ef", "EF"), (46, "EF"), ("46", "EF"), (" af41 ", "AF41"), (34, "AF41"), ("CS0", "BE")),
        *((5, "5"), ("09", "9"), (63, "63"), ("VA", "VA"), (44, "VA"), ("LE", "LE"), (1, "LE"), ("cs7", "CS7")),
        *((0, "BE"), (8, "CS1"), (56, "CS7"), (10, "AF11"), (22, "AF23"), (38, "AF43")),
    ],
)
def test_a_mark_has_one_name_however_it_is_written(value: object, mark: str) -> None:
    assert DSCP.parse("dscp", value) == mark
    assert DSCP.parse("dscp", mark_number(mark)) == mark


@pytest.mark.parametrize("value", [64, -1, "64", "EG", "AF44", "AF01", "CS8", "", "0x2e", "１", True, 4.5, None, [46]])
def test_what_is_no_mark_is_refused_with_all_names(value: object) -> None:
    with pytest.raises(FieldError, match=r"expected a mark by its name .* or number, 0 to 63"):
        DSCP.parse("dscp", value)


def test_both_ends_and_probes_get_the_mark_as_a_number_and_iperf3_the_octet() -> None:
    for cell, given in ((builders.cell(dscp="EF", latency_ms=20), ["dscp=46"]), (builders.cell(), [])):
        for channel, sends in product(channels([cell], lambda: "0" * 32), (True, False)):
            order = Connect(1, "b", 1, "a", sockets(cell, channel, sends=sends, interval_ms=100, wait_ms=1))
            assert [word for word in order.to_line(1).decode().split() if "dscp" in word] == given
    for mark, octet in (("EF", "184"), ("BE", "0"), ("5", "20")):
        words = client_words(builders.cell(dscp=mark), "b", 1, "a", 0.1, None)
        assert list(words)[-2:] == ["-S", octet]


def test_counts_of_an_agent_are_read_strictly() -> None:
    line = json.dumps(TOTALS | {"marks": [[184, 9], [0, 1]]}).encode() + b"\n"
    totals = parse_line("n", line)
    assert isinstance(totals, FlowTotals)
    assert totals.side.granted[DSCP] == ((184, 9), (0, 1))  # type: ignore[comparison-overlap]
    wrong: list[Any] = [1, [1], [[1]], [[1, 2, 3]], [[1, -1]], [[1, True]], [[1.0, 2]], [["1", 2]], [[1, 2**63]], {}]
    for value in wrong:
        with pytest.raises(NodeError, match='"marks" to be '):
            parse_line("n", json.dumps(TOTALS | {"marks": value}).encode() + b"\n")


def receiver(*counts: tuple[int, int], **more: Any) -> Side:
    return builders.counting(Side(9, 1, 2, sending=False), marks=Counts(counts) if counts else None, **more)


def test_counts_are_stored_and_read_back() -> None:
    row = flatten(receiver((EF, 9), (BE, 1)))
    stored = json.loads(json.dumps({name: value for name, value in row.items() if name != "series"}))
    assert stored["marks"] == [[EF, 9], [BE, 1]]
    assert side_values(stored)["granted"][DSCP] == Counts([(EF, 9), (BE, 1)])
    with pytest.raises(ValueError, match="pairs"):
        side_values(stored | {"marks": "EF"})


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([(EF, 100)], []),
        ([(EF, 60), (EF | 1, 30), (EF | 3, 10)], []),  # the bits of ECN are no part of the mark
        ([], []),  # not known
        ([(BE, 100)], [("dscp", "EF", "BE")]),
        ([(EF, 10), (BE, 90)], [("dscp", "EF", "BE, EF")]),
        ([(EF, 90), (CS1, 10)], [("dscp", "EF", "EF, CS1")]),
    ],
)
def test_a_mark_that_does_not_arrive_is_a_departure(counts: list[tuple[int, int]], found: list[object]) -> None:
    cell = builders.cell(pairs=PAIRS[:1], dscp="EF", mss=None, window_bytes=None)
    (flow,) = builders.flows(cell, (100.0,))
    flow = replace(flow, receiver=receiver(*counts))
    assert [(d.setting, d.requested, d.effective) for d in departures(cell, [flow])] == found


def measured(cell: Cell, *counts: list[tuple[int, int]], answers: list[tuple[int, int]] | None = None) -> Repetition:
    """A repetition whose receivers counted packets by their marks, pair by pair."""
    one = builders.repetition(cell, (100.0,) * len(counts))
    back, marks = {"marks": Counts(answers) if answers else None}, [Counts(seen) if seen else None for seen in counts]
    flows = [builders.changing(flow, back, {"marks": seen}) for flow, seen in zip(one.flows, marks, strict=True)]
    return replace(one, flows=tuple(flows))


def test_what_arrived_otherwise_is_told_with_its_pairs_and_the_count_of_each_mark() -> None:
    cell = builders.cell(pairs=PAIRS, dscp="EF")
    info = builders.run(builders.plan([cell]))
    repetition = measured(cell, [(BE, 1500), (EF, 500)], [(BE, 2000)])
    found = finding(info, [repetition], "value-changed")
    assert found.numbers == {"packets": 4000, "dscp_kept_pct": 12.5}
    rows = load(info, [repetition]).derived
    kept = [(row["dscp"], row["dscp_effective"], row["dscp_kept_pct"]) for row in (*rows.pairs, *rows.cells)]
    assert kept == [("EF", "BE, EF", 25), ("EF", "BE", 0), ("EF", "BE, EF", 12.5)]
    for clean in (measured(cell, [(EF, 2)], [(EF | 3, 2)]), measured(cell, [], [(EF, 2)])):
        assert "value-changed" not in codes(info, [clean])
    answered = finding(info, [measured(cell, [(EF, 50)], [], answers=[(CS1, 50)])], "value-changed")
    assert answered.numbers["packets"] == 100


def test_marks_of_congestion_are_shares_of_what_arrived() -> None:
    def shares(sender: dict[str, int | None], received: dict[str, int | None]) -> tuple[object, object]:
        cell = builders.cell(pairs=PAIRS[:1])
        one = builders.changing_flows(builders.repetition(cell, (100.0,)), sender=sender, receiver=received)
        (row,) = load(builders.run(builders.plan([cell])), [one]).derived.pairs
        return row["ce_pct"], row["ce_echo_pct"]

    assert shares({"delivered": 1000, "delivered_ce": 40}, {"segs_in": 1000, "received_ce": 5}) == (0.5, 4.0)
    assert shares({"delivered": 1000, "delivered_ce": 0}, {"segs_in": 1000, "received_ce": 0}) == (0.0, 0.0)
    assert shares({"delivered": 1000}, {"segs_in": 1000}) == (None, None)  # without ECN, or an older kernel


def test_datagrams_that_met_congestion_are_counted_by_their_marks() -> None:
    cell = builders.cell(pairs=PAIRS[:1], test="udp", transport="udp", message_bytes=500, rate=10**6, dscp="BE")
    one = builders.changing_flows(measured(cell, [(2, 75), (3, 25)]), receiver={"datagrams": Datagrams(100)})
    (row,) = load(builders.run(builders.plan([cell])), [one]).derived.pairs
    assert (row["ce_pct"], row["ce_echo_pct"], row["dscp_kept_pct"]) == (25.0, None, 100.0)


def test_a_sender_that_marks_hold_back_is_limited_by_the_path() -> None:
    cell = builders.cell(pairs=PAIRS[:1], window_bytes=None, mss=None, congestion="cubic")
    info = builders.run(builders.plan([cell], virtual=None))
    columns = {"t_ns": [builders.BEGIN_NS + step * 10**8 for step in range(1, 100)]}
    columns |= {"bytes": [0] * 99, "rtt_us": [4000] * 99, "cwnd": [70] * 99, "mss": [1448] * 99}

    def limit(marked: int, **more: Any) -> tuple[str, str]:
        told = {"delivered": 64_000, "delivered_ce": marked, "rtt_us": 4000, "rtt_min_us": 3900, **more}
        one = builders.repetition(cell, (75.0,), (0,), sender=told | {"series": Series(columns)})
        (summary,) = summaries(load(info, [one]))
        if summary.limit == "path":
            found = finding(info, [one], "limit-path")
            assert "queue that marks between a and b" in (found.remedy or "")
        return summary.limit, summary.verdict.rule

    assert limit(2100) == ("path", "marks")  # 3.3 %: one cut in 30 segments' time, as it was measured
    assert limit(0) == ("unknown", "no rule applies")
    assert limit(40) == ("unknown", "no rule applies")  # so few marks allow several times as much
    assert limit(2100, congestion="bbr")[0] == "unknown"  # it does not heed them

"""Marks of packets and subflows of MPTCP: what is ordered, told and stored, what arrived instead, and why."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import builders
import pytest
from cases import from_file
from documents import codes, column, document, finding, result_table
from wire import TOTALS

from rigctl.base.errors import NodeError
from rigctl.measure.iperf3 import client_words
from rigctl.measure.orders import channels, sockets
from rigctl.model.contract import departures
from rigctl.protocol.lines import FlowTotals, parse_line
from rigctl.protocol.orders import Connect
from rigctl.records import Cell, Condition, Datagrams, HostSetting, Pair, Repetition, RunInfo, Series, Side
from rigctl.records.flat import flatten, side_values
from rigctl.results.frames import load_frames
from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import summaries
from rigctl.settings import DSCP, MPTCP, Counts, Subflows
from rigctl.settings.setting import Setting
from rigctl.settings.sockets import mark_number
from rigctl.yamlfile.fields import FieldError

A, B = ("10.0.0.1", "10.0.0.2"), ("10.1.0.1", "10.1.0.2")
TWO = Subflows([(*A, 700, 0), (*B, 320, 0)])
TCP = Subflows()
ENABLED = "net.mptcp.enabled"


def measured(
    sent: Subflows | None, came: Subflows | None, enabled: tuple[str | None, str | None] = ("1", "1"), **plan: Any
) -> tuple[RunInfo, list[Repetition]]:
    """A run of one flow at 500 Mbit/s whose ends told of these subflows."""
    condition = plan["conditions"][0].name if plan else None
    fields: dict[str, Any] = {"parallel": 1, "mptcp": True, "mss": None, "window_bytes": None}
    cell = builders.cell(pairs=(Pair("a", "b"),), condition=condition, **fields)
    one = builders.repetition(cell, (500.0,))
    unknown = {"mss": None, "rtt_us": None, "rtt_min_us": None, "cwnd": None} if sent else {}
    one = builders.changing_flows(one, sender={"mptcp": sent} | unknown, receiver={"mptcp": came})
    values = dict(zip("ab", enabled, strict=True))
    facts = {node: builders.facts(sysctls={} if value is None else {ENABLED: value}) for node, value in values.items()}
    return builders.run(builders.plan([cell], **plan), facts=facts), [one]


@pytest.mark.parametrize(("asked", "words"), [(True, ["mptcp=1"]), (False, ["mptcp=0"]), (None, [])])
def test_both_ends_are_asked_for_it(asked: bool | None, words: list[str]) -> None:
    cell = builders.cell(mptcp=asked)
    channel = channels([cell], lambda: "0" * 32)[0]
    for sends in (True, False):
        order = Connect(1, "b", 1, "a", sockets(cell, channel, sends=sends, interval_ms=100, wait_ms=1))
        assert [word for word in order.to_line(1).decode().split() if "mptcp" in word] == words


NO_SUBFLOWS: list[Any] = [1, {}, [1], [[]], [[*A, 1]], [[*A, 1, 0, 0]], [[*A, -1, 0]], [[*A, 1, -1]], [[*A, None, 0]]]
NO_SUBFLOWS += [[[*A, True, 0]], [[*A, 1.0, 0]], [[*A, 2**63, 0]], [[1, "a", 1, 0]], [["é", "a", 1, 0]]]
NO_SUBFLOWS += [[["a" * 46, "a", 1, 0]], [["a\n", "a", 1, 0]], [[*A, 1, 0]] * 17]
NO_COUNTS: list[Any] = [1, [1], [[1]], [[1, 2, 3]], [[1, -1]], [[1, True]], [[1.0, 2]], [["1", 2]], [[1, 2**63]], {}]


@pytest.mark.parametrize(
    ("key", "setting", "told", "wrong"),
    [
        ("mptcp", MPTCP, [[*A, 700, 0], [*B, 320, None]], NO_SUBFLOWS),
        ("marks", DSCP, [[184, 9], [0, 1]], NO_COUNTS),
    ],
)
def test_what_agents_say_of_both_is_read_strictly(key: str, setting: Setting[Any], told: Any, wrong: list[Any]) -> None:
    totals = parse_line("n", json.dumps(TOTALS | {key: told}).encode() + b"\n")
    assert isinstance(totals, FlowTotals)
    assert totals.side.granted[setting] == tuple(map(tuple, told))
    for value in wrong:
        with pytest.raises(NodeError, match=f'"{key}" to be '):
            parse_line("n", json.dumps(TOTALS | {key: value}).encode() + b"\n")


@pytest.mark.parametrize(
    ("key", "setting", "told", "kind"),
    [
        *(("mptcp", MPTCP, told, "subflows") for told in (TWO, TCP, None)),
        ("marks", DSCP, Counts([(184, 9), (0, 1)]), "pairs"),
    ],
)
def test_what_both_ends_told_is_stored_and_read_back(key: str, setting: Setting[Any], told: Any, kind: str) -> None:
    side = builders.counting(Side(9, 1, 2), **{key: told})
    stored = json.loads(json.dumps({name: value for name, value in flatten(side).items() if name != "series"}))
    assert side_values(stored)["granted"][setting] == told
    with pytest.raises(ValueError, match=kind):
        side_values(stored | {key: "two"})


@pytest.mark.parametrize(
    ("sent", "came", "effective"), [(TWO, TWO, None), (None, None, None), (TCP, TCP, "False"), (TWO, TCP, "False")]
)
def test_a_fallback_is_a_departure(sent: Subflows | None, came: Subflows | None, effective: str | None) -> None:
    info, (repetition,) = measured(sent, came)
    found = [each.effective for each in departures(info.plan.cells[0], repetition.flows)]
    assert found == ([] if effective is None else [effective])


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (TWO, [True, True, 2, "10.0.0.1 > 10.0.0.2: 700, 10.1.0.1 > 10.1.0.2: 320", None, None, "unknown"]),
        (TCP, [True, False, 0, None, pytest.approx(941.48, abs=0.01), pytest.approx(0.531, abs=0.001), "unknown"]),
        (None, [True, None, None, None, None, None, "unknown"]),
    ],
)
def test_columns_tell_the_bytes_of_each_subflow_and_a_ceiling_only_after_a_fallback(
    told: Subflows | None, expected: list[Any]
) -> None:
    info, repetitions = measured(told, told)
    names = ("mptcp", "mptcp_effective", "subflows", "subflow_bytes", "ceiling_mbps", "efficiency", "limit")
    frames = load_frames(info, repetitions).results
    for (found,) in (frames.cells, frames.pairs, frames.flows):
        assert [found[name] for name in names] == expected
    said = codes(info, repetitions)
    assert ("mptcp-fallback" in said) is (told is TCP)
    assert "subflow-only" not in said


@pytest.mark.parametrize(
    ("came", "text"), [(TWO, "2 subflows"), (Subflows([(*A, 9, 0)]), "1 subflow"), (TCP, "TCP"), (None, "–")]
)
def test_the_table_tells_what_is_in_effect(came: Subflows | None, text: str) -> None:
    assert column(result_table(*measured(came, came)), "Effective MPTCP") == [text]


@from_file
def test_a_fallback_is_blamed_on_who_is_known_to_cause_it(enabled: tuple[str | None, str | None], mended: str) -> None:
    found = finding(*measured(TCP, TCP, enabled), "mptcp-fallback")
    assert (found.remedy or "").startswith(mended)
    assert bool(found.remedy) is bool(mended)
    assert found.numbers == dict(zip(("enabled_sender", "enabled_receiver"), enabled, strict=True))


def test_a_condition_that_switches_it_off_is_the_cause() -> None:
    off = Condition("off", settings=(HostSetting("sysctl", "0", name=ENABLED),))
    found = finding(*measured(TCP, TCP, conditions=(off,)), "mptcp-fallback")
    assert found.numbers == {"enabled_sender": "0", "enabled_receiver": "0"}


@pytest.mark.parametrize(
    ("second", "why"),
    [([], ["subflow-only"]), ([(*B, 0, 0)], ["subflows-unused"]), ([(*B, 1, 0)], [])],
)
def test_a_lone_subflow_is_told(second: list[tuple[str, str, int, int]], why: list[str]) -> None:
    subflows = Subflows([(*A, 9, 0), *second])
    assert [code for code in codes(*measured(subflows, subflows)) if code.startswith("subflow")] == why


@pytest.mark.parametrize(("timeouts", "count"), [(4, 1), (None, 1), (2, 0)])
def test_a_subflow_that_failed_is_told_with_its_bytes(timeouts: int | None, count: int) -> None:
    made = document(*measured(Subflows([(*A, 702, 0), (*B, 321, timeouts)]), TWO)).findings
    numbers = {"timeouts": timeouts, "bytes": 320, "bytes_of_others": 700}
    assert [found.numbers for found in made if found.code == "subflow-failed"] == [numbers] * count


EF, BE, CS1 = 46 << 2, 0, 8 << 2
PAIRS = (Pair("a", "b"), Pair("c", "d"))


@from_file
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


def receiver(*counts: tuple[int, int], **more: Any) -> Side:
    return builders.counting(Side(9, 1, 2, sending=False), marks=Counts(counts) if counts else None, **more)


@from_file
def test_a_mark_that_does_not_arrive_is_a_departure(counts: list[tuple[int, int]], found: list[object]) -> None:
    cell = builders.cell(pairs=PAIRS[:1], dscp="EF", mss=None, window_bytes=None)
    (flow,) = builders.flows(cell, (100.0,))
    flow = replace(flow, receiver=receiver(*counts))
    assert [(d.setting, d.requested, d.effective) for d in departures(cell, [flow])] == found


def marked(cell: Cell, *counts: list[tuple[int, int]], answers: list[tuple[int, int]] | None = None) -> Repetition:
    """A repetition whose receivers counted packets by their marks, pair by pair."""
    one = builders.repetition(cell, (100.0,) * len(counts))
    back, marks = {"marks": Counts(answers) if answers else None}, [Counts(seen) if seen else None for seen in counts]
    flows = [builders.changing(flow, back, {"marks": seen}) for flow, seen in zip(one.flows, marks, strict=True)]
    return replace(one, flows=tuple(flows))


def test_what_arrived_otherwise_is_told_with_its_pairs_and_the_count_of_each_mark() -> None:
    cell = builders.cell(pairs=PAIRS, dscp="EF")
    info = builders.run(builders.plan([cell]))
    repetition = marked(cell, [(BE, 1500), (EF, 500)], [(BE, 2000)])
    found = finding(info, [repetition], "value-changed")
    assert found.numbers == {"packets": 4000, "dscp_kept_pct": 12.5}
    rows = load_frames(info, [repetition]).results
    kept = [(row["dscp"], row["dscp_effective"], row["dscp_kept_pct"]) for row in (*rows.pairs, *rows.cells)]
    assert kept == [("EF", "BE, EF", 25), ("EF", "BE", 0), ("EF", "BE, EF", 12.5)]
    for clean in (marked(cell, [(EF, 2)], [(EF | 3, 2)]), marked(cell, [], [(EF, 2)])):
        assert "value-changed" not in codes(info, [clean])
    answered = finding(info, [marked(cell, [(EF, 50)], [], answers=[(CS1, 50)])], "value-changed")
    assert answered.numbers["packets"] == 100


def test_marks_of_congestion_are_shares_of_what_arrived() -> None:
    def shares(sender: dict[str, int | None], received: dict[str, int | None]) -> tuple[object, object]:
        cell = builders.cell(pairs=PAIRS[:1])
        one = builders.changing_flows(builders.repetition(cell, (100.0,)), sender=sender, receiver=received)
        (row,) = load_frames(builders.run(builders.plan([cell])), [one]).results.pairs
        return row["ce_pct"], row["ce_echo_pct"]

    assert shares({"delivered": 1000, "delivered_ce": 40}, {"segs_in": 1000, "received_ce": 5}) == (0.5, 4.0)
    assert shares({"delivered": 1000, "delivered_ce": 0}, {"segs_in": 1000, "received_ce": 0}) == (0.0, 0.0)
    assert shares({"delivered": 1000}, {"segs_in": 1000}) == (None, None)  # without ECN, or an older kernel


def test_datagrams_that_met_congestion_are_counted_by_their_marks() -> None:
    cell = builders.cell(pairs=PAIRS[:1], test="udp", transport="udp", message_bytes=500, rate=10**6, dscp="BE")
    one = builders.changing_flows(marked(cell, [(2, 75), (3, 25)]), receiver={"datagrams": Datagrams(100)})
    (row,) = load_frames(builders.run(builders.plan([cell])), [one]).results.pairs
    assert (row["ce_pct"], row["ce_echo_pct"], row["dscp_kept_pct"]) == (25.0, None, 100.0)


def test_a_sender_that_marks_hold_back_is_limited_by_the_path() -> None:
    cell = builders.cell(pairs=PAIRS[:1], window_bytes=None, mss=None, congestion="cubic")
    info = builders.run(builders.plan([cell], virtual=None))
    columns = {"t_ns": [builders.BEGIN_NS + step * 10**8 for step in range(1, 100)]}
    columns |= {"bytes": [0] * 99, "rtt_us": [4000] * 99, "cwnd": [70] * 99, "mss": [1448] * 99}

    def limit(marked: int, **more: Any) -> tuple[str, str]:
        told = {"delivered": 64_000, "delivered_ce": marked, "rtt_us": 4000, "rtt_min_us": 3900, **more}
        one = builders.repetition(cell, (75.0,), (0,), sender=told | {"series": Series(columns)})
        (summary,) = summaries(condensed_in_memory(info, [one]))
        if summary.limit == "path":
            found = finding(info, [one], "limit-path")
            assert "queue that marks between a and b" in (found.remedy or "")
        return summary.limit, summary.verdict.rule

    assert limit(2100) == ("path", "marks")  # 3.3 %: one cut in 30 segments' time, as it was measured
    assert limit(0) == ("unknown", "no rule applies")
    assert limit(40) == ("unknown", "no rule applies")  # so few marks allow several times as much
    assert limit(2100, congestion="bbr")[0] == "unknown"  # it does not heed them

import json
from typing import Any

import builders
import pytest
from documents import codes, column, finding, result_table
from wire import TOTALS

from rigctl.analysis.rows.frames import load
from rigctl.base.errors import NodeError
from rigctl.measure.orders import channels, sockets
from rigctl.model.contract import departures
from rigctl.protocol.lines import FlowTotals, parse_line
from rigctl.protocol.orders import Connect
from rigctl.records import Condition, HostSetting, Pair, Repetition, RunInfo, Side
from rigctl.records.flat import flatten, side_values
from rigctl.report.document import document
from rigctl.settings import MPTCP, Subflows

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


def test_subflows_of_an_agent_are_read_strictly() -> None:
    told: list[Any] = [[*A, 700, 0], [*B, 320, None]]
    totals = parse_line("n", json.dumps(TOTALS | {"mptcp": told}).encode() + b"\n")
    assert isinstance(totals, FlowTotals)
    assert totals.side.granted[MPTCP] == ((*A, 700, 0), (*B, 320, None))  # type: ignore[comparison-overlap]
    wrong: list[Any] = [1, {}, [1], [[]], [[*A, 1]], [[*A, 1, 0, 0]], [[*A, -1, 0]], [[*A, 1, -1]], [[*A, None, 0]]]
    wrong += [[[*A, True, 0]], [[*A, 1.0, 0]], [[*A, 2**63, 0]], [[1, "a", 1, 0]], [["é", "a", 1, 0]]]
    wrong += [[["a" * 46, "a", 1, 0]], [["a\n", "a", 1, 0]], [[*A, 1, 0]] * 17]
    for value in wrong:
        with pytest.raises(NodeError, match='"mptcp" to be '):
            parse_line("n", json.dumps(TOTALS | {"mptcp": value}).encode() + b"\n")


@pytest.mark.parametrize("told", [TWO, TCP, None])
def test_subflows_are_stored_and_read_back(told: Subflows | None) -> None:
    side = builders.counting(Side(9, 1, 2), mptcp=told)
    stored = json.loads(json.dumps({name: value for name, value in flatten(side).items() if name != "series"}))
    assert side_values(stored)["granted"][MPTCP] == told
    with pytest.raises(ValueError, match="subflows"):
        side_values(stored | {"mptcp": "two"})


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
    frames = load(info, repetitions).derived
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


@pytest.mark.parametrize(
    ("enabled", "mended"),
    [
        (("1", "0"), "On b, as root"),
        (("0", "1"), "On a, as root"),
        (("0", "0"), "On a and b, as root"),
        (("1", "1"), "On both nodes: nstat"),
        (("1", None), ""),
        ((None, "0"), "On b, as root"),
    ],
)
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

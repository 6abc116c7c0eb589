"""What is read from the store is equal to what was written, whatever it is."""

from dataclasses import fields, replace
from typing import Any, Final

import builders
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rigctl.records import (
    REQUESTED,
    Bins,
    Capture,
    Cell,
    Condition,
    Datagrams,
    Direction,
    DiskTimes,
    Flow,
    HostSetting,
    Link,
    NicCounters,
    NodeUsage,
    Pair,
    Port,
    PortSeries,
    Probes,
    Repetition,
    RoundTrips,
    RunPlan,
    RunStatus,
    Series,
    Side,
    Status,
    TcpInfo,
    Trunk,
)
from rigctl.records.flat import GRANTED
from rigctl.settings import Counts, Settings, Subflows
from rigctl.settings.kinds import KINDS
from rigctl.store import Store
from rigctl.store.rows import pack

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # a store takes any number of runs
INT64 = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**63 - 1)
# As much as the store takes (store/bounds.py).
FLOAT = st.floats(-(2.0**62), 2.0**62)
RATE = st.floats(0, 2.0**62)
SPAN = st.floats(0, 3e7)
INSTANT = st.floats(0, 7e9)
# What could command a terminal is not given back (test_foreign_store): no text of ours holds it.
SIGNS = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"], exclude_characters="\ufffe\uffff")
TEXT = st.text(SIGNS, max_size=20)
NAME = st.text("abcxyz019-_", min_size=1, max_size=15)


@st.composite
def series(draw: st.DrawFn) -> Series:
    samples = draw(st.integers(0, 5))
    more = draw(st.lists(st.sampled_from(["retransmits", "rtt_us", "cwnd"]), unique=True))
    names = draw(st.sampled_from([[], ["t_ns", "bytes", *more]]))
    return Series({name: draw(st.lists(INT64, min_size=samples, max_size=samples)) for name in names})


@st.composite
def answers(draw: st.DrawFn) -> Series:
    samples = draw(st.integers(0, 5))
    names = ("t_ns", "answered", "rtt_ns")
    return Series({name: draw(st.lists(INT64, min_size=samples, max_size=samples)) for name in names})


@st.composite
def counted(draw: st.DrawFn) -> dict[str, list[int]]:
    """A switch's counters: none is below 0, and they may take all 64 bits (RFC 2578, Counter64)."""
    samples = draw(st.integers(0, 5))
    value = st.integers(0, 2**64 - 1)
    return {name: draw(st.lists(value, min_size=samples, max_size=samples)) for name in ("t_ns", "in_octets")}


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


PAIR = st.builds(Pair, NAME, NAME)
ADDRESS = st.sampled_from(["192.168.7.1", "fd00::7"])
TCP_INFO = st.builds(
    TcpInfo,
    **{field.name: maybe(COUNT) for field in fields(TcpInfo)} | {"timestamps": maybe(st.booleans())},
)
OF_TYPE: Final[dict[Any, st.SearchStrategy[Any]]] = {
    int: COUNT,
    str: NAME,
    bool: st.booleans(),
    (int, str): COUNT | st.sampled_from(["max", "unlimited"]),
    Counts: st.lists(st.tuples(COUNT, COUNT), max_size=3).map(Counts),
    Subflows: st.lists(st.tuples(ADDRESS, ADDRESS, COUNT, maybe(COUNT)), max_size=3).map(Subflows),
}
DISK = st.builds(DiskTimes, COUNT, maybe(COUNT)) | st.builds(DiskTimes, st.none(), COUNT)
SIDE = st.builds(
    Side,
    COUNT,
    *[maybe(COUNT)] * 4,
    tcp=TCP_INFO,
    granted=st.fixed_dictionaries({}, optional={one: OF_TYPE[one.read_as] for one in GRANTED.values()}).map(Settings),
    round_trips=maybe(st.builds(RoundTrips, COUNT, *[maybe(COUNT)] * 3)),
    disk=maybe(DISK),
    histogram=st.lists(st.tuples(st.integers(0, 4351), COUNT), max_size=3).map(tuple),
    datagrams=maybe(st.builds(Datagrams, COUNT, *[maybe(COUNT)] * 8, maybe(st.booleans()))),
    series=series(),
)
BINS = st.builds(Bins, INT64, st.integers(100, 10**6), st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple))
RECEIVER = st.tuples(SIDE, maybe(BINS)).map(lambda both: replace(both[0], bins=both[1]))
FLOW = st.builds(
    Flow,
    PAIR,
    st.sampled_from(Direction),
    st.integers(1, 128),
    maybe(SIDE),
    maybe(RECEIVER),
    maybe(COUNT),
    maybe(COUNT),
)
REPETITION = st.builds(
    Repetition,
    cell=st.integers(1, 100_000),
    repetition=st.integers(1, 99),
    attempt=st.integers(1, 2),
    status=st.sampled_from(Status),
    reason=maybe(TEXT),
    started_at=INSTANT,
    wall_s=SPAN,
    window_start_ns=maybe(st.integers(-(2**62), 2**62)),
    window_end_ns=st.none(),
    start_skew_us=maybe(SPAN),
    clock_error_us=maybe(SPAN),
    flows=st.lists(FLOW, max_size=3).map(tuple),
    goodput_median_bps=maybe(RATE),
    rate_bps=maybe(COUNT),
    nodes=st.lists(st.builds(NodeUsage, NAME, nic=maybe(st.builds(NicCounters, *[maybe(COUNT)] * 9))), max_size=2).map(
        tuple
    ),
    counters=st.lists(
        st.builds(PortSeries, NAME, TEXT, st.sampled_from(["snmp", "cli"]), counted()),
        max_size=2,
    ).map(tuple),
    counters_missing=st.lists(TEXT, max_size=2).map(tuple),
    probes=st.lists(st.builds(Probes, PAIR, st.sampled_from(Direction), INT64, answers()), max_size=2).map(tuple),
    captures=st.lists(
        st.builds(
            Capture,
            NAME,
            PAIR,
            st.sampled_from(Direction),
            TEXT,
            COUNT,
            maybe(COUNT),
            st.booleans(),
            maybe(COUNT),
            maybe(COUNT),
        ),
        max_size=2,
    ).map(tuple),
)
WITH_INTERVAL = st.builds(
    lambda one, ns: one if one.window_start_ns is None else replace(one, window_end_ns=one.window_start_ns + ns),
    REPETITION,
    st.integers(1, 10**15),
)
SETTING = st.builds(HostSetting, st.sampled_from(["mtu", "sysctl", "offload", "governor"]), TEXT, maybe(NAME))
CELL = st.builds(
    Cell,
    number=st.integers(1, 99),
    test=st.sampled_from(sorted(KINDS)),
    pairs=st.lists(PAIR, min_size=1, max_size=2).map(tuple),
    duration_s=SPAN,
    omit_s=SPAN,
    parallel=st.integers(1, 128),
    direction=st.sampled_from(Direction),
    condition=maybe(NAME),
    transport=st.sampled_from(["tcp", "udp"]),
    settings=st.fixed_dictionaries({}, optional={one: OF_TYPE[one.type] for one in REQUESTED.values()}).map(Settings),
    resize=st.booleans(),
    folder=maybe(TEXT),
)
PLAN = st.builds(
    RunPlan,
    *[TEXT] * 6,
    overrides=st.lists(TEXT, max_size=2).map(tuple),
    repeat=st.integers(1, 9),
    cells=st.lists(CELL, max_size=3, unique_by=lambda cell: cell.number).map(tuple),
    links=st.dictionaries(NAME, st.builds(Link, maybe(COUNT), maybe(COUNT)), max_size=2),
    virtual=maybe(NAME),
    conditions=st.lists(
        st.builds(Condition, NAME, st.lists(SETTING, max_size=2).map(tuple), st.booleans()), max_size=2
    ).map(tuple),
    ports=st.lists(st.builds(Port, NAME, TEXT, maybe(NAME), maybe(NAME)), max_size=2).map(tuple),
    trunk=maybe(st.builds(Trunk, st.tuples(NAME, NAME), maybe(COUNT))),
)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def test_a_series_with_columns_of_unequal_length_is_refused() -> None:
    with pytest.raises(ValueError, match="equal length"):
        pack(Series({"t_ns": [1, 2], "bytes": [1]}))


@settings(max_examples=25, suppress_health_check=[*SLOW, HealthCheck.data_too_large], deadline=None)
@given(st.lists(WITH_INTERVAL, max_size=3, unique_by=lambda one: one.key[:2]))
def test_every_repetition_comes_back_equal_and_in_the_order_of_the_scenario(
    store: Store, measured: list[Repetition]
) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0)
    for one in measured:
        store.add(run, one)
    assert store.repetitions(run) == sorted(measured, key=lambda one: one.key)


def test_a_repetition_measured_again_takes_the_place_of_the_one_that_failed(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0)
    first, second = builders.repetition(builders.cell(1)), builders.repetition(builders.cell(2))
    for one in (builders.failed(builders.cell(1)), second, first):
        store.add(run, one)
    assert store.repetitions(run) == [first, second]


def test_a_repetition_without_some_pairs_gives_way_to_no_less(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0)
    whole = builders.repetition(builders.cell(1))
    part = replace(whole, reason="pi3 -> pi4 was not measured", flows=whole.flows[:1])
    none = replace(part, flows=())
    store.add(run, part)
    for less in (builders.failed(builders.cell(1)), none, replace(none, attempt=2)):
        store.add(run, less)
        assert store.repetitions(run) == [part]
    store.add(run, replace(whole, attempt=2))
    assert store.repetitions(run) == [replace(whole, attempt=2)]


def test_a_run_that_is_resumed_is_running_until_it_ends_again(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0, "lab7 4711 99")
    assert store.controller(run) == "lab7 4711 99"
    store.finish(run, RunStatus.INTERRUPTED, 5.0)
    assert store.controller(run) is None
    store.resume(run, "lab7 4712 100")
    assert (store.run(run).status, store.run(run).ended_at) == (RunStatus.RUNNING, None)
    store.finish(run, RunStatus.COMPLETE, 9.0)
    assert (store.run(run).status, store.run(run).ended_at) == (RunStatus.COMPLETE, 9.0)


@settings(max_examples=25, suppress_health_check=SLOW, deadline=None)
@given(PLAN, st.dictionaries(NAME, st.dictionaries(TEXT, JSON, max_size=3), max_size=2), st.floats(0, 4e9))
def test_every_plan_and_its_facts_come_back_equal(
    store: Store, plan: RunPlan, facts: dict[str, Any], started_at: float
) -> None:
    run = store.begin(plan, {"rigctl": "0.1.0"}, facts, started_at)
    info = store.run(run)
    assert (info.plan, info.facts, info.started_at) == (plan, facts, started_at)
    assert (info.status, info.ended_at, info.versions) == (RunStatus.RUNNING, None, {"rigctl": "0.1.0"})


def test_a_reason_that_ends_inside_a_character_is_stored_with_a_mark_in_its_place(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0)
    store.add(run, builders.failed(builders.cell(), "pi1: said \udcc3"))
    assert store.repetitions(run)[0].reason == "pi1: said ?"


def test_facts_learnt_later_replace_those_of_the_beginning(store: Store) -> None:
    run = store.begin(builders.plan(), {"rigctl": "1"}, {"pi1": {"mtu": 1500}, "pi2": {}}, 0.0)
    store.set_facts(run, {"pi1": {"mtu": 9000}}, {"rigctl": "1", "agent": "abc"})
    info = store.run(run)
    assert info.facts == {"pi1": {"mtu": 9000}}
    assert info.versions == {"rigctl": "1", "agent": "abc"}


@pytest.mark.parametrize("wanted", [False, (), (2,), frozenset({1, 2}), True])
def test_only_the_series_of_the_cells_that_are_wanted_are_read(store: Store, wanted: Any) -> None:
    cells = (builders.cell(1), builders.cell(2))
    run = store.begin(builders.plan(cells), {}, {}, 0.0)
    measured = [builders.repetition(cell) for cell in cells]
    for one in measured:
        store.add(run, one)
    read = store.repetitions(run, series=wanted)
    numbers_wanted = {1, 2} if wanted is True else set(wanted or ())
    for whole, one in zip(measured, read, strict=True):
        if one.cell in numbers_wanted:
            assert one == whole
        else:
            assert one == replace(whole, flows=tuple(_without_series(flow) for flow in whole.flows))


def _without_series(flow: Flow) -> Flow:
    assert flow.sender is not None
    assert flow.receiver is not None
    return replace(flow, sender=replace(flow.sender, series=Series()), receiver=replace(flow.receiver, series=Series()))

"""What is read from the store is equal to what was written, whatever it is."""

from dataclasses import fields, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

import builders
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rigctl import records
from rigctl.records import REQUESTED, Cell, DiskTimes, Repetition, RepetitionHead, RunPlan, RunStatus, Series, Side
from rigctl.records.flat import GRANTED
from rigctl.records.kind_counts import MOST_COUNTED
from rigctl.settings import Counts, Settings, Subflows
from rigctl.settings.kinds import KINDS
from rigctl.store import Store
from rigctl.store.rows import pack_series

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # a store takes any number of runs
INT64 = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**63 - 1)
# As much as the store takes (store/bounds.py).
FLOAT, RATE, SPAN, INSTANT = (st.floats(*ends) for ends in ((-(2.0**62), 2.0**62), (0, 2.0**62), (0, 3e7), (0, 7e9)))
# What could command a terminal is not given back (test_foreign_store): no text of ours holds it.
SIGNS = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"], exclude_characters="\ufffe\uffff")
TEXT = st.text(SIGNS, max_size=20)
NAME = st.text("abcxyz019-_", min_size=1, max_size=15)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def few(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=2).map(tuple)


@st.composite
def columns(draw: st.DrawFn, *names: str, value: st.SearchStrategy[int] = INT64) -> dict[str, list[int]]:
    samples = draw(st.integers(0, 5))
    return {name: draw(st.lists(value, min_size=samples, max_size=samples)) for name in names}


def by_type(hint: Any) -> st.SearchStrategy[Any]:
    """A strategy for a type, as a field of a record has it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in KNOWN:
        return KNOWN[hint]
    if origin is UnionType:
        return maybe(by_type(arguments[0]))
    if origin is tuple:
        return few(by_type(arguments[0])) if arguments[-1] is ... else st.tuples(*map(by_type, arguments))
    if origin is dict:
        return st.dictionaries(NAME, by_type(arguments[1]), max_size=2)
    return st.sampled_from(hint) if issubclass(hint, Enum) else any_of(hint)


def any_of(record: Any, /, **special: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A record; each field by its type, but for those that are special."""
    special = OF_RECORD.get(record, {}) | special
    hints = get_type_hints(record)
    others = {each.name: by_type(hints[each.name]) for each in fields(record) if each.name not in special}
    return st.builds(record, **others, **special)


ADDRESS = st.sampled_from(["192.168.7.1", "fd00::7"])
TALLY = st.integers(0, MOST_COUNTED)
OF_COUNTS: Final[dict[Any, st.SearchStrategy[Any]]] = {
    int: TALLY,
    bool: st.booleans(),
    str: ADDRESS,
    tuple[int, int, int]: st.tuples(TALLY, TALLY, TALLY),
    tuple[tuple[str, int], ...]: few(st.tuples(st.sampled_from(["EIO", "ETIMEDOUT"]), TALLY)),
}


def counts_of(kind: type[records.KindCounts]) -> st.SearchStrategy[Any]:
    """Return counts that one kind of test has; None where a field may be unknown."""
    hints = get_type_hints(kind)
    return st.builds(
        kind,
        **{
            name: maybe(OF_COUNTS[get_args(hint)[0]]) if NoneType in get_args(hint) else OF_COUNTS[hint]
            for name, hint in hints.items()
        },
    )


OF_SETTING: Final[dict[Any, st.SearchStrategy[Any]]] = {
    int: COUNT,
    str: NAME,
    bool: st.booleans(),
    (int, str): COUNT | st.sampled_from(["max", "unlimited"]),
    Counts: st.lists(st.tuples(COUNT, COUNT), max_size=3).map(Counts),
    Subflows: st.lists(st.tuples(ADDRESS, ADDRESS, COUNT, maybe(COUNT)), max_size=3).map(Subflows),
}
GRANTS = st.fixed_dictionaries({}, optional={one: OF_SETTING[one.read_as] for one in GRANTED.values()}).map(Settings)
REQUESTS = st.fixed_dictionaries({}, optional={one: OF_SETTING[one.type] for one in REQUESTED.values()}).map(Settings)
SAMPLES = columns("t_ns", "bytes") | columns("t_ns", "bytes", "retransmits", "rtt_us", "cwnd")
# A switch's counters: none is below 0, and they may take all 64 bits (RFC 2578, Counter64).
COUNTERS = columns("t_ns", "in_octets", value=st.integers(-1, 2**64 - 2))  # -1: unknown
REPEAT = st.integers(1, 9)
KNOWN: Final[dict[Any, st.SearchStrategy[Any]]] = {
    int: COUNT,
    str: NAME,
    float: SPAN,
    bool: st.booleans(),
    Series: st.builds(Series, SAMPLES | st.just({})),
}
KNOWN[DiskTimes] = st.builds(DiskTimes, COUNT, maybe(COUNT)) | st.builds(DiskTimes, st.none(), COUNT)
OF_RECORD: Final[dict[Any, dict[str, st.SearchStrategy[Any]]]] = {
    records.Bins: {"start_ns": INT64, "width_us": st.integers(100, 10**6), "bytes": few(st.integers(0, 2**32 - 1))},
    records.PortSeries: {"port": TEXT, "source": st.sampled_from(["snmp", "cli"]), "columns": COUNTERS},
    records.Probes: {"started_ns": INT64, "series": st.builds(Series, columns("t_ns", "answered", "rtt_ns"))},
    records.Capture: {"file": TEXT},
    records.Retest: {"repeat": REPEAT},
    records.Until: {"most": REPEAT},
    records.Port: {"name": TEXT},
    records.HostSetting: {"kind": st.sampled_from(["mtu", "sysctl", "offload", "governor"]), "value": TEXT},
    Side: {
        "granted": GRANTS,
        "histogram": few(st.tuples(st.integers(0, 4351), COUNT)),
        "sending": st.just(True),
        "kind_counts": maybe(st.sampled_from([*records.KIND_COUNTS.values()]).flatmap(counts_of)),
    },
    Cell: {
        "number": st.integers(1, 99),
        "test": st.sampled_from(sorted(KINDS)),
        "pairs": st.lists(st.builds(records.Pair, NAME, NAME), min_size=1, max_size=2).map(tuple),
        "parallel": st.integers(1, 128),
        "bin_us": maybe(st.integers(100, 10**6)),
        "transport": st.sampled_from(["tcp", "udp"]),
        "message_bytes": maybe(st.integers(0, 2**50)),
        "settings": REQUESTS,
        "folder": maybe(TEXT),
        "latency_ms": maybe(st.integers(1, 10_000)),
    },
    Repetition: {
        "cell": st.integers(1, 100_000),
        "repetition": st.integers(1, 99),
        "attempt": st.integers(1, 2),
        "reason": maybe(TEXT),
        "started_at": INSTANT,
        "window_start_ns": maybe(st.integers(-(2**62), 2**62)),
        "window_end_ns": st.none(),
        "goodput_median_bps": maybe(RATE),
        "counters_missing": few(TEXT),
    },
}
OF_RECORD[records.Flow] = {"number": st.integers(1, 128), "sender": maybe(any_of(Side, bins=st.none()))}
WITH_INTERVAL = st.builds(
    lambda one, ns: one if one.window_start_ns is None else replace(one, window_end_ns=one.window_start_ns + ns),
    any_of(Repetition),
    st.integers(1, 10**15),
)
PLAN = any_of(
    RunPlan,
    **dict.fromkeys(("title", "notes", "scenario_name", "scenario_yaml", "rig_name", "rig_yaml"), TEXT),
    overrides=few(TEXT),
    repeat=REPEAT,
    cells=st.lists(by_type(Cell), max_size=3, unique_by=lambda cell: cell.number).map(tuple),
    max_loss=st.floats(0, 1),
    max_latency_s=st.none() | st.floats(0, 60),
    ip_version=st.sampled_from([4, 6]),
)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def test_a_series_with_columns_of_unequal_length_is_refused() -> None:
    with pytest.raises(ValueError, match="equal length"):
        pack_series(Series({"t_ns": [1, 2], "bytes": [1]}))


@settings(max_examples=15, suppress_health_check=[*SLOW, HealthCheck.data_too_large], deadline=None)
@given(st.lists(WITH_INTERVAL, max_size=3, unique_by=lambda one: one.key[:2]))
def test_every_repetition_comes_back_equal_and_in_the_plans_order(store: Store, measured: list[Repetition]) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0)
    for one in measured:
        store.add(run, one)
    assert store.repetitions(run) == sorted(measured, key=lambda one: one.key)


def test_a_repetition_measured_again_takes_the_place_of_the_one_that_failed(store: Store, run: str) -> None:
    first, second = builders.repetition(builders.cell(1)), builders.repetition(builders.cell(2))
    for one in (builders.failed(builders.cell(1)), second, first):
        store.add(run, one)
    assert store.repetitions(run) == [first, second]


def test_a_repetition_without_some_pairs_gives_way_to_no_less(store: Store, run: str) -> None:
    whole = builders.repetition(builders.cell(1))
    part = replace(whole, reason="pi3 -> pi4 was not measured", flows=whole.flows[:1])
    none = replace(part, flows=())
    store.add(run, part)
    for less in (builders.failed(builders.cell(1)), none, replace(none, attempt=2)):
        store.add(run, less)
        assert store.repetitions(run) == [part]
    store.add(run, replace(whole, attempt=2))
    assert store.repetitions(run) == [replace(whole, attempt=2)]


def test_counts_below_0_are_unknown_to_a_store_and_leave_their_run_readable(store: Store, run: str) -> None:
    """Samples that fall give them: an agent's fault must not cost the other tests of its run."""
    made = builders.changing_flows(builders.repetition(builders.cell()), bytes=-1, retransmits=-1)
    store.add(run, replace(made, goodput_median_bps=-1.0))
    (read,) = store.repetitions(run)
    assert {(flow.bytes, flow.retransmits) for flow in read.flows} == {(None, None)}
    assert read.goodput_median_bps is None


def test_a_run_that_is_resumed_is_running_until_it_ends_again(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0, "lab7 4711 99")
    assert store.controllers() == {run: "lab7 4711 99"}
    store.finish(run, RunStatus.INTERRUPTED, 5.0)
    assert store.controllers() == {}
    store.resume(run, "lab7 4712 100")
    assert (store.run(run).status, store.run(run).ended_at) == (RunStatus.RUNNING, None)
    store.finish(run, RunStatus.COMPLETE, 9.0)
    assert (store.run(run).status, store.run(run).ended_at) == (RunStatus.COMPLETE, 9.0)


@settings(max_examples=15, suppress_health_check=SLOW, deadline=None)
@given(PLAN, st.dictionaries(NAME, st.dictionaries(TEXT, JSON, max_size=3), max_size=2), st.floats(0, 4e9))
def test_plans_and_facts_come_back_equal(store: Store, plan: RunPlan, facts: dict[str, Any], started_at: float) -> None:
    info = store.run(store.begin(plan, {"rigctl": "0.1.0"}, facts, started_at))
    assert (info.plan, info.facts, info.started_at) == (plan, facts, started_at)
    assert (info.status, info.ended_at, info.versions) == (RunStatus.RUNNING, None, {"rigctl": "0.1.0"})


def test_a_nul_and_half_a_character_are_stored_with_a_mark_in_their_place(store: Store) -> None:
    run = store.begin(builders.plan(notes="a\0b"), {"rigctl": "\0"}, {"pi1": {"kernel": "6\0"}}, 0.0)
    info = store.run(run)
    assert (info.plan.notes, info.versions, info.facts) == ("a?b", {"rigctl": "?"}, {"pi1": {"kernel": "6?"}})
    store.add(run, builders.failed(builders.cell(), "pi1: said \udcc3"))
    assert store.repetitions(run)[0].reason == "pi1: said ?"


def test_facts_learnt_later_replace_those_of_the_beginning(store: Store) -> None:
    run = store.begin(builders.plan(), {"rigctl": "1"}, {"pi1": {"mtu": 1500}, "pi2": {}}, 0.0)
    store.set_facts(run, {"pi1": {"mtu": 9000}}, {"rigctl": "1", "agent": "abc"})
    info = store.run(run)
    assert info.facts == {"pi1": {"mtu": 9000}}
    assert info.versions == {"rigctl": "1", "agent": "abc"}


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("numbers", [None, (), (2,), (1, 2)])
def test_only_the_tests_and_the_samples_that_are_wanted_are_read(
    store: Store, numbers: tuple[int, ...] | None, samples: bool
) -> None:
    cells = (builders.cell(1), builders.cell(2))
    run = store.begin(builders.plan(cells), {}, {}, 0.0)
    measured = [builders.repetition(cell) for cell in cells]
    store.add(run, *measured)
    empty = {"sender": {"series": Series()}, "receiver": {"series": Series(), "bins": None}}
    wanted = [one for one in measured if numbers is None or one.cell in numbers]
    expected = wanted if samples else [builders.changing_flows(one, **empty) for one in wanted]
    assert store.repetitions(run, cells=numbers, samples=samples) == expected


def test_the_heads_of_repetitions_are_all_but_flows_readings_and_probes(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 0.0)
    store.add(run, *(builders.repetition(cell) for cell in builders.plan().cells))
    heads, whole = store.heads(run), store.repetitions(run)
    names = [field.name for field in fields(RepetitionHead)]
    assert [[getattr(one, name) for name in names] for one in heads] == [
        [getattr(one, name) for name in names] for one in whole
    ]
    assert {type(one) for one in heads} == {RepetitionHead}

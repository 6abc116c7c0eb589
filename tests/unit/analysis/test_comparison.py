"""Two runs test by test: the figures by which they are compared, tests known again, and all that else differs."""

from dataclasses import replace
from typing import Any

import builders
import compared_runs
import message_runs
import pytest

from rigctl.analysis.nights.comparison import RunComparison, compare_runs, compare_variants, figures, keys_of_tests
from rigctl.analysis.nights.setup_changes import ChangeSource, SetupChange, find_setup_changes
from rigctl.analysis.run_view import RunView
from rigctl.figures.messages import ROUND_TRIP, THROUGHPUT
from rigctl.figures.streams import GOODPUT
from rigctl.model.statistics.comparing import Comparison
from rigctl.records import BASELINE, CONFIRMS, Against, Direction, Link, Repetition, RunInfo, Status, Stream, Trunk
from rigctl.results.run_results import condensed_in_memory

TESTS = compared_runs.cells(4)


def differing(comparison: RunComparison, source: ChangeSource) -> dict[str, SetupChange]:
    return {each.name: each for each in comparison.differs if each.source is source}


def test_tests_are_known_again_whatever_their_numbers_and_come_by_the_size_of_the_change() -> None:
    moved = [replace(cell, number=cell.number + 10) for cell in reversed(TESTS)]
    after = compared_runs.view(moved, seed=2, factors={11: 0.9, 13: 0.95})
    found = compare_runs(compared_runs.view(TESTS), after).tests
    changes = [(change.before.cell.number, change.cell.number, change.verdict) for change in found[:2]]
    assert changes == [(1, 11, Comparison.WORSE), (3, 13, Comparison.WORSE)]
    sizes = [change.size for change in found]
    assert sizes == sorted(sizes, reverse=True)


def test_tests_in_one_run_only_are_listed() -> None:
    found = compare_runs(compared_runs.view(TESTS[:3]), compared_runs.view(TESTS[1:]))
    assert (found.only_before, found.only_after, len(found.tests)) == (TESTS[:1], TESTS[3:], 2)


def test_a_test_without_a_valid_repetition_is_invalid_with_the_reason() -> None:
    whole = compared_runs.view(TESTS)
    begun = RunView.in_memory(whole.info, [one for one in compared_runs.whole(whole) if one.cell != 3])
    skewed = builders.repetition(TESTS[0], (90.0,), status=Status.INVALID, reason="start skew 14 ms")
    after = compared_runs.view(TESTS, without={1: skewed, 2: builders.failed(TESTS[1])})
    found = compare_runs(begun, after).with_verdict(Comparison.INVALID)
    assert {change.cell.number: change.reason for change in found} == {
        1: "after: invalid: start skew 14 ms",
        2: "after: failed: pi4: connection refused",
        3: "before: not measured",
    }


def test_streams_are_compared_where_a_test_has_several() -> None:
    tests = [replace(cell, direction=Direction.BOTH) for cell in TESTS]
    found = compare_runs(compared_runs.view(tests), compared_runs.view(tests, seed=2)).streams
    assert {(change.cell, change.stream) for change in found} == {(cell, way) for cell in tests for way in cell.streams}
    assert (len(found), compare_runs(compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2)).streams) == (8, ())


def test_one_slow_stream_is_found_in_a_test_whose_sum_is_the_same() -> None:
    tests = [replace(TESTS[0], direction=Direction.BOTH)]
    before = compared_runs.view(tests, spread=0.0005)
    slower = [builders.repetition(tests[0], (91.0 + 0.01 * at, 97.0), number=at) for at in range(1, 7)]
    found = compare_runs(before, RunView.in_memory(before.info, slower))
    slow, fast = tests[0].streams
    assert {change.stream: change.verdict for change in (*found.tests, *found.streams)} == {
        None: Comparison.SAME, slow: Comparison.WORSE, fast: Comparison.BETTER
    }  # fmt: skip
    assert found.worse


def test_a_trunk_is_compared_by_its_parts() -> None:
    trunks = [{"trunk": Trunk(("a", "b"), rate_bps)} for rate_bps in (8 * 10**9, 10**10)]
    found = compare_runs(compared_runs.view(TESTS, plan=trunks[0]), compared_runs.view(TESTS, plan=trunks[1]))
    assert [(each.name, each.before, each.after) for each in found.differs] == [("trunk rate_bps", 8 * 10**9, 10**10)]
    without = compare_runs(compared_runs.view(TESTS), compared_runs.view(TESTS, plan=trunks[1]))
    assert {each.name: each.before for each in without.differs} == {"trunk ends": None, "trunk rate_bps": None}


def test_what_kernels_granted_and_how_long_a_test_was_watched_are_compared() -> None:
    longer = [replace(cell, duration_s=3.0) if cell.number == 2 else cell for cell in TESTS]
    measured = compared_runs.view(longer)
    with_bbr = [builders.changing_flows(one, sender={"congestion": "bbr"}) for one in compared_runs.whole(measured)]
    after = RunView.in_memory(measured.info, with_bbr)
    found = compare_runs(compared_runs.view(TESTS), after)
    granted = differing(found, ChangeSource.GRANTED)["congestion"]
    assert (granted.before, granted.after, granted.everywhere) == ("cubic", "bbr", True)
    duration = differing(found, ChangeSource.SCENARIO)["duration_s"]
    assert (duration.before, duration.after, duration.where) == (2.0, 3.0, ("2",))


def variants(**fields: Any) -> RunView:
    """A run of each test, and of the same with BBR."""
    twins = [builders.asking(cell, number=cell.number + 4, congestion="bbr") for cell in TESTS]
    against = Against("congestion", "default", "bbr", tuple((n, n + 4) for n in range(1, 5)))
    return compared_runs.view([*TESTS, *twins], plan={"against": against}, **fields)


def test_the_variants_of_one_run_are_compared_with_each_other() -> None:
    for factor in (0.9, 1.1):
        found = compare_variants(variants(factors={6: factor}))
        assert (len(found.tests), found.worse) == (4, factor < 1)
        assert (found.tests[0].before.cell.number, found.tests[0].cell.number) == (2, 6)


def test_the_axis_under_comparison_is_not_what_else_differs() -> None:
    run = variants()
    granted = {number: {"congestion": "bbr" if number > 4 else "cubic"} for number in range(1, 9)}
    every = [builders.changing_flows(one, sender=granted[one.cell]) for one in compared_runs.whole(run)]
    assert compare_variants(RunView.in_memory(run.info, every)).differs == ()


ONE = builders.cell()


def values_of(*repetitions: Repetition) -> dict[Stream | None, Any]:
    found = figures(condensed_in_memory(builders.run(builders.plan([ONE], repeat=len(repetitions))), repetitions))
    assert {figure.key.metric for figure in found} == {GOODPUT}
    return {figure.key.stream: pytest.approx(figure.values, rel=1e-6) for figure in found}


def test_a_test_and_each_of_its_streams_have_a_value_per_repetition_that_counts() -> None:
    measured = [builders.repetition(ONE, (mbps, mbps + 1), number=at) for at, mbps in enumerate((900.0, 910.0), 1)]
    first, second = ONE.streams
    assert values_of(*measured) == {None: (1801, 1821), first: (900, 910), second: (901, 911)}
    invalid = replace(measured[0], status=Status.INVALID, reason="skew")
    assert values_of(invalid) == {None: (), first: (), second: ()}


def test_a_test_is_known_again_by_its_settings_and_pairs_and_equal_ones_by_their_order() -> None:
    (own,) = keys_of_tests([ONE]).values()
    assert keys_of_tests([builders.cell(7, pairs=ONE.pairs, duration_s=3.0)])[7] == own
    others = [builders.cell(1, pairs=ONE.pairs, parallel=9), builders.cell(2, pairs=ONE.pairs[:1])]
    assert len({own, *keys_of_tests(others).values()}) == 3
    thrice = [builders.cell(number, pairs=ONE.pairs) for number in (1, 2, 3)]
    assert keys_of_tests(thrice) == {1: own, 2: f"{own}#2", 3: f"{own}#3"}


def test_messages_are_compared_by_their_round_trip_or_throughput() -> None:
    for test, metric, values in (("pingpong", ROUND_TRIP, [100, 200]), ("blast", THROUGHPUT, [640_000, 320_000])):
        found = figures(condensed_in_memory(*message_runs.measured(test, [(64, 1000, (0.1, 0.2))])))
        assert [(figure.key.metric, list(figure.values)) for figure in found] == [(metric, values)] * 2


KERNEL = "Linux 6.12.47+rpt-rpi-v8 aarch64"
NODES = ("pi1", "pi2", "pi3", "pi4")


def real(**of_all: Any) -> RunInfo:
    plan = replace(builders.plan(), virtual=None)
    return builders.run(plan, facts={node: builders.facts(**of_all) for node in plan.links})


def test_a_kernel_on_all_nodes_is_one_change_and_settings_inside_a_fact_are_compared_one_by_one() -> None:
    before = real()
    (change,) = find_setup_changes(before, real(kernel=KERNEL))
    old = before.facts["pi1"]["kernel"]
    assert change == SetupChange(ChangeSource.FACT, "kernel", old, KERNEL, NODES, everywhere=True)
    after = real(sysctls={"net.core.rmem_max": "425984", "net.ipv4.tcp_timestamps": "1"}, offloads={"tso": False})
    found = {(change.name, change.before, change.after) for change in find_setup_changes(before, after)}
    assert found == {("net.core.rmem_max", "212992", "425984"), ("offloads: tso", True, False)}


def test_what_is_unknown_in_one_run_has_not_changed() -> None:
    before, after = real(), real(speed_bps=None, driver=None)
    link = Link(rate_bps=None, mtu=None)
    after = replace(after, plan=replace(after.plan, links=dict.fromkeys(NODES, link)), versions={"rigctl": "0.1.0"})
    assert find_setup_changes(before, after) == []


def test_a_node_that_only_one_run_has_is_a_change_but_one_whose_facts_are_unknown_is_none() -> None:
    before, after = real(), real()
    del after.facts["pi3"]
    assert find_setup_changes(before, after) == []
    plan = replace(after.plan, links={node: link for node, link in after.plan.links.items() if node != "pi3"})
    assert find_setup_changes(before, replace(after, plan=plan)) == [SetupChange(ChangeSource.RIG, "node", "pi3", None)]
    assert find_setup_changes(replace(after, plan=plan), before) == [SetupChange(ChangeSource.RIG, "node", None, "pi3")]


def test_the_link_speed_comes_first_and_a_restart_last() -> None:
    after = replace(real(boot_id="another", kernel=KERNEL, speed_bps=10**8), tags={"kernel": "new"})
    found = find_setup_changes(real(), replace(after, plan=replace(after.plan, repeat=9)))
    assert [change.name for change in found] == ["speed_bps", "kernel", "repeat", "kernel", "boot_id"]


def test_addresses_that_a_virtual_rig_makes_anew_are_no_change_but_those_of_hardware_are() -> None:
    anew = real(mac="02:00:00:00:00:07")
    assert [change.name for change in find_setup_changes(real(), anew)] == ["mac"]
    assert find_setup_changes(builders.run(), replace(builders.run(), facts=anew.facts)) == []


def test_scenario_rig_file_versions_and_tags_are_of_the_run() -> None:
    before = real()
    plan = replace(
        before.plan,
        scenario_yaml="title: another",
        links=before.plan.links | {"pi1": Link(10**8, 1500), "pi3": Link(10**9, 9000)},
    )
    agents = [{f"agent {machine} sha256": digit * 64 for machine in ("x86_64", "armv7")} for digit in "01"]
    versions = before.versions | {"rigctl": "0.3.0"} | agents[1]
    tags = {"firmware": "1.2", CONFIRMS: "another", BASELINE: ""}
    after = replace(before, plan=plan, versions=versions, tags=tags)
    before = replace(before, versions=before.versions | agents[0], tags={"firmware": "1.1"})
    found = find_setup_changes(before, after)
    of_the_run = sorted(change.name for change in found if not change.where)
    assert of_the_run == ["agent x86_64 sha256", "firmware", "rigctl", "scenario_yaml"]  # all agents are built at once
    assert SetupChange(ChangeSource.TAG, "firmware", "1.1", "1.2") in found
    assert SetupChange(ChangeSource.RIG, "link rate_bps", 10**9, 10**8, ("pi1",)) in found
    assert SetupChange(ChangeSource.RIG, "link mtu", 1500, 9000, ("pi3",)) in found

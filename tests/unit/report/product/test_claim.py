"""What may be claimed: the rule on switches with known levels; and each reason against a claim, on whole runs."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import builders
import claim_cases
import pytest
from claim_cases import Measured

from rigctl.analysis.run_view import RunView
from rigctl.records import Comparison, Direction, Expectation, Link, Repetition, RunInfo, RunStatus, Status
from rigctl.report.product.claim import Asked, Claim, NoClaim, claim, decimals, floored, lowest, three_digits

LEAST_SHARE = 0.97


def best(case: Measured) -> tuple[float, float] | None:
    """The claim on the best test, and what is true of that test."""
    claims = [(lowest(values), truth) for values, truth in zip(case.values, case.truth_mbps, strict=True)]
    made = [(mbps, truth) for mbps, truth in claims if mbps is not None and mbps >= LEAST_SHARE * case.ceiling_mbps]
    return max(made, default=None)


def too_strong(cases: Iterable[Measured]) -> tuple[float, float, int]:
    """The share of claims above what is true, rounded down alike; by what share of the ceiling; how many they are."""
    made = [(found, case.ceiling_mbps) for case in cases if (found := best(case)) is not None]
    wrong = [(mbps - truth) / ceiling for (mbps, truth), ceiling in made if mbps > three_digits(truth)]
    return len(wrong) / len(made), max(wrong, default=0.0), len(made)


def test_claims_on_the_proof_set_are_rarely_too_strong() -> None:
    share, most, count = too_strong(claim_cases.proof())
    assert count > 240
    assert share <= 0.05
    assert most <= 0.002


def test_most_switches_that_support_a_claim_get_one() -> None:
    """Of those with four repetitions or more whose worst pair is well above the bound."""
    cases = [
        case
        for case in claim_cases.proof()
        if len(case.values[0][0]) >= 4 and max(case.truth_mbps) > 0.985 * case.ceiling_mbps
    ]
    assert sum(best(case) is not None for case in cases) > 0.95 * len(cases)


@pytest.mark.parametrize(("mbps", "printed"), [(940.999, "940"), (941.0, "941"), (94.19, "94.1"), (9.999, "9.99")])
def test_a_figure_is_rounded_down(mbps: float, printed: str) -> None:
    assert f"{floored(mbps):.{decimals(mbps)}f}" == printed


def run(*, numbers: tuple[int, ...] = (5,), repeat: int = 4, **info: Any) -> tuple[RunInfo, list[Repetition]]:
    """Tests of the page on hardware, each four times: the pairs have 941 and 940 Mbit/s."""
    cells = tuple(builders.cell(number, parallel=5) for number in numbers)
    plan = builders.plan(cells, virtual=None, repeat=repeat)
    measured = [
        builders.repetition(cell, (941 - 0.1 * at, 940.4 - 0.1 * at), number=at + 1)
        for cell in cells
        for at in range(repeat)
    ]
    return builders.run(plan, **info), measured


def judged(made: tuple[RunInfo, list[Repetition]], asked: Asked | None = None) -> Claim | NoClaim:
    return claim(RunView(*made), asked or Asked())


def against(made: tuple[RunInfo, list[Repetition]], asked: Asked | None = None) -> str:
    found = judged(made, asked)
    assert isinstance(found, NoClaim)
    return str(found)


def test_the_claim_is_the_slowest_repetition_of_the_slowest_pair() -> None:
    found = judged(run())
    assert str(found) == "940 Mbit/s on both pairs at once: 99.8 % of what gigabit Ethernet allows"
    assert isinstance(found, Claim)
    assert (found.tests, found.repetitions, found.virtual) == ((5,), 4, False)


def test_the_share_is_that_of_the_figure_that_is_printed() -> None:
    found = judged(run())
    assert isinstance(found, Claim)
    assert float(found.share) <= 100 * found.mbps / found.ceiling_mbps < float(found.share) + 0.1


def test_a_claim_on_every_test_is_that_of_the_worst() -> None:
    info, measured = run(numbers=(1, 2))
    slow = builders.repetition(info.plan.cells[1], (930.5, 941), number=4)
    found = judged((info, [*measured[:-1], slow]))
    assert str(found) == "930 Mbit/s on both pairs at once: 98.7 % of what gigabit Ethernet allows, in each of 2 tests"


def test_a_claim_on_the_best_test_says_so() -> None:
    info, measured = run(numbers=(1, 2))
    slow = builders.repetition(info.plan.cells[1], (930.5, 941), number=4)
    found = judged((info, [*measured[:-1], slow]), Asked("best"))
    assert str(found).endswith("99.8 % of what gigabit Ethernet allows, in the best of 2 tests")


def test_a_claim_on_one_test_names_it() -> None:
    assert str(judged(run(numbers=(1, 2)), Asked(2))).endswith("gigabit Ethernet allows, in test 2 of 2")
    assert "test 9 is not in the table" in against(run(), Asked(9))


def test_both_directions_are_in_the_claim() -> None:
    cell = builders.cell(1, direction=Direction.BOTH)
    measured = [builders.repetition(cell, (940.2, 940.5, 941, 940.8), number=at) for at in (1, 2, 3, 4)]
    found = judged((builders.run(builders.plan([cell], virtual=None, repeat=4)), measured))
    assert str(found).startswith("940 Mbit/s on both pairs, in both directions at once: 99.8 %")


def test_small_segments_are_in_the_claim() -> None:
    """99 % of what small segments allow is not 99 % of what the line allows."""
    cell = builders.cell(1, pairs=builders.PAIRS[:1], mss=548)
    sent = {"mss": 536}
    measured = [builders.repetition(cell, (855,), number=at, sender=sent) for at in (1, 2, 3, 4)]
    found = judged((builders.run(builders.plan([cell], virtual=None, repeat=4)), measured))
    assert "between two ports" in str(found)
    assert str(found).endswith("of what gigabit Ethernet allows with segments of 536 bytes")


def test_too_few_repetitions_support_nothing() -> None:
    assert against(run(repeat=3)) == "No claim is made: 3 repetitions count, 4 are needed."


def test_an_invalid_repetition_that_was_not_replaced_is_against_it() -> None:
    info, measured = run(repeat=5)
    bad = replace(measured[2], status=Status.INVALID, reason="start skew 14 ms")
    assert "a repetition is invalid: start skew 14 ms" in against((info, [*measured[:2], bad, *measured[3:]]))


def test_a_test_that_was_not_measured_is_against_it() -> None:
    info, measured = run(numbers=(1, 2))
    assert "test 2: not measured" in against((info, measured[:4]))


def test_an_unfinished_run_is_against_it() -> None:
    info, measured = run(status=RunStatus.INTERRUPTED)
    assert "the run is interrupted, not complete" in against((info, measured))


def test_repetitions_that_differ_are_against_it() -> None:
    info, measured = run()
    slow = builders.repetition(info.plan.cells[0], (919, 940), number=4)
    assert "its repetitions differ by more than 2 %" in against((info, [*measured[:3], slow]))


def test_an_efficiency_below_the_bound_is_against_it() -> None:
    found = against(run(), Asked(least=0.999))
    assert found == "No claim is made: 99.8 % of what the link allows is less than the claim's bound of 99.9 %."


def test_what_the_link_cannot_carry_is_against_it() -> None:
    info, _ = run()
    fast = [builders.repetition(info.plan.cells[0], (944, 941), number=at) for at in (1, 2, 3, 4)]
    assert "100.3 % of what the link allows is not possible" in against((info, fast))


def test_a_limit_of_the_hosts_is_against_it() -> None:
    info, _ = run()
    cell = info.plan.cells[0]
    busy = [builders.repetition(cell, (800, 800), number=at) for at in (1, 2, 3, 4)]
    busy = [
        replace(one, nodes=tuple(replace(node, agent_cpu_us=10**7, node_busy_us=10**7, cpus=1) for node in one.nodes))
        for one in busy
    ]
    found = against((info, busy), Asked(least=0.5))
    assert "it is limited by sender, not by the line" in found or "it is limited by receiver" in found


def test_a_missed_expectation_is_against_it() -> None:
    info, measured = run()
    bound = Expectation("goodput", "goodput_mbps", ">= 1900M", Comparison.AT_LEAST, (5,), bound=1900.0)
    made = replace(info, plan=replace(info.plan, expectations=(bound,)))
    assert against((made, measured)) == "No claim is made: it is not what the scenario expects."


def test_a_virtual_rig_supports_nothing_about_a_product() -> None:
    info, measured = run()
    virtual = replace(info, plan=replace(info.plan, virtual="namespaces"))
    assert "virtual rig, which says nothing about a product" in against((virtual, measured))
    found = judged((virtual, measured), Asked(virtual=True))
    assert str(found).startswith("Virtual rig: 940 Mbit/s on both pairs at once")


def test_a_loopback_supports_nothing_at_all() -> None:
    info, measured = run()
    loopback = replace(info, plan=replace(info.plan, virtual="loopback"))
    assert "on a machine's loopback" in against((loopback, measured), Asked(virtual=True))


def test_a_link_of_another_rate_than_the_rig_file_says_is_against_it() -> None:
    info, measured = run()
    facts = {**info.facts, "pi2": builders.facts(speed_bps=10**8)}
    found = against((replace(info, facts=facts), measured))
    assert "the rig file gives pi2 a link of 1 Gbit/s, its interface has 100 Mbit/s" in found


def test_an_unknown_link_is_against_it() -> None:
    info, measured = run()
    plan = replace(info.plan, links={name: Link(None, 1500) for name in info.plan.links})
    facts = {name: builders.facts(speed_bps=None) for name in plan.links}
    found = against((replace(info, plan=plan, facts=facts), measured))
    assert "what its links allow is not known" in found


def test_short_repetitions_support_nothing() -> None:
    cell = builders.cell(1, duration_s=1.0)
    measured = [builders.repetition(cell, (941, 941), number=at) for at in (1, 2, 3, 4)]
    found = against((builders.run(builders.plan([cell], virtual=None, repeat=4)), measured))
    assert found == "No claim is made: 1 s of each repetition count, 5 s are needed."


def test_no_claim_is_ever_above_any_repetition() -> None:
    """However the values lie."""
    for case in claim_cases.proof():
        for pairs in case.values:
            found = lowest(pairs)
            assert found is None or (found <= min(map(min, pairs)) and math.isfinite(found))

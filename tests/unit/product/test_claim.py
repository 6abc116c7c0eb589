"""What may be claimed: the rule on switches with known levels; and each reason against a claim, on whole runs."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import builders
import claim_cases
import pytest
from cases import from_file
from claim_cases import Measured

from rigctl.analysis.run_view import RunView
from rigctl.product.claim import Claim, NoClaim, claim, lowest, three_digits
from rigctl.product.theme import ClaimSection
from rigctl.records import (
    Cell,
    Datagrams,
    Direction,
    Expectation,
    Link,
    Operator,
    Repetition,
    RunInfo,
    RunStatus,
    Status,
)

LEAST_SHARE = 0.97


def best(case: Measured) -> tuple[float, float] | None:
    """The claim on the best test, and what is true of that test."""
    claims = [(lowest(values), truth) for values, truth in zip(case.values, case.truth_mbps, strict=True)]
    made = [(mbps, truth) for mbps, truth in claims if mbps is not None and mbps >= LEAST_SHARE * case.ceiling_mbps]
    return max(made, default=None)


def test_claims_on_the_proof_set_are_rarely_too_strong() -> None:
    made = [(found, case.ceiling_mbps) for case in claim_cases.proof() if (found := best(case)) is not None]
    wrong = [(mbps - truth) / ceiling for (mbps, truth), ceiling in made if mbps > three_digits(truth)]
    assert len(made) > 240
    assert len(wrong) <= 0.05 * len(made)
    assert max(wrong, default=0.0) <= 0.002


def test_most_switches_that_support_a_claim_get_one() -> None:
    several = [case for case in claim_cases.proof() if len(case.values[0][0]) >= 4]
    cases = [case for case in several if max(case.truth_mbps) > 0.985 * case.ceiling_mbps]
    assert sum(best(case) is not None for case in cases) > 0.95 * len(cases)


@pytest.mark.parametrize(("mbps", "printed"), [(940.999, "940"), (941.0, "941"), (94.19, "94.1"), (9.999, "9.99")])
def test_a_figure_is_rounded_down(mbps: float, printed: str) -> None:
    assert f"{three_digits(mbps):g}" == printed


Run: TypeAlias = tuple[RunInfo, list[Repetition]]


def run(*, numbers: tuple[int, ...] = (5,), repeat: int = 4, plan: dict[str, Any] | None = None, **info: Any) -> Run:
    """Tests of the page on hardware, each four times: the pairs have 941 and 940 Mbit/s."""
    cells = tuple(builders.cell(number, parallel=5) for number in numbers)
    made = builders.plan(cells, **{"virtual": None, "repeat": repeat} | (plan or {}))
    speeds = [(941 - 0.1 * at, 940.4 - 0.1 * at) for at in range(repeat)]
    measured = [builders.repetition(cell, each, number=at) for cell in cells for at, each in enumerate(speeds, 1)]
    return builders.run(made, **info), measured


def four_times(cell: Cell, *mbps: float, **fields: Any) -> Run:
    measured = [builders.repetition(cell, mbps, number=number, **fields) for number in (1, 2, 3, 4)]
    return builders.run(builders.plan([cell], virtual=None, repeat=4)), measured


def judged(made: Run, **asked: Any) -> Claim | NoClaim:
    return claim(RunView.in_memory(*made), ClaimSection.model_construct(**asked))


def test_the_claim_is_the_slowest_repetition_of_the_slowest_pair() -> None:
    found = judged(run())
    assert str(found) == "940 Mbit/s on both pairs at once: 99.8 % of what gigabit Ethernet allows"
    assert isinstance(found, Claim)
    standing = "940 Mbit/s is the slowest of 4 repetitions of the slowest pair, rounded down;"
    assert found.standing == f"{standing} chart and table show means over repetitions."
    assert found.limits == "For its frames gigabit Ethernet allows 941.5 Mbit/s of application data."
    assert not found.virtual


@from_file
def test_a_claim_says_of_which_tests_it_is_made(tests: Any, said: str) -> None:
    info, measured = run(numbers=(1, 2))
    slow = builders.repetition(info.plan.cells[1], (930.5, 941), number=4)
    assert str(judged((info, [*measured[:-1], slow]), tests=tests)) == said


BOTH = builders.cell(1, direction=Direction.BOTH)
SMALL = builders.cell(1, pairs=builders.PAIRS[:1], mss=548)
MSS, VIRTUAL = {"mss": 536}, {"virtual": "namespaces"}
MADE: dict[str, tuple[Callable[[], Run], str]] = {
    "940 Mbit/s on both pairs, in both directions at once": (lambda: four_times(BOTH, 940.2, 940.5, 941, 940.8), ""),
    "855 Mbit/s between two ports": (lambda: four_times(SMALL, 855, sender=MSS), " with segments of 536 bytes"),
    "Virtual rig: 940 Mbit/s on both pairs at once": (lambda: run(plan=VIRTUAL), ""),
}


@pytest.mark.parametrize("begins", MADE)
def test_directions_small_segments_and_a_virtual_rig_are_in_the_claim(begins: str) -> None:
    """99 % of what small segments allow is not 99 % of what the line allows."""
    made, ends = MADE[begins]
    assert str(judged(made(), virtual=True)) == f"{begins}: 99.8 % of what gigabit Ethernet allows{ends}"


def datagrams(*lost: int, size: int = 1472) -> Run:
    """Four times 10 s of datagrams in one pair; in each repetition so many were lost."""
    cell = builders.cell(1, test="udp", transport="udp", message_bytes=size, pairs=builders.PAIRS[:1])
    measured = []
    for number, gone in enumerate(lost, 1):
        one = builders.repetition(cell, (956.5 - 0.1 * number,), number=number)
        came = (one.flows[0].bytes or 0) // size
        counts = {"datagrams": Datagrams(came, highest=came + gone)}
        measured.append(builders.changing_flows(one, sender={"datagrams": Datagrams(came + gone)}, receiver=counts))
    return builders.run(builders.plan([cell], virtual=None, repeat=4)), measured


def test_datagrams_are_claimed_with_their_frames_if_none_was_lost() -> None:
    said = "956 Mbit/s between two ports: 99.8 % of what gigabit Ethernet allows with datagrams of 1472 bytes"
    assert str(judged(datagrams(0, 0, 0, 0))) == f"{said}, 81,100 frames/s, none lost"
    assert "made: it lost 3 datagrams." in str(judged(datagrams(0, 2, 0, 1)))
    info, measured = datagrams(0, 0, 0, 0)
    measured[2] = builders.changing_flows(measured[2], receiver={"datagrams": None})
    assert "not known how many datagrams it lost" in str(judged((info, measured)))


def replaced(number: int, *mbps: float, **fields: Any) -> Run:
    info, measured = run(repeat=5)
    measured[number] = replace(builders.repetition(info.plan.cells[0], mbps or (941, 940), number=number + 1), **fields)
    return info, measured


def busy() -> Run:
    info, slow = four_times(builders.cell(5, parallel=5), 800, 800)
    used: dict[str, Any] = {"agent_cpu_us": 10**7, "node_busy_us": 10**7, "cpus": 1}
    return info, [replace(one, nodes=tuple(replace(node, **used) for node in one.nodes)) for one in slow]


BOUND = Expectation("goodput", "goodput_mbps", ">= 1900M", Operator.AT_LEAST, (5,), bound=1900.0)
NO_RATES = {name: builders.facts(speed_bps=None) for name in ("pi1", "pi2", "pi3", "pi4")}
NO_LINKS = {name: Link(None, 1500) for name in NO_RATES}
SLOW = builders.run().facts | {"pi2": builders.facts(speed_bps=10**8)}
SKEWED: dict[str, Any] = {"status": Status.INVALID, "reason": "start skew 14 ms"}
SHORT = builders.cell(1, duration_s=1.0)
AGAINST: dict[str, tuple[Callable[[], Run], dict[str, Any], str]] = {
    "few": (lambda: run(repeat=3), {}, "made: 3 repetitions count, 4 are needed."),
    "invalid": (lambda: replaced(2, **SKEWED), {}, "a repetition is invalid: start skew 14 ms"),
    "missing": (lambda: (run(numbers=(1, 2))[0], run(numbers=(1, 2))[1][:4]), {}, "test 2: not measured"),
    "interrupted": (lambda: run(status=RunStatus.INTERRUPTED), {}, "the run is interrupted, not complete"),
    "spread": (lambda: replaced(3, 919, 940), {}, "its repetitions differ by more than 2 %"),
    "least": (run, {"least": 0.999}, "99.8 % of what the link allows, the theme requires 99.9 % (`least`)"),
    "impossible": (lambda: replaced(3, 944, 941), {}, "100.3 % of what the link allows is impossible"),
    "hosts": (busy, {"least": 0.5}, "its bottleneck is sender, not the network"),
    "expected": (lambda: run(plan={"expectations": (BOUND,)}), {}, "made: it misses an expectation of the scenario."),
    "virtual": (lambda: run(plan={"virtual": "namespaces"}), {}, "on a virtual rig (`virtual: true` permits a claim"),
    "loopback": (lambda: run(plan={"virtual": "loopback"}), {"virtual": True}, "on the loopback of one machine"),
    "rate": (lambda: run(facts=SLOW), {}, "the link of pi2 has 1 Gbit/s in the rig file, but its interface 100 Mbit/s"),
    "unknown rate": (lambda: run(plan={"links": NO_LINKS}, facts=NO_RATES), {}, "the rate of its links is not known"),
    "short": (lambda: four_times(SHORT, 941, 941), {}, "made: each repetition measures 1 s, at least 5 s are needed."),
}


@pytest.mark.parametrize("case", AGAINST)
def test_a_reason_against_a_claim_is_named(case: str) -> None:
    made, asked, reason = AGAINST[case]
    found = judged(made(), **asked)
    assert isinstance(found, NoClaim)
    assert reason in str(found)


def test_no_claim_is_ever_above_any_repetition() -> None:
    for case in claim_cases.proof():
        for pairs in case.values:
            found = lowest(pairs)
            assert found is None or (found <= min(map(min, pairs)) and math.isfinite(found))

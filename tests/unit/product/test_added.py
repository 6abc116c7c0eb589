"""What ping-pong may claim to add to a control: the rule on known switches, and each reason against a claim."""

import re
from dataclasses import replace
from random import Random
from statistics import median
from typing import Any, TypeAlias

import builders
import message_runs
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.product.added import added_claim, at_most_added, two_digits_up
from rigctl.product.claim import NoClaim
from rigctl.product.content import product
from rigctl.product.page import card_picture, fragment, table_picture
from rigctl.product.theme import ClaimSection, Theme
from rigctl.records import Repetition, RunInfo, RunStatus

Run: TypeAlias = tuple[RunInfo, list[Repetition]]


def run(*trips_us: float, sizes: tuple[int, ...] = (64,), repeat: int = 4, iterations: int = 1000, **info: Any) -> Run:
    """Ping-pong with messages of `sizes`; each repetition is 0.1 µs slower than the one before."""
    elapsed = [[(us + 0.1 * nth) * iterations / 1e6 for nth in range(repeat)] for us in trips_us]
    made, measured = message_runs.measured(
        "pingpong", [(size, iterations, own) for size, own in zip(sizes, elapsed, strict=True)]
    )
    return replace(made, **info), measured


def beside(own: Run, control: Run | None) -> RunView:
    view = RunView.in_memory(*own)
    if control is not None:
        view.control = RunView.in_memory(*control)
    return view


def judged(own: Run, control: Run | None, **asked: Any) -> str:
    view = beside(own, control)
    numbers = [cell.number for cell in view.plan.cells]
    return str(added_claim(view, ClaimSection.model_construct(**asked), numbers))


CABLE = run(30.0)


def test_the_claim_is_the_slowest_repetition_less_the_fastest_of_the_control() -> None:
    said = judged(run(33.0), CABLE)
    assert said == "3.6 µs at most added to the round trip over gigablox, for messages of 64 bytes"
    own, control = run(33.0, 51.0, sizes=(64, 1024)), run(30.0, 40.0, sizes=(64, 1024))
    assert judged(own, control).startswith("12 µs at most added")
    assert judged(own, control).endswith("for messages of 1024 bytes, in each of 2 tests")
    assert judged(own, control, tests="best").endswith("for messages of 64 bytes, in the best of 2 tests")


HOSTS = {"dublin": builders.facts(kernel="Linux 6.1"), "cork": builders.facts()}
OTHERS = {"dublin": builders.facts(kernel="Linux 6.12"), "cork": builders.facts()}
AGAINST: dict[str, tuple[Run, Run | None, str]] = {
    "none": (run(33.0), None, "only beside a control (`rigctl run --control`)"),
    "few": (run(33.0, repeat=3), CABLE, "3 repetitions count, 4 are needed"),
    "few of it": (run(33.0), run(30.0, repeat=3), "3 repetitions count in the control, 4 are needed"),
    "faster": (run(29.0), CABLE, "its round trips are not slower than those of the control"),
    "interrupted": (run(33.0), run(30.0, status=RunStatus.INTERRUPTED), "of the control: the run is interrupted"),
    "others": (run(33.0, facts=HOSTS), run(30.0, facts=OTHERS), "with other hosts, kernels or cards (dublin)"),
    "trips": (run(33.0, iterations=999), run(30.0, iterations=999), "each repetition has 999 round trips, 1000 are"),
    "sizes": (run(33.0), run(30.0, sizes=(65,)), "0 repetitions count in the control"),
}


@pytest.mark.parametrize("case", AGAINST)
def test_a_reason_against_a_claim_is_named(case: str) -> None:
    own, control, reason = AGAINST[case]
    said = judged(own, control)
    assert said.startswith("No claim is made: ")
    assert reason in said


def test_the_page_says_what_the_claim_is_made_of() -> None:
    made = product(beside(run(33.0), CABLE), Theme("Switch"))
    assert not isinstance(made.claim, NoClaim)
    conditions = dict(made.conditions)
    assert conditions["Claim"].startswith("The slowest of 4 repetitions of the slowest pair less the fastest one")
    assert "adds 3 µs to the round trip of the control" in conditions["Control"]
    assert conditions["Control"].endswith(f"It is run {CABLE[0].run}.")
    assert conditions["Method"].startswith("Ping-pong: timed at the senders")
    sentence = f"{made.control.split('.')[0]}."
    assert sentence in fragment(made)
    for picture in (table_picture(made), card_picture(made)):
        words = " ".join(re.findall(r">([^<]+)</text>", picture))
        assert "adds 3 µs to the round trip of the control" in words


@pytest.mark.parametrize(("added", "printed"), [(3.01, 3.1), (3.1, 3.1), (12.3, 13), (0.123, 0.13), (100.1, 110)])
def test_a_figure_is_rounded_up(added: float, printed: float) -> None:
    assert two_digits_up(added) == pytest.approx(printed)


def test_claims_on_known_switches_are_rarely_too_strong() -> None:
    """Medians of repetitions scatter by some per cent, and some are disturbed; 500 switches, made before the rule."""
    random, too_strong = Random(49), []
    for _ in range(500):
        scatter, added, repeat = random.uniform(0.002, 0.05), random.uniform(0.5, 20), random.randint(4, 10)

        def some(level: float, scatter: float = scatter, repeat: int = repeat) -> list[float]:
            own = [level * (1 + random.gauss(0, scatter)) for _ in range(repeat)]
            return [each * (1.3 if random.random() < 0.05 else 1) for each in own]

        pairs = [(some(40 + added), some(40)) for _ in range(random.randint(1, 3))]
        claimed = at_most_added(pairs)
        too_strong.append(claimed < added)
    assert sum(too_strong) <= 0.02 * len(too_strong)
    assert median(too_strong) == 0

"""The search for the highest rate: what a trial says, which rate is next, which repetition stands for the test."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import builders
import pytest
from known import known

from rigctl.model.search import keep_deciding_trials, search
from rigctl.model.trials import RATE_OF_DATAGRAMS, Reason, Trial, searched_setting
from rigctl.records import MOST_TRIALS, Cell, Datagrams, Direction, Flow, Pair, Repetition, RunPlan, Side, Status
from rigctl.settings import MAX

SECOND = 10**9
PAIR = Pair("a", "b")
SIZE = 1250  # bytes: 100 datagrams a second are 1 Mbit/s


def plan(max_loss: float = 0.001, cells: int = 1) -> RunPlan:
    made = tuple(builders.cell(number, test="udp", message_bytes=SIZE, rate=MAX) for number in range(1, cells + 1))
    return replace(builders.plan(made), max_loss=max_loss)


def cell() -> Cell:
    return plan().cells[0]


def flow(sent: int | None, came: int | None, seconds: float = 1.0, number: int = 1) -> Flow:
    there = None if sent is None else Side(sent * SIZE, 7, 7 + round(seconds * SECOND), datagrams=Datagrams(sent))
    here = None if came is None else Side(came * SIZE, 8, 8 + SECOND, datagrams=Datagrams(came))
    return Flow(PAIR, Direction.FORWARD, number, there, here)


def trial(number: int, rate_bps: int | None, sent: int, came: int, **fields: Any) -> Repetition:
    made = builders.repetition(cell(), number=number)
    return replace(made, flows=(flow(sent, came),), load=rate_bps, **fields)


def trial_of(one: Repetition, the_cell: Cell | None = None, max_loss: float = 0.001) -> Trial:
    return RATE_OF_DATAGRAMS.trial(plan(max_loss), the_cell or cell(), one)


TIMES = (Side(9, None, 5), Side(9, 5, None), Side(9, 5, 5), Side(9, 6, 5))
TWO = (flow(100, 90, 0.5), flow(300, 270, 2.0, number=2))
PASSED = Trial(1, None, 1e6, 1e6, True, None, 1e6, 0.0, lasted_s=1.0)
UNKNOWN = Trial(1, None, None)


def timeless(side: Side) -> Flow:
    return replace(flow(100, 100), sender=replace(side, datagrams=Datagrams(100)))


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        # Of each flow, as sent and as arrived: 400 datagrams of 10 kbit over two flows, in the longer of their times.
        (
            {"flows": TWO, "load": 9},
            Trial(1, 9, 1e6, 9, False, Reason.LOSS, 0.9e6, 0.1, lasted_s=2.0),
        ),
        ({"flows": (flow(0, 0),)}, Trial(1, None, 0.0, 0.0, None, None, 0.0, lasted_s=1.0)),  # nothing was sent
        (
            {"flows": (flow(100, 100),), "status": Status.INVALID},
            Trial(1, None, 1e6, 1e6, True, None, 1e6, 0.0, lasted_s=1.0),
        ),
        ({"flows": (flow(100, 100),), "status": Status.FAILED, "load": 5}, Trial(1, 5, None, 5)),
        # A count that is missing leaves all unknown, …
        ({"flows": ()}, UNKNOWN),
        ({"flows": (flow(None, 5),)}, UNKNOWN),
        ({"flows": (flow(5, None),)}, UNKNOWN),
        ({"flows": (replace(flow(5, 5), receiver=Side(5, 1, 2)),)}, UNKNOWN),
        # … as does the time it took.
        *(({"flows": (timeless(side),)}, UNKNOWN) for side in TIMES),
    ],
)
def test_a_trial_has_the_rate_and_the_loss_of_all_flows(fields: dict[str, Any], found: Trial) -> None:
    assert trial_of(replace(trial(1, None, 0, 0), **fields)) == found


def test_without_the_size_of_its_datagrams_a_trial_has_no_rate() -> None:
    assert trial_of(trial(1, None, 100, 100), replace(cell(), message_bytes=None)).sent is None


def test_a_trial_passes_up_to_the_loss_that_is_allowed() -> None:
    assert [trial_of(trial(1, None, 1000, came)).passed for came in (999, 998)] == [True, False]
    assert trial_of(trial(1, None, 1000, 0, status=Status.FAILED), max_loss=1.0).passed is None


def following(*trials: Repetition, max_loss: float = 0.001) -> int | None:
    return search(RATE_OF_DATAGRAMS, (trial_of(one, max_loss=max_loss) for one in trials)).following


def test_where_the_first_and_unlimited_trial_passes_there_is_nothing_to_look_for() -> None:
    found = search(RATE_OF_DATAGRAMS, [trial_of(trial(1, None, 1000, 1000))])
    assert (found.best, found.following) == (found.trials[0], None)
    assert following() is None


FIRST = trial(1, None, 1000, 600)
NINE = trial(1, None, 10_000, 9_000)
LOSSY = [trial(number, 10**9 >> number, 10**5, 0) for number in range(1, MOST_TRIALS + 1)]


@pytest.mark.parametrize(
    ("trials", "rate_bps"),
    [
        # The second trial takes the rate at which the first arrived, or half where none arrived.
        ([FIRST], 6_000_000),
        ([trial(1, None, 1000, 0)], 5_000_000),
        # Later trials halve what is left between the best and the lowest that failed, in whatever order they are.
        ([trial(2, 6_000_000, 600, 600), FIRST], 8_000_000),
        ([FIRST, trial(2, 6_000_000, 600, 500)], 3_000_000),
        # A search ends within one percent …
        ([NINE, trial(2, 99_000_000, 9_900, 9_900)], None),
        ([NINE, trial(2, 98_000_000, 9_800, 9_800)], 99_000_000),
        # … or at the least rate, and never goes below, …
        ([trial(1, 1_000, 1000, 0)], None),
        ([trial(1, 1_001, 1000, 0)], 1_000),
        # … or after its most trials.
        (LOSSY, None),
        (LOSSY[:-1], pytest.approx(10**9 / 2**15, abs=1)),
        # 10 Mbit/s were asked for, 9.8 were sent and 9.9: the former counts as what was sent, the latter as asked.
        ([trial(1, 10_000_000, 980, 0)], 4_900_000),
        ([trial(1, 10_000_000, 990, 0)], 5_000_000),
        # A trial that was not measured counts as failed at what it asked for.
        ([FIRST, trial(2, 4_000_000, 400, 400), trial(3, 8_000_000, 0, 0, status=Status.FAILED)], 6_000_000),
        ([trial(1, None, 0, 0, status=Status.FAILED)], None),
    ],
)
def test_the_next_rate_follows_from_the_trials(trials: list[Repetition], rate_bps: int | None) -> None:
    assert following(*trials) == rate_bps


def test_a_loss_that_is_allowed_ends_the_search() -> None:
    assert following(trial(1, None, 100, 99), max_loss=0.02) is None


def test_the_best_trial_is_the_fastest_that_passed() -> None:
    trials = [trial(number, None, sent, came) for number, sent, came in ((1, 900, 600), (2, 200, 200), (3, 300, 300))]
    assert known(search(RATE_OF_DATAGRAMS, map(trial_of, trials)).best).number == 3


def test_of_a_search_only_its_best_trial_is_kept_and_the_last_where_none_passed() -> None:
    found = [trial(1, None, 1000, 600), trial(2, 3_000_000, 300, 300), trial(3, 5_000_000, 500, 400)]
    none = [replace(one, cell=2, flows=(flow(1000, 600),)) for one in found]
    other = replace(found[0], cell=3)
    both = replace(plan(), cells=(*plan(cells=2).cells, builders.cell(3)))
    kept = keep_deciding_trials(both, [*found, *none, other], trial_of)
    assert [(one.cell, one.repetition) for one in kept] == [(1, 2), (2, 3), (3, 1)]


def loads(passes: Callable[[int], bool], **fields: Any) -> list[int]:
    """Return the loads that a search from below tries, of a path where loads pass or not."""
    searched = replace(RATE_OF_DATAGRAMS, **fields)
    trials: list[Trial] = []
    following = searched.first(cell())
    while following is not None:
        trials.append(Trial(len(trials) + 1, following, following, following, passes(following)))
        following = search(searched, trials).following
    return [known(one.asked) for one in trials]


FROM_BELOW: dict[str, Any] = {"least": 1, "most": 1000, "precision": 0.0, "first": lambda _: 8}


@pytest.mark.parametrize(
    ("passes", "tried"),
    [
        (lambda load: load <= 21, [8, 16, 32, 24, 20, 22, 21]),  # the exact number is found
        (lambda load: load < 8, [8, 4, 6, 7]),
        (lambda load: load > 1000, [8, 4, 2, 1]),
        (lambda _: True, [8, 16, 32, 64, 128, 256, 512, 1000]),  # the highest load that is tried is the last
    ],
)
def test_a_search_from_below_raises_the_load_until_a_trial_fails(
    passes: Callable[[int], bool], tried: list[int]
) -> None:
    assert loads(passes, **FROM_BELOW) == tried


def test_a_test_tells_which_setting_is_searched() -> None:
    found = (searched_setting(one) for one in (cell(), builders.cell(1, test="udp", rate=5), builders.cell(1)))
    assert list(found) == [RATE_OF_DATAGRAMS, None, None]


def repeated(passes: Callable[[int, int], bool], repeat: int) -> tuple[list[int], int | None]:
    """Return the loads that a search tries and the load that it finds; `passes` takes a load and its trial's number."""
    searched = replace(RATE_OF_DATAGRAMS, **FROM_BELOW)
    trials: list[Trial] = []
    following = searched.first(cell())
    while following is not None:
        number = 1 + [one.asked for one in trials].count(following)
        trials.append(Trial(len(trials) + 1, following, following, following, passes(following, number)))
        following = search(searched, trials, repeat).following
    best = search(searched, trials, repeat).best
    return [known(one.asked) for one in trials], None if best is None else best.asked


def test_a_load_is_repeated_until_it_is_decided() -> None:
    steady = [8, 8, 16, 16, 12, 12, 14, 14, 13, 13]
    assert repeated(lambda load, _: load <= 13, 3) == (steady, 13)
    # One trial of three at each load fails by chance: the result is the same.
    noisy = [load for load in (8, 16, 12, 14, 13) for _ in range(3 if load <= 13 else 2)]
    assert repeated(lambda load, number: load <= 13 and number != 1, 3) == (noisy, 13)
    assert repeated(lambda load, number: load <= 13 and number != 1, 1)[1] is None
    assert repeated(lambda load, _: load <= 13, 2) == ([8, 16, 16, 12, 14, 14, 13], 13)


def test_what_was_sent_of_a_load_is_a_load_of_its_own() -> None:
    trials = [trial_of(trial(1, None, 2000, 1000)), trial_of(trial(2, 10_000_000, 800, 800))]
    found = search(RATE_OF_DATAGRAMS, trials)
    assert {load: str(bound) for load, bound in found.bounds.items()} == {8e6: "lower bound", 20e6: "upper bound"}
    assert (known(found.best).load, known(found.above).load) == (8_000_000, 20_000_000)


def test_a_load_that_was_not_sent_is_asked_for_again_where_it_is_undecided() -> None:
    high = 10_000_000
    trials = [Trial(1, None, 2e7, 20_000_000, False, arrived=1e7), Trial(2, high, 1e7, high, True)]
    short = [Trial(number, high, 9e6 + number, 9_000_000 + number, True) for number in range(3, 8)]
    assert search(RATE_OF_DATAGRAMS, [*trials, *short[:4]], 3).following == high
    assert search(RATE_OF_DATAGRAMS, [*trials, *short], 3).following == 5_000_000  # at last it counts as failed


def test_senders_that_can_send_no_more_end_the_search_with_what_they_sent() -> None:
    found = search(RATE_OF_DATAGRAMS, [Trial(1, None, 5e7, 50_000_000, True)], 3)
    assert (found.following, known(found.best).load) == (None, 50_000_000)


def test_a_trial_with_the_loss_of_the_conditional_throughput_stands_for_the_test() -> None:
    losses = [0.0004, 0.0, 0.2, 0.0008]
    trials = [Trial(n, 5, 5.0, 5, loss < 0.001, loss=loss) for n, loss in enumerate(losses, 1)]
    assert known(search(RATE_OF_DATAGRAMS, trials, 4).best).number == 1  # the second lowest of four

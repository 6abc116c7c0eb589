"""Repeatability of the search for the highest rate (`rate: max`) through policers with noise.

`python tests/bench/bench_policers.py [oracle] [simulated] [real] [--searches 5]`. The noise of a policer are bursts of
other traffic at random times, which take a share of its rate for a while. Each policer is searched by bisection alone
(`repeat: 1`), by bisections until they have used as many trials as the third way (their median counts), and with
repeated trials of undecided loads (`repeat: 3`, RFC 9971). The error is found ÷ true − 1, where true is the rate of the
policer with its bucket and the allowed loss; the spread is the largest ÷ the smallest rate found, − 1.

`simulated`: 20 policers. `real`: the same of nftables in network namespaces, seven at a time, with trials of 1 s; their
agents run in real time, so that other programs do not disturb them.
`oracle`: the package MLRsearch, if it is installed, classifies the loads of simulated searches as rigctl does.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from statistics import median
from subprocess import Popen
from typing import Annotated, Final

import typer
from bench import command, table
from bench_requests import agents
from processes import output_of
from talk import LONG_MS, Report, Talk, begin, completed, joined, report_of

from rigctl.measure.orders import burst
from rigctl.model.mlrsearch import Bound, SearchGoal, TrialResult, classify, conditional_loss
from rigctl.model.search import Search, search
from rigctl.model.trials import RATE_OF_DATAGRAMS, Trial
from rigctl.records import Cell, Datagrams, Direction, Flow, Pair, Repetition, RunPlan, Side, Status
from rigctl.settings import MAX, RATE, Settings

SIZE: Final = 1200
HEADERS: Final = 28  # of IP and UDP, which the policer counts
SECONDS: Final = 1.0
MAX_LOSS: Final = 0.001
REPEAT: Final = 3
BUCKET: Final = 30_000
NOISE_S: Final = 0.1  # how long a burst of other traffic lasts
LINK: Final = 1.5  # the first trial sends at so many times the rate of the policer
CELL: Final = Cell(1, "udp", (Pair("a", "b"),), SECONDS, 0.0, 1, message_bytes=SIZE, settings=Settings({RATE: MAX}))
PLAN: Final = RunPlan("", "", "", "", "", "", (), 1, (CELL,), max_loss=MAX_LOSS)
SENDING: Final = """
import random, socket, sys, time
rate, share, every, seed = map(float, sys.argv[1:])
numbers, out = random.Random(seed), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    time.sleep(numbers.expovariate(1 / every))
    began = time.monotonic()
    sent = 0
    while time.monotonic() - began < 0.1:
        if sent < (time.monotonic() - began) * rate * share / 8:
            out.sendto(bytes(1200), ("10.9.0.2", 9))
            sent += 1228
        else:
            time.sleep(0.0005)
"""
"""Sends the noise: bursts of 0.1 s with a share of the policer's rate, every so many seconds on average."""

Measure = Callable[[int], Trial]


@dataclass(frozen=True, slots=True)
class Policer:
    """A policer of so many bit/s (IP), and its noise: a share of the rate, every so many seconds on average."""

    rate_bps: float
    share: float
    every_s: float

    @property
    def true_bps(self) -> float:
        """Return the highest payload rate of a trial without noise within the allowed loss."""
        return (self.rate_bps + 8 * BUCKET / SECONDS) * SIZE / (SIZE + HEADERS) / (1 - MAX_LOSS)


def policers(count: int) -> list[Policer]:
    numbers = random.Random(7)
    return [
        Policer(1e6 * numbers.uniform(10, 30), numbers.uniform(0.1, 0.5), numbers.uniform(3, 20)) for _ in range(count)
    ]


def searched(measure: Measure, policer: Policer, repeat: int) -> Search:
    """Run rigctl's search and return it."""
    setting = replace(RATE_OF_DATAGRAMS, first=lambda _: round(LINK * policer.rate_bps))
    trials: list[Trial] = []
    following = setting.first(CELL)
    found = search(setting, trials, repeat)
    while following is not None:
        trials.append(replace(measure(following), number=len(trials) + 1))
        found = search(setting, trials, repeat)
        following = found.following
    return found


def rate_of(found: Search) -> float:
    return 0.0 if found.best is None else found.best.load or 0.0


@dataclass(slots=True)
class Found:
    """The rates that each way found, in its searches, and the trials of each search."""

    policer: Policer
    alone: list[float]
    as_long: list[float]
    repeated: list[float]
    trials: list[tuple[int, int]]
    short: int = 0  # trials whose sender did not send the load


def search_each_way(measure: Measure, policer: Policer, count: int) -> Found:
    found = Found(policer, [], [], [], [])
    for _ in range(count):
        own = searched(measure, policer, REPEAT)
        found.repeated.append(rate_of(own))
        budget, several = len(own.trials), [searched(measure, policer, 1)]
        found.trials.append((len(several[0].trials), budget))
        while sum(len(one.trials) for one in several) < budget:
            several.append(searched(measure, policer, 1))
        found.alone.append(rate_of(several[0]))
        found.as_long.append(median(map(rate_of, several)))
        found.short += sum(trial.asked != trial.load for one in (own, *several) for trial in one.trials)
    return found


def simulated(policer: Policer, numbers: random.Random) -> Measure:
    """Return a policer in steps of 1 ms: a token bucket that noise and trial share in proportion to their loads."""

    def measure(asked: int) -> Trial:
        step_s, tokens, sent, arrived = 0.001, float(BUCKET), 0.0, 0.0
        noisy_until_s, next_s = 0.0, numbers.expovariate(1 / policer.every_s)
        own = asked / 8 * (SIZE + HEADERS) / SIZE * step_s
        for number in range(round(SECONDS / step_s)):
            at_s = number * step_s
            if at_s >= next_s:
                noisy_until_s, next_s = at_s + NOISE_S, at_s + NOISE_S + numbers.expovariate(1 / policer.every_s)
            other = policer.rate_bps * policer.share / 8 * step_s if at_s < noisy_until_s else 0.0
            tokens = min(BUCKET, tokens + policer.rate_bps / 8 * step_s)
            passed = min(1.0, tokens / (own + other))
            tokens -= passed * (own + other)
            sent, arrived = sent + own, arrived + passed * own
        loss = 1 - arrived / sent
        return Trial(0, asked, float(asked), asked, loss <= MAX_LOSS, arrived=arrived, loss=loss)

    return measure


def side_of(report: Report) -> Side:
    (totals,), (counts,) = report.totals.values(), report.datagrams.values()
    datagrams = Datagrams(counts["datagrams"], burst=counts["burst"])
    return Side(totals["bytes"], totals["first_byte_ns"], totals["last_byte_ns"], datagrams=datagrams)


def real(receiver: Talk, sender: Talk) -> Measure:
    """Return a policer between two agents."""

    def measure(asked: int) -> Trial:
        joined(receiver, sender, "10.9.0.2", "10.9.0.1", extra=f"transport=udp size={SIZE}", interval_ms=1000)
        at_ns = time.monotonic_ns() + 100_000_000
        begin(receiver, LONG_MS, at_ns=at_ns)
        begin(sender, round(1000 * SECONDS), f"rate={asked} burst={burst(CELL, asked)}", at_ns=at_ns)
        completed(sender, receiver)
        flow = Flow(CELL.pairs[0], Direction.FORWARD, 1, side_of(report_of(sender)), side_of(report_of(receiver)))
        for agent in (sender, receiver):
            assert agent.ask("close endpoint=1")["ok"]
        repetition = Repetition(1, 1, 1, Status.OK, None, 0.0, 0.0, load=asked, flows=(flow,))
        return RATE_OF_DATAGRAMS.trial(PLAN, CELL, repetition)

    return measure


HEADS: Final = [
    "policer, Mbit/s",
    "noise: share, every",
    "true",
    "alone: error",
    "spread",
    "as long: error",
    "spread",
    "repeated: error",
    "spread",
    "trials alone, repeated",
    "not sent",
]


def _error(own: list[float], policer: Policer) -> float:
    return median(abs(rate / policer.true_bps - 1) for rate in own)


def _spread(own: list[float]) -> float:
    return max(own) / min(own) - 1 if min(own) else float("inf")


def told(title: str, found: list[Found]) -> None:
    """Print a row for each policer, then medians over all of them."""

    def rows() -> Iterator[list[str]]:
        for one in found:
            known = [f"{one.policer.rate_bps / 1e6:.1f}", f"{one.policer.share:.2f}, {one.policer.every_s:.0f} s"]
            ways = [
                f"{value:.1%}"
                for own in (one.alone, one.as_long, one.repeated)
                for value in (_error(own, one.policer), _spread(own))
            ]
            alone, repeated = (round(median(each)) for each in zip(*one.trials, strict=True))
            yield [*known, f"{one.policer.true_bps / 1e6:.2f}", *ways, f"{alone}, {repeated}", str(one.short)]

    table(title, HEADS, rows())
    print()
    for name, ways in {
        "alone": [(one, one.alone) for one in found],
        "as long": [(one, one.as_long) for one in found],
        "repeated": [(one, one.repeated) for one in found],
    }.items():
        errors = sorted(abs(rate / one.policer.true_bps - 1) for one, own in ways for rate in own)
        spreads = sorted(_spread(own) for _, own in ways)
        within = sum(error <= 0.02 for error in errors)
        print(
            f"{name}: error median {median(errors):.1%}, 90 % of searches within {errors[int(0.9 * len(errors))]:.1%}, "
            f"worst {errors[-1]:.1%}; within 2 %: {within} of {len(errors)}; "
            f"spread median {median(spreads):.1%}, worst {spreads[-1]:.1%}"
        )


def run_simulated(count: int) -> None:
    numbers = random.Random(11)
    found = [search_each_way(simulated(one, numbers), one, count) for one in policers(20)]
    told(f"20 simulated policers, {count} searches of each way", found)


def run_real(count: int) -> None:
    """Search through 20 policers, so many at the same time that the senders still have time to spare."""
    every = list(enumerate(policers(20)))
    batches = (every[first : first + AT_A_TIME] for first in range(0, len(every), AT_A_TIME))
    found = [one for batch in batches for one in run_batch(batch, count)]
    told(f"{len(found)} policers of nftables, {AT_A_TIME} at a time, trials of {SECONDS:g} s, {count} searches", found)


def run_batch(batch: Sequence[tuple[int, Policer]], count: int) -> list[Found]:
    """Search policers at the same time; each has namespaces, agents and a source of noise of its own."""
    with ExitStack() as stack:
        ways: list[tuple[Measure, Policer]] = []
        for number, one in batch:
            receiver, sender = stack.enter_context(agents(real_time=True))
            # In packets, all of which have the same size: with bytes, nftables adds a second of the rate to the bucket.
            per_second, bucket = (round(count / (SIZE + HEADERS)) for count in (one.rate_bps / 8, BUCKET))
            rule = f"limit rate over {per_second}/second burst {bucket} packets drop"
            chain = "type filter hook prerouting priority 0;"
            output_of(
                [*receiver.enter, "nft", f"table ip police {{ chain c {{ {chain} meta l4proto udp {rule}; }}; }}"]
            )
            words = map(str, (one.rate_bps, one.share, one.every_s, number))
            noise = Popen([*sender.enter, sys.executable, "-c", SENDING, *words])
            stack.callback(noise.wait)
            stack.callback(noise.kill)
            ways.append((real(receiver, sender), one))
        with ThreadPoolExecutor(len(ways)) as pool:
            return list(pool.map(lambda way: search_each_way(way[0], way[1], count), ways))


AT_A_TIME: Final = 7


def run_oracle(count: int) -> None:
    """Compare the class and the loss of the conditional throughput of each load with those of the package MLRsearch."""
    try:
        package = import_module("MLRsearch.target_stat"), import_module("MLRsearch.target_spec")
    except ImportError:
        print("\nMLRsearch is not installed: `pip install MLRsearch`")
        return
    numbers = random.Random(5)
    compared = differing = 0
    for one in policers(20):
        for repeat in (1, 2, 3, 5):
            for _ in range(count):
                found = searched(simulated(one, numbers), one, repeat)
                goal = SearchGoal(SECONDS, repeat * SECONDS, MAX_LOSS)
                for load in {trial.load for trial in found.trials}:
                    losses = [trial.loss or 0.0 for trial in found.trials if trial.load == load]
                    compared += 1
                    differing += _theirs(package, goal, losses) != _ours(goal, losses)
    print(f"\n{compared} loads of simulated searches classified as MLRsearch 1.2.1 does: {differing} differ")
    if differing:
        raise SystemExit(1)


def _ours(goal: SearchGoal, losses: list[float]) -> tuple[Bound, float]:
    results = [TrialResult(1.0, SECONDS, loss) for loss in losses]
    return classify(goal, results), conditional_loss(goal, results)


def _theirs(package: tuple[object, object], goal: SearchGoal, losses: list[float]) -> tuple[Bound, float]:
    stats, specs = package
    target = specs.TargetSpec(  # type: ignore[attr-defined]
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        discrete_width=None,
        trial_duration=goal.final_duration_s,
        duration_sum=goal.duration_sum_s,
        expansion_coefficient=2,
        fail_fast=True,
        preceding=None,
    )
    stat = stats.TargetStat(target)  # type: ignore[attr-defined]
    for loss in losses:
        stat.add(_Result(SECONDS, SECONDS, loss))
    optimistic, pessimistic = stat.estimates()
    bound = Bound.UNDECIDED if optimistic != pessimistic else Bound.LOWER if optimistic else Bound.UPPER
    return bound, stat.pessimistic_loss_ratio


@dataclass(frozen=True, slots=True)
class _Result:
    """A trial as the package MLRsearch has it."""

    intended_duration: float
    duration_with_overheads: float
    loss_ratio: float


WHAT: Final = {"oracle": run_oracle, "simulated": run_simulated, "real": run_real}


def main(what: Annotated[list[str], typer.Argument(default_factory=lambda: list(WHAT))], searches: int = 5) -> None:
    for each in what:
        WHAT[each](searches)


if __name__ == "__main__":
    command(__doc__, main)

"""The search for the most requests per second (`per_second: max`) against a computed queue.

`python tests/bench/bench_request_search.py [--first 1] [--last 14] [--realtime]`. Two agents in network namespaces; a
token bucket of tc(8) at 10 Mbit/s shapes the requests on their way, or the replies (as in bench_requests.py). rigctl's
search chooses the rates of trials of 2 s. The computed rate is the highest at which the times of the same schedule, by
Lindley's recursion, plus the time of an unshaped request, are within the same bound. Both must be within 5 %.
`--realtime` keeps the agents in time on a busy machine.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from bench import command, table
from bench_requests import (
    BURST,
    LARGE,
    RATE_BPS,
    Case,
    agents,
    computed_s,
    measure,
    nearest_rank,
    percentiles_ms,
    shape,
)
from talk import Report, Talk

from rigctl.model.search import Search, search
from rigctl.model.trials import RATE_OF_REQUESTS, Trial
from rigctl.records import (
    Cell,
    Direction,
    Flow,
    Pair,
    Repetition,
    RequestCounts,
    RoundTrips,
    RunPlan,
    Side,
    Status,
)
from rigctl.settings import MAX, PER_SECOND, Settings

BOUND: Final = 0.05
DURATION_S: Final = 2.0
LEAST_FOR_P99: Final = 1000
PAIR: Final = Pair("sender", "receiver")


@dataclass(frozen=True, slots=True)
class Sought:
    """A search: what is shaped, full segments of a message, the longest time in ms, and the bytes of the bucket."""

    shaped: str
    segments: int
    within_ms: float
    burst: int = BURST

    def at(self, per_second: int) -> Case:
        return Case(self.shaped, self.segments, per_second, 1, DURATION_S, self.burst)


SOUGHT: Final = tuple(
    Sought(shaped, *of_case)
    for of_case in (
        (1, 5.0),
        (1, 50.0),
        (1, 300.0),
        (4, 10.0),
        (4, 100.0),
        (10, 30.0),
        (1, 50.0, LARGE),
    )
    for shaped in ("requests", "replies")
)


def computed_rate(sought: Sought, base_ms: float) -> int:
    """Return the highest number of requests per second whose computed times are within the bound."""

    def passes(per_second: int) -> bool:
        times = computed_s(sought.at(per_second))
        slowest_s = nearest_rank(times, 99) if len(times) >= LEAST_FOR_P99 else max(times)
        return 1e3 * slowest_s + base_ms <= sought.within_ms

    low, high = 1, 100_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def side_of(report: Report, size: int) -> Side:
    (totals,), (counts,), (buckets,) = report.totals.values(), report.requests.values(), report.buckets.values()
    known = RequestCounts.__dataclass_fields__
    trips = RoundTrips(totals["bytes"] // size, totals.get("rtt_sum_ns"), totals["rtt_min_ns"], totals["rtt_max_ns"])
    return Side(
        totals["bytes"],
        None,
        None,
        round_trips=trips,
        histogram=tuple((bucket, count) for bucket, count in buckets),
        kind_counts=RequestCounts(**{name: counts[name] for name in known}),
    )


def found_by_search(receiver: Talk, sender: Talk, sought: Sought) -> Search:
    """Run the search. Return it with its trials."""
    size = sought.at(1).sizes[0]
    cell = Cell(1, "requests", (PAIR,), DURATION_S, 0.0, 1, message_bytes=size, settings=Settings({PER_SECOND: MAX}))
    plan = RunPlan("", "", "", "", "", "", (), 1, (cell,), max_latency_s=sought.within_ms / 1e3)
    trials: list[Trial] = []
    following = RATE_OF_REQUESTS.first(cell)
    found = search(RATE_OF_REQUESTS, trials)
    while following is not None:
        side = side_of(measure(receiver, sender, sought.at(following)), size)
        flow = Flow(PAIR, Direction.FORWARD, 1, side, None)
        repetition = Repetition(1, len(trials) + 1, 1, Status.OK, None, 0.0, 0.0, load=following, flows=(flow,))
        trials.append(RATE_OF_REQUESTS.trial(plan, cell, repetition))
        found = search(RATE_OF_REQUESTS, trials)
        following = found.following
    return found


def main(first: int = 1, last: int = len(SOUGHT), realtime: bool = False) -> None:
    heads = ["shaped", "segments", "within, ms", "bucket, bytes", "computed, /s", "found, /s", "ratio", "trials"]
    heads += ["sender late in", "above: rate, why"]
    worst = []

    def rows() -> Iterator[list[str]]:
        with agents(real_time=realtime) as (receiver, sender):
            for sought in SOUGHT[first - 1 : last]:
                agent, device = (sender, "c0") if sought.shaped == "requests" else (receiver, "s0")
                base_ms = percentiles_ms(measure(receiver, sender, replace(sought.at(20), duration_s=1)))[0]
                computed = computed_rate(sought, base_ms)
                shape(agent, device, sought.burst)
                found = found_by_search(receiver, sender, sought)
                shape(agent, device, None)
                rate = 0 if found.best is None else found.best.asked or 0
                worst.append(abs(rate / computed - 1))
                late = sum(trial.undecided for trial in found.trials)
                above = "–" if found.above is None else f"{found.above.asked}, {found.above.reason}"
                known = [sought.shaped, sought.segments, f"{sought.within_ms:g}", sought.burst, computed, rate]
                yield [*map(str, known), f"{rate / computed:.3f}", str(len(found.trials)), str(late), above]

    title = f"Most requests per second through {RATE_BPS / 1e6:g} Mbit/s; load {os.getloadavg()[0]:.1f}"
    table(title, heads, rows())
    failed = sum(off > BOUND for off in worst)
    print(f"\nwithin {BOUND:.0%}: {len(worst) - failed} of {len(worst)} cases; the largest difference {max(worst):.1%}")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    command(__doc__, main)

"""How well changes of level are found in nightly series: ours, a plain threshold, jumpavg, Otava, ruptures.

python tests/bench/bench_regressions.py [--seed tune|proof] [--peers PYTHON]
PYTHON is one that has apache-otava and ruptures. Tables for docs/measured/regressions.md.
The rules were tuned on the series of one seed only; `proof` is another.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Final, TypeAlias

import nightly_noise as simulated
from jumpavg import classify

from rigctl.analysis.nights.history import common
from rigctl.model.statistics.changes import Change, Point, Verdict, judged

SEEDS: Final = {"tune": 20261122, "proof": 977_431}
SIZES: Final = (0.01, 0.02, 0.05, 0.10)
RIG: Final = 20
"""Series that are judged together."""
SOON: Final = 2
LATER: Final = 7
_PEERS: Final = Path(__file__).with_name("regression_peers.py")

Points: TypeAlias = list[tuple[int, int]]
"""Of each alarm, the night in which it was given and the night from which on the level is said to differ."""
Detector: TypeAlias = Callable[[Sequence[simulated.Series]], list[Points]]


@dataclass(frozen=True, slots=True)
class Score:
    false: float  # alarms per 1,000 series-nights, other than the first of a change
    soon: float  # share of the changes that were found within 2 nights …
    later: float  # … and within 7


def score(series: Sequence[simulated.Series], alarms: Sequence[Points]) -> Score:
    nights, false, soon, later = 0, 0, 0, 0
    for own, points in zip(series, alarms, strict=True):
        nights += len(own.main)
        end = None if own.at is None else own.at + (40 if own.drift else LATER + 3)
        right = [(found, at) for found, at in points if own.at is not None and own.at <= found < (end or 0)]
        false += len(points) - (len(right) if own.drift else min(1, len(right)))
        if own.at is not None and right:
            soon += right[0][0] < own.at + SOON
            later += right[0][0] < own.at + (40 if own.drift else LATER)
    return Score(1000 * false / nights, soon / len(series), later / len(series))


def ours(series: Sequence[simulated.Series]) -> list[Points]:
    """Judge night by night; a night in which something seems to have changed is measured a second time."""
    found: list[Points] = []
    for begin in range(0, len(series), RIG):
        rig = series[begin : begin + RIG]
        points: list[list[Point]] = [[] for _ in rig]
        alarms: list[Points] = [[] for _ in rig]
        for night in range(len(rig[0].main)):
            for own, values in zip(rig, points, strict=True):
                values.append(Point(own.main[night]))
            seen = judged(points)
            again = [at for at, verdict in enumerate(seen) if verdict.suspicion or _news(verdict, night)]
            for at in again:
                points[at][-1] = Point(rig[at].main[night], rig[at].second[night])
            for at, verdict in enumerate(judged(points) if again else seen):
                alarms[at] += [(night, change.at) for change in _news(verdict, night)]
        found += alarms
    return found


def _news(verdict: Verdict, night: int) -> list[Change]:
    return [change for change in verdict.changes if change.found == night]


def threshold(share: float, confirm: bool = True) -> Detector:
    """More than `share` away from the median of the 14 nights before, and so is the second measurement."""

    def alarms(series: Sequence[simulated.Series]) -> list[Points]:
        found: list[Points] = []
        for own in series:
            points: Points = []
            for night in range(14, len(own.main)):
                usual = median(own.main[night - 14 : night])
                first, second = own.main[night] / usual - 1, own.second[night] / usual - 1
                if abs(first) > share and (not confirm or (abs(second) > share and first * second > 0)):
                    points.append((night, night))
            found.append(points)
        return found

    return alarms


def set_aside(values: Sequence[float], noises: float = 4.0) -> list[int]:
    """The nights that are not single bad ones: far from both the nights before and those after."""
    steps = [abs(later / earlier - 1) for earlier, later in pairwise(values)]
    noise = max(1.4826 * median(steps) / 2**0.5, 3e-4) if steps else 0.0
    kept = []
    for night, value in enumerate(values):
        before, after = values[max(0, night - 2) : night], values[night + 1 : night + 3]
        sides = [median(side) for side in (before, after) if side]
        far = [abs(value / side - 1) > max(noises * noise, 0.01) for side in sides]
        if not (len(far) == 2 and all(far) and (value - sides[0]) * (value - sides[1]) > 0):
            kept.append(night)
    return kept


def jumpavg(*, aside: bool = False, bound: float = 0.0) -> Detector:
    return lambda series: [_offline(own, lambda values: _groups(values, aside, bound)) for own in series]


def _groups(values: Sequence[float], aside: bool, bound: float) -> list[int]:
    kept = set_aside(values) if aside else list(range(len(values)))
    at, starts, last = 0, [], None
    for group in classify([values[night] for night in kept]):
        if last is not None and abs(group.stats.avg / last - 1) > bound:
            starts.append(kept[at])
        last = group.stats.avg
        at += len(group.run_list)
    return starts


def _offline(own: simulated.Series, points_of: Callable[[Sequence[float]], list[int]]) -> Points:
    return _merged(own, {length: points_of(own.main[:length]) for length in lengths(own)})


def lengths(own: simulated.Series) -> list[int]:
    """As far as a detector that sees a whole series at once is asked: 2 and 7 nights after a change, and at the end."""
    if own.at is None:
        return [len(own.main)]
    return sorted({own.at + (40 if own.drift else night) for night in (SOON, LATER)} | {len(own.main)})


def _merged(own: simulated.Series, by_length: dict[int, list[int]]) -> Points:
    """Right points are dated by the length at which they were first seen; the others are those of the whole series."""
    points: Points = []
    near = range(0) if own.at is None else range(own.at - 2, own.at + (40 if own.drift else LATER))
    for length, starts in sorted(by_length.items()):
        if own.at is not None and not points and any(start in near for start in starts):
            points.append((max(own.at, min(length - 1, own.at + (39 if own.drift else LATER + 2))), own.at))
    whole = by_length[len(own.main)]
    return points + [(start, start) for start in whole if start not in near]


def peers(python: str) -> dict[str, Detector]:
    def of(name: str) -> Detector:
        def alarms(series: Sequence[simulated.Series]) -> list[Points]:
            asked = [own.main[:length] for own in series for length in lengths(own)]
            done = subprocess.run(
                [python, str(_PEERS), name], input=json.dumps(asked), capture_output=True, text=True, check=True
            )
            answers: Iterator[list[int]] = iter(json.loads(done.stdout))
            return [_merged(own, {length: next(answers) for length in lengths(own)}) for own in series]

        return alarms

    return {name: of(name) for name in ("otava", "otava, bound", "ruptures", "ruptures, bound")}


def table(
    detectors: dict[str, Detector], seed: int, forms: Sequence[str], count: int, *, still_only: bool = False
) -> None:
    heads = ["detector", *forms]
    heads += [] if still_only else [*(f"{100 * size:g} %" for size in SIZES), "drift", "false beside steps"]
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "--:|" * (len(heads) - 1))
    for name, detector in detectors.items():
        began = time.perf_counter()
        row = [name]
        for form in forms:
            still = list(simulated.series(form, 0, seed, count))
            row.append(f"{score(still, detector(still)).false:.2f}")
        if not still_only:
            row += _changed(detector, seed, count)
        print("| " + " | ".join(row) + f" |  {time.perf_counter() - began:.0f} s", flush=True)


def _changed(detector: Detector, seed: int, count: int) -> list[str]:
    """Of each size the shares found soon and later, of drifts, and the false alarms beside the steps."""
    row, beside = [], []
    for size in SIZES:
        stepped = list(simulated.series("white", size, seed, count))
        result = score(stepped, detector(stepped))
        beside.append(result.false)
        row.append(f"{100 * result.soon:.1f} / {100 * result.later:.1f}")
    drifting = list(simulated.series("white", 0.05, seed, count, drift=True))
    return [*row, f"{100 * score(drifting, detector(drifting)).later:.1f}", f"{fmean(beside):.2f}"]


def swapped(seed: int, form: str, share: float, meshes: int = 40) -> str:
    """Four nodes, each to each: one sends slower from a night on. How often it is named, once, and others falsely."""
    soon = other = pairs = 0
    for number in range(meshes):
        nodes, at = "abcd", 30 + number
        ends = [(sender, receiver) for sender in nodes for receiver in nodes if sender != receiver]
        noise = [own.main for own in simulated.series(form, 0, seed + number, len(ends))]
        values = [
            [value * (1 - share if sender == "c" and night >= at else 1) for night, value in enumerate(main)]
            for (sender, _), main in zip(ends, noise, strict=True)
        ]
        roles = [(node, role) for node in nodes for role in (0, 1)]
        points = [[Point(value) for value in own] for own in values]
        together = [
            common([own for end, own in zip(ends, points, strict=True) if end[role] == node]) for node, role in roles
        ]
        verdicts = judged([*together, *points])
        for (node, role), verdict in zip(roles, verdicts, strict=False):
            first = verdict.changes[0] if verdict.changes else None
            if (node, role) == ("c", 0):
                soon += first is not None and at <= first.found < at + SOON
                other += len(verdict.changes) > 1
            else:
                other += len(verdict.changes)
        pairs += sum(bool(verdict.changes) for verdict in verdicts[len(roles) :]) - 3
    return (
        f"{form}, {100 * share:g} %: node and role named within 2 nights in {soon} of {meshes} meshes; other nodes or "
        f"roles named {other} times; other pairs {pairs} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", choices=sorted(SEEDS), default="tune")
    parser.add_argument("--peers", help="a Python with apache-otava and ruptures: those only")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--forms", nargs="*", default=list(simulated.FORMS))
    parser.add_argument("--still", action="store_true", help="only series without changes")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these detectors")
    given = parser.parse_args()
    if any(form.startswith("own") for form in given.forms):
        for test, nights in enumerate(simulated.own_nights(), 1):
            print(f"test {test}:", {name: round(value, 3) for name, value in simulated.fitted(nights).items()})
    detectors: dict[str, Detector] = {
        "ours": ours,
        "threshold 3 %": threshold(0.03),
        "threshold 3 %, unconfirmed": threshold(0.03, confirm=False),
        "jumpavg": jumpavg(),
        "jumpavg, bound": jumpavg(bound=0.015),
        "jumpavg, bad nights set aside, bound": jumpavg(aside=True, bound=0.015),
    }
    if given.peers:
        detectors = peers(given.peers)
    elif not given.still and not given.only:
        for form in ("white", "bad nights, all persist"):
            for share in (0.02, 0.05):
                print(swapped(SEEDS[given.seed], form, share))
    detectors = {name: detector for name, detector in detectors.items() if not given.only or name in given.only}
    table(detectors, SEEDS[given.seed], given.forms, given.count, still_only=given.still)


if __name__ == "__main__":
    main()

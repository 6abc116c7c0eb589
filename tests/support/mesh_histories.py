"""Generates nights of meshes as figures, with faults of pairs and of nodes whose truth is known.

A fault moves one pair, or all pairs of a node as sender or as receiver, for ever or until it is repaired. Faults come
in every order, also at pairs and nodes that have one already; only the nights of changes lie some nights apart.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Final, TypeAlias

import builders as make
from many_nights import DAY_S, FIRST_S, mesh_plan

from rigctl.analysis.nights.comparison import figure_keys
from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.analysis.nights.regressions import Regressions, Shift, judge_nights
from rigctl.analysis.views.mesh import MeshEnds, Role
from rigctl.figures.streams import GOODPUT
from rigctl.model.statistics.changes import NightPoint
from rigctl.records import RunInfo

LEVEL: Final = 940.0
FIRST_FAULT: Final = 12
APART: Final = 5  # least nights between the beginnings of two faults
SETTLED: Final = 4  # nights after which what a fault is called is final
_SIZES: Final = (3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 7, 8, 12)
NodeRole: TypeAlias = tuple[str, Role]
Place: TypeAlias = MeshEnds | NodeRole


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of one pair or of a node in a role, by a ratio, from a night on until another (None: for ever)."""

    place: Place
    ratio: float
    begin: int
    end: int | None = None

    def moves(self, pair: MeshEnds, night: int) -> bool:
        sender, receiver = pair
        here = self.place in (pair, (sender, "sending"), (receiver, "receiving"))
        return here and self.begin <= night and (self.end is None or night < self.end)

    def lasts(self, night: int) -> bool:
        return self.begin <= night and (self.end is None or night < self.end)


@dataclass(frozen=True, slots=True)
class History:
    """Nights of a mesh: node names, number of nights, noise from night to night, and what was wrong when."""

    nodes: tuple[str, ...]
    nights: int
    sigma: float
    faults: tuple[Fault, ...]
    seed: str

    def seen(self) -> Nights:
        """Return the nights as rigctl reads them from a store."""
        plan, noise = mesh_plan(self.nodes), random.Random(f"{self.seed} noise")
        runs = tuple(_run(replace(make.run(plan), started_at=FIRST_S + at * DAY_S), at) for at in range(self.nights))
        series = []
        for cell, key in figure_keys(plan.cells):
            if key.metric is not GOODPUT or key.stream is not None:
                continue
            [stream] = cell.streams
            pair = stream.sender, stream.receiver
            points = tuple(NightPoint(self._value(pair, night, noise)) for night in range(self.nights))
            series.append(NightSeries(key, cell, (cell.number,), points))
        return Nights(runs, {}, tuple(series))

    def _value(self, pair: MeshEnds, night: int, noise: random.Random) -> float:
        value = LEVEL * exp(noise.gauss(0, self.sigma))
        for fault in self.faults:
            value *= fault.ratio if fault.moves(pair, night) else 1.0
        return value

    def places(self, night: int) -> set[Place]:
        """Return what is wrong in a night."""
        return {fault.place for fault in self.faults if fault.lasts(night)}

    @property
    def changes(self) -> list[int]:
        """Return the nights in which something changes, in order."""
        return sorted({at for fault in self.faults for at in (fault.begin, fault.end) if at and at < self.nights})

    def asked(self) -> list[int]:
        """Return two nights to judge: the one after that of a change, and the last."""
        return sorted({random.Random(f"{self.seed} asked").choice(self.changes) + 1, self.nights - 1})

    def every(self) -> list[int]:
        """Return all nights worth judging: the first ones after each change, and the last."""
        after = {at + later for at in self.changes for later in (1, SETTLED)}
        return sorted({night for night in after if night < self.nights} | {self.nights - 1})

    def settled(self, night: int) -> bool:
        return not any(at <= night < at + SETTLED for at in self.changes)


def _run(info: RunInfo, night: int) -> RunInfo:
    return replace(info, run=f"20261101-0230{night:02d}-{night:04x}")


def judge(seen: Nights, night: int) -> Regressions:
    """Return the verdict on one night."""
    series = tuple(replace(own, points=own.points[: night + 1]) for own in seen.series)
    return judge_nights(replace(seen, runs=seen.runs[: night + 1], series=series), ())


def place(shift: Shift) -> Place:
    """Return what a change is called."""
    subject, stream = shift.series.subject, shift.series.stream
    if subject.node is not None and subject.role is not None:
        return subject.node, subject.role
    assert stream is not None
    return stream.sender, stream.receiver


def wrong_subjects(history: History, nights: Sequence[int]) -> list[str]:
    """Return those of `nights` on which something is named that did not change, or a lasting fault is not named."""
    seen, found = history.seen(), []
    for night in nights:
        verdict = judge(seen, night)
        true = history.places(night)
        began = {own.place for own in history.faults if own.begin <= night} | _pairs_of(history, night)
        news, standing = ({place(own) for own in shifts} for shifts in (verdict.news, verdict.standing))
        if wrong := (news | standing) - began:
            found.append(f"{history.seed} night {night}: {sorted(wrong)} did not change; {_told(history)}")
        elif history.settled(night) and (news | standing) != true:
            found.append(
                f"{history.seed} night {night}: {sorted(news | standing)}, not {sorted(true)}; {_told(history)}"
            )
    return found


def _pairs_of(history: History, night: int) -> set[Place]:
    """Return the pairs of nodes that began to change in the last nights: one of them may be found before its node."""
    fresh = [own for own in history.faults for at in (own.begin, own.end) if at and at <= night < at + SETTLED]
    return {pair for pair in _pairs(history.nodes) if any(own.moves(pair, own.begin) for own in fresh)}


def _told(history: History) -> str:
    return f"{len(history.nodes)} nodes, noise {history.sigma}, {history.faults}"


def _pairs(nodes: Sequence[str]) -> list[MeshEnds]:
    return [(left, right) for left in nodes for right in nodes if left != right]


def generate(seed: str) -> History:
    """Return a history of 3 to 12 nodes with one to four changes, each by 4 to 20 %, some of them repaired."""
    draws = random.Random(seed)
    nodes = tuple(f"n{number}" for number in range(1, draws.choice(_SIZES) + 1))
    sigma = draws.choice((0.001, 0.002, 0.004))
    faults: list[Fault] = []
    night = FIRST_FAULT + draws.randrange(8)
    for _ in range(draws.randint(1, 4)):
        others = {at for own in faults for at in (own.begin, own.end) if at}
        night = next(at for at in range(night, 1000) if all(abs(at - other) >= APART for other in others))
        taken = {own.place for own in faults}
        gain = draws.random() < 0.1  # a gain lasts: its end would be a loss, as no user accepts gains
        ratio = 1 + draws.uniform(0.04, 0.12) if gain else 1 - draws.uniform(0.04, 0.20)
        end = night + draws.randint(8, 30) if draws.random() < 0.3 and not gain else None
        if end is not None and any(abs(end - other) < APART for other in others):
            end = None
        for where in _places(draws, nodes, faults):
            if where not in taken:
                faults.append(Fault(where, ratio * draws.uniform(0.99, 1.01), night, end))
        night += APART + draws.randrange(12)
    return History(nodes, night - APART + SETTLED + 2, sigma, tuple(faults), seed)


def _places(draws: random.Random, nodes: Sequence[str], faults: Sequence[Fault]) -> list[Place]:
    """Return where something changes in one night: at a node, at one pair, or at two pairs, too few to be a node."""
    kind, pairs = draws.random(), _pairs(nodes)
    if kind < 0.3:
        return [(draws.choice(nodes), draws.choice(("sending", "receiving")))]
    if kind < 0.5 and len(nodes) >= 5:
        node = draws.choice(nodes)
        return [*draws.sample([own for own in pairs if own[0] == node], 2)]
    if kind < 0.8 and faults:  # beside the last fault: a pair of the same node
        return [draws.choice([own for own in pairs if faults[-1].place[0] in own])]
    return [draws.choice(pairs)]

"""Simulated meshes with known faults: slow nodes, pairs that are slow in one direction, groups behind a slow trunk.

The measured rate is the least of the rates of sender, receiver and path, with noise. Faulty parts have at most 0.8 of
the full rate, others at least 0.95, so that there is one right answer.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import permutations

from builders import asking, cell, plan, repetition, run
from message_runs import side

from rigctl.analysis.views.mesh import MeshEnds, Role, Way
from rigctl.records import Flow, Link, Pair, Repetition, RunInfo, Status
from rigctl.results.summary import Estimate

NODES = ("n1", "n2", "n3", "n4")
ROLES: tuple[tuple[Role, ...], ...] = (("sending",), ("receiving",), ("sending", "receiving"))


@dataclass(frozen=True)
class Made:
    nodes: tuple[str, ...]
    ways: dict[MeshEnds, Way]
    slow: dict[str, tuple[Role, ...]]
    faults: tuple[MeshEnds, ...]


def made_meshes(seed: int, count: int) -> list[Made]:
    chance = random.Random(seed)
    return [_made(chance) for _ in range(count)]


def _made(chance: random.Random) -> Made:
    nodes = tuple(f"n{number}" for number in range(1, chance.randint(3, 13) + 1))
    rate_mbps, noise = chance.choice([941, 2353, 9410, 23500]), chance.choice([0.002, 0.01, 0.02, 0.03])
    chosen = chance.sample(nodes, chance.choice([0, 0, 1, 1, 1, 2, 3])) if chance.random() < 0.8 else []
    slow = {node: chance.choice(ROLES) for node in chosen}
    slow = dict(list(slow.items())[: (len(nodes) - 1) // 2])
    able = {(node, role): chance.uniform(0.95, 1.0) for node in nodes for role in ROLES[2]}
    for node, roles in slow.items():
        able |= dict.fromkeys(((node, role) for role in roles), chance.uniform(0.15, 0.8))
    paths = dict.fromkeys(permutations(nodes, 2), 1.0)
    sound = [node for node in nodes if node not in slow]
    left: set[str] = set()
    if not slow and len(nodes) > 3 and chance.random() < 0.3:
        left, across = set(nodes[: chance.randint(2, len(nodes) - 2)]), chance.uniform(0.2, 0.8)
        paths |= {ends: across for ends in paths if (ends[0] in left) != (ends[1] in left)}
    # No node is in two slow pairs, and groups are large enough that a slow pair does not look like a slow node.
    chosen = chance.sample(sound, len(sound))
    room = len(sound) > 3 and (not left or min(len(left), len(nodes) - len(left)) > 2)
    faults = tuple(zip(chosen[::2], chosen[1::2], strict=False))[: chance.choice([0, 0, 1, 2])] if room else ()
    paths |= {ends: paths[ends] * chance.uniform(0.15, 0.75) for ends in faults}
    ways, repeat = {}, chance.choice([1, 3])
    for number, (ends, path) in enumerate(paths.items(), 1):
        true_mbps = rate_mbps * min(path, able[ends[0], "sending"], able[ends[1], "receiving"])
        measured = [true_mbps * (1 - abs(chance.gauss(0, noise)) + chance.gauss(0, noise / 3)) for _ in range(repeat)]
        spread = (max(measured) - min(measured)) / 2 if repeat > 1 else None
        ways[ends] = Way(*ends, number, Estimate(sum(measured) / repeat, spread), 0.0)
    return Made(nodes, ways, slow, faults)


def messages_between(test: str, times_s: Mapping[MeshEnds, float], size: int = 64) -> tuple[RunInfo, list[Repetition]]:
    """Return a run with 100 messages of `size` bytes per pair, pair by pair; `times_s` is the total time of each."""
    every = enumerate(times_s, 1)
    cells = [cell(number, test=test, pairs=(Pair(*ends),), message_bytes=size) for number, ends in every]
    measured = []
    for each in cells:
        sender = side(size, 100, times_s[each.streams[0].ends], test == "pingpong")
        flows = (Flow(each.pairs[0], each.direction, 1, sender, None),)
        measured.append(Repetition(each.number, 1, 1, Status.OK, None, 0.0, 1.0, flows=flows))
    return replace(run(plan(cells)), facts={}), measured


def mesh_run(rates: Mapping[MeshEnds, float], nodes: tuple[str, ...] = NODES) -> tuple[RunInfo, list[Repetition]]:
    """Return a run of all ordered pairs at 9400 Mbit/s except those in `rates`; ("n1", "") means all pairs from n1."""
    cells = [
        asking(cell(number, pairs=(Pair(*ends),)), window_bytes=None, mss=None, congestion="cubic", duration_s=1.0)
        for number, ends in enumerate(permutations(nodes, 2), 1)
    ]

    def mbps(source: str, destination: str) -> float:
        return rates.get((source, destination), rates.get((source, ""), 9400.0))

    measured = [repetition(each, [mbps(*each.streams[0].ends)], [each.number % 3]) for each in cells]
    return run(plan(cells, links=dict.fromkeys(nodes, Link(10**10, 9000)), title="A mesh")), measured

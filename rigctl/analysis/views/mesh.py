"""Meshes and stars among the tests of a run: every node to every other, or every node to one and back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rigctl.analysis.views.directions import LEAST, Ends, Measured, Way, by_ends, centre_of
from rigctl.analysis.views.slow import (
    FarNode,
    Lopsided,
    SlowNode,
    SmallFrames,
    far_nodes,
    lopsided,
    slow_around,
    slow_nodes,
    small_frames,
)
from rigctl.records import Cell


@dataclass(frozen=True, slots=True)
class Mesh:
    """A point of the other axes: `point` is its settings, without pairs. `centre`: of a star; None: all to all."""

    point: Cell
    nodes: tuple[str, ...]
    ways: Mapping[Ends, Way]
    slow: tuple[SlowNode, ...]
    lopsided: tuple[Lopsided, ...]  # the largest difference first
    far: tuple[FarNode, ...] = ()
    small: tuple[SmallFrames, ...] = ()
    centre: str | None = None

    @property
    def known(self) -> list[Way]:
        """The measured ways, the slowest first."""
        return sorted((way for way in self.ways.values() if way.mbps is not None), key=lambda way: way.mbps or 0.0)

    @property
    def answered(self) -> list[Way]:
        """The ways with a round trip, the shortest first."""
        known = (way for way in self.ways.values() if way.rtt_p50_us is not None)
        return sorted(known, key=lambda way: way.rtt_p50_us or 0.0)


def meshes(measured: Iterable[Measured], order: Iterable[str]) -> tuple[Mesh, ...]:
    """One for each point of the axes at which three nodes or more are a mesh or a star.

    No node may have been in two pairs at once: those would share its link. `order` is that of the nodes in the rig.
    """
    points: dict[Cell, list[Measured]] = {}
    for cell, ways in measured:
        points.setdefault(replace(cell, number=0, pairs=(), capture=False), []).append((cell, ways))
    ranks = {name: number for number, name in enumerate(order)}
    found = (_mesh(point, own, ranks) for point, own in points.items())
    return tuple(mesh for mesh in found if mesh is not None)


def _mesh(point: Cell, measured: Sequence[Measured], ranks: Mapping[str, int]) -> Mesh | None:
    ways = by_ends(measured)
    if not ways or not any(way.mbps or way.rtt_p50_us for way in ways.values()):
        return None
    nodes = tuple(sorted({node for ends in ways for node in ends}, key=lambda node: ranks.get(node, len(ranks))))
    if len(nodes) <= LEAST:
        return None
    far, small = far_nodes(nodes, ways), small_frames(nodes, ways)
    if len(ways) == len(nodes) * (len(nodes) - 1):
        slow = slow_nodes(nodes, ways)
        return Mesh(point, nodes, ways, slow, lopsided(nodes, ways, slow), far, small)
    centre = centre_of(nodes, ways)
    if centre is None:
        return None
    slow = slow_around(centre, nodes, ways)
    return Mesh(point, nodes, ways, slow, lopsided(nodes, ways, slow), far, small, centre)

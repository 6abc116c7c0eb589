"""Rounds in which every node is measured with every other, or with one node.

Rounds of disjoint pairs are a 1-factorisation of the complete graph by the circle method: one node stays, the others
stand on a circle that turns by one place each round, and those who face each other are a pair. With an odd number of
nodes, one rests in each round.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

Ends: TypeAlias = tuple[str, str]
"""Source and destination."""

Round: TypeAlias = tuple[Ends, ...]
"""Pairs that are measured at once."""


def order_pairs(names: Sequence[str]) -> list[Round]:
    """Return each ordered pair in a round of its own, source by source."""
    return [((source, destination),) for source in names for destination in names if source != destination]


def disjoint(names: Sequence[str]) -> list[Round]:
    """Return each ordered pair once, in rounds whose pairs share no node: each round, then the same with ends swapped.

    N nodes take N − 1 rounds each way, or N rounds if N is odd.
    """
    return [
        tuple(pair if forth else pair[::-1] for pair in pairs) for pairs in _circle(names) for forth in (True, False)
    ]


def around(centre: str, others: Sequence[str]) -> list[Round]:
    """Return the pairs from `centre` to each of the others and back, each in a round of its own."""
    return [(pair,) for other in others if other != centre for pair in ((centre, other), (other, centre))]


def _circle(names: Sequence[str]) -> Iterator[Round]:
    order = {name: number for number, name in enumerate(names)}
    places: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    for _ in range(len(places) - 1):
        facing = zip(places[: len(places) // 2], reversed(places[len(places) // 2 :]), strict=True)
        pairs = [(left, right) for left, right in facing if left is not None and right is not None]
        in_order = (pair if order[pair[0]] < order[pair[1]] else pair[::-1] for pair in pairs)
        yield tuple(sorted(in_order, key=lambda pair: order[pair[0]]))
        places.insert(1, places.pop())

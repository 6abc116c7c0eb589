"""Plan rounds of pairs, so that every node is measured with every other node, or with one node.

Rounds of disjoint pairs follow the circle method (1-factorisation of the complete graph). One node stays; the others
move on by one place on a circle each round, and nodes that face each other are a pair. If the number of nodes is odd,
one node pauses in each round.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

RoundEnds: TypeAlias = tuple[str, str]  # the names of a source and a destination node
Round: TypeAlias = tuple[RoundEnds, ...]  # the pairs that are measured at the same time


def order_pairs(names: Sequence[str]) -> list[Round]:
    """Return one round for each ordered pair of nodes, sorted by source."""
    return [((source, destination),) for source in names for destination in names if source != destination]


def disjoint(names: Sequence[str]) -> list[Round]:
    """Return rounds of pairs that share no node. Each round is followed by a round with its pairs reversed.

    N nodes take N − 1 rounds in each direction, or N rounds if N is odd.
    """
    return [
        tuple(pair if forth else pair[::-1] for pair in pairs) for pairs in _circle(names) for forth in (True, False)
    ]


def around(centre: str, others: Sequence[str]) -> list[Round]:
    """Return two rounds of one pair for each other node: from `centre` to the node, and back."""
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

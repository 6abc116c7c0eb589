"""Measures cases one after the other at known switches, between the same nodes, and prints a row for each."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from bench import table
from known_switch.rig import Nodes, nodes_up
from user import User

Row = tuple[bool, Sequence[str]]
"""Tells whether a case came as expected, and the texts of its row."""


class Named(Protocol):
    """A case, chosen by a part of its name."""

    @property
    def name(self) -> str: ...


_C = TypeVar("_C", bound=Named)


def run_cases(title: str, heads: Sequence[str], cases: Sequence[_C], judge: Callable[[_C, Nodes, User], Row]) -> None:
    """Print the row that `judge` returns for each case that the command line names, or for all of them."""
    if os.geteuid() != 0:
        raise SystemExit("The known switch takes over ports of network namespaces: run this as root.")
    chosen = [case for case in cases if not sys.argv[1:] or any(name in case.name for name in sys.argv[1:])]
    good = []

    def rows(nodes: Nodes, user: User) -> Iterator[Sequence[str]]:
        for case in chosen:
            as_expected, row = judge(case, nodes, user)
            good.append(as_expected)
            yield row

    with tempfile.TemporaryDirectory(prefix="switches-") as place, nodes_up(Path(place), *"abcd") as nodes:
        table(title, heads, rows(nodes, User(Path(place))))
    print(f"{sum(good)} of {len(good)} as expected")

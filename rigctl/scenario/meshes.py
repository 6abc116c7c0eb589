"""`pairs: mesh`, `mesh-parallel` and `{star: NODE}`: sets of pairs, one after the other at each point of a matrix."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

from rigctl.model import rounds
from rigctl.records import Pair
from rigctl.rig.fields import FieldError, shown
from rigctl.rig.inventory import Rig
from rigctl.rig.ranges import members
from rigctl.scenario.matrix import MAX_CELLS, Row
from rigctl.yamlfile import Path, kind, suggestion

MESH: Final = "mesh"
PARALLEL: Final = "mesh-parallel"
STAR: Final = "star"
WORDS: Final = (MESH, PARALLEL, STAR)
MESH_SCHEMAS: Final = (
    {"enum": [MESH, PARALLEL]},
    {
        "type": "object",
        "properties": {
            MESH: {"type": ["string", "array"], "items": {"type": "string"}},
            PARALLEL: {"type": ["string", "array"], "items": {"type": "string"}},
            STAR: {"type": "string"},
        },
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    },
)
_TEXT: Final = re.compile(rf"\s*({'|'.join(sorted(WORDS, key=len, reverse=True))})\s*(?::\s*(\S+)\s*)?", re.ASCII)
_EXAMPLES: Final = {MESH: "{mesh: [n1, n2, n3]}", PARALLEL: "{mesh-parallel: [n1, n2, n3]}", STAR: "{star: n1}"}

PairSet: TypeAlias = tuple[Pair, ...]
"""Pairs that send at once."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What a mesh or a star is made of: `sides` are nodes, groups or ranges; none: all nodes of the rig."""

    word: str
    sides: tuple[str, ...] = ()


def parse_rounds(name: str, value: object) -> Rounds | None:
    """A mesh or star, or `None` where no such is meant. Raises `FieldError`; what it names is not asked here."""
    if isinstance(value, str):
        match = _TEXT.fullmatch(value[:200])
        if match is None:
            return None
        if match[1] == STAR and match[2] is None:
            raise FieldError(f"{name} {shown(STAR)}: expected its node, as in {_EXAMPLES[STAR]}")
        return Rounds(match[1], () if match[2] is None else (match[2],))
    if not isinstance(value, dict):
        return None
    word, given = next(iter(value.items()), ("", None))
    hint = suggestion(str(word), WORDS)
    if word not in WORDS and hint.startswith(" Known"):
        return None
    if word not in WORDS:
        raise FieldError(f"{name}: unknown {shown(word)}.{hint}")
    if len(value) != 1:
        raise FieldError(f"{name}: expected one key, as in {_EXAMPLES[word]}, found {len(value)}")
    sides = given if isinstance(given, list) and word != STAR else [given]
    names = [side.strip() for side in sides if isinstance(side, str) and side.strip()]
    if len(names) < len(sides) or not sides:
        found = kind(next(side for side in sides if side not in names)) if sides else "an empty list"
        expected = "the name of a node" if word == STAR else "names of nodes"
        raise FieldError(f"{name}: {word}: expected {expected}, as in {_EXAMPLES[word]}, found {found}")
    return Rounds(word, tuple(names))


def is_rounds(text: str) -> bool:
    """Whether a text is meant as a mesh or star."""
    return _TEXT.fullmatch(text[:200]) is not None


def pair_sets(asked: Rounds, rig: Rig) -> tuple[PairSet, ...]:
    """The sets of pairs, in the order of their tests. `rounds_mistakes` has told of what is wrong."""
    every = tuple(rig.nodes)
    if asked.word == STAR:
        made = rounds.around(asked.sides[0], every)
    else:
        names = [name for side in asked.sides for name in members(side, rig.groups, rig.nodes)] or every
        made = rounds.ordered(names) if asked.word == MESH else rounds.disjoint(names)
    return tuple(tuple(Pair(*ends) for ends in together) for together in made)


def rounds_mistakes(asked: Rounds, rig: Rig | None) -> Iterator[tuple[Path, str]]:
    """Unknown nodes, a node twice, fewer than two, too many: each with its place below that of the entry."""
    if rig is None:
        return
    seen: set[str] = set()
    wrong = False
    for number, side in enumerate(asked.sides):
        path: Path = (asked.word, number)
        try:
            names = members(side, rig.groups, rig.nodes)
        except FieldError as error:
            names, wrong = (), True
            yield path, f"{asked.word}: {error}."
        unknown = next((name for name in names if name not in rig.nodes), None)
        twice = next((name for name in names if name in seen), None)
        if unknown is not None:
            wrong = True
            hint = suggestion(unknown, [*rig.nodes, *rig.groups])
            yield path, f'{asked.word}: unknown node "{unknown}" in rig {rig.name}.{hint}'
        elif twice is not None:
            wrong = True
            yield path, f"{asked.word}: {twice} is given twice. Name each node once."
        elif asked.word == STAR and len(names) != 1:
            wrong = True
            yield path, f"{STAR}: {side} stands for {len(names)} nodes. Name the one in the middle."
        seen.update(names)
    if not wrong:
        yield from _number_mistakes(asked, len(seen) if asked.sides and asked.word != STAR else len(rig.nodes))


def _number_mistakes(asked: Rounds, nodes: int) -> Iterator[tuple[Path, str]]:
    if nodes < 2:  # a rig has two or more
        yield (asked.word,), f"{asked.word}: only 1 node is named; expected two or more."
    elif asked.word == MESH and nodes * (nodes - 1) > MAX_CELLS:
        what = f"{nodes:,} nodes make {nodes * (nodes - 1):,} tests: at most {MAX_CELLS:,}. Name fewer nodes."
        yield (asked.word,), f"{asked.word}: {what}"


def tests_of(rows: Sequence[Row], sets: Sequence[PairSet]) -> list[tuple[Row, PairSet]]:
    """The tests of a scenario: within each condition, for each set of pairs, the rows of the matrix."""
    together = [list(group) for _, group in groupby(rows, key=lambda row: row["condition"])]
    return [(row, pairs) for group in together for pairs in sets for row in group]

"""Pairs of nodes: the key `pairs` with lists, meshes and stars, and the setting `pairs`, which takes some of a list.

`left -> right` pairs the first node of both groups, then the second, and so on; `left x right` pairs each with each
other.
`mesh`, `mesh-parallel` and `{star: NODE}` make sets of pairs, which are measured one after the other.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

from rigctl.model import rounds
from rigctl.records import Pair
from rigctl.rig.inventory import Rig
from rigctl.rig.ranges import members
from rigctl.scenario.matrix import MAX_CELLS
from rigctl.settings import CONDITION, PairGrid, Settings
from rigctl.settings.shape import MAX_PAIRS
from rigctl.yamlfile import FieldError, Mistake, Path, YamlDocument, describe, did_you_mean, suggestion
from rigctl.yamlfile.fields import show_value

_MESH: Final = "mesh"
_PARALLEL: Final = "mesh-parallel"
_STAR: Final = "star"
_WORDS: Final = (_MESH, _PARALLEL, _STAR)
_MESH_SCHEMAS: Final = (
    {"enum": [_MESH, _PARALLEL]},
    {
        "type": "object",
        "properties": {
            **{word: {"type": ["string", "array"], "items": {"type": "string"}} for word in (_MESH, _PARALLEL)},
            _STAR: {"type": "string"},
        },
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    },
)
_ROUNDS: Final = re.compile(rf"\s*({'|'.join(sorted(_WORDS, key=len, reverse=True))})\s*(?::\s*(\S+)\s*)?", re.ASCII)
_MESH_EXAMPLES: Final = {_MESH: "{mesh: [n1, n2, n3]}", _PARALLEL: "{mesh-parallel: [n1, n2, n3]}", _STAR: "{star: n1}"}

PairSet: TypeAlias = tuple[Pair, ...]  # pairs that are measured at the same time


@dataclass(frozen=True, slots=True)
class Rounds:
    """A mesh or a star (`word`). `sides` are nodes, groups or ranges; empty for all nodes of the rig."""

    word: str
    sides: tuple[str, ...] = ()


def parse_rounds(name: str, value: object) -> Rounds | None:
    """Return the mesh or star that a value describes, or None. Its nodes are not checked. Raise `FieldError`."""
    if isinstance(value, str):
        match = _ROUNDS.fullmatch(value[:200])
        if match is None:
            return None
        if match[1] == _STAR and match[2] is None:
            raise FieldError(f"{name} {show_value(_STAR)}: expected its node, as in {_MESH_EXAMPLES[_STAR]}")
        return Rounds(match[1], () if match[2] is None else (match[2],))
    if not isinstance(value, dict):
        return None
    word, given = next(iter(value.items()), ("", None))
    if word not in _WORDS:
        if hint := did_you_mean(str(word), _WORDS):
            raise FieldError(f"{name}: unknown {show_value(word)}.{hint}")
        return None
    if len(value) != 1:
        raise FieldError(f"{name}: expected one key, as in {_MESH_EXAMPLES[word]}, found {len(value)}")
    sides = given if isinstance(given, list) and word != _STAR else [given]
    names = [side.strip() for side in sides if isinstance(side, str) and side.strip()]
    if len(names) < len(sides) or not sides:
        found = describe(next(side for side in sides if side not in names)) if sides else "an empty list"
        expected = "the name of a node" if word == _STAR else "names of nodes"
        raise FieldError(f"{name}: {word}: expected {expected}, as in {_MESH_EXAMPLES[word]}, found {found}")
    return Rounds(word, tuple(names))


def _round_sets(asked: Rounds, rig: Rig) -> tuple[PairSet, ...]:
    """Return the sets of pairs of a valid mesh or star, in the order of their tests."""
    every = tuple(rig.nodes)
    if asked.word == _STAR:
        sets = rounds.around(asked.sides[0], every)
    else:
        names = [name for side in asked.sides for name in members(side, rig.groups, rig.nodes)] or every
        sets = rounds.order_pairs(names) if asked.word == _MESH else rounds.disjoint(names)
    return tuple(tuple(Pair(*ends) for ends in together) for together in sets)


def rounds_mistakes(asked: Rounds, rig: Rig) -> list[tuple[Path, str]]:
    """Return the mistakes of a mesh or star as (path below the entry, message): unknown, repeated or too few nodes."""
    found: list[tuple[Path, str]] = []
    seen: set[str] = set()
    for number, side in enumerate(asked.sides):
        names: Sequence[str] = ()
        what = None
        try:
            names = members(side, rig.groups, rig.nodes)
        except FieldError as error:
            what = f"{error}."
        unknown = next((name for name in names if name not in rig.nodes), None)
        twice = next((name for name in names if name in seen), None)
        if unknown is not None:
            what = f'unknown node "{unknown}" in rig {rig.name}.{suggestion(unknown, [*rig.nodes, *rig.groups])}'
        elif twice is not None:
            what = f"{twice} is given twice. Name each node once."
        elif asked.word == _STAR and len(names) != 1 and what is None:
            what = f"{side} stands for {len(names)} nodes. Name one node, the centre of the star."
        if what is not None:
            found.append(((asked.word, number), f"{asked.word}: {what}"))
        seen.update(names)
    nodes = len(seen) if asked.sides and asked.word != _STAR else len(rig.nodes)
    if not found and nodes < 2:  # a rig has at least two nodes
        found.append(((asked.word,), f"{asked.word}: only 1 node is named; expected two or more."))
    elif not found and asked.word == _MESH and nodes * (nodes - 1) > MAX_CELLS:
        what = f"{nodes:,} nodes make {nodes * (nodes - 1):,} tests (at most {MAX_CELLS:,}). Name fewer nodes."
        found.append(((asked.word,), f"{asked.word}: {what}"))
    return found


def tests_of(rows: Sequence[Settings], sets: Sequence[PairSet]) -> list[tuple[Settings, PairSet]]:
    """Return the tests of a scenario as (row, pairs): by condition, then by set of pairs, then by row."""
    together = [list(group) for _, group in groupby(rows, key=lambda row: row[CONDITION])]
    return [(row, pairs) for group in together for pairs in sets for row in group]


PAIR_SCHEMA: Final = {"anyOf": [{"type": "string", "pattern": r"->|→|\s[x×]\s"}, *_MESH_SCHEMAS]}
_SIDE: Final = r"[A-Za-z0-9][A-Za-z0-9_-]*?(?:\[[^\[\]]*\][A-Za-z0-9_-]*)?"
_ENTRY: Final = re.compile(
    rf"\s*(?P<source>{_SIDE})(?:\s*(?:->|→)\s*|\s+(?P<each>[x×])\s+)(?P<destination>{_SIDE})\s*", re.ASCII
)
_LONGEST: Final = 200
_EXPECTED: Final = "expected SOURCE -> DESTINATION, as in pi1 -> pi2"


@dataclass(frozen=True, slots=True)
class PairEntry:
    """An entry of `pairs`. Source and destination are a node, a group of the rig, or a range of nodes."""

    text: str
    source: str
    destination: str
    each: bool  # True if each source sends to each destination (`x`)


def parse_entry(name: str, value: object) -> PairEntry | Rounds:
    """Return the entry that `pi1 -> pi2`, `mesh` and so on describe. Its nodes are not checked. Raise `FieldError`."""
    asked = parse_rounds(name, value)
    if asked is not None:
        return asked
    if not isinstance(value, str):
        hint = ". A number of pairs is a value of the axis pairs, under matrix" if isinstance(value, int) else ""
        raise FieldError(f"{name}: {_EXPECTED}, found {describe(value)}{hint}")
    match = _ENTRY.fullmatch(value) if len(value) <= _LONGEST else None
    if match is None:
        hint = did_you_mean(value.partition(":")[0].strip(), _WORDS)
        raise FieldError(f"pair {show_value(value)}: {_EXPECTED}{hint and f'.{hint}'}")
    return PairEntry(value.strip(), match["source"], match["destination"], match["each"] is not None)


def is_entry(text: str) -> bool:
    """Tell whether a text is an entry of the key `pairs`, not a value of the setting `pairs`."""
    if _ROUNDS.fullmatch(text[:200]):
        return True
    return re.search(r"->|→|\s[x×]\s", text, re.ASCII) is not None and not re.fullmatch(r"[\s0-9x×]*", text, re.ASCII)


def expand_pairs(entry: PairEntry, rig: Rig) -> list[Pair]:
    """Return the pairs of an entry. Raise `FieldError` for a wrong range, unequal sides or too many pairs."""
    sources, destinations = (members(side, rig.groups, rig.nodes) for side in (entry.source, entry.destination))
    if entry.each:
        if len(sources) * len(destinations) > MAX_PAIRS:
            raise FieldError(f"stands for {len(sources) * len(destinations):,} pairs, at most {MAX_PAIRS:,}")
        every = [Pair(source, other) for source in sources for other in destinations]
        apart = [pair for pair in every if pair.source != pair.destination]
        return apart or every  # `a x a` stays, and is a mistake
    if len(sources) != len(destinations):
        raise FieldError(
            f"{len(sources)} to {len(destinations)} nodes; -> needs the same number on both sides. "
            f"Each to each is {entry.source} x {entry.destination}"
        )
    return [Pair(source, destination) for source, destination in zip(sources, destinations, strict=True)]


def sets_of(entries: Sequence[PairEntry | Rounds], rig: Rig) -> tuple[PairSet, ...]:
    """Return the sets of pairs of valid entries: several sets for a mesh or star, else one."""
    if entries and isinstance(entries[0], Rounds):
        return _round_sets(entries[0], rig)
    return (tuple(pair for entry in entries if isinstance(entry, PairEntry) for pair in expand_pairs(entry, rig)),)


def pairs_at_once(entries: Sequence[PairEntry | Rounds], rig: Rig) -> PairSet:
    """Return all pairs of valid entries, those of a mesh or star at once, as a traffic class has them."""
    return tuple(dict.fromkeys(pair for together in sets_of(entries, rig) for pair in together))


def choose_pairs(pairs: tuple[Pair, ...], choice: int | PairGrid | None) -> tuple[Pair, ...]:
    """Return the pairs of a test: all, the first N, or a grid. Raise `FieldError` if the list is too short."""
    if choice is None:
        return pairs
    if not isinstance(choice, PairGrid):
        if choice > len(pairs):
            raise FieldError(f"expected at most {len(pairs)}, as many as the list of pairs has, not {choice}")
        return pairs[:choice]
    sources = list(dict.fromkeys(pair.source for pair in pairs))
    destinations = list(dict.fromkeys(pair.destination for pair in pairs))
    if choice.sources > len(sources) or choice.destinations > len(destinations):
        raise FieldError(
            f"{choice} is too large; the list of pairs has {len(sources)} sources and {len(destinations)} destinations"
        )
    grid = [
        Pair(source, other) for source in sources[: choice.sources] for other in destinations[: choice.destinations]
    ]
    alone = next((pair.source for pair in grid if pair.source == pair.destination), None)
    if alone is not None:
        raise FieldError(f"{choice} pairs {alone} with itself, because {alone} is both a source and a destination")
    return tuple(grid)


def pair_mistakes(
    document: YamlDocument, entries: Sequence[PairEntry | Rounds], rig: Rig, at: Path = ("pairs",)
) -> Iterator[Mistake]:
    """Yield mistakes in entries: unknown nodes, unequal sides, a node with itself, repeated or too many pairs."""
    seen: set[Pair] = set()
    for index, entry in enumerate(entries):
        if isinstance(entry, Rounds):
            if len(entries) > 1:
                alone = f"{entry.word} makes tests of its own, one after the other. Give no other pairs."
                yield document.mistake((*at, index), f"pairs: {alone}")
            for path, what in rounds_mistakes(entry, rig) if len(entries) == 1 else ():
                yield document.mistake((*at, index, *path), what)
            continue
        try:
            whats = list(_unknown(entry, rig)) or list(_entry_mistakes(entry, rig, seen))
        except FieldError as error:
            whats = [f"{error}."]
        for what in whats:
            yield document.mistake((*at, index), f"pair {show_value(entry.text)}: {what}")
        if len(seen) > MAX_PAIRS:
            yield document.mistake((*at, index), f"pairs: more than {MAX_PAIRS:,} with this one. Name fewer.")
            return


def has_foreign_pairs(entries: Sequence[PairEntry | Rounds], rig: Rig) -> bool:
    """Tell whether an entry names a node that the rig does not have."""
    for entry in entries:
        sides = entry.sides if isinstance(entry, Rounds) else (entry.source, entry.destination)
        with suppress(FieldError):
            if any(name not in rig.nodes for side in sides for name in members(side, rig.groups, rig.nodes)):
                return True
    return False


def pairs_option(nodes: Sequence[str]) -> str:
    """Return the option `--set pairs=…`, as an example, with one or two pairs of these nodes."""
    ends = list(zip(nodes[::2], nodes[1::2], strict=False))[:2]
    return f'--set "pairs={",".join(f"{source}->{destination}" for source, destination in ends)}"'


def _entry_mistakes(entry: PairEntry, rig: Rig, seen: set[Pair]) -> Iterator[str]:
    pairs = expand_pairs(entry, rig)
    several = len(pairs) > 1
    alone = next((pair.source for pair in pairs if pair.source == pair.destination), None)
    twice = next((pair for pair in pairs if pair in seen), None)
    seen.update(pairs)
    if alone is not None:
        what = f"pairs {alone} with itself" if several else "a node with itself"
        yield f"{what}. Name two different nodes."
    if twice is not None:
        yield f"{twice if several else ''} is given twice. For more flows, use the axis parallel.".lstrip()


def _unknown(entry: PairEntry, rig: Rig) -> Iterator[str]:
    for side in dict.fromkeys((entry.source, entry.destination)):
        node = next((name for name in members(side, rig.groups, rig.nodes) if name not in rig.nodes), None)
        if node is not None:
            what = "node or group" if rig.groups and "[" not in side else "node"
            yield f'unknown {what} "{node}" in rig {rig.name}.{suggestion(node, [*rig.nodes, *rig.groups])}'

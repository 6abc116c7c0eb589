"""Values of a rig file replaced on the command line: `--rig-set trunk.rate=10G`."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.base.texts import printable
from rigctl.rig.ranges import expand_names
from rigctl.rig.sections import RigFile
from rigctl.yamlfile import Document, Mistake, suggestion
from rigctl.yamlfile.compose import plain_value
from rigctl.yamlfile.fields import FieldError

OPTION: Final = "--rig-set"
_NAMED: Final = ("nodes", "switches")  # their keys are names that the file gives: an option makes no new ones
_MOST_PARTS: Final = 5
_EXAMPLE: Final = f"{OPTION} trunk.rate=10G"


def overridden(document: Document, sets: Sequence[str]) -> tuple[Document, list[Mistake]]:
    """Return the rig file with each `PATH=VALUE` of `sets` in place, and the mistakes in the paths.

    The values are checked later, with the file. A range in a path stands for all its nodes.
    """
    found: list[Mistake] = []
    for text in sets:
        origin = f"{OPTION} {printable(text)[:200]}"
        path, equals, value = text.partition("=")
        # A dot inside the brackets of a range separates nothing.
        parts = [part.strip() for part in re.split(r"\.(?![^\[]*\])", path)]
        if not equals or not all(parts) or len(parts) > _MOST_PARTS:
            found.append(Mistake(origin, f"expected PATH=VALUE, as in {_EXAMPLE}."))
            continue
        wrong = next(_unknown(document, parts), None)
        if wrong is not None:
            found.append(Mistake(origin, wrong))
            continue
        for name in _names(parts):
            document = document.replaced((parts[0], *name, *parts[2:]), plain_value(parts[-1], value), origin)
    return document, found


def _names(parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    if parts[0] == "nodes" and len(parts) > 1:
        yield from ((name,) for name in expand_names(parts[1]))
    else:
        yield tuple(parts[1:2])


def _unknown(document: Document, parts: Sequence[str]) -> Iterator[str]:
    first = parts[0]
    if first not in RigFile.model_fields:
        yield f'unknown key "{printable(first)[:64]}".{suggestion(first, list(RigFile.model_fields))}'
    if first not in _NAMED:
        return
    if len(parts) < 3:
        yield f"expected a key of one of the {first}, as in {_example(first)}."
        return
    known = document.data.get(first)
    known = list(known) if isinstance(known, dict) else []
    try:
        names = expand_names(parts[1]) if first == "nodes" else [parts[1]]
    except FieldError as error:
        yield f"{error}."
        return
    for name in names:
        if name not in known:
            what = "node" if first == "nodes" else "switch"
            yield f'the rig file has no {what} "{printable(name)[:64]}".{suggestion(name, known)}'


def _example(first: str) -> str:
    return f"{OPTION} nodes.pi1.rate=100M" if first == "nodes" else f"{OPTION} switches.force10.mtu=9216"

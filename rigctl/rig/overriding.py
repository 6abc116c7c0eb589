"""Values of a rig file replaced on the command line: `--rig-set trunk.rate=10G`."""

import re
from collections.abc import Sequence
from typing import Final

from rigctl.base.texts import printable
from rigctl.rig.ranges import expand_names
from rigctl.rig.sections import RigFile
from rigctl.yamlfile import Document, Mistake, suggestion
from rigctl.yamlfile.compose import plain_value
from rigctl.yamlfile.fields import FieldError

OPTION: Final = "--rig-set"
_EXAMPLES: Final = {"nodes": "nodes.pi1.rate=100M", "switches": "switches.force10.mtu=9216"}
"""Their keys are names that the file gives: an option makes no new ones."""
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
        wrong = _unknown(document, parts)
        if wrong is not None:
            found.append(Mistake(origin, wrong))
            continue
        paths = [(parts[0], name, *parts[2:]) for name in _names(parts)] if parts[0] in _EXAMPLES else [tuple(parts)]
        for place in paths:
            document = document.replaced(place, plain_value(parts[-1], value), origin)
    return document, found


def _names(parts: Sequence[str]) -> list[str]:
    """Return the nodes or the switch that a path names. Raise `FieldError` if the range is none."""
    return expand_names(parts[1]) if parts[0] == "nodes" else [parts[1]]


def _unknown(document: Document, parts: Sequence[str]) -> str | None:
    first = parts[0]
    if first not in RigFile.model_fields:
        return f'unknown key "{printable(first)[:64]}".{suggestion(first, list(RigFile.model_fields))}'
    if first not in _EXAMPLES:
        return None
    if len(parts) < 3:
        return f"expected a key of one of the {first}, as in {OPTION} {_EXAMPLES[first]}."
    known = document.data.get(first)
    known = list(known) if isinstance(known, dict) else []
    try:
        name = next((name for name in _names(parts) if name not in known), None)
    except FieldError as error:
        return f"{error}."
    what = "node" if first == "nodes" else "switch"
    return name and f'the rig file has no {what} "{printable(name)[:64]}".{suggestion(name, known)}'

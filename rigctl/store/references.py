"""How a run is named on the command line: its id, the beginning of its id, or `latest~N`."""

import re
from collections.abc import Sequence
from typing import Final

from rigctl.base.errors import InputError

_LATEST: Final = re.compile(r"latest(?:~([0-9]{1,6}))?", re.ASCII)
_MOST_NAMED: Final = 5
"""Runs in the message about an ambiguous beginning."""


def runs_back(reference: str) -> int | None:
    """Return N of `latest~N`, 0 of `latest`, and None of any other reference."""
    match = _LATEST.fullmatch(reference)
    return None if match is None else int(match[1] or 0)


def counted_back(reference: str, back: int, ids: Sequence[str], place: str) -> str:
    """Return the id that is `back` before the last of `ids`, the earliest first. Raises `InputError`."""
    if back < len(ids):
        return ids[-1 - back]
    if not ids:
        raise InputError(f"store {place} has no runs yet. Start one with `rigctl run`")
    runs = "1 run" if len(ids) == 1 else f"{len(ids)} runs"
    raise InputError(f"{reference}: the store has {runs}. `rigctl runs` lists them")


def only_one(reference: str, found: Sequence[str], place: str) -> str:
    """Return the id that `reference` names, of those that begin with it, the latest first. Raises `InputError`."""
    if reference in found:
        return reference
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f'no run "{reference}" in store {place}. `rigctl runs` lists them')
    others = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    named = ", ".join(found[:_MOST_NAMED])
    raise InputError(f'run "{reference}" is not unique: {named}{others}, the latest first. Give more characters of it')

"""Clauses of the rules (`rigctl.limits.rules`): each is true or false, or unknown if one of its fields is None.

Evidence that a clause reads beside its `fields` may be unknown: it then neither proves nor refutes the clause.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TypeAlias

from rigctl.limits.ceilings import reaches

KnownEvidence: TypeAlias = SimpleNamespace
"""Evidence as clauses read it: without type hints, because no field that a clause needs is None."""
_Check: TypeAlias = Callable[[KnownEvidence], bool]


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a rule's condition. It is unknown if one of `fields` (of `Evidence`) is None."""

    fields: tuple[str, ...]
    check: _Check


def needing(*fields: str) -> Callable[[_Check], Clause]:
    """Return a decorator that makes a function a clause which needs these fields."""
    return lambda check: Clause(fields, check)


def known(*fields: str) -> Clause:
    """Return a clause that holds if these fields are known."""
    return Clause(fields, lambda _: True)


def at_least(field: str, bound: float) -> Clause:
    return Clause((field,), lambda seen: bool(getattr(seen, field) >= bound))


def at_most(field: str, bound: float) -> Clause:
    return Clause((field,), lambda seen: bool(getattr(seen, field) <= bound))


def above(field: str, bound: float) -> Clause:
    return Clause((field,), lambda seen: bool(getattr(seen, field) > bound))


def below(field: str, bound: float) -> Clause:
    return Clause((field,), lambda seen: bool(getattr(seen, field) < bound))


def is_set(field: str) -> Clause:
    return Clause((field,), lambda seen: bool(getattr(seen, field)))


def reaching(field: str, share: float) -> Clause:
    """Return a clause that holds if a share of a ceiling or a link is at least `share`, both rounded as in print."""
    return Clause((field,), lambda seen: reaches(getattr(seen, field), share))

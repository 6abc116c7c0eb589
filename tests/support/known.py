"""Narrows an optional value for the type checker."""

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return `value`; fail if it is None."""
    assert value is not None
    return value

"""A host fact: one command and one parser."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """`command` may use $IF, the data interface (empty where there is none). `tool`: without it the fact is unknown.

    `file`: the command only reads this; $NET is the data interface's folder, $HARDWARE too, of hardware only.
    """

    command: str
    parse: Callable[[str], Any]
    tool: str | None = None
    file: str | None = None


def read(file: str, parse: Callable[[str], Any]) -> Fact:
    """A fact that is in a file, or in several if `file` is a pattern; each of one line or more, without blank ones."""
    return Fact(f"cat {file}", parse, file=file)

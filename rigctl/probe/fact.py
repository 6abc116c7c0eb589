"""A host fact: one command and one parser."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """`command` may use $IF, the data interface (empty where there is none). `tool`: without it the fact is unknown."""

    command: str
    parse: Callable[[str], Any]
    tool: str | None = None

"""Reads parameters of tests from a file: `cases/NAME.txt` for the tests in `test_NAME.py` that are marked `from_file`.

A section begins with `[test_name] parameters`. Each further line is a case: Python literals separated by commas. `#`
begins a comment.
"""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


def from_file(test: Test) -> Test:
    names, rows = _sections(test.__code__.co_filename)[test.__name__]
    marked: Test = pytest.mark.parametrize(names, rows)(test)
    return marked


def rows_of(*tests: Callable[..., Any]) -> list[Any]:
    """Return the cases of these tests, which are marked `from_file`."""
    return [row for test in tests for row in _sections(test.__code__.co_filename)[test.__name__][1]]


@cache
def _sections(module: str) -> dict[str, tuple[str, list[Any]]]:
    path = Path(module)
    file = path.parent / "cases" / f"{path.stem.removeprefix('test_')}.txt"
    found: dict[str, tuple[str, list[Any]]] = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.startswith("[test_"):
            name, _, names = line[1:].partition("] ")
            assert name not in found, f"{file}:{number}"
            found[name] = (names, [])
            several = "," in names
        elif line.strip() and not line.startswith("#"):
            found[name][1].append(ast.literal_eval(f"({line}\n)" if several else line))
    return found

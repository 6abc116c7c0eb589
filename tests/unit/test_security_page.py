"""docs/security.md promises nothing without a test: the names in its tables are those of tests that exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_named_test_exists(file: str, name: str) -> None:
    assert re.search(rf"^\s*(async )?def {name}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_promise_names_its_test() -> None:
    tables = re.findall(r"^\| promise \| test \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 25
    assert [row for row in rows if "::test_" not in row] == []


def test_every_dependency_has_a_version_that_was_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        _plain(line.partition("==")[0])
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    }
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = {_plain(re.split(r"[\[<>=!~; ]", text)[0]) for group in groups for text in group}
    assert wanted - pinned == {"rigctl"}  # `dev` names the extras of rigctl itself


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()

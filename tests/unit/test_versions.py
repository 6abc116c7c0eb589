"""Agreement of several places on versions, kinds of tests, and docs/security.md with the tests that it names."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from rigctl import __version__
from rigctl.protocol.lines import VERSION
from rigctl.records import Cell, Pair
from rigctl.report import bursts, connections, multicast, requests
from rigctl.report.sections import datagrams, messages, streams
from rigctl.results.kept import RESULTS_VERSION
from rigctl.settings import SETTINGS
from rigctl.settings.kinds import KINDS, Kind
from rigctl.store.schema import SCHEMA_VERSION

ROOT = Path(__file__).parents[2]


def test_the_package_has_the_version_of_the_source() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    hatch = project["tool"]["hatch"]["version"]
    found = re.search(hatch["pattern"], (ROOT / hatch["path"]).read_text(), re.MULTILINE)
    assert found
    assert found["version"] == __version__ == importlib.metadata.version("rigctl")
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("path", ["README.md", "examples", "docs/reference/agent-protocol.md", "docs/how-to"])
def test_what_is_shown_is_of_this_version(path: str) -> None:
    files = [each for each in (ROOT / path, *(ROOT / path).rglob("*")) if each.is_file()]
    named = {
        found
        for each in files
        for found in re.findall(r"(?:rigctl-|rigctl-agent |\"agent\":\")(\d+\.\d+\.\d+)", each.read_text())
    }
    assert named <= {__version__}


def test_the_page_on_versions_has_the_present_ones() -> None:
    page = (ROOT / "docs" / "reference" / "versions.md").read_text()
    rows = dict(re.findall(r"^\| (\w+)[^|]* \| (\d[\d.]*)[^|]* \|", page, re.MULTILINE))
    shown = {"rigctl": __version__, "store": SCHEMA_VERSION, "agent": VERSION, "kept": RESULTS_VERSION}
    assert {name: rows[name] for name in shown} == {name: str(version) for name, version in shown.items()}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_known_to_its_cell_the_agent_the_report_and_its_settings(kind: Kind) -> None:
    cell = Cell(1, kind.name, (Pair("a", "b"),), 10.0, 0.0, 1, message_bytes=64)
    assert (cell.kind, cell.in_messages) == (kind, kind.counts == "messages")
    source = "".join(path.read_text() for path in (ROOT / "agents").glob("*.c"))
    assert kind.order is None or re.search(f'"{kind.order}"', source)
    assert kind.section in (
        streams.SECTION,
        datagrams.SECTION,
        messages.TIMES,
        messages.FILES,
        connections.SECTION,
        requests.SECTION,
        multicast.SECTION,
        bursts.SECTION,
    )
    assert all(setting.takes(kind) for setting in SETTINGS.values() if kind in setting.needed_by)


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

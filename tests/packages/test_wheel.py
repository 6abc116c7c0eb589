"""The wheel, unpacked: what a user without a checkout gets."""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import jsonschema
import pytest
import yaml
from packaged import output_of

from rigctl.remote.build import TARGETS

pytestmark = pytest.mark.packages


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with rigctl as the wheel has it, and nothing of the checkout."""
    assert wheel.name.endswith("-py3-none-any.whl")
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def rigctl(installed: Path, cwd: Path, *words: str) -> str:
    # -I -S would also lose the libraries; so the wheel goes first on the path, and the test sees that it was taken.
    code = f"import sys; sys.path.insert(0, {str(installed)!r})\n"
    code += f"import rigctl; assert {str(installed)!r} in rigctl.__file__\n"
    code += "from rigctl.cli.app import exit_code; sys.exit(exit_code(sys.argv[1:]))"
    return output_of(sys.executable, "-P", "-c", code, *words, cwd=cwd)


def test_an_installed_rigctl_plans_a_bundled_scenario_from_anywhere(installed: Path, tmp_path: Path) -> None:
    assert "941.5" in rigctl(installed, tmp_path, "plan", "gigablox")


def test_an_installed_rigctl_carries_all_agents(installed: Path, tmp_path: Path) -> None:
    assert [line.split()[0] for line in rigctl(installed, tmp_path, "agent", "list").splitlines()] == list(TARGETS)


def test_a_new_scenario_names_the_schema_that_came_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    rigctl(installed, tmp_path, "init", "gigablox")
    first = (tmp_path / "gigablox.yaml").read_text().splitlines()[0]
    named = Path(first.removeprefix("# yaml-language-server: $schema="))
    assert named.is_relative_to(installed.resolve())
    schema = json.loads(named.read_text())
    text = (tmp_path / "gigablox.yaml").read_text()
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(yaml.safe_load(text))) == []
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(yaml.safe_load(f"{text}titel: x\n")))


def test_everything_bundled_is_a_real_file(installed: Path) -> None:
    bundled = installed / "rigctl" / "bundled"
    files = [path for path in bundled.rglob("*") if path.is_file()]
    names = {"gigablox.yaml", "loopback.yaml", "report.html.j2", "report.css", "rig.schema.json"}
    assert names <= {path.name for path in files}
    assert not any(path.is_symlink() for path in bundled.rglob("*"))
    assert not list(installed.glob("*/tests"))


def test_its_bill_of_materials_has_each_agent_by_its_sum_and_what_is_linked_into_it(installed: Path) -> None:
    (path,) = installed.glob("rigctl-*.dist-info/sboms/*.json")
    document = json.loads(path.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    listed = {one["name"]: one["hashes"][0]["content"] for one in document["components"] if one["type"] == "file"}
    carried = (installed / "rigctl" / "bundled" / "agents").glob("rigctl-agent-*")
    sums = {agent: hashlib.sha256(agent.read_bytes()).hexdigest() for agent in carried}
    assert listed == {str(agent.relative_to(installed)): digest for agent, digest in sums.items()}
    linked = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    assert (linked["agent-x86_64"], linked["agent-freebsd-x86_64"]) == (["musl"], [])

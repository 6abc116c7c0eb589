"""The wheel: what it holds, that rigctl runs from it, and which machine types have wheels of all that it needs."""

import hashlib
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml
from openssh_lab import Lab, laboratory, named_in_ssh_config
from packaged import CLOSED, ROOT, index, output_of, tags
from shell_blocks import fences

from rigctl.remote.build import TARGETS

pytestmark = [pytest.mark.packages, pytest.mark.timeout(900)]
GLIBC = (17, 24, 26, 27, 28)
PI = (*GLIBC, 31)
"""Raspberry Pi OS since Debian 11."""
FROM_DEBIAN = {
    "numpy": "python3-numpy",
    "pandas": "python3-pandas",
    "pyyaml": "python3-yaml",
    "pynacl": "python3-nacl",
    "cffi": "libffi-dev",
}
"""No wheel for armv7: packages for them, which docs/how-to/install.md names. pip compiles cffi with its own."""


def resolved(wheel: Path, options: list[str], folder: Path) -> dict[str, str]:
    report = folder / "report.json"
    plan = ("install", "--dry-run", "--quiet", "--report", str(report), "--target", str(folder / "t"))
    done = index(*plan, "-c", ROOT / "constraints.txt", *options, wheel)
    assert done.returncode == 0, done.stderr
    found = [each["metadata"] for each in json.loads(report.read_text())["install"]]
    return {each["name"].lower().replace("_", "-"): each["version"] for each in found}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_dependency_has_a_wheel(machine: str, wheel: Path, tmp_path: Path) -> None:
    assert {"rigctl", "numpy", "cryptography"} <= set(resolved(wheel, tags(machine, GLIBC), tmp_path))


def test_on_armv7_debian_has_to_give_five_of_them(wheel: Path, tmp_path: Path) -> None:
    wanted = resolved(wheel, tags("x86_64", GLIBC), tmp_path)
    del wanted["rigctl"]
    options = ("download", "--quiet", "--no-deps", "--dest", str(tmp_path / "wheels"), *tags("armv7l", PI))
    others = [f"{name}=={version}" for name, version in wanted.items() if name not in FROM_DEBIAN]
    done = index(*options, *others)
    assert done.returncode == 0, done.stderr
    assert {name for name in FROM_DEBIAN if index(*options, name).returncode == 0} == set()
    page = (ROOT / "docs" / "how-to" / "install.md").read_text()
    assert [package for package in FROM_DEBIAN.values() if package not in page] == []


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
    assert linked["agent-windows-x86_64"] == ["mingw-w64"]


HOSTS = ("node01", "node02")


def test_a_wheelhouse_installs_with_the_network_closed(wheelhouse: Path, tmp_path: Path) -> None:
    output_of("python3", "-m", "venv", tmp_path / "venv")
    line = (wheelhouse / "INSTALL").read_text().split()
    output_of(*CLOSED, tmp_path / "venv/bin" / line[0], *line[1:], cwd=wheelhouse.parent)
    rigctl = (*CLOSED, tmp_path / "venv/bin/rigctl")
    version = output_of(*rigctl, "--version")
    assert re.fullmatch(r"rigctl \d+\.\d+\.\d+\n", version)
    assert "941.5" in output_of(*rigctl, "plan", "gigablox", cwd=tmp_path)
    assert output_of(*CLOSED, tmp_path / "venv/bin/python", "-m", "rigctl", "--version") == version


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with laboratory(tmp_path, HOSTS, named=True) as made:
        named_in_ssh_config(made, HOSTS)
        yield made


def test_five_commands_of_the_readme_lead_to_the_first_table(lab: Lab, wheel: Path, wheelhouse: Path) -> None:
    (block,) = (each for each in fences() if each.page == "README.md" and "-m venv" in each.text)
    commands = list(block.commands())
    assert len(commands) == 5
    shutil.copy(wheel, lab.folder)
    short = [line.replace("--duration 5s --repeat 4", "--duration 1s --set max_skew=1s") for line in commands]
    assert short != commands
    # The hosts' controller has no internet: pip finds there what the index would give.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    environment |= {"HOME": str(lab.folder), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheelhouse), "COLUMNS": "140"}
    command = lab.inside("ctl", "bash", "-euxc", "\n".join(short))
    printed = output_of(*command, cwd=lab.folder, environment=environment)
    _, _, table = printed.partition("Goodput")
    assert re.findall(r"^ +(\d) ", table, re.MULTILINE) == list("1234567"), printed
    assert (lab.folder / ".local/share/rigctl/rigctl.db").is_file()

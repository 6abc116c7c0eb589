"""The release workflow's commands, in a clone: what they build, and what they would publish."""

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from packaged import ROOT, output_of
from processes import program

from rigctl.base.version import __version__

pytestmark = [pytest.mark.packages, pytest.mark.timeout(1200)]
STEPS = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["release"]["steps"]
COMMANDS = {step["name"]: step["run"] for step in STEPS if "run" in step}


def test_a_tag_that_is_not_the_version_makes_no_release() -> None:
    for tag, code in ((f"v{__version__}", 0), ("v99.0.0", 1), (__version__, 1)):
        line = ["bash", "-e", "-c", COMMANDS["The tag is the version"]]
        done = subprocess.run(line, cwd=ROOT, env=os.environ | {"GITHUB_REF_NAME": tag}, timeout=60, check=False)
        assert done.returncode == code, tag


def test_the_packages_are_tested_before_they_are_built_and_published() -> None:
    tests = ["Test the agents of other machines", "Test the packages"]
    assert list(COMMANDS) == ["The tag is the version", *tests, "Build", "Publish"]
    assert COMMANDS["Test the packages"].endswith("make packages")


def test_a_release_has_wheel_wheelhouses_agents_parts_list_sums_and_notes(tmp_path: Path) -> None:
    clone, published = tmp_path / "clone", tmp_path / "published"
    output_of("git", "clone", "--quiet", ROOT, clone)
    publish = program(tmp_path / "bin" / "gh", 'printf "%s\\0" "$@" >"$PUBLISHED"')
    path = f"{publish.parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "GITHUB_REF_NAME": f"v{__version__}", "PUBLISHED": str(published)}
    for step in ("Build", "Publish"):
        output_of("bash", "-e", "-c", COMMANDS[step], cwd=clone, environment=environment)

    words = published.read_text().split("\0")
    assert words[:3] == ["release", "create", f"v{__version__}"]
    notes = (clone / words[words.index("--notes-file") + 1]).read_text()
    assert notes.strip()
    assert notes in (ROOT / "CHANGELOG.md").read_text()

    files = {Path(word).name for word in words if word.startswith("dist/")}
    agents = {each.name for each in (ROOT / "rigctl/bundled/agents").glob("rigctl-agent-*")}
    houses = {f"rigctl-{__version__}-wheelhouse-{machine}.tar" for machine in ("x86_64", "aarch64")}
    (parts,) = (name for name in files if name.endswith(".json"))
    assert files == {f"rigctl-{__version__}-py3-none-any.whl", "SHA256SUMS", parts} | agents | houses
    assert json.loads((clone / "dist" / parts).read_text())["bomFormat"] == "CycloneDX"
    summed = output_of("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=clone / "dist")
    assert {line.partition(":")[0] for line in summed.splitlines()} == files - {"SHA256SUMS"}
    for machine in ("x86_64", "aarch64"):
        with tarfile.open(clone / "dist" / f"rigctl-{__version__}-wheelhouse-{machine}.tar") as house:
            numpy = [name for name in house.getnames() if "/numpy-" in name]
        assert sorted(name.split("-cp")[1] for name in numpy) == ["311", "312", "313"]
        assert [name for name in numpy if machine not in name] == []

"""Wheels of all dependencies: which machine types have them in the package index, and that rigctl runs from them."""

import json
import sys
from pathlib import Path

import pytest
from packaged import ROOT, index, output_of, tags

from rigctl.virtual.machines.image import downloaded

pytestmark = [pytest.mark.packages, pytest.mark.timeout(900)]
GLIBC = (17, 24, 26, 27, 28)
PI = (*GLIBC, 31)
"""Raspberry Pi OS since Debian 11."""
FROM_DEBIAN = {
    "numpy": "python3-numpy",
    "pandas": "python3-pandas",
    "scipy": "python3-scipy",
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


def test_on_armv7_debian_has_to_give_six_of_them(wheel: Path, tmp_path: Path) -> None:
    wanted = resolved(wheel, tags("x86_64", GLIBC), tmp_path)
    del wanted["rigctl"]
    options = ("download", "--quiet", "--no-deps", "--dest", str(tmp_path / "wheels"), *tags("armv7l", PI))
    others = [f"{name}=={version}" for name, version in wanted.items() if name not in FROM_DEBIAN]
    done = index(*options, *others)
    assert done.returncode == 0, done.stderr
    assert {name for name in FROM_DEBIAN if index(*options, name).returncode == 0} == set()
    page = (ROOT / "docs" / "how-to" / "install.md").read_text()
    assert [package for package in FROM_DEBIAN.values() if package not in page] == []


def test_the_command_line_runs_on_aarch64(wheel: Path, tmp_path: Path) -> None:
    system, site = tmp_path / "system", tmp_path / "site"
    system.mkdir()
    for package in downloaded(tmp_path / "apt", "arm64", ["python3-minimal", "libpython3-stdlib", "libstdc++6"]):
        output_of("dpkg-deb", "--extract", package, system)
    (python,) = system.glob("usr/bin/python3.??")
    options = [*tags("aarch64", GLIBC), "--python-version", python.name.removeprefix("python")]
    done = index("install", "--quiet", "-c", ROOT / "constraints.txt", "--target", site, *options, wheel)
    assert done.returncode == 0, done.stderr
    aarch64 = ("env", f"PYTHONPATH={site}", "qemu-aarch64-static", "-L", system, python)
    assert output_of(*aarch64, "-m", "rigctl", "--version").startswith("rigctl ")
    plan = ("-m", "rigctl", "plan", "gigablox", "--json")
    assert output_of(*aarch64, *plan, cwd=tmp_path) == output_of(sys.executable, *plan, cwd=tmp_path)
    # The libraries with code of their own: statistics, frames, the store, a key for SSH.
    key = "asyncssh.generate_private_key('ssh-ed25519').get_algorithm()"
    code = f"import scipy.stats, pandas, asyncssh, rigctl.store; print({key})"
    assert output_of(*aarch64, "-c", code) == "ssh-ed25519\n"

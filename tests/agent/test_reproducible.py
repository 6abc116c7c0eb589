"""The same sources and compiler give the same agent, to the byte, wherever they lie: its SHA-256 can be checked."""

import hashlib
import shutil
from pathlib import Path

import pytest

from rigctl.remote import build


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("machine", build.TARGETS)
def test_two_folders_give_the_same_agent(machine: str, tmp_path: Path) -> None:
    sums = set()
    for folder in ("here", "another place/far below"):
        copy = tmp_path / folder / "agents"
        shutil.copytree(build.sources(), copy, ignore=shutil.ignore_patterns("dist", "build", "fuzz"))
        build._compile(copy, build.TARGETS[machine], copy / "agent")
        sums.add(hashlib.sha256((copy / "agent").read_bytes()).hexdigest())
    assert len(sums) == 1

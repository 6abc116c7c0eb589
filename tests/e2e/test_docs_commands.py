"""The shell blocks of README and documentation, run as they stand: in turn, in one folder, with one store."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import shell_blocks
from shell_blocks import Fence, shell, shortened, simple_commands
from user import User, ended

RUNNABLE = [fence for fence in shell() if not fence.title]
PAGES = list(dict.fromkeys(fence.page for fence in RUNNABLE))
pytestmark = pytest.mark.timeout(300)


class Reader:
    """Somebody who types what the pages say. A line that stands on several pages is typed once."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.typed: set[str] = set()
        bin_folder = user.folder / "bin"
        bin_folder.mkdir()
        shim = bin_folder / "rigctl"
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(shell_blocks.__file__)} "$@"\n')
        shim.chmod(0o755)
        user.environment["PATH"] = f"{bin_folder}:{user.environment['PATH']}"

    def types(self, line: str) -> None:
        if line in self.typed:
            return
        self.typed.add(line)
        line = re.sub(r"\bRUN\b", self.latest()["run"], line) if re.search(r"\bRUN\b", line) else line
        plain, either, _ = line.partition(" || true")
        (words, *others) = simple_commands(plain)
        if others or words[0] != "rigctl" or re.search(r"[|<>()]", line.replace(" || true", "")):
            command = ["bash", "-euo", "pipefail", "-c", line]
            subprocess.run(command, cwd=self.user.folder, env=self.user.environment, check=True, timeout=60)
            return
        done = self.rigctl(words[1:])
        if words[1] == "run" and done.returncode == 3:  # a busy machine
            assert set(self.latest()["measured"]) <= {"ok", "invalid"}, done
        else:
            assert done.returncode == 0 or (either and done.returncode == 1), f"{line}: {done}"

    def rigctl(self, words: list[str]) -> "subprocess.CompletedProcess[bytes]":
        return ended(shortened(words), self.user.folder, self.user.environment)

    def latest(self) -> dict[str, str]:
        latest: dict[str, str] = json.loads(self.user.rigctl("runs", "--json"))["runs"][-1]
        return latest


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    found = Reader(User(tmp_path_factory.mktemp("reader")))
    for _ in range(2):  # so that each page has runs to show and compare
        found.rigctl(["run", "gigablox"])
    yield found
    assert found.user.processes() == {}


def of_page(page: str) -> list[Fence]:
    return [fence for fence in RUNNABLE if fence.page == page]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, reader: Reader) -> None:
    for fence in of_page(page):
        for line in fence.commands():
            reader.types(line)

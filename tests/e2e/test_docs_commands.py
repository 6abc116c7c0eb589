"""The shell blocks of README and documentation, run as they stand: in one folder, with one store."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from shell_blocks import Fence, shell, shortened
from user import User, ended

RUNNABLE = [fence for fence in shell() if not fence.title]
LINE = re.compile(r"""((?:[^|>'"]|'[^']*'|"[^"]*")*)(\|\||[|>]|)(.*)""")
"""rigctl's own words, a sign of the shell, and what comes behind it."""
PAGES = list(dict.fromkeys(fence.page for fence in RUNNABLE))
pytestmark = pytest.mark.timeout(300)


class Reader:
    """Somebody who types what the pages say. What several lines come to is done once."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.typed: set[tuple[str, ...]] = set()

    def types(self, line: str) -> None:
        """One line: `rigctl …`, maybe with its output to a file or to other programs, as a shell does it."""
        found = LINE.fullmatch(line)
        assert found, line
        own, sign, rest = found.groups()
        if re.search(r"\bRUN\b", own):
            own = re.sub(r"\bRUN\b", self.latest()["run"], own)
        program, *words = shlex.split(own)
        assert program == "rigctl", line
        words = shortened(words)
        if (*words, sign, rest) in self.typed:
            return
        self.typed.add((*words, sign, rest))
        done = self.rigctl(words)
        assert done.returncode in ((0, 1) if sign.startswith("|") else (0,)), f"{line}: {done}"
        if sign in ("|", ">"):
            shell = ["bash", "-euc", f"cat {sign} {rest}"]
            subprocess.run(shell, cwd=self.user.folder, input=done.stdout, check=True, timeout=20)

    def rigctl(self, words: list[str]) -> "subprocess.CompletedProcess[bytes]":
        return ended(words, self.user.folder, self.user.environment)

    def latest(self) -> dict[str, Any]:
        latest: dict[str, Any] = json.loads(self.user.rigctl("runs", "--json"))["runs"][-1]
        return latest


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """With a rig that is up, and two runs, so that each page has something to show and compare."""
    found = Reader(User(tmp_path_factory.mktemp("reader")))
    found.user.rigctl("rig", "up", "gigablox")
    found.types("rigctl run gigablox")
    found.types("rigctl run gigablox --set window=128K")
    yield found
    found.rigctl(["rig", "down", "gigablox"])  # a page may have done so
    assert found.user.processes() == {}


def of_page(page: str) -> list[Fence]:
    return [fence for fence in RUNNABLE if fence.page == page]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, reader: Reader) -> None:
    for fence in of_page(page):
        for line in fence.commands():
            reader.types(line)

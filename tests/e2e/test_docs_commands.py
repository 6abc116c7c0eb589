"""The shell blocks of README and documentation, run as they stand: in one folder, with one store.

Each page begins with the same two runs, whatever page was read before it. The first run of each bundled scenario is
measured on its rig, as are those of pages about rigs; others are replayed. README's way to one's own machines: four
hosts with OpenSSH, whose names no bundled scenario knows.
"""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from openssh_lab import Lab, laboratory, named_in_ssh_config
from processes import DEADLINE_S
from replay import SCRIPT
from shell_blocks import fences, shell, shortened
from user import User, ended

from rigctl.scenario.load import find_scenarios

RUNNABLE = [fence for fence in shell() if not fence.title]
LINE = re.compile(r"""((?:[^|>'"]|'[^']*'|"[^"]*")*)(\|\||[|>]|)(.*)""")
"""rigctl's own words, a sign of the shell, and what comes behind it."""
PAGES = list(dict.fromkeys(fence.page for fence in RUNNABLE))
SAMPLES: Final = Path(__file__).parents[2] / "reports" / "samples"
ABOUT_RIGS: Final = ("docs/tutorial.md", "docs/reference/virtual-rig.md")


class Reader:
    """Somebody who types what the pages say. What several lines of a page come to is done once."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.typed: set[tuple[str, ...]] = set()
        self.unmeasured = set(find_scenarios())
        user.replays()

    def opens(self, page: str) -> None:
        """Begin a page: with a store of its own, in which are the runs that were there before the first page."""
        store = self.user.folder / f"{page.replace('/', '-')}.db"
        shutil.copy(self.user.folder / "store.db", store)
        self.user.environment["RIGCTL_STORE"] = str(store)
        self.typed.clear()

    def types(self, line: str, *, measured: bool = False) -> None:
        """Do one line: `rigctl …`, maybe with its output to a file or to other programs, as a shell does it."""
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
        done = self.rigctl(words, measured=measured or self.is_first(words))
        assert done.returncode in ((0, 1) if sign.startswith("|") else (0,)), f"{line}: {done}"
        if sign in ("|", ">"):
            shell = ["bash", "-euc", f"cat {sign} {rest}"]
            subprocess.run(shell, cwd=self.user.folder, input=done.stdout, check=True, timeout=DEADLINE_S)

    def is_first(self, words: list[str]) -> bool:
        first = words[0] == "run" and words[1] in self.unmeasured
        self.unmeasured -= {words[1]} if first else set()
        return first

    def rigctl(self, words: list[str], *, measured: bool = False) -> "subprocess.CompletedProcess[bytes]":
        environment = dict(self.user.environment)
        if measured:
            del environment[SCRIPT]
        return ended(words, self.user.folder, environment)

    def latest(self) -> dict[str, Any]:
        latest: dict[str, Any] = json.loads(self.user.rigctl("runs", "--json"))["runs"][-1]
        return latest


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """With a rig that is up, and two runs of the same tests, so that each page has something to show and compare."""
    found = Reader(User(tmp_path_factory.mktemp("reader")))
    found.user.rigctl("rig", "up", "gigablox")
    found.types("rigctl run gigablox")
    found.types("rigctl run gigablox --tag again=1")
    yield found
    found.rigctl(["rig", "down", "gigablox"])  # a page may have done so
    assert found.user.processes() == {}


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*-check.txt")), ids=lambda path: path.stem)
def test_a_check_says_what_its_sample_says_but_for_the_round_trip(sample: Path, reader: Reader) -> None:
    said = reader.rigctl(["check", sample.stem.removesuffix("-check")]).stdout.decode()
    told, known = _claims(said), _claims(sample.read_text())
    assert set(known) == {claim for claim, timed in told.items() if claim in known or not timed}
    assert _nodes(said) == _nodes(sample.read_text())
    assert "traffic can start" in " ".join(said.split())


def _claims(text: str) -> dict[str, bool]:
    """Map each finding to whether a measured round trip decides if it is there, or which sentence tells it."""
    blocks = re.split(r"^(?=error|warning|note)", text, flags=re.MULTILINE)[1:]
    sentences = [" ".join(block.partition("\n    ")[0].split()) for block in blocks]
    own_clause = re.compile(r": at a round trip of .*|, on another node to .*")
    return {own_clause.sub("", sentence): bool(own_clause.search(sentence)) for sentence in sentences}


def _nodes(text: str) -> list[list[str]]:
    """Return the name, interface, link and MTU of each node: what the table tells before it tells what was measured."""
    return [line.split()[:4] for line in text.splitlines() if re.match(r"\S+ +\S+ +up ", line)]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, reader: Reader) -> None:
    reader.opens(page)
    for line in (line for fence in RUNNABLE if fence.page == page for line in fence.commands()):
        reader.types(line, measured=page in ABOUT_RIGS)


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Hosts that the user's ~/.ssh/config names, as `ssh node01` would reach them."""
    with laboratory(tmp_path, request.param, named=True) as made:
        named_in_ssh_config(made, request.param)
        yield made


@pytest.mark.parametrize(
    ("page", "lab", "pairs"),
    [
        ("README.md", ("node01", "node02", "node03", "node04"), {"node01 → node02"}),
        ("docs/how-to/small-switches.md", ("pi1", "pi2", "pi3", "pi4"), {"pi1 → pi2", "pi3 → pi4"}),
    ],
    indirect=["lab"],
)
def test_a_guide_measures_the_hosts_of_its_reader(lab: Lab, page: str, pairs: set[str]) -> None:
    offered = ""
    own = [fence for fence in fences() if (fence.page, fence.title) == (page, "on your own rig")]
    for words in (shlex.split(line)[1:] for fence in own for line in fence.commands() if line.startswith("rigctl ")):
        said = lab.rigctl(*shortened(words[: words.index(">")] if ">" in words else words))
        if words[:2] == ["rig", "init"]:
            offered = next(line for line in said.splitlines() if line.startswith("  rigctl run "))
    (run,) = json.loads(lab.rigctl("runs", "--json"))["runs"]
    assert (run["rig"], run["tests"]) == ("mylab", 1)
    rows = json.loads(lab.rigctl("export", "--format", "json"))
    assert {f"{row['source']} → {row['destination']}" for row in rows} == pairs
    assert "virtual rig" not in lab.rigctl("show")
    assert len(json.loads(lab.rigctl("plan", *shlex.split(offered)[2:], "--json"))["tests"]) == 7

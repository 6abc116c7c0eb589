"""The shell blocks of README and documentation: their command lines, and whether tests can run them.

Tests run a block without title. A title says what the block needs that tests lack, such as `on your own rig`.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TITLES = ("on your own rig", "with your own runs", "in a checkout", "as measured")
_COMMAND = re.compile(r"""(?:'[^']*'|"[^"]*"|[^'"#]|(?<=\S)#)*""")
"""Matches a command line without comment: up to a `#` that begins a word outside of quotes."""
_FENCE = re.compile(r'^```(\S*)(?: title="([^"]*)")?(.*)$')


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced code block of a page. `line` is the number of its first line of text."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[str]:
        """Yield the block's command lines without comments; lines joined by a backslash count as one."""
        for line in re.sub(r"\\\n\s*", " ", self.text).splitlines():
            if command := _COMMAND.match(line)[0].strip():  # type: ignore[index]
                yield command


def pages() -> list[Path]:
    named = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return [*named, *sorted((ROOT / "docs").rglob("*.md"))]


def fences() -> Iterator[Fence]:
    """Yield all fenced code blocks of all pages, in order."""
    for path in pages():
        name, opened, text = str(path.relative_to(ROOT)), None, list[str]()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = _FENCE.match(line)
            if opened is None and found:
                opened, text = (number + 1, found[1], found[2] or ""), []
            elif found:
                assert opened is not None
                yield Fence(name, *opened, "\n".join(text))
                opened = None
            elif opened is not None:
                text.append(line)
        assert opened is None, f"{name}: a block has no end"


def shell() -> list[Fence]:
    return [fence for fence in fences() if fence.language == "sh"]


def simple_commands(line: str) -> list[list[str]]:
    """Return the words of each command of a line with pipes and lists, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if set(word) <= set("|&;()"):
            found.append([])
        elif set(word) <= set("<>"):
            skip = True
        elif skip:
            skip = False
        elif found[-1] or word != "exec":
            found[-1].append(word)
    return [words for words in found if words]


SHORTER = {
    "gigablox": ("window=64K", "mss=default", "parallel=1"),
    "das2-quick": ("window_total=32K", "parallel=1", "pairs=2", "condition=no resize 1500"),
    "nettest-pingpong": ("size=1", "iterations=10", "retest=variation > 99%"),
    "nettest-pingpong-100k": ("size=1", "iterations=10", "retest=variation > 99%"),
    "nettest-blast": ("size=1K", "iterations=10"),
    "udp": ("size=1472", "rate=100M"),
    "stratus": ("window=32K", "bins=10ms"),
    "stratus-udp": ("size=1", "rate=1M"),
    "stratus-put": ("size=100K", "read=memory", "write=memory"),
    "10gbe-flows": ("parallel=1",),
    "10gbe-mesh": ("pairs=star: bsd",),
    "10gbe-mesh-mended": ("pairs=star: bsd",),
    "head-of-line": (),
    "incast": ("pairs=2",),
    "interference": (),
    "switch-second": ("size=1472", "iterations=10"),
    "port-buffer": ("pairs=1", "size=1472"),
}
"""Settings that reduce a bundled scenario to one or two tests. Files with another name are copies of gigablox."""
_TIMES = ("--duration", "--repeat")


def shortened(words: list[str]) -> list[str]:
    """Return the words of a command; `rigctl run` gets a shorter duration and fewer tests.

    Settings that the command line gives are kept.
    """
    if words[:1] != ["run"]:
        return words
    given = {word.partition("=")[0] for word in words}
    scenario = Path(words[1]).stem
    sets = [each for each in SHORTER.get(scenario, SHORTER["gigablox"]) if each.partition("=")[0] not in given]
    whole = "engine=agent,iperf3" in words  # iperf3 takes whole seconds; one flow has no start skew
    sets += ["omit=0s", "pairs=pi1 -> pi2" if whole else "max_skew=1s"]
    repeat = "4" if "--against" in words else "2" if scenario.startswith("nettest-pingpong") else "1"
    kept = [word for at, word in enumerate(words) if word not in _TIMES and words[at - 1] not in _TIMES]
    longest = "10s" if scenario.startswith("nettest") else "1s" if whole else "400ms"  # messages end by iterations
    times = ["--duration", longest, "--repeat", repeat]
    quiet = [] if "--report" in words else ["--no-report"]
    return [*kept, *(word for each in sets for word in ("--set", each)), *times, *quiet]

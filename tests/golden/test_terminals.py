"""Every command that needs no rig fits the usual terminals: no line is longer, no word broken, no sentence twice.

What a command prints is compared with what it prints without a limit of width: no word of that is in two parts.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import commands_page
import pytest
from pages import PLANS, STORED
from rich.cells import cell_len

from rigctl.cli.app import every_command, exit_code

WIDTHS: Final = ((80, False), (80, True), (100, True), (132, False))
"""Widths of terminals and of pipes."""
UNLIMITED: Final = 1000
pytestmark = pytest.mark.usefixtures("once")
HELPS: Final = ["rigctl", *(words for words, _ in commands_page.commands(every_command(), "rigctl"))]
COMMANDS: Final = [
    *(f"plan {name}{every}" for name in PLANS for every in ("", " --all")),
    "plan gigablox --set window=64K,1M --against congestion=bbr --repeat 4",
    "run udp --dry-run",
    *("expect", "init --list", "agent list", "rig status gigablox", "nightly status"),
    "expect --rate 1G,10G,650M --window 8K,64K --rtt 1ms,5ms",
    "runs --store list",
    "runs prune --keep 1d --store list",
    "tag latest --store list",
    *(f"regress{night} --store nights" for night in ("", " 20261112", " 20261115-0230", " 20261118")),
    *(f"compare --store {name}" for name in ("against", "nights", "two")),
    "compare 20261123-101618 20261123-101921 --store list",
    *(f"show --store {name}{every}" for name in STORED for every in ("", " --all")),
]
EXCEPTED: Final = {
    *("export", "import", "report", "publish", "accept", "runs rm"),  # print data, a line or paths
    *("check", "rig up", "rig down", "rig exec", "rig init", "nightly install", "nightly run", "nightly remove"),
    *("display", "agent build"),  # need a terminal of their own, a compiler
}
"""Commands that print no text for people, or need a rig or hosts."""
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_NO_WORDS: Final = re.compile(r"[─━│╭╮╰╯…]+")


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stores: Callable[[str], Path], tmp_path: Path
) -> Callable[..., str]:
    """Return a function that returns what a command prints at a width, in a terminal or not."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(words: list[str], width: int, *, terminal: bool = False) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("FORCE_COLOR", "1" if terminal else "")
        if "--store" in words:
            at = words.index("--store") + 1
            words = [*words[:at], str(stores(words[at])), *words[at + 1 :]]
        capsys.readouterr()
        assert exit_code(words) in (0, 1)
        return capsys.readouterr().out

    return run


def words_of(text: str) -> set[str]:
    return set(_NO_WORDS.sub(" ", _ESCAPES.sub("", text)).split())


def broken(text: str, whole: str) -> list[str]:
    """Return the words of `whole` of which `text` has only two parts."""
    own, every = words_of(text), words_of(whole)
    return [
        word for word in every - own if any(word[:at] in own - every and word[at:] in own for at in range(1, len(word)))
    ]


def fits(words: list[str], printed: Callable[..., str]) -> None:
    whole = printed(words, UNLIMITED)
    assert "\x1b" not in whole, "colours in a pipe"
    sentences = Counter(text for text in re.split(r"(?<=[.!?])\s+|\n", whole) if text.endswith((".", "!", "?")))
    assert [text for text, count in sentences.items() if count > 1 and len(text.split()) > 2] == []
    for width, terminal in WIDTHS:
        text = printed(words, width, terminal=terminal)
        lines = _ESCAPES.sub("", text).splitlines()
        assert [line for line in lines if cell_len(line) > width] == []
        assert broken(text, whole) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_fits_every_terminal(command: str, printed: Callable[..., str]) -> None:
    fits(command.split(), printed)


@pytest.mark.parametrize("command", HELPS)
def test_the_help_of_a_command_fits_every_terminal(command: str, printed: Callable[..., str]) -> None:
    fits([*command.split()[1:], "--help"], printed)


def test_every_command_is_tested_or_has_a_reason_not_to_be() -> None:
    tested = {f"rigctl {' '.join(command.split()[:number])}" for command in COMMANDS for number in (1, 2)}
    assert set(HELPS[1:]) - tested == {f"rigctl {words}" for words in EXCEPTED}

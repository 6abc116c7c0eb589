"""What nobody has tried on FreeBSD and Windows is said in the same words in README, docs and findings."""

import re
from pathlib import Path
from typing import Final

import pytest

from rigctl.findings.nodes import EXPERIMENTAL, PROOF, UNCHECKED

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = {
    "README.md": ("FreeBSD", "Windows"),
    "docs/non-goals.md": ("FreeBSD", "Windows"),
    "docs/how-to/install.md": ("FreeBSD", "Windows"),
    "docs/reference/nodes.md": ("FreeBSD", "Windows"),
    "docs/reference/host-facts.md": ("FreeBSD", "Windows"),
    "docs/reference/ssh.md": ("FreeBSD",),
    "docs/reference/freebsd.md": ("FreeBSD",),
    "docs/reference/windows.md": ("Windows",),
    "docs/reference/agent-protocol.md": ("Windows",),
    "rigctl/hosts/windows.py": ("Windows",),
    "rigctl/hosts/freebsd.py": ("FreeBSD",),
}
OTHER_WORDS: Final = re.compile(
    r"(tried|run) under Wine|\bnever (run|tested|tried) (there|on FreeBSD)|untested on", re.IGNORECASE
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_on_another_system_says_what_was_not_proved_in_the_words_of_the_findings(page: str) -> None:
    text = " ".join((ROOT / page).read_text("utf-8").split())
    assert [system for system in PAGES[page] if PROOF[system] not in text] == []


def test_no_page_says_it_in_other_words_or_calls_a_system_experimental_without_them() -> None:
    wrong = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = " ".join(path.read_text("utf-8").split())
        wrong += [f"{path.name}: {match[0]}" for match in OTHER_WORDS.finditer(text)]
        wrong += [f"{path.name}: {match[0]}" for match in re.finditer(r".{30}\(experimental\)", text)]
    assert wrong == []


@pytest.mark.parametrize("system", PROOF)
def test_findings_of_checks_and_reports_have_the_words(system: str) -> None:
    assert PROOF[system] in EXPERIMENTAL[system].say(nodes="a", retransmits="").text
    assert PROOF[system] in UNCHECKED.say(system=system, proof=PROOF[system], unchecked="x").text

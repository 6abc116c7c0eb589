"""The field's words: what was replaced does not come back in what people see, and prose has lines that can be read."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from seen import SOURCES, parsed

ROOT = Path(__file__).parents[2]
MOST_CHARACTERS = 160
ROOMS = sorted(path.name for path in (ROOT / "rigctl").iterdir() if path.is_dir() or path.suffix == ".py")

RETIRED: Final = {
    "Speed": (r"\bSpeed\b", "Goodput, Total goodput"),
    "Twice": (r"\bTwice\b", "Duplicates"),
    "lost in a row": (r"\b[Ll]ost in a row\b", "Longest loss burst"),
    "Rate of a flow": (r"\bRate of a flow\b", "Offered load per flow"),
    "Asked": (r"\bAsked\b", "Offered"),
    "Arrived": (r"\bArrived\b", "Received"),
    "Carried": (r"\bCarried\b", "Passed"),
    "throughput of RFC 2544": (r"\b[Tt]hroughput of RFC 2544\b", "PDR, with its loss and trial time; NDR at zero loss"),
    "trip_*_us, lost_from": (r"\btrip_\w+_us\b|\blost_from\b", "app_rtt_*_us, app_rtt_bucket_low_us, loss_burst_low"),
    "agent_source_pct": (r"\bagent_source_pct\b", "agent_cpu_source_pct"),
    "AVG": (r"\bAVG\b", "Mean"),
    "lost by the kernel": (r"\b[Ll]ost by the kernel\b", "Dropped by kernel"),
    "sent again": (r"\b[Ss]ent again\b|\bresent\b|\bsent_again\b", "Retransmits, retransmitted"),
    "peer_window": (r"\bpeer_window\b", "advertised window"),
    "what limits, binding": (r"\b[Ww]hat (limits|binds)\b|\b[Bb]inding\b", "bottleneck; limited by …"),
    "window in all": (r"\b[Ww]indows? (of [^.]*)?in all\b", "Total window"),
    "common window": (r"\b[Cc]ommon window\b", "measurement interval"),
    "cell": (r"\b[Cc]ells?\b", "test"),
    "is told": (r"\b(is|are|was|were) told\b", "is reported"),
    "so many": (r"\bso many\b", "n"),
    "say it": (r"\b[Ss]ay it\b", "Print …"),
    "its doing": (r"\b(its|their) doing\b", "may be caused by"),
    "gone mad": (r"\bgone mad\b", "malfunctioning"),
}
"""Words that were replaced: how one is found, and the word that stands there instead."""

FRAGMENTS: Final = frozenset({"What", "Of", "Whether", "Where", "That", "Those", "As", "So"})
"""First words of docstrings that are neither a verb nor a noun."""

ALLOWED: Final = {
    "columns": r"^cell\b|\(level cells\)",  # the name of a column stays
    "messages": r"level cells\b|\bCell, \.\.\.",  # the latter is an annotation
    "helps": r"\bcells\b(?= *[,|\]`])",  # a level of exports, as an option's value
    "pages": r"`[^`]*\bcells?\b[^`]*`|\"cell\"|\(level cells\)|[`\"]peer_window[`\"]",
    # Names in code, and in the agent's protocol.
}
"""By source: where a retired word is a name that stays."""


def found_in(source: str, retired: str) -> list[str]:
    """Where `source` has the retired word, with its text."""
    word, allowed = re.compile(RETIRED[retired][0]), re.compile(ALLOWED.get(source, r"(?!)"))
    return [f"{where}: {text[:160]}" for where, text in read(source) if word.search(allowed.sub("", text))]


@cache
def read(source: str) -> list[tuple[str, str]]:
    return list(SOURCES[source]())


@pytest.mark.parametrize("retired", RETIRED)
@pytest.mark.parametrize("source", SOURCES)
def test_a_retired_word_is_not_seen_any_more(source: str, retired: str) -> None:
    assert found_in(source, retired) == [], f"write: {RETIRED[retired][1]}"


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_has_something_to_read(source: str) -> None:
    assert sum(bool(text.strip()) for _, text in read(source)) >= 2


def prose() -> list[Path]:
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *docs]


def long_lines(path: Path) -> list[str]:
    """Lines of prose that are too long: no table, heading, code, or link that can't be broken."""
    found, code = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code ^= line.startswith("```")
        fixed = code or line.startswith(("|", "#", "    ", "![", "```")) or " " not in line.strip()
        if not fixed and len(line) > MOST_CHARACTERS:
            found.append(f"{path.name}:{number}: {len(line)} characters: {line[:60]} …")
    return found


@pytest.mark.parametrize("path", prose(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_of_prose_is_too_long(path: Path) -> None:
    assert long_lines(path) == []


def docstrings(path: Path) -> list[str]:
    """Return the docstrings of a module, its classes and functions, and those below its constants."""
    bodies = [getattr(node, "body", None) for node in ast.walk(parsed(path))]
    lines = [line for body in bodies if isinstance(body, list) for line in body]
    values = [line.value for line in lines if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)]
    return [value.value.strip() for value in values if isinstance(value.value, str)]


@pytest.mark.parametrize("room", ROOMS)
def test_no_docstring_begins_with_a_fragment(room: str) -> None:
    top = ROOT / "rigctl" / room
    found = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for path in ([top] if top.is_file() else sorted(top.rglob("*.py")))
        for text in docstrings(path)
        if re.split(r"\W", text, maxsplit=1)[0] in FRAGMENTS
    ]
    assert found == [], "begin with a verb, or with the noun of what it is"

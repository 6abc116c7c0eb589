"""Files, modules and sections that documents and comments name exist."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import asyncssh  # noqa: F401 — it asks ldconfig when it is imported, which no unit test may
import pytest
from shell_blocks import ROOT, pages

ROOMS: Final = {path.name.removesuffix(".py") for path in (ROOT / "rigctl").iterdir() if path.name[0].isalpha()}
SOURCES: Final = (
    "rigctl/**/*.py",
    "docs/*.py",
    "reports/*.py",
    "tests/**/*.py",
    "agents/*.[ch]",
    "reports/templates/*",
)
CONFIGURATION: Final = ("pyproject.toml", "constraints.txt", "mkdocs.yml", "hatch_build.py", ".github/workflows/*.yml")
FOLDERS: Final = "rigctl|agents|tests|docs|reports|scenarios|examples"
FILE: Final = re.compile(
    rf"(?<![\w/.:-])((?:{FOLDERS})/[\w./*-]*?\w\.(?:py|c|h|md|toml|css|js|j2|yaml|svg|txt|db))\b(?!\.\w)"
)
FOLDER: Final = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*/)`")
PLACEHOLDER: Final = re.compile(r"(?<![a-z])[A-Z]{4,}(?![a-z])")
"""Stands for any name, as in tests/unit/ROOM/test_NAME.py."""
GONE: Final = re.compile(r"`[^`]+`, which commit [0-9a-f]{7,40} has")
"""A page of measurements may name a program that only an earlier commit has."""
MADE: Final = ("agents/dist/", "agents/build/", "reports/demo")
"""What the build makes, which is not in the repository."""
DOTTED: Final = re.compile(r"`(?:rigctl\.)?(\w+(?:\.\w+)*\.(?!py|yaml|db|log)\w+)(?:\(.*?\))?`")
HEADING: Final = re.compile(r"^#+ (.+?)\s*$", re.MULTILINE)
LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]*)#([^)\s]+)\)")


def documents() -> list[Path]:
    named = [path for pattern in (*SOURCES, *CONFIGURATION) for path in ROOT.glob(pattern)]
    return [*pages(), *(path for path in named if path.is_file() and path != Path(__file__))]


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line with its place, without names of programs of earlier commits."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        yield f"{path.relative_to(ROOT)}:{number}", GONE.sub("", line)


def exists(name: str) -> bool:
    pattern = PLACEHOLDER.sub("*", name)
    return name.startswith(MADE) or (ROOT / name).exists() or ("*" in pattern and any(ROOT.glob(pattern)))


def test_each_file_that_a_document_or_a_comment_names_exists() -> None:
    named = [(place, name) for path in documents() for place, line in lines(path) for name in FILE.findall(line)]
    assert len(named) > 200
    assert [(place, name) for place, name in named if not exists(name)] == []


def test_each_folder_that_a_page_names_exists() -> None:
    named = [(place, name) for path in pages() for place, line in lines(path) for name in FOLDER.findall(line)]
    assert len(named) > 50
    assert [(place, name) for place, name in named if not exists(name)] == []


def test_each_room_in_the_list_of_rooms_begins_at_a_file_that_it_has() -> None:
    page = (ROOT / "docs" / "whats-here.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w/]+/)`.* \| `([\w./]+)` \|$", page, re.MULTILINE)
    assert len(rows) > 20
    places = [((ROOT / folder / file), (ROOT / folder).parent / file) for folder, file in rows]
    assert [str(inside) for inside, beside in places if not (inside.exists() or beside.exists())] == []


def module_has(dotted: str) -> bool:
    """Tell whether rigctl has a module of this name, or a module that defines the last parts of the name."""
    parts = ["rigctl", *dotted.split(".")]
    depth = len(parts)
    while depth > 1 and not _is_module(".".join(parts[:depth])):
        depth -= 1
    found: Any = import_module(".".join(parts[:depth]))
    for part in parts[depth:]:
        fields = getattr(found, "__dataclass_fields__", {}) | getattr(found, "model_fields", {})
        if not hasattr(found, part) and part not in fields:
            return False
        found = getattr(found, part, None)
    return True


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, not a package
        return False


def test_each_module_and_function_that_a_page_or_a_docstring_names_exists() -> None:
    texts = [(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in pages()]
    for path in sorted((ROOT / "rigctl").rglob("*.py")):
        texts.append((str(path.relative_to(ROOT)), ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""))
    named = [(place, name) for place, text in texts for name in DOTTED.findall(text)]
    of_rooms = [(place, name) for place, name in named if name.partition(".")[0] in ROOMS]
    assert len(of_rooms) > 10
    assert [(place, name) for place, name in of_rooms if not module_has(name)] == []


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, and those that it sets itself."""
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    plain = [re.sub(r"[`*]|\{#.*\}|\]\(.*?\)|\[", "", heading) for heading in HEADING.findall(text)]
    made = [re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in plain]
    return frozenset([*made, *re.findall(r'(?:\{#|<a id="|<a name=")([\w-]+)', text)])


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_section_that_a_page_links_to_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    links = [
        (target, anchor) for target, anchor in LINK.findall(text) if target.endswith((".md", "")) and "?" not in target
    ]
    wanted = [((page.parent / target).resolve() if target else page, anchor) for target, anchor in links]
    assert [
        (path.name, anchor) for path, anchor in wanted if path.suffix == ".md" and anchor not in anchors(path)
    ] == []


def test_a_name_that_dangles_is_noticed() -> None:
    assert not exists("rigctl/base/extras.py")
    assert not exists("tests/unit/nowhere/test_NAME.py")
    assert exists("tests/unit/report/test_NAME.py")
    assert not module_has("store.series.unpack")
    assert module_has("store.rows.unpack")
    assert "find-the-place" in anchors(ROOT / "CONTRIBUTING.md")

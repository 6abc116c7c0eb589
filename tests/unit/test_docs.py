import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import columns_page
import commands_page
import pytest
import rooms_picture
import rules_page
import sample_blocks
from shell_blocks import ROOT, TITLES, Fence, fences, pages, shell, simple_commands
from typer.exceptions import TyperException

from rigctl.cli.app import every_command
from rigctl.cli.options import complete_resume

CLI: Any = every_command()
PROGRAMS = (
    "make", "pip", "pipx", "python", "python3", "jq", "createdb", "export", "echo", "pre-commit", "true", "sbatch",
    "salloc", "ip", "tar", "podman", "sudo", ".", "rigctl-env/bin/pip", "rigctl-env/bin/python",
)  # fmt: skip
"""What else stands in shell blocks."""


def parsed(words: list[str]) -> None:
    """Take `rigctl …` apart as the command line does, down to the last command, without running any."""
    command, context, rest = CLI, None, complete_resume(words[1:])
    while True:
        context = command.make_context(command.name or "rigctl", list(rest), parent=context)
        if not hasattr(command, "commands"):
            return
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        _, command, rest = command.resolve_command(context, rest)


@pytest.mark.parametrize("fence", shell(), ids=lambda fence: fence.where)
def test_every_command_line_is_one_that_the_command_line_takes(fence: Fence) -> None:
    for line in fence.commands():
        for words in simple_commands(line):
            if words[0] == "rigctl":
                parsed(words)
            else:
                assert words[0] in PROGRAMS, line


def changed_by_shells(line: str) -> list[str]:
    """Return the words of a command line whose brackets zsh and bash take for a pattern of file names."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", line)
    return [word for word in bare.split() if "[" in word]


@pytest.mark.parametrize("fence", shell(), ids=lambda fence: fence.where)
def test_brackets_are_quoted(fence: Fence) -> None:
    assert [word for line in fence.commands() for word in changed_by_shells(line)] == []


def test_brackets_that_are_not_quoted_are_found() -> None:
    for word in ("node[001-012]", "pi@10.0.0.[1-4,9]:2222", "[fd00::7]:22", "n[1-2],'m[1]'"):
        assert changed_by_shells(f"rigctl rig init {word} -o lab.yaml") != []
    assert changed_by_shells("rigctl rig init 'node[001-012]' \"[fd00::7]:22\" -o lab.yaml") == []


def test_node_exporter_reads_the_file_that_the_page_on_prometheus_writes() -> None:
    lines = [line for fence in shell() for line in fence.text.splitlines() if "node_exporter" in line]
    assert lines
    assert all(re.search(r"-o \S+\.prom\b", line) for line in lines)


def test_a_command_line_that_is_wrong_is_found() -> None:
    for line in ("rigctl run gigablox --durration 5s", "rigctl regres", "rigctl export --level rows", "rigctl run"):
        with pytest.raises(TyperException):
            parsed(line.split())


@pytest.mark.parametrize("fence", [own for own in shell() if own.title == "in a checkout"], ids=lambda own: own.where)
def test_what_is_for_a_checkout_is_there(fence: Fence) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for words in (words for line in fence.commands() for words in simple_commands(line)):
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] == "python" and words[1] != "-m":
            script = (ROOT / words[1]).read_text()
            options = [word.removeprefix("--") for word in words[2:] if word.startswith("--")]
            # Of argparse, or a parameter that typer reads.
            assert [name for name in options if not re.search(rf'"--{name}"|\b{name}: \w', script)] == [], words


def test_every_block_has_a_language_and_a_title_that_is_known() -> None:
    assert [fence.where for fence in fences() if not fence.language] == []
    assert {fence.title for fence in shell()} - {""} <= set(TITLES)


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_a_page_lead_to_files_and_its_samples_are_as_they_are_now(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\((?!\w+:)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    assert "--8<--" not in text  # unreadable outside of a site
    assert text == sample_blocks.with_samples(text), "run: make pages"


def test_no_line_of_prose_is_too_long() -> None:
    """Of no table, heading or code, and with no link that can't be broken."""
    for path in (*pages(), ROOT / "CHANGELOG.md"):
        code = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code ^= line.startswith("```")
            fixed = code or line.startswith(("|", "#", "    ", "![", "```")) or " " not in line.strip()
            assert fixed or len(line) <= 160, f"{path.name}:{number}"


@pytest.mark.parametrize("folder", ["decisions", "measured"])
def test_an_index_names_each_page_of_its_folder(folder: str) -> None:
    index = ROOT / "docs" / folder / "index.md"
    pages = {path.name for path in index.parent.glob("*.md")} - {"index.md"}
    assert set(re.findall(r"\]\(([\w.-]+\.md)\)", index.read_text())) == pages


def test_every_picture_is_one_that_make_samples_makes() -> None:
    made = (ROOT / "reports" / "make_samples.py").read_text()
    named = made.partition("PICTURES")[2].partition(")")[0] + (ROOT / "reports" / "site_sample.py").read_text()
    shown = {name for page in pages() for name in re.findall(r"!\[[^\]]*\]\(\S*?([\w/-]+)\.png\)", page.read_text())}
    names = {shot.rpartition("/")[2] for shot in shown if "/product/" not in shot}  # those are of `report --fragment`
    assert names
    assert {name for name in names if f'"{name}"' not in named and f'"{name}.png"' not in made} == set()
    assert {path.stem for path in (ROOT / "reports" / "samples").glob("*.png")} - names == set()  # each is shown


def test_a_sample_has_its_run_beside_it() -> None:
    """So that tests/golden can compare it with what rigctl prints now."""
    made = (ROOT / "reports" / "make_samples.py").read_text()
    names = set(re.findall(r'^    "([\w-]+)": \(', made.partition("RUNS:")[2].partition("\n}")[0], re.MULTILINE))
    kept = {path.stem for path in (ROOT / "reports" / "samples").glob("*.rigctl")}
    assert len(kept) > 2
    assert kept == names - {"das2-quick-8g", "das2-quick-10g", "das2"}  # 2.5 MB each and more


def test_a_sample_is_shown_whole() -> None:
    shown = [fence for fence in fences() if fence.title.startswith("reports/samples/")]
    assert len(shown) > 2
    for fence in shown:
        assert fence.text.split() == (ROOT / fence.title.split()[0]).read_text().split(), fence.where


def test_a_finding_that_a_page_quotes_is_one_of_a_sample() -> None:
    samples = [" ".join(path.read_text().split()) for path in (ROOT / "reports" / "samples").glob("*.txt")]
    quoted: list[str] = []
    for page in pages():
        prose = re.sub(r"^```.*?^```|`[^`]*`|\*\*", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        quoted += [" ".join(quote.split()) for quote in re.findall(r"\*([A-Z][^*]{40,}\d[^*]*)\*", prose)]
    assert quoted
    assert [quote for quote in quoted if not any(quote in sample for sample in samples)] == []


_PHRASE = re.compile(r"\b[A-Za-z'-]+(?: [a-z'-]+){3,}")


def test_a_message_in_a_page_is_one_that_the_program_has() -> None:
    """Four or more words in a row, the first and the last aside, are in a text of rigctl; others are quoted."""
    written = [fence for fence in fences() if "commands.md" not in fence.where and not fence.title]
    texts = "\n".join(_words_of_the_program())
    quoted = [fence for fence in written if fence.language == "text"]  # commands.md is made from docstrings
    told = [(fence, words) for fence in quoted for words in _PHRASE.findall(re.sub('"[^"]*"', "", fence.text))]
    assert len(told) > 10
    assert [(fence.where, words) for fence, words in told if " ".join(words.split()[1:-1]) not in texts] == []


def _words_of_the_program() -> Iterator[str]:
    for path in (ROOT / "rigctl").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        yield from (str(node.value) for node in nodes if isinstance(node, ast.Constant) and node not in docstrings)
    for path in (ROOT / "agents").glob("*.c"):
        yield path.read_text()


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "explanation").glob("*.md")), ids=lambda path: path.name)
def test_the_worked_numbers_of_an_explanation_are_right(page: Path) -> None:
    text = "\n\n".join(re.findall(r"```pycon\n(.*?)```", page.read_text(), re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    told: list[str] = []
    doctest.DocTestRunner().run(examples, out=told.append)
    assert "".join(told) == ""


@pytest.mark.parametrize(
    ("name", "now"),
    [("columns", columns_page.page), ("commands", commands_page.page), ("limit-rules", rules_page.page)],
)
def test_a_generated_page_is_as_it_would_be_made_now(name: str, now: Any) -> None:
    assert (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8") == now(), "run: make pages"


def test_the_picture_of_the_rooms_is_as_it_would_be_drawn_now() -> None:
    assert (ROOT / "docs" / "assets" / "rooms.svg").read_text("utf-8") == rooms_picture.picture(), "run: make pages"
    table = (ROOT / "docs" / "whats-here.md").read_text("utf-8")
    rooms = {room for row in rooms_picture.layers() for room in row}
    assert {room for room in rooms if not re.search(rf"`rigctl/{room}(/|\.py)`", table)} == set()

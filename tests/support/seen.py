"""What people see of rigctl, collected from where it is written: (where, text), one function per source."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from rigctl.cli.app import every_command
from rigctl.columns import COLUMNS
from rigctl.rig.schema import RigFile
from rigctl.scenario.schema import ScenarioFile
from rigctl.yamlfile.validate import json_schema

ROOT: Final = Path(__file__).parents[2]
_COMMANDS: Final = every_command()  # here: asyncssh starts ldconfig when it is imported, which no unit test may
Seen = Iterator[tuple[str, str]]


def titles() -> Seen:
    """Heads of columns: the texts in the first argument of each `…Column(…)` of the report and the command line."""
    for where, tree in _modules("report", "cli"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and _called(node).endswith(("Column", "add_column")):
                for part in ast.walk(node.args[0]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{where}:{part.lineno}", part.value


def helps() -> Seen:
    """What `--help` says of every command and each of its arguments and options."""
    yield from _helps_of("rigctl", _COMMANDS)


def columns() -> Seen:
    """Names and meanings of exported columns."""
    for column in COLUMNS:
        yield column.name, f"{column.header}: {column.meaning}"


def templates() -> Seen:
    """The page's own texts: templates without what Jinja and HTML make of them."""
    for path in sorted((ROOT / "reports/templates").glob("*.j2")):
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<style.*?</style>|<[^>]*>", " ", path.read_text(), flags=re.S)
        yield path.name, " ".join(text.split())


def schemas() -> Seen:
    """Descriptions in the schemas of scenarios and rigs, which editors show."""
    yield from _described("scenario", json_schema(ScenarioFile))
    yield from _described("rig", json_schema(RigFile))


def messages() -> Seen:
    """Every text in the code that has a space, and is no docstring: sentences, messages, notes, legends."""
    for where, tree in _modules(""):
        documented = {id(docstring) for node in ast.walk(tree) if (docstring := _docstring(node)) is not None}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documented:
                continue
            if " " in node.value.strip():
                yield f"{where}:{node.lineno}", node.value


def pages() -> Seen:
    """README.md and the documentation, line by line; decisions and measured pages keep the words of their day."""
    for path in [ROOT / "README.md", *_pages()]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.name}:{number}", line


def _pages() -> list[Path]:
    docs = ROOT / "docs"
    return sorted(path for path in docs.rglob("*.md") if path.parent.name not in ("decisions", "measured"))


SOURCES: Final[dict[str, Callable[[], Seen]]] = {
    "titles": titles,
    "helps": helps,
    "columns": columns,
    "templates": templates,
    "schemas": schemas,
    "messages": messages,
    "pages": pages,
}


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text())


def _modules(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for path in sorted((ROOT / "rigctl" / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), parsed(path)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _docstring(node: ast.AST) -> ast.Constant | None:
    """The docstring of a module, class or function, or of the assignment before it: a text that stands alone."""
    return node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None


def _helps_of(where: str, command: Any) -> Seen:
    yield where, " ".join(filter(None, (command.help, command.short_help, command.epilog)))
    for parameter in command.params:
        yield f"{where} {parameter.name}", " ".join(filter(None, (getattr(parameter, "help", None), parameter.metavar)))
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps_of(f"{where} {name}", inner)


def _described(where: str, value: object) -> Seen:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "description" and isinstance(inner, str):
                yield where, inner
            yield from _described(f"{where}.{key}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _described(where, inner)

"""docs/reference/commands.md, made from the command line itself: `python docs/commands_page.py` prints it."""

import enum
from collections.abc import Iterator
from html import escape
from textwrap import fill
from typing import Any, Final, TypeAlias

from rigctl.cli.app import every_command
from rigctl.findings.text import escape_markdown

Click: TypeAlias = Any
"""A command or a parameter; typer's own click is not public."""
_HEAD: Final = """# Commands

Generated from the command line by `make pages`; do not edit this page.

What is printed for people goes to standard output, progress and messages to standard error;
[exit codes](results.md#exit-codes). `--install-completion` installs shell completion.
"""
_COMMON: Final = ("debug", "verbose", "log_format", "log_file")


def _shown(param: Click) -> bool:
    return param.param_type_name == "option" and param.name not in _COMMON and not param.hidden


def page() -> str:
    """Return the whole page."""
    root = every_command()
    own = [*(param for param in root.params if param.name in _COMMON)]
    lines = [_HEAD, "## Options of every command", "Before the command's name or after it.", "", *_table(own)]
    for words, command in commands(root, "rigctl"):
        arguments = [param for param in command.params if param.param_type_name == "argument"]
        options = [param for param in command.params if _shown(param)]
        usage = " ".join([words, *map(_metavar, arguments), *(["[OPTIONS]"] if options else [])])
        paragraphs = (command.help or "").split("\n\n")
        told = "\n\n".join(fill(_text(paragraph), 140, break_on_hyphens=False) for paragraph in paragraphs)
        examples = (command.epilog or "").split("\n\n")[1:]
        lines += ["", f"## {words}", told, "", "```text", usage, *examples, "```"]
        if arguments or options:
            lines += ["", *_table([*arguments, *options])]
    return "\n".join(lines) + "\n"


def commands(group: Click, words: str) -> Iterator[tuple[str, Click]]:
    """Every command that can be called, in the order of `--help`, with its words."""
    for name, command in group.commands.items():
        deeper = f"{words} {name}"
        if not hasattr(command, "commands") or command.invoke_without_command:
            yield deeper, command
        if hasattr(command, "commands"):
            yield from commands(command, deeper)


def _table(params: list[Click]) -> list[str]:
    rows = [f"| {_names(param)} | {_meaning(param)} |" for param in params if not param.hidden]
    return ["| option | meaning |", "|:--|:--|", *rows]


def _names(param: Click) -> str:
    if param.param_type_name == "argument":
        return _code(_metavar(param))
    value = f" {'VALUE' if param.metavar is None else param.metavar}".rstrip()
    names = [*sorted(param.opts, key=len, reverse=True), *param.secondary_opts]
    return ", ".join(_code(name + (value if name.startswith("--") else "")) for name in names)


def _meaning(param: Click) -> str:
    default = param.default.value if isinstance(param.default, enum.Enum) else param.default
    shown = [f"Default: `{default}`."] if default not in (None, False, (), 0) and not callable(default) else []
    variable = [f"Also from `{param.envvar}`."] if param.envvar else []
    return " ".join([_text(param.help or ""), *shown, *variable])


def _metavar(param: Click) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _text(text: str) -> str:
    """Help as Markdown: what is a name to the shell is no markup here."""
    return escape_markdown(text).replace("\\`", "`")


def _code(text: str) -> str:
    """Code in a table, in which a bar would end the field."""
    return f"`{text}`" if "|" not in text else f"<code>{escape(text).replace('|', '&#124;')}</code>"


if __name__ == "__main__":
    print(page(), end="")

"""How a host fact is asked for, and the script that reads all facts from a node in one round trip.

A fact is unknown (None) if its tool is missing; this is no error. Because a node's output is not trusted, every regular
expression takes linear time and every number has a limited number of digits. This module is independent of SSH: the
caller passes a function that runs a command.
"""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, TypeVar

Runner: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a shell command on a node and returns its standard output, whatever its exit code."""

MISSING: Final = "missing"
"""Key under which `read_answers` returns the names of missing tools."""
MOST_KEPT: Final = 256
"""Length limit in characters of a text fact; the rest is cut."""
SUDO_LIMIT: Final = "limit=$(command -v timeout >/dev/null && echo timeout 20)"
"""Shell command that sets $limit to `timeout 20`, which limits sudo to 20 s; to nothing if timeout(1) is missing.

While sudo waits for DNS as root, timeout(1) of a user may not end it, so the caller needs a deadline of its own.
"""
_MOST_SAID: Final = 512 * 1024
"""Length limit in characters of a command's output; the rest is ignored."""
_MOST_FILES: Final = 4096
_MOST_DIGITS: Final = 15
_MARK: Final = "@@rigctl "
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Fact:
    """How to read a host fact: a shell command, and a parser of its output. On FreeBSD, `twin` is read.

    A command that several facts share runs once.
    The type and the title of a stored fact are in its record (`rigctl.records.host_facts`).
    """

    command: str  # may use $IF, the data interface (empty if unknown), and $ADDRESS, its address
    parse: Callable[[str], Any]
    tool: str | None = None  # program without which the fact is unknown
    file: str | None = None  # instead of `command`; $NET: /sys/class/net/$IF; $HARDWARE: the same, if $IF is hardware
    twin: "Fact | None" = None  # how to read the fact on FreeBSD; None: unknown there


def given_answer(key: str, text: str) -> str:
    """Return an output for `read_answers` in which the fact `key` has the answer `text`."""
    return f"\n{_MARK}{key}\n{text}\n"


def file_fact(file: str, parse: Callable[[str], Any], twin: Fact | None = None) -> Fact:
    """Return a fact that is read from a file, or from several if `file` is a pattern. Blank lines are left out."""
    return Fact(f"cat {file}", parse, file=file, twin=twin)


def everywhere(fact: Fact) -> Fact:
    """Return a fact that is read in the same way on Linux and FreeBSD."""
    return replace(fact, twin=replace(fact, tool=None))


def find_first(pattern: str, convert: Callable[[str], _T]) -> Callable[[str], _T | None]:
    """Return a parser, which returns the converted first group of the first match of `pattern`, or None."""
    compiled = re.compile(pattern, re.MULTILINE)

    def parse(output: str) -> _T | None:
        match = compiled.search(output)
        return None if match is None else convert(match[1])

    return parse


def take_line(output: str) -> str | None:
    """Return the first line that is not blank, or None."""
    lines = (line.strip(" \0\r\t") for line in output.splitlines())
    return next((line[:MOST_KEPT] for line in lines if line), None)


def take_number(output: str) -> int | None:
    """Return the whole number in the first line; None for other text, and for -1, the kernel's word for unknown."""
    line = take_line(output) or ""
    return int(line) if line.isascii() and line.isdigit() and len(line) <= _MOST_DIGITS else None


_SETUP: Final = """
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin:/usr/local/sbin:/opt/vc/bin; LC_ALL=C; export PATH LC_ALL
if [ "$(uname -s)" = FreeBSD ]; then
  LO=lo0
  is_interface() { ifconfig "$1" >/dev/null 2>&1; }
  by_address() { for name in $(ifconfig -l); do
    ifconfig "$name" | while read -r family held _; do
      case "$family" in inet|inet6) [ "${held%%%*}" = "$1" ] && echo "$name" ;; esac; done; done; }
else
  LO=lo
  is_interface() { [ -e "/sys/class/net/$1" ]; }
  by_address() { ip -o addr 2>/dev/null | while read -r _ name _ held _; do
    [ "${held%%/*}" = "$1" ] && { echo "${name%%@*}"; break; }; done; }
fi
"""
# Set $IF to the interface that has the data address. For a loopback address this is lo, for a host name the interface
# that the SSH connection uses.
_FIND: Final = """
[ -n "$IF" ] || IF=$(by_address "$ADDRESS")
[ -n "$IF" ] || case "$ADDRESS" in 127.*|::1|localhost) IF=$LO ;; *.*.*.*|*:*) ;;
  *) set -- $SSH_CONNECTION; [ -n "$3" ] && IF=$(by_address "$3") ;; esac
is_interface "$IF" || IF=
"""
_FOLDERS: Final = 'NET=/sys/class/net/${IF:--}; HARDWARE=$NET; [ -e "$NET/device" ] || HARDWARE=/sys/class/net/-'


def command_for(facts: Mapping[str, Fact], interface: str | None = None, address: str | None = None) -> str:
    """Return a shell command that reads `facts`. The data interface is `interface`, or the one that has `address`."""
    tools = " ".join(sorted({fact.tool for fact in facts.values() if fact.tool}))
    lines = [f"IF={shlex.quote(interface or '')}; ADDRESS={shlex.quote(address or '')}", _SETUP]
    lines += [_FIND] if address is not None else []
    lines += ["if [ $LO = lo0 ]; then", f"echo; echo '{_MARK}freebsd'", *_questions(_twins(facts))]
    lines += ["else", f"echo; echo '{_MARK}{MISSING}'"]
    lines += [f"for t in {tools}; do command -v $t >/dev/null || echo $t; done", _FOLDERS, *_questions(facts), "fi"]
    return f"sh -c {shlex.quote(chr(10).join(lines))}"


def read_answers(output: str, facts: Mapping[str, Fact]) -> dict[str, Any]:
    """Return the value of each fact by key, from the output of `command_for`. A login banner is skipped."""
    parts = (part.partition("\n") for part in f"\n{output}".split(f"\n{_MARK}")[1:])
    outputs = {key: said for key, _, said in parts}
    known = _twins(facts) if "freebsd" in outputs else facts
    outputs |= _contents(outputs.pop("files", ""), known)
    asked = _askers(known)
    said = {key: outputs.get(key, outputs.get(asked.get(fact.command, key), "")) for key, fact in known.items()}
    values = {key: fact.parse(said[key][:_MOST_SAID]) for key, fact in known.items()}
    return {**dict.fromkeys(facts), **values, MISSING: set(outputs.get(MISSING, "").split())}


async def ask(
    run: Runner, facts: Mapping[str, Fact], interface: str | None = None, address: str | None = None
) -> dict[str, Any]:
    """Read `facts` from a node in one round trip, and return their values by key."""
    output = await run(command_for(facts, interface, address))
    return await asyncio.to_thread(read_answers, output, facts)  # parsing megabytes would block other tasks


async def ask_one(run: Runner, fact: Fact, interface: str | None = None) -> Any:  # noqa: ANN401 — as the parser
    """Read one fact from a node, and return its value."""
    return (await ask(run, {"it": fact}, interface))["it"]


def _twins(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {key: fact.twin for key, fact in facts.items() if fact.twin is not None}


def _questions(facts: Mapping[str, Fact]) -> list[str]:
    files = dict.fromkeys(fact.file for fact in facts.values() if fact.file)
    commands = {key: command for command, key in _askers(facts).items()}
    # One grep reads all files. The shell's `read` would read byte by byte; some files give it only their first byte.
    commands |= {"files": f"grep . /dev/null {' '.join(map(str, files))}"} if files else {}
    return [f"echo; echo '{_MARK}{key}'; {{ {command.strip()}\n}} 2>/dev/null" for key, command in commands.items()]


def _askers(facts: Mapping[str, Fact]) -> dict[str, str]:
    """Return for each command the first fact that needs it, under whose key its output is printed."""
    asked: dict[str, str] = {}
    for key, fact in facts.items():
        if not fact.file:
            asked.setdefault(fact.command, key)
    return asked


def _contents(output: str, facts: Mapping[str, Fact]) -> dict[str, str]:
    """Return the text of each file fact by key, from lines of grep such as `/etc/os-release:ID=debian`."""
    held: dict[str, list[str]] = {}
    for line in output.splitlines():
        path, _, content = line.partition(":")
        if path in held or len(held) < _MOST_FILES:
            held.setdefault(path, []).append(content)
    return {key: _content(fact.file, held) for key, fact in facts.items() if fact.file} if held else {}


def _content(file: str, held: Mapping[str, list[str]]) -> str:
    patterns = [re.sub(r"^\$[A-Z]+/", "/sys/class/net/*/", each) for each in file.split()]
    paths = [path for pattern in patterns for path in held if fnmatchcase(path, pattern)]
    if len(patterns) > 1:  # the parser needs to know which file a line is from
        return "\n".join(f"{path}:{line}" for path in paths for line in held[path])
    return "\n".join(line for path in paths for line in held[path])

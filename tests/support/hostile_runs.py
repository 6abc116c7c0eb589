"""Runs in which every text comes from an attacker: names, facts, reasons, notes, switches, settings."""

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html.parser import HTMLParser
from typing import Any, Final

import builders

from rigctl.records import PortSeries, Repetition, RunInfo

MARKUP: Final = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><!--&lt;script&gt;",
    "[red]x[/red][link=http://evil]y[/link]",
    "![x](javascript:alert(1)) [y](http://evil) `z` ~~w~~ | <b> &#60;b&#62; **v** # h",
    "{{ 7 * 7 }}{% raw %}${x}<svg onload=alert(1)>",
    '"} 1\n# EOF\nevil{a="b"} 1',
    "- one ",
    "1. one ",
    "+ one ",
)
"""What HTML, SVG, Rich, Markdown, a template or OpenMetrics would take for more than a text."""
FORMULAS: Final = ("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0b1")
COMMANDS: Final = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e\u2066\rall is well\x00\ufffe\ud800"
"""To a terminal, and what XML does not take. No agent's and no store's text reaches a record so."""
_KEPT: Final = frozenset(
    {"test", "transport", "engine", "read", "write", "rate", "kind", "virtual", "run", "column", "figure", "started_at"}
)
"""Fields whose texts are keys of tables of ours."""


def poisoned(value: Any, text: str, name: str = "") -> Any:
    """`value`, of the field `name` if any, with `text` before each text in it, keys of mappings of names included."""
    if isinstance(value, Enum) or name in _KEPT:
        return value
    if isinstance(value, str):
        return text + value
    if isinstance(value, tuple | list):
        return type(value)(poisoned(each, text) for each in value)
    if isinstance(value, dict):
        named = name in {"links", "facts"}
        return {(text + key if named else key): poisoned(each, text) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        if type(value).__name__ in {"Series", "Expectation"}:
            return value
        names = [each.name for each in fields(value)]
        return replace(value, **{name: poisoned(getattr(value, name), text, name) for name in names})
    return value


class Elements(HTMLParser):
    """Elements of HTML pages: the number of each element with its attributes, and all addresses (href, src)."""

    def __init__(self, *pages: str) -> None:
        super().__init__()
        self.found: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.addresses: set[str] = set()
        for page in pages:
            self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag, tuple(sorted(name for name, _ in attrs))] += 1
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}


def run(text: str) -> tuple[RunInfo, list[Repetition]]:
    """Return a run of three tests, of which one failed, with switch counters. Every text begins with `text`."""
    cells = [builders.cell(number, parallel=number, duration_s=2.0) for number in (1, 2, 3)]
    plan = builders.plan(cells)
    info = builders.run(plan, facts={name: builders.facts(notes=["x"]) for name in plan.links})
    port = PortSeries("sw", "Gi1", "snmp", {"t_ns": [1, 2_000_000_000], "in_octets": [5, 6], "out_octets": [5, 6]})
    measured = [builders.repetition(cell, [900.0] * len(cell.pairs)) for cell in cells[:2]]
    measured[0] = replace(measured[0], counters=(port,), counters_missing=("sw2: no answer",))
    measured.append(builders.failed(cells[2], "pi4: gone"))
    return poisoned(info, text), [poisoned(each, text) for each in measured]

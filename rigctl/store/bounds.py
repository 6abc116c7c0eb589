"""Check stored values against bounds, because a file or store from somebody else may hold any value.

A run with a value out of bounds is reported as damaged; unchecked, the value could raise an error later or use up the
memory. The `check` functions raise `ValueError`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import JSON

from rigctl.base.units import is_instant
from rigctl.records import Bins, Cell, Facts, Flow, RepetitionHead, Retest, RunPlan, Side, Until
from rigctl.records.host_facts import HOST_FACTS
from rigctl.store.schema import metadata, nights

MOST_STORED: Final = 2**63
_YEAR_S: Final = 366 * 86_400
_YEAR_NS: Final = _YEAR_S * 10**9
_MOST_BUCKET: Final = 4351  # largest number of a histogram bucket, that of 2⁴⁰ - 1 ns (model.latency)
# These bounds are wider than those of scenarios, because a later rigctl may allow more.
_REPEAT: Final = (1, 100_000)
_BOUNDS: Final[Mapping[type, Mapping[str, tuple[float, float]]]] = {
    RunPlan: {
        "repeat": _REPEAT,
        "max_skew_s": (0, _YEAR_S),
        "max_loss": (0, 1),
        "max_latency_s": (0, _YEAR_S),
        "ip_version": (4, 6),
    },
    Retest: {"repeat": _REPEAT},
    Until: {"most": _REPEAT},
    Cell: {
        "number": (0, 1_000_000),
        "duration_s": (0, _YEAR_S),
        "omit_s": (0, _YEAR_S),
        "start_s": (0, _YEAR_S),
        "stop_s": (0, _YEAR_S),
        "parallel": (1, 10_000),
        "bin_us": (1, 3_600_000_000),
        "latency_ms": (1, 3_600_000),
        "message_bytes": (0, 2**50),
    },
    RepetitionHead: {
        "cell": (0, 1_000_000),
        "repetition": (0, 1_000_000),
        "attempt": (0, 1_000),
        "wall_s": (0, _YEAR_S),
        "window_start_ns": (-MOST_STORED, MOST_STORED),
        "window_end_ns": (-MOST_STORED, MOST_STORED),
        "start_skew_us": (0, _YEAR_S * 1e6),
        "clock_error_us": (0, _YEAR_S * 1e6),
        "goodput_median_bps": (0, MOST_STORED),
        "load": (0, MOST_STORED),
    },
    Flow: {"number": (0, 1_000_000), "bytes": (0, MOST_STORED), "retransmits": (0, MOST_STORED)},
    Bins: {"start_ns": (-MOST_STORED, MOST_STORED), "width_us": (1, 3_600_000_000)},
}
_NEGATIVE: Final = re.compile(r'"(?!(?:first|last)_byte_ns")(\w+)"\s*:\s*-')


def json_of(text: str) -> Any:  # noqa: ANN401 — JSON may hold any value; the records validate it
    """Return the value of the JSON in `text`. Raise `ValueError` for invalid JSON, NaN and infinity."""
    return from_json(text, allow_inf_nan=False)


def check_times(**times: float | None) -> None:
    """Raise `ValueError` unless each time is None or a Unix time between 1970 and 2200."""
    for name, at in times.items():
        if at is not None and not is_instant(at):
            raise ValueError(f"{name} is not a time between 1970 and 2200")


def check_bounds(record: object) -> None:
    """Raise `ValueError` if a field of the record is outside its bounds in `_BOUNDS`; None is allowed."""
    known = RepetitionHead if isinstance(record, RepetitionHead) else type(record)
    for name, (least, most) in _BOUNDS[known].items():
        value = getattr(record, name)
        if value is not None and not least <= value <= most:
            raise ValueError(f"{name} is not within {least:g} and {most:g}")


def check_plan(plan: RunPlan) -> None:
    for record in filter(None, (plan, plan.retest, plan.until, *plan.cells)):
        check_bounds(record)
    if len({cell.number for cell in plan.cells}) != len(plan.cells):
        raise ValueError("two tests have the same number")
    for cell in plan.cells:
        if not cell.pairs:
            raise ValueError(f"test {cell.number} has no pairs")


def check_facts(facts: Facts) -> None:
    for name, fact in HOST_FACTS.items():
        value = facts.get(name)
        if value is not None and type(value) is not fact.kind:
            raise ValueError(f"{name} is a {type(value).__name__}, not a {fact.kind.__name__}")
        if type(value) is int and value < 0:
            raise ValueError(f"{name} is below 0")


def check_repetition(repetition: RepetitionHead) -> None:
    check_times(started_at=repetition.started_at)
    check_bounds(repetition)
    if (window_ns := repetition.window_ns) is not None and not 0 < window_ns[1] - window_ns[0] <= _YEAR_NS:
        raise ValueError("the length of the measurement interval is not between 0 s and a year")


def check_side(side: Side, text: str) -> None:
    """Raise `ValueError` if a flow report (`text`: its JSON) has a negative count or an unknown histogram bucket."""
    if "-" in text and (negative := _NEGATIVE.search(text)) is not None:
        raise ValueError(f"{negative[1]} is below 0")
    if any(not 0 <= bucket <= _MOST_BUCKET or count < 0 for bucket, count in side.histogram):
        raise ValueError("a histogram bucket or its count is out of bounds")


def check_columns(columns: Iterable[str], needed: Iterable[str]) -> None:
    """Raise `ValueError` for a series that has columns but lacks a `needed` column."""
    names = set(columns)
    missing = set(needed) - names
    if names and missing:
        raise ValueError(f"a series without {min(missing)}")


# Control characters that are replaced when a store is read, except line ends and tabs of notes and scenario files. The
# last ranges reverse the direction of text or are invalid in XML.
_COMMANDS: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\r(?!\n)"
)
_ESCAPES: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|r\\n|(.))", re.DOTALL)
_JSON_COLUMNS: Final = frozenset(
    column.name for table in metadata.tables.values() for column in table.c if isinstance(column.type, JSON)
) | {nights.c.unmet.name}


def harmless_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return `row` with `?` for each character that could control a terminal, even if JSON escapes it."""
    return {name: _harmless(value, name) if isinstance(value, str) else value for name, value in row.items()}


def _harmless(text: str, column: str) -> str:
    if not (text.isascii() and text.isprintable()):
        text = _COMMANDS.sub("?", text)
    return _ESCAPES.sub(_spelt, text) if column in _JSON_COLUMNS and "\\" in text else text


def _spelt(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    if code is not None:
        character = chr(int(code, 16))
        return "?" if character not in "\t\r\n" and _COMMANDS.match(character) else escape[0]
    return "?" if letter in ("b", "f", "r") else escape[0]

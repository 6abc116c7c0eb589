"""Settings of who sends to whom, and how: pairs, flows, direction, condition and engine."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rigctl.settings.kinds import AGENT, CAPABILITIES, Kind
from rigctl.settings.setting import MEASURED, RANGE_SCHEMA, DataColumn, Setting, as_column, choice
from rigctl.yamlfile.fields import FieldError, parse_choice, parse_text, parse_whole, show_value

_MAX_PARALLEL: Final = 128
MAX_PAIRS: Final = 1000
_GRID: Final = re.compile(r"\s*([0-9]{1,4})\s*[x×]\s*([0-9]{1,4})\s*")
_CONDITION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}", re.ASCII)


class Direction(StrEnum):
    """The direction of a pair's data. The sender of the data opens the connection."""

    FORWARD = "forward"  # data from source to destination
    REVERSE = "reverse"  # data from destination to source
    BOTH = "both"  # both at the same time


@dataclass(frozen=True, slots=True)
class PairGrid:
    """Pairs of N sources, each with M destinations: `3x4`."""

    sources: int
    destinations: int

    def __str__(self) -> str:
        return f"{self.sources}x{self.destinations}"


def parse_condition(name: str, value: object) -> str:
    """Return the name of a condition. Raise `FieldError` if the name is invalid."""
    text = parse_text(name, value, "the name of a condition")
    if not _CONDITION.fullmatch(text):
        raise FieldError(f"{name} {show_value(text)}: expected 1 to 40 letters, digits, blanks and any of . _ + -")
    return text


def _pairs(name: str, value: object) -> int | PairGrid:
    match = _GRID.fullmatch(value) if isinstance(value, str) else None
    if match is not None and int(match[1]) and int(match[2]):
        return PairGrid(int(match[1]), int(match[2]))
    try:
        return parse_whole(name, value, 1, MAX_PAIRS, 4)
    except FieldError as error:
        raise FieldError(f"{error}; or N sources each to M destinations, as in 3x4") from None


CONDITION: Final[Setting[str | None]] = Setting(
    name="condition",
    meaning="Name of a set of host settings under conditions. Default: each set in turn.",
    parse=parse_condition,
    schema={"type": "string", "pattern": f"^{_CONDITION.pattern}$", "examples": ["jumbo"]},
    unset=None,
    type=str,
)


def _refuse_several(flows: int, kind: Kind) -> str | None:
    return "test: multicast sends one stream to its group. Leave parallel out" if kind.multicast and flows > 1 else None


def _refuse_backward(direction: Direction, kind: Kind) -> str | None:
    if not kind.multicast or direction is Direction.FORWARD:
        return None
    return "test: multicast goes from the source to the destinations. Leave direction out"


PARALLEL: Final[Setting[int]] = Setting(
    name="parallel",
    meaning="Flows (TCP connections) per pair and direction, 1 to 128.",
    parse=lambda name, value: parse_whole(name, value, 1, _MAX_PARALLEL, 5),
    text=str,
    schema={"anyOf": [{"type": "integer", "minimum": 1, "maximum": _MAX_PARALLEL}, RANGE_SCHEMA], "examples": [1, 5]},
    unset=1,
    spans="numbers",
    refused=_refuse_several,
    columns=(as_column("parallel", "", "flows per pair and direction"),),
)
PAIRS: Final[Setting[int | PairGrid | None]] = Setting(
    name="pairs",
    meaning="Number of pairs at once: 4 is the first four of the list, 3x4 its first 3 sources, each to its first 4 "
    "destinations. Default: all pairs.",
    parse=_pairs,
    schema={
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {
                "type": "string",
                "pattern": r"^\s*[0-9]+\s*([x×]\s*[0-9]+|\.\.\s*[0-9]+(\s+(step|times)\s+[0-9]+)?)?\s*$",
            },
        ],
        "examples": [4, "3x4"],
    },
    unset=None,
    stored=None,
    spans="numbers",
)
DIRECTION: Final[Setting[Direction]] = choice(
    "direction",
    tuple(Direction),
    meaning="Direction of the data: forward (source to destination), reverse, or both at once.",
    parse=lambda name, value: Direction(parse_choice(name, value, tuple(Direction))),
    schema={"enum": [str(direction) for direction in Direction], "examples": ["forward", "both"]},
    unset=Direction.FORWARD,
    refused=_refuse_backward,
    phrase=lambda direction: "both directions" if direction is Direction.BOTH else "reverse",
)
ENGINE: Final[Setting[str]] = choice(
    "engine",
    tuple(CAPABILITIES),
    meaning="Who makes and measures the traffic: rigctl's agent, or the nodes' own iperf3 (tests tcp and udp).",
    unset=AGENT,
    columns=(
        DataColumn(
            name="engine", unit="", levels=MEASURED, meaning="who made and measured the traffic: agent or iperf3"
        ),
    ),
    phrase=str,
)

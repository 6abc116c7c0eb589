"""Parsers of `show interfaces NAME` of switches: Cisco IOS and Dell OS9.

A parser is strict: it refuses a text without the lines that hold the counters, so that nothing is ever taken for 0.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

_HEAD: Final = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9 ./:-]{0,255}?) is (?:up|down|administratively down|deleted)\b.*"
)
_CLEARED: Final = re.compile(r'Last clearing of "show interface" counters (?P<ago>\S{1,40})')
_CLOCK: Final = re.compile(r"(\d+):(\d\d):(\d\d)")
_LONG: Final = re.compile(r"(\d+)([ywdh])(\d+)([ywdh])")
_SECONDS: Final = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600}
MOST_TEXT: Final = 64 * 1024
"""An answer for one interface takes some 2,000 characters."""
_SLACK_S: Final = 2.0
"""Two readings of one instant differ by the time that an answer took, and by the two clocks' rates."""
# The numbers of a line, and the counters that they are.
_Row: TypeAlias = tuple[str, tuple[str, ...], str]
_CISCO_IOS: Final[tuple[_Row, ...]] = (
    (r"^[ \t]*(\d{1,20}) packets input, (\d{1,20}) bytes", ("in_packets", "in_octets"), "packets input"),
    (r"^[ \t]*(\d{1,20}) packets output, (\d{1,20}) bytes", ("out_packets", "out_octets"), "packets output"),
    (
        r"(?i:Input queue: \d{1,20}/\d{1,20}/(\d{1,20})/\d{1,20} \(size/max/drops/flushes\);"
        r" Total output drops: (\d{1,20})\b)",
        ("in_discards", "out_discards"),
        "the drops of its queues",
    ),
    (r"^[ \t]*(\d{1,20}) input errors", ("in_errors",), "input errors"),
    (r"^[ \t]*(\d{1,20}) output errors", ("out_errors",), "output errors"),
)
_OS9_SECTION: Final = re.compile(r"^(?=\S)", re.MULTILINE)
_OCTETS: Final = r"(?<!\d)(\d{1,20}) packets, (\d{1,20}) bytes"
_OS9_IN: Final[tuple[_Row, ...]] = (
    (_OCTETS, ("in_packets", "in_octets"), "the packets and bytes of the input"),
    (
        r"(?<!\d)(\d{1,20}) CRC, (\d{1,20}) overrun, (\d{1,20}) discarded",
        ("in_errors", "in_errors", "in_discards"),
        "CRC, overrun and discarded of the input",
    ),
    (r"(?<!\d)(\d{1,20}) runts, (\d{1,20}) giants", ("in_errors", "in_errors"), "runts and giants of the input"),
)
_OS9_OUT: Final[tuple[_Row, ...]] = (
    (_OCTETS, ("out_packets", "out_octets"), "the packets and bytes of the output"),
    (r"(?<!\d)(\d{1,20}) discarded, \d{1,20} collisions", ("out_discards",), "discarded of the output"),
    (r"bytes, (\d{1,20}) underruns", ("out_errors",), "underruns of the output"),
)


class UnreadableError(Exception):
    """A text is no answer to `show interfaces`, or has no counters. The message is part of a sentence."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One interface."""

    name: str
    counters: Mapping[str, int]  # columns of PortCounters
    cleared_s_ago: tuple[float, float] | None  # at least and at most (the switch rounds); None: never


def cisco_ios(text: str) -> Shown:
    """Parse the answer of Cisco IOS (Catalyst 6500 and its kin). Raise `UnreadableError`."""
    return Shown(_head(text), _counters(_CISCO_IOS, text), _cleared_s_ago(text))


def dell_os9(text: str) -> Shown:
    """Parse the answer of Dell OS9, formerly Force10's FTOS. Raise `UnreadableError`."""
    name = _head(text)
    sections = dict(part.partition(":")[::2] for part in reversed(_OS9_SECTION.split(text)))
    if not {"Input Statistics", "Output Statistics"} <= sections.keys():
        raise UnreadableError("its answer to show interfaces has no input and output statistics")
    counters = _counters(_OS9_IN, sections["Input Statistics"])
    counters |= _counters(_OS9_OUT, sections["Output Statistics"])
    return Shown(name, counters, _cleared_s_ago(text))


def _head(text: str) -> str:
    if len(text) > MOST_TEXT:
        raise UnreadableError(f"its answer to show interfaces is longer than {MOST_TEXT} characters")
    for line in text.splitlines():
        if (match := _HEAD.match(line.strip())) is not None:
            return match["name"]
    message = next((line.strip() for line in text.splitlines() if line.strip().startswith("%")), "")
    raise UnreadableError(f"it prints {message[:80]!r}" if message else "it reports no such interface")


def _counters(rows: Iterable[_Row], text: str) -> dict[str, int]:
    """Return the counters by name: a name that is given for several numbers is their sum."""
    counters: dict[str, int] = {}
    for pattern, names, what in rows:
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise UnreadableError(f"its answer to show interfaces has no line with {what}")
        for name, number in zip(names, match.groups(), strict=True):
            counters[name] = counters.get(name, 0) + int(number)
    return counters


def _cleared_s_ago(text: str) -> tuple[float, float] | None:
    match = _CLEARED.search(text)
    if match is None:
        raise UnreadableError("its answer to show interfaces lacks the time when counters were cleared")
    if match["ago"] == "never":
        return None
    if (clock := _CLOCK.fullmatch(match["ago"])) is not None:
        hours, minutes, seconds = (int(part) for part in clock.groups())
        ago_s = hours * 3600 + minutes * 60 + seconds
        return ago_s, ago_s + 1
    if (long := _LONG.fullmatch(match["ago"])) is not None:
        ago_s = int(long[1]) * _SECONDS[long[2]] + int(long[3]) * _SECONDS[long[4]]
        return ago_s, ago_s + _SECONDS[long[4]]
    raise UnreadableError(f"its counters were cleared {match['ago'][:20]!r} ago, which is not a time")


class Clearing:
    """Turns "cleared so long ago" of successive answers into a number that changes when counters were cleared.

    Each answer bounds the instant. Bounds that overlap are of the same instant.
    """

    def __init__(self) -> None:
        self._since_s: tuple[float, float] | None = None
        self._never = False
        self._number = 0

    def number(self, now_s: float, ago_s: tuple[float, float] | None) -> int:
        """Return the number for an answer at `now_s`, seconds of a monotonic clock."""
        if ago_s is None:
            self._number += self._since_s is not None  # from some time to never: it was restarted
            self._since_s, self._never = None, True
            return self._number
        since = (now_s - ago_s[1] - _SLACK_S, now_s - ago_s[0] + _SLACK_S)
        known = self._since_s
        if known is not None and max(known[0], since[0]) <= min(known[1], since[1]):
            self._since_s = (max(known[0], since[0]), min(known[1], since[1]))
            return self._number
        self._number += known is not None or self._never
        self._since_s, self._never = since, False
        return self._number

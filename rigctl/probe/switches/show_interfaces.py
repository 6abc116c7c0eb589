"""Parsers of `show interfaces NAME` of switches: Cisco IOS and Dell OS9.

A parser is strict: it refuses a text without the lines that hold the counters, so that nothing is ever taken for 0.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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
# Cisco IOS
_IN: Final = re.compile(r"^[ \t]*(\d{1,20}) packets input, (\d{1,20}) bytes", re.MULTILINE)
_OUT: Final = re.compile(r"^[ \t]*(\d{1,20}) packets output, (\d{1,20}) bytes", re.MULTILINE)
# Input queue: size/max/drops/flushes.
_QUEUES: Final = re.compile(
    r"Input queue: \d{1,20}/\d{1,20}/(\d{1,20})/\d{1,20} \(size/max/drops/flushes\); Total output drops: (\d{1,20})\b",
    re.IGNORECASE,
)
_IN_ERRORS: Final = re.compile(r"^[ \t]*(\d{1,20}) input errors", re.MULTILINE)
_OUT_ERRORS: Final = re.compile(r"^[ \t]*(\d{1,20}) output errors", re.MULTILINE)
# Dell OS9
_SECTION: Final = re.compile(r"^(?=\S)", re.MULTILINE)
_OCTETS: Final = re.compile(r"(?<!\d)(\d{1,20}) packets, (\d{1,20}) bytes")
_IN_LOST: Final = re.compile(r"(?<!\d)(\d{1,20}) CRC, (\d{1,20}) overrun, (\d{1,20}) discarded")
_RUNTS: Final = re.compile(r"(?<!\d)(\d{1,20}) runts, (\d{1,20}) giants")
_UNDERRUNS: Final = re.compile(r"bytes, (\d{1,20}) underruns")
_OUT_LOST: Final = re.compile(r"(?<!\d)(\d{1,20}) discarded, \d{1,20} collisions")


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
    name = _head(text)
    in_packets, in_octets = _numbers(_IN, text, "packets input")
    out_packets, out_octets = _numbers(_OUT, text, "packets output")
    in_discards, out_discards = _numbers(_QUEUES, text, "the drops of its queues")
    counters = {
        "in_octets": in_octets,
        "out_octets": out_octets,
        "in_packets": in_packets,
        "out_packets": out_packets,
        "in_discards": in_discards,
        "out_discards": out_discards,
        "in_errors": _numbers(_IN_ERRORS, text, "input errors")[0],
        "out_errors": _numbers(_OUT_ERRORS, text, "output errors")[0],
    }
    return Shown(name, counters, _cleared_s_ago(text))


def dell_os9(text: str) -> Shown:
    """Parse the answer of Dell OS9, formerly Force10's FTOS. Raise `UnreadableError`."""
    name = _head(text)
    sections = dict(part.partition(":")[::2] for part in reversed(_SECTION.split(text)))
    if not {"Input Statistics", "Output Statistics"} <= sections.keys():
        raise UnreadableError("its answer to show interfaces has no input and output statistics")
    into, out = sections["Input Statistics"], sections["Output Statistics"]
    in_packets, in_octets = _numbers(_OCTETS, into, "the packets and bytes of the input")
    out_packets, out_octets = _numbers(_OCTETS, out, "the packets and bytes of the output")
    damaged, overrun, in_discards = _numbers(_IN_LOST, into, "CRC, overrun and discarded of the input")
    counters = {
        "in_octets": in_octets,
        "out_octets": out_octets,
        "in_packets": in_packets,
        "out_packets": out_packets,
        "in_discards": in_discards,
        "out_discards": _numbers(_OUT_LOST, out, "discarded of the output")[0],
        "in_errors": damaged + overrun + sum(_numbers(_RUNTS, into, "runts and giants of the input")),
        "out_errors": _numbers(_UNDERRUNS, out, "underruns of the output")[0],
    }
    return Shown(name, counters, _cleared_s_ago(text))


def _head(text: str) -> str:
    """Return the name of the interface that a text is about."""
    if len(text) > MOST_TEXT:
        raise UnreadableError(f"its answer to show interfaces is longer than {MOST_TEXT} characters")
    for line in text.splitlines():
        if (match := _HEAD.match(line.strip())) is not None:
            return match["name"]
    message = next((line.strip() for line in text.splitlines() if line.strip().startswith("%")), "")
    raise UnreadableError(f"it prints {message[:80]!r}" if message else "it reports no such interface")


def _numbers(pattern: re.Pattern[str], text: str, what: str) -> tuple[int, ...]:
    """Return the numbers of the one line that holds them."""
    match = pattern.search(text)
    if match is None:
        raise UnreadableError(f"its answer to show interfaces has no line with {what}")
    return tuple(int(value) for value in match.groups())


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

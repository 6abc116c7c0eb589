"""What the parsers of `show interfaces` share: what they give, the lines they look for, and when counters were cleared.

A parser is strict: a text without the lines that hold the counters is refused, so that nothing is ever taken for 0.
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


class UnreadableError(Exception):
    """A text that is no answer to `show interfaces`, or one without the counters. One sentence's part."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One interface. `counters` are columns of PortCounters; `cleared_s_ago`: when they were cleared, at least and at
    most so many seconds ago (the switch rounds); `None`: never."""

    name: str
    counters: Mapping[str, int]
    cleared_s_ago: tuple[float, float] | None


def head(text: str) -> str:
    """The name of the interface that a text is about. Raises `UnreadableError`."""
    if len(text) > MOST_TEXT:
        raise UnreadableError(f"its answer to show interfaces is longer than {MOST_TEXT} characters")
    for line in text.splitlines():
        if (match := _HEAD.match(line.strip())) is not None:
            return match["name"]
    said = next((line.strip() for line in text.splitlines() if line.strip().startswith("%")), "")
    raise UnreadableError(f"it prints {said[:80]!r}" if said else "it reports no such interface")


def number(pattern: re.Pattern[str], text: str, what: str) -> tuple[int, ...]:
    """The numbers of the one line that holds them. Raises `UnreadableError`."""
    match = pattern.search(text)
    if match is None:
        raise UnreadableError(f"its answer to show interfaces has no line with {what}")
    return tuple(int(value) for value in match.groups())


def cleared_s_ago(text: str) -> tuple[float, float] | None:
    """How long ago the counters were cleared, at least and at most. Raises `UnreadableError`."""
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
    """From "so long ago" in one answer after the other to a number that changes when, and only when, one was cleared.

    Each answer bounds the instant; bounds that have something in common are of one instant.
    """

    def __init__(self) -> None:
        self._since_s: tuple[float, float] | None = None
        self._never = False
        self._number = 0

    def number(self, now_s: float, ago_s: tuple[float, float] | None) -> int:
        """The number for an answer at `now_s`, seconds of a monotonic clock."""
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

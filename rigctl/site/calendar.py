"""Months of nights: seven columns a week, a field for each day. A day without a night is empty."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from rigctl.site.nights import Slot, State

MOST_MONTHS: Final = 13
_ATTENTION: Final = (
    State.UNEXPECTED, State.WORSE, State.NEWS, State.BETTER, State.FAILED, State.MISSED, State.PARTLY, State.OPEN,
    State.MEASURED,
)  # fmt: skip
"""The first of these is shown for a day with several nights."""


@dataclass(frozen=True, slots=True)
class Day:
    """`slot`: the night of this day that needs the most attention; None: no night is known. `more`: other nights."""

    number: int
    slot: Slot | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class Month:
    """`weeks`: seven days each, from Monday; None: a day of another month."""

    name: str
    weeks: tuple[tuple[Day | None, ...], ...]


def months(slots: Sequence[Slot], most: int = MOST_MONTHS) -> tuple[Month, ...]:
    """Return the months from the first night to the last, at most the last `most`, the earliest first."""
    if not slots:
        return ()
    by_day: dict[date, list[Slot]] = {}
    for slot in slots:
        by_day.setdefault(slot.day, []).append(slot)
    first, last = min(by_day), max(by_day)
    starts = [first.replace(day=1)]
    while (following := _following(starts[-1])) <= last:
        starts.append(following)
    return tuple(_month(start, by_day) for start in starts[-most:])


def _following(start: date) -> date:
    return (start + timedelta(days=32)).replace(day=1)


def _month(start: date, by_day: dict[date, list[Slot]]) -> Month:
    count = (_following(start) - start).days
    days: list[Day | None] = [None] * start.weekday()
    days += [_day(start.replace(day=number), by_day) for number in range(1, count + 1)]
    days += [None] * (-len(days) % 7)
    weeks = tuple(tuple(days[at : at + 7]) for at in range(0, len(days), 7))
    return Month(f"{start:%B %Y}", weeks)


def _day(day: date, by_day: dict[date, list[Slot]]) -> Day:
    own = by_day.get(day, [])
    if not own:
        return Day(day.day)
    return Day(day.day, min(own, key=lambda slot: (_ATTENTION.index(slot.state), -slot.at)), len(own) - 1)

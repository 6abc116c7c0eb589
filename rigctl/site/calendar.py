"""Months of nights: seven columns a week, a field for each day. A day without a night is empty."""

from calendar import monthcalendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
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
    first, last = (12 * day.year + day.month - 1 for day in (min(by_day), max(by_day)))
    numbers = range(max(first, last - most + 1), last + 1)
    return tuple(_month(number // 12, number % 12 + 1, by_day) for number in numbers)


def _month(year: int, month: int, by_day: dict[date, list[Slot]]) -> Month:
    weeks = (
        tuple(_day(date(year, month, day), by_day) if day else None for day in week)
        for week in monthcalendar(year, month)
    )
    return Month(f"{date(year, month, 1):%B %Y}", tuple(weeks))


def _day(day: date, by_day: dict[date, list[Slot]]) -> Day:
    own = by_day.get(day, [])
    if not own:
        return Day(day.day)
    return Day(day.day, min(own, key=lambda slot: (_ATTENTION.index(slot.state), -slot.at)), len(own) - 1)

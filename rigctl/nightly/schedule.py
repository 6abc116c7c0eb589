"""Times at which nights are due. A night is identified by its due time, however late it began."""

from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final

MOST_MISSED: Final = 30
"""Most missed nights that are reported; earlier ones are too long ago."""


def due_times(at: time, after: float, until: float, zone: tzinfo | None = None) -> list[float]:
    """Return the due times later than `after` and not later than `until`, in Unix seconds.

    `at` is local time (`zone`; None: the machine's). In the hour that summer time skips, the night is due an hour
    later; in the hour that comes twice, the first time (PEP 495).
    """
    day = datetime.fromtimestamp(after, zone or UTC).date() - timedelta(days=1)
    last = datetime.fromtimestamp(until, zone or UTC).date() + timedelta(days=1)
    found = []
    while day <= last:
        due = datetime.combine(day, at, zone).timestamp()
        if after < due <= until:
            found.append(due)
        day += timedelta(days=1)
    return found


def latest_due(at: time, now: float, zone: tzinfo | None = None) -> float:
    """Return the last due time up to `now`."""
    return due_times(at, now - 3 * 86400, now, zone)[-1]


def next_due(at: time, now: float, zone: tzinfo | None = None) -> float:
    """Return the next due time."""
    return due_times(at, now, now + 3 * 86400, zone)[0]


def date_of(due_at: float, zone: tzinfo | None = None) -> str:
    """Return the date on which a night is due."""
    return f"{datetime.fromtimestamp(due_at, zone):%Y-%m-%d}"


def moment(at: float, zone: tzinfo | None = None) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M}"

"""Computes when nights are due, and keeps the state of a nightly between nights."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rigctl.base.errors import RigError
from rigctl.nightly.settings import put_private
from rigctl.nightly.zone import due_on

MOST_MISSED: Final = 30
"""Most missed nights that are reported; earlier missed nights are not mentioned."""


def due_times(at: time, after: float, until: float) -> list[float]:
    """Return the Unix times after `after` and up to `until` at which a night is due, daily at `at` (`zone.due_on`)."""
    first, last = (datetime.fromtimestamp(end, UTC).date() for end in (after, until))
    days = (first + timedelta(days=number) for number in range(-1, (last - first).days + 2))
    return [due for day in days if after < (due := due_on(day, at)) <= until]


def latest_due(at: time, now: float) -> float:
    """Return the latest due time up to `now`, as a Unix time."""
    return due_times(at, now - 3 * 86400, now)[-1]


def next_due(at: time, now: float) -> float:
    """Return the next due time after `now`, as a Unix time."""
    return due_times(at, now, now + 3 * 86400)[0]


def date_of(due_at: float, zone: tzinfo | None = None) -> str:
    """Return the date of a Unix time, as 2026-11-05, by default in local time."""
    return f"{datetime.fromtimestamp(due_at, zone):%Y-%m-%d}"


def moment(at: float, zone: tzinfo | None = None) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M}"


Instant: TypeAlias = Annotated[float, Field(ge=0, le=2.0**36, allow_inf_nan=False)]
"""Unix time in seconds, within the range of calendar dates."""


@dataclass(frozen=True, slots=True)
class Item:
    """The news of one night for the next message."""

    due_at: Instant
    headline: str  # one sentence about the night
    markdown: str = ""  # details about the night; may be empty


class NightlyState(BaseModel):
    """State of a nightly. Nights due up to `looked_until` have begun or are stored as missed.

    `damage` is a message if the file could not be read; the nightly then starts as if newly installed.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    installed_at: Instant
    looked_until: Instant
    pending: list[Item] = Field(default_factory=list)
    file: Path = Field(default=Path(), exclude=True)
    damage: str | None = Field(default=None, exclude=True)

    def add(self, item: Item) -> None:
        self.pending = [*self.pending, item][-60:]  # the latest

    def save(self) -> None:
        """Write the state to its file. Raise `RigError` if that fails."""
        put_private(self.file, self.model_dump_json())


def state_of(file: Path, installed_at: float) -> NightlyState:
    """Return the state in `file`, or a new state from `installed_at` on if the file is missing or damaged."""
    fresh = NightlyState(installed_at=installed_at, looked_until=installed_at, file=file)
    try:
        return NightlyState.model_validate_json(file.read_bytes()).model_copy(update={"file": file})
    except FileNotFoundError:
        return fresh
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else error.errors(include_url=False)[0]["msg"]
        fresh.damage = (
            f"{file} is damaged ({why}). The nightly goes on as if newly installed: nights missed before now are not "
            "reported, and messages not yet delivered are lost"
        )
        return fresh


@contextmanager
def alone(file: Path, name: str) -> Iterator[None]:
    """Hold the lock of a nightly during the block; yield nothing. Raise `RigError` if a night is still running."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RigError(f"nightly {name} is still running. rigctl nightly status shows since when") from None
        yield
    finally:
        os.close(descriptor)

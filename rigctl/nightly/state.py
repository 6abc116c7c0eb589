"""State of a nightly between nights: until when missed nights were looked for, and messages not delivered yet."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from rigctl.base.errors import RigError
from rigctl.base.files import put

_MOST_ITEMS: Final = 60
Instant: TypeAlias = Annotated[float, Field(ge=0, le=2.0**36, allow_inf_nan=False)]
"""Unix time, seconds, within what a calendar takes."""


@dataclass(frozen=True, slots=True)
class Item:
    """Part of a message: one night with news."""

    due_at: Instant
    outcome: str
    run: str | None
    headline: str  # one sentence
    markdown: str = ""  # more, where there is more


@dataclass(frozen=True, slots=True)
class _Kept:
    """Content of the file."""

    installed_at: Instant
    looked_until: Instant
    pending: tuple[Item, ...]


_ADAPTER: Final = TypeAdapter(_Kept)


@dataclass(slots=True)
class State:
    """`looked_until`: nights due until then have happened, or are known to be missed.

    `damage`: a message if the file could not be read; the nightly starts as if newly installed.
    """

    file: Path
    installed_at: float
    looked_until: float
    pending: list[Item] = field(default_factory=list)
    damage: str | None = None

    def add(self, item: Item) -> None:
        self.pending = [*self.pending, item][-_MOST_ITEMS:]

    def save(self) -> None:
        """Write the file. Raise `RigError` if that fails."""
        kept = _Kept(self.installed_at, self.looked_until, tuple(self.pending))
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            put(self.file, _ADAPTER.dump_json(kept), 0o600)
        except OSError as error:
            raise RigError(f"{self.file}: cannot be written: {error.strerror or error}") from error


def state_of(file: Path, installed_at: float) -> State:
    """Return the state in `file`; if it is missing or damaged, that of a nightly installed at `installed_at`."""
    try:
        kept = _ADAPTER.validate_json(file.read_bytes(), strict=True)
    except FileNotFoundError:
        return State(file, installed_at, installed_at)
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else error.errors(include_url=False)[0]["msg"]
        damage = (
            f"{file} is damaged ({why}). The nightly goes on as if newly installed: nights missed before now are not "
            "reported, and messages not yet delivered are lost"
        )
        return State(file, installed_at, installed_at, damage=damage)
    return State(file, kept.installed_at, kept.looked_until, list(kept.pending))


@contextmanager
def alone(file: Path, name: str) -> Iterator[None]:
    """Hold the lock of a nightly in the block. Raise `RigError` if a night of it is still running."""
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

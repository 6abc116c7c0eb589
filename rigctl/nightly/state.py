"""What a nightly remembers between nights: until when it has looked for missed ones, and what nobody was told yet."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from rigctl.errors import RigError
from rigctl.files import put

_MOST_ITEMS: Final = 60


@dataclass(frozen=True, slots=True)
class Item:
    """What is to be told of a night."""

    due_at: float
    outcome: str
    run: str | None
    headline: str  # one sentence
    markdown: str = ""  # more, where there is more


@dataclass(slots=True)
class State:
    """`looked_until`: nights due until then have happened, or are known to be missed."""

    file: Path
    looked_until: float
    pending: list[Item] = field(default_factory=list)

    def add(self, item: Item) -> None:
        self.pending = [*self.pending, item][-_MOST_ITEMS:]

    def save(self) -> None:
        """Raises `RigError`."""
        said = {"looked_until": self.looked_until, "pending": [asdict(item) for item in self.pending]}
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            put(self.file, json.dumps(said).encode(), 0o600)
        except OSError as error:
            raise RigError(f"{self.file}: cannot be written: {error.strerror or error}") from error


def state_of(file: Path, installed_at: float) -> State:
    """The state in `file`; a damaged one is that of a nightly which was installed at `installed_at`."""
    try:
        said = json.loads(file.read_text())
        return State(file, float(said["looked_until"]), [Item(**item) for item in said["pending"]])
    except (OSError, ValueError, KeyError, TypeError):
        return State(file, installed_at)


@contextmanager
def alone(file: Path, name: str) -> Iterator[None]:
    """One night of a nightly at a time. Raises `RigError` where one goes on."""
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

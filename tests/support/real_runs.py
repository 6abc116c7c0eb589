"""Real runs that tests only read: each is made once, by the first test that asks for it, for all workers of pytest.

A maker is a function that starts a rig, measures by `Maker.measures`, and ends the rig. Its folder has the store, the
pages and the captures of its runs; nobody writes to it once it is made.
"""

import fcntl
import json
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias

from user import User

from rigctl.records import Repetition

_MADE = "made.json"


class Maker(User):
    """Someone who makes real runs for others to read."""

    def __init__(self, folder: Path, host: User | None) -> None:
        super().__init__(folder, host)
        self.made: dict[str, tuple[str, str]] = {}

    def measures(self, name: str, scenario: str, *options: str, code: int = 0) -> None:
        """Make a run that tests find by `name`: of a bundled scenario, or of the text of one."""
        if "\n" in scenario:
            (self.folder / f"{name}.yaml").write_text(scenario)
            scenario = f"{name}.yaml"
        said = self.rigctl("run", scenario, *options, code=code)
        run = re.findall(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b", said)[0]
        self.made[name] = run, said


class RealRun:
    def __init__(self, user: User, run: str, said: str) -> None:
        self.user, self.run, self.said = user, run, said
        self.folder = user.folder
        self.rows = cache(lambda level="pairs": user.rows(level, run=run))

    @cached_property
    def repetitions(self) -> list[Repetition]:
        with self.user.store() as store:
            return list(store.repetitions(self.run))

    @cached_property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.user.rigctl("show", self.run, "--json"))
        return found

    @property
    def findings(self) -> dict[str, dict[str, Any]]:
        """What the report says, by code."""
        return {finding["code"]: finding for finding in self.document["findings"]}


Make: TypeAlias = Callable[[Maker], None]
Real: TypeAlias = Callable[..., dict[str, RealRun]]
"""The fixture `real`: the runs of a maker by their names; the second argument is a user whose rig it may use."""


def real_runs(shared: Path, make: Make, host: User | None) -> dict[str, RealRun]:
    """Return the runs of a maker by their names; make them in `shared` if nobody has. What failed once fails all."""
    name = f"{make.__module__}.{make.__name__}"
    folder = shared / name
    shared.mkdir(exist_ok=True)
    with locked(shared / f"{name}.lock"):
        if not folder.exists():
            folder.mkdir()
            maker = Maker(folder, host)
            try:
                make(maker)
            except BaseException:
                (folder / _MADE).write_text(json.dumps({"error": traceback.format_exc()}))
                raise
            (folder / _MADE).write_text(json.dumps(maker.made))
    made = json.loads((folder / _MADE).read_text())
    assert "error" not in made, made["error"]
    reader = User(folder, host)
    return {part: RealRun(reader, *known) for part, known in made.items()}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield

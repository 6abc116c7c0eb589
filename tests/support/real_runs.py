"""Real runs that tests only read. The first test that needs a run makes it, once for all workers of pytest.

A maker is a function that starts a rig, calls `Maker.measures`, and ends the rig. The maker's folder has the store, the
pages and the captures of its runs; nothing is written there afterwards.
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
    """The user that a maker uses to make real runs."""

    def __init__(self, folder: Path, host: User | None) -> None:
        super().__init__(folder, host)
        self.made: dict[str, tuple[str, str]] = {}

    def measures(self, name: str, scenario: str, *options: str, code: int = 0) -> None:
        """Make a run that tests find by `name`. `scenario` is the name of a bundled scenario, or the text of a file."""
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
        """Return the findings of the report by code."""
        return {finding["code"]: finding for finding in self.document["findings"]}


Make: TypeAlias = Callable[[Maker], None]
Real: TypeAlias = Callable[..., dict[str, RealRun]]
"""The fixture `real`: returns the runs of a maker by name. Its second argument is a user whose rig the maker uses."""


def real_runs(shared: Path, make: Make, host: User | None) -> dict[str, RealRun]:
    """Return the runs of a maker by name; make them in `shared` if no test has. A failure fails all tests that ask."""
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

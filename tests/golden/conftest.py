"""Stores with the stored runs of the golden tests."""

from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any, Final

import pytest

from rigctl.cli.app import exit_code
from rigctl.report import document
from rigctl.results import read
from rigctl.store import Store

RUNS: Final = Path(__file__).parent / "runs"
SEVERAL: Final = {
    "two": ("before", "invalid"),
    "list": ("streams", "expectations", "failed", "interrupted", "latency", "mesh"),
}
"""Name of a store with several stored runs → names of the runs."""


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns the store with a stored run, or with the runs in `SEVERAL`, by name."""
    folder = tmp_path_factory.mktemp("golden")

    def store(name: str) -> Path:
        path = folder / f"{Path(name).name}.db"
        if not path.exists():
            if name not in SEVERAL:
                copy(RUNS / f"{name}.rigctl", path)
            for each in SEVERAL.get(name, ()):
                assert exit_code(["import", str(RUNS / f"{each}.rigctl"), "--store", str(path)]) == 0
        return path

    return store


@pytest.fixture
def rigctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs a command in this process and returns what it writes."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir(tmp_path)

    def run(*words: str, file: str | None = None) -> str:
        capsys.readouterr()
        exit_code([*words, *(["-o", file] if file else [])])
        written = capsys.readouterr().out
        return (tmp_path / file).read_text() if file else written

    return run


_DERIVED: Final[dict[tuple[str, Any], Any]] = {}


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a stored run once, and derive its document and its rows once, for all the formats that print them."""

    def keep(owner: Any, name: str, key: Callable[..., object]) -> None:
        make = getattr(owner, name)

        def kept(*args: Any, **options: Any) -> Any:
            place = (name, key(*args, **options))
            if place not in _DERIVED:
                _DERIVED[place] = make(*args, **options)
            return _DERIVED[place]

        monkeypatch.setattr(owner, name, kept)

    keep(read, "condensed_in_memory", lambda info, measured: (len(info.plan.cells), *map(id, measured)))
    keep(Store, "repetitions", lambda _, run, *words, **options: f"{run} {words} {options}")
    keep(document, "document", lambda view: view.info.run)

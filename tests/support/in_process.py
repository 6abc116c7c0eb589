"""The command line in the test's own process: no start of Python, and each line of it counts as covered."""

import json
import os
import socket
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from rigctl.base.processes import process
from rigctl.cli.app import every_command, exit_code

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"

every_command()  # here: asyncssh starts ldconfig when it is imported, which no unit test may


class Printed(NamedTuple):
    out: str
    errors: str


class Rigctl:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.folder, self.store = folder, folder / "r.db"
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setenv("NO_COLOR", "1")
        runtime = folder.with_name(f"{folder.name}-runtime")
        runtime.mkdir(mode=0o700, exist_ok=True)  # one that is not there is not used
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        monkeypatch.chdir(folder)

    def __call__(self, *words: str, code: int = 0, store: Path | None = None) -> Printed:
        """Run a command that ends with `code`, on another store if one is given."""
        self._monkeypatch.setenv("RIGCTL_STORE", str(store or self.store))
        self._monkeypatch.setenv("RIGCTL_DEBUG", "")
        self._capsys.readouterr()
        ended = exit_code(list(words))
        printed = Printed(*self._capsys.readouterr())
        assert ended == code, f"{words} gave {ended}:\n{printed.out}\n{printed.errors}"
        return printed

    def document(self, schema: str, *words: str, code: int = 0) -> Any:
        """Run a command with `--json`. Return its document, which is as its schema in docs has it."""
        made = json.loads(self(*words, "--json", code=code).out)
        jsonschema.validate(made, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
        return made


def live_controller() -> str:
    """Return what the store notes of a process that measures: a live one that is not the test's own."""
    parent = process(os.getppid())
    assert parent is not None
    return f"{socket.gethostname()} {parent.pid} {parent.started}"

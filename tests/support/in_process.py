"""Runs the command line in the test's own process, which is faster and counts for test coverage."""

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

every_command()  # imported here, because asyncssh starts ldconfig, and unit tests may start no process


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
        runtime.mkdir(mode=0o700, exist_ok=True)  # rigctl does not create it
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        monkeypatch.chdir(folder)

    def __call__(self, *words: str, code: int = 0, store: Path | None = None) -> Printed:
        """Run a command that must end with `code`, and return its output. `store` replaces the user's store."""
        self._monkeypatch.setenv("RIGCTL_STORE", str(store or self.store))
        self._monkeypatch.setenv("RIGCTL_DEBUG", "")
        self._capsys.readouterr()
        ended = exit_code(list(words))
        printed = Printed(*self._capsys.readouterr())
        assert ended == code, f"{words} gave {ended}:\n{printed.out}\n{printed.errors}"
        return printed

    def document(self, schema: str, *words: str, code: int = 0) -> Any:
        """Run a command with `--json`. Return its document, validated by its schema in docs/schemas."""
        made = json.loads(self(*words, "--json", code=code).out)
        jsonschema.validate(made, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
        return made


def live_controller() -> str:
    """Return the store's identifier of a live controller process: the parent of the test's process."""
    parent = process(os.getppid())
    assert parent is not None
    return f"{socket.gethostname()} {parent.pid} {parent.started}"

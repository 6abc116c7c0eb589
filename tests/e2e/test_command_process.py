"""What only a start of Python shows: what it imports, its standard output, missing extras."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import builders
import pytest
from cases import from_file
from many_nights import measure, mesh_plan
from processes import DEADLINE_S

from rigctl.store import open_store

ROOT: Final = Path(__file__).parents[2]
HEAVY: Final = {
    "asyncssh", "cryptography", "jinja2", "netmiko", "numpy", "pandas", "paramiko", "prometheus_client", "psycopg",
    "pyarrow", "pydantic", "pysnmp", "resvg_py", "scipy", "sqlalchemy", "yaml",
}  # fmt: skip
"""Packages that take a hundredth of a second or more to import; a command has only those that its case names."""
CLOSED_RIG: Final = """
nodes:
  pi1: {address: 127.0.0.8, port: 1, known_hosts: none}
  pi2: {address: 127.0.0.9, port: 1, known_hosts: none}
"""
"""A rig whose nodes refuse each connection."""
IMPORTED: Final = """
import atexit, gc, json, sys, rigctl.cli.app

atexit.register(lambda: print(json.dumps([gc.get_freeze_count(), *sys.modules])))
rigctl.cli.app.main()
"""
WITHOUT: Final = """
import contextlib, importlib.abc, io, json, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"fontpkg_arimo", "prometheus_client", "psycopg", "pyarrow", "resvg_py"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from rigctl.cli.app import exit_code

for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = exit_code(words)
    print(json.dumps([code, out.getvalue(), errors.getvalue()]))
"""
FORKED: Final = """
import json, os, sys, rigctl.cli.app

rigctl.cli.app.every_command()
for words, *outputs in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        for descriptor, path in enumerate(outputs, 1):
            if path is None:
                reading, writing = os.pipe()
                os.close(reading)
            else:
                writing = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(writing, descriptor)
        sys.argv[1:] = words.split()
        rigctl.cli.app.main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
CODES: Final = {
    "regress": 1,
    "regress --format json": 1,
    "compare latest~12 latest": 0,
    "show": 0,
    "runs --json": 0,
    "check closed.yaml": 3,
    "show no-such-run": 2,
}
"""Exit code of each command on the store `slower`."""
NEEDING: Final = {
    "openmetrics": ("export --format openmetrics", "export --format openmetrics -o made"),
    "parquet": ("export --format parquet", "export --format parquet -o made"),
    "pictures": ("report --fragment", "report --fragment made"),
    "postgresql": (
        "store postgresql://anna:***@127.0.0.1:1/rigctl",
        "runs --store postgresql://anna:secret@127.0.0.1:1/rigctl",
    ),
}
"""What each extra is for, as its message says, and a command that needs it."""
NEEDING_NONE: Final = ("show", "report -o page.html", "regress")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "r.db"
    with open_store(str(path)) as opened:
        builders.put(opened, *builders.gigablox())
    return path


def ended(store: Path, *command: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"RIGCTL_STORE": str(store), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": DEADLINE_S}
    return subprocess.run(command, cwd=store.parent, env=environment, input=given, **how)


def forked(store: Path, *commands: tuple[str, str | None, str | None]) -> list[int]:
    """Run commands one after the other and return their exit codes. Each is a fork of one process, which starts once.

    A command is its words, and the files of its output and of its messages; None is a pipe whose reader is gone.
    """
    done = ended(store, sys.executable, "-c", FORKED, given=json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.splitlines()]


def in_bash(store: Path, line: str) -> "subprocess.CompletedProcess[str]":
    return ended(store, "bash", "-o", "pipefail", "-c", f"{sys.executable} -m rigctl {line}")


def test_a_reader_that_goes_away_is_no_error(store: Path) -> None:
    done = in_bash(store, "export --level intervals | head -1")
    assert done.stdout.startswith("run,cell,")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    """Twenty nights, and a tenth less on the last eight."""
    path = tmp_path / "slower.db"
    with open_store(str(path)) as opened:
        for night in range(20):
            measure(opened, mesh_plan(("a", "b")), night, lambda night, _: 0.9 if night > 11 else 1.0)
    return path


def test_the_exit_code_is_the_commands_own_when_its_reader_is_gone(slower: Path) -> None:
    (slower.parent / "closed.yaml").write_text(CLOSED_RIG)
    errors = [str(slower.parent / f"errors{number}") for number in range(len(CODES))]
    lost = [(words, None, path) for words, path in zip(CODES, errors, strict=True)]
    codes = forked(slower, *lost, *((words, None, None) for words in CODES))
    assert codes == [*CODES.values(), *CODES.values()]
    assert [path for path in errors if "Traceback" in Path(path).read_text()] == []


@from_file
def test_output_that_cannot_be_written_is_one_message(store: Path, line: str, said: str) -> None:
    done = in_bash(store, line)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@from_file
def test_a_command_imports_no_heavy_package_that_it_does_not_use(
    store: Path, words: str, said: str, needed: set[str]
) -> None:
    (store.parent / "closed.yaml").write_text(CLOSED_RIG)
    done = ended(store, sys.executable, "-c", IMPORTED, *words.split())
    *printed, last = done.stdout.splitlines()
    frozen, *imported = json.loads(last)
    assert said in done.stderr + "".join(printed)
    assert HEAVY & set(imported) == needed, "each start of rigctl would take tenths of a second more"
    assert frozen > len(imported), "each end would take tenths of a second more: it looks for cycles in all modules"


def test_a_missing_extra_is_named_with_the_line_that_installs_it_and_all_else_works(store: Path) -> None:
    commands = [*NEEDING_NONE, *(command for _, command in NEEDING.values())]
    done = ended(store, sys.executable, "-c", WITHOUT, given=json.dumps([command.split() for command in commands]))
    assert done.returncode == 0, done.stderr
    made: list[Any] = [json.loads(line) for line in done.stdout.splitlines()]
    for _, (code, out, errors) in zip(NEEDING_NONE, made, strict=False):
        assert code == 0, errors
        assert out
        assert "Traceback" not in errors
    for (extra, (purpose, _)), answer in zip(NEEDING.items(), made[len(NEEDING_NONE) :], strict=True):
        message = f"rigctl: {purpose} needs the extra {extra} of rigctl: pip install 'rigctl[{extra}]'\n"
        assert answer == [2, "", message]
    assert {path.name for path in store.parent.iterdir()} == {"page.html", "r.db"}


PLAN: Final = "rig: r.yaml\npairs: [pi1 -> pi2]\nduration: 1s\nmatrix: {window: [64K], parallel: [1, 2]}\n"
SIGNS: Final = {
    "show --all": "latin-1",
    "show --markdown": "koi8-r",
    "show --json": "ascii",
    "runs --json": "latin-1",
    "plan s.yaml": "ascii",
}
"""Encoding of the terminal of each command."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return what each command of `SIGNS` prints in UTF-8, beside its store."""
    folder = tmp_path_factory.mktemp("signs")
    (folder / "r.yaml").write_text(CLOSED_RIG, encoding="utf-8")
    (folder / "s.yaml").write_text(f"title: Größe – 10 → 20 Ω\n{PLAN}", encoding="utf-8")
    with open_store(str(folder / "r.db")) as opened:
        builders.put(opened, *builders.gigablox())
    files = {command: folder / f"plain{number}" for number, command in enumerate(("tag latest ort=Größe–Ω", *SIGNS))}
    commands = [(command, str(path), str(folder / "errors")) for command, path in files.items()]
    assert forked(folder / "r.db", *commands) == [0] * len(commands)
    return files


@pytest.mark.parametrize("command", SIGNS)
def test_a_terminal_that_lacks_signs_gets_others(
    plain: dict[str, Path], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    encoding, expected = SIGNS[command], plain[command].read_text("utf-8")
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    words = [sys.executable, "-m", "rigctl", *command.split()]
    how: dict[str, Any] = {"cwd": plain[command].parent, "capture_output": True, "timeout": DEADLINE_S}
    environment = os.environ | {"RIGCTL_STORE": "r.db", "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    done = subprocess.run(words, env=environment, **how)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    if "--json" in command:
        assert json.loads(done.stdout) == json.loads(expected)
        return
    lines = done.stdout.decode("utf-8" if "--markdown" in command else encoding).splitlines()
    assert [len(line) for line in lines] == [len(line) for line in expected.splitlines()]  # columns stay aligned


def test_a_message_on_an_error_needs_no_sign(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = ended(store, sys.executable, "-m", "rigctl", "show", "Größe–Ω")
    assert done.returncode == 2
    assert '"Gro?e-?"' in done.stderr, done.stderr

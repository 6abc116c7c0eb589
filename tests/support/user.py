"""Someone at a terminal, for the tests of whole runs: a home, a store and a runtime folder of their own."""

import ctypes
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import replay
from processes import all_commands, ancestors, end, eventually

from rigctl.cli.app import COMMANDS

AGENT = re.compile(r"/agent-[0-9a-f]{64}")
HOLDER = re.compile(r"-m rigctl\.virtual\.(machines\.)?holder ")
INVALID = ": invalid: "


# Every command: one that runs as another user may not be able to read the folder that Python is installed in.
MODULES = sorted({f"rigctl.cli.{place.partition(':')[0]}" for place, _ in COMMANDS.values()})
PRELOADED = (*MODULES, "rigctl.runner.by_iperf3", "rigctl.model.statistics.comparing", "asyncssh", "user")


@cache
def _imported() -> ForkServerContext:
    """A server of this test process that has imported what commands need, and forks them."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    with patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parent)):  # the server finds this module there
        ensure_running()
    return context


def _command(
    words: Sequence[str],
    environment: dict[str, str],
    folder: Path,
    outputs: Sequence[Path],
    uid: int | None,
    network: Path | None,
) -> None:
    """A command with its own session, folder and environment, as `User.start` gives it; of the user `uid`."""
    os.setsid()
    if network is not None:
        with network.open() as place:
            entered = ctypes.CDLL(None).setns(place.fileno(), 0)
        assert entered == 0, network
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, str(folder))  # as `python -m` does
    replay.install(environment)
    for number, path in enumerate(outputs, 1):
        written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(written, number)
        os.close(written)
    from rigctl.cli.app import exit_code

    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    sys.exit(exit_code(list(words)))


def begun(
    words: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    outputs: Sequence[Path],
    uid: int | None = None,
    network: Path | None = None,
) -> BaseProcess:
    """A command as a process of its own, forked from one that need not import everything again.

    `outputs`: the files of its output and of its messages. `network`: the network namespace that it is to be in.
    """
    process = _imported().Process(target=_command, args=(words, environment, folder, outputs, uid, network))
    process.start()
    return process


def ended(
    words: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    deadline_s: float = 60,
    uid: int | None = None,
    network: Path | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """What a command printed and how it ended."""
    with TemporaryDirectory(prefix="rigctl-outputs-") as place:
        outputs = Path(place, "out"), Path(place, "errors")
        process = begun(words, folder, environment, outputs, uid, network)
        try:
            process.join(deadline_s)
            code = process.exitcode
        finally:
            process.kill()
            process.join()
        out, errors = (path.read_bytes() if path.exists() else b"" for path in outputs)
    assert code is not None, f"{words} had not ended after {deadline_s:g} s:\n{out!r}\n{errors!r}"
    return subprocess.CompletedProcess(list(words), code, out, errors)


class User:
    """Someone at a terminal, with a home, a store and a runtime folder of their own.

    `replay`: what their runs return instead of measuring, if they are replayed.
    """

    replay: replay.Replay

    def __init__(self, folder: Path, host: "User | None" = None) -> None:
        """`host`: a user whose rigs this one uses."""
        self.folder = folder
        self.rigs: Path = folder if host is None else host.rigs
        runtime = self.rigs / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        self.environment = os.environ | {
            "XDG_RUNTIME_DIR": str(runtime),
            "RIGCTL_STORE": str(folder / "store.db"),
            "HOME": str(folder),
            "COLUMNS": "200",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    def replays(self) -> None:
        """Replay the runs of this user from here on, those of processes that commands start too."""
        self.replay = replay.Replay(self.folder)
        support = Path(__file__).parent
        self.environment[replay.SCRIPT] = str(self.replay.path)
        self.environment["PYTHONPATH"] = f"{support / 'replaying'}:{support}:{self.environment['PYTHONPATH']}"

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "rigctl", *words], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def rigctl(self, *words: str, code: int = 0, deadline_s: float = 90) -> str:
        """Run a command that ends with `code`; return its output, then its messages."""
        done = ended(words, self.folder, self.environment, deadline_s)
        out, errors = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == code, f"{words} gave {done.returncode}:\n{out}\n{errors}"
        return out + errors

    def scenario(self, text: str) -> str:
        (self.folder / "s.yaml").write_text(text)
        return "s.yaml"

    def rows(self, level: str = "pairs", *, invalid: bool = False) -> list[dict[str, Any]]:
        """An export. What a busy machine made invalid was measured once more, and is left out unless asked for."""
        exported: list[dict[str, Any]] = json.loads(self.rigctl("export", "--format", "json", "--level", level))
        return [row for row in exported if invalid or row.get("status") != "invalid"]

    def findings(self) -> str:
        """All that the report says of the latest run in sentences: a terminal shows the weightiest only."""
        return "\n".join(finding["text"] for finding in json.loads(self.rigctl("show", "--json"))["findings"])

    def processes(self) -> dict[int, str]:
        """Every process of this user's rigs, by what its environment says, agents and holders included."""
        found = {}
        for pid, words in all_commands():
            with suppress(OSError):
                inherited = Path(f"/proc/{pid}/environ").read_bytes()
                mine = str(self.rigs).encode() in inherited or str(self.rigs) in words
                if mine and (HOLDER.search(words) or AGENT.search(words) or b"RIGCTL_RIG=" in inherited):
                    found[pid] = words
        return found

    def holder(self) -> str:
        """The process that holds this user's only rig: the namespace of its switch is its own."""
        (state,) = (self.folder / "runtime").glob("rigctl/*/state.json")
        return str(json.loads(state.read_text())["holder"]["pid"])

    def agents(self) -> list[int]:
        """Agents on the rigs of this user: descendants of its holders."""
        holders = {pid for pid, words in self.processes().items() if HOLDER.search(words)}
        return [pid for pid, words in all_commands() if AGENT.search(words) and ancestors(pid) & holders]


@contextmanager
def kept_up(user: User, rig: str = "gigablox") -> Iterator[None]:
    user.rigctl("rig", "up", rig)
    try:
        yield
    finally:
        user.rigctl("rig", "down", rig)


@contextmanager
def traffic(user: User, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A run whose first cell is sending."""
    process = user.start("run", "--no-report", *words)
    try:
        eventually(lambda: len(user.agents()) >= 4)
        time.sleep(1.0)
        yield process
    finally:
        end(process)
        process.communicate(timeout=10)


def rigctl(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder, to its end."""
    done = ended(arguments, folder, {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **variables})
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

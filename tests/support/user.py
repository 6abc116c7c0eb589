"""A user of the command line, for tests of whole runs, with a separate home, store and runtime folder."""

import ctypes
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self
from unittest.mock import patch

import replay
from processes import DEADLINE_S, all_commands, ancestors, eventually

from rigctl.cli.app import COMMANDS
from rigctl.store import Store, open_store

AGENT = re.compile(r"/agent-[0-9a-f]{64}")
HOLDER = re.compile(r"-m rigctl\.virtual\.(machines\.)?holder ")
INVALID = "  invalid: "
TRAFFIC_BYTES = 1_000_000
"""More bytes than a node exchanges before the traffic of a test begins."""


# Modules of every command, because a command that runs as another user may not be able to read Python's folder.
MODULES = sorted({f"rigctl.cli.{place.partition(':')[0]}" for place in COMMANDS.values()})
PRELOADED = (*MODULES, "rigctl.runner.by_iperf3", "rigctl.model.statistics.comparing", "asyncssh", "user")


@cache
def _imported() -> ForkServerContext:
    """Return this test process's fork server, which has imported the modules of all commands."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    with patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parent)):  # where the server finds this module
        ensure_running()
    return context


def _command(
    words: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    outputs: Sequence[Path],
    uid: int = 0,
    network: Path | None = None,
) -> None:
    """A command with its own session, folder and environment, as `User.start` gives it.

    `uid`: its user, if that is another. `network`: the network namespace that it is to be in.
    """
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

    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    sys.exit(exit_code(list(words)))


def begun(
    words: Sequence[str], folder: Path, environment: dict[str, str], outputs: Sequence[Path], **where: Any
) -> BaseProcess:
    """A command as a process of its own, forked from one that need not import everything again.

    `outputs`: the files of its output and of its messages. `where`: as for `_command`.
    """
    process = _imported().Process(target=_command, args=(words, folder, environment, outputs), kwargs=where)
    process.start()
    return process


def ended(
    words: Sequence[str], folder: Path, environment: dict[str, str], deadline_s: float = DEADLINE_S, **where: Any
) -> "subprocess.CompletedProcess[bytes]":
    with running(words, folder, environment, **where) as command:
        return command.ended(deadline_s)


class Command:
    """A command that runs. Its output so far can be read at any time."""

    def __init__(self, words: Sequence[str], process: BaseProcess, outputs: Sequence[Path]) -> None:
        assert process.pid is not None
        self._words, self._process, self._outputs, self.pid = list(words), process, outputs, process.pid

    def messages(self) -> str:
        return self._printed()[1].decode(errors="replace")

    def ended(self, deadline_s: float = DEADLINE_S) -> "subprocess.CompletedProcess[bytes]":
        """Wait for the command's end; return its code, output and messages."""
        self._process.join(deadline_s)
        code, (out, errors) = self._process.exitcode, self._printed()
        assert code is not None, f"{self._words} had not ended after {deadline_s:g} s:\n{out!r}\n{errors!r}"
        return subprocess.CompletedProcess(self._words, code, out, errors)

    def _printed(self) -> list[bytes]:
        return [path.read_bytes() if path.exists() else b"" for path in self._outputs]


@contextmanager
def running(words: Sequence[str], folder: Path, environment: dict[str, str], **where: Any) -> Iterator[Command]:
    with TemporaryDirectory(prefix="rigctl-outputs-") as place:
        outputs = Path(place, "out"), Path(place, "errors")
        process = begun(words, folder, environment, outputs, **where)
        try:
            yield Command(words, process, outputs)
        finally:
            process.kill()
            process.join()


class User:
    """A user of the command line, with a separate home, store and runtime folder.

    `replay` holds what the user's runs return instead of measuring; it is set by `replays`.
    """

    replay: replay.Replay

    def __init__(self, folder: Path, host: "User | None" = None) -> None:
        """Create the user. With `host`, the user shares the rigs of that other user."""
        self.folder = folder
        self.rigs: Path = folder if host is None else host.rigs
        runtime = self.rigs / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        own = {"XDG_RUNTIME_DIR": str(runtime), "RIGCTL_STORE": str(folder / "store.db"), "HOME": str(folder)}
        self.environment = os.environ | own | {"COLUMNS": "200", "PYTHONPATH": str(Path(__file__).parents[2])}

    def replays(self) -> None:
        """From now on, replay the runs of this user, including runs in processes that commands start."""
        self.replay = replay.Replay(self.folder)
        support = Path(__file__).parent
        self.environment[replay.SCRIPT] = str(self.replay.path)
        self.environment["PYTHONPATH"] = f"{support / 'replaying'}:{support}:{self.environment['PYTHONPATH']}"

    @contextmanager
    def replaying(self) -> Iterator[Self]:
        """Replay the runs of this user. Runs that the script holds are released at the end of the block."""
        self.replays()
        yield self
        self.replay.release()

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "rigctl", *words], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def rigctl(self, *words: str, code: int = 0, deadline_s: float = DEADLINE_S) -> str:
        """Run a command that must end with `code`. Return its standard output followed by its standard error."""
        done = ended(words, self.folder, self.environment, deadline_s)
        out, errors = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == code, f"{words} gave {done.returncode}:\n{out}\n{errors}"
        return out + errors

    def store(self, *, create: bool = False) -> Store:
        return open_store(self.environment["RIGCTL_STORE"], create=create)

    def running(self, *words: str) -> AbstractContextManager[Command]:
        return running(words, self.folder, self.environment)

    def scenario(self, text: str) -> str:
        (self.folder / "s.yaml").write_text(text)
        return "s.yaml"

    def rows(self, level: str = "pairs", *, run: str = "latest", invalid: bool = False) -> list[dict[str, Any]]:
        """Return the rows of an export. Invalid rows, which were measured again, are left out unless `invalid`."""
        exported: list[dict[str, Any]] = json.loads(self.rigctl("export", run, "--format", "json", "--level", level))
        return [row for row in exported if invalid or row.get("status") != "invalid"]

    def findings(self) -> list[str]:
        """Return the codes of all findings on the latest run; a terminal shows only the most important ones."""
        return [finding["code"] for finding in json.loads(self.rigctl("show", "--json"))["findings"]]

    def processes(self) -> dict[int, str]:
        """Return command lines by process id of all processes of this user's rigs, with agents and holders."""
        found = {}
        for pid, words in all_commands():
            with suppress(OSError):
                inherited = Path(f"/proc/{pid}/environ").read_bytes()
                mine = str(self.rigs).encode() in inherited or str(self.rigs) in words
                if mine and (HOLDER.search(words) or AGENT.search(words) or b"RIGCTL_RIG=" in inherited):
                    found[pid] = words
        return found

    def holders(self) -> set[int]:
        """Return the ids of the holder processes of this user's rigs that are up."""
        found = set()
        for state in (self.rigs / "runtime").glob("rigctl/*/state.json"):
            with suppress(OSError):  # the rig has just ended
                found.add(int(json.loads(state.read_text())["holder"]["pid"]))
        return found

    def holder(self) -> str:
        """Return the id of the holder process of this user's only rig; its network namespace is the switch's."""
        (pid,) = self.holders()
        return str(pid)

    def agents(self) -> list[int]:
        return list(self.on_nodes(AGENT))

    def on_nodes(self, sought: re.Pattern[str]) -> dict[int, str]:
        """Return processes on this user's rigs (descendants of the holders) whose command line matches `sought`."""
        holders = self.holders()
        return {pid: words for pid, words in all_commands() if sought.search(words) and ancestors(pid) & holders}


@contextmanager
def kept_up(user: User, rig: str = "gigablox") -> Iterator[None]:
    user.rigctl("rig", "up", rig)
    try:
        yield
    finally:
        user.rigctl("rig", "down", rig)


@contextmanager
def traffic(user: User, *words: str, by: Callable[[], Iterable[int]] | None = None) -> Iterator[Command]:
    """Start a run without report, and yield its command once 1 MB has crossed the data interface of a node.

    `by` returns the processes that make the traffic, by default the agents.
    """
    first: dict[int, int] = {}

    def flows() -> bool:
        # Skip 0, a command that has not yet entered its node, because the node's interface has counts of earlier runs.
        now = {pid: count for pid in (by or user.agents)() if (count := carried(pid))}
        return any(count - first.setdefault(pid, count) > TRAFFIC_BYTES for pid, count in now.items())

    with running(("run", "--no-report", *words), user.folder, user.environment) as command:
        eventually(flows, "traffic")
        yield command


def listening_in(user: User, node: str) -> int:
    """Return the number of listening TCP ports over IPv4 on a node of the rig gigablox."""
    table = user.rigctl("rig", "exec", "gigablox", node, "--", "cat /proc/net/tcp")
    return [line.split()[3] for line in table.splitlines() if ":" in line].count("0A")


def carried(pid: int, interface: str = "eth0") -> int:
    """Return bytes received and sent by an interface of the process's node; 0 if the process ended or is in no node."""
    with suppress(OSError):
        if Path(f"/proc/{pid}/ns/net").samefile("/proc/self/ns/net"):
            return 0
        for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines():
            name, _, counts = line.strip().partition(":")
            if name == interface:
                return int(counts.split()[0]) + int(counts.split()[8])
    return 0

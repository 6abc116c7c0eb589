"""Torture tests: a rig that stays up, commands that are killed or cut off on it, and a check of what they leave.

The rig is a virtual one (`ground`), or hosts with OpenSSH, of which each can lose its SSH alone (`lab_ground`). After
each cut, `Ground.aftermath` checks the store and the nodes' settings, processes, ports and files. It waits for a number
of looks instead of a time, so that a test that is stopped for minutes does not fail.
"""

import contextlib
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import pytest
from openssh_lab import Lab, laboratory
from processes import command_line, output_of
from user import INVALID, User, begun, ended, kept_up

from rigctl.figures import Level, columns_at
from rigctl.store import open_store

NODES: Final = ("n1", "n2", "n3", "n4")
CELLS: Final = """rig: RIG
pairs: [n1 -> n2, n3 -> n4]
duration: 250ms
max_skew: 2s
"""
CONDITIONS: Final = """conditions:
  one: {mtu: 1400, sysctl: {net.ipv4.tcp_sack: 0, net.ipv4.tcp_rmem: "4096 65536 1048576"}, offload: {gro: off}}
  two: {mtu: 1300, resize: true}
matrix: {window: [64K], parallel: [1, 2]}
"""
"""Conditions with all kinds of settings. In tests below 0.25 s, the processors' shares are unknown."""
BACK_LOOKS: Final = 300
"""Number of looks, 0.1 s apart, until the nodes must be as before; a watchdog takes up to 15 s."""
COMMAND_S: Final = 900.0
"""Deadline for a command that must end by itself; long, because the test itself may be stopped meanwhile."""
_ENDED: Final = re.compile(r" *(\d+)/\d+ +(?:(\d+)/\d+ )?")
"""Matches a line of progress: number of the test and, with several repetitions, of the repetition."""
# Prints the state of all nodes, each line after the name of the namespace, without secret and changing sysctls.
_LOOK: Final = r"""
for n in $SPACES; do
  ip netns exec "$n" sh -c '
    grep -rs . /proc/sys/net/ipv4 /proc/sys/net/ipv6/conf/eth0 /proc/sys/net/core | grep -v -e fastopen_key \
      -e /route/ -e inet_peer -e netdev_rss_key -e ndisc_ -e _lft -e stable_secret | sed "s/^/settings /"
    ip -o link | sed -e "s/^[0-9]*: /link /" -e "s/ state .*//"
    ethtool -k eth0 2>/dev/null | sed "s/^/offload /"
    nft list ruleset 2>/dev/null | sed "s/^/nft /"
    ss -Htuna | grep -v -e "TIME-WAIT" -e ":22 " | sed -e "s/  */ /g" -e "s/^/port /"
    sed -n "s/.* @rigctl-lock-/lock /p" /proc/net/unix
    true
  ' | sed "s/^/$n /"
done
for h in $HOMES; do find "$h" ! -type d; done
"""

Key = tuple[str, int, int, int]
Shape = dict[tuple[Any, ...], tuple[Any, ...]]
"""Rows of a table without measured values: by key, the settings and the names of the unknown fields."""
MARKS: Final = [
    pytest.mark.torture,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="looks into namespaces of the network"),
    pytest.mark.timeout(0),
]


def until(holds: Callable[[], bool]) -> bool:
    """Return whether `holds` was true within `BACK_LOOKS` looks. Time during which this process is stopped is free."""
    for _ in range(BACK_LOOKS):
        if holds():
            return True
        time.sleep(0.1)
    return holds()


@dataclass(frozen=True)
class Place:
    """The place of the nodes: how to enter their machine, their network namespaces, homes and processes."""

    enter: tuple[str, ...]
    spaces: Mapping[str, str]
    homes: Mapping[str, str]
    pids: Callable[[], set[int]]
    network: Path | None = None  # the controller's network namespace

    def script(self, script: str) -> str:
        """Return the output of a shell script that can reach the nodes' namespaces by `ip netns`."""
        known = f'SPACES="{" ".join(self.spaces.values())}"\nHOMES="{" ".join(self.homes.values())}"\n'
        return output_of([*self.enter, "sh", "-c", known + script], timeout=COMMAND_S, stdin=subprocess.DEVNULL)

    def on(self, node: str, script: str) -> str:
        """Return the output of a shell script in the network namespace of a node."""
        return self.script(f"exec ip netns exec {self.spaces[node]} sh -c {shlex.quote(script)}")


class Ground:
    """A rig that stays up for one user, with the state of its nodes before the test."""

    def __init__(self, user: User, place: Place, text: str) -> None:
        self.user, self.place, self.scenario = user, place, user.scenario(text)
        self.store = Path(user.environment["RIGCTL_STORE"])
        for name, variable in (("shown", "RIGCTL_DISPLAY_FOLDER"), ("tmp", "TMPDIR")):
            (user.folder / name).mkdir()
            user.environment[variable] = str(user.folder / name)
        self._errors = user.folder / "errors"
        self._files = {path.name for path in user.folder.iterdir()}
        self._kept: dict[Key, str] = {}
        self.before: set[str] = set()
        self.spoilt: set[tuple[int, int]] = set()  # tests and repetitions that were invalid in the undisturbed run

    # --- the rig ---

    def look(self) -> set[str]:
        """Return the nodes' settings, links, ports, locks, files and processes as lines of text."""
        return set(self.place.script(_LOOK).splitlines()) | {f"process {words}" for words in self.processes().values()}

    def processes(self) -> dict[int, str]:
        found = {}
        for pid in self.place.pids():
            with contextlib.suppress(OSError):
                if words := command_line(pid):  # empty if the process is ending
                    found[pid] = f"{Path(f'/proc/{pid}/comm').read_text().strip()}: {words}"
        return found

    def agents(self, guards: bool = False) -> list[int]:
        """Return the ids of the agents on the nodes, or with `guards` of the processes that guard their settings."""
        return [
            pid for pid, words in self.processes().items()
            if "/agent-" in words and "--watchdog" in words and " -c " not in words
            and words.startswith("rigctl-guard: ") == guards
        ]  # fmt: skip

    # --- commands ---

    def run_words(self, *more: str) -> tuple[str, ...]:
        """Return the arguments of `rigctl run` with a report; a run in the store is resumed."""
        run = self.run_id()
        resume = ("--resume", run) if run else ()
        return ("run", self.scenario, "--report", "page.html", *resume, *more)

    def begin(self, *words: str) -> BaseProcess:
        files = [self.user.folder / "out", self._errors]
        self._errors.unlink(missing_ok=True)
        return begun(words, self.user.folder, self.user.environment, files, network=self.place.network)

    def kill(self, process: BaseProcess) -> bool:
        """Kill a command and its process group by SIGKILL. Return whether the command still ran."""
        running = process.is_alive()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.kill()
        process.join(COMMAND_S)
        return running

    def was_measuring(self) -> bool:
        """Return whether the latest command had begun a test."""
        return self._errors.exists() and " Test " in f" {self._errors.read_text(errors='replace')}"

    def complete(self) -> None:
        """Resume the run until nothing is missing; only repetitions that a busy machine made invalid may prevent it."""
        for _ in range(4):
            code, errors = self.run()
            if code == 0:
                assert list(self.user.folder.glob(".page.html.*")) == []
                return
            assert code == 3, (code, errors)
            assert INVALID in errors or "  failed: " not in errors, errors
        assert set(self.repetitions().values()) <= {"ok", "invalid"}

    def run(self) -> tuple[int, str]:
        user = self.user
        done = ended(self.run_words(), user.folder, user.environment, COMMAND_S, network=self.place.network)
        return done.returncode, done.stderr.decode()

    def fresh(self) -> None:
        """Remove the store and the page, so that the next run starts from the beginning."""
        for path in [*self.store.parent.glob("store.db*"), self.user.folder / "page.html"]:
            path.unlink(missing_ok=True)
        self._kept.clear()

    # --- the store ---

    def run_id(self) -> str | None:
        if not self.store.exists():
            return None
        with open_store(str(self.store)) as store:
            return store.run_ids()[0] if store.run_ids() else None

    def repetitions(self) -> dict[Key, str]:
        """Return the status of each stored repetition. Fail if a repetition is stored twice, lost or changed."""
        if self.run_id() is None:
            return {}
        with open_store(str(self.store)) as store:
            (run,) = store.run_ids()
            found = store.repetitions(run)
        keyed = {(run, each.cell, each.repetition, each.attempt): each for each in found}
        statuses = {key: str(each.status) for key, each in keyed.items()}
        assert len(statuses) == len(found), "a repetition is stored twice"
        valid = [key[:3] for key, status in statuses.items() if status == "ok"]
        assert len(valid) == len(set(valid)), "a repetition was measured again although it was valid"
        contents = {key: repr(each) for key, each in keyed.items()}
        for key, content in self._kept.items():
            assert contents.get(key) == content, f"{key} was stored and is lost or changed"
        # A repetition that lacks some of its pairs has a reason, and is measured again.
        whole = [key for key, each in keyed.items() if each.reason is None and statuses[key] == "ok"]
        self._kept = {key: contents[key] for key in whole}
        return statuses

    def invalid(self) -> set[tuple[int, int]]:
        return {key[1:3] for key, status in self.repetitions().items() if status == "invalid"}

    def _store_is_whole(self) -> None:
        if not self.store.exists():
            return
        with contextlib.closing(sqlite3.connect(self.store)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        stored = {key[1:] for key in self.repetitions()}
        told = [
            (int(match[1]), int(match[2] or 1))
            for line in (self._errors.read_text(errors="replace").splitlines() if self._errors.exists() else ())
            if (match := _ENDED.match(line))
        ]
        # Progress reports a repetition after it is stored.
        lost = [key for key in told if not any(key == have[:2] for have in stored)]
        assert lost == [], f"finished, but not stored: {lost}"

    # --- the aftermath ---

    def aftermath(self) -> bool:
        """Wait until the nodes are as before; check store and folders. Return whether anything had to be restored."""
        found: list[set[str]] = []

        def back() -> bool:
            found.append(self.look())
            return found[-1] == self.before

        assert until(back), f"more: {sorted(found[-1] - self.before)}\nless: {sorted(self.before - found[-1])}"
        self._store_is_whole()
        self._folders_are_clean()
        return len(found) > 1

    def _folders_are_clean(self) -> None:
        folder = self.user.folder
        # A killed controller leaves a partial page until the next controller writes the page, and SQLite's empty
        # journal of a new store until the next write to the store.
        known = re.compile(r"store\.db(-wal|-shm|-journal)?|page\.html|\.page\.html\.\w+\.part|out|errors|\.cache")
        assert {path.name for path in folder.iterdir() if not known.fullmatch(path.name)} - self._files == set()
        assert list((folder / "tmp").iterdir()) == []
        states = [path.name for at in (folder / "shown").glob("*") for path in at.iterdir()]
        # States of killed runs remain until a run removes them a minute later; `.new` files are half-written states.
        assert all(re.fullmatch(r"\d+\.json|\.\d+\.new", name) for name in states), states
        page = folder / "page.html"
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")

    # --- equal tables ---

    def tables(self) -> dict[str, Shape]:
        return {level: self._shape(level) for level in ("cells", "pairs", "flows")}

    def _shape(self, level: str) -> Shape:
        names = ("cell", "repetition", "source", "destination", "direction", "flow")
        asked = ("test", "condition", "pairs", "window_bytes", "mss", "mtu", "parallel", "status")
        # Shares of processors are unknown in a short test whose samples came late.
        every = [column.name for column in columns_at(Level[level.upper()])]
        known = [name for name in every if name not in ("run", "attempt") and "cpu_" not in name]
        rows = [row for row in self.user.rows(level) if row["status"] == "ok"]
        shape: Shape = {}
        for row in rows:
            unknown = [name for name in known if row.get(name) is None]
            shape[tuple(map(row.get, names))] = (*map(row.get, asked), *unknown)
        assert len(shape) == len(rows), "a row is there twice"
        return shape

    def ends_as(self, expected: dict[str, Shape]) -> None:
        """Complete the run, and compare its tables with the tables of an undisturbed run.

        A row that a busy machine made invalid in one of the two runs is ignored.
        """
        self.complete()
        self.aftermath()
        spoilt = self.invalid() | self.spoilt
        for level, rows in self.tables().items():
            for key in sorted({*rows, *expected[level]}, key=repr):
                now, then = rows.get(key), expected[level].get(key)
                if now != then and (key[:2] not in spoilt or (now is not None and then is not None)):
                    differ = set(now or ()) ^ set(then or ())
                    raise AssertionError(f"{level} {key}: {now}\nwhere an uninterrupted run has {then}: {differ}")


@contextmanager
def ground(user: User, text: str) -> Iterator[Ground]:
    """Yield a virtual rig of four nodes on one switch that is up; afterwards, check that nothing of it is left."""
    nodes = "".join(f"  {name}:\n" for name in NODES)
    (user.folder / "fire.yaml").write_text(f"virtual: namespaces\nlinks: {{rate: 1G, mtu: 1500}}\nnodes:\n{nodes}")
    with kept_up(user, "fire.yaml"):
        holder = user.holder()
        homes = {name: f"/run/rigctl/home/{name}" for name in NODES}
        enter = ("nsenter", "-t", holder, "-m", "-p", "-n")
        place = Place(enter, {name: name for name in NODES}, homes, lambda: _in_space_of(holder))
        yield Ground(user, place, text.replace("RIG", "fire.yaml"))
    assert until(lambda: not user.processes()), user.processes()
    assert [path.name for path in (user.folder / "runtime" / "rigctl").iterdir() if path.is_dir()] == []


def _in_space_of(holder: str) -> set[int]:
    """Everything in the process namespace of a virtual rig; what looks into it is there, too, for a moment."""
    space, found = Path(f"/proc/{holder}/ns/pid").readlink(), set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "ns/pid").readlink() == space:
                found.add(int(entry.name))
    return found


@contextmanager
def lab_ground(user: User, text: str) -> Iterator[tuple[Ground, Lab]]:
    """Yield four hosts with OpenSSH and the controller's host on a bridge. SSH and data use the same links."""
    with laboratory(user.folder, NODES) as lab:
        spaces = {name: lab.host(name) for name in NODES}
        homes = {name: str(user.folder / name) for name in NODES}
        place = Place((), spaces, homes, lambda: {pid for name in NODES for pid in lab.processes(name)}, lab.network)
        yield Ground(user, place, text.replace("RIG", "lab.yaml")), lab


def whole(made: Ground) -> dict[str, Shape]:
    made.complete()
    assert until(lambda: not made.agents() and not made.agents(guards=True))
    made.before = made.look()
    made.aftermath()
    tables, made.spoilt = made.tables(), made.invalid()
    assert tables["flows"]
    made.fresh()
    return tables

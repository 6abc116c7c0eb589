"""Whatever is killed or cut, and whenever: the old host settings are back, and nothing is left on a node.

Real runs over real SSH with real agents, on a virtual rig that stays up.
"""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import asyncssh
import pytest
from rich.console import Console
from virtual_rigs import login, rig

from rigctl.records import Status
from rigctl.runner.run import measure_run
from rigctl.scenario.load import Overrides, load_plan
from rigctl.store import open_store
from rigctl.virtual.provide import down, up

BACK_S = 20.0
NODES = ("a", "b")
# Of the queueing discipline kind and handle: a bucket of a virtual rig follows the MTU a moment later.
SETTINGS = (
    "cat /sys/class/net/eth0/mtu /proc/sys/net/ipv4/tcp_sack /proc/sys/net/ipv4/tcp_rmem; "
    "ethtool -k eth0 | grep -w gro; tc qdisc show dev eth0 | cut -d' ' -f1-3; "
    "cat /sys/class/net/eth0/queues/rx-*/rps_cpus"
)
# Anything of ours that runs on the node or lies beside the agent; the bracket keeps grep from finding itself.
LEFT = (
    "ls $HOME/.cache/rigctl/* 2>/dev/null | grep settings-; "
    "for p in /proc/[0-9]*; do "
    "tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep \"$HOME/.cache/rigctl/.*/[a]gent-\"; done; true"
)
SCENARIO = """
rig: RIG
pairs: [a -> b]
duration: 400ms
max_skew: 1s
conditions:
  one:
    mtu: 1400
    qdisc: {kind: pfifo, limit: 500}
    sysctl: {net.ipv4.tcp_sack: 0, net.ipv4.tcp_rmem: "4096 65536 1048576"}
    offload: {gro: off}
  two: {mtu: 1300, resize: true}
matrix: {window: [32K, 64K], parallel: [1, 2]}
"""
if os.geteuid() == 0:  # in a user namespace the kernel lets nobody set rps_cpus
    SCENARIO = SCENARIO.replace("    mtu: 1400", "    mtu: 1400\n    rps: all")

Shells = dict[str, asyncssh.SSHClientConnection]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario of two conditions; virtual rigs of our own."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return tmp_path


@asynccontextmanager
async def standing(folder: Path) -> AsyncIterator[Shells]:
    """A shell on each node of a rig that stays up."""
    made = rig(folder, *NODES)
    (folder / "s.yaml").write_text(SCENARIO.replace("RIG", str(made.source)))
    ready, _, _ = await up(made)
    try:
        async with login(ready, "a") as a, login(ready, "b") as b:
            yield {"a": a, "b": b}
    finally:
        await down(made)


async def outputs(shells: Shells, command: str) -> tuple[str, ...]:
    """What `command` prints on each node."""
    return tuple([str((await shells[name].run(command, check=False)).stdout) for name in NODES])


async def restored(shells: Shells, before: tuple[str, ...], within_s: float = BACK_S) -> float:
    """Seconds until the old settings are back on all nodes and nothing is left; fails after `within_s`."""
    began = time.monotonic()
    while True:
        now, left = await outputs(shells, SETTINGS), await outputs(shells, LEFT)
        if now == before and not any(left):
            return time.monotonic() - began
        assert time.monotonic() - began < within_s, f"not back: {now}, was {before}; left: {left}"
        await asyncio.sleep(0.02)


def controller(folder: str) -> None:
    """A whole run, in a process of its own."""
    os.environ["XDG_RUNTIME_DIR"] = f"{folder}/runtime"  # the server has that of the first test
    plan, inventory = load_plan(f"{folder}/s.yaml", Overrides())
    with open_store(f"{folder}/store-{os.getpid()}.db") as store:
        measure_run(plan, inventory, store, Console(file=open(os.devnull, "w")), quiet=True)  # noqa: SIM115, PTH123


def started(folder: Path) -> BaseProcess:
    # A server process with everything imported forks each controller: a kill hits a run, not its imports.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rigctl.runner.run", "rigctl.scenario.load", "rigctl.remote.agent", "asyncssh"])
    process = context.Process(target=controller, args=(str(folder),))
    process.start()
    return process


async def changed(shells: Shells, before: tuple[str, ...], within_s: float = 30) -> None:
    """Wait until a condition holds on both nodes."""
    began = time.monotonic()
    while any(one == other for one, other in zip(await outputs(shells, SETTINGS), before, strict=True)):
        assert time.monotonic() - began < within_s, "the condition was never applied"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def under_a_condition(place: Path) -> AsyncIterator[tuple[BaseProcess, Shells, tuple[str, ...]]]:
    """A run whose condition holds on both nodes, a shell on each, and the settings before."""
    async with standing(place) as shells:
        before = await outputs(shells, SETTINGS)
        process = started(place)
        await changed(shells, before)
        yield process, shells, before


async def test_a_killed_agent_leaves_its_node_as_it_was_and_the_run_goes_on(place: Path) -> None:
    async with under_a_condition(place) as (process, shells, before):
        await shells["a"].run('pkill -9 "^agent-"')  # by its name, which the guard does not have
        await asyncio.to_thread(process.join, 60)
        assert process.exitcode == 0
        await restored(shells, before)
        (stored,) = place.glob("store-*.db")
        with open_store(str(stored)) as store:
            repetitions = store.repetitions(store.run().run)
            granted = store.run().facts["b"]["condition one"]
        assert granted["qdisc"].startswith("tbf rate ")
        assert granted["qdisc"].endswith(" -> pfifo limit 500")
        assert granted.get("rps", "off -> 0").startswith("off -> 0")
        measured = {one.cell for one in repetitions if one.status is Status.OK}
        assert len({one.cell for one in repetitions} - measured) <= 1  # the one it hit, at most
        assert {flow.sender.tcp.mss for one in repetitions for flow in one.flows if flow.sender} <= {1348, 1248}


async def test_an_agent_killed_with_its_controller_is_followed_by_its_guard(place: Path) -> None:
    async with under_a_condition(place) as (process, shells, before):
        os.kill(process.pid or 0, signal.SIGSTOP)  # it can't open the node anew
        await shells["a"].run('pkill -9 "^agent-"')
        began = time.monotonic()
        while (await outputs(shells, SETTINGS))[0] != before[0]:
            assert time.monotonic() - began < 20, "the guard did not restore"
        process.kill()
        process.join(5)
        await restored(shells, before)


async def test_agent_and_guard_both_killed_the_next_contact_restores(place: Path) -> None:
    async with under_a_condition(place) as (process, shells, before):
        os.kill(process.pid or 0, signal.SIGSTOP)
        for shell in shells.values():
            # Stopped first: a guard that sees its agent die in between would restore.
            await shell.run("pkill -STOP -f '[.]cache/rigctl/.*/agent-'; pkill -KILL -f '[.]cache/rigctl/.*/agent-'")
        process.kill()
        process.join(5)
        after = await outputs(shells, SETTINGS)
        assert all(now != old for now, old in zip(after, before, strict=True))  # nobody was left to restore
        assert all("settings-" in left for left in await outputs(shells, LEFT))
        (place / "s.yaml").write_text(f"rig: {next(place.glob('test*.yaml'))}\npairs: [a -> b]\nduration: 100ms\n")
        contact = started(place)
        await asyncio.to_thread(contact.join, 60)
        assert contact.exitcode == 0
        with open_store(f"{place}/store-{contact.pid}.db", create=False) as store:
            known = store.run().facts
        assert [known[node]["mtu"] for node in NODES] == [1500, 1500], "facts are those after the restoration"
        assert await outputs(shells, SETTINGS) == before
        await restored(shells, before)


async def test_agent_and_guard_both_killed_the_run_itself_restores_at_its_end(place: Path) -> None:
    async with standing(place) as shells:
        before = await outputs(shells, SETTINGS)
        one_test = SCENARIO.replace("400ms", "5s").partition("matrix:")[0] + "matrix: {condition: [one]}\n"
        (place / "s.yaml").write_text(one_test.replace("RIG", str(next(place.glob("test*.yaml")))))
        process = started(place)
        await changed(shells, before)
        for shell in shells.values():
            await shell.run("pkill -STOP -f '[.]cache/rigctl/.*/agent-'; pkill -KILL -f '[.]cache/rigctl/.*/agent-'")
        await asyncio.to_thread(process.join, 60)
        assert process.exitcode == 0
        assert await outputs(shells, SETTINGS) == before
        await restored(shells, before)

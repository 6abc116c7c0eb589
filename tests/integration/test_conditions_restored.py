"""Whatever is killed or cut, and whenever: the old host settings are back, and nothing is left on a node.

Real runs over real SSH with real agents, on a virtual rig that stays up.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import asyncssh
import pytest
from processes import DEADLINE_S, eventually_async
from rich.console import Console
from virtual_rigs import kept_up, login, rig

from rigctl.records import Status
from rigctl.rig.inventory import Rig
from rigctl.runner.run import measure_run
from rigctl.scenario.load import Overrides, load_plan
from rigctl.store import open_store

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
# The first test lasts until something of it is killed; the others, under each condition, end by themselves.
ENDLESS = 10**9
SCENARIO = """
rig: RIG
test: pingpong
size: 1
pairs: [a -> b]
duration: 60s
max_skew: 60s
conditions:
  one:
    mtu: 1400
    qdisc: {kind: pfifo, limit: 500}
    sysctl: {net.ipv4.tcp_sack: 0, net.ipv4.tcp_rmem: "4096 65536 1048576"}
    offload: {gro: off}
  two: {mtu: 1300, resize: true}
"""
ONE_TEST = f"matrix: {{condition: [one], iterations: [{ENDLESS}]}}\n"
if os.geteuid() == 0:  # in a user namespace the kernel lets nobody set rps_cpus
    SCENARIO = SCENARIO.replace("    mtu: 1400", "    mtu: 1400\n    rps: all")

Shells = dict[str, asyncssh.SSHClientConnection]
Settings = tuple[str, ...]
"""Of each node."""


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with kept_up(rig(tmp_path_factory.mktemp("rig"), *NODES)) as started:
        yield started


@pytest.fixture
async def shells(ready: Rig) -> AsyncIterator[Shells]:
    async with login(ready, "a") as a, login(ready, "b") as b:
        yield {"a": a, "b": b}


async def outputs(shells: Shells, command: str) -> Settings:
    return tuple([str((await shells[name].run(command, check=False)).stdout) for name in NODES])


async def restored(shells: Shells, before: Settings) -> None:
    """Wait until the old settings are back on all nodes and nothing is left."""

    async def back() -> bool:
        return await outputs(shells, SETTINGS) == before and not any(await outputs(shells, LEFT))

    await eventually_async(back, f"as before: {before}")


def controller(scenario: str, place: str, store: str) -> None:
    os.environ["XDG_RUNTIME_DIR"] = place
    plan, inventory = load_plan(scenario, Overrides())
    with open_store(store) as opened:
        measure_run(plan, inventory, opened, Console(file=open(os.devnull, "w")), quiet=True)  # noqa: SIM115, PTH123


def started(ready: Rig, folder: Path, scenario: str) -> BaseProcess:
    assert ready.source is not None
    file, place = folder / "s.yaml", ready.source.parent
    file.write_text(scenario.replace("RIG", str(ready.source)))
    # A server process with everything imported forks each controller: a kill hits a run, not its imports.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rigctl.runner.run", "rigctl.scenario.load", "rigctl.remote.agent", "asyncssh"])
    process = context.Process(target=controller, args=(str(file), str(place), str(folder / "s.db")))
    process.start()
    return process


@asynccontextmanager
async def under_a_condition(
    ready: Rig, shells: Shells, folder: Path, tests: str
) -> AsyncIterator[tuple[BaseProcess, Settings]]:
    """A run whose condition holds on both nodes, and the settings before."""
    before = await outputs(shells, SETTINGS)
    process = started(ready, folder, SCENARIO + tests)

    async def changed() -> bool:
        return all(now != old for now, old in zip(await outputs(shells, SETTINGS), before, strict=True))

    try:
        await eventually_async(changed)
        yield process, before
    finally:
        process.kill()
        process.join(DEADLINE_S)


async def kill_with_guards(shells: Shells) -> None:
    for shell in shells.values():
        # Stopped first: a guard that sees its agent die in between would restore.
        await shell.run("pkill -STOP -f '[.]cache/rigctl/.*/agent-'; pkill -KILL -f '[.]cache/rigctl/.*/agent-'")


async def test_a_killed_agent_leaves_no_trace_and_the_run_goes_on(ready: Rig, shells: Shells, tmp_path: Path) -> None:
    tests = f"matrix: {{iterations: [{ENDLESS}, 100]}}\nexclude: [{{condition: two, iterations: {ENDLESS}}}]\n"
    async with under_a_condition(ready, shells, tmp_path, tests) as (process, before):
        await shells["a"].run('pkill -9 "^agent-"')  # by its name, which the guard does not have
        await asyncio.to_thread(process.join, DEADLINE_S)
        assert process.exitcode == 0
        await restored(shells, before)
    with open_store(str(tmp_path / "s.db")) as store:
        repetitions = store.repetitions(store.run().run)
        granted = store.run().facts["b"]["condition one"]
    assert granted["qdisc"].startswith("tbf rate ")
    assert granted["qdisc"].endswith(" -> pfifo limit 500")
    assert granted.get("rps", "off -> 0").startswith("off -> 0")
    assert [one.status for one in repetitions] == [Status.FAILED, Status.OK, Status.OK]
    senders = [flow.sender for one in repetitions[1:] for flow in one.flows]
    assert [sender.tcp.mss for sender in senders if sender] == [1348, 1248]


async def test_with_agent_and_controller_killed_the_guard_restores(ready: Rig, shells: Shells, tmp_path: Path) -> None:
    async with under_a_condition(ready, shells, tmp_path, ONE_TEST) as (process, before):
        os.kill(process.pid or 0, signal.SIGSTOP)  # it can't open the node anew
        await shells["a"].run('pkill -9 "^agent-"')

        async def followed() -> bool:
            return (await outputs(shells, SETTINGS))[0] == before[0]

        await eventually_async(followed, "the guard restores")
    await restored(shells, before)


async def test_agent_and_guard_both_killed_the_next_contact_restores(
    ready: Rig, shells: Shells, tmp_path: Path
) -> None:
    async with under_a_condition(ready, shells, tmp_path, ONE_TEST) as (process, before):
        os.kill(process.pid or 0, signal.SIGSTOP)
        await kill_with_guards(shells)
    after = await outputs(shells, SETTINGS)
    assert all(now != old for now, old in zip(after, before, strict=True))  # nobody was left to restore
    assert all("settings-" in left for left in await outputs(shells, LEFT))
    other = tmp_path / "other"
    other.mkdir()
    contact = started(ready, other, "rig: RIG\npairs: [a -> b]\nduration: 100ms\nmax_skew: 60s\n")
    await asyncio.to_thread(contact.join, DEADLINE_S)
    assert contact.exitcode == 0
    with open_store(str(other / "s.db"), create=False) as store:
        known = store.run().facts
    assert [known[node]["mtu"] for node in NODES] == [1500, 1500], "facts are those after the restoration"
    assert await outputs(shells, SETTINGS) == before
    await restored(shells, before)


async def test_with_agent_and_guard_killed_the_run_itself_restores(ready: Rig, shells: Shells, tmp_path: Path) -> None:
    async with under_a_condition(ready, shells, tmp_path, ONE_TEST) as (process, before):
        await kill_with_guards(shells)
        await asyncio.to_thread(process.join, DEADLINE_S)
        assert process.exitcode == 0
        assert await outputs(shells, SETTINGS) == before
        await restored(shells, before)

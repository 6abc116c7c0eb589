"""Whatever is killed or cut, and whenever: the old host settings are back, and nothing is left on a node.

Real runs over real SSH with real agents, on a virtual rig that stays up.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import asyncssh
import pytest
from processes import eventually_async
from user import Command, running
from virtual_rigs import kept_up, login, rig

from rigctl.records import Status
from rigctl.rig.inventory import Rig
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


def started(ready: Rig, folder: Path, scenario: str) -> AbstractContextManager[Command]:
    assert ready.source is not None
    (folder / "s.yaml").write_text(scenario.replace("RIG", str(ready.source)))
    own = {"XDG_RUNTIME_DIR": str(ready.source.parent), "RIGCTL_STORE": str(folder / "s.db")}
    return running(("run", "s.yaml", "--quiet", "--no-report"), folder, os.environ | own)


@asynccontextmanager
async def under_a_condition(
    ready: Rig, shells: Shells, folder: Path, tests: str
) -> AsyncIterator[tuple[Command, Settings]]:
    """A run whose condition holds on both nodes, and the settings before."""
    before = await outputs(shells, SETTINGS)

    async def changed() -> bool:
        return all(now != old for now, old in zip(await outputs(shells, SETTINGS), before, strict=True))

    with started(ready, folder, SCENARIO + tests) as command:
        await eventually_async(changed)
        yield command, before


async def kill_with_guards(shells: Shells) -> None:
    for shell in shells.values():
        # Stopped first: a guard that sees its agent die in between would restore.
        await shell.run("pkill -STOP -f '[.]cache/rigctl/.*/agent-'; pkill -KILL -f '[.]cache/rigctl/.*/agent-'")


async def test_a_killed_agent_leaves_no_trace_and_the_run_goes_on(ready: Rig, shells: Shells, tmp_path: Path) -> None:
    tests = f"matrix: {{iterations: [{ENDLESS}, 100]}}\nexclude: [{{condition: two, iterations: {ENDLESS}}}]\n"
    async with under_a_condition(ready, shells, tmp_path, tests) as (command, before):
        await shells["a"].run('pkill -9 "^agent-"')  # by its name, which the guard does not have
        assert (await asyncio.to_thread(command.ended)).returncode == 3  # one repetition failed
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


async def test_agent_and_guard_both_killed_the_next_contact_restores(
    ready: Rig, shells: Shells, tmp_path: Path
) -> None:
    async with under_a_condition(ready, shells, tmp_path, ONE_TEST) as (command, before):
        os.kill(command.pid, signal.SIGSTOP)
        await kill_with_guards(shells)
    after = await outputs(shells, SETTINGS)
    assert all(now != old for now, old in zip(after, before, strict=True))  # nobody was left to restore
    assert all("settings-" in left for left in await outputs(shells, LEFT))
    other = tmp_path / "other"
    other.mkdir()
    with started(ready, other, "rig: RIG\npairs: [a -> b]\nduration: 100ms\nmax_skew: 60s\n") as contact:
        assert (await asyncio.to_thread(contact.ended)).returncode == 0
    with open_store(str(other / "s.db"), create=False) as store:
        known = store.run().facts
    assert [known[node]["mtu"] for node in NODES] == [1500, 1500], "facts are those after the restoration"
    assert await outputs(shells, SETTINGS) == before
    await restored(shells, before)

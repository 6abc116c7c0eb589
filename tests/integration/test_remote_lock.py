"""One run at a time has a node, and others wait for it: over real SSH, and what becomes of it when somebody dies."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from openssh import Start, places, rig_of
from processes import DEADLINE_S, command_line, eventually_async, running

from rigctl.base.errors import BusyError, NodeError
from rigctl.remote import deploy
from rigctl.remote.agent import Agent
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import connected
from rigctl.remote.lock import Claim, lock_name
from rigctl.remote.session import Session
from rigctl.rig.inventory import Node
from rigctl.runner.nodes import nodes_of

pytestmark = pytest.mark.usefixtures("home")

HOLD = """
import asyncio, pathlib, sys
from rigctl.records import Link
from rigctl.rig.inventory import Node, Rig
from rigctl.runner.nodes import nodes_of

async def hold(name, port, key, known, wait_s):
    node = Node(name, "127.0.0.1", Link(None, None), port=int(port), key=pathlib.Path(key),
                known_hosts=pathlib.Path(known), data_address="127.0.0.1", patience=6)
    async with nodes_of(Rig("r", "", {name: node}, None), "anna@lab7 pid 4711") as nodes:
        said = lambda line: print(line, flush=True)
        await nodes.open_or_wait([name], float(wait_s), said)
        print("had", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold(*sys.argv[1:]))
"""


@asynccontextmanager
async def had(node: Node, holder: str) -> AsyncIterator[Agent]:
    """The agent on a node whose lock `holder` has. The lock is free again after the block."""
    async with connected(node) as host, agent_on(host, Claim(holder)) as agent:
        yield agent
    await eventually_async(lambda: not Path(f"/proc/{agent.hello.pid}").exists())


async def refused(node: Node) -> str:
    async with connected(node) as host:
        with pytest.raises(BusyError) as caught:
            async with agent_on(host, Claim("bob")):
                pass
    return str(caught.value)


async def test_who_has_it_and_since_when_is_told(sshd: Start, name: str) -> None:
    node = sshd().node(name)
    async with had(node, "anna@lab7 pid 4711") as agent:
        assert f" --watchdog {deploy.WATCHDOG_S} " in command_line(agent.hello.pid)  # it lets go if it hears nothing
        since = r"since \d\d:\d\d:\d\d\. Wait for it to end \(--wait 30m\), or end it"
        expected = rf"{name}: in use by anna@lab7 pid 4711, {since} \(on the node: process {agent.hello.pid}\)"
        assert re.fullmatch(expected, await refused(node))
    async with had(node, "bob"):
        pass


@pytest.mark.parametrize("label", ["", " 1 1795000000 root@vm pid 1"], ids=["no label", "a label that no agent wrote"])
async def test_a_stranger_who_has_it_is_an_unknown_program_and_never_the_run_that_waits(
    sshd: Start, name: str, label: str
) -> None:
    node = sshd().node(name)
    said: list[str] = []
    claim = Claim("root@vm pid 1", wait_s=0.1, until_s=time.monotonic() + 0.1, say=said.append)
    with ExitStack() as stranger:
        for text in dict.fromkeys((f"-{label}", "-")):
            taken = stranger.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            taken.bind(f"\0rigctl-lock-{lock_name(node)}-0{text[1:]}")
        for own in (Claim("bob"), claim):
            async with connected(node) as host:
                with pytest.raises(BusyError, match=r"in use by an unknown program.*ss -xap \| grep rigctl-lock-"):
                    async with agent_on(host, own):
                        pass
    assert said == [] or "an unknown program" in said[0]


async def test_a_holder_can_not_write_what_it_likes_into_a_message(sshd: Start, name: str) -> None:
    node = sshd().node(name)
    async with had(node, "a'b\n\x1b[2J; rm ü:x $(id)"):
        assert "in use by a'b??[2J; rm ?:x $(id), since" in await refused(node)


async def test_nodes_that_share_a_host_have_locks_of_their_own(sshd: Start, name: str) -> None:
    server = sshd()
    a, b = server.node(f"{name}a"), server.node(f"{name}b")
    async with had(a, "x"), had(b, "y"):
        assert [places(a)[0][1], places(b)[0][1]] == ["x", "y"]


async def test_the_lock_of_another_user_is_respected_and_can_not_be_removed(sshd: Start, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes a second user")
    server = sshd(sudoers="root ALL=(ALL) ALL\n")  # with a user beside root
    guest, root = server.node(name), replace(server.node(name), user="root")
    server.inside("/mnt/rigguest/authorized_keys").chmod(0o644)
    async with had(root, "root's run") as agent:
        assert "in use by root's run" in await refused(guest)
        async with connected(guest) as there:
            assert (await there.run(f"kill -9 {agent.hello.pid}")).exit_code != 0
    async with had(guest, "a guest"):
        assert "in use by a guest" in await refused(root)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_controller_that_is_killed_lets_go(sshd: Start, name: str, waits: bool) -> None:
    server = sshd()
    node = server.node(name)
    command = [sys.executable, "-c", HOLD, name, str(server.port), str(server.key), str(server.known_hosts)]
    async with AsyncExitStack() as stack:
        if waits:
            await stack.enter_async_context(had(node, "bob"))
        with running([*command, "60" if waits else "0"], stdout=subprocess.PIPE) as controller:
            assert controller.stdout is not None
            line = await asyncio.to_thread(controller.stdout.readline)
            assert line.startswith(f"{name} is in use by bob".encode() if waits else b"had")
            assert "anna@lab7 pid 4711" in {holder for _, holder in places(node).values()}
            controller.kill()
            controller.wait(DEADLINE_S)
            await eventually_async(lambda: "anna@lab7 pid 4711" not in {holder for _, holder in places(node).values()})


async def test_two_runs_that_want_the_same_nodes_in_another_order_both_have_them(sshd: Start, name: str) -> None:
    server, done = sshd("MaxSessions 50"), list[str]()
    names = (f"{name}a", f"{name}b")
    rig = rig_of(*map(server.node, names))

    async def run(who: str, wanted: tuple[str, ...]) -> None:
        for _ in range(2):
            async with nodes_of(rig, who) as nodes:
                outcomes = await nodes.open_or_wait(wanted, 60, lambda _: None)
                assert not [outcome for outcome in outcomes.values() if isinstance(outcome, NodeError)]
                done.append(who)

    async with asyncio.TaskGroup() as group:
        group.create_task(run("x", names))
        group.create_task(run("y", names[::-1]))
    assert sorted(done) == ["x"] * 2 + ["y"] * 2


async def test_a_node_that_others_wait_for_is_had_again_after_its_connection_was_lost(sshd: Start, name: str) -> None:
    node, said = sshd().node(name), list[str]()
    async with nodes_of(rig_of(node), "anna") as nodes, nodes_of(rig_of(node), "bob") as others:
        ((_, agent),) = (await nodes.open([name])).values()  # type: ignore[misc]
        waiting = asyncio.create_task(others.open_or_wait([name], 60, said.append))
        await eventually_async(lambda: any("in use by anna" in line for line in said))
        for pid in places(node).values():
            os.kill(pid[0], signal.SIGSTOP)  # nobody moves up meanwhile
        os.kill(agent.hello.pid, signal.SIGKILL)
        outcome = (await nodes.open([name]))[name]
        while isinstance(outcome, NodeError) or outcome[1] is agent:
            outcome = (await nodes.open([name]))[name]
        assert places(node)[0] == (outcome[1].hello.pid, "anna")
        waiting.cancel()
        for process, _ in places(node).values():
            os.kill(process, signal.SIGCONT)


async def test_a_lock_that_a_lost_connection_of_this_run_left_is_waited_for(sshd: Start, name: str) -> None:
    node = sshd().node(name)
    async with connected(node) as before:
        async with agent_on(before, Claim("anna@lab7 pid 12")) as left:
            mine = Session(rig_of(node), name, Claim("anna@lab7 pid 12", had_it=True))
            other = Session(rig_of(node), name, Claim("anna@lab7 pid 1"))
            with pytest.raises(BusyError, match="in use by anna@lab7 pid 12"):
                await other.opened()
            await other.close()
            assert mine.usable
            assert places(node)[0] == (left.hello.pid, "anna@lab7 pid 12")
        _, agent = await mine.opened()
        assert not agent.ended
        await mine.close()
    await eventually_async(lambda: not places(node))

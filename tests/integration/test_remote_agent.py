"""The agent on a real node: pushed there and started; one run at a time has the node, and others wait for it."""

import asyncio
import hashlib
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from openssh import Start, places, rig_of
from processes import command_line, eventually_async, mounted

from rigctl.base.errors import BusyError, NodeError
from rigctl.remote.agent import Agent
from rigctl.remote.build import host_machine
from rigctl.remote.deploy import WATCHDOG_S, agent_on, deploy
from rigctl.remote.host import Host, connect_node
from rigctl.remote.lock import LockRequest, lock_name
from rigctl.remote.session import Session
from rigctl.rig.inventory import Node
from rigctl.runner.nodes import nodes_of

pytestmark = pytest.mark.usefixtures("home")


@asynccontextmanager
async def had(node: Node, holder: str) -> AsyncIterator[Agent]:
    """The agent on a node whose lock `holder` has. The lock is free again after the block."""
    async with connect_node(node) as host, agent_on(host, LockRequest(holder)) as agent:
        yield agent
    await eventually_async(lambda: not Path(f"/proc/{agent.hello.pid}").exists())


async def refused(node: Node) -> str:
    async with connect_node(node) as host:
        with pytest.raises(BusyError) as caught:
            async with agent_on(host, LockRequest("bob")):
                pass
    return str(caught.value)


async def test_who_has_it_and_since_when_is_told_and_nobody_writes_more_there(sshd: Start, name: str) -> None:
    node = sshd().node(name)
    async with had(node, "anna@lab7 pid 4711") as agent:
        assert f" --watchdog {WATCHDOG_S} " in command_line(agent.hello.pid)  # it lets go if it hears nothing
        since = r"since \d\d:\d\d:\d\d\. Wait for it to end \(--wait 30m\), or end it"
        expected = rf"{name}: in use by anna@lab7 pid 4711, {since} \(on the node: process {agent.hello.pid}\)"
        assert re.fullmatch(expected, await refused(node))
    async with had(node, "a'b\n\x1b[2J; rm ü:x $(id)"):
        assert "in use by a'b??[2J; rm ?:x $(id), since" in await refused(node)


@pytest.mark.parametrize("label", ["", " 1 1795000000 root@vm pid 1"], ids=["no label", "a label that no agent wrote"])
async def test_a_stranger_who_has_it_is_an_unknown_program_and_never_the_run_that_waits(
    sshd: Start, name: str, label: str
) -> None:
    node = sshd().node(name)
    said: list[str] = []
    claim = LockRequest("root@vm pid 1", wait_s=0.1, until_s=time.monotonic() + 0.1, say=said.append)
    with ExitStack() as stranger:
        for text in dict.fromkeys((f"-{label}", "-")):
            taken = stranger.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            taken.bind(f"\0rigctl-lock-{lock_name(node)}-0{text[1:]}")
        for own in (LockRequest("bob"), claim):
            async with connect_node(node) as host:
                with pytest.raises(BusyError, match=r"in use by an unknown program.*ss -xap \| grep rigctl-lock-"):
                    async with agent_on(host, own):
                        pass
    assert said == [] or "an unknown program" in said[0]


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
        async with connect_node(guest) as there:
            assert (await there.run(f"kill -9 {agent.hello.pid}")).exit_code != 0
    async with had(guest, "a guest"):
        assert "in use by a guest" in await refused(root)


async def test_a_connection_that_is_cut_lets_go(sshd: Start, name: str) -> None:
    server = sshd()
    async with connect_node(server.node(name)) as host, agent_on(host, LockRequest("anna@lab7 pid 4711")):
        assert [holder for _, holder in places(server.node(name)).values()] == ["anna@lab7 pid 4711"]
        server.cut()
        await eventually_async(lambda: places(server.node(name)) == {})


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
    async with connect_node(node) as before:
        async with agent_on(before, LockRequest("anna@lab7 pid 12")) as left:
            mine = Session(rig_of(node), name, LockRequest("anna@lab7 pid 12", had_it=True))
            other = Session(rig_of(node), name, LockRequest("anna@lab7 pid 1"))
            with pytest.raises(BusyError, match="in use by anna@lab7 pid 12"):
                await other.open()
            await other.close()
            assert mine.usable
            assert places(node)[0] == (left.hello.pid, "anna@lab7 pid 12")
        _, agent = await mine.open()
        assert not agent.ended
        await mine.close()
    await eventually_async(lambda: not places(node))


TOOLS = ("sh", "tr", "uname", "mkdir", "cat", "chmod", "mv", "rm", "id", "touch", "find")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    agents = tmp_path / "agents"
    agents.mkdir()
    shutil.copy(shutil.which("true") or "/bin/true", agents / f"rigctl-agent-{host_machine()}")
    return agents


@asynccontextmanager
async def host_with(sshd: Start, **environment: object) -> AsyncIterator[Host]:
    settings = " ".join(f'"{name}={value}"' for name, value in environment.items())
    async with connect_node(sshd(f"SetEnv {settings}").node()) as host:
        yield host


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_runs_at_once_push_the_agent_under_its_own_digest(sshd: Start, folder: Path, tmp_path: Path) -> None:
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache") as host:
        deployed, *others = await asyncio.gather(*(deploy(host, folder) for _ in range(6)))
        assert others == [deployed] * 5
        path = Path(deployed.path)
        # A home may be shared by hosts, a journal of host settings must not be.
        assert path == tmp_path / "cache/rigctl" / os.uname().nodename / f"agent-{deployed.sha256}"
        assert digest(path) == deployed.sha256
        assert path.stat().st_mode & 0o777 == 0o700
        inode = path.stat().st_ino
        assert await deploy(host, folder) == deployed
        assert path.stat().st_ino == inode, "it was there: nothing was written"
        assert names(path.parent) == [path.name]


async def test_an_agent_that_was_damaged_on_the_node_is_never_started(sshd: Start, tmp_path: Path) -> None:
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache") as host:
        path = Path((await deploy(host)).path)
        whole = path.read_bytes()
        path.write_bytes(b"#!/bin/sh\ntouch " + bytes(tmp_path / "ran"))
        async with agent_on(host) as agent:
            assert (await agent.clock()).node_ns > 0
            assert Path(f"/proc/{agent.hello.pid}/exe").resolve() == path
        assert path.read_bytes() == whole
        assert not (tmp_path / "ran").exists()


async def test_a_node_without_a_digest_tool_is_verified_from_here(sshd: Start, folder: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool) or "")
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache", PATH=tools) as host:
        assert (await host.run("command -v sha256sum")).exit_code != 0
        deployed = await deploy(host, folder)
        Path(deployed.path).write_bytes(b"damaged")
        await deploy(host, folder)
        assert digest(Path(deployed.path)) == deployed.sha256


async def test_agents_that_nobody_uses_any_more_go(sshd: Start, folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache/rigctl" / os.uname().nodename
    cache.mkdir(parents=True)
    now = time.time()
    for name, age_days in (("agent-old", 9), ("agent-used", 2), (".new-cut-off", 3), ("precious", 99)):
        (cache / name).write_text("")
        os.utime(cache / name, (now - age_days * 86400,) * 2)
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache") as host:
        deployed = await deploy(host, folder)
    assert names(cache) == sorted([Path(deployed.path).name, "agent-used", "precious"])


@pytest.mark.parametrize("unusable", ["noexec", "ro", "a file"])
async def test_an_unusable_home_is_passed_over(sshd: Start, folder: Path, tmp_path: Path, unusable: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "spare").mkdir()
    reasons = {"noexec": "Permission denied", "ro": "Read-only file system", "a file": "Not a directory"}
    with mounted(tmp_path / "mount", "ro" if unusable == "ro" else "noexec") as mount:
        cache = tmp_path / "file" if unusable == "a file" else mount
        async with host_with(sshd, XDG_CACHE_HOME=cache, TMPDIR=tmp_path / "spare") as host:
            deployed = await deploy(host, folder)
            assert deployed.path.startswith(f"{tmp_path}/spare/rigctl-{os.getuid()}/agent-")
            assert (await host.run(deployed.path)).exit_code == 0
            refusal = f"{cache}/rigctl/{os.uname().nodename} can't be used ({reasons[unusable]})"
            assert refusal in (deployed.note or "")


async def test_where_neither_home_nor_tmp_may_run_programs_var_tmp_does(sshd: Start, tmp_path: Path) -> None:
    with mounted(tmp_path / "mount", "noexec") as mount:
        async with host_with(sshd, XDG_CACHE_HOME=mount, TMPDIR=mount) as host, agent_on(host) as agent:
            place = Path(f"/proc/{agent.hello.pid}/exe").resolve().parent
            assert place == Path(f"/var/tmp/rigctl-{os.getuid()}")
            assert f"the agent ran from {place} and was then removed" in (agent.note or "")
        await eventually_async(lambda: not place.exists())


async def test_an_agent_beside_a_full_home_is_told_of_and_leaves_nothing(sshd: Start, tmp_path: Path) -> None:
    (tmp_path / "spare").mkdir()
    with mounted(tmp_path / "mount", "size=64k") as mount:
        (mount / "rigctl" / os.uname().nodename).mkdir(parents=True)
        with pytest.raises(OSError, match="No space left"):
            (mount / "filling").write_bytes(bytes(200_000))
        async with host_with(sshd, XDG_CACHE_HOME=mount, TMPDIR=tmp_path / "spare") as host:
            async with agent_on(host) as agent:
                note = agent.note or ""
                assert note.startswith(f"the agent ran from {tmp_path}/spare/rigctl-")
                assert "No space left on device" in note or "I/O error" in note
                assert names(tmp_path / "spare") != []
            await eventually_async(lambda: not names(tmp_path / "spare"))


async def test_a_full_disk_is_told(sshd: Start, folder: Path, tmp_path: Path) -> None:
    (folder / f"rigctl-agent-{host_machine()}").write_bytes(os.urandom(200_000))
    with mounted(tmp_path / "mount", "size=64k") as mount:
        async with host_with(sshd, XDG_CACHE_HOME=mount) as host:
            with pytest.raises(NodeError, match=rf"pi1: could not put the agent into {mount}/.*: .*No space left"):
                await deploy(host, folder)
            assert names(mount / "rigctl" / os.uname().nodename) == []

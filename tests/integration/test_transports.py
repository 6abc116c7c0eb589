"""What every transport gives, SSH, ssh(1) and a local process (srun: test_slurm.py); programs over one channel."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path

import pytest
from openssh import PATIENCE, Hanging, Start
from processes import DEADLINE_S, all_commands, eventually, eventually_async
from user import User

from rigctl.base.errors import NodeError
from rigctl.records import Link
from rigctl.remote import host as host_module
from rigctl.remote import local
from rigctl.remote.children import SHELL_OUTLIVES_S, children_on
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import Host, connect_node
from rigctl.remote.lock import LockRequest
from rigctl.rig.inventory import Node

pytestmark = pytest.mark.usefixtures("home")
TRANSPORTS = pytest.mark.parametrize("transport", ["ssh", "openssh", "local"])


def host(transport: str, sshd: Start) -> AbstractAsyncContextManager[Host]:
    here = Node("here", "127.0.0.1", Link(None, None), transport="local", patience=PATIENCE)
    return connect_node(here if transport == "local" else sshd().node(name="here", transport=transport))


@TRANSPORTS
async def test_a_command_gets_its_input_whole_and_gives_output_errors_and_exit_code(
    transport: str, sshd: Start
) -> None:
    data = os.urandom(1024 * 1024)
    async with host(transport, sshd) as node:
        done = await node.run("cat; echo to-stderr >&2; exit 7", input=data)
        assert (done.exit_code, done.output, done.stderr) == (7, data, "to-stderr\n")
        assert (await node.run("exec <&-; exit 3", input=data)).exit_code == 3  # nobody reads it


@TRANSPORTS
async def test_the_last_words_say_why_a_process_ended(
    transport: str, sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "LAST_WORDS_DEADLINE_S", DEADLINE_S)
    killed = "cut off" if transport == "openssh" else "killed by SIGKILL"  # ssh(1) does not pass a signal's name on
    ends = {"kill -KILL $$": killed, "echo a >&2; echo 'no luck' >&2; exit 3": "no luck (exit code 3)"}
    async with host(transport, sshd) as node:
        for command, said in ends.items():
            async with node.process(command) as process:
                assert await process.readline() == b""
                assert await process.last_words() == said


@TRANSPORTS
async def test_a_command_that_hangs_costs_its_deadline(
    transport: str, sshd: Start, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", 0.2)
    async with host(transport, sshd) as node:
        with pytest.raises(NodeError, match=r"here: not finished within 0\.3 s: echo"):
            await node.run(hanging.command, deadline_s=0.3 / PATIENCE)
        assert (await node.run("echo still here")).stdout == "still here\n"


async def test_a_local_command_has_its_own_session_and_is_killed_with_its_children_if_it_ignores_sigterm(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", 0.2)
    monkeypatch.setattr(local, "_STOP_DEADLINE_S", 0.2)
    command = "trap '' TERM; sleep 300 & echo $$ $!; wait; sleep 300"
    async with host("local", sshd) as node, node.process(command) as process:
        pids = (await process.readline()).split()
        assert os.getsid(int(pids[0])) != os.getsid(0)
    await eventually_async(lambda: not any(Path(f"/proc/{int(pid)}/exe").exists() for pid in pids))


async def test_a_key_restricted_to_commands_from_the_controller_suffices(sshd: Start) -> None:
    server = sshd()
    authorized = server.folder / "authorized_keys"
    authorized.write_text(f'restrict,from="127.0.0.1" {authorized.read_text()}')
    node = server.node(name="here")
    async with connect_node(node) as host, agent_on(host, LockRequest("a test")) as agent:
        assert (await agent.clock()).node_ns > 0
    authorized.write_text(authorized.read_text().replace("127.0.0.1", "192.0.2.1"))
    with pytest.raises(NodeError, match="refuses to log in"):
        async with connect_node(node):
            pass


LOCAL = """
transport: local
nodes:
  here: {data_address: 127.0.0.1}
  there: {data_address: 127.0.0.2}
"""


def test_two_local_nodes_measure_without_ssh_and_leave_nothing(tmp_path: Path) -> None:
    user = User(tmp_path)
    (tmp_path / "local.yaml").write_text(LOCAL)
    scenario = user.scenario("pairs: here -> there\nduration: 500ms\nmax_skew: 1s\nrepeat: 1\n")
    said = user.rigctl("run", scenario, "--rig", "local.yaml", "--quiet")
    (row,) = user.rows()
    assert row["goodput_mbps"] > 0, said
    left = f"{tmp_path}/.cache/rigctl"
    eventually(lambda: not user.agents() and not any(left in words for _, words in all_commands()))


_DEADLINES = count(100_000 + os.getpid() * 100, 20)


@pytest.fixture
def deadline_s() -> int:
    """A deadline that no other test has: it names this test's processes."""
    return next(_DEADLINES)


def survivors(deadline_s: int) -> list[str]:
    marks = [f" {deadline_s + more} " for more in (1, SHELL_OUTLIVES_S)]
    return [words for _, words in all_commands() if any(mark in words for mark in marks)]


async def test_programs_run_side_by_side_and_each_gives_its_own_output(sshd: Start, deadline_s: int) -> None:
    async with connect_node(sshd().node()) as host, children_on(host, deadline_s) as children:
        one, other = children.start(["seq", "20000"]), children.start(["seq", "30001", "50000"])
        failing = children.start(["ls", "/no/such/file"])
        async with asyncio.timeout(DEADLINE_S):
            first, second, third = [await children.wait_end(number) for number in (one, other, failing)]
    assert first.output.split() == [b"%d" % number for number in range(1, 20001)]
    assert second.output.split() == [b"%d" % number for number in range(30001, 50001)]
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert third.exit_code == 2
    assert b"No such file" in third.output
    assert children.result(one) == first
    await eventually_async(lambda: survivors(deadline_s) == [])


async def test_a_connection_that_is_cut_ends_every_program(sshd: Start, deadline_s: int) -> None:
    server = sshd()
    node = server.node()
    async with connect_node(node) as host, children_on(host, deadline_s) as children:
        number = children.start(["sleep", "600"])
        await eventually_async(lambda: len(survivors(deadline_s)) >= 3)
        server.cut()
        await eventually_async(lambda: survivors(deadline_s) == [])
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(NodeError, match=node.name):
                await children.wait_end(number)


async def test_a_program_ends_at_its_deadline_even_where_nobody_notices_a_cut(sshd: Start) -> None:
    async with connect_node(sshd().node()) as host, children_on(host, 0.2) as children:
        async with asyncio.timeout(DEADLINE_S):
            ended = await children.wait_end(children.start(["sleep", "600"]))
        assert ended.exit_code == 124  # timeout(1)

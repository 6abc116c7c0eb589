"""What every transport gives, whichever it is: SSH and a process of this machine here, srun in test_slurm.py."""

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from openssh import PATIENCE, Hanging, Start
from processes import DEADLINE_S, all_commands, eventually, eventually_async
from user import User

from rigctl.base.errors import NodeError
from rigctl.records import Link
from rigctl.remote import host as host_module
from rigctl.remote import local
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import Host, connected
from rigctl.remote.lock import Claim
from rigctl.rig.inventory import Node

TRANSPORTS = pytest.mark.parametrize("transport", ["ssh", "local"])


def host(transport: str, sshd: Start) -> AbstractAsyncContextManager[Host]:
    here = Node("here", "127.0.0.1", Link(None, None), transport="local", patience=PATIENCE)
    return connected(sshd().node(name="here") if transport == "ssh" else here)


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
async def test_the_signal_that_ended_it_is_named(transport: str, sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "LAST_WORDS_DEADLINE_S", DEADLINE_S)
    async with host(transport, sshd) as node, node.process("kill -KILL $$") as process:
        assert await process.readline() == b""
        assert await process.last_words() == "killed by SIGKILL"


@TRANSPORTS
async def test_a_command_that_hangs_costs_its_deadline(
    transport: str, sshd: Start, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", 0.2)
    async with host(transport, sshd) as node:
        with pytest.raises(NodeError, match=r"here: not finished within 0\.3 s: echo"):
            await node.run(hanging.command, deadline_s=0.3 / PATIENCE)
        assert (await node.run("echo still here")).stdout == "still here\n"


async def test_what_ignores_sigterm_is_killed_with_its_children(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "END_DEADLINE_S", 0.2)
    monkeypatch.setattr(local, "STOP_DEADLINE_S", 0.2)
    command = "trap '' TERM; sleep 300 & echo $$ $!; wait; sleep 300"
    async with host("local", sshd) as node, node.process(command) as process:
        pids = (await process.readline()).split()
    await eventually_async(lambda: not any(Path(f"/proc/{int(pid)}/exe").exists() for pid in pids))


async def test_a_local_command_is_not_in_the_controllers_session(sshd: Start) -> None:
    async with host("local", sshd) as node:
        session = (await node.run("cut -d' ' -f6 /proc/$$/stat")).stdout.strip()
    assert int(session) != os.getsid(0)


async def test_a_key_restricted_to_commands_from_the_controller_suffices(sshd: Start) -> None:
    server = sshd()
    authorized = server.folder / "authorized_keys"
    authorized.write_text(f'restrict,from="127.0.0.1" {authorized.read_text()}')
    node = server.node(name="here")
    async with connected(node) as host, agent_on(host, Claim("a test")) as agent:
        assert (await agent.clock()).node_ns > 0
    authorized.write_text(authorized.read_text().replace("127.0.0.1", "192.0.2.1"))
    with pytest.raises(NodeError, match="refuses to log in"):
        async with connected(node):
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

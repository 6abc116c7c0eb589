"""A Windows node: its agent runs under Wine, behind an SSH server that behaves as OpenSSH for Windows."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from openssh import PATIENCE, accepts, kept_port, new_key
from processes import end, eventually, running
from windows_host import windows_host
from wine import end_wine, has_wine, users_home

from rigctl.base import resources
from rigctl.base.errors import NodeError
from rigctl.hosts.facts import FACTS, facts_of_host
from rigctl.records import Facts, Link
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import connect_node
from rigctl.remote.lock import LockRequest
from rigctl.rig.inventory import Node

AGENT = resources.agents() / "rigctl-agent-windows-x86_64.exe"

pytestmark = [
    pytest.mark.skipif(not has_wine() or not AGENT.is_file(), reason="needs wine64 and the agent for Windows"),
    pytest.mark.usefixtures("home"),
]


@dataclass
class WindowsHost:
    node: Node
    folder: Path

    @property
    def agents(self) -> list[Path]:
        """The files in the agent's folder."""
        return list(users_home(self.folder / "wine").glob("AppData/Local/rigctl/*"))

    def become(self, trait: str) -> None:
        """Give the host one trait, and remove the agent."""
        (self.folder / "traits").write_text(trait)
        for left in self.agents:
            left.unlink()

    def end_agents(self) -> None:
        end_wine(os.environ | {"WINEPREFIX": str(self.folder / "wine")})


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WindowsHost]:
    folder = tmp_path_factory.mktemp("windows")
    key, known = new_key(folder / "id"), folder / "known"
    with kept_port() as port, running(windows_host(folder / "win", key, "127.0.0.1", port)) as server:
        eventually(lambda: accepts(port))
        known.write_text(f"[127.0.0.1]:{port} {(folder / 'win/host_key.pub').read_text()}")
        here = Node("win", "127.0.0.1", Link(None, None), port, "lab", key=key, known_hosts=known, patience=PATIENCE)
        yield WindowsHost(here, folder / "win")
        end(server, politely_for_s=20)


async def told(node: Node) -> Facts:
    """Start the agent and return the facts that it tells."""
    async with connect_node(node) as host, agent_on(host, LockRequest("anna@lab pid 1")) as agent:
        return await facts_of_host(host, agent, node)


@pytest.mark.parametrize("shell", ["cmd", "powershell"])
async def test_the_agent_is_installed_once_and_tells_the_facts_of_its_host(windows: WindowsHost, shell: str) -> None:
    windows.become(shell)
    facts = await told(windows.node)
    assert facts.keys() >= FACTS.keys()
    assert facts["kernel"].startswith("Windows 10")
    assert facts["kernel"].endswith("windows-x86_64")
    (agent,) = windows.agents
    installed = agent.stat()
    assert await told(windows.node) == facts
    assert agent.stat() == installed
    agent.write_bytes(AGENT.read_bytes()[:-1])  # as a transfer that was cut off
    await told(windows.node)
    assert [each.read_bytes() for each in windows.agents] == [AGENT.read_bytes()]


FAULTS = {
    "full": r"could not put the agent into %LOCALAPPDATA%\\rigctl: Failure. Is its disk full\?",
    "lying": r"not copied correctly to C:\\users\\root\\.*\.exe: other bytes were read back",
    "quarantine": "Its file .* is gone: an antivirus has probably quarantined it",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_failed_upload_has_one_message_and_leaves_no_file(windows: WindowsHost, fault: str) -> None:
    windows.become(fault)
    with pytest.raises(NodeError, match=FAULTS[fault]):
        await told(windows.node)
    assert windows.agents == []


async def test_an_agent_that_is_removed_while_it_runs_is_told_with_what_to_do(windows: WindowsHost) -> None:
    windows.become("cmd")
    async with connect_node(windows.node) as host, agent_on(host) as agent:
        windows.become("cmd")
        windows.end_agents()
        with pytest.raises(NodeError, match=r"the agent ended: .*exclude its folder.*Add-MpPreference"):
            while True:
                await agent.clock()


async def test_what_a_posix_shell_would_be_asked_is_unknown_and_a_command_is_one_of_cmd(windows: WindowsHost) -> None:
    windows.become("cmd")
    async with connect_node(windows.node) as host:
        assert await host.output("uname -a") == ""
        assert "Microsoft Windows" in (await host.run("ver")).stdout
        assert "'uname' is not recognized" in (await host.run("uname")).stderr

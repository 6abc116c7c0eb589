"""A Windows node: its agent runs under Wine, behind an SSH server that behaves as OpenSSH for Windows."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from openssh import PATIENCE, accepts, kept_port, new_key
from openssh_lab import Lab, laboratory, serve, sh
from processes import end, eventually, running
from torture import SEED, TIMES, told, wait_at_random
from windows_host import serve_windows, windows_host
from wine import end_wine, has_wine, users_home

from rigctl.base import resources
from rigctl.base.errors import NodeError
from rigctl.discovery.discover import discover
from rigctl.discovery.targets import Target
from rigctl.hosts.facts import FACTS, facts_of_host
from rigctl.records import Facts, Link
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import connect_node
from rigctl.remote.lock import LockRequest
from rigctl.rig.inventory import Node
from rigctl.store import open_store

AGENT = resources.agents() / "rigctl-agent-windows-x86_64.exe"

pytestmark = pytest.mark.usefixtures("home")


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
    assert has_wine(), "install wine64 by `make system`"
    assert AGENT.is_file(), "build it by `rigctl agent build --target windows-x86_64`"
    folder = tmp_path_factory.mktemp("windows")
    key, known = new_key(folder / "id"), folder / "known"
    with kept_port() as port, running(windows_host(folder / "win", key, "127.0.0.1", port)) as server:
        eventually(lambda: accepts(port))
        known.write_text(f"[127.0.0.1]:{port} {(folder / 'win/host_key.pub').read_text()}")
        here = Node("win", "127.0.0.1", Link(None, None), port, "lab", key=key, known_hosts=known, patience=PATIENCE)
        yield WindowsHost(here, folder / "win")
        end(server, politely_for_s=20)


async def facts_told(node: Node) -> Facts:
    """Start the agent and return the facts that it tells."""
    async with connect_node(node) as host, agent_on(host, LockRequest("anna@lab pid 1")) as agent:
        return await facts_of_host(host, agent, node)


@pytest.mark.parametrize("shell", ["cmd", "powershell"])
async def test_the_agent_is_installed_once_and_tells_the_facts_of_its_host(windows: WindowsHost, shell: str) -> None:
    windows.become(shell)
    facts = await facts_told(windows.node)
    assert facts.keys() >= FACTS.keys()
    assert (facts["kernel"][:10], facts["boot_id"]) == ("Windows 10", "boot 42")
    assert facts["kernel"].endswith("windows-x86_64")
    assert (facts["interface"], facts["virtual"]) == ("lo", True)
    of_driver: Facts = {"driver": "Loop", "driver_date": "2021-03-04", "driver_version": None, "card_mtu": 9000}
    of_driver |= {"driver_provider": "Anybody"}
    of_driver |= {"interrupt_moderation": True, "rss": True, "rx_queues": 4, "rings": {"rx": 512}}
    assert {name: facts[name] for name in of_driver} == of_driver
    (agent,) = windows.agents
    installed = agent.stat()
    assert await facts_told(windows.node) == facts
    assert agent.stat() == installed
    agent.write_bytes(AGENT.read_bytes()[:-1])  # as a transfer that was cut off
    await facts_told(windows.node)
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
        await facts_told(windows.node)
    assert windows.agents == []


async def test_an_agent_that_is_removed_while_it_runs_is_told_with_what_to_do(windows: WindowsHost) -> None:
    windows.become("cmd")
    async with connect_node(windows.node) as host, agent_on(host) as agent:
        windows.become("cmd")
        windows.end_agents()
        with pytest.raises(NodeError, match=r"the agent ended: .*exclude its folder.*Add-MpPreference"):
            while True:
                await agent.clock()


async def test_a_shell_is_asked_nothing_and_rig_init_asks_the_agent(windows: WindowsHost, home: Path) -> None:
    windows.become("cmd")
    async with connect_node(windows.node) as host:
        assert await host.output("uname -a") == ""
        assert "Microsoft Windows" in (await host.run("ver")).stdout
        assert "'uname' is not recognized" in (await host.run("uname")).stderr
    node = windows.node
    (home / ".ssh/known_hosts").write_text(Path(str(node.known_hosts)).read_text())
    draft = await discover([Target("win", node.address, node.user, node.port, node.key)])
    assert draft.left_out == ()
    (found,) = (each.host for each in draft.nodes)
    assert (found.machine, found.system, found.interfaces["lo"].mtu) == ("windows-x86_64", "Windows", 65536)


TORTURE = (pytest.mark.torture, pytest.mark.long)
HEADERS = 20 + 20 + 12
"""Bytes of IPv4, TCP and its timestamps in a packet as the firewall counts it, whatever its size."""
COUNT = """table ip carried {
    counter tx {}
    counter rx {}
    chain o { type filter hook output priority 0; tcp sport != 22 tcp dport != 22 counter name tx; }
    chain i { type filter hook input priority 0; tcp sport != 22 tcp dport != 22 counter name rx; }
}"""
"""Counts TCP packets but those of SSH, which carries the agent and its reports."""
KINDS = {
    "tcp": "parallel: 2\nwindow: 64K\nduration: 500ms\n",
    "udp": "size: 1200\nrate: 20M\nduration: 400ms\n",
    "pingpong": "size: 1000\niterations: 100\nduration: 20s\n",
    "blast": "size: 64K\niterations: 50\nduration: 20s\n",
    "file": "size: 4M\nread: memory\nwrite: memory\nduration: 20s\n",
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    def serving(lab: Lab, name: str, address: str) -> "subprocess.Popen[bytes]":
        return serve_windows(lab, name, address) if name == "win" else serve(lab, name, address)

    with laboratory(tmp_path_factory.mktemp("lab"), ("pi1", "win"), serving) as made:
        sh(*made.inside("pi1", "nft", COUNT))
        yield made


def payload_carried(lab: Lab) -> list[int]:
    """Return the bytes of TCP's payload that the Linux node has sent and received by the agent's connections."""
    listed = json.loads(sh(*lab.inside("pi1", "nft", "-j", "list", "counters")))["nftables"]
    counters = {each["counter"]["name"]: each["counter"] for each in listed if "counter" in each}
    return [counters[way]["bytes"] - counters[way]["packets"] * HEADERS for way in ("tx", "rx")]


def retransmitted(lab: Lab, name: str) -> int:
    """Return the bytes that TCP of a node has retransmitted, by its kernel's own count (Wine uses it too)."""
    names, counts = (line.split() for line in sh(*lab.inside(name, "grep", "^Tcp:", "/proc/net/snmp")).splitlines())
    return int(counts[names.index("RetransSegs")]) * 1448


@pytest.mark.parametrize("kind", [kind if kind == "tcp" else pytest.param(kind, marks=TORTURE) for kind in KINDS])
def test_windows_and_linux_measure_every_kind_of_test_in_both_directions(hosts: Lab, tmp_path: Path, kind: str) -> None:
    lab, transports = hosts.at(tmp_path), ", transport: [tcp, udp]" if kind == "pingpong" else ""
    matrix = f"matrix: {{direction: [forward, reverse]{transports}}}"
    rest = f"test: {kind}\nmax_skew: 60s\n{KINDS[kind]}{matrix}\n"
    (tmp_path / "s.yaml").write_text(f"rig: lab.yaml\npairs: [pi1 -> win]\n{rest}")
    before, again = payload_carried(lab), [retransmitted(lab, name) for name in ("pi1", "win")]
    said = lab.rigctl("run", "s.yaml", "--no-report")
    carried = [now - then for now, then in zip(payload_carried(lab), before, strict=True)]
    again = [retransmitted(lab, name) - then for name, then in zip(("pi1", "win"), again, strict=True)]
    assert "Experimental: win with Windows" in " ".join(said.split())
    with open_store(str(tmp_path / "s.db")) as store:
        repetitions = list(store.repetitions(store.run_ids()[-1]))
    assert [each.status for each in repetitions] == ["ok"] * (4 if transports else 2)
    for way, octets, more in zip(("forward", "reverse"), carried, again, strict=True):
        flows = [flow for each in repetitions for flow in each.flows if flow.direction == way]
        sent = sum(flow.sender.bytes for flow in flows if flow.sender is not None)
        received = sum(flow.receiver.bytes for flow in flows if flow.receiver is not None)
        assert sent == received > 0
        assert kind != "tcp" or octets >= 0.999 * received
        assert kind != "tcp" or more or octets <= 1.001 * received  # what is sent again is counted in part only


@pytest.mark.torture
@pytest.mark.long
def test_a_mesh_with_a_windows_node_is_measured_and_its_page_says_that_it_is_experimental(
    hosts: Lab, tmp_path: Path
) -> None:
    lab, quick = hosts.at(tmp_path), ("--duration", "1s", "--repeat", "1", "--set", "omit=0s", "--set", "max_skew=60s")
    own = ("--rig", "lab.yaml", "--set", "congestion=default", "--report", "mesh.html")
    lab.rigctl("run", "10gbe-mesh", *own, *quick)
    with open_store(str(tmp_path / "s.db")) as store:
        assert [each.status for each in store.repetitions(store.run_ids()[-1])] == ["ok", "ok"]
    assert "was tested under Wine, never on Windows" in (tmp_path / "mesh.html").read_text()


def left_on_node(hosts: Lab) -> list[str]:
    """Return the agents that run on the Windows node, the files beside its agent, and its open TCP sockets without SSH.

    Wine 8.0 keeps connections of programs that end while they send, until their peer has closed (CLOSE-WAIT).
    """
    agents = [line for line in hosts.processes("win").values() if "agent-" in line]
    files = users_home(hosts.folder / "win/wine").glob("AppData/Local/rigctl/*")
    sockets = sh(*hosts.inside("win", "ss", "-Htan", "sport != :22")).splitlines()
    held = [line for line in sockets if line.split()[0] in ("LISTEN", "ESTAB", "SYN-SENT", "SYN-RECV")]
    return [*agents, *sorted(each.name for each in files), *held]


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_controllers_killed_at_random_moments_leave_nothing_on_the_windows_node(hosts: Lab, tmp_path: Path) -> None:
    lab, moments, kills, latest_s = hosts.at(tmp_path), Random(SEED), 0, 4.0
    rest = "duration: 1s\nmax_skew: 60s\nparallel: 2\nmatrix: {direction: [forward, reverse]}\n"
    (tmp_path / "s.yaml").write_text(f"rig: lab.yaml\npairs: [pi1 -> win]\n{rest}")
    lab.rigctl("run", "s.yaml", "--no-report")
    before = left_on_node(hosts)
    assert [name[:6] for name in before] == ["agent-"]
    while kills < 4 * TIMES:  # of those that had something on the node
        process = lab.start("run", "s.yaml", "--no-report")
        wait_at_random(moments, 0.05, latest_s)
        hit, ran = left_on_node(hosts) != before, process.poll() is None
        end(process)
        kills += hit and ran
        if not (hit and ran):
            latest_s *= 1.2 if ran else 1 / 1.2  # a busy machine takes longer to get somewhere
        eventually(lambda: left_on_node(hosts) == before)
        told("controllers of a Windows node killed", kills=kills)
    lab.rigctl("run", "s.yaml", "--no-report")
    assert left_on_node(hosts) == before

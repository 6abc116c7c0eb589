"""A virtual rig looks like a real one: addresses, MTU, a switch between the nodes, SSH that only its own key opens."""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from processes import DEADLINE_S, program
from virtual_rigs import NAME, answers, kept_up, login, machine, openssh, output, rig, sent_at_once, survivors

from rigctl.base.errors import RigError
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.virtual.links import burst_bytes
from rigctl.virtual.provide import provided

pytestmark = pytest.mark.usefixtures("runtime_folder")


async def interface(ready: Rig, node: str) -> dict[str, Any]:
    found = json.loads(await output(ready, node, "ip -j address show dev eth0"))
    assert isinstance(found[0], dict)
    return found[0]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A rig that is up, whose nodes differ. It has another name than those of which survivors are looked for."""
    file = tmp_path_factory.mktemp("rig") / f"{NAME}up.yaml"
    slow = '{bottleneck: 100M, sysctl: {net.ipv4.tcp_rmem: "4096 16384 65536", net.ipv4.tcp_sack: 0}}'
    nodes = f"nodes: {{a: , b: {{mtu: 9000}}, c: , slow: {slow}}}\n"
    file.write_text(f"virtual: namespaces\nlinks: {{rate: 200M, mtu: 1500}}\n{nodes}")
    with kept_up(load_rig(str(file))) as started:
        yield started


async def test_each_node_has_its_address_and_mtu_and_is_an_ordinary_node(ready: Rig) -> None:
    first, second = await interface(ready, "a"), await interface(ready, "b")
    assert [first["mtu"], second["mtu"]] == [1500, 9000]
    assert [one["local"] for one in first["addr_info"] if one["scope"] == "global"] == ["10.77.0.1", "fd77::1"]
    node = ready.nodes["b"]
    assert (node.address, node.data_address, node.data_interface) == ("127.0.0.1", "10.77.0.2", "eth0")
    assert node.key is not None
    assert node.key.stat().st_mode & 0o077 == 0
    assert (await output(ready, "a", "ls /sys/class/net")).split() == ["eth0", "lo"]
    assert await answers(ready, "a", "b")


async def test_openssh_logs_in_by_the_rigs_key_alone_from_here_and_on_port_22_of_the_node(ready: Rig) -> None:
    stranger = asyncssh.generate_private_key("ssh-ed25519")
    command = [*openssh(ready, "b"), "echo $RIGCTL_NODE; cat; exit 3"]
    how: dict[str, Any] = {"input": b"in\0put", "capture_output": True, "timeout": DEADLINE_S}
    done = await asyncio.to_thread(lambda: subprocess.run(command, **how))
    assert (done.stdout, done.returncode) == (b"b\nin\0put", 3), done.stderr
    assert await output(ready, "a", "bash -c 'exec 3<>/dev/tcp/10.77.0.2/22; head -c 8 <&3'") == "SSH-2.0-"
    node = ready.nodes["a"]
    with pytest.raises(asyncssh.PermissionDenied):
        who: dict[str, Any] = {"username": "root", "client_keys": [stranger], "password": "root"}
        await asyncssh.connect(node.address, node.port or 0, known_hosts=str(node.known_hosts), config=None, **who)


async def test_a_node_begins_with_its_sysctls_and_behind_its_bottleneck(ready: Rig) -> None:
    command = "cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_sack; tc qdisc show dev eth0"
    said = await output(ready, "slow", command)
    assert said.split()[:4] == ["4096", "16384", "65536", "0"]
    assert re.search(r"tbf .*rate 98[0-9]{3}Kbit", said), said
    assert "65536" not in (await output(ready, "b", "cat /proc/sys/net/ipv4/tcp_rmem")).split()
    assert ready.nodes["slow"].link.rate_bps == 200 * 10**6


async def test_a_node_cannot_send_more_than_its_link_to_two_destinations(ready: Rig) -> None:
    async def sent_so_far() -> str:
        return await output(ready, "a", "cat /sys/class/net/eth0/statistics/tx_bytes")

    sent, within_s = await sent_at_once(ready, [("a", "b"), ("a", "c")], 10**7, sent_so_far)
    assert 2 * 10**7 < sent <= 200e6 / 8 * within_s + burst_bytes(200 * 10**6, 1500)


async def test_full_frames_pass_and_larger_ones_do_not(tmp_path: Path) -> None:
    async with provided(rig(tmp_path, links="{rate: 1G, mtu: 9000}", ip_version=6)) as other:
        assert other.nodes["c"].data_address == "fd77::3"
        # 48 bytes of headers: RFC 8200, section 3, and RFC 4443.
        assert await answers(other, "a", "c", "-6 -M do -s 8952")
        async with login(other, "a") as connection:
            done = await connection.run("ping -6 -M do -c 1 -W 1 -s 8953 c")
            assert done.exit_status != 0


async def test_a_sysctl_that_a_namespace_has_not_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("virtual: namespaces\nnodes: {a: {sysctl: {net.core.rmem_max: 4096}}, b: }\n")
    with pytest.raises(RigError, match=r"a: sysctl net\.core\.rmem_max = 4096: "):
        async with provided(load_rig(str(tmp_path / "r.yaml"))):
            pass


async def test_names_that_mean_something_to_ip_are_names_all_the_same(tmp_path: Path) -> None:
    async with provided(rig(tmp_path, "lo", "br0", "all", "dev", "default", "a2345678901234-")) as odd:
        assert await answers(odd, "all", "10.77.0.6")
        assert await answers(odd, "lo", "10.77.0.2")


async def test_a_loopback_rig_needs_no_namespaces(tmp_path: Path) -> None:
    async with provided(rig(tmp_path, "a", "b", virtual="loopback", links="{mtu: 65536}")) as local:
        addresses = [(node.address, node.data_address, node.data_interface) for node in local.nodes.values()]
        assert addresses == [("127.0.0.2", "127.0.0.2", "lo"), ("127.0.0.3", "127.0.0.3", "lo")]
        homes = [await output(local, name, "pwd") for name in ("a", "b")]
        assert homes[0] != homes[1]


async def test_nothing_of_a_rig_is_seen_outside_or_left_after(tmp_path: Path) -> None:
    before = machine()
    async with provided(rig(tmp_path)) as passing:
        await output(passing, "a", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
        assert machine() == before
        assert any("sleep 1000" in line for line in survivors(f"{NAME}-"))
    assert machine() == before
    assert survivors(f"{NAME}-") == []
    assert list((tmp_path / "rigctl").iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "complaint", "message"),
    [
        (
            "unshare",
            "unshare: unshare failed: Operation not permitted",
            "neither as root nor in a user .*--rig loopback",
        ),
        ("tc", "Error: Specified qdisc kind is unknown.", "Specified qdisc kind is unknown"),
    ],
)
async def test_a_rig_that_cannot_be_built_says_why(
    tmp_path: Path, runtime_folder: Path, monkeypatch: pytest.MonkeyPatch, tool: str, complaint: str, message: str
) -> None:
    fake = program(tmp_path / "bin" / tool, f"echo '{complaint}' >&2; exit 2")
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/sbin:/usr/bin:/sbin:/bin")
    with pytest.raises(RigError, match=message):
        async with provided(rig(tmp_path)):
            pass
    assert survivors(f"{NAME}-") == []
    assert list(runtime_folder.iterdir()) == []

"""Two switches and a trunk: what passes, what is shaped, what follows the MTU, and what SNMP says of it."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from processes import DEADLINE_S, eventually, eventually_async, output_of
from virtual_rigs import answers, kept_up, output, rig, sent_at_once

from rigctl.rig.inventory import Rig
from rigctl.virtual.links import burst_bytes, shaper_bps
from rigctl.virtual.provide import provide

pytestmark = pytest.mark.usefixtures("runtime_folder")

IF_NAME, IF_HC_IN, IF_HC_OUT = (f".1.3.6.1.2.1.31.1.1.1.{column}" for column in (1, 6, 10))
SWITCHES = "{force10: {title: Force10, mtu: 9216, snmp: {version: 2c}}, cisco: {title: Cisco, mtu: 9216, snmp: }}"
NODES = "{'a[1..2]': {switch: force10}, 'b[1..2]': {switch: cisco}}"
two_switches = partial(rig, switches=SWITCHES, trunk="{rate: 1G}", nodes=NODES)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with kept_up(two_switches(tmp_path_factory.mktemp("rig"), sets=["trunk.rate=8G"])) as started:
        yield started


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A rig whose trunk is a tenth of a link."""
    links, trunk = "{rate: 100M, mtu: 1500}", "{rate: 10M}"
    with kept_up(two_switches(tmp_path_factory.mktemp("narrow"), links=links, trunk=trunk)) as started:
        yield started


def holder_of(ready: Rig) -> int:
    key = next(iter(ready.nodes.values())).key
    assert key is not None
    return int(json.loads((key.parent / "state.json").read_text())["holder"]["pid"])


async def on_switches(ready: Rig, command: str) -> str:
    words = ["nsenter", f"--net=/proc/{holder_of(ready)}/ns/net", "sh", "-c", command]
    return await asyncio.to_thread(output_of, words)


async def snmp(
    ready: Rig, tool: str, *objects: str, community: str | None = None, wait_s: float = DEADLINE_S / 2
) -> "subprocess.CompletedProcess[str]":
    switch = ready.switches["cisco"]
    assert switch.snmp is not None and switch.secrets is not None
    words = [tool, "-v2c", "-c", community or str(switch.secrets.community), "-Oqn", "-r", "0", "-t", f"{wait_s:g}"]
    command = [*words, f"{switch.address}:{switch.snmp.port}", *objects]
    return await asyncio.to_thread(lambda: subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S))


async def column(ready: Rig, name: str) -> dict[str, str]:
    """A column of the interfaces' table by interface name."""

    async def walked(one: str) -> dict[str, str]:
        done = await snmp(ready, "snmpwalk", one)
        assert done.returncode == 0, done.stderr
        rows = (line.split(" ", 1) for line in done.stdout.splitlines())
        return {oid.rpartition(".")[2]: value.strip('"') for oid, value in rows}

    names = await walked(IF_NAME)
    return {names[index]: value for index, value in (await walked(name)).items()}


def rates(listed: str) -> dict[str, str]:
    """Rates of token buckets by interface, as `tc qdisc show` prints them."""
    return dict(re.findall(r"qdisc tbf \S+ dev (\S+) root .*?rate (\S+)bit", listed))


def as_tc(rate_bps: int) -> str:
    """As tc(8) prints a rate of more than a megabit: cut, not rounded, in the largest unit that leaves four digits."""
    return f"{rate_bps // 10**6}M" if rate_bps >= 10**9 * 4 else f"{rate_bps // 1000}K"


async def test_nodes_of_both_switches_reach_each_other_over_the_trunk_and_snmp_counts(ready: Rig) -> None:
    assert await answers(ready, "a1", "b2", "-M do -s 1472")
    assert await answers(ready, "a1", "a2", "-M do -s 1472")
    shown = await on_switches(ready, "bridge link show; tc qdisc show")
    bridges = dict(re.findall(r"^\d+: ([^@:]+)\S* .* master (\S+)", shown, re.MULTILINE))
    assert bridges == {"a1": "br0", "a2": "br0", "b1": "br.1", "b2": "br.1", "trunk.0": "br0", "trunk.1": "br.1"}
    assert rates(shown)["trunk.0"] == rates(shown)["trunk.1"] == as_tc(shaper_bps(8 * 10**9, 1500))

    # SNMP serves the ports with counters as old as the answer, and changes nothing.
    assert {port.name for port in ready.ports} == {"a1", "a2", "b1", "b2", "trunk.0", "trunk.1"}
    before = await column(ready, IF_HC_IN)
    assert {port.name for port in ready.ports} <= set(before)
    for _ in range(3):
        # 20 x (1400 + 8 ICMP + 20 IP + 14 Ethernet): into one switch from the node, the other from the trunk.
        await output(ready, "a1", "ping -q -c 20 -i 0.002 -s 1400 b1")
        after = await column(ready, IF_HC_IN)
        for port in ("a1", "trunk.1"):
            assert 20 * 1442 <= int(after[port]) - int(before[port]) < 20 * 1442 + 2000
        before = after
    assert int((await column(ready, IF_HC_OUT))["b1"]) >= 3 * 20 * 1442
    walked = (await snmp(ready, "snmpwalk", ".1.3.6.1")).stdout
    areas = (".1.3.6.1.2.1.1.", ".1.3.6.1.2.1.2.", ".1.3.6.1.2.1.31.", ".1.3.6.1.4.1.8072.1.5.3.")
    assert all(line.startswith(areas) for line in walked.splitlines() if line.startswith(".1.3"))
    assert (await snmp(ready, "snmpset", ".1.3.6.1.2.1.1.5.0", "s", "mine")).returncode != 0
    cache = ".1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2"
    assert (await snmp(ready, "snmpget", cache)).stdout.split() == [cache, "0"]
    assert (await snmp(ready, "snmpset", cache, "i", "9")).returncode != 0
    assert (await snmp(ready, "snmpget", IF_NAME + ".1", community="public", wait_s=1)).returncode != 0


@pytest.mark.parametrize(("version", "other"), [(4, "10.77.1.3"), (6, "fd77:0:0:1::3")])
async def test_a_router_in_the_trunk_forwards_between_two_subnets(version: int, other: str, tmp_path: Path) -> None:
    mtu = "{rate: 1G, mtu: 9000}"
    async with provide(two_switches(tmp_path, trunk="{router: true}", links=mtu, ip_version=version)) as ready:
        assert ready.nodes["b1"].data_address == other
        full = 9000 - {4: 28, 6: 48}[version]
        said = await output(ready, "a1", f"ping -{version} -c 1 -W {DEADLINE_S:g} -M do -s {full} b1")
        assert "ttl=63" in said
        assert "ttl=64" in await output(ready, "a1", f"ping -{version} -c 1 -W {DEADLINE_S:g} a2")


async def test_buckets_follow_the_mtu_of_a_node_and_go_back_with_it(ready: Rig) -> None:
    async def at_switch() -> dict[str, str]:
        return rates(await on_switches(ready, "tc qdisc show"))

    async def shaped(expected: dict[str, str], at_node: str) -> bool:
        own = await output(ready, "a1", "tc qdisc show dev eth0")
        return await at_switch() == expected and f"rate {at_node}bit" in own

    before = await at_switch()
    nodes = {mtu: as_tc(shaper_bps(10**9, mtu)) for mtu in (1500, 8192)}
    # The largest frames decide on the trunk, also while the others' are small.
    trunk = dict.fromkeys(("trunk.0", "trunk.1"), as_tc(shaper_bps(8 * 10**9, 8192)))
    large = before | trunk | {"a1": as_tc(shaper_bps(10**9, 8192))}
    assert large != before
    await output(ready, "a1", "ip link set dev eth0 mtu 8192")
    await eventually_async(lambda: shaped(large, nodes[8192]))
    await output(ready, "b1", "ip link set dev eth0 mtu 8192")
    assert await answers(ready, "a1", "b1", "-M do -s 8164")
    for name in ("a1", "b1"):
        await output(ready, name, "ip link set dev eth0 mtu 1500")
    await eventually_async(lambda: shaped(before, nodes[1500]))


async def test_the_trunk_lets_pass_no_more_than_its_rate(narrow: Rig) -> None:
    async def over_the_trunk() -> str:
        return await on_switches(narrow, "awk '/trunk.0:/ {print $10}' /proc/net/dev")

    size = 500_000
    sent, within_s = await sent_at_once(narrow, [("a1", "b1"), ("a2", "b2")], size, over_the_trunk)
    assert 2 * size < sent <= 10**7 / 8 * within_s + burst_bytes(10**7, 1500)


async def test_what_overflows_a_ports_queue_is_a_discard_of_that_port(narrow: Rig) -> None:
    # 400 datagrams of 8 KiB, in six frames each, meet a queue of 133 KB behind a tenth of the rate.
    send = "import socket; s = socket.socket(type=2); [s.sendto(bytes(8192), ('10.77.0.3', 9)) for _ in range(400)]"
    await output(narrow, "a1", f'{sys.executable} -c "{send}"')

    async def counted() -> dict[str, str] | None:
        """The discards by port, once they are those of the queue: what was sent last is on its way for a while."""
        discards = await column(narrow, ".1.3.6.1.2.1.2.2.1.19")
        (dropped,) = re.findall(r"dropped (\d+)", await on_switches(narrow, "tc -s qdisc show dev trunk.0"))
        return discards if int(discards["trunk.0"]) == int(dropped) > 50 else None

    discards = await eventually_async(counted)
    assert discards is not None
    assert {count for port, count in discards.items() if port != "trunk.0"} == {"0"}


async def test_a_rig_whose_holder_is_killed_takes_its_snmpd_along(tmp_path: Path) -> None:
    async with provide(two_switches(tmp_path)) as lost:
        holder = holder_of(lost)
        children = Path(f"/proc/{holder}/task/{holder}/children").read_text().split()
        names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in children}
        (snmpd,) = (pid for pid, name in names.items() if name == "snmpd")
        os.kill(holder, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{snmpd}").exists())


async def test_without_snmpd_switches_lack_their_address_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tool the rig needs is in a folder of links; snmpd is not."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("unshare", "mount", "ip", "tc", "nsenter", "sh", "ping", "true"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr("rigctl.virtual.provide._SBIN", ())
    async with provide(two_switches(tmp_path)) as silent:
        assert [switch.address for switch in silent.switches.values()] == [None, None]
        assert len(silent.ports) == 6
        assert await answers(silent, "a1", "b1")

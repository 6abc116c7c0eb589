"""Two switches and a trunk: what passes, what is shaped, what follows the MTU, and what SNMP says of it."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from processes import eventually
from virtual_rigs import NAME, login, output

from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.virtual.links import node_bucket, port_bucket, shaped_bps
from rigctl.virtual.provide import provided

pytestmark = pytest.mark.usefixtures("runtime_folder")

IF_NAME, IF_HC_IN, IF_HC_OUT = (f".1.3.6.1.2.1.31.1.1.1.{column}" for column in (1, 6, 10))
LINKS = "links: {rate: 1G, mtu: 1500}"
TEXT = (
    "switches:\n"
    "  force10: {{title: Force10, mtu: 9216, snmp: {{version: 2c}}}}\n"
    "  cisco: {{title: Cisco, mtu: 9216, snmp: }}\n"
    "trunk: {{rate: {trunk}}}\n"
    "virtual: namespaces\n"
    "{links}\n"
    "nodes:\n"
    "  a[1..2]: {{switch: force10}}\n"
    "  b[1..2]: {{switch: cisco}}\n"
)


def rig(folder: Path, *, trunk: str = "8G", links: str = LINKS, sets: Sequence[str] = ()) -> Rig:
    file = folder / f"{NAME}.yaml"
    file.write_text(TEXT.format(trunk=trunk, links=links))
    return load_rig(str(file), sets=sets)


def holder_of(ready: Rig) -> int:
    key = next(iter(ready.nodes.values())).key
    assert key is not None
    return int(json.loads((key.parent / "state.json").read_text())["holder"]["pid"])


async def on_switches(ready: Rig, command: str) -> str:
    """What a command prints in the namespace of the switches, where the holder itself is."""
    words = ["nsenter", f"--net=/proc/{holder_of(ready)}/ns/net", "sh", "-c", command]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=True, timeout=20)
    return done.stdout


async def snmp(
    ready: Rig, tool: str, *objects: str, community: str | None = None
) -> "subprocess.CompletedProcess[str]":
    switch = ready.switches["cisco"]
    assert switch.snmp is not None
    assert switch.secrets is not None
    words = [tool, "-v2c", "-c", community or str(switch.secrets.community), "-Oqn", "-r", "1", "-t", "1"]
    command = [*words, f"{switch.address}:{switch.snmp.port}", *objects]
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30, check=False)


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


async def test_nodes_of_both_switches_reach_each_other_over_the_trunk_and_snmp_counts(tmp_path: Path) -> None:
    async with provided(rig(tmp_path)) as ready:
        assert "1 received" in await output(ready, "a1", "ping -c 1 -W 2 -M do -s 1472 b2")
        assert "1 received" in await output(ready, "a1", "ping -c 1 -W 2 -M do -s 1472 a2")
        shown = await on_switches(ready, "bridge link show; tc qdisc show")
        assert {
            line.split()[1].rstrip(":").split("@")[0]: line.split(" master ")[1].split()[0]
            for line in shown.splitlines()
            if " master " in line
        } == {
            "a1": "br0",
            "a2": "br0",
            "b1": "br.1",
            "b2": "br.1",
            "trunk.0": "br0",
            "trunk.1": "br.1",
        }
        assert rates(shown)["trunk.0"] == rates(shown)["trunk.1"] == as_tc(shaped_bps(8 * 10**9, 1500))

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
        assert (await snmp(ready, "snmpget", IF_NAME + ".1", community="public")).returncode != 0


async def test_the_trunk_lets_pass_no_more_than_its_rate(tmp_path: Path) -> None:
    async with provided(rig(tmp_path, links="links: {rate: 200M, mtu: 1500}", sets=["trunk.rate=300M"])) as ready:
        for node in ("b1", "b2"):
            await output(ready, node, "iperf3 -s -D -1")
        await asyncio.sleep(0.2)
        said = await asyncio.gather(
            *(output(ready, f"a{n}", f"iperf3 -f k -c b{n} -t 2 | grep receiver") for n in (1, 2))
        )
        sum_kbps = sum(float(re.findall(r"([0-9.]+) Kbits/sec", line)[0]) for line in said)
        # 300 Mbit/s x 1448/1538 = 282.4; two links carry 376, which counts while one client runs alone.
        assert 220_000 < sum_kbps < 330_000


async def test_buckets_follow_the_mtu_of_a_node_and_go_back_with_it(tmp_path: Path) -> None:
    async with provided(rig(tmp_path)) as ready, login(ready, "a1") as a1, login(ready, "b1") as b1:

        async def changed(mtu: int) -> tuple[dict[str, str], str]:
            done = await a1.run(f"ip link set dev eth0 mtu {mtu}; sleep 0.02; tc qdisc show dev eth0", check=True)
            return rates(await on_switches(ready, "tc qdisc show")), str(done.stdout)

        before = rates(await on_switches(ready, "tc qdisc show"))
        at_switch, at_node = await changed(8192)
        assert f"rate {as_tc(node_bucket(10**9, 8192).rate_bps)}bit" in at_node
        assert at_switch["a1"] == as_tc(port_bucket(10**9, 8192).rate_bps)
        # The largest frames decide on the trunk, also while the others' are small.
        assert at_switch["trunk.0"] == at_switch["trunk.1"] == as_tc(port_bucket(8 * 10**9, 8192).rate_bps)
        assert [at_switch[other] for other in ("a2", "b1", "b2")] == [before[other] for other in ("a2", "b1", "b2")]
        await b1.run("ip link set dev eth0 mtu 8192", check=True)
        assert "1 received" in await output(ready, "a1", "ping -c 1 -W 2 -M do -s 8164 b1")
        await b1.run("ip link set dev eth0 mtu 1500", check=True)
        assert (await changed(1500))[0] == before


async def test_what_overflows_a_ports_queue_is_a_discard_of_that_port(tmp_path: Path) -> None:
    async with provided(rig(tmp_path, links="links: {rate: 100M, mtu: 1500}", trunk="10M")) as ready:
        # 40 datagrams of 8 KiB, in six frames each, meet a queue of 133 KB behind a tenth of the rate.
        send = "import socket; s = socket.socket(type=2); [s.sendto(bytes(8192), ('10.77.0.3', 9)) for _ in range(40)]"
        await output(ready, "a1", f'{sys.executable} -c "{send}"')
        await asyncio.sleep(0.3)
        discards = await column(ready, ".1.3.6.1.2.1.2.2.1.19")
        (dropped,) = re.findall(r"dropped (\d+)", await on_switches(ready, "tc -s qdisc show dev trunk.0"))
        assert int(discards.pop("trunk.0")) == int(dropped) > 50
        assert set(discards.values()) == {"0"}


async def test_a_rig_whose_holder_is_killed_takes_its_snmpd_along(tmp_path: Path) -> None:
    async with provided(rig(tmp_path)) as ready:
        holder = holder_of(ready)
        children = Path(f"/proc/{holder}/task/{holder}/children").read_text().split()
        names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in children}
        (snmpd,) = (pid for pid, name in names.items() if name == "snmpd")
        os.kill(holder, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{snmpd}").exists())


async def test_without_snmpd_the_switches_have_no_address_and_all_else_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tool the rig needs is in a folder of links; snmpd is not."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("unshare", "mount", "ip", "tc", "nsenter", "sh", "ping", "true"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr("rigctl.virtual.provide._SBIN", ())
    async with provided(rig(tmp_path)) as ready:
        assert [switch.address for switch in ready.switches.values()] == [None, None]
        assert len(ready.ports) == 6
        assert "1 received" in await output(ready, "a1", "ping -c 1 -W 2 b1")

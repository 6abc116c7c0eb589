"""Links with a round-trip time: as long as the file says, whole for super-packets, gone with the rig."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from processes import all_commands, ancestors, command_line, eventually_async
from virtual_rigs import NAME, answers, output, survivors

from rigctl.base.errors import RigError
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import layout_of, provided
from rigctl.virtual.relay import relayed

pytestmark = pytest.mark.usefixtures("runtime_folder")


def distant(folder: Path, rtt: str, ip_version: int = 4, more: str = "") -> Rig:
    file = folder / f"{NAME}.yaml"
    nodes = f"nodes: {{near: , far: {{rtt: {rtt}}}{more}}}\n"
    file.write_text(f"virtual: namespaces\nlinks: {{rate: 1G, mtu: 1500}}\nip_version: {ip_version}\n{nodes}")
    return load_rig(str(file))


def relays() -> list[int]:
    """Relays of rigs of this test process: descendants of its holders."""
    every = (pid for pid, words in all_commands() if "rigctl.virtual.relay" in words)
    return [pid for pid in every if any(f"{NAME}-" in command_line(above) for above in ancestors(pid))]


async def takes(ready: Rig, source: str, destination: str, low_ms: float, high_ms: float) -> None:
    """Wait for a round trip below `high_ms`, however busy the machine is. None may be below `low_ms`, or be lost."""

    async def seen() -> bool:
        said = await output(ready, source, f"ping -q -c 20 -i 0.01 {destination}")
        found = re.search(r"= ([\d.]+)/", said)
        assert found is not None
        assert " 0% packet loss" in said
        least_ms = float(found[1])
        assert least_ms > low_ms
        return least_ms < high_ms

    await eventually_async(seen)


async def test_a_round_trip_takes_what_the_file_says_of_both_ends(tmp_path: Path) -> None:
    """bench_distance tells how exactly."""
    async with provided(distant(tmp_path, "5ms", more=", farther: {rtt: 20ms}")) as ready:
        await takes(ready, "near", "far", 3, 12)
        await takes(ready, "near", "farther", 17, 27)
        await takes(ready, "far", "farther", 20, 35)
        (link,) = json.loads(await output(ready, "far", "ip -j link show dev eth0"))
        assert (link["mtu"], link["address"]) == (1500, "02:77:00:00:00:02")
    assert relays() == []
    assert survivors(f"{NAME}-") == []


def test_less_than_the_machine_takes_is_refused(tmp_path: Path) -> None:
    """The machine takes 0.2 ms."""
    layout = layout_of(distant(tmp_path, "0.1ms"))
    refusal = pytest.raises(RigError, match=r"far: rtt 0\.1 ms: this machine takes 0\.200 ms. Set a larger rtt")
    with refusal, relayed(layout, {"far": os.pipe()}, lambda _, __: 0.2e6):
        pass


async def test_full_frames_pass_in_ipv6_too_and_a_relay_that_dies_leaves_a_dead_link(tmp_path: Path) -> None:
    async with provided(distant(tmp_path, "5ms", ip_version=6)) as ready:
        assert await answers(ready, "near", "far", "-6 -M do -s 1452")
        (relay,) = relays()
        os.kill(relay, signal.SIGKILL)
        await eventually_async(lambda: relays() == [])
        assert "0 received" in await output(ready, "near", "ping -6 -c 1 -W 1 far || true")
    assert survivors(f"{NAME}-") == []

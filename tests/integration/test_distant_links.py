"""Links with a round-trip time: as long as the file says, whole for super-packets, gone with the rig."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest
from processes import all_commands, ancestors, command_line
from virtual_rigs import NAME, output, rig, survivors

from rigctl.base.errors import RigError
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import provided

pytestmark = pytest.mark.usefixtures("runtime_folder")


def distant(folder: Path, rtt: str, ip_version: int = 4) -> Rig:
    made = rig(folder, "near", "far", ip_version=ip_version)
    assert made.source is not None
    made.source.write_text(made.source.read_text().replace("'far':", f"'far': {{rtt: {rtt}}}"))
    return load_rig(str(made.source))


def relays() -> list[int]:
    """Relays of rigs of this test process: descendants of its holders."""
    every = (pid for pid, words in all_commands() if "rigctl.virtual.relay" in words)
    return [pid for pid in every if any(f"{NAME}-" in command_line(above) for above in ancestors(pid))]


async def least_ms(ready: Rig, source: str, destination: str) -> float:
    """The least round trip of 50 echoes, none of which may be lost."""
    said = await output(ready, source, f"ping -q -c 50 -i 0.01 {destination}")
    found = re.search(r"= ([\d.]+)/", said)
    assert found is not None
    assert " 0% packet loss" in said
    return float(found[1])


async def test_a_round_trip_takes_what_the_file_says_of_both_ends(tmp_path: Path) -> None:
    made = distant(tmp_path, "5ms")
    assert made.source is not None
    made.source.write_text(made.source.read_text() + "  'farther': {rtt: 20ms}\n")
    async with provided(load_rig(str(made.source))) as ready:
        assert 4.5 < await least_ms(ready, "near", "far") < 12
        assert 19.5 < await least_ms(ready, "near", "farther") < 27
        assert 24.5 < await least_ms(ready, "far", "farther") < 35
        (link,) = json.loads(await output(ready, "far", "ip -j link show dev eth0"))
        assert (link["mtu"], link["address"]) == (1500, "02:77:00:00:00:02")
    assert relays() == []
    assert survivors(f"{NAME}-") == []


async def test_full_frames_pass_in_ipv6_too(tmp_path: Path) -> None:
    async with provided(distant(tmp_path, "5ms", ip_version=6)) as ready:
        assert "1 received" in await output(ready, "near", "ping -6 -M do -c 1 -W 2 -s 1452 far")


async def test_less_than_the_machine_takes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r"far: rtt 0\.1 ms: this machine takes 0\.\d+ ms. Set a larger rtt|0% "):
        async with provided(distant(tmp_path, "0.1ms")) as ready:
            # A machine that is that fast must keep to it.
            said = await output(ready, "near", "ping -q -c 10 -i 0.01 far")
            raise RigError(said)
    assert survivors(f"{NAME}-") == []


async def test_a_relay_that_dies_leaves_a_dead_link_and_nothing_else(tmp_path: Path) -> None:
    async with provided(distant(tmp_path, "5ms")) as ready:
        (relay,) = relays()
        os.kill(relay, signal.SIGKILL)
        await asyncio.sleep(0.2)
        assert "1 received" not in await output(ready, "near", "ping -c 1 -W 1 far || true")
    assert relays() == []
    assert survivors(f"{NAME}-") == []

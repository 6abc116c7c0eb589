"""A virtual rig without root: in a user namespace of its own."""

import os
import subprocess
import sys
from pathlib import Path

from processes import eventually
from virtual_rigs import NAME, rig, survivors

from rigctl.base import resources

SCRIPT = """
import asyncio, os, sys
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import provided
sys.path.insert(0, sys.argv[2])
from virtual_rigs import output

async def main():
    assert os.geteuid() != 0
    assert "CapEff:\\t0000000000000000" in open("/proc/self/status").read()
    async with provided(load_rig(sys.argv[1])) as ready:
        print(await output(ready, "a", "id -u; ls /sys/class/net; ping -c 1 -W 2 b; tc qdisc show dev eth0"))

asyncio.run(main())
"""


def run_as_user(folder: Path, script: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", script, *words, str(Path(__file__).parents[1] / "support")]
    if os.geteuid() == 0:
        # Another user may not be able to read this interpreter; an unprivileged namespace owned by us can, and has no
        # more rights over the machine than any user.
        command = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--", *command]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_an_ordinary_user_has_the_same_rig(tmp_path: Path) -> None:
    done = run_as_user(tmp_path, SCRIPT, str(rig(tmp_path).source))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["0", "eth0", "lo"]
    assert "1 received" in done.stdout
    assert "tbf" in done.stdout
    eventually(lambda: survivors(f"{NAME}-") == [])
    assert list((tmp_path / "rigctl").iterdir()) == []


SWITCHES = """
import asyncio, subprocess, sys
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import provided
sys.path.insert(0, sys.argv[2])
from virtual_rigs import output

async def main():
    async with provided(load_rig(sys.argv[1])) as ready:
        switch = ready.switches["cisco"]
        print(await output(ready, "node001", "ip link set dev eth0 mtu 8192; sleep 0.02; tc qdisc show dev eth0"))
        where = f"{switch.address}:{switch.snmp.port}"
        command = ["snmpwalk", "-v2c", "-c", switch.secrets.community, "-Oqv", where, ".1.3.6.1.2.1.31.1.1.1.1"]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

asyncio.run(main())
"""


def test_an_ordinary_user_has_switches_that_answer_and_links_that_follow(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.yaml"
    file.write_text((resources.scenarios() / "rigs" / "das2.yaml").read_text())
    done = run_as_user(tmp_path, SWITCHES, str(file))
    assert done.returncode == 0, done.stderr
    assert "rate 997083Kbit" in done.stdout
    assert {'"trunk.0"', '"trunk.1"', '"node112"'} <= set(done.stdout.split())
    eventually(lambda: survivors(f"{NAME}-") == [])
    assert list((tmp_path / "rigctl").iterdir()) == []

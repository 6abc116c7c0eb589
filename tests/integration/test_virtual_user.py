"""A virtual rig without root: in a user namespace of its own."""

import os
import subprocess
import sys
from pathlib import Path

from processes import DEADLINE_S, eventually
from virtual_rigs import NAME, survivors

from rigctl.base import resources

SCRIPT = """
import asyncio, os, subprocess, sys
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import provided
sys.path.insert(0, sys.argv[2])
from virtual_rigs import answers, output

FOLLOWED = "until tc qdisc show dev eth0 | grep -o 'tbf.*rate 997083Kbit'; do sleep 0.02; done"

async def main():
    assert os.geteuid() != 0
    assert "CapEff:\\t0000000000000000" in open("/proc/self/status").read()
    async with provided(load_rig(sys.argv[1])) as ready:
        print(await output(ready, "node001", "id -u; ls /sys/class/net"))
        assert await answers(ready, "node001", "node112")
        print(await output(ready, "node001", f"ip link set dev eth0 mtu 8192; {FOLLOWED}"))
        switch = ready.switches["cisco"]
        where = f"{switch.address}:{switch.snmp.port}"
        command = ["snmpwalk", "-v2c", "-c", switch.secrets.community, "-Oqv", where, ".1.3.6.1.2.1.31.1.1.1.1"]
        print(subprocess.run([*command, "-t", "30"], capture_output=True, text=True, check=True).stdout)

asyncio.run(main())
"""


def test_an_ordinary_user_has_the_same_rig_with_switches_that_answer_and_links_that_follow(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.yaml"
    file.write_text((resources.scenarios() / "rigs" / "das2.yaml").read_text())
    command = [sys.executable, "-c", SCRIPT, str(file), str(Path(__file__).parents[1] / "support")]
    if os.geteuid() == 0:
        # Another user may not be able to read this interpreter; an unprivileged namespace owned by us can, and has no
        # more rights over the machine than any user.
        command = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--", *command]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[:3] == ["0", "eth0", "lo"]
    assert "rate 997083Kbit" in done.stdout
    assert {'"trunk.0"', '"trunk.1"', '"node112"'} <= set(words)
    eventually(lambda: survivors(f"{NAME}-") == [])
    assert list((tmp_path / "rigctl").iterdir()) == []

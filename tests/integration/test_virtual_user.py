"""A virtual rig without root: in a user namespace of its own."""

import os
import subprocess
import sys
from pathlib import Path

from virtual_rigs import NAME, rig, survivors, wait_until

SCRIPT = """
import asyncio, os, sys
from rigctl.rig.schema import load_rig
from rigctl.virtual import provided
sys.path.insert(0, sys.argv[2])
from virtual_rigs import output

async def main():
    assert os.geteuid() != 0
    assert "CapEff:\\t0000000000000000" in open("/proc/self/status").read()
    async with provided(load_rig(sys.argv[1])) as ready:
        print(await output(ready, "a", "id -u; ls /sys/class/net; ping -c 1 -W 2 b; tc qdisc show dev eth0"))

asyncio.run(main())
"""


def test_an_ordinary_user_has_the_same_rig(tmp_path: Path) -> None:
    tested = rig(tmp_path)
    command = [sys.executable, "-c", SCRIPT, str(tested.source), str(Path(__file__).parent)]
    if os.geteuid() == 0:
        # Another user may not be able to read this interpreter; an unprivileged namespace owned by us can, and has no
        # more rights over the machine than any user.
        command = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--", *command]
    done = subprocess.run(
        command,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["0", "eth0", "lo"]
    assert "1 received" in done.stdout
    assert "tbf" in done.stdout
    assert wait_until(lambda: survivors(f"{NAME}-") == [], 5)
    assert list((tmp_path / "rigctl").iterdir()) == []

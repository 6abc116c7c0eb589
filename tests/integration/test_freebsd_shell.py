"""The scripts for FreeBSD hosts, run by a real shell among programs that print what FreeBSD's manual pages have."""

import os
import shlex
import subprocess
from pathlib import Path

from freebsd_host import CC_TABLE, IFCONFIG, NETSTAT, NO_CARRIER, OTHERS, PCICONF, ROUTED
from processes import DEADLINE_S, program

from rigctl.probe import facts, surroundings
from rigctl.probe.readiness import CHECKED, parse_surroundings, surroundings_script

PROGRAMS = {
    "uname": 'case "$*" in -s) echo FreeBSD ;; -n) echo bsd ;; -sm) echo FreeBSD amd64 ;; *) echo FreeBSD 14.1 ;; esac',
    "ifconfig": 'case "$1" in -l) echo ix0 em0 lo0 ;; -a) cat ALL ;; ix0) cat IX0 ;; *) exit 1 ;; esac',
    "netstat": 'case "$*" in *-rn*) cat NETSTAT ;; *) printf "head\\n 12 0 0 125000 10 0 2500 0\\n" ;; esac',
    "route": "cat ROUTED",
    "pciconf": "cat PCICONF",
    "sysctl": 'for n in "$@"; do case "$n" in *available) cat CC ;; kern.vm_guest) echo none ;; kern.*) echo "$n-1" ;; '
    "net.*algorithm) echo net.inet.tcp.cc.algorithm: cubic ;; esac; done",
}
TEXTS = {"ALL": IFCONFIG + NO_CARRIER + OTHERS, "IX0": IFCONFIG, "CC": CC_TABLE}
TEXTS |= {"NETSTAT": NETSTAT, "ROUTED": ROUTED, "PCICONF": PCICONF}


def answered(command: str, folder: Path) -> str:
    """What `command` prints where these programs are found first."""
    for name, text in TEXTS.items():
        (folder / f"{name}.txt").write_text(text)
    for name, body in PROGRAMS.items():
        for text in TEXTS:
            body = body.replace(f"cat {text}", f"cat {shlex.quote(str(folder / f'{text}.txt'))}")
        program(folder / name, body)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "SSH_CONNECTION": "10.0.0.9 50122 10.0.0.1 22"}
    return subprocess.check_output(["sh", "-c", command], env=environment, text=True, timeout=DEADLINE_S)


def test_the_facts_of_a_check_come_back_from_the_shell(tmp_path: Path) -> None:
    found = facts.parse(answered(facts.script(None, "10.0.0.1", CHECKED), tmp_path), CHECKED)
    assert (found["interface"], found["mtu"], found["speed_bps"]) == ("ix0", 9000, 10**10)
    assert (found["up"], found["carrier"], found["pcie"]["width"]) == (True, 1, 4)
    assert found["sysctls"] == {"net.inet.tcp.cc.algorithm": "cubic", "net.inet.tcp.cc.available": "cubic newreno"}
    assert found["time_s"] > 1_700_000_000


def test_routes_and_traffic_come_back_from_the_shell(tmp_path: Path) -> None:
    script = surroundings_script("ix0", "10.0.0.1", ["10.0.0.2"], [str(tmp_path)], ["htcp"])
    found = parse_surroundings(answered(script, tmp_path))
    assert (found.routes["10.0.0.2"].device, found.routes["10.0.0.2"].mtu) == ("ix0", 9000)
    assert (found.rx_bps, found.tx_bps) == (1_000_000, 20_000)
    assert found.disks[0].free_bytes


def test_what_rig_init_asks_comes_back_from_the_shell(tmp_path: Path) -> None:
    found = surroundings.parse(answered(surroundings.script(), tmp_path))
    assert (found.system, found.machine, found.has_ip) == ("FreeBSD", "amd64", True)
    assert list(found.interfaces) == ["ix0", "em0", "lagg0", "ix0.20"]
    assert len(found.routes) == 5
    assert found.identity == ("kern.hostuuid-1", "kern.boottime-1")
    assert (found.ssh_address, found.is_virtual) == ("10.0.0.1", False)

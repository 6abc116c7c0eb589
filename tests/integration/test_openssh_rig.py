"""An ordinary rig as in a lab: hosts with OpenSSH around a switch, SSH and data over the same links.

The hosts are network namespaces that the test makes; the controller is one more host on the same switch.
"""

import itertools
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from openssh import new_key
from openssh_lab import Lab, cable, serve, sh
from processes import end

NODES = ("pi1", "pi2", "pi3", "pi4")
SCENARIO = (
    "rig: lab.yaml\npairs: [pi1 -> pi2, pi3 -> pi4]\nduration: 4s\nmax_skew: 1s\n"
    "matrix: {window: [64K], parallel: [1, 2]}\n"
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, f"rigtest{os.getpid()}")
    Path("/run/sshd").mkdir(exist_ok=True)
    servers = []
    hosts = {name: f"10.98.0.{number}" for number, name in enumerate([*NODES, "ctl"], 1)}
    try:
        sh("ip", "netns", "add", made.host("switch"))
        sh("ip", "-n", made.host("switch"), "link", "add", "br0", "type", "bridge")
        sh("ip", "-n", made.host("switch"), "link", "set", "br0", "up")
        new_key(tmp_path / "id")
        for name, address in hosts.items():
            cable(made, name, address)
        servers = [serve(made, name, hosts[name]) for name in NODES]
        known = [f"{hosts[n]} {(tmp_path / n / 'host_key.pub').read_text()}" for n in NODES]
        (tmp_path / "known").write_text("".join(known))
        nodes = "".join(f"  {name}: {{address: {hosts[name]}, data_interface: eth0}}\n" for name in NODES)
        trust = "user: root, key: id, known_hosts: known"
        nodes = nodes.replace("data_interface", f"{trust}, data_interface")
        (tmp_path / "lab.yaml").write_text(f"switch: bridge\nlinks: {{mtu: 1500}}\nnodes:\n{nodes}")
        (tmp_path / "s.yaml").write_text(SCENARIO)
        rules = "table ip count { chain in { type filter hook input priority 0; tcp sport 22 counter; }; }"
        sh(*made.inside("ctl", "nft", rules))
        time.sleep(0.5)
        yield made
    finally:
        for server in servers:
            end(server, politely_for_s=5)
        for name in [*hosts, "switch"]:
            subprocess.run(["ip", "netns", "del", made.host(name)], check=False)


def test_a_lab_with_openssh_is_measured_and_left_as_it_was(lab: Lab) -> None:
    run = lab.rigctl("run", "s.yaml", "--no-report")
    assert run.stderr is not None
    assert run.stderr.readline().startswith("test 1/2")
    counts = [lab.control_packets()]
    for _ in range(5):  # in some of them the orders are given, in others the traffic runs
        time.sleep(1)
        counts.append(lab.control_packets())
    control = [after - before for before, after in itertools.pairwise(counts)]
    out, errors = run.communicate(timeout=60)
    assert run.returncode == 0, out + errors
    # One short line per receiver and second; a sign of life of the lock or the watchdog may fall in between.
    assert min(control) <= 2 * len(NODES)
    assert max(control) >= 1
    exported = lab.rigctl("export", "--format", "json", "--level", "pairs")
    rows = json.loads(exported.communicate(timeout=60)[0])
    assert len(rows) == 4
    assert all(row["status"] == "ok" and row["mss_effective"] == 1448 and row["ceiling_mbps"] is None for row in rows)
    for name in NODES:
        assert all("sshd" in command for command in lab.processes(name)), lab.processes(name)


def test_a_data_interface_that_leads_nowhere_ends_the_run_before_any_traffic(lab: Lab) -> None:
    rig = lab.folder / "lab.yaml"
    lines = rig.read_text().splitlines(keepends=True)
    for interface, why in (("eth7", "does not exist"), ("lo", "has no global address")):
        rig.write_text("".join(line.replace("eth0", interface) if "pi2:" in line else line for line in lines))
        _, errors = lab.rigctl("run", "s.yaml").communicate(timeout=60)
        assert f"rigctl: pi2: data_interface {interface} {why}. Interfaces of the node: lo" in errors
        assert "eth0 (10.98.0.2)" in errors
    listed, _ = lab.rigctl("runs").communicate(timeout=60)
    assert "No runs yet" in listed

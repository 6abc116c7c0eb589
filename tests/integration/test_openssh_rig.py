"""An ordinary rig as in a lab: hosts with OpenSSH around a switch, SSH and data over the same links.

The hosts are network namespaces that the test makes; the controller is one more host on the same switch.
"""

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from openssh_lab import Lab, laboratory, sh

NODES = ("pi1", "pi2", "pi3", "pi4")
SCENARIO = (
    "rig: lab.yaml\npairs: [pi1 -> pi2, pi3 -> pi4]\nduration: 4s\nmax_skew: 1s\n"
    "matrix: {window: [64K], parallel: [1, 2]}\n"
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with laboratory(tmp_path, NODES) as made:
        (tmp_path / "s.yaml").write_text(SCENARIO)
        rules = "table ip count { chain in { type filter hook input priority 0; tcp sport 22 counter; }; }"
        sh(*made.inside("ctl", "nft", rules))
        yield made


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
    rig.write_text("".join(line.replace("eth0", "eth7") if "pi2:" in line else line for line in lines))
    _, errors = lab.rigctl("run", "s.yaml").communicate(timeout=60)
    assert "rigctl: pi2: data_interface eth7 does not exist. Interfaces of the node: lo" in errors
    assert "eth0 (10.98.0.2)" in errors
    listed, _ = lab.rigctl("runs").communicate(timeout=60)
    assert "No runs yet" in listed

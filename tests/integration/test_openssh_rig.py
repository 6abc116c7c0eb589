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
    "rig: lab.yaml\npairs: [pi1 -> pi2, pi3 -> pi4]\nduration: 3s\nmax_skew: 1s\n"
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
    run = lab.start("run", "s.yaml", "--no-report")
    assert run.stderr is not None
    assert run.stderr.readline().startswith("test 1/2")
    counts = [lab.control_packets()]
    for _ in range(4):  # in some of them the orders are given, in others the traffic runs
        time.sleep(1)
        counts.append(lab.control_packets())
    control = [after - before for before, after in itertools.pairwise(counts)]
    out, errors = run.communicate(timeout=60)
    assert run.returncode == 0, out + errors
    # One short line per receiver and second; a sign of life of the lock or the watchdog may fall in between.
    assert min(control) <= 2 * len(NODES)
    assert max(control) >= 1
    rows = json.loads(lab.rigctl("export", "--format", "json", "--level", "pairs")[0])
    assert len(rows) == 4
    assert all(row["status"] == "ok" and row["mss_effective"] == 1448 and row["ceiling_mbps"] is None for row in rows)
    for name in NODES:
        assert all("sshd" in command for command in lab.processes(name).values()), lab.processes(name)


def test_a_data_interface_that_leads_nowhere_ends_the_run_before_any_traffic(lab: Lab) -> None:
    rig = lab.folder / "lab.yaml"
    lines = rig.read_text().splitlines(keepends=True)
    rig.write_text("".join(line.replace("eth0", "eth7") if "pi2:" in line else line for line in lines))
    _, errors = lab.rigctl("run", "s.yaml", code=3)
    assert "rigctl: pi2: data_interface eth7 does not exist. Interfaces of the node: lo" in errors
    assert "eth0 (10.98.0.2)" in errors
    assert "No runs yet" in lab.rigctl("runs")[0]


def _status_by_pair(lab: Lab) -> dict[tuple[int, str], tuple[str, bool]]:
    """Of each test and source the status, and whether its goodput is known; the last attempt counts."""
    rows = json.loads(lab.rigctl("export", "--format", "json", "--level", "pairs")[0])
    return {(row["cell"], row["source"]): (row["status"], row["goodput_mbps"] is not None) for row in rows}


def refusing(lab: Lab, name: str) -> None:
    """Cut the SSH connections of a host, and refuse others."""
    rule = "table ip shut { chain i { type filter hook input priority 0; tcp dport 22 reject with tcp reset; }; }"
    sh(*lab.inside(name, "nft", rule))
    sh(*lab.inside(name, "ss", "-K", "state", "established", "sport", "=", ":22"))


def test_a_night_has_the_pairs_whose_nodes_answer_names_the_others_and_is_whole_when_it_is_resumed(lab: Lab) -> None:
    (lab.folder / "s.yaml").write_text(SCENARIO.replace("3s", "600ms"))
    refusing(lab, "pi4")
    told = lab.folder / "told.md"
    words = ("s.yaml", "--rig", "lab.yaml", "--at", "02:30", "--name", "n", "--store", "s.db")
    options = ("--without-unreachable", "--notify", f"cat >>{told}")
    lab.rigctl("nightly", "install", *words, *options)
    lab.rigctl("nightly", "run", "n", code=3)
    assert "measured in part: tests 1, 2: not measured: pi3 → pi4 (pi4: connection refused" in told.read_text()
    known = {(number, source): ("ok", source == "pi1") for number in (1, 2) for source in ("pi1", "pi3")}
    assert _status_by_pair(lab) == known
    sh(*lab.inside("pi4", "nft", "delete table ip shut"))
    (listed,) = json.loads(lab.rigctl("runs", "--json")[0])["runs"]
    lab.rigctl("run", "s.yaml", "--no-report", "--resume", listed["run"])
    assert set(_status_by_pair(lab).values()) == {("ok", True)}


def test_a_node_that_is_lost_in_the_first_test_does_not_lose_the_other_pair_in_the_second(lab: Lab) -> None:
    run = lab.start("run", "s.yaml", "--no-report")
    assert run.stderr is not None
    assert run.stderr.readline().startswith("test 1/2")
    time.sleep(1)
    refusing(lab, "pi4")
    out, errors = run.communicate(timeout=120)
    assert run.returncode == 3, out + errors
    statuses = _status_by_pair(lab)
    assert (statuses[2, "pi1"], statuses[2, "pi3"]) == (("ok", True), ("ok", False)), out + errors

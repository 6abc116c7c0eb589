"""An ordinary rig as in a lab: hosts with OpenSSH around a switch, SSH and data over the same links.

The hosts are network namespaces that the test makes; the controller is one more host on the same switch.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from openssh_lab import Lab, laboratory, sh
from processes import DEADLINE_S, eventually

NODES = ("pi1", "pi2", "pi3", "pi4")
SCENARIO = "rig: lab.yaml\npairs: [pi1 -> pi2, pi3 -> pi4]\nmax_skew: 60s\n"
TWO_TESTS = f"{SCENARIO}duration: 600ms\nrate: 100M\nmatrix: {{window: [64K], parallel: [1, 2]}}\n"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with laboratory(tmp_path_factory.mktemp("lab"), NODES) as made:
        rules = "table ip count { chain in { type filter hook input priority 0; tcp sport 22 counter; }; }"
        sh(*made.inside("ctl", "nft", rules))
        yield made


@pytest.fixture
def lab(hosts: Lab, tmp_path: Path) -> Lab:
    return hosts.at(tmp_path)


def test_a_lab_with_openssh_is_measured_and_left_as_it_was(lab: Lab) -> None:
    (lab.folder / "s.yaml").write_text(f"{SCENARIO}duration: 6s\nwindow: 64K\nrate: 100M\n")
    arrived = lab.received("pi2")
    run = lab.start("run", "s.yaml", "--no-report")
    looks: list[tuple[float, int, int, int, float]] = []
    turns = count()

    def look() -> bool:
        if next(turns) % 10 == 0:  # each starts a program
            before = time.monotonic(), lab.received("pi2")
            looks.append((*before, lab.control_packets(), lab.received("pi2"), time.monotonic()))
        return run.poll() is not None

    eventually(look)
    out, errors = run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 0, out + errors
    # Four short lines per receiver and second; a sign of life of the lock or the watchdog may fall in between.
    began, *_, ended = [look for look in looks if look[1] > arrived + 10**6 and look[3] < looks[-1][3] - 10**6]
    assert ended[2] - began[2] <= 4 * len(NODES) * (ended[4] - began[0] + 1)
    rows = json.loads(lab.rigctl("export", "--format", "json", "--level", "pairs"))
    assert len(rows) == 2
    assert all(row["status"] == "ok" and row["mss_effective"] == 1448 and row["ceiling_mbps"] is None for row in rows)
    eventually(lambda: all("sshd" in command for name in NODES for command in lab.processes(name).values()))


def test_a_data_interface_that_leads_nowhere_ends_the_run_before_any_traffic(lab: Lab) -> None:
    rig = lab.folder / "lab.yaml"
    lines = rig.read_text().splitlines(keepends=True)
    (lab.folder / "s.yaml").write_text(TWO_TESTS)
    rig.write_text("".join(line.replace("eth0", "eth7") if "pi2:" in line else line for line in lines))
    errors = lab.rigctl("run", "s.yaml", code=3)
    assert "rigctl: pi2: data_interface eth7 does not exist. Interfaces of the node: lo" in errors
    assert "eth0 (10.98.0.2)" in errors
    assert "No runs yet" in lab.rigctl("runs")


def _status_by_pair(lab: Lab, result: str, level: str = "pairs") -> dict[tuple[int, str], tuple[str, bool]]:
    """Return the status of each test and source, and whether its result is known."""
    rows = json.loads(lab.rigctl("export", "--format", "json", "--level", level))
    return {(row["cell"], row["source"]): (row["status"], row[result] is not None) for row in rows}


@contextmanager
def refusing(lab: Lab, name: str) -> Iterator[None]:
    """Cut the SSH connections of a host, and refuse others during the block."""
    rule = "table ip shut { chain i { type filter hook input priority 0; tcp dport 22 reject with tcp reset; }; }"
    sh(*lab.inside(name, "nft", rule))
    try:
        sh(*lab.inside(name, "ss", "-K", "state", "established", "sport", "=", ":22"))
        yield
    finally:
        sh(*lab.inside(name, "nft", "delete table ip shut"))


def test_a_night_has_the_pairs_whose_nodes_answer_names_the_others_and_is_whole_when_it_is_resumed(lab: Lab) -> None:
    (lab.folder / "s.yaml").write_text(TWO_TESTS)
    told = lab.folder / "told.md"
    words = ("s.yaml", "--rig", "lab.yaml", "--at", "02:30", "--name", "n", "--store", "s.db")
    options = ("--without-unreachable", "--notify", f"cat >>{told}")
    with refusing(lab, "pi4"):
        lab.rigctl("nightly", "install", *words, *options)
        lab.rigctl("nightly", "run", "n", code=3)
    assert "measured in part: tests 1, 2: not measured: pi3 → pi4 (pi4: connection refused" in told.read_text()
    known = {(number, source): ("ok", source == "pi1") for number in (1, 2) for source in ("pi1", "pi3")}
    assert _status_by_pair(lab, "goodput_mbps") == known
    (listed,) = json.loads(lab.rigctl("runs", "--json"))["runs"]
    lab.rigctl("run", "s.yaml", "--no-report", "--resume", listed["run"])
    assert set(_status_by_pair(lab, "goodput_mbps").values()) == {("ok", True)}


def test_a_node_that_is_lost_in_the_first_test_does_not_lose_the_other_pair_in_the_second(lab: Lab) -> None:
    endless = f"{SCENARIO}test: pingpong\nsize: 1K\nduration: 60s\nmatrix: {{iterations: [1000000000, 1000]}}\n"
    (lab.folder / "s.yaml").write_text(endless)
    arrived = lab.received("pi4")
    run = lab.start("run", "s.yaml", "--no-report")
    assert run.stderr is not None
    assert run.stderr.readline().split()[0] == "Test"
    eventually(lambda: lab.received("pi4") > arrived + 10**7)
    with refusing(lab, "pi4"):
        out, errors = run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 3, out + errors
    measured = [test for test, status in _status_by_pair(lab, "elapsed_s", "flows").items() if status == ("ok", True)]
    assert measured == [(2, "pi1")], out + errors

"""The kselftest of examples/, in the environment of the kernel's drivers/net tests: by ssh to OpenSSH, and by netns.

Both ends are network namespaces that the test makes, joined by a switch; the kernel's runner is their caller.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from openssh_lab import ROOT, Lab, laboratory, named_in_ssh_config, sh
from processes import DEADLINE_S, eventually, program

ADDRESSES = {"NETIF": "eth0", "LOCAL_V4": "10.98.0.2", "REMOTE_V4": "10.98.0.1"}


@dataclass
class Tree:
    """The folder drivers/net of a kernel tree, on the local end."""

    lab: Lab

    def runs(self, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the test as kselftest's runner does: in its folder, with both outputs together."""
        environment = {**self.lab.environment, "PATH": f"{self.lab.folder}/bin:/usr/bin:/bin", **variables}
        words = self.lab.inside("ctl", f"{self.lab.folder}/net/rigctl.sh")
        return subprocess.run(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S
        )

    def by_netns(self) -> dict[str, str]:
        return ADDRESSES | {"REMOTE_TYPE": "netns", "REMOTE_ARGS": self.lab.host("dut")}

    def changes(self, old: str, new: str) -> None:
        scenario = self.lab.folder / "net" / "rigctl.yaml"
        assert old in scenario.read_text()
        scenario.write_text(scenario.read_text().replace(old, new))


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with laboratory(tmp_path_factory.mktemp("lab"), ["dut"], named=True) as made:
        yield made


@pytest.fixture
def tree(hosts: Lab, tmp_path: Path) -> Tree:
    """The example with short and slow tests, whose expectation any machine meets."""
    lab = hosts.at(tmp_path)
    named_in_ssh_config(lab, ["dut"])
    program(tmp_path / "bin" / "rigctl", f'exec {sys.executable} -m rigctl "$@"')
    shutil.copytree(ROOT / "examples" / "kselftest", tmp_path / "net")
    made = Tree(lab)
    made.changes("duration: 2s\nrepeat: 3\n", "duration: 500ms\nrepeat: 1\nmax_skew: 60s\nrate: 100M\n")
    made.changes(">= 900M", "> 0M")
    return made


def read(text: str, folder: Path) -> tuple[int, int]:
    """Return how many tests of a document are ok and are not, as Perl's TAP::Parser reads it."""
    (folder / "document").write_text(text)
    asked = subprocess.run(["prove", "-v", "--exec", "cat", "document"], cwd=folder, capture_output=True, text=True)
    found = re.search(r"Tests: (\d+) Failed: (\d+)\)|, Tests=(\d+),", asked.stdout)
    assert found is not None, asked
    assert "Parse errors" not in asked.stdout, asked
    whole, failed = int(found[1] or found[3]), int(found[2] or 0)
    return whole - failed, failed


def test_a_host_that_ssh_knows_by_name_is_measured_in_both_directions(tree: Tree) -> None:
    done = tree.runs(**ADDRESSES, REMOTE_TYPE="ssh", REMOTE_ARGS="root@dut")
    assert done.returncode == 0, done.stdout
    document = done.stdout[done.stdout.index("KTAP version 1") :]
    assert read(document, tree.lab.folder) == (2, 0)
    assert document.count("# limit: ") == 2
    assert tree.lab.rigctl("show").count("kselftest")
    eventually(lambda: not any("/agent-" in line for line in tree.lab.processes("dut").values()))


def test_a_namespace_is_measured_and_its_settings_are_restored_beside_those_of_the_machine(tree: Tree) -> None:
    tree.changes("repeat: 1", "repeat: 1\nconditions: {small: {mtu: 1400}}")
    (tree.lab.folder / "net" / "net.config").write_text("".join(f"{k}={v}\n" for k, v in tree.by_netns().items()))
    done = tree.runs()
    assert done.returncode == 0, done.stdout
    assert read(done.stdout[done.stdout.index("KTAP version 1") :], tree.lab.folder) == (2, 0)
    assert "test 1: small, " in done.stdout
    assert "1348" in tree.lab.rigctl("show", "--all")  # MSS: 1400 less 40 of headers and 12 of timestamps
    for end in ("ctl", "dut"):
        assert "mtu 1500" in sh(*tree.lab.inside(end, "ip", "link", "show", "eth0"))
    eventually(lambda: not any("/agent-" in line for line in tree.lab.processes("dut").values()))


def test_a_missed_expectation_is_exit_code_1_and_not_ok(tree: Tree) -> None:
    tree.changes("> 0M", ">= 100G")
    done = tree.runs(**tree.by_netns())
    assert done.returncode == 1
    assert read(done.stdout[done.stdout.index("KTAP version 1") :], tree.lab.folder) == (0, 2)
    assert "expected >= 100G" in done.stdout


def test_what_cannot_run_is_skipped_and_what_is_set_wrong_has_failed(tree: Tree) -> None:
    skipped = tree.runs(**tree.by_netns() | {"NETIF": ""})
    assert (skipped.returncode, skipped.stdout.split(":")[0]) == (4, "SKIP")
    wrong = tree.runs(**tree.by_netns() | {"REMOTE_TYPE": "vsock", "REMOTE_V4": ""})
    assert wrong.returncode == 1
    told = 'REMOTE_V4 is not set: expected the IPv4 address of the remote end; REMOTE_TYPE is "vsock": expected ssh or'
    assert wrong.stdout.startswith(f"rigctl: rigctl.yaml:3:6: kselftest: {told}")
    gone = tree.runs(**tree.by_netns() | {"REMOTE_ARGS": "no-such-namespace"})
    assert gone.returncode == 1
    assert "remote: transport netns: there is no network namespace no-such-namespace" in gone.stdout
    other = tree.runs(**tree.by_netns() | {"LOCAL_V4": "10.98.0.77"})
    assert other.returncode == 1
    assert "\nlocal: no route to remote (10.98.0.1): " in other.stdout
    (tree.lab.folder / "bin" / "rigctl").unlink()
    assert tree.runs(**tree.by_netns()).returncode == 4

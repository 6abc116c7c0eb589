"""Against a real slurmctld and slurmd: nodes of an allocation, reached by srun, with SSH nowhere."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from builders import put
from meshes import mesh_run
from openssh_lab import Lab, cable, sh, switched
from processes import DEADLINE_S, eventually, program, running, signal_all
from user import ended

from rigctl.store import open_store

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = ("slurmctld", "slurmd", "srun", "sbatch", "salloc", "scancel", "scontrol", "munged", "ip", "unshare")
PATH: Final = f"{os.environ['PATH']}:/usr/sbin:/sbin"
SUBNET: Final = "10.87.0"
CONFIGURATION: Final = Path(__file__).with_name("slurm.conf").read_text()


@dataclass
class Cluster(Lab):
    names: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """Of a user at the head: a home and a store of their own; no variable of an allocation."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SRUN"))}
        files = {"SLURM_CONF": "slurm.conf", "RIGCTL_STORE": "s.db", "HOME": ""}
        return kept | {name: str(self.folder / file) for name, file in files.items()} | {"PYTHONPATH": str(ROOT)}

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        how: dict[str, Any] = {"text": True, "capture_output": True, "stdin": subprocess.DEVNULL, "timeout": DEADLINE_S}
        return subprocess.run(self.inside("head", *words), cwd=self.folder, env=self.environment, **how)

    def exported(self, *words: str) -> str:
        """The output of `rigctl export`, which takes no allocation."""
        done = ended(("export", *words), self.folder, self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def salloc(self, nodes: int, *words: str) -> list[str]:
        """The words of a command in an allocation of its own; with --rigctl as the first, of this checkout's rigctl."""
        command = [sys.executable, "-m", "rigctl", *words[1:]] if words[:1] == ("rigctl",) else list(words)
        return ["salloc", "--quiet", f"--nodes={nodes}", "--exclusive", *command]

    def wait(self, holds: Callable[[], bool]) -> None:
        try:
            eventually(holds)
        except AssertionError as error:
            asked = (("squeue", "-a", "-o", "%i %T %r %N"), ("sinfo", "-N", "-o", "%N %T %E"))
            said = "".join(self.run(*words).stdout for words in asked)
            files = [path for kind in ("*.log", "*.out") for path in self.folder.glob(kind)]
            logs = "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in files)
            raise AssertionError(f"the cluster is not up, the job not done, or no traffic\n{said}\n{logs}") from error

    def left(self, name: str) -> list[str]:
        """Return what runs on a node besides Slurm's daemon."""
        return [line for line in self.processes(name).values() if "slurmd " not in line]


@contextmanager
def cluster(folder: Path, nodes: int) -> Iterator[Cluster]:
    """A cluster of `nodes` nodes n1, n2, …; at the end of the block nothing of it is left."""
    names = tuple(f"n{number}" for number in range(1, nodes + 1))
    hosts = {"head": f"{SUBNET}.1"} | {name: f"{SUBNET}.{10 + number}" for number, name in enumerate(names, 1)}
    made = Cluster(folder, f"slurm{os.getpid()}", names)
    (folder / "state").mkdir()
    lines = "\n".join(f"NodeName={name} NodeAddr={hosts[name]} CPUs=1 State=UNKNOWN" for name in names)
    text = CONFIGURATION.format(subnet=SUBNET, folder=folder, nodes=lines, names=",".join(names))
    (folder / "slurm.conf").write_text(text, encoding="utf-8")
    # Nothing uses cgroups; without a word about them slurmd looks for them.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
    for name in names:
        (folder / f"spool-{name}").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    how: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    how |= {"env": made.environment | {"PATH": PATH}, "start_new_session": True}
    with switched(made), ExitStack() as stack:
        stack.callback(_swept, made)
        for name, address in hosts.items():
            cable(made, name, address)
        # --force: the folder is a test's, its parents are not root's alone. No seed, pid or log file elsewhere.
        files = [f"--{what}-file={folder}/munge.{what}" for what in ("key", "pid", "log", "seed")]
        files.append(f"--socket={folder}/munge.socket")
        stack.enter_context(running(["munged", "--foreground", "--force", "--num-threads=1", *files], **how))
        made.wait((folder / "munge.socket").exists)
        for name in ("head", *names):
            daemon = "slurmctld" if name == "head" else "slurmd"
            command = made.inside(name, "unshare", "--uts", "sh", "-c", f"hostname {name}; exec {daemon} -D")
            stack.enter_context(running(command, **how))
        yield made
        made.run("scancel", "--user=root")


def _swept(made: Cluster) -> None:
    """End what still runs in the cluster's namespaces: steps' daemons outlive slurmd."""
    for host in ("head", *made.names):
        signal_all(made.processes(host), signal.SIGKILL)


SCENARIO = """
title: Between the halves of an allocation
pairs: left -> right
duration: {duration}
repeat: 1
max_skew: 1s
conditions:
  smaller: {{mtu: 1400}}
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    assert os.geteuid() == 0
    assert [name for name in PROGRAMS if shutil.which(name, path=PATH) is None] == [], "install by `make system`"
    # A short path: it holds the sockets of slurmd and munge.
    with cluster(tmp_path_factory.mktemp("s"), nodes=2) as made:
        yield made


@pytest.fixture
def slurm(both: Cluster) -> Cluster:
    """Return the cluster once its nodes are idle: beside a job that completes, a new one may wait for long."""
    both.wait(lambda: both.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout == "2\n")
    return both


def scenario(slurm: Cluster, duration: str) -> str:
    path = slurm.folder / f"s-{duration}.yaml"
    path.write_text(SCENARIO.format(duration=duration), encoding="utf-8")
    return str(path)


def mtus(slurm: Cluster) -> list[str]:
    return [sh(*slurm.inside(name, "cat", "/sys/class/net/eth0/mtu")).strip() for name in slurm.names]


def nothing_runs(slurm: Cluster) -> None:
    eventually(lambda: not any(map(slurm.left, slurm.names)), "something is left on the nodes")


def traceless(slurm: Cluster) -> None:
    """Within the deadline nothing runs on the nodes, and their settings are as before."""
    nothing_runs(slurm)
    assert mtus(slurm) == ["1500", "1500"]


def flows(slurm: Cluster, over: Callable[[], bool] = lambda: False) -> None:
    """Wait until traffic flows, under the condition; not once the run is over."""
    slurm.wait(lambda: mtus(slurm) == ["1400", "1400"] or over())
    before = slurm.received("n2")
    slurm.wait(lambda: slurm.received("n2") > before + 10_000_000 or over())


def measuring(slurm: Cluster) -> "subprocess.Popen[str]":
    """A run of half a minute in an allocation, once its traffic flows."""
    words = slurm.inside("head", *slurm.salloc(2, "rigctl", "run", scenario(slurm, "30s"), "--rig", "slurm"))
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    how: dict[str, Any] = {"cwd": slurm.folder, "env": slurm.environment, "text": True, "start_new_session": True}
    process: subprocess.Popen[str] = subprocess.Popen(words, **pipes, **how)
    flows(slurm, lambda: process.poll() is not None)
    assert process.poll() is None, process.communicate(timeout=DEADLINE_S)[0]
    return process


def kill_at_the_head(slurm: Cluster, pattern: str) -> None:
    for pid, line in sorted(slurm.processes("head").items(), reverse=True):
        if re.search(pattern, line):
            os.kill(pid, signal.SIGKILL)


def test_a_heterogeneous_job_has_the_nodes_of_both_its_components(slurm: Cluster) -> None:
    command = [sys.executable, "-m", "rigctl", "run", scenario(slurm, "1s"), "--rig", "slurm"]
    parts = ["--nodes=1", "--nodelist=n2", "--exclusive", ":", "--nodes=1", "--nodelist=n1", "--exclusive"]
    done = slurm.run("salloc", "--quiet", *parts, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(slurm.exported("--format", "json", "--level", "pairs"))
    assert [(row["source"], row["destination"], row["status"]) for row in rows] == [("n2", "n1", "ok")]
    traceless(slurm)


def test_a_cancelled_job_leaves_nothing_and_the_run_says_why(slurm: Cluster) -> None:
    process = measuring(slurm)
    slurm.run("scancel", "--user=root")
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert re.search(r"failed: .*n[12]: the agent ended: .*STEP .* CANCELLED", " ".join(said.split()))
    traceless(slurm)


def test_a_killed_controller_leaves_nothing(slurm: Cluster) -> None:
    process = measuring(slurm)
    kill_at_the_head(slurm, r"^\S*python\S* -m rigctl run")
    process.communicate(timeout=DEADLINE_S)
    traceless(slurm)


@pytest.mark.torture
@pytest.mark.long
def test_where_srun_was_killed_nothing_runs_on_and_the_next_run_finds_settings_restored(slurm: Cluster) -> None:
    process = measuring(slurm)
    # The child of srun that would cancel its step first: then nobody on the node learns of it.
    kill_at_the_head(slurm, r"^\S*srun .*--nodelist=")
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert "killed by SIGKILL" in said
    nothing_runs(slurm)
    # Slurm may have killed the agent with its guard, by SIGKILL: then the journal restores at the next contact.
    slurm.run(*slurm.salloc(2, "rigctl", "run", scenario(slurm, "1s"), "--rig", "slurm", "--quiet"))
    traceless(slurm)


def test_a_rig_file_from_an_allocation_names_its_interfaces_and_is_checked(slurm: Cluster) -> None:
    line = f"{sys.executable} -m rigctl"
    script = f"{line} rig init --slurm -o lab.yaml && {line} check lab.yaml --all"
    done = slurm.run(*slurm.salloc(2, "sh", "-c", script))
    assert done.returncode == 0, done.stdout + done.stderr
    made = (slurm.folder / "lab.yaml").read_text(encoding="utf-8")
    assert re.search(r"^transport: srun ", made, re.MULTILINE)
    assert made.count("  data_interface: eth0\n") == 1  # under defaults
    assert "reached by srun" in " ".join(done.stdout.split())


NODE_LEAVES = """
import asyncio, subprocess, sys
from rigctl.base.errors import NodeError
from rigctl.remote.host import connect_node
from rigctl.rig.load import load_rig

async def main():
    nodes = load_rig("slurm").nodes
    async with connect_node(nodes["n1"]) as n1, connect_node(nodes["n2"]) as n2:
        data = bytes(range(256)) * 4096
        assert (await n1.run("cat", input=data)).output == data
        done = await n2.run("echo $0 >&2; uname -n; exit 7")
        print(done.exit_code, done.stdout.strip(), done.complaint)
        subprocess.run(["scontrol", "update", "JobId=" + sys.argv[1], "NodeList=n1"], check=True, capture_output=True)
        print((await n1.run("uname -n")).stdout.strip())
        try:
            await n2.run("uname -n")
        except NodeError as error:
            print(error)

asyncio.run(main())
"""


def test_a_node_that_left_the_allocation_is_named(slurm: Cluster) -> None:
    (slurm.folder / "leaves.py").write_text(NODE_LEAVES)
    done = slurm.run(*slurm.salloc(2, "sh", "-c", f"{sys.executable} {slurm.folder}/leaves.py $SLURM_JOB_ID"))
    # slurmctld 22.05 goes on counting the core that a job gave up: after one more job no batch job gets it.
    slurm.run("scontrol", "reconfigure")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["7 n2 /bin/sh (exit code 7)", "n1"], done.stdout + done.stderr
    left = r"n2: it is not in the allocation \(job \d+\)( any more, or is down)?: srun: error: .*"
    assert re.fullmatch(left, lines[2])
    assert len(lines) == 3


def submitted(slurm: Cluster, duration: str) -> str:
    """The job script of the documentation, by sbatch: the number of the job."""
    page = (ROOT / "docs/how-to/slurm.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^(#!/bin/sh\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    (slurm.folder / "job.sh").write_text(script, encoding="utf-8")
    (slurm.folder / "scenario.yaml").write_text(SCENARIO.format(duration=duration), encoding="utf-8")
    rigctl = program(slurm.folder / "bin" / "rigctl", f'exec {sys.executable} -m rigctl "$@"')
    path = f"PATH={rigctl.parent}:{os.environ['PATH']}"
    for left in ("job.out", "report.html"):
        (slurm.folder / left).unlink(missing_ok=True)
    done = slurm.run("env", path, "sbatch", "--parsable", "--nodes=2", "--output=job.out", "job.sh")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def job_ended(slurm: Cluster, job: str) -> str:
    slurm.wait((slurm.folder / "report.html").exists)
    eventually(lambda: job not in slurm.run("squeue", "-h", "-o", "%i").stdout.split())
    return (slurm.folder / "job.out").read_text(encoding="utf-8")


def test_the_job_script_of_the_documentation_measures_and_leaves_nothing(slurm: Cluster) -> None:
    said = job_ended(slurm, submitted(slurm, "1s"))
    assert "Mbit/s" in said
    assert "failed" not in said
    (row,) = json.loads(slurm.exported("--format", "json", "--level", "pairs"))
    assert (row["source"], row["destination"], row["mtu"]) == ("n1", "n2", 1400)
    assert row["goodput_mbps"] > 0
    traceless(slurm)


@pytest.mark.torture
@pytest.mark.long
def test_a_job_near_its_time_limit_is_interrupted_and_reports(slurm: Cluster) -> None:
    job = submitted(slurm, "30s")
    flows(slurm)
    slurm.run("scancel", "--batch", "--signal=INT", job)
    assert "interrupted: stopped by Ctrl-C or a signal" in job_ended(slurm, job)
    traceless(slurm)


def test_the_exported_command_drains_the_slow_node_of_a_mesh(slurm: Cluster, tmp_path: Path) -> None:
    address = str(tmp_path / "mesh.db")
    with open_store(address) as store:
        run = put(store, *mesh_run({("n2", ""): 3000}))
    command = slurm.exported(run, "--format", "slurm", "--store", address)
    try:
        done = slurm.run("sh", "-c", command)
        assert (done.returncode, done.stderr) == (0, "")
        shown = slurm.run("scontrol", "show", "node", "n2").stdout
        assert re.search(r"State=\S*DRAIN", shown)
        assert f"Reason=rigctl {run}: slow in sending, 3.00 Gbit/s, others 9.40 Gbit/s" in shown
        assert "DRAIN" not in slurm.run("scontrol", "show", "node", "n1").stdout
    finally:
        slurm.run("scontrol", "update", "nodename=n2", "state=resume")

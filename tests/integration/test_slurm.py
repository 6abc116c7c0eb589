"""Against a real slurmctld and slurmd: nodes of an allocation, reached by srun, with SSH nowhere."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_lab import ROOT, Cluster, cluster, missing

SCENARIO = """
title: Between the halves of an allocation
pairs: left -> right
duration: {duration}
repeat: 1
conditions:
  smaller: {{mtu: 1400}}
"""
DEADLINE_S = 40.0


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    assert not missing(), f"not installed: {', '.join(missing())} (make system)"
    # A short path: it holds the sockets of slurmd and munge.
    with cluster(tmp_path_factory.mktemp("s"), nodes=2) as ready:
        yield ready


def scenario(slurm: Cluster, duration: str) -> str:
    path = slurm.folder / f"s-{duration}.yaml"
    path.write_text(SCENARIO.format(duration=duration), encoding="utf-8")
    return str(path)


def eventually(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def mtus(slurm: Cluster) -> list[str]:
    return [
        subprocess.run(
            slurm.on(name, "cat", "/sys/class/net/eth0/mtu"), capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in slurm.names
    ]


def traceless(slurm: Cluster) -> None:
    """Within the deadline nothing runs on the nodes, and their settings are as before."""
    eventually(lambda: not any(slurm.left(name) for name in slurm.names), "something is left on the nodes")
    assert mtus(slurm) == ["1500", "1500"]


def flows(slurm: Cluster) -> None:
    """Wait until traffic flows, under the condition."""

    def received() -> int:
        counter = slurm.on("n2", "cat", "/sys/class/net/eth0/statistics/rx_bytes")
        return int(subprocess.run(counter, capture_output=True, text=True, check=True).stdout)

    eventually(lambda: mtus(slurm) == ["1400", "1400"], "the condition was not applied")
    before = received()
    eventually(lambda: received() > before + 10_000_000, "no traffic")


def measuring(slurm: Cluster) -> "subprocess.Popen[str]":
    """A run of half a minute in an allocation, once its traffic flows."""
    process = subprocess.Popen(
        slurm.on("head", *slurm.salloc(2, "rigctl", "run", scenario(slurm, "30s"), "--rig", "slurm")),
        cwd=slurm.folder, env=slurm.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    flows(slurm)
    return process


def at_the_head(slurm: Cluster, pattern: str) -> list[int]:
    """Processes there whose command line matches."""
    listed = subprocess.run(
        ["ip", "netns", "pids", f"{slurm.prefix}-head"], capture_output=True, text=True, check=True
    ).stdout.split()
    found = []
    for pid in listed:
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if re.search(pattern, line):
            found.append(int(pid))
    return found


def test_a_run_in_an_allocation_measures_and_leaves_nothing(slurm: Cluster) -> None:
    done = slurm.run(*slurm.salloc(2, "rigctl", "run", scenario(slurm, "1s"), "--rig", "slurm", "--quiet"))
    assert done.returncode == 0, done.stdout + done.stderr
    exported = slurm.run(sys.executable, "-m", "rigctl", "export", "--format", "json", "--level", "pairs")
    (row,) = json.loads(exported.stdout)
    assert (row["source"], row["destination"], row["mtu"]) == ("n1", "n2", 1400)
    assert row["goodput_mbps"] > 0
    traceless(slurm)


def test_a_cancelled_job_leaves_nothing_and_the_run_says_why(slurm: Cluster) -> None:
    process = measuring(slurm)
    slurm.run("scancel", "--user=root")
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert re.search(r"failed: .*n[12]: the agent ended: .*STEP .* CANCELLED", said)
    traceless(slurm)


def test_a_killed_controller_leaves_nothing(slurm: Cluster) -> None:
    process = measuring(slurm)
    for pid in at_the_head(slurm, r"^\S*python\S* -m rigctl run"):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)
    traceless(slurm)


@pytest.mark.torture
@pytest.mark.long
def test_where_srun_was_killed_nothing_runs_on_and_the_next_run_finds_settings_restored(slurm: Cluster) -> None:
    process = measuring(slurm)
    # The child of srun that would cancel its step first: then nobody on the node learns of it.
    pids = at_the_head(slurm, r"^\S*srun .*--nodelist=")
    for pid in sorted(pids, reverse=True):
        os.kill(pid, signal.SIGKILL)
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert "killed by SIGKILL" in said
    eventually(lambda: not any(slurm.left(name) for name in slurm.names), "something is left on the nodes")
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
    assert made.count("data_interface: eth0 ") == 2
    assert "reached by srun" in " ".join(done.stdout.split())


NODE_LEAVES = """
import asyncio, subprocess, sys
from rigctl.base.errors import NodeError
from rigctl.remote.reach import connected
from rigctl.rig.schema import load_rig

async def main():
    async with connected(load_rig("slurm"), ["n1", "n2"]) as hosts:
        data = bytes(range(256)) * 4096
        assert (await hosts["n1"].run("cat", input=data)).output == data
        done = await hosts["n2"].run("echo $0 >&2; uname -n; exit 7")
        print(done.exit_code, done.stdout.strip(), done.complaint)
        subprocess.run(["scontrol", "update", "JobId=" + sys.argv[1], "NodeList=n1"], check=True, capture_output=True)
        print((await hosts["n1"].run("uname -n")).stdout.strip())
        try:
            await hosts["n2"].run("uname -n")
        except NodeError as error:
            print(error)

asyncio.run(main())
"""


def test_a_node_that_left_the_allocation_is_named(slurm: Cluster) -> None:
    (slurm.folder / "leaves.py").write_text(NODE_LEAVES)
    done = slurm.run(*slurm.salloc(2, "sh", "-c", f"{sys.executable} {slurm.folder}/leaves.py $SLURM_JOB_ID"))
    lines = done.stdout.splitlines()
    assert lines[:2] == ["7 n2 /bin/sh (exit code 7)", "n1"], done.stdout + done.stderr
    assert re.fullmatch(
        r"n2: it is not in the allocation \(job \d+\)( any more, or is down)?: srun: error: .*", lines[2]
    )
    assert len(lines) == 3


def submitted(slurm: Cluster, duration: str) -> str:
    """The job script of the documentation, by sbatch: the number of the job."""
    page = (ROOT / "docs/how-to/slurm.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^(#!/bin/sh\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    (slurm.folder / "job.sh").write_text(script, encoding="utf-8")
    (slurm.folder / "scenario.yaml").write_text(SCENARIO.format(duration=duration), encoding="utf-8")
    program = slurm.folder / "bin" / "rigctl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rigctl "$@"\n')
    program.chmod(0o755)
    path = f"PATH={program.parent}:{os.environ['PATH']}"
    done = slurm.run("env", path, "sbatch", "--parsable", "--nodes=2", "--output=job.out", "job.sh")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def job_ended(slurm: Cluster, job: str) -> str:
    """What the job has printed, once it is over."""
    eventually(lambda: job not in slurm.run("squeue", "-h", "-o", "%i").stdout.split(), f"job {job} goes on")
    return (slurm.folder / "job.out").read_text(encoding="utf-8")


def test_the_job_script_of_the_documentation_runs(slurm: Cluster) -> None:
    said = job_ended(slurm, submitted(slurm, "1s"))
    assert "Goodput" in said
    assert "failed" not in said
    assert (slurm.folder / "report.html").exists()
    traceless(slurm)


@pytest.mark.torture
@pytest.mark.long
def test_a_job_near_its_time_limit_is_interrupted_and_reports(slurm: Cluster) -> None:
    job = submitted(slurm, "30s")
    flows(slurm)
    slurm.run("scancel", "--batch", "--signal=INT", job)
    said = job_ended(slurm, job)
    assert "Interrupted after " in said
    assert (slurm.folder / "report.html").exists()
    traceless(slurm)

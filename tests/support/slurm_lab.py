"""A small Slurm cluster as it stands: munged, slurmctld and a slurmd per node, in namespaces around a bridge.

Nodes have their own network and host name, as hosts have; SSH runs nowhere. The head runs slurmctld and whatever a test
runs there, as the first node of the same network.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from processes import end

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = ("slurmctld", "slurmd", "srun", "sbatch", "salloc", "scancel", "scontrol", "munged", "ip", "unshare")
SUBNET: Final = "10.87.0"
READY_S: Final = 20.0
# No cgroups: a container may have none to give. SlurmdTimeout 0: a slow machine makes no node "down".
CONFIGURATION: Final = """
ClusterName=rigctl
SlurmctldHost=head({subnet}.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPort=6817
SlurmdPort=6818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=0
InactiveLimit=0
KillWait={kill_wait_s}
TmpFS={folder}
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=60 State=UP OverSubscribe=YES
"""


def missing() -> list[str]:
    """What a cluster takes and this machine has not."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    return lacking + ([] if os.geteuid() == 0 else ["root"])


@dataclass
class Cluster:
    folder: Path
    prefix: str
    names: tuple[str, ...]
    slurmds: dict[str, "subprocess.Popen[bytes]"]

    @property
    def environment(self) -> dict[str, str]:
        """Of a user at the head: a home and a store of their own; no variable of an allocation."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SRUN"))}
        return kept | {
            "HOME": str(self.folder),
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "RIGCTL_STORE": str(self.folder / "s.db"),
            "PYTHONPATH": str(ROOT),
        }

    def on(self, host: str, *words: str) -> list[str]:
        """The words of a command on the head or a node."""
        return ["ip", "netns", "exec", f"{self.prefix}-{host}", *words]

    def run(self, *words: str, deadline_s: float = 60) -> "subprocess.CompletedProcess[str]":
        """A command at the head, to its end."""
        return subprocess.run(
            self.on("head", *words), cwd=self.folder, env=self.environment, text=True, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=deadline_s,
        )  # fmt: skip

    def salloc(self, nodes: int, *words: str) -> list[str]:
        """The words of a command in an allocation of its own; with --rigctl as the first, of this checkout's rigctl."""
        command = [sys.executable, "-m", "rigctl", *words[1:]] if words[:1] == ("rigctl",) else list(words)
        return ["salloc", "--quiet", f"--nodes={nodes}", "--exclusive", *command]

    def processes(self, host: str) -> list[str]:
        """The command lines of all that runs on a host."""
        listed = subprocess.run(
            ["ip", "netns", "pids", f"{self.prefix}-{host}"], capture_output=True, text=True, check=True
        ).stdout.split()
        lines = [_command_line(int(pid)) for pid in listed]
        return [line for line in lines if line]

    def left(self, name: str) -> list[str]:
        """What runs on a node besides Slurm's daemon."""
        return [line for line in self.processes(name) if "slurmd " not in line + " "]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _sh(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=30)


def _wired(prefix: str, hosts: dict[str, str], stack: ExitStack) -> None:
    """A namespace for each host, its eth0 on a bridge of a namespace of its own."""
    switch = f"{prefix}-switch"
    for name in (switch, *(f"{prefix}-{host}" for host in hosts)):
        _sh("ip", "netns", "add", name)
        stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
    _sh("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
    _sh("ip", "-n", switch, "link", "set", "br0", "up")
    for host, address in hosts.items():
        space = f"{prefix}-{host}"
        _sh("ip", "link", "add", "eth0", "netns", space, "type", "veth", "peer", "name", host, "netns", switch)
        _sh("ip", "-n", switch, "link", "set", host, "master", "br0", "up")
        _sh("ip", "-n", space, "address", "add", f"{address}/24", "dev", "eth0")
        _sh("ip", "-n", space, "link", "set", "eth0", "up")
        _sh("ip", "-n", space, "link", "set", "lo", "up")


def _started(stack: ExitStack, words: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    stack.callback(end, process)
    return process


@contextmanager
def cluster(folder: Path, nodes: int = 3, kill_wait_s: int = 5) -> Iterator[Cluster]:
    """A cluster of `nodes` nodes n1, n2, … that are all idle; at the end of the block nothing of it is left."""
    names = tuple(f"n{number}" for number in range(1, nodes + 1))
    hosts = {"head": f"{SUBNET}.1"} | {name: f"{SUBNET}.{10 + number}" for number, name in enumerate(names, 1)}
    made = Cluster(folder, f"slurm-{os.getpid()}", names, {})
    (folder / "state").mkdir()
    lines = "\n".join(f"NodeName={name} NodeAddr={hosts[name]} CPUs=1 State=UNKNOWN" for name in names)
    text = CONFIGURATION.format(
        subnet=SUBNET, folder=folder, nodes=lines, names=",".join(names), kill_wait_s=kill_wait_s
    )
    (folder / "slurm.conf").write_text(text, encoding="utf-8")
    # Nothing uses cgroups; without a word about them slurmd looks for them.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
    for name in names:
        (folder / f"spool-{name}").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    environment = made.environment | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    with ExitStack() as stack:
        stack.callback(_swept, made)
        _wired(made.prefix, hosts, stack)
        # --force: the folder is a test's, its parents are not root's alone. No seed, pid or log file elsewhere.
        files = [f"--{what}={folder}/munge.{end}" for what, end in (("key-file", "key"), ("socket", "socket"),
                 ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))]  # fmt: skip
        _started(stack, ["munged", "--foreground", "--force", "--num-threads=1", *files], environment)
        _await(lambda: (folder / "munge.socket").exists(), folder)
        _started(
            stack, made.on("head", "unshare", "--uts", "sh", "-c", "hostname head; exec slurmctld -D"), environment
        )
        for name in names:
            command = made.on(name, "unshare", "--uts", "sh", "-c", f"hostname {name}; exec slurmd -D")
            made.slurmds[name] = _started(stack, command, environment)
        _await(lambda: made.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == str(nodes), folder)
        yield made
        made.run("scancel", "--user=root")


def _await(holds: "object", folder: Path) -> None:
    until = time.monotonic() + READY_S
    while not holds():  # type: ignore[operator]
        if time.monotonic() > until:
            logs = "\n".join(
                f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in folder.glob("*.log")
            )
            raise AssertionError(f"the cluster is not up within {READY_S:g} s\n{logs}")
        time.sleep(0.05)


def _swept(made: Cluster) -> None:
    """End what still runs in the cluster's namespaces: steps' daemons outlive slurmd."""
    for host in ("head", *made.names):
        listed = subprocess.run(
            ["ip", "netns", "pids", f"{made.prefix}-{host}"], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in listed:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue

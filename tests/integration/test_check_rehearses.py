"""What `check` says before a run, and what the run then does: the same verdict, for one fault each."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from os import cpu_count
from shutil import disk_usage
from typing import Any

import pytest
from openssh_lab import Lab, laboratory, sh
from user import ended

PI1, PI2 = "10.98.0.1", "10.98.0.2"


@dataclass(frozen=True)
class Case:
    """A scenario, perhaps with commands on pi1 (each with what undoes it) and lines replaced in the rig file.

    `fails`: whether the run fails. `says`: a part of the error, for a case that has one.
    """

    name: str
    scenario: str
    says: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    node: str = "pi1"
    always: bool = False  # True: also in `make test`

    @property
    def fails(self) -> bool:
        return bool(self.says)


def sysctl(name: str, value: str, usual: str) -> tuple[str, str]:
    return f"sysctl -qw {name}='{value}'", f"sysctl -qw {name}='{usual}'"


FILES = "test: file\nsize: 64K\nwrite: disk\nread: memory\n"
THIRD_MB = disk_usage("/var/tmp").free // (3 << 20)
"""A third of the free space: one file fits, those of four flows do not."""
PORTS = "net.ipv4.ip_local_port_range"
STATEFUL = (
    "echo 'table inet fault { chain in { type filter hook input priority 0; ct state established,related accept;"
    " iifname eth0 tcp dport != 22 drop; iifname eth0 meta l4proto udp drop; }; }' | nft -f -",
    "nft delete table inet fault",
)


def nft(rule: str) -> tuple[str, str]:
    table = f"table inet fault {{ chain in {{ type filter hook input priority 0; {rule} drop; }}; }}"
    return f"echo '{table}' | nft -f -", "nft delete table inet fault"


LISTENER = (
    "python3 -m http.server 5001 >/dev/null 2>&1 & until ss -Hltn sport = 5001 | grep -q .; do sleep 0.1; done",
    "kill $(ss -Hltnp sport = 5001 | grep -o 'pid=[0-9]*' | cut -d= -f2)",
)
ON_HOST = "nsenter -m -t SSHD"
"""Runs a command in the mount namespace of the SSH server, of which the machine sees nothing."""
CASES = [
    Case("nothing", ""),
    Case("a processor that is missing", "placement: 999", "placement: processor 999"),
    Case("a processor that only the sender lacks", "placement: {sender: 999}", "placement: processor 999"),
    Case("a processor that only the receiver lacks", "placement: {receiver: 999}", "placement: processor 999",
         always=True),
    Case("a processor outside the cpuset", "placement: {sender: 1}", "placement: processor 1",
         (("taskset -pc 0 SSHD", f"taskset -pc 0-{(cpu_count() or 1) - 1} SSHD"),)),
    Case("a card without a NUMA node", "placement: nic", "placement: nic"),
    Case("a folder that is a file", f"{FILES}folder: /etc/hostname", "/etc/hostname", always=True),
    Case("a folder that is read-only", f"{FILES}folder: /sys", "/sys"),
    Case("a folder that is missing", f"{FILES}folder: /no/such/folder", "/no/such/folder"),
    Case("a folder in memory", f"{FILES}folder: /dev/shm", "/dev/shm"),
    Case("a folder that is good", f"{FILES}folder: /var/tmp"),
    Case("files of a terabyte", f"{FILES}folder: /var/tmp".replace("64K", "1048576M"), "/var/tmp has"),
    Case("files of all flows that do not fit", f"{FILES}folder: /var/tmp\nparallel: 4".replace("64K", f"{THIRD_MB}M"),
         "/var/tmp has"),
    Case("a congestion control that does not exist", "congestion: bbr9", "bbr9"),
    Case("a condition with one", "conditions: {odd: {congestion: bbr9}}\ncondition: odd", "bbr9", always=True),
    Case("a condition with a good one", "conditions: {odd: {congestion: reno}}\ncondition: odd"),
    Case("four ephemeral ports", "parallel: 8", "bind", (sysctl(PORTS, "40000 40003", "32768 60999"),), always=True),
    Case("few ports for few flows", "parallel: 2", "", (sysctl(PORTS, "40000 40009", "32768 60999"),)),
    Case("a firewall at the sender that lets answers in", "", "", (STATEFUL,), always=True),
    Case("the same where the data come the other way", "direction: reverse", "TCP", (STATEFUL,)),
    Case("the same in both directions", "direction: both", "TCP", (STATEFUL,)),
    Case("a black hole", "", "black hole", (nft(f"ip saddr {PI1} ip length > 1000"),), node="pi2"),
    Case("a black hole above the segments", "mss: 500", "", (nft(f"ip saddr {PI1} ip length > 1000"),), node="pi2",
         always=True),
    Case("a black hole on the way of acknowledgements", "", "", (nft(f"ip saddr {PI2} ip length > 1000"),)),
    Case("a firewall that drops datagrams", "", "", (nft(f"ip saddr {PI1} meta l4proto udp"),), node="pi2"),
    Case("the same with probes", "latency: true", "UDP", (nft(f"ip saddr {PI1} meta l4proto udp"),), node="pi2"),
    Case("few open files at first", "parallel: 100", "",
         (("prlimit --pid SSHD --nofile=64:", "prlimit --pid SSHD --nofile=1024:"),)),
    Case("a data port that is in use", "", "port", (LISTENER,), ((f"{PI2}, ", f"{PI2}, data_ports: 5001-5001, "),),
         node="pi2"),
    Case("a firewall that opens one of two ports", "latency: true", "5002", (nft("tcp dport 5002"),),
         ((f"{PI2}, ", f"{PI2}, data_ports: 5001-5002, "),), node="pi2"),
    Case("a firewall that counts connections", "parallel: 8", "10.98.0.2", (nft("tcp dport != 22 ct count over 4"),),
         node="pi2"),
    Case("a folder of another user", f"{FILES}folder: /proc/1", "/proc/1"),
    Case("Multipath TCP that is off", "mptcp: true", "", (sysctl("net.mptcp.enabled", "0", "1"),)),
    Case("an address that the host does not have", "", "192.0.2.7",
         edits=((f"{PI1}, ", f"{PI1}, data_address: 192.0.2.7, "), (", data_interface: eth0", ""))),
    Case("one end with IPv6", "", "IPv6",
         (("ip address add fd00::1/64 dev eth0 nodad", "ip address del fd00::1/64 dev eth0"),),
         ((f"{PI1}, ", f"{PI1}, data_address: 'fd00::1', "),)),
    Case("iperf3 where it is missing", "engine: iperf3", "iperf3",
         ((f"{ON_HOST} mount --bind /bin/false $(command -v iperf3)", f"{ON_HOST} umount $(command -v iperf3)"),)),
]  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("rehearsed")
    with laboratory(folder, ["pi1", "pi2"]) as made:
        (folder / "good.yaml").write_text((folder / "lab.yaml").read_text())
        for name in ("pi1", "pi2"):  # else a rule on packet sizes would drop what the network splits later
            sh(*made.inside(name, "ethtool", "-K", "eth0", "tso", "off", "gso", "off", "gro", "off"))
        yield made


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case.always else pytest.mark.long, id=case.name.replace(" ", "-"))
        for case in CASES
    ],
)
def test_check_and_run_agree(lab: Lab, case: Case) -> None:
    checked, said = checked_and_run(lab, case)
    errors = [each for each in checked["findings"] if each["level"] == "error"]
    assert bool(errors) == case.fails, f"check: {errors}\nrun: {said}"
    assert all(case.says in each["text"] for each in errors), errors
    assert "Traceback" not in said


def test_a_refusal_costs_its_tests_only(lab: Lab) -> None:
    case = Case("", "matrix: {placement: [default, 999, '0'], parallel: [1, 4]}", "placement")
    checked, _ = checked_and_run(lab, case)
    (refused,) = (each for each in checked["findings"] if each["level"] == "error")
    shown = ended(("show", "--json"), lab.folder, lab.environment, network=lab.network)
    (failed,) = (each for each in json.loads(shown.stdout)["findings"] if each["code"] == "not-measured")
    assert refused["numbers"]["tests"].split(", ") == failed["subject"]["names"] == ["3", "4"]


def checked_and_run(lab: Lab, case: Case) -> tuple[dict[str, Any], str]:
    """Return the document of `check`, and what `run` printed; both have to exit with 3 if the case fails, else 0."""
    text = (lab.folder / "good.yaml").read_text()
    for old, new in case.edits:
        assert old in text
        text = text.replace(old, new, 1)
    (lab.folder / "lab.yaml").write_text(text)
    duration = "duration: 1s" if "iperf3" in case.scenario else "duration: 300ms"
    (lab.folder / "s.yaml").write_text(
        f"rig: lab.yaml\npairs: [pi1 -> pi2]\n{duration}\nmax_skew: 60s\n{case.scenario}\n"
    )
    with ExitStack() as undone:
        for command, undo in case.commands:
            sshd = str(min(lab.processes(case.node)))
            sh(*lab.inside(case.node, "sh", "-c", command.replace("SSHD", sshd)))
            undone.callback(sh, *lab.inside(case.node, "sh", "-c", undo.replace("SSHD", sshd)))
        checked = ended(("check", "s.yaml", "--json"), lab.folder, lab.environment, network=lab.network)
        ran = ended(("run", "s.yaml", "--no-report"), lab.folder, lab.environment, network=lab.network)
    said = (ran.stdout + ran.stderr).decode()
    code = 3 if case.fails else 0
    assert (checked.returncode, ran.returncode) == (code, code), f"check: {checked.stdout.decode()}\nrun: {said}"
    document: dict[str, Any] = json.loads(checked.stdout)
    return document, said

"""`check` held against `run`: thirty rigs with one fault each. Where a run cannot start, check has said so before."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from openssh_lab import Lab, laboratory, sh
from user import ended

pytestmark = [pytest.mark.torture, pytest.mark.long]
PI1, PI2 = "10.98.0.1", "10.98.0.2"


@dataclass(frozen=True)
class Fault:
    """What is wrong: lines that replace others in the rig file, and commands on pi1, each with what undoes it."""

    name: str
    edits: tuple[tuple[str, str], ...] = ()
    commands: tuple[tuple[str, str], ...] = ()


def at_pi1(name: str, keys: str, *commands: tuple[str, str]) -> Fault:
    """A fault of the keys of pi1, behind its address."""
    return Fault(name, ((f"address: {PI1}, ", f"address: {PI1}, {keys}, "),), commands)


def without_interface(name: str, keys: str, *commands: tuple[str, str]) -> Fault:
    edits = ((f"pi1: {{address: {PI1}, user: root, key: id, known_hosts: known, data_interface: eth0}}",
              f"pi1: {{address: {PI1}, user: root, key: id, known_hosts: known, {keys}}}"),)  # fmt: skip
    return Fault(name, edits, commands)


DUMMY = ("ip link add other type bridge", "ip link del other")
DROP = "table inet fault { chain in { type filter hook input priority 0; iifname eth0 tcp dport != 22 drop; }; }"
HOLE = "blackhole 10.98.0.2/32"
LISTEN = "for port in 5001 5002; do python3 -m http.server $port >/dev/null 2>&1 & echo $! >>listeners; done; sleep 1"
FAULTS = [
    Fault("an address that nobody has", ((PI1, "10.98.0.77"),)),
    Fault("a name that is not known", ((PI1, "no-such-host.invalid"),)),
    Fault("an IPv6 address without a route", ((PI1, "2001:db8::1"),)),
    Fault("the same host twice", ((f"pi2: {{address: {PI2}", f"pi2: {{address: {PI1}"),)),
    Fault("a key that is missing", (("key: id", "key: none"),)),
    Fault("a key that opens nothing", (("key: id", "key: pi1/host_key"),)),
    Fault("a file of known hosts that is missing", (("known_hosts: known", "known_hosts: none"),)),
    Fault("a file of known hosts without the host", (("known_hosts: known", "known_hosts: lab.yaml"),)),
    Fault("a user who is not there", (("user: root", "user: nobody-here"),)),
    at_pi1("a port on which nobody listens", "port: 2222"),
    at_pi1("a jump host that nobody has", "jump: root@10.98.0.88"),
    at_pi1("a jump host that refuses", f"jump: stranger@{PI2}"),
    at_pi1("srun without Slurm", "transport: srun"),
    Fault("an interface that is not there", (("data_interface: eth0", "data_interface: eth9"),)),
    Fault("the loopback interface", (("data_interface: eth0", "data_interface: lo"),)),
    without_interface("an interface without an address", "data_interface: other", DUMMY, ("ip link set other up", ":")),
    without_interface("an interface that is down", "data_interface: other", DUMMY,
                      ("ip address add 10.98.7.1/24 dev other", ":")),
    without_interface("an interface of another network", "data_interface: other", DUMMY,
                      ("ip link set other up; ip address add 10.98.8.1/24 dev other", ":")),
    without_interface("a data address that it has not", "data_address: 10.99.0.9"),
    without_interface("the other node's data address", f"data_address: {PI2}"),
    without_interface("a data address of the loopback", "data_address: 127.0.0.1"),
    without_interface("a link-local data address", "data_address: 169.254.3.4",
                      ("ip address add 169.254.3.4/16 dev eth0", "ip address del 169.254.3.4/16 dev eth0")),
    without_interface("a link-local address of IPv6", "data_address: fe80::77",
                      ("ip address add fe80::77/64 dev eth0 nodad", "ip address del fe80::77/64 dev eth0")),
    without_interface("one end with IPv6", "data_address: 'fd00::1'",
                      ("ip address add fd00::1/64 dev eth0 nodad", "ip address del fd00::1/64 dev eth0")),
    at_pi1("too few ports", "data_ports: 5000-5000"),
    at_pi1("ports that are taken", "data_ports: 22-1024"),
    at_pi1("ports with a listener", "data_ports: 5001-5002", (LISTEN, "kill $(cat listeners); rm listeners")),
    Fault("a firewall that drops", (), ((f"echo '{DROP}' | nft -f -", "nft delete table inet fault"),)),
    Fault("a route that goes nowhere", (), ((f"ip route add {HOLE}", f"ip route del {HOLE}"),)),
    at_pi1("root's rights without a password", "sudo: true, data_ports: 5000-5000"),
]  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("against")
    with laboratory(folder, ["pi1", "pi2"]) as made:
        (folder / "good.yaml").write_text((folder / "lab.yaml").read_text())
        yield made


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_no_traffic_can_start_before_a_run_that_cannot_start(lab: Lab, fault: Fault) -> None:
    text = (lab.folder / "good.yaml").read_text()
    for old, new in fault.edits:
        assert old in text
        text = text.replace(old, new, 1) if old == PI1 else text.replace(old, new)
    (lab.folder / "lab.yaml").write_text(text)
    (lab.folder / "s.yaml").write_text(
        "rig: lab.yaml\npairs: [pi1 -> pi2, pi2 -> pi1]\nduration: 500ms\nmax_skew: 60s\nlatency: true\n"
    )
    with ExitStack() as undone:
        for command, undo in fault.commands:
            sh(*lab.inside("pi1", "sh", "-c", command))
            undone.callback(sh, *lab.inside("pi1", "sh", "-c", undo))
        checked, ran = (said(lab, *words) for words in (("check", "s.yaml"), ("run", "s.yaml", "--no-report")))
    assert ran[0] != 0, "the fault is none"
    assert checked[0] != 0, f"check: {checked[1]}\nrun: {ran[1]}"
    assert "Traceback" not in checked[1] + ran[1]


def said(lab: Lab, *words: str) -> tuple[int, str]:
    done = ended(words, lab.folder, lab.environment, network=Path("/run/netns", lab.host("ctl")))
    return done.returncode, (done.stdout + done.stderr).decode()

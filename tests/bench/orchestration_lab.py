"""The lab of `bench_orchestration`: hosts with OpenSSH around a switch."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import ROOT
from openssh import new_key
from openssh_lab import Lab, cable, serve, sh, switched
from processes import end, running

HERE: Final = ROOT / "tests" / "bench"
RATE: Final = "200mbit"
READY_S: Final = 20.0


@dataclass
class PairLab(Lab):
    """`pairs` times a sender and a receiver; the controller is one more host on the switch."""

    pairs: int

    @property
    def senders(self) -> list[str]:
        return [f"s{number}" for number in range(1, self.pairs + 1)]

    @property
    def receivers(self) -> list[str]:
        return [f"r{number}" for number in range(1, self.pairs + 1)]

    @property
    def addresses(self) -> Mapping[str, str]:
        return {name: f"10.97.0.{number}" for number, name in enumerate([*self.senders, *self.receivers, "ctl"], 1)}

    @property
    def nodes(self) -> list[str]:
        return [*self.senders, *self.receivers]


@contextmanager
def pair_lab(folder: Path, prefix: str, pairs: int) -> Iterator[PairLab]:
    """Hosts, links of `RATE`, OpenSSH on every node; the files that rigctl, ssh and ansible read. All gone after."""
    lab = PairLab(folder, prefix, pairs)
    with switched(lab), ExitStack() as stack:
        new_key(folder / "id")
        for name, address in lab.addresses.items():
            cable(lab, name, address)
            shaped = f"root tbf rate {RATE} burst 64kb limit 256kb".split()
            if name != "ctl":
                sh("tc", "-n", lab.host(name), "qdisc", "replace", "dev", "eth0", *shaped)
                sh("tc", "-n", lab.host("switch"), "qdisc", "replace", "dev", name, *shaped)
        for name in lab.nodes:
            stack.callback(end, serve(lab, name, lab.addresses[name], at_home=True), politely_for_s=5)
        _files(lab)
        _wait(lab)
        yield lab


def _files(lab: PairLab) -> None:
    folder, addresses = lab.folder, lab.addresses
    keys = {name: (folder / name / "host_key.pub").read_text() for name in lab.nodes}
    (folder / "known").write_text("".join(f"{addresses[name]} {key}" for name, key in keys.items()))
    trust = "user: root, key: id, known_hosts: known, data_interface: eth0"
    listed = "".join(f"  {name}: {{address: {addresses[name]}, {trust}}}\n" for name in lab.nodes)
    (folder / "lab.yaml").write_text(f"links: {{rate: 200M, mtu: 1500}}\nnodes:\n{listed}")
    trust = f"User root\nIdentityFile {folder}/id\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
    hosts = "".join(f"Host {name}\nHostName {addresses[name]}\n" for name in lab.nodes)
    (folder / "ssh_config").write_text(f"{hosts}Host *\n{trust}BatchMode yes\n")
    peers = dict(zip(lab.senders, lab.receivers, strict=True))
    senders = "".join(f"{name} peer={addresses[peers[name]]}\n" for name in lab.senders)
    receivers = "".join(f"{name}\n" for name in lab.receivers)
    common = f"ansible_ssh_common_args='-F {folder}/ssh_config'\nansible_python_interpreter=/usr/bin/python3\n"
    groups = f"[senders]\n{senders}[receivers]\n{receivers}[nodes:children]\nsenders\nreceivers\n"
    (folder / "hosts.ini").write_text(f"{groups}[nodes:vars]\n{common}")


def _wait(lab: PairLab) -> None:
    until = time.monotonic() + READY_S
    for name in lab.nodes:
        command = lab.inside("ctl", "ssh", "-F", str(lab.folder / "ssh_config"), name, "true")
        while subprocess.run(command, capture_output=True, timeout=READY_S, check=False).returncode != 0:
            if time.monotonic() > until:
                raise RuntimeError(f"{name} lets nobody in")
            time.sleep(0.1)


@contextmanager
def witnessed(lab: PairLab, lines: Path) -> Iterator[None]:
    """Every TCP connection across the switch is written to `lines` meanwhile (`syn_witness`)."""
    command = ["ip", "netns", "exec", lab.host("switch"), sys.executable, str(HERE / "syn_witness.py"), str(lines)]
    with running(command, stdout=subprocess.PIPE) as witness:
        assert witness.stdout is not None
        witness.stdout.readline()
        yield

"""Single QEMU machines for tests that connect them in their own way: rigctl's image and command, without a rig."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncssh
from processes import eventually, output_of, running

from rigctl.base.processes import run_command
from rigctl.virtual.layout import Place
from rigctl.virtual.machines.image import archive, pad
from rigctl.virtual.machines.image import image as make_image
from rigctl.virtual.machines.qemu import accelerator, machine, overlay, own_files

_PREFIX: Final = "stream,id=data,"


@dataclass(frozen=True, slots=True)
class Guest:
    """A machine that runs, and the files by which ssh(1) reaches its SSH server at a port of this host."""

    place: Place
    port: int
    key: Path
    known_hosts: Path

    @property
    def ssh(self) -> list[str]:
        """Return the words that begin a command over SSH on the machine."""
        words = ["ssh", "-F", "none", "-i", str(self.key), "-p", str(self.port), "-o", "BatchMode=yes"]
        return [*words, "-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "ConnectTimeout=20", "root@127.0.0.1"]

    def run(self, command: str) -> str:
        return output_of([*self.ssh, command])

    def put(self, file: Path, name: str) -> None:
        """Copy a program to the machine, as /root/NAME."""
        with file.open("rb") as content:
            output_of([*self.ssh, f"cat >/root/{name}; chmod 755 /root/{name}"], stdin=content)


def connect_data(words: list[str], netdev: str) -> list[str]:
    """Return a machine's command with another end of its data interface than a socket of the hub."""
    return [netdev if word.startswith(_PREFIX) else word for word in words]


@contextmanager
def guest(folder: Path, place: Place, change: Callable[[list[str]], list[str]] = list) -> Iterator[Guest]:
    """Yield a machine once it can be logged into, and end it after the block. `folder` may be that of several.

    `change` returns the command that starts the machine, given the command of a rig.
    """
    key, host_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    image = make_image("x86_64")
    own = own_files(place, {}, host_key.export_private_key(), key.export_public_key())
    (folder / f"{place.name}.initrd").write_bytes(pad((image.folder / "initrd").read_bytes()) + archive(own))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    made = Guest(place, port, folder / f"{place.name}.id", folder / f"{place.name}.known_hosts")
    made.key.touch(mode=0o600)
    made.key.write_bytes(key.export_private_key())
    made.known_hosts.write_text(f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}")
    run_command(overlay(image, folder / f"{place.name}.qcow2"))
    with running(change(machine(place, image, accelerator(image), port)), cwd=folder):
        eventually(lambda: subprocess.run([*made.ssh, "true"], capture_output=True).returncode == 0)
        yield made

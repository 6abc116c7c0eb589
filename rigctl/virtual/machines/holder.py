"""The process that keeps a rig of machines: `python -m rigctl.virtual.machines.holder TAG`. The machines end with it.

It exchanges the same lines with its starter as `rigctl.virtual.holder`. It restarts a machine that ends (power cut,
`poweroff`) with the same disk, as if the power returned.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import asyncssh

from rigctl.base.errors import RigError
from rigctl.base.processes import die_with, run_command, run_in_thread
from rigctl.rig.inventory import Arch
from rigctl.virtual.holder import ending_event, hold, new_keys, tell_ready
from rigctl.virtual.layout import Layout, Place
from rigctl.virtual.machines.image import Image, archive, pad
from rigctl.virtual.machines.qemu import Accel, hub, hub_socket, machine, overlay, own_files

_BOOT_S: Final = 280.0
"""Deadline for all machines of a rig to boot. `rigctl.virtual.provide` waits 20 s longer."""
_QUICK_S: Final = 3.0
_MOST_QUICK: Final = 3
"""A machine that ends within `_QUICK_S` of its start this many times in a row counts as unable to run."""
_BANNER: Final = b"SSH-2.0"


@dataclass(slots=True)
class HeldRig:
    """The rig that this process keeps: its images by architecture, SSH ports by node, and QEMU processes."""

    tag: str
    layout: Layout
    folder: Path
    images: dict[Arch, tuple[Image, Accel]]
    ports: dict[str, int]
    running: list[Process] = field(default_factory=list)

    async def start(self, command: list[str], name: str) -> Process:
        """Start a process that the kernel kills with this one. Its output goes to NAME.log. Return the process."""
        with (self.folder / f"{name}.log").open("ab") as log:
            started = await asyncio.create_subprocess_exec(
                *command,
                cwd=self.folder,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"RIGCTL_RIG": self.tag},
                preexec_fn=partial(die_with, os.getpid(), signal.SIGKILL),
            )
        self.running.append(started)
        return started

    def last_words(self, name: str) -> str:
        lines = (self.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-2:]) or "no output"


def _start_and_keep(tag: str, layout: Layout, orders: dict[str, Any]) -> None:
    folder = Path(orders["homes"])
    folder.mkdir(mode=0o700)
    images = {arch: (Image(arch, Path(place)), accel) for arch, (place, accel) in orders["images"].items()}
    asyncio.run(_hold(HeldRig(tag, layout, folder, images, _free_ports(layout))))


async def _hold(rig: HeldRig) -> None:
    ended = asyncio.ensure_future(ending_event().wait())
    working = asyncio.ensure_future(_work(rig, *new_keys(rig.tag)))
    try:
        await asyncio.wait({ended, working}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        for task in (ended, working):
            task.cancel()
        await asyncio.wait({ended, working})
        for process in rig.running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in rig.running))


async def _work(rig: HeldRig, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey) -> None:
    """Start hub and machines, tell the starter when SSH answers on all machines, and run until cancelled."""
    names = {place.name: rig.layout.data_address(place) for place in rig.layout.places}
    for place in rig.layout.places:
        image, _ = rig.images[place.arch]
        await run_in_thread(run_command, overlay(image, rig.folder / f"{place.name}.qcow2"))
        own = own_files(place, names, host_key.export_private_key(), client_key.export_public_key())
        initrd = rig.folder / f"{place.name}.initrd"
        initrd.touch(mode=0o600)
        initrd.write_bytes(pad((image.folder / "initrd").read_bytes()) + archive(own))
    joining = await rig.start(hub(rig.layout.places[0].arch, rig.layout.places), "hub")
    await _hub_listens(rig, joining)
    async with asyncio.TaskGroup() as group:
        for place in rig.layout.places:
            group.create_task(_power(rig, place))
        await asyncio.gather(*(_answers(rig.ports[place.name], place.name) for place in rig.layout.places))
        tell_ready(os.getpid(), host_key, client_key, community=None, ports=rig.ports)
        group.create_task(_lasting(rig, joining))


async def _power(rig: HeldRig, place: Place) -> None:
    """Run a machine, and restart it whenever it ends. Raise `RigError` if it ends at once each time."""
    command = machine(place, *rig.images[place.arch], rig.ports[place.name])
    quick = 0
    while True:
        began = time.monotonic()
        process = await rig.start(command, place.name)
        status = await process.wait()
        rig.running.remove(process)
        quick = quick + 1 if time.monotonic() - began < _QUICK_S else 0
        if quick >= _MOST_QUICK:
            raise RigError(f"{place.name}: QEMU ends at once: {rig.last_words(place.name)}")
        print(f"{place.name}: QEMU ended (exit code {status}); restarting the machine", file=sys.stderr, flush=True)
        await asyncio.sleep(1)  # between the end of a machine and its restart


async def _lasting(rig: HeldRig, joining: Process) -> None:
    await joining.wait()
    raise RigError(f"the hub has ended: {rig.last_words('hub')}")


async def _hub_listens(rig: HeldRig, joining: Process) -> None:
    deadline = time.monotonic() + 30
    last = rig.folder / hub_socket(rig.layout.places[-1])
    while not last.exists():
        if joining.returncode is not None or time.monotonic() > deadline:
            raise RigError(f"QEMU's hub did not start: {rig.last_words('hub')}")
        await asyncio.sleep(0.02)


async def _answers(port: int, name: str) -> None:
    """Wait until the SSH server of a machine sends its banner. Raise `RigError` after `_BOOT_S`."""
    # QEMU accepts at once, but if the guest is down, it retries only 6 s and 12 s later. So begin with short attempts.
    deadline, look_s = time.monotonic() + _BOOT_S, 1.0
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            look_s = min(look_s * 1.2, 10)  # the longest wait for an answer
            async with asyncio.timeout(look_s):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    if (await reader.readexactly(len(_BANNER))) == _BANNER:
                        return
                finally:
                    writer.close()
        await asyncio.sleep(0.2)
    raise RigError(f"{name}: has not booted within {_BOOT_S:g} s")


def _free_ports(layout: Layout) -> dict[str, int]:
    """Return a free port per node. QEMU binds it a moment later, and fails if another process is faster."""
    held = {place.name: socket.create_server(("127.0.0.1", 0)) for place in layout.places}
    ports = {name: int(server.getsockname()[1]) for name, server in held.items()}
    for server in held.values():
        server.close()
    return ports


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(hold(_start_and_keep))

"""Agents for other machines, run by qemu's user mode: the same protocol, and traffic with this machine's agent.

qemu hands system calls on to this kernel, so the sockets are real; what it does not know of TCP_INFO stays unknown. The
same sources and compiler give the same agent, to the byte, wherever they lie: its SHA-256 can be checked.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from talk import Talk, arrived, close, joined, started, stopped

from rigctl.protocol.lines import VERSION
from rigctl.remote.build import TARGETS, _compile, build_binaries, host_machine, sources

QEMU = {"x86_64": "x86_64", "aarch64": "aarch64", "armv7": "arm", "armv6": "arm", "riscv64": "riscv64"}
SEEN_AS = {"armv7": "armv7l", "armv6": "armv7l"}  # qemu says so of both, whatever processor it plays
pytestmark = pytest.mark.timeout(600)  # the first one builds a compiler's cache
OFTEN = (host_machine(), "aarch64", "armv7", "freebsd-x86_64", "windows-x86_64")
"""Raspberry Pis, and the other systems. The compiler makes a C library for each machine, in half a minute."""
LINUX = [name for name, target in TARGETS.items() if target.system == "linux"]
WINDOWS = [name for name, target in TARGETS.items() if target.system == "windows"]
FREEBSD = [name for name, target in TARGETS.items() if target.system == "freebsd"]


def marked(machines: list[str]) -> list[Any]:
    """Return the machines as parameters; those that only `make torture` builds are marked."""
    marks = (pytest.mark.torture, pytest.mark.long)
    return [pytest.param(machine, marks=() if machine in OFTEN else marks) for machine in machines]


@pytest.fixture(params=marked([machine for machine in LINUX if machine != host_machine()]))
def pair(request: pytest.FixtureRequest, release: Path) -> Iterator[tuple[str, Talk, Talk]]:
    machine: str = request.param
    emulator = shutil.which(f"qemu-{QEMU[machine]}-static")
    assert emulator, "install qemu-user-static"
    processor = ["-cpu", "arm1176"] if machine == "armv6" else []
    (binary,) = build_binaries([machine])
    with ExitStack() as stack:
        foreign = stack.enter_context(Talk([emulator, *processor, str(binary.path)]))
        yield machine, foreign, stack.enter_context(Talk([str(release)]))


def test_a_foreign_agent_speaks_the_protocol_and_traffic_flows_to_it_and_back(pair: tuple[str, Talk, Talk]) -> None:
    machine, foreign, own = pair
    assert foreign.hello["protocol"] == VERSION
    assert foreign.hello["machine"] in {machine, SEEN_AS.get(machine), "armv6l"}
    assert foreign.ask("clock")["clock_ns"] > 0
    assert foreign.ask("frobnicate")["error"] == "EPROTO"
    for receiver, sender in ((foreign, own), (own, foreign)):
        port = joined(receiver, sender, flows=2)
        started(receiver, sender)
        arrived(sender, port, flows=2)
        received, sent = stopped(receiver, sender)
        for flow in (0, 1):
            assert received.totals[flow]["bytes"] == sent.totals[flow]["bytes"] > 0
        close(receiver, sender)
    assert foreign.end() == 0


@pytest.mark.parametrize("machine", marked(LINUX))
def test_the_binary_is_small_static_and_of_its_machine(machine: str) -> None:
    (binary,) = build_binaries([machine])
    assert binary.size_bytes <= 192 * 1024
    kind = subprocess.run(["file", "-b", binary.path], capture_output=True, text=True, check=True).stdout
    assert "statically linked" in kind or "static-pie linked" in kind
    # 128 KiB do not hold what can be moved in the instructions of the first Raspberry Pi.
    assert ("static-pie" in kind) == (machine != "armv6")
    headers = subprocess.run(["readelf", "-lW", binary.path], capture_output=True, text=True, check=True).stdout
    assert ("GNU_RELRO" in headers) == (machine != "armv6")


@pytest.mark.parametrize("machine", marked(FREEBSD))
def test_the_agent_for_freebsd_is_built_and_asks_for_its_own_libraries_only(machine: str) -> None:
    """It can't be run here (docs/reference/freebsd.md): what is checked is that its sources compile and link."""
    (binary,) = build_binaries([machine])
    assert binary.size_bytes <= 192 * 1024
    headers = subprocess.run(["readelf", "-hldW", binary.path], capture_output=True, text=True, check=True).stdout
    assert "/libexec/ld-elf.so.1" in headers
    assert "GNU_RELRO" in headers
    needed = {line.rpartition("[")[2].rstrip("]") for line in headers.splitlines() if "(NEEDED)" in line}
    assert needed <= {"libc.so.7", "libthr.so.3", "libpthread.so", "libm.so.5", "libsys.so.7"}


@pytest.mark.parametrize("machine", marked(WINDOWS))
def test_the_agent_for_windows_asks_for_windows_own_libraries_only(machine: str) -> None:
    (binary,) = build_binaries([machine])
    assert binary.size_bytes <= 512 * 1024
    named = {name.decode().lower() for name in re.findall(rb"([\w.-]+)\.dll", binary.path.read_bytes(), re.IGNORECASE)}
    own = {"advapi32", "iphlpapi", "kernel32", "kernelbase", "ntdll", "powrprof", "winmm", "ws2_32"}
    assert {name for name in named if not name.startswith("api-ms-win-crt-")} == own


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.parametrize("machine", TARGETS)
def test_two_folders_give_the_same_agent(machine: str, tmp_path: Path) -> None:
    sums = set()
    for folder in ("here", "another place/far below"):
        copy = tmp_path / folder / "agents"
        shutil.copytree(sources(), copy, ignore=shutil.ignore_patterns("dist", "build", "fuzz"))
        _compile(copy, TARGETS[machine], copy / "agent")
        sums.add(hashlib.sha256((copy / "agent").read_bytes()).hexdigest())
    assert len(sums) == 1

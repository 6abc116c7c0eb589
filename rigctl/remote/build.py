"""Building the agents: one binary per machine, cross-compiled with ziglang, or with the host's own compiler.

They are static, but for FreeBSD's. Sources are in the checkout only; an installed rigctl carries the binaries
(`rigctl.base.resources.agents`).
"""

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.base import resources
from rigctl.base.errors import InputError, RigctlError
from rigctl.base.texts import printable
from rigctl.base.version import __version__

_BUILD_DEADLINE_S: Final = 600.0
"""The first build for a machine compiles its C library too: about 30 s on 2 cores."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine that agents are built for, as the compiler names it."""

    machine: str
    triple: str
    flags: tuple[str, ...]
    system: str = "linux"  # files that end in the name of another system, as `-linux.c`, are left out


_GUARDED: Final = ("-Xclang", "-stack-protector", "-Xclang", "2")
"""-fstack-protector-strong, which ziglang ignores beside -Os."""
_MOVABLE: Final = ("-fPIE", "-pie", "-Wl,-z,relro,-z,now")
"""Loaded at a random address; the loader's tables are read-only once it is done."""

# armv6 needs the name of its processor: otherwise the compiler uses instructions that the first Raspberry Pi lacks. As
# a position-independent executable it would have 110,832 bytes. riscv64 and 32-bit ARM link with -flto or with -pie,
# not with both.
TARGETS: Final[dict[str, Target]] = {
    target.machine: target
    for target in (
        Target("x86_64", "x86_64-linux-musl", (*_MOVABLE, *_GUARDED, "-flto")),
        Target("aarch64", "aarch64-linux-musl", (*_MOVABLE, *_GUARDED, "-flto")),
        Target("armv7", "thumb-linux-musleabihf", ("-mcpu=generic+v7a", *_MOVABLE, *_GUARDED)),
        Target("armv6", "arm-linux-musleabihf", ("-mcpu=arm1176jzf_s", *_GUARDED, "-flto")),
        Target("riscv64", "riscv64-linux-musl", (*_MOVABLE, *_GUARDED)),
        Target("freebsd-x86_64", "x86_64-freebsd", (*_MOVABLE, *_GUARDED), "freebsd"),
        Target("freebsd-aarch64", "aarch64-freebsd", (*_MOVABLE, *_GUARDED), "freebsd"),
    )
}
KERNELS: Final = {
    "Linux x86_64": "x86_64",
    "Linux amd64": "x86_64",
    "Linux aarch64": "aarch64",
    "Linux arm64": "aarch64",
    "Linux armv8l": "armv7",  # a 64-bit CPU under a 32-bit kernel
    "Linux armv7l": "armv7",
    "Linux armv6l": "armv6",
    "Linux riscv64": "riscv64",
    "FreeBSD amd64": "freebsd-x86_64",
    "FreeBSD arm64": "freebsd-aarch64",
}
"""`uname -sm` → the machine in a binary's name."""
_MOST_QUOTED: Final = 200
_SYSTEMS: Final = frozenset(target.system for target in TARGETS.values())
_FLAGS: Final = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wstrict-prototypes",
    "-pthread",
    # Small before fast: most of the agent's time is the kernel's. Tables for unwinding are a fifth of a binary.
    "-Os",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
)


class BuildError(RigctlError):
    """The compiler failed, or made a file that is no agent."""


@dataclass(frozen=True, slots=True)
class Binary:
    """An agent that rigctl carries."""

    machine: str
    path: Path
    size_bytes: int
    sha256: str


def host_machine() -> str:
    """Return this machine's name among `TARGETS`, or the kernel's name for another machine."""
    return KERNELS.get(f"{platform.system()} {platform.machine()}", platform.machine())


def unsupported(system: str, machine: str) -> str | None:
    """Return why a kernel that calls itself so (`uname -sm`) has no agent, or None."""
    if f"{system} {machine}" in KERNELS:
        return None
    known = sorted(kernel.partition(" ")[2] for kernel in KERNELS if kernel.startswith(f"{system} "))
    if not known:
        return f"it runs {printable(system)[:_MOST_QUOTED]}; there are agents for Linux and FreeBSD"
    return f"there is no agent for {printable(machine)[:_MOST_QUOTED]}; there are some for {', '.join(known)}"


def sources() -> Path:
    """Return the folder of the C sources. Raise `InputError` if rigctl is installed without them."""
    folder = Path(__file__).resolve().parents[2] / "agents"
    if not (folder / "main.c").is_file():
        raise InputError("agents are built in a checkout of rigctl; an installed package has them: rigctl agent list")
    return folder


def bundled_agents(folder: Path | None = None) -> list[Binary]:
    """Return the agents in `folder` (default: those that rigctl carries), in the order of `TARGETS`."""
    found = []
    for machine in TARGETS:
        path = (folder or resources.agents()) / f"rigctl-agent-{machine}"
        if path.is_file():
            data = path.read_bytes()
            found.append(Binary(machine, path, len(data), hashlib.sha256(data).hexdigest()))
    return found


def build(machines: Iterable[str], *, anew: bool = False) -> list[Binary]:
    """Build the agents for `machines` that are not up to date (all with `anew`), into the carried folder.

    Raise `InputError` for a machine that is not among `TARGETS`, `BuildError` if a build fails; nothing half-made is
    left.
    """
    wanted = list(machines)
    for machine in wanted:
        if machine not in TARGETS:
            raise InputError(f'no agent for "{machine}". There are targets for {", ".join(TARGETS)}')
    folder = sources()
    (folder / "dist").mkdir(exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda machine: _update(folder, TARGETS[machine], anew=anew), wanted))
    return [binary for binary in bundled_agents() if binary.machine in wanted]


def _update(folder: Path, target: Target, *, anew: bool) -> None:
    path = folder / "dist" / f"rigctl-agent-{target.machine}"
    stamp = path.with_name(f".{target.machine}.made-from")
    made_from = _fingerprint(folder, target)
    if anew or not path.is_file() or not stamp.is_file() or stamp.read_text() != made_from:
        _compile(folder, target, path)
        stamp.write_text(made_from)


def _fingerprint(folder: Path, target: Target) -> str:
    """Return a digest of everything that a binary is made from: sources, version and compiler."""
    digest = hashlib.sha256(f"{__version__} {_compiler(target)} {_FLAGS}".encode())
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def has_cross_compiler() -> bool:
    """Return True if ziglang is installed beside rigctl."""
    return importlib.util.find_spec("ziglang") is not None


def _compiler(target: Target) -> list[str]:
    if has_cross_compiler():
        return [sys.executable, "-m", "ziglang", "cc", "-target", target.triple, *target.flags]
    own = shutil.which(os.environ.get("CC", "cc"))
    if target.machine == host_machine() and own is not None:
        return [own]
    raise InputError(
        f"building for {target.machine} takes the package ziglang: pip install '.[build]' in a checkout"
        + (", or a C compiler (cc) for this machine" if target.machine == host_machine() else "")
    )


def _compile(folder: Path, target: Target, path: Path) -> None:
    compiler = _compiler(target)
    others = _SYSTEMS - {target.system}
    names = sorted(each.name for each in folder.glob("*.c") if each.stem.rpartition("-")[2] not in others)
    linked = ["-static"] if target.system == "linux" else []
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        binary = Path(scratch) / "agent"
        version = f'-DAGENT_VERSION="{__version__}"'
        command = [*compiler, *_FLAGS, version, *linked, "-s", "-o", str(binary), *names]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_DEADLINE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"building for {target.machine}: {error}") from None
        if done.returncode != 0:
            raise BuildError(f"building for {target.machine} failed:\n{done.stderr.strip()}")
        binary.chmod(0o755)
        binary.replace(path)

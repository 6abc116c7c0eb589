"""Builds the agents: one binary per machine type, cross-compiled by ziglang, or by the C compiler of this machine.

Binaries are static, except for FreeBSD. Only a checkout has the sources; an installed rigctl has only the binaries.
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
from rigctl.base.processes import run_bounded
from rigctl.base.texts import printable
from rigctl.base.version import __version__

_BUILD_DEADLINE_S: Final = 3600.0
"""The first build for a machine type compiles its C library: 30 to 70 s on 2 idle cores, longer on busy ones."""


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """A machine type that agents are built for, with the compiler's target triple and flags."""

    machine: str
    triple: str
    flags: tuple[str, ...]
    system: str = "linux"  # sources for other systems, such as `*-freebsd.c`, are left out
    libraries: tuple[str, ...] = ()


_NO_TABLES: Final = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
"""Leave out unwind tables, a fifth of a binary. Windows needs the tables to start a program."""
_GUARDED: Final = ("-Xclang", "-stack-protector", "-Xclang", "2")
"""Have the effect of -fstack-protector-strong, which ziglang ignores together with -Os."""
_MOVABLE: Final = ("-fPIE", "-pie", "-Wl,-z,relro,-z,now")
"""Load the agent at a random address, and make its relocation tables read-only after loading."""
_WINDOWS: Final = ("-lws2_32", "-liphlpapi", "-lwinmm", "-lntdll", "-lpowrprof", "-ladvapi32")
"""Libraries of Windows. Every Windows program can be loaded at a random address, without an option."""
_POSIX_ONLY: Final = frozenset({"guard.c", "journal.c", "setting.c", "settings.c"})
"""Sources that Windows has no use for: the agent changes no settings there."""

# Without -mcpu, the armv6 agent would have instructions that the first Raspberry Pi lacks. For riscv64 and 32-bit ARM,
# the linker takes -flto or -pie, but not both. armv6 has -flto, which makes the smaller binary.
TARGETS: Final[dict[str, BuildTarget]] = {
    target.machine: target
    for target in (
        BuildTarget("x86_64", "x86_64-linux-musl", (*_MOVABLE, *_GUARDED, "-flto")),
        BuildTarget("aarch64", "aarch64-linux-musl", (*_MOVABLE, *_GUARDED, "-flto")),
        BuildTarget("armv7", "thumb-linux-musleabihf", ("-mcpu=generic+v7a", *_MOVABLE, *_GUARDED)),
        BuildTarget("armv6", "arm-linux-musleabihf", ("-mcpu=arm1176jzf_s", *_GUARDED, "-flto")),
        BuildTarget("riscv64", "riscv64-linux-musl", (*_MOVABLE, *_GUARDED)),
        BuildTarget("freebsd-x86_64", "x86_64-freebsd", (*_MOVABLE, *_GUARDED), "freebsd"),
        BuildTarget("freebsd-aarch64", "aarch64-freebsd", (*_MOVABLE, *_GUARDED), "freebsd"),
        BuildTarget("windows-x86_64", "x86_64-windows-gnu", (), "windows", _WINDOWS),
        BuildTarget("windows-aarch64", "aarch64-windows-gnu", (), "windows", _WINDOWS),
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
    "Windows AMD64": "windows-x86_64",
    "Windows ARM64": "windows-aarch64",
}
"""Key of `TARGETS` by the output of `uname -sm`; on Windows, by PROCESSOR_ARCHITECTURE."""
_MOST_QUOTED: Final = 200
_SYSTEMS: Final = frozenset(target.system for target in TARGETS.values())
_WARNINGS: Final = ("-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wstrict-prototypes")
# -Os: size before speed, because the agent spends most time in the kernel.
_FLAGS: Final = ("-std=c11", "-D_GNU_SOURCE", *_WARNINGS, "-pthread", "-Os")


class BuildError(RigctlError):
    """The compiler failed or could not be started."""


@dataclass(frozen=True, slots=True)
class Binary:
    machine: str
    path: Path
    size_bytes: int
    sha256: str


def host_machine() -> str:
    """Return the key of `TARGETS` for this machine, or what `uname -m` prints if it has no key."""
    return KERNELS.get(f"{platform.system()} {platform.machine()}", platform.machine())


def reason_no_agent(system: str, machine: str) -> str | None:
    """Return why there is no agent for this kernel and machine (`uname -sm`), or None if there is one."""
    if f"{system} {machine}" in KERNELS:
        return None
    known = sorted(kernel.partition(" ")[2] for kernel in KERNELS if kernel.startswith(f"{system} "))
    if not known:
        return f"it runs {printable(system)[:_MOST_QUOTED]}, but there are agents for Linux, FreeBSD and Windows only"
    return f"there is no agent for {printable(machine)[:_MOST_QUOTED]}, only for {', '.join(known)}"


def sources() -> Path:
    """Return the folder of the C sources. Raise `InputError` if rigctl is installed without them."""
    folder = Path(__file__).resolve().parents[2] / "agents"
    if not (folder / "main.c").is_file():
        raise InputError("agents can be built only in a git checkout. `rigctl agent list` shows the installed agents")
    return folder


def binary_name(machine: str) -> str:
    """Return the file name of the agent for `machine`, a key of `TARGETS`."""
    return f"rigctl-agent-{machine}" + (".exe" if machine.startswith("windows-") else "")


def find_agents(folder: Path | None = None) -> list[Binary]:
    """Return the agents in `folder` (default: the agents that come with rigctl), in the order of `TARGETS`."""
    found = []
    for machine in TARGETS:
        path = (folder or resources.agents()) / binary_name(machine)
        if path.is_file():
            data = path.read_bytes()
            found.append(Binary(machine, path, len(data), hashlib.sha256(data).hexdigest()))
    return found


def build_binaries(machines: Iterable[str], *, anew: bool = False) -> list[Binary]:
    """Build the agents for `machines` that are not up to date, or all of them if `anew`, and return their binaries.

    Raise `InputError` for a machine that is not in `TARGETS`, `BuildError` if a build fails. An agent that cannot be
    built keeps its previous binary.
    """
    wanted = list(machines)
    for machine in wanted:
        if machine not in TARGETS:
            raise InputError(f'unknown target "{machine}". Known targets: {", ".join(TARGETS)}')
    folder = sources()
    (folder / "dist").mkdir(exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda machine: _update(folder, TARGETS[machine], anew=anew), wanted))
    return [binary for binary in find_agents() if binary.machine in wanted]


def _update(folder: Path, target: BuildTarget, *, anew: bool) -> None:
    path = folder / "dist" / binary_name(target.machine)
    stamp = path.with_name(f".{target.machine}.made-from")
    made_from = _fingerprint(folder, target)
    if anew or not path.is_file() or not stamp.is_file() or stamp.read_text() != made_from:
        _compile(folder, target, path)
        stamp.write_text(made_from)


def _fingerprint(folder: Path, target: BuildTarget) -> str:
    """Return a digest of all inputs of a build: sources, version, compiler and flags."""
    digest = hashlib.sha256(f"{__version__} {_compiler(target)} {_FLAGS}".encode())
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def has_cross_compiler() -> bool:
    """Return True if the Python package ziglang is installed."""
    return importlib.util.find_spec("ziglang") is not None


def _compiler(target: BuildTarget) -> list[str]:
    if has_cross_compiler():
        return [sys.executable, "-m", "ziglang", "cc", "-target", target.triple, *target.flags]
    own = shutil.which(os.environ.get("CC", "cc"))
    if target.machine == host_machine() and own is not None:
        return [own]
    raise InputError(
        f"building for {target.machine} needs the package ziglang: pip install '.[build]' in a checkout"
        + (", or a C compiler (cc) for this machine" if target.machine == host_machine() else "")
    )


def _compile(folder: Path, target: BuildTarget, path: Path) -> None:
    compiler = _compiler(target)
    others = _SYSTEMS - {target.system}
    left_out = _POSIX_ONLY if target.system == "windows" else frozenset()
    names = sorted({path.name for path in folder.glob("*.c") if path.stem.rpartition("-")[2] not in others} - left_out)
    linked = ["-static"] if target.system != "freebsd" else []
    tables = _NO_TABLES if target.system != "windows" else ()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        binary = Path(scratch) / "agent"
        version = f'-DAGENT_VERSION="{__version__}"'
        command = [*compiler, *_FLAGS, *tables, version, *linked, "-s", "-o", str(binary), *names, *target.libraries]
        try:
            done = run_bounded(command, _BUILD_DEADLINE_S, folder=folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"building for {target.machine}: {error}") from None
        if done.returncode != 0:
            complaint = done.stderr.decode("utf-8", "replace").strip()
            raise BuildError(f"building for {target.machine} failed:\n{complaint}")
        binary.chmod(0o755)
        binary.replace(path)

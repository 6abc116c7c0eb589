"""rigctl as a user of arm64 installs it: on Debian 13, by its Python and pip, from wheels. QEMU emulates the processor.

The emulator is registered in a user namespace (Linux 6.7), so that the machine itself still refuses foreign
programs. Debian's packages are unpacked, not configured: their scripts would take minutes under emulation.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import processes
import pytest
from packaged import ROOT, index, output_of, tags

pytestmark = [pytest.mark.packages, pytest.mark.timeout(1800)]
PACKAGES: Final = "base-files,libc6,libc-bin,libstdc++6,dash,coreutils,python3,python3-venv"
ELF_OF_ARM64: Final = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK: Final = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
EMULATED: Final = f"""
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf '%s' ':arm64:M::{ELF_OF_ARM64}:{MASK}:/usr/bin/qemu-aarch64-static:F' >/proc/sys/fs/binfmt_misc/register
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root COLUMNS=140 "$@"
"""
"""Runs a command in the folder that is the first argument, as root of a namespace of its own."""
CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
"""Debian's pip reads it when it starts; the script of its package makes it."""
GLIBC: Final = (17, 24, 26, 27, 28)
LIBRARIES: Final = """
import asyncssh, numpy, pandas, rigctl.store
print(asyncssh.generate_private_key("ssh-ed25519").get_algorithm())
"""
"""Those with code of their own: series, frames, the store, a key for SSH."""
Arm64: TypeAlias = Callable[..., str]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with Debian 13 for arm64, and there in /wheels what the package index has for it."""
    folder = tmp_path_factory.mktemp("arm64") / "root"
    options = ("--quiet", "--mode=root", "--skip=check/qemu", "--architectures=arm64", "--variant=extract")
    output_of("mmdebstrap", *options, f"--include={PACKAGES}", "trixie", folder)
    certificates = folder / CERTIFICATES.relative_to("/")
    certificates.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(CERTIFICATES, certificates)
    return folder


@pytest.fixture(scope="module")
def arm64(root: Path) -> Arm64:
    """Return a function that runs a command in that folder, and returns its output."""
    namespace = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child")
    return lambda *words: processes.output_of([*namespace, "sh", "-euc", EMULATED, root, *words], timeout=1500)


def test_pip_installs_rigctl_from_wheels_and_it_plans_as_here(
    root: Path, arm64: Arm64, wheel: Path, tmp_path: Path
) -> None:
    machine, python = arm64("python3", "-c", "import os, sys; print(os.uname().machine, sys.version)").split()[:2]
    assert machine == "aarch64"
    options = ("--quiet", "-c", ROOT / "constraints.txt", "--dest", root / "wheels")
    done = index("download", *options, *tags("aarch64", GLIBC, python.rpartition(".")[0]), wheel)
    assert done.returncode == 0, done.stderr

    arm64("python3", "-m", "venv", "/rigctl-env")
    arm64(
        "/rigctl-env/bin/pip", "install", "--quiet", "--no-compile", "--no-index", "--find-links", "/wheels", "rigctl"
    )
    plan = ("-m", "rigctl", "plan", "gigablox", "--json")
    assert arm64("/rigctl-env/bin/python", *plan) == output_of(sys.executable, *plan, cwd=tmp_path)
    assert "941.5" in arm64("/rigctl-env/bin/rigctl", "plan", "gigablox")
    assert arm64("/rigctl-env/bin/python", "-c", LIBRARIES) == "ssh-ed25519\n"

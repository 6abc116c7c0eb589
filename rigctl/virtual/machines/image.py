"""The image that virtual machines boot: Debian's kernel, an initramfs and a disk, made once and cached.

An image is `rigctl/machines/ARCH-HASH` in the user's cache folder. The hash changes with the lists in this file and the
scripts in `guest/`. The file `packages` lists the package versions. Remove the folder to use today's packages.

apt downloads the packages without root from this machine's mirrors (sources.list(5)), with a separate configuration. It
installs none of them on this machine, and runs no maintainer scripts.
"""

import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from rigctl.base.errors import RigError
from rigctl.base.processes import run_command
from rigctl.rig.inventory import Arch
from rigctl.virtual.state import one_at_a_time

_DEBIAN: Final[dict[Arch, str]] = {"x86_64": "amd64", "aarch64": "arm64"}
_DISK_BYTES: Final = 1 << 30
_APT_DEADLINE_S: Final = 900.0
_GUEST: Final = Path(__file__).with_name("guest")
_PACKAGES: Final = (
    "base-files", "bash", "busybox-static", "coreutils", "dash", "ethtool", "findutils", "gawk", "grep", "gzip",
    "hostname", "iproute2", "iputils-ping", "kmod", "libc-bin", "mount", "openssh-server", "procps", "sed", "tar",
    "util-linux",
)  # fmt: skip
_MODULES: Final = (
    "virtio_pci", "virtio_blk", "virtio_net", "e1000e", "crc32c_generic", "ext4", "tcp_bbr", "sch_fq", "sch_fq_codel",
    "bonding", "8021q", "bridge", "veth", "tun", "macvlan", "vrf", "vxlan",
)  # fmt: skip
_LEFT_OUT: Final = (
    "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/perl", "usr/share/i18n",
    "usr/lib/udev", "usr/lib/klibc", "usr/lib/modules", "boot",
)  # fmt: skip
_MERGED: Final = ("bin", "sbin", "lib", "lib64")  # links to folders in /usr, as in Debian
_FOLDERS: Final = ("dev", "proc", "sys", "run", "tmp", "root", "var/empty", "etc/ssh")
_ETC: Final = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n",
    "shadow": "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    "fstab": "",
}
_COMMANDS: Final = ("init", "reboot", "poweroff", "halt")  # busybox has them; Debian's versions need systemd
_DEPENDS: Final = re.compile(rb"\0depends=([^\0]*)\0")  # a kernel module's list of dependencies, see modinfo(8)


@dataclass(frozen=True, slots=True)
class Image:
    """A folder with the files `kernel`, `initrd` and `disk`, from which machines start and to which none writes."""

    arch: Arch
    folder: Path


def cache() -> Path:
    return user_cache_path("rigctl", appauthor=False) / "machines"


def key_of(arch: Arch) -> str:
    """Return `ARCH-HASH`, which only equal images share."""
    parts = [arch, repr((_PACKAGES, _MODULES, _LEFT_OUT, _ETC, _COMMANDS, _DISK_BYTES))]
    parts += [path.read_text() for path in sorted(_GUEST.iterdir())]
    return f"{arch}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def image(arch: Arch) -> Image:
    """Return the image of an architecture. Make it now if it is missing; raise `RigError` if that fails."""
    folder = cache() / key_of(arch)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(folder.parent):
            if not folder.is_dir():
                _make(arch, folder)
    except OSError as error:
        raise RigError(f"{folder}: the image of {arch} machines cannot be made here: {error}") from None
    return Image(arch, folder)


def _make(arch: Arch, folder: Path) -> None:
    print(f"Making the image of {arch} machines from Debian's packages, once: about a minute.", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=f".{arch}-", dir=folder.parent) as place:
        work, image_folder = Path(place), Path(place, "image")
        image_folder.mkdir()
        try:
            files = download_packages(work / "apt", _DEBIAN[arch], [*_PACKAGES, f"linux-image-{_DEBIAN[arch]}"])
            root = unpack_packages(files, work / "root")
            (image_folder / "packages").write_text("".join(f"{file.stem}\n" for file in files))
            _keep_kernel(root, image_folder)
            _furnish(root)
            _format(root, image_folder / "disk")
        except RigError as error:
            advice = "It consists of Debian's packages: use a Debian machine, or virtual: namespaces"
            raise RigError(f"the image of {arch} machines cannot be made: {error}. {advice}") from None
        image_folder.rename(folder)


def unpack_packages(packages: list[Path], root: Path) -> Path:
    """Unpack packages into `root`, without running maintainer scripts, and return `root`."""
    for name in (*_FOLDERS, *(f"usr/{name}" for name in _MERGED)):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in _MERGED:
        (root / name).symlink_to(f"usr/{name}")
    for package in packages:
        # tar instead of dpkg-deb -x, which sets owners and so needs root
        reading = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
        with reading:
            command = ["tar", "-x", "-p", "--no-same-owner", "--keep-directory-symlink", "-C", str(root)]
            done = subprocess.run(command, stdin=reading.stdout, capture_output=True, text=True, check=False)
        if done.returncode != 0 or reading.returncode != 0:
            raise RigError(f"{package.name}: was not unpacked: {done.stderr.strip()[-300:]}")
    return root


def _keep_kernel(root: Path, folder: Path) -> None:
    kernels = sorted((root / "boot").glob("vmlinuz-*"))
    if not kernels:
        raise RigError("Debian's kernel package holds no kernel")
    shutil.copyfile(kernels[-1], folder / "kernel")
    modules = kernel_modules(root / "usr/lib/modules" / kernels[-1].name.removeprefix("vmlinuz-"), _MODULES)
    files = {f"modules/{name}": content for name, content in modules.items()}
    files["modules/order"] = "".join(f"{name}\n" for name in modules).encode()
    files["init"] = (_GUEST / "init").read_bytes()
    files["bin/busybox"] = (root / "usr/bin/busybox").read_bytes()
    packed = archive(files, frozenset({"init", "bin/busybox"}), console=True)
    (folder / "initrd").write_bytes(gzip.compress(packed, 6, mtime=0))


def _furnish(root: Path) -> None:
    for name in _LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    for name, text in _ETC.items():
        (root / "etc" / name).write_text(text)
    for name in _COMMANDS:
        (root / "usr/sbin" / name).symlink_to("../bin/busybox")
    for name, target in (("sh", "dash"), ("awk", "gawk")):
        if not (root / "usr/bin" / name).exists():
            (root / "usr/bin" / name).symlink_to(target)
    shutil.copyfile(_GUEST / "inittab", root / "etc/inittab")
    shutil.copyfile(_GUEST / "sshd_config", root / "etc/ssh/rig_config")
    shutil.copyfile(_GUEST / "start", root / "usr/sbin/rig-start")
    (root / "usr/sbin/rig-start").chmod(0o755)
    (root / "root").chmod(0o700)
    (root / "var/empty").chmod(0o755)


def _format(root: Path, disk: Path) -> None:
    """Write an ext4 file system with the files in `root`, owned by root; an ordinary user needs a user namespace."""
    mke2fs = shutil.which("mke2fs", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "mke2fs"
    as_root = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    options = ["-q", "-t", "ext4", "-L", "rigctl", "-m", "0", "-E", "lazy_itable_init=1,nodiscard", "-d", str(root)]
    run_command([*as_root, mke2fs, *options, str(disk), f"{_DISK_BYTES >> 10}k"], deadline_s=_APT_DEADLINE_S)


def kernel_modules(folder: Path, wanted: Iterable[str]) -> dict[str, bytes]:
    """Return the content of the kernel modules `wanted` and their dependencies by name, in loading order.

    `folder` is /lib/modules/VERSION. Leave out modules that are built into the kernel (modules.builtin). Raise
    `RigError` for an unknown module.
    """
    files = {path.name.split(".ko")[0].replace("-", "_"): path for path in folder.rglob("*.ko*")}
    builtin = {
        Path(line).name.removesuffix(".ko").replace("-", "_")
        for line in (folder / "modules.builtin").read_text().splitlines()
    }
    loaded: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in builtin or name in loaded:
            return
        if name not in files:
            raise RigError(f"{folder}: Debian's kernel has no module {name}")
        data = files[name].read_bytes()
        content = lzma.decompress(data) if files[name].suffix == ".xz" else data
        depends = _DEPENDS.search(content)
        for needed in depends[1].decode().replace("-", "_").split(",") if depends and depends[1] else ():
            add(needed)
        loaded[name] = content

    for name in wanted:
        add(name)
    return loaded


def archive(files: Mapping[str, bytes], programs: frozenset[str] = frozenset(), *, console: bool = False) -> bytes:
    """Return a cpio archive ("newc") that Linux unpacks as its initial root file system (initramfs-buffer-format).

    One file may contain several archives. `files` has the content by path, without a leading slash; `programs` are the
    paths that get execute permission. The archive also has the folders of all files.
    """
    parents = {str(parent) for path in files for parent in Path(path).parents} - {"."}
    folders = sorted(parents | ({"dev"} if console else set()))
    entries = [_entry(folder, b"", stat.S_IFDIR | 0o755) for folder in folders]
    # Without /dev/console (device number 5, 1), the first process has no output.
    entries += [_entry("dev/console", b"", stat.S_IFCHR | 0o600, (5, 1))] if console else []
    for path, content in files.items():
        entries.append(_entry(path, content, stat.S_IFREG | (0o755 if path in programs else 0o600)))
    return b"".join([*entries, _entry("TRAILER!!!", b"", 0)])


def _entry(name: str, content: bytes, mode: int, device: tuple[int, int] = (0, 0)) -> bytes:
    named = name.encode() + b"\0"
    # Inode, mode, owner, group, links, time, size, device (2), device number (2), length of the name, checksum.
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(named), 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers)
    return pad(head + named) + pad(content)


def pad(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def configuration(folder: Path, debian: str) -> str:
    """Return an apt.conf(5) that keeps all files in `folder`, for the architecture with the Debian name `debian`."""
    return f"""\
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "{debian}";
APT::Architectures {{ "{debian}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
"""


def download_packages(folder: Path, debian: str, packages: Iterable[str]) -> list[Path]:
    """Download `packages` and their dependencies; return the files. Raise `RigError` with apt's error."""
    for place in ("state/lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "apt.conf").write_text(configuration(folder, debian))
    environment = os.environ | {"APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
    for words in (["update"], ["-y", "--download-only", "install", *packages]):
        run_command(["apt-get", "-qq", *words], environment=environment, deadline_s=_APT_DEADLINE_S)
    return sorted((folder / "cache" / "archives").glob("*.deb"))

"""A minimal host with only busybox and dropbear, in a chroot."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openssh import Sshd, accepts, kept_port, new_key
from openssh_lab import Lab
from processes import end, eventually

_ENTER = """
set -e; mount --make-rprivate /; cd "$1"
mount -t proc none proc; mount -t sysfs none sys; mount --bind /dev dev
exec chroot . /usr/sbin/dropbear -F -E -s -r /etc/host_key -P '' -p "$2"
"""


def small_host(root: Path, key: Path, place: str) -> list[str]:
    """Fill `root` and return the command of its SSH server at `place` ([ADDRESS:]PORT), to which `key` has access.

    The public host key is written to host_key.pub in `root`.
    """
    for folder in ("bin", "dev", "etc", "lib64", "proc", "root/.ssh", "sys", "tmp", "usr/sbin", "var/lib", "var/tmp"):
        (root / folder).mkdir(parents=True)
    for program, folder in (("busybox", "bin"), ("dropbear", "usr/sbin")):
        found = shutil.which(program)
        assert found is not None, f"{program} is not installed"
        shutil.copy(found, root / folder)
    listed = subprocess.run(["ldd", root / "usr/sbin/dropbear"], check=True, capture_output=True, text=True)
    for library in re.findall(r"/\S+", listed.stdout):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    subprocess.run(["chroot", root, "/bin/busybox", "--install", "-s", "/bin"], check=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/shells").write_text("/bin/sh\n")
    shutil.copy(key.with_suffix(".pub"), root / "root/.ssh/authorized_keys")
    for private in ("root", "root/.ssh", "root/.ssh/authorized_keys"):
        (root / private).chmod(0o700)
    made = ["dropbearkey", "-t", "ed25519", "-f", str(root / "etc/host_key")]
    said = subprocess.run(made, check=True, capture_output=True, text=True).stdout
    public = next(line for line in said.splitlines() if line.startswith("ssh-"))
    (root / "host_key.pub").write_text(" ".join(public.split()[:2]) + "\n")
    return ["unshare", "--mount", "sh", "-c", _ENTER, "sh", str(root), place]


def serve_small(lab: Lab, name: str, address: str) -> "subprocess.Popen[bytes]":
    command = small_host(lab.folder / name, lab.folder / "id", f"{address}:22")
    return subprocess.Popen(lab.inside(name, *command), stderr=subprocess.DEVNULL)


@contextmanager
def dropbear(folder: Path) -> Iterator[Sshd]:
    key, root, known = new_key(folder / "user_key"), folder / "host", folder / "known_hosts"
    with kept_port() as port:
        command = small_host(root, key, f"127.0.0.1:{port}")
        known.write_text(f"[127.0.0.1]:{port} {(root / 'host_key.pub').read_text()}")
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: accepts(port), "dropbear did not start")
            yield Sshd(port, folder, key, known, process, user="root")
        finally:
            end(process, politely_for_s=5)

"""Keep a SQLite file safe in a folder that several hosts may share: a home on NFS, Lustre or GPFS.

In WAL mode the processes that use a file share memory, so they must run on one host (sqlite.org/wal.html). In a shared
folder the file has a rollback journal instead, and its locks must reach the other hosts. The kernel names the mount of
a folder (proc(5): fdinfo, mountinfo). Names of mount options: nfs(5), mount.cifs(8), mount.lustre(8).
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.store.errors import LOCAL_OR_SERVER, explain_errors

WAIT_MS: Final = 60_000
"""Longest wait for a lock in a shared folder: a reader there keeps writers waiting while it reads a run."""
# Types of file systems that one host has for itself. Any other type is taken for shared: then a reader waits for a
# writer, and nothing is lost. FUSE, 9p and virtiofs may pass a shared folder on; gfs2 and ocfs2 share a disk.
_OF_ONE_HOST: Final = (
    "aufs", "bcachefs", "btrfs", "ecryptfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "hfs",
    "hfsplus", "iso9660", "jffs2", "jfs", "minix", "msdos", "nilfs2", "ntfs", "ntfs3", "overlay", "ramfs", "reiserfs",
    "rootfs", "squashfs", "tmpfs", "ubifs", "udf", "vfat", "xfs", "zfs",
)  # fmt: skip
_LOCKS_OF_ONE_HOST: Final = frozenset({"nolock", "local_lock=all", "local_lock=posix", "localflock", "nobrl"})
_WAL_VERSIONS: Final = b"\2\2"  # bytes 18 and 19 of the file (sqlite.org/fileformat2.html)


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount as in mountinfo: the type of its file system, and the options of the file system."""

    kind: str
    options: frozenset[str]

    @property
    def is_shared(self) -> bool:
        return self.kind not in _OF_ONE_HOST


_UNKNOWN: Final = Mount("an unknown file system", frozenset())


def mount_in(mountinfo: str, number: str) -> Mount:
    """Return the mount with this number in the text of /proc/self/mountinfo; an unknown mount if it has none."""
    for line in mountinfo.splitlines():
        own, _, file_system = line.partition(" - ")
        if own.partition(" ")[0] == number:
            kind, _, options = file_system.split(" ", 2)
            return Mount(printable(kind), frozenset(options.split(",")))
    return _UNKNOWN


def mount_of(path: Path) -> Mount:
    """Return the mount that has the folder of a file. SQLite follows links, so the folder is that of their target."""
    try:
        descriptor = os.open(path.resolve().parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            known = Path(f"/proc/self/fdinfo/{descriptor}").read_text("utf-8")
        finally:
            os.close(descriptor)
        number = next(line.partition(":")[2].strip() for line in known.splitlines() if line.startswith("mnt_id:"))
        return mount_in(Path("/proc/self/mountinfo").read_text("utf-8", "replace"), number)
    except (OSError, StopIteration):
        return _UNKNOWN


def refuse_without_locks(path: Path, mount: Mount, place: str) -> None:
    """Raise `InputError` if locks in a shared folder are refused, or if they do not reach other hosts."""
    if local := sorted(mount.options & _LOCKS_OF_ONE_HOST):
        raise InputError(
            f"store {place} is on {mount.kind}, mounted with {local[0]}: its locks hold on this host only, so another "
            f"host could write to it at the same time. {LOCAL_OR_SERVER}, or mount it without {local[0]}"
        )
    try:
        with TemporaryFile(dir=path.resolve().parent) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if not _can_write(path):
            return  # SQLite says so
        flock = ", or mount it with -o flock" if mount.kind == "lustre" else ""
        raise InputError(
            f"store {place} is on {mount.kind}, which refuses a lock ({error.strerror}), so a run cannot be stored "
            f"safely. {LOCAL_OR_SERVER}{flock}"
        ) from error


def leave_wal(path: Path, mount: Mount, place: str, prepare: Callable[[sqlite3.Connection, object], None]) -> None:
    """Give a file in WAL mode a rollback journal. Raise `InputError` if another program has it open.

    With exclusive locks SQLite reads a file in WAL mode without shared memory (sqlite.org/wal.html, section 8).
    """
    with explain_errors(place), closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        prepare(connection, None)
        connection.execute(f"PRAGMA busy_timeout = {WAIT_MS:d}")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY and is_wal(path):
                raise InputError(
                    f"store {place} is on {mount.kind} in WAL mode, which SQLite forbids there, and another program "
                    f"has it open. Close that program, and rigctl changes the mode. {LOCAL_OR_SERVER}"
                ) from error
            raise


def is_wal(path: Path) -> bool:
    """Tell whether a file is in WAL mode. This process must have no lock on it: the kernel drops locks on closing."""
    try:
        with path.open("rb") as file:
            return file.read(20)[18:] == _WAL_VERSIONS
    except OSError:
        return False


def _can_write(path: Path) -> bool:
    return os.access(path.resolve().parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids)

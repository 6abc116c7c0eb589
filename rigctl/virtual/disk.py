"""The process that is the slow disk of a node with a `disk` in the rig file: `python -m rigctl.virtual.disk FD RATE`.

The disk is a file system in user space (Documentation/filesystems/fuse): the kernel asks this process for each read and
write, which takes as long as its bytes at `disk`, one after the other. The bytes are in files of the machine's own disk
that have no name. A node sees it as /var/tmp, where file transfers keep their files. It has plain files and no folders.

A throttled block device would need root, a loop device, and a control group that outlives a killed rig. This needs only
/dev/fuse, and the kernel removes it with the mount namespace of the holder.
"""

import contextlib
import ctypes
import errno
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import IO, Final

from rigctl.base.errors import RigError
from rigctl.virtual.layout import Layout

SHOWN_AT: Final = "/var/tmp"  # noqa: S108
"""Path of a node's slow disk: the default of `folder` in a scenario."""
_DEVICE: Final = "/dev/fuse"
_DISKS: Final = Path("/run/rigctl/disk")
_MS_NOSUID_NODEV: Final = 2 | 4  # values from linux/mount.h
_PR_SET_TIMERSLACK: Final = 29  # value from linux/prctl.h

# What follows is from linux/fuse.h.


class _Ask(IntEnum):
    """Requests of the kernel."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    UNLINK = 10
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    BATCH_FORGET = 42


_REQUEST: Final = struct.Struct("=IIQQIIIHH")  # length, request, its number, node, user, group, process
_REPLY: Final = struct.Struct("=IiQ")  # length, error, number of the request
_INIT_IN: Final = struct.Struct("=IIII")  # major, minor, most readahead, flags
_INIT_OUT: Final = struct.Struct("=IIIIHHIIHHI28x")
_ATTRIBUTES: Final = struct.Struct("=6Q10I")
_VALID: Final = struct.Struct("=QII")  # how long attributes hold: s, ns
_ENTRY: Final = struct.Struct("=QQQQII")  # node, generation, how long the entry and its attributes hold
_FORGOTTEN: Final = struct.Struct("=QQ")  # node, how often the kernel knew it; after a count of 8 bytes
_FORGOTTEN_FROM: Final = 8
_OPENED: Final = struct.Struct("=QII")
_SETATTR_IN: Final = struct.Struct("=IIQQ")  # which values, padding, file, size
_CREATE_IN: Final = struct.Struct("=IIII")
_TRANSFER: Final = struct.Struct("=QQIIQII")  # file, offset, size of a read or write
_WRITTEN: Final = struct.Struct("=II")
_SPACE: Final = struct.Struct("=5Q4I24x")
_MINOR: Final = 31  # 7.31, Linux 5.4
_ASYNC_READ, _BIG_WRITES, _MAX_PAGES = 1 << 0, 1 << 5, 1 << 22
_SIZE_IS_SET: Final = 1 << 3
_MOST_BYTES: Final = 128 << 10  # of one read or write
_PAGE: Final = 4096
_ROOT: Final = 1
_DAY_S: Final = 86400
"""How long the kernel may keep names and attributes: nobody else changes them."""
_FILE, _FOLDER = 0o100600, 0o040700


@contextmanager
def slow_disks(layout: Layout) -> Iterator[None]:
    """Keep the slow disks of a rig's nodes during the `with` block. Raise `RigError` if this machine has no FUSE."""
    with ExitStack() as ends:
        for place in layout.places:
            if place.disk_bps is not None:
                ends.enter_context(_slow_disk(place.name, place.disk_bps))
        yield


def shown_to(name: str) -> tuple[str, ...]:
    """Return the command prefix that shows a node's slow disk at `SHOWN_AT`, in a mount namespace of the command."""
    script = f'mount --bind "$0" {SHOWN_AT} && exec "$@"'
    return ("unshare", "--mount", "/bin/sh", "-c", script, str(_DISKS / name))


@contextmanager
def _slow_disk(name: str, rate_bps: int) -> Iterator[None]:
    folder = _DISKS / name
    folder.mkdir(parents=True, mode=0o700)
    try:
        device = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RigError(
            f"{name}: a node with a disk needs {_DEVICE} (the kernel's module fuse): {error.strerror}"
        ) from None
    options = f"fd={device},rootmode={_FOLDER:o},user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    # Each disk has a name of its own, so that `check` does not count them as one file system.
    if libc.mount(f"disk-{name}".encode(), str(folder).encode(), b"fuse", _MS_NOSUID_NODEV, options) != 0:
        os.close(device)
        raise RigError(f"{name}: its disk cannot be mounted: {os.strerror(ctypes.get_errno())}")
    command = [sys.executable, "-P", "-m", "rigctl.virtual.disk", str(device), str(rate_bps)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[device]) as served:
        os.close(device)  # only the process keeps the device open, so its end also ends all waiting reads and writes
        try:
            yield
        finally:
            served.kill()


@dataclass(slots=True)
class SlowDisk:
    """The files of a disk, and the time at which it is free again. `answer` carries out one request of the kernel."""

    rate_bps: int
    free_at_ns: int = 0
    files: dict[int, IO[bytes]] = field(default_factory=dict)
    names: dict[bytes, int] = field(default_factory=dict)
    last: int = _ROOT

    def answer(self, request: int, node: int, data: bytes) -> bytes:
        """Return the reply to a request on `node`, when the disk has done it. Raise `OSError` if it is refused."""
        if request in (_Ask.FLUSH, _Ask.FSYNC, _Ask.RELEASE, _Ask.RELEASEDIR, _Ask.ACCESS):
            return b""
        work = _ANSWERS.get(request)
        if work is None:
            raise OSError(errno.ENOSYS, "not on a slow disk")
        return work(self, node, data)

    def _start(self, _: int, data: bytes) -> bytes:
        major, _minor, readahead, flags = _INIT_IN.unpack_from(data)
        wanted = flags & (_ASYNC_READ | _BIG_WRITES | _MAX_PAGES)
        return _INIT_OUT.pack(major, _MINOR, readahead, wanted, 0, 0, _MOST_BYTES, 1, _MOST_BYTES // _PAGE, 0, 0)

    def _attributes(self, node: int, _: bytes = b"") -> bytes:
        return _VALID.pack(_DAY_S, 0, 0) + self._attributes_of(node)

    def _attributes_of(self, node: int) -> bytes:
        size = 0 if node == _ROOT else os.fstat(self._file(node)).st_size
        mode, links = (_FOLDER, 2) if node == _ROOT else (_FILE, 1)
        return _ATTRIBUTES.pack(node, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, _PAGE, 0)

    def _change(self, node: int, data: bytes) -> bytes:
        valid, _, _, size = _SETATTR_IN.unpack_from(data)
        if valid & _SIZE_IS_SET:
            os.ftruncate(self._file(node), size)
        return self._attributes(node)

    def _find(self, _: int, data: bytes) -> bytes:
        if data not in self.names:
            raise OSError(errno.ENOENT, "no such file")
        return self._entry(self.names[data])

    def _make(self, _: int, data: bytes) -> bytes:
        self.last += 1
        self.files[self.last] = tempfile.TemporaryFile(buffering=0, dir=SHOWN_AT)  # noqa: SIM115 — closed by `forget`
        self.names[data[_CREATE_IN.size :]] = self.last
        return self._entry(self.last) + self._open(self.last, data)

    def _entry(self, node: int) -> bytes:
        return _ENTRY.pack(node, 0, _DAY_S, _DAY_S, 0, 0) + self._attributes_of(node)

    def _open(self, node: int, _: bytes) -> bytes:
        return _OPENED.pack(node, 0, 0)

    def _remove(self, _: int, data: bytes) -> bytes:
        self.names.pop(data, None)
        return b""

    def forget(self, node: int) -> None:
        """Close a file that the kernel no longer uses, unless it has a name."""
        if node not in self.names.values() and node in self.files:
            self.files.pop(node).close()

    def _read(self, node: int, data: bytes) -> bytes:
        _, offset, size, *_rest = _TRANSFER.unpack_from(data)
        found = os.pread(self._file(node), size, offset)
        self._take_time(len(found))
        return found

    def _write(self, node: int, data: bytes) -> bytes:
        _, offset, size, *_rest = _TRANSFER.unpack_from(data)
        os.pwrite(self._file(node), memoryview(data)[_TRANSFER.size : _TRANSFER.size + size], offset)
        self._take_time(size)
        return _WRITTEN.pack(size, 0)

    def _list_files(self, _: int, __: bytes) -> bytes:
        return b""

    def _space(self, _: int, __: bytes) -> bytes:
        free = os.statvfs(SHOWN_AT)
        return _SPACE.pack(
            free.f_blocks, free.f_bfree, free.f_bavail, free.f_files, free.f_ffree, _PAGE, 255, free.f_frsize, 0
        )

    def _file(self, node: int) -> int:
        if node not in self.files:
            raise OSError(errno.EISDIR, "a folder")
        return self.files[node].fileno()

    def _take_time(self, size: int) -> None:
        self.free_at_ns += size * 8_000_000_000 // self.rate_bps
        time.sleep(max(0, self.free_at_ns - time.monotonic_ns()) / 1e9)


_ANSWERS: Final[Mapping[int, Callable[[SlowDisk, int, bytes], bytes]]] = {
    _Ask.INIT: SlowDisk._start,
    _Ask.GETATTR: SlowDisk._attributes,
    _Ask.SETATTR: SlowDisk._change,
    _Ask.LOOKUP: SlowDisk._find,
    _Ask.CREATE: SlowDisk._make,
    _Ask.OPEN: SlowDisk._open,
    _Ask.OPENDIR: SlowDisk._open,
    _Ask.READDIR: SlowDisk._list_files,
    _Ask.UNLINK: SlowDisk._remove,
    _Ask.READ: SlowDisk._read,
    _Ask.WRITE: SlowDisk._write,
    _Ask.STATFS: SlowDisk._space,
}


def _forgotten(request: int, node: int, data: bytes) -> list[int]:
    if request == _Ask.BATCH_FORGET:
        return [one for one, _ in _FORGOTTEN.iter_unpack(data[_FORGOTTEN_FROM:])]
    return [node] if request == _Ask.FORGET else []


def answer_requests(device: int, disk: SlowDisk) -> None:
    """Answer the kernel's requests until the disk is unmounted."""
    while True:
        waited = select.select([device], [], [], 0)[0]
        try:
            message = os.read(device, _MOST_BYTES + _PAGE)
        except OSError as error:
            if error.errno == errno.ENODEV:  # unmounted
                return
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):  # a request was interrupted
                continue
            raise
        if not waited:  # the disk was idle; otherwise it went on at once, even if this process woke up late
            disk.free_at_ns = max(disk.free_at_ns, time.monotonic_ns())
        _, request, number, node, *_ = _REQUEST.unpack_from(message)
        data = message[_REQUEST.size :]
        if request in (_Ask.FORGET, _Ask.BATCH_FORGET, _Ask.INTERRUPT):  # these have no reply
            for forgotten in _forgotten(request, node, data):
                disk.forget(forgotten)
            continue
        try:
            reply, failed = disk.answer(request, node, data), 0
        except OSError as error:
            reply, failed = b"", -(error.errno or errno.EIO)
        with contextlib.suppress(FileNotFoundError):  # the request was interrupted
            os.write(device, _REPLY.pack(_REPLY.size + len(reply), failed, number) + reply)


def main() -> int:
    """Serve the disk until it is unmounted; return 0."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # wake on time, not up to 50 us late (the default)
    device, rate_bps = map(int, sys.argv[1:])
    answer_requests(device, SlowDisk(rate_bps))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write files atomically: write a temporary file in the same folder, then rename it."""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError

_PART: Final = re.compile(r"\..+\.[0-9a-f]{8}\.part")


def put(path: Path, content: bytes, mode: int = 0o666, *, follow: bool = True) -> None:
    """Write a file, complete at once, or raise `OSError`. Without `follow`, it replaces a link or a pipe at `path`."""
    target = path.resolve() if follow else path.parent.resolve() / path.name
    if follow and target.exists() and not target.is_file() and not target.is_dir():
        # A pipe or a device such as /dev/stdout must not be replaced by a file.
        target.write_bytes(content)
        return
    beside, descriptor = _begin_part(target, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _begin_part(target: Path, mode: int) -> tuple[Path, int]:
    """Create a temporary file beside `target`. Return its path and its descriptor, which holds a lock."""
    while True:
        part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return part, descriptor
        os.close(descriptor)  # `tidy` in another process removed the file before it was locked


def tidy(folder: Path) -> None:
    """Remove temporary files of `put` that nobody has locked, because their process was killed."""
    for part in folder.glob(".*.part"):
        if not _PART.fullmatch(part.name):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(descriptor)


def read_regular(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes. Raise `OSError`, also for a link or a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        if found.st_size > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read(most)


def write_whole(path: Path, content: bytes, *, follow: bool = True) -> None:
    """Write a file that a user named, as `put` does. Raise `InputError` with a remedy if this fails."""
    if path.is_dir() and (follow or not path.is_symlink()):
        raise InputError(f"{path}: is a folder. Name a file in it")
    try:
        tidy(path.resolve().parent if follow else path.parent)
        put(path, content, follow=follow)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}. Name another place") from error

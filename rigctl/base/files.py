"""Write files whole or not at all: beside their place, then renamed into it."""

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from pathlib import Path
from typing import Final

_PART: Final = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_WRITING_S: Final = 3600.0
"""An older part was left by a process that was killed."""


def put(path: Path, content: bytes, mode: int = 0o666, *, follow: bool = True) -> None:
    """Put `content` at `path`. A reader sees the old file or the new one, never a part. Raises `OSError`.

    `follow` False: a link or a pipe at `path` is replaced itself.
    """
    target = path.resolve() if follow else path.parent.resolve() / path.name
    if follow and target.exists() and not target.is_file() and not target.is_dir():
        # A pipe or a device, as /dev/stdout: nothing to keep whole, and it must not be replaced.
        target.write_bytes(content)
        return
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def tidy(folder: Path) -> None:
    """Remove the parts that killed processes left in a folder."""
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if _PART.fullmatch(part.name) and time.time() - part.stat().st_mtime > _WRITING_S:
                part.unlink()


def read_regular(path: str | Path, most: int, folder: int | None = None) -> bytes:
    """Return the content of a regular file of at most `most` bytes; `path` may be relative to an open folder.

    Raises `OSError`, also for a link, a pipe (which would block), a device, or a longer file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        if found.st_size > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read(most)

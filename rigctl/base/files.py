"""Write files atomically: write a temporary file in the same folder, then rename it."""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError

_MOST_LINKS: Final = 40  # as in Linux, path_resolution(7)
_LOOK: Final = getattr(os, "O_PATH", os.O_RDONLY)  # opens a link itself; a system without it refuses links
_PART: Final = re.compile(r"\..+\.[0-9a-f]{8}\.part")


def put(path: Path, content: bytes, mode: int = 0o666, *, follow: bool = True) -> None:
    """Write a file, complete at once, or raise `OSError`. Without `follow`, it replaces a link or a pipe at `path`.

    The folder is opened once: whatever other users put in its place meanwhile, the file comes into this folder.
    """
    target = _follow(path) if follow else path
    if follow and target.exists() and not target.is_file() and not target.is_dir():
        # A pipe or a device such as /dev/stdout must not be replaced by a file.
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "wb") as file:
            file.write(content)
        return
    folder = os.open(target.parent, _LOOK | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        beside, descriptor = _begin_part(folder, target.name, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                os.replace(beside, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)
    finally:
        os.close(folder)


def _follow(path: Path) -> Path:
    """Return what `path` leads to. Raise `OSError` for a symbolic link of another user, who may lead it anywhere."""
    for _ in range(_MOST_LINKS):
        try:
            found = os.open(path, _LOOK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return path
        try:
            status = os.fstat(found)
            if not stat.S_ISLNK(status.st_mode):
                return path
            if status.st_uid not in {os.geteuid(), 0}:
                raise OSError(errno.EPERM, f"{path} is a symbolic link of another user (uid {status.st_uid})")
            path = path.parent / os.readlink("", dir_fd=found)
        finally:
            os.close(found)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _begin_part(folder: int, name: str, mode: int) -> tuple[str, int]:
    """Create a temporary file for `name` in a folder. Return its name and its descriptor, which holds a lock."""
    while True:
        part = f".{name[:100]}.{secrets.token_hex(4)}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
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


def read_regular(path: Path | str, most: int, folder: int | None = None) -> bytes:
    """Return the content of a regular file of at most `most` bytes. Raise `OSError`, also for a link or a pipe.

    `folder`: descriptor of the folder in which a relative path begins.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
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


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write `files` to `folder`. Raise `InputError` if the folder or a file cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot create this folder: {error.strerror}. Choose another one") from error
    for name, content in files.items():
        write_whole(folder / name, content, follow=False)  # symbolic links in the folder are not followed

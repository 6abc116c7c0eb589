"""The files that a rig file names for SSH: keys and known hosts, their paths, and checks before they are read."""

import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1024**2


def expanded_path(path: Path, folder: Path) -> Path:
    """Return `path`, from the rig file's folder, with ~ as the home folder."""
    try:
        return folder / path.expanduser()
    except RuntimeError:  # the user has no home folder: a message then shows the path as it is
        return folder / path


def wrong_file(what: str, path: Path) -> str | None:
    """Return why `path` is not read as `what`: it is no regular file, or too large. Return None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return f"{what} {path}: expected a file, this is a folder, a device or a pipe. Name another in the rig file"
    if found.st_size > MOST_BYTES:
        return f"{what} {path}: expected at most 1 MiB, it has {found.st_size:,} bytes. Name another in the rig file"
    return None


def wrong_key(path: Path) -> str | None:
    """Return why `path` cannot be a private key: as `wrong_file`, or because others may read it (as in ssh(1))."""
    wrong = wrong_file("key", path)
    if wrong is not None or not path.exists():
        return wrong
    found = path.stat()
    if found.st_uid == os.getuid() and found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        advice = f"If it is still yours alone: chmod 600 {path}"
        return f"key {path}: others may read it (mode {mode:04o}), so it is not used. {advice}"
    return None

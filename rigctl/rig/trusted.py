"""The files that a rig file names for SSH: keys and known hosts. What is wrong with one, before it is read."""

import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1024**2


def wrong_file(what: str, path: Path) -> str | None:
    """Why `path` is not read as `what`: no regular file (a device never ends), or too large. None: nothing is wrong.

    That it is missing is for whoever opens it to tell.
    """
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
    """Why `path` is not used as a private key: as `wrong_file`, or others may read it (the rule of ssh(1))."""
    wrong = wrong_file("key", path)
    if wrong is not None or not path.exists():
        return wrong
    found = path.stat()
    if found.st_uid == os.getuid() and found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        advice = f"If it is still yours alone: chmod 600 {path}"
        return f"key {path}: others may read it (mode {mode:04o}), so it is not used. {advice}"
    return None

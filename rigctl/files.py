"""Files that are there whole or not at all: written beside their place, then renamed into it."""

import contextlib
import os
import re
import secrets
import time
from pathlib import Path
from typing import Final

_PART: Final = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_WRITING_S: Final = 3600.0
"""A part older than this was left by a process that was killed."""


def put(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Put `content` at `path`. A reader sees the old file or the new one, never a part. Raises `OSError`."""
    target = path.resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
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
    """Remove parts that nobody writes any more."""
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if _PART.fullmatch(part.name) and time.time() - part.stat().st_mtime > _WRITING_S:
                part.unlink()

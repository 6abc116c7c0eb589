"""Files that are there whole or not at all: written beside their place, then renamed into it."""

import os
import secrets
from pathlib import Path

from rigctl.errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path`. A reader sees the old file or the new one, never a part. Raises `InputError`."""
    target = path.resolve()
    if target.is_dir():
        raise InputError(f"{path}: is a folder. Name a file in it")
    try:
        if target.exists() and not target.is_file():
            # A pipe or a device, as /dev/stdout: nothing to keep whole, and it must not be replaced.
            target.write_bytes(content)
            return
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            with beside.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}. Name another place") from error

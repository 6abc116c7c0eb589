"""Files that a user asked for, whole or not at all."""

from pathlib import Path

from rigctl.base.errors import InputError
from rigctl.base.files import put, tidy


def write_whole(path: Path, content: bytes, *, follow: bool = True) -> None:
    """Put `content` at `path`. A reader sees the old file or the new one, never a part. Raises `InputError`.

    `follow` False: a link at `path` is replaced, not what it leads to.
    """
    if path.is_dir() and (follow or not path.is_symlink()):
        raise InputError(f"{path}: is a folder. Name a file in it")
    try:
        tidy(path.resolve().parent if follow else path.parent)
        put(path, content, follow=follow)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}. Name another place") from error

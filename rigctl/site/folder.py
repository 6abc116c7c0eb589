"""The folder of a site: whose it is, one publisher at a time, and files that are all there before one is seen.

Files are made under `.rigctl-site/stage` and renamed from there: first those that nothing links to yet, then those that
are replaced, the front page last. So every page that can be reached links to pages that are there, and a publish that
ends early, for want of room or by a signal, leaves the old site as it was.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rigctl.errors import InputError
from rigctl.files import put

OWN: Final = ".rigctl-site"
_MARK: Final = "site.json"
_STAGE: Final = "stage"
_NOT_LOOKED_AT: Final = frozenset({"lost+found", ".DS_Store", "Thumbs.db", "desktop.ini"})
_WAIT_S: Final = 120.0
_ORDER: Final = ("runs/", "compared/", "scenarios/", "search.js", "feed.xml", "index.html")
"""In which files that are replaced are renamed: each links to those before it."""


class Folder:
    """A folder that holds a site of a store, or nothing yet. Made by `opened`."""

    def __init__(self, path: Path, mark: Mapping[str, Any]) -> None:
        self.path = path
        self.mark = mark

    @property
    def own(self) -> Path:
        """What is kept of a site beside its pages."""
        return self.path / OWN

    @property
    def stage(self) -> Path:
        return self.own / _STAGE

    def add(self, page: str, content: bytes) -> None:
        """Make a file that `commit` puts in its place."""
        with written(self.path):
            stage(self.stage / page, content)

    def keep(self, name: str, content: bytes) -> None:
        """Put one of the site's own files, at once."""
        with written(self.path):
            put(self.own / name, content)

    def kept(self, name: str) -> bytes | None:
        try:
            return (self.own / name).read_bytes()
        except OSError:
            return None

    def staged(self) -> list[str]:
        found = (path for path in self.stage.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.stage).as_posix() for path in found)

    def commit(self) -> list[str]:
        """Put all files of the stage in their places; gives their paths."""
        pages = self.staged()
        with written(self.path):
            for page in sorted(pages, key=lambda page: ((self.path / page).exists(), _place(page), page)):
                target = self.path / page
                target.parent.mkdir(parents=True, exist_ok=True)
                (self.stage / page).replace(target)
            shutil.rmtree(self.stage, ignore_errors=True)
        return pages

    def discard(self) -> None:
        shutil.rmtree(self.stage, ignore_errors=True)


def stage(file: Path, content: bytes) -> None:
    """Make a file of the stage; it outlives a power cut once it is in its place. Raises `OSError`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened_:
        opened_.write(content)
        opened_.flush()
        os.fsync(opened_.fileno())


def _place(page: str) -> int:
    return next((at for at, start in enumerate(_ORDER) if page.startswith(start)), 0)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """What cannot be written in a block is an `InputError` that names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise InputError(
                f"{path}: {error.strerror}: the site is as it was. Make room, or name another folder"
            ) from error
        raise InputError(f"{path}: cannot be written: {error.strerror}. Name another folder") from error


@contextmanager
def opened(path: Path, wait_s: float = _WAIT_S) -> Iterator[Folder]:
    """The folder at `path`, made where it is not there, for one publisher; another is waited for.

    Raises `InputError` for what is no folder, holds files of others, is locked, or
    cannot be written: nothing was touched then. Whether a site of another store is there, its mark tells.
    """
    check_folder(path)
    with written(path):
        (path / OWN).mkdir(parents=True, exist_ok=True)
        lock = os.open(path / OWN / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait(path, lock, wait_s)
        folder = Folder(path, _mark(path))
        folder.discard()
        yield folder
    finally:
        os.close(lock)


def check_folder(path: Path) -> None:
    """Refuse what is no place for a site; nothing is touched. Raises `InputError`."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file. Name a folder for the site")
    try:
        there = {entry.name for entry in path.iterdir()} - _NOT_LOOKED_AT if path.exists() else set()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}. Name another folder") from error
    if there and there != {OWN} and not (path / OWN / _MARK).is_file():
        raise InputError(
            f"{path}: holds files that are of no site of rigctl, as {min(there)}; nothing was touched. "
            "Name an empty or a new folder"
        )


def _wait(path: Path, lock: int, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise InputError(f"{path}: another rigctl publish is still writing there. Try again later") from None
            time.sleep(0.1)
        except OSError as error:
            raise InputError(f"{path}: cannot be locked: {error.strerror}. Name another folder") from error
        else:
            return


def _mark(path: Path) -> dict[str, Any]:
    try:
        said = json.loads((path / OWN / _MARK).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {OWN}/{_MARK} is damaged: {error}. Name another folder") from error
    if not isinstance(said, dict):
        raise InputError(f"{path}: {OWN}/{_MARK} is damaged. Name another folder")
    return said


def set_mark(folder: Folder, mark: Mapping[str, Any]) -> None:
    folder.mark = mark
    folder.keep(_MARK, json.dumps(mark).encode())


def where(place: str) -> str:
    """A store's place, as it is told from others: a path together with its host."""
    return place if "://" in place else f"{socket.gethostname()}:{Path(place).resolve()}"


def remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()

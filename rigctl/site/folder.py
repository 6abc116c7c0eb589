"""Writes the folder of a site: one publisher at a time, and at any time complete pages for readers.

Files are written under `.rigctl-site/stage` and renamed into place. New files come first, because no page links to them
yet; replaced files follow, the front page last. So every page that a reader can reach links to existing pages. A
publish that ends early, because of a full disk or a signal, leaves the old site unchanged.

A folder of pages that is a symbolic link is refused at the start. Only regular files are read.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from rigctl.base.errors import InputError
from rigctl.base.files import read_regular

INDEX: Final = "index.html"
FEED: Final = "feed.xml"
_RUNS: Final = "runs"
_SCENARIOS: Final = "scenarios"
_UNFIT: Final = re.compile(r"[^a-z0-9._-]+")
_MOST: Final = 48


@dataclass(frozen=True, slots=True, order=True)
class ScenarioOnRig:
    """Names of a scenario and a rig, as stored with runs and nights; a site has a page for each such pair."""

    name: str
    rig: str

    def __str__(self) -> str:
        return f"{self.name} on {self.rig}"

    @property
    def page(self) -> str:
        return f"{_SCENARIOS}/{file_name_part(self.name)}@{file_name_part(self.rig)}.html"


def file_name_part(text: str) -> str:
    """Return `text` as a safe part of a file name. Different texts give different names, even if case is ignored.

    >>> file_name_part("gigablox"), file_name_part("../Lab")
    ('gigablox', 'lab-c29d61')
    """
    safe = _UNFIT.sub("-", text.lower()).strip("-.")[:_MOST]
    return safe if safe and safe == text else f"{safe or 'name'}-{sha256(text.encode()).hexdigest()[:6]}"


def page_of_run(run: str) -> str:
    return f"{_RUNS}/{file_name_part(run)}.html"


def page_link(page: str, target: str) -> str:
    """Return the relative link from one page to another; both are paths in the site.

    >>> page_link("runs/a.html", "scenarios/x@y.html")
    '../scenarios/x%40y.html'
    """
    path, mark, part = target.partition("#")
    return f"{'../' * page.count('/')}{quote(path)}{mark}{part}"


OWN: Final = ".rigctl-site"
_MARK: Final = "site.json"
_FOLDERS: Final = (_RUNS, _SCENARIOS)
_NOT_LOOKED_AT: Final = frozenset({"lost+found", ".DS_Store", "Thumbs.db", "desktop.ini"})
_WAIT_S: Final = 120.0
_MOST_BYTES: Final = 256 * 1024**2
_ORDER: Final = (*_FOLDERS, FEED, INDEX)
"""Order in which replaced files are renamed: each folder or page links to earlier ones only."""


@dataclass(frozen=True, slots=True)
class FeedIdentity:
    """Id of a site's Atom feed, which never changes, and title of the site."""

    site: UUID
    title: str


_MARKS: Final = TypeAdapter(FeedIdentity)


class Folder:
    """A folder with the site of a store, or without a site yet (`mark` is None). Made by `open_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = path / OWN
        self._stage = self._own / "stage"
        self._staged: set[str] = set()
        content = self.kept(_MARK)
        try:
            self.mark = None if content is None else _MARKS.validate_json(content)
        except ValidationError as error:
            raise InputError(f"{path}: {OWN}/{_MARK} is damaged. Name another folder") from error

    def set_mark(self, mark: FeedIdentity) -> None:
        self.mark = mark
        self.keep(_MARK, _MARKS.dump_json(mark))

    def add(self, page: str, text: str) -> None:
        """Write a page to the stage, from which `commit` moves it into place, unless the old page is equal."""
        content = text.encode("utf-8", "replace")
        if self.page(page) != content:
            with _name_folder_in_errors(self.path):
                _write(self._stage / page, content)
            self._staged.add(page)

    def keep(self, name: str, content: bytes) -> None:
        """Write a file in `.rigctl-site` at once, without `commit`."""
        with _name_folder_in_errors(self.path):
            _write(self._stage / name, content)
            (self._stage / name).replace(self._own / name)

    def kept(self, name: str) -> bytes | None:
        """Return the content of a file in `.rigctl-site`; None if it is missing or no regular file."""
        return self.page(f"{OWN}/{name}")

    def page(self, page: str) -> bytes | None:
        """Return the published content of a page; None if it is missing or no regular file."""
        with contextlib.suppress(OSError):
            return read_regular(self.path / page, _MOST_BYTES)
        return None

    def has(self, page: str) -> bool:
        return (self.path / page).is_file() and not (self.path / page).is_symlink()

    def commit(self) -> list[str]:
        """Move all staged files into place; return their paths."""
        with _name_folder_in_errors(self.path):
            for page in sorted(self._staged, key=lambda page: (self.has(page), _ORDER.index(page.partition("/")[0]))):
                (self.path / page).parent.mkdir(exist_ok=True)
                (self._stage / page).replace(self.path / page)
        return sorted(self._staged)

    def stage(self) -> None:
        with _name_folder_in_errors(self.path):
            self.discard()
            for folder in (self._stage, *(self._stage / name for name in _FOLDERS)):
                folder.mkdir(0o700)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._stage.unlink()  # the stage may be a symbolic link, which rmtree refuses
        shutil.rmtree(self._stage, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file and sync it, so that the file survives a power cut once it is renamed."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _name_folder_in_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` in the block into an `InputError` that names the folder; yield nothing."""
    try:
        yield
    except OSError as error:
        advice = f"cannot be written: {error.strerror}. Name another folder"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            advice = f"{error.strerror}: the site is unchanged. Make room, or name another folder"
        raise InputError(f"{path}: {advice}") from error


@contextmanager
def open_folder(path: Path, wait_s: float = _WAIT_S) -> Iterator[Folder]:
    """Yield the folder at `path`, created if missing, under a lock; wait up to `wait_s` for another publisher.

    Raise `InputError`, and change nothing, if the path is no folder, holds other files, stays locked or cannot be
    written.
    """
    check_folder(path)
    with ExitStack() as stack:
        with _name_folder_in_errors(path):
            own = path / OWN
            path.mkdir(parents=True, exist_ok=True)
            own.mkdir(0o700, exist_ok=True)
            _refuse_foreign(path, own.lstat())
            with contextlib.suppress(OSError):  # some file systems have no modes
                own.chmod(0o700)  # otherwise another user could open the lock file and hold the lock
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            lock = os.open(own / "lock", flags, 0o600)
            stack.callback(os.close, lock)
            _wait(path, lock, wait_s)
        folder = Folder(path)
        stack.callback(folder.discard)
        folder.stage()
        yield folder


def check_folder(path: Path) -> None:
    """Raise `InputError` for a path that cannot hold a site; change nothing."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file. Name a folder for the site")
    try:
        names = {entry.name for entry in path.iterdir()} - _NOT_LOOKED_AT if path.exists() else set()
        if OWN in names:
            _refuse_foreign(path, (path / OWN).lstat())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}. Name another folder") from error
    if names - {OWN} and not (path / OWN / _MARK).is_file():
        raise InputError(
            f"{path}: holds files that belong to no site of rigctl, as {min(names - {OWN})}; nothing was touched. "
            "Name an empty or a new folder"
        )
    for name in names & {*_FOLDERS}:
        if (path / name).is_symlink():
            raise InputError(f"{path}: {name} is a symbolic link, which rigctl does not follow. Remove the link")


def _refuse_foreign(path: Path, own: os.stat_result) -> None:
    if not stat.S_ISDIR(own.st_mode):
        raise InputError(f"{path}: {OWN} is no folder. Remove it, or name another folder")
    if own.st_uid != os.geteuid():
        raise InputError(
            f"{path}: {OWN} belongs to another user (uid {own.st_uid}). Publish as that user, or name another folder"
        )
    if own.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            f"{path}: other users may write to {OWN} (mode {stat.S_IMODE(own.st_mode):o}). Name a new folder"
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
        else:
            return

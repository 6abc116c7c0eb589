"""Writes the folder of a site: one publisher at a time, and at any time complete pages for readers.

Files are written under `.rigctl-site/stage` and renamed into place. New files come first, because no page links to them
yet; replaced files follow, the front page last. So every page that a reader can reach links to existing pages. A
publish that ends early, because of a full disk or a signal, leaves the old site unchanged.

Other users may be able to write to the folder. So each folder is opened once, and everything is done by its descriptor:
whatever they put in the place of `runs` afterwards, a file comes into the folder that was opened. A folder of pages
that is a symbolic link is refused. Only regular files are read.
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
_STAGE: Final = "stage"
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
    """A folder with the site of a store, or without a site yet (`mark` is None). Made by `open_folder`.

    `site` and `own` are the descriptors of the folder and of its `.rigctl-site`; `held` closes those of its folders of
    pages.
    """

    def __init__(self, path: Path, site: int, own: int, held: ExitStack) -> None:
        self.path = path
        self._site, self._own, self._held = site, own, held
        self._of_pages: dict[str, int] = {}
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
                _write(f"{_STAGE}/{page}", content, self._own)
            self._staged.add(page)

    def keep(self, name: str, content: bytes) -> None:
        """Write a file in `.rigctl-site` at once, without `commit`."""
        with _name_folder_in_errors(self.path):
            _write(f"{_STAGE}/{name}", content, self._own)
            os.replace(f"{_STAGE}/{name}", name, src_dir_fd=self._own, dst_dir_fd=self._own)

    def kept(self, name: str) -> bytes | None:
        """Return the content of a file in `.rigctl-site`; None if it is missing or no regular file."""
        return _read(name, self._own)

    def page(self, page: str) -> bytes | None:
        """Return the published content of a page; None if it is missing or no regular file."""
        folder, name = self._place(page)
        return None if folder is None else _read(name, folder)

    def has(self, page: str) -> bool:
        folder, name = self._place(page)
        return folder is not None and _is_regular(name, folder)

    def commit(self) -> list[str]:
        """Move all staged files into place; return their paths."""
        with _name_folder_in_errors(self.path):
            for page in sorted(self._staged, key=lambda page: (self.has(page), _ORDER.index(page.partition("/")[0]))):
                folder, name = self._made_place(page)
                os.replace(f"{_STAGE}/{page}", name, src_dir_fd=self._own, dst_dir_fd=folder)
        return sorted(self._staged)

    def stage(self) -> None:
        with _name_folder_in_errors(self.path):
            self.discard()
            for name in (_STAGE, *(f"{_STAGE}/{name}" for name in _FOLDERS)):
                os.mkdir(name, 0o700, dir_fd=self._own)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(_STAGE, dir_fd=self._own)  # the stage may be a symbolic link, which rmtree refuses
        shutil.rmtree(_STAGE, ignore_errors=True, dir_fd=self._own)

    def _place(self, page: str) -> tuple[int | None, str]:
        """Return the descriptor of a page's folder, or None if it is missing, and the name of the page in it."""
        folder, _, name = page.rpartition("/")
        if not folder:
            return self._site, name
        if folder not in self._of_pages:
            with contextlib.suppress(FileNotFoundError):
                self._of_pages[folder] = _hold_folder_of_pages(self._held, self.path, folder, self._site)
        return self._of_pages.get(folder), name

    def _made_place(self, page: str) -> tuple[int, str]:
        folder, name = self._place(page)
        if folder is None:
            os.mkdir(page.rpartition("/")[0], dir_fd=self._site)
            folder, name = self._place(page)
        if folder is None:  # for `os.replace`, None is the working folder
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return folder, name


def _hold(held: ExitStack, path: str | Path, flags: int, within: int | None = None) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=within)
    held.callback(os.close, descriptor)
    return descriptor


def _hold_folder_of_pages(held: ExitStack, path: Path, name: str, site: int) -> int:
    try:
        return _hold(held, name, os.O_DIRECTORY | os.O_NOFOLLOW, site)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise InputError(
                f"{path}: {name} is a symbolic link or a file, which rigctl does not follow. Remove it"
            ) from error
        raise


def _is_regular(name: str, folder: int) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _read(name: str, folder: int) -> bytes | None:
    with contextlib.suppress(OSError):
        return read_regular(name, _MOST_BYTES, folder)
    return None


def _write(name: str, content: bytes, folder: int) -> None:
    """Write a file and sync it, so that the file survives a power cut once it is renamed."""
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
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
    with ExitStack() as held:
        with _name_folder_in_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            site = _hold(held, path, os.O_DIRECTORY)
            _refuse_other_content(path, site)
            with contextlib.suppress(FileExistsError):
                os.mkdir(OWN, 0o700, dir_fd=site)
            own = _hold_own(held, path, site)
            with contextlib.suppress(OSError):  # some file systems have no modes
                os.fchmod(own, 0o700)  # otherwise another user could open the lock file and hold the lock
            _wait(path, _hold(held, "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, own), wait_s)
        folder = Folder(path, site, own, held)
        held.callback(folder.discard)
        folder.stage()
        yield folder


def check_folder(path: Path) -> None:
    """Raise `InputError` for a path that cannot hold a site; change nothing."""
    with ExitStack() as held:
        try:
            _refuse_other_content(path, _hold(held, path, os.O_DIRECTORY))
        except FileNotFoundError:
            return
        except NotADirectoryError as error:
            raise InputError(f"{path}: is a file. Name a folder for the site") from error
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}. Name another folder") from error


def _refuse_other_content(path: Path, site: int) -> None:
    with ExitStack() as held:
        names = set(os.listdir(site)) - _NOT_LOOKED_AT
        is_site = OWN in names and _is_regular(_MARK, _hold_own(held, path, site))
        if names - {OWN} and not is_site:
            raise InputError(
                f"{path}: holds files that belong to no site of rigctl, as {min(names - {OWN})}; nothing was touched. "
                "Name an empty or a new folder"
            )
        for name in names & {*_FOLDERS}:
            _hold_folder_of_pages(held, path, name, site)


def _hold_own(held: ExitStack, path: Path, site: int) -> int:
    """Return the descriptor of `.rigctl-site`. Raise `InputError` if another user can have written to it."""
    try:
        own = _hold(held, OWN, os.O_DIRECTORY | os.O_NOFOLLOW, site)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise InputError(f"{path}: {OWN} is no folder. Remove it, or name another folder") from error
        raise
    _refuse_foreign(path, os.fstat(own))
    return own


def _refuse_foreign(path: Path, own: os.stat_result) -> None:
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

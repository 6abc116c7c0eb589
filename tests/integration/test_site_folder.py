"""A site's folder that other users may write to: a real process of another user swaps its folders for links.

The swap happens right before a call into the file system: before the first one, then before the second, until no call
is left. So each moment of a publish is tried once, and the verdict depends on no clock.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from processes import running

from rigctl.base.errors import InputError
from rigctl.site.folder import FEED, INDEX, OWN, FeedIdentity, open_folder

NOBODY = 65534
SWAPPER = f"""
import os, sys
os.chdir(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
name, target = sys.argv[2:]
for _ in sys.stdin:
    if os.path.islink(name):
        os.unlink(name)
        os.rename("kept", name)
    else:
        os.rename(name, "kept")
        os.symlink(target, name)
    print("done", flush=True)
"""
CALLS = frozenset({"open", "os.chmod", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir"})
MOST = 500


class Attacker:
    """A process of another user, which swaps a folder and a link right before a certain call."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._left: int | None = None  # calls until the swap; None: it happened, or is not wanted

    def swap(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"done\n"

    def heard(self, event: str, _given: tuple[object, ...]) -> None:
        if self._left is not None and event in CALLS:
            self._left -= 1
            if self._left < 0:
                self._left = None
                self.swap()

    @contextlib.contextmanager
    def before(self, call: int) -> Iterator[list[bool]]:
        """Swap before this call of the block, and swap back after the block. Yield whether the swap happened."""
        swapped = [True]
        self._left = call
        try:
            yield swapped
        finally:
            swapped[0], self._left = self._left is None, None
            if swapped[0]:
                self.swap()


LISTENING: list[Attacker] = []  # an audit hook stays until the process ends


def _heard(event: str, given: tuple[object, ...]) -> None:
    for attacker in LISTENING:
        attacker.heard(event, given)


@pytest.fixture(scope="module", autouse=True)
def _hook() -> None:
    sys.addaudithook(_heard)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of the publishing user, with files named as those of a site."""
    folder = tmp_path / "precious"
    folder.mkdir(mode=0o750)
    for name in ("a.html", "site.json", "lock", "manifest.json"):
        (folder / name).write_text("precious")
    (folder / "stage").mkdir()
    (folder / "stage" / "kept").write_text("precious")
    return folder


def content(folder: Path) -> dict[str, tuple[int, str | None]]:
    """Return mode and content of a folder and of all that is in it."""
    found = (folder, *folder.rglob("*"))
    return {str(path): (path.stat().st_mode, path.read_text() if path.is_file() else None) for path in found}


def write(site: Path, text: str) -> None:
    with open_folder(site) as folder:
        if folder.mark is None:
            folder.set_mark(FeedIdentity(UUID(int=1), "t"))
        for page in ("runs/a.html", "scenarios/a.html", FEED, INDEX):
            folder.add(page, text)
        folder.commit()
        folder.keep("manifest.json", text.encode())


@pytest.mark.parametrize("name", ["runs", "scenarios", OWN])
def test_whenever_another_user_swaps_a_folder_for_a_link_nothing_is_written_through_it(
    tmp_path: Path, precious: Path, name: str
) -> None:
    site = tmp_path / "site"
    write(site, "first")
    site.chmod(0o777)
    before, outcomes = content(precious), set()
    command = [sys.executable, "-c", SWAPPER, str(site), name, str(precious)]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        attacker = Attacker(process)
        LISTENING.append(attacker)
        try:
            for call in range(MOST):
                with attacker.before(call) as swapped:
                    try:
                        write(site, f"page {call}")
                        outcomes.add("written")
                    except InputError as error:
                        outcomes.add("refused")
                        assert str(site) in str(error)
                assert content(precious) == before, f"swapped before call {call}"
                if not swapped[0]:
                    break
        finally:
            LISTENING.remove(attacker)
    assert 20 < call < MOST - 1
    assert outcomes == {"written", "refused"}
    assert {path.read_text() for path in site.glob("*/*.html")} == {f"page {call}"}

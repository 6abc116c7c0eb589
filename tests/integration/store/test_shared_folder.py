"""A store on a real FUSE mount: rollback journal, writers that take turns, and a file in WAL mode that is converted."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import builders
import pytest
from processes import eventually, running

from rigctl.base.errors import InputError
from rigctl.store import open_store
from rigctl.store.shared_folder import mount_of

WRITERS, RUNS = 3, 5
WRITE = f"""
import sys
sys.path[:0] = {sys.path!r}
import builders
from rigctl.store import open_store
with open_store(sys.argv[1]) as store:
    for number in range({RUNS}):
        store.begin(builders.plan(), {{}}, {{}}, builders.STARTED_AT + number)
"""


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A FUSE mount of another folder."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "mount").mkdir()
    words = ["bindfs", "-f", "--no-allow-other", str(tmp_path / "disk"), str(tmp_path / "mount")]
    with running(words):
        try:
            eventually(lambda: (tmp_path / "mount").is_mount(), "bindfs has not mounted its folder")
            yield tmp_path / "mount"
        finally:
            subprocess.run(["fusermount3", "-u", str(tmp_path / "mount")], check=True)


def mode_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as plain:
        return str(plain.execute("PRAGMA journal_mode").fetchone()[0])


def test_a_fuse_mount_is_shared_and_its_store_has_a_rollback_journal(mounted: Path) -> None:
    path = mounted / "home" / "r.db"
    with open_store(str(path)) as store:
        run = store.begin(builders.plan(), {}, {}, builders.STARTED_AT)
        with open_store(str(path), create=False) as reader:
            assert reader.run_ids() == [run]
    assert mount_of(path).kind.startswith("fuse")
    assert mode_of(path) == "delete"
    assert [each.name for each in path.parent.iterdir()] == ["r.db"]


def test_writers_on_a_fuse_mount_take_turns(mounted: Path) -> None:
    path = mounted / "r.db"
    with ExitStack() as stack:
        writers = [stack.enter_context(running([sys.executable, "-c", WRITE, str(path)])) for _ in range(WRITERS)]
        assert [writer.wait(100) for writer in writers] == [0] * WRITERS
    with open_store(str(path), create=False) as store:
        assert len(store.run_ids()) == WRITERS * RUNS


@pytest.mark.parametrize("create", [True, False])
def test_a_file_made_on_a_local_disk_is_converted_on_the_mount(mounted: Path, tmp_path: Path, create: bool) -> None:
    on_disk = tmp_path / "disk" / "r.db"
    with open_store(str(on_disk)) as store:
        run = store.begin(builders.plan(), {}, {}, builders.STARTED_AT)
    assert mode_of(on_disk) == "wal"
    with open_store(str(mounted / "r.db"), create=create) as store:
        assert store.run_ids() == [run]
    assert mode_of(on_disk) == "delete"
    with open_store(str(on_disk)) as store:  # as the server of the folder, whose disk is local
        assert store.run_ids() == [run]
    assert mode_of(on_disk) == "delete"


def test_a_database_of_another_program_on_the_mount_is_refused(mounted: Path) -> None:
    with closing(sqlite3.connect(mounted / "r.db")) as plain:
        plain.execute("CREATE TABLE photos (name)")
    with pytest.raises(InputError, match="another program"):
        open_store(str(mounted / "r.db"))

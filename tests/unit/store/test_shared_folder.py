"""Which mounts count as shared, and what a store in a shared folder is made to. Mounts as the kernel and vendors show.

A real FUSE mount is in `tests/integration/store`, a real NFS mount in `tests/machines`.
"""

import errno
import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import builders
import pytest
from cases import from_file

from rigctl.base.errors import InputError
from rigctl.records import RunStatus
from rigctl.store import open as opening
from rigctl.store import open_store
from rigctl.store.errors import explain_errors
from rigctl.store.run_files import take
from rigctl.store.shared_folder import Mount, mount_in, mount_of

NFS = Mount("nfs4", frozenset({"rw", "vers=4.2", "local_lock=none"}))


@from_file
def test_a_mount_is_of_one_host_only_if_its_type_is_known_for_that(line: str, is_shared: bool) -> None:
    text = f"22 1 8:2 / / rw - ext4 /dev/sda2 rw\n{line}\n137 22 0:9 / /x rw - tmpfs none rw\n"
    assert mount_in(text, line.split(maxsplit=1)[0]).is_shared == is_shared


def test_a_mount_that_the_kernel_does_not_list_counts_as_shared(tmp_path: Path) -> None:
    assert mount_in("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n", "2").is_shared
    assert mount_of(tmp_path / "none" / "r.db").is_shared


def test_the_mount_of_a_file_is_that_of_the_folder_to_which_its_link_leads(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to("/dev/shm/none.db")
    assert mount_of(tmp_path / "link.db") == mount_of(Path("/dev/shm/none.db"))
    assert mount_of(Path("/dev/shm/none.db")).kind == "tmpfs"
    assert mount_of(Path("/proc/none.db")).kind == "proc"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.db"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "mount_of", lambda _: NFS)


def begun(path: Path) -> str:
    with open_store(str(path)) as store:
        return store.begin(builders.plan(), {}, {}, builders.STARTED_AT)


def mode_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as plain:
        return str(plain.execute("PRAGMA journal_mode").fetchone()[0])


@pytest.mark.usefixtures("shared")
def test_a_new_store_in_a_shared_folder_has_a_rollback_journal(path: Path) -> None:
    run = begun(path)
    assert mode_of(path) == "delete"
    with open_store(str(path), create=False) as store:
        assert store.run_ids() == [run]
    assert [each.name for each in path.parent.iterdir()] == ["r.db"]


@pytest.mark.parametrize("create", [True, False])
def test_a_store_in_wal_mode_is_converted_whole_and_stays_so(
    path: Path, create: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(path)
    assert mode_of(path) == "wal"
    # As a killed rigctl leaves it: the last run is in the log only.
    lost = sqlite3.connect(path, isolation_level=None)
    lost.execute("INSERT INTO tags VALUES (?, 'kept', 'yes')", [run])
    for name in ("r.db", "r.db-wal"):
        (path.parent / f"copy-{name}").write_bytes((path.parent / name).read_bytes())
    lost.close()
    copy = path.parent / "copy-r.db"
    with monkeypatch.context() as patched:
        patched.setattr(opening, "mount_of", lambda _: NFS)
        with open_store(str(copy), create=create) as store:
            assert store.run().tags == {"kept": "yes"}
        assert mode_of(copy) == "delete"
    begun(copy)
    assert mode_of(copy) == "delete"


@pytest.mark.parametrize("create", [True, False])
def test_a_store_in_wal_mode_that_another_program_has_open_is_refused(
    path: Path, create: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(path)
    monkeypatch.setattr(opening, "mount_of", lambda _: NFS)
    monkeypatch.setattr("rigctl.store.shared_folder.WAIT_MS", 10)
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT * FROM runs").fetchall()
        with pytest.raises(InputError, match=r"nfs4 in WAL mode.*/var/tmp/rigctl\.db.*PostgreSQL") as refused:
            open_store(str(path), create=create)
    assert "\n" not in str(refused.value)
    with open_store(str(path), create=create) as store:
        assert len(store.run_ids()) == 1


@pytest.mark.usefixtures("shared")
def test_a_store_that_is_being_written_is_not_called_one_in_wal_mode(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(path)
    monkeypatch.setattr("rigctl.store.shared_folder.WAIT_MS", 10)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="is locked by another program"):
            open_store(str(path))


def test_a_file_of_somebody_else_in_wal_mode_is_imported_from_a_shared_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(path)
    with open_store(str(path)) as store:
        store.finish(run, RunStatus.COMPLETE, builders.STARTED_AT + 9)
    with open_store("sqlite://") as own:
        monkeypatch.setattr(opening, "mount_of", lambda _: NFS)
        assert [each.new for each in take(own, [path])] == [True]
    assert mode_of(path) == "delete"


@from_file
def test_locks_that_are_refused_or_hold_on_one_host_refuse_a_run(
    path: Path, kind: str, options: list[str], error: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        if error is not None:
            number = getattr(errno, error)
            raise OSError(number, os.strerror(number))

    run = begun(path)
    monkeypatch.setattr(opening, "mount_of", lambda _: Mount(kind, frozenset(options)))
    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(InputError, match=rf"^store {path} is on {kind}{said}") as refused:
        open_store(str(path))
    for word in ("/var/tmp/rigctl.db", "PostgreSQL", "--store"):
        assert word in str(refused.value)
    assert "\n" not in str(refused.value)
    with open_store(str(path), create=False) as store:
        assert store.run_ids() == [run]


@pytest.mark.parametrize("name", ["SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK", "SQLITE_IOERR_RDLOCK", "SQLITE_IOERR_SHMMAP"])
def test_an_error_of_sqlite_about_locks_names_a_local_path(name: str) -> None:
    error = sqlite3.OperationalError("locking protocol" if name == "SQLITE_PROTOCOL" else "disk I/O error")
    error.sqlite_errorname = name
    with pytest.raises(InputError, match=r"locks fail.*/var/tmp/rigctl\.db.*PostgreSQL"):
        with explain_errors("/home/anna/r.db"):
            raise error


@pytest.mark.usefixtures("shared")
def test_who_can_only_read_a_store_in_wal_mode_is_refused_and_reads_any_other(path: Path) -> None:
    run = begun(path)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    for folder in path.parent.parents:
        if os.geteuid() == 0 and folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(0o755)
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.seteuid(65534)
        with open_store(str(path), create=False) as store:
            assert store.run_ids() == [run]
        os.seteuid(os.getuid())
        path.parent.chmod(0o755)
        path.chmod(0o644)
        with closing(sqlite3.connect(path)) as writer:
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("INSERT INTO tags VALUES (?, 'more', 'yes')", [run])
            writer.commit()
            path.parent.chmod(0o555)
            path.chmod(0o444)
            if is_root:
                os.seteuid(65534)
            with pytest.raises(InputError, match=r"nfs4 in WAL mode.*its owner can"):
                open_store(str(path), create=False)
    finally:
        os.seteuid(os.getuid())
        path.parent.chmod(0o755)


@pytest.mark.parametrize(
    "url", ["sqlite:///file:{}?uri=true", "sqlite:///file:{}?uri=true&vfs=unix-dotfile", "sqlite:///{}"]
)
def test_a_store_named_by_a_uri_of_sqlite_is_made_where_it_says(path: Path, url: str) -> None:
    with open_store(url.format(path)) as store:
        store.begin(builders.plan(), {}, {}, builders.STARTED_AT)
    assert path.is_file()
    assert not Path("file:").exists()

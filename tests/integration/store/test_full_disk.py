"""A store on a disk that is full: the message says so, and how far an import came."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import mounted
from sites import weeks

from rigctl.base.errors import InputError, RigError
from rigctl.store import open_store

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small", "size=400k") as made:
        yield made


def test_an_import_says_how_many_runs_are_stored_and_goes_on(tmp_path: Path, disk: Path) -> None:
    with open_store(str(tmp_path / "all.db")) as store:
        weeks(store, range(20))
        names = store.run_ids()
        (tmp_path / "f.rigctl").write_bytes(store.transfer.packed(names))
    with open_store(str(disk / "store.db")) as store:
        with pytest.raises(RigError, match="disk is full") as raised:
            store.transfer.take([tmp_path / "f.rigctl"])
        counts = re.search(r"(\d+) of (\d+) runs are in the store; the same call goes on", str(raised.value))
        assert counts is not None
        assert 0 < int(counts[1]) < int(counts[2]) == len(names)
        assert len(store.run_ids()) == int(counts[1])
        os.system(f"mount -o remount,size=8m {disk}")
        store.transfer.take([tmp_path / "f.rigctl"])
        assert store.run_ids() == names


def test_tags_and_removals_say_that_the_disk_is_full(disk: Path) -> None:
    with open_store(str(disk / "store.db")) as store:
        (run,) = weeks(store, [0])
    with (disk / "filling").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(1024))
    for change in ("tag", "remove"):
        with pytest.raises((RigError, InputError), match="the disk is full"):
            with open_store(str(disk / "store.db"), create=False) as store:
                store.history.tag(run, {"a": "b" * 5000}) if change == "tag" else store.remove(run)
    (disk / "filling").unlink()
    with open_store(str(disk / "store.db"), create=False) as store:
        assert store.run_ids() == [run]

"""A site's folder into which others wrote: nothing outside it is changed, nothing waits, there is one message."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from many_nights import FIRST_S
from sites import weeks

from rigctl.base.errors import InputError
from rigctl.site import folder as folders
from rigctl.site.folder import OWN, page_of_run
from rigctl.site.publish import publish
from rigctl.store import Store, open_store

NOW = FIRST_S + 30 * 86400


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights and their site; each test has a copy."""
    folder = tmp_path_factory.mktemp("made")
    with open_store(str(folder / "store.db")) as opened:
        weeks(opened, range(3))
        publish(opened, folder / "site", NOW)
    return folder


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    with open_store(str(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def site(store: Store, tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder beside the site, with a file in it."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim/file.html").write_text("precious")
    return tmp_path / "victim"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["{}/file", "../victim/file", "../../victim/file", "/etc/passwd"])
def test_a_page_that_the_manifest_names_lies_in_the_folder(store: Store, site: Path, precious: Path, name: str) -> None:
    run = name.format(precious)
    manifest = json.loads((site / OWN / "manifest.json").read_bytes())
    manifest[run] = manifest[store.run_ids()[0]] | {"scenario": run, "rig": run}
    (site / OWN / "manifest.json").write_text(json.dumps(manifest))
    assert publish(store, site, NOW).removed == (run,)
    assert files(precious) == {"file.html": b"precious"}
    assert (site / page_of_run(run)).is_file()


@pytest.mark.parametrize("name", ["runs", "scenarios"])
def test_pages_are_not_written_through_a_link(store: Store, site: Path, precious: Path, name: str) -> None:
    (site / name).rename(site.parent / "away")
    (site / name).symlink_to(precious)
    with pytest.raises(InputError, match=f"{name} is a symbolic link"):
        publish(store, site, NOW)
    assert files(precious) == {"file.html": b"precious"}


def test_a_link_that_is_made_while_pages_are_made_is_not_followed(store: Store, site: Path, precious: Path) -> None:
    weeks(store, [5])
    with folders.opened(site) as folder:
        folder.add("runs/a.html", "x")
        (site / "runs").rename(site.parent / "away")
        (site / "runs").symlink_to(precious)
        assert folder.page("runs/file.html") is None
        with pytest.raises(InputError, match="cannot be written"):
            folder.commit()
    assert files(precious) == {"file.html": b"precious"}


@pytest.mark.parametrize("name", ["stage", "manifest.json", "lock"])
def test_own_files_are_not_written_through_a_link(store: Store, site: Path, precious: Path, name: str) -> None:
    (site / OWN / name).unlink(missing_ok=True)
    (site / OWN / name).symlink_to(precious if name == "stage" else precious / "file.html")
    weeks(store, [5])
    if name == "lock":
        with pytest.raises(InputError, match="cannot be written"):
            publish(store, site, NOW)
    else:
        publish(store, site, NOW)
    assert files(precious) == {"file.html": b"precious"}


@pytest.mark.parametrize("name", [f"{OWN}/manifest.json", f"{OWN}/site.json", "runs"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(store: Store, site: Path, name: str) -> None:
    weeks(store, [5])
    for file in (site / name,) if name != "runs" else (site / "runs").iterdir():
        file.unlink()
        os.mkfifo(file)
    if name.endswith("site.json"):
        with pytest.raises(InputError, match="holds files that are of no site"):
            publish(store, site, NOW)
        return
    publish(store, site, NOW)
    assert all(path.is_file() for path in (site / "runs").iterdir())


@pytest.mark.parametrize("said", [b'{"site": "x", "title": "t"}', b"[" * 200_000, b'{"site": 1}', b"[]", b"\xff"])
def test_a_damaged_mark_is_told_in_one_message(store: Store, site: Path, said: bytes) -> None:
    (site / OWN / "site.json").write_bytes(said)
    with pytest.raises(InputError, match=r"site\.json is damaged"):
        publish(store, site, NOW)


def test_own_files_that_others_may_write_are_refused(store: Store, site: Path) -> None:
    (site / OWN).chmod(0o775)
    with pytest.raises(InputError, match="other users may write"):
        publish(store, site, NOW)


def test_own_files_of_another_user_are_refused(store: Store, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(InputError, match="belongs to another user"):
        publish(store, site, NOW)


def test_nobody_else_can_open_the_lock(store: Store, site: Path) -> None:
    (site / OWN).chmod(0o755)  # as an earlier rigctl made it
    publish(store, site, NOW)
    assert (site / OWN).stat().st_mode & 0o777 == 0o700
    assert (site / "index.html").stat().st_mode & 0o444

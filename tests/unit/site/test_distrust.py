"""A site's folder into which others wrote: nothing outside it is changed, nothing waits, there is one message."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites import Site, weeks

from rigctl.base.errors import InputError
from rigctl.site.folder import OWN, page_of_run


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A folder beside the site, with a file in it. Fail a test that changes them."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file.html").write_text("precious")
    yield folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"file.html": "precious"}


@pytest.mark.parametrize("name", ["{}/file", "../victim/file", "../../victim/file", "/etc/passwd"])
def test_a_page_that_the_manifest_names_lies_in_the_folder(published: Site, precious: Path, name: str) -> None:
    run = name.format(precious)
    manifest = json.loads((published.path / OWN / "manifest.json").read_bytes())
    manifest[run] = manifest[published.store.run_ids()[0]] | {"scenario": run, "rig": run}
    (published.path / OWN / "manifest.json").write_text(json.dumps(manifest))
    assert published.publish().removed == (run,)
    assert (published.path / page_of_run(run)).is_file()


@pytest.mark.parametrize("name", ["runs", "scenarios"])
def test_pages_are_not_written_through_a_link(published: Site, precious: Path, name: str) -> None:
    (published.path / name).rename(published.path.parent / "away")
    (published.path / name).symlink_to(precious)
    with pytest.raises(InputError, match=f"{name} is a symbolic link"):
        published.publish()


@pytest.mark.parametrize("name", ["stage", "manifest.json", "lock"])
def test_own_files_are_not_written_through_a_link(published: Site, precious: Path, name: str) -> None:
    (published.path / OWN / name).unlink(missing_ok=True)
    (published.path / OWN / name).symlink_to(precious if name == "stage" else precious / "file.html")
    weeks(published.store, [5])
    if name == "lock":
        with pytest.raises(InputError, match="cannot be written"):
            published.publish()
    else:
        published.publish()


@pytest.mark.parametrize("name", [f"{OWN}/manifest.json", f"{OWN}/site.json", "runs"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(published: Site, name: str) -> None:
    weeks(published.store, [5])
    for file in (published.path / name,) if name != "runs" else (published.path / "runs").iterdir():
        file.unlink()
        os.mkfifo(file)
    if name.endswith("site.json"):
        with pytest.raises(InputError, match="holds files that belong to no site"):
            published.publish()
        return
    published.publish()
    assert all(path.is_file() for path in (published.path / "runs").iterdir())


@pytest.mark.parametrize("said", [b'{"site": "x", "title": "t"}', b"[" * 200_000, b'{"site": 1}', b"[]", b"\xff"])
def test_a_damaged_mark_is_told_in_one_message(published: Site, said: bytes) -> None:
    (published.path / OWN / "site.json").write_bytes(said)
    with pytest.raises(InputError, match=r"site\.json is damaged"):
        published.publish()


def test_own_files_that_others_may_write_are_refused(published: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    own = published.path / OWN
    own.chmod(0o755)  # as an earlier rigctl made it
    published.publish()
    assert own.stat().st_mode & 0o777 == 0o700, "nobody else can open the lock"
    assert (published.path / "index.html").stat().st_mode & 0o444
    own.chmod(0o775)
    with pytest.raises(InputError, match="other users may write"):
        published.publish()
    own.chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(InputError, match="belongs to another user"):
        published.publish()

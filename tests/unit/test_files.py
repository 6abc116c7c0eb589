"""Files that a user asked for: whole, and nothing beside them."""

import fcntl
from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.base.files import write_whole


def test_parts_of_writers_that_were_killed_are_removed_and_nothing_else(tmp_path: Path) -> None:
    killed, foreign, writing = ".page.html.0123abcd.part", ".mine.part", ".page.html.fedc4321.part"
    for name in (killed, foreign, writing):
        (tmp_path / name).touch()
    with (tmp_path / writing).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_whole(tmp_path / "page.html", b"page")
    assert {path.name for path in tmp_path.iterdir()} == {foreign, writing, "page.html"}
    assert (tmp_path / "page.html").read_bytes() == b"page"


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]


def test_a_link_is_followed_and_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_whole(tmp_path / "link.csv", b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == b"new"
    write_whole(Path("/dev/null"), b"gone")
    assert Path("/dev/null").is_char_device()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none/out.csv: cannot be written: No such file"):
        write_whole(tmp_path / "none" / "out.csv", b"")
    with pytest.raises(InputError, match=r"is a folder"):
        write_whole(tmp_path, b"")

"""Files that a user asked for: whole, and nothing beside them."""

import fcntl
from pathlib import Path

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

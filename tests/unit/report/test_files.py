"""Files that a user asked for: whole, and nothing beside them."""

import os
from pathlib import Path

from rigctl.report.printers.files import write_whole


def test_parts_of_writers_that_were_killed_are_removed_and_nothing_else(tmp_path: Path) -> None:
    names = (".old.html.0123abcd.part", ".mine.part", ".page.html.fedc4321.part")
    for name in names:
        (tmp_path / name).touch()
    for name in names[:2]:
        os.utime(tmp_path / name, (0, 0))
    write_whole(tmp_path / "page.html", b"page")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.part", ".page.html.fedc4321.part", "page.html"]

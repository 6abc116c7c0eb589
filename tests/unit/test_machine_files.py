"""The check of the whole suite that no test changes a file of the machine (tests/conftest.py)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from machine_files import PLACES, changes, files_in


def _append(folder: Path) -> None:
    with (folder / "ssh/ssh_known_hosts").open("a") as file:
        file.write("[127.0.0.1]:42527 ssh-ed25519 AAAA\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_append, ["ssh/ssh_known_hosts was changed"]),
        (lambda folder: (folder / "new").write_text("x"), ["new was made"]),
        (lambda folder: shutil.rmtree(folder / "ssh"), ["ssh was removed", "ssh/ssh_known_hosts was removed"]),
        (lambda folder: (folder / "ssh").chmod(0o700), ["ssh was changed"]),
        (lambda folder: (folder / "ssh/ssh_known_hosts").read_text(), []),
    ],
    ids=["appended", "made", "removed", "mode", "read"],
)
def test_each_change_of_a_file_is_told(tmp_path: Path, change: Callable[[Path], object], told: list[str]) -> None:
    (tmp_path / "ssh").mkdir(mode=0o755)
    (tmp_path / "ssh/ssh_known_hosts").write_text("gate ssh-ed25519 AAAA\n")
    before = files_in([tmp_path])
    change(tmp_path)
    assert changes(before, files_in([tmp_path])) == [f"{tmp_path}/{line}" for line in told]


def test_the_suite_watches_where_ssh_and_sudo_look() -> None:
    assert Path("/etc") in PLACES
    assert any(place.name == ".ssh" for place in PLACES)
    assert Path("/etc/passwd") in files_in()

"""The parts of an image: apt's configuration, kernel modules in order, archives for the kernel."""

from pathlib import Path

import pytest

from rigctl.base.errors import RigError
from rigctl.virtual.machines.image import archive, configuration, loadable


def test_apt_keeps_all_that_it_writes_in_its_own_folder_and_knows_one_machine_type() -> None:
    text = configuration(Path("/x"), "arm64")
    places = [line.split('"')[1] for line in text.splitlines() if line.startswith("Dir::")]
    assert all(place.startswith("/x/") or place == "/dev/null" for place in places)
    assert 'APT::Architectures { "arm64"; };' in text


def module(folder: Path, name: str, depends: str) -> None:
    (folder / f"{name}.ko").write_bytes(f"ELF\0license=GPL\0depends={depends}\0name={name}\0".encode())


def test_a_modules_own_words_tell_what_it_needs_and_what_is_built_in_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "modules.builtin").write_text("kernel/lib/crc16.ko\n")
    module(tmp_path / "kernel", "jbd2", "")
    module(tmp_path / "kernel", "ext4", "jbd2,crc16")
    assert list(loadable(tmp_path, ["ext4"])) == ["jbd2", "ext4"]
    with pytest.raises(RigError, match="no module e1000e"):
        loadable(tmp_path, ["e1000e"])


def test_an_archive_holds_files_in_folders_and_each_entry_begins_at_a_multiple_of_four() -> None:
    data = archive({"init": b"#!/bin/sh\n", "a/b/c": b"12345"}, frozenset({"init"}), console=True)
    assert len(data) % 4 == 0
    names, modes, at = [], {}, 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * number : at + 14 + 8 * number], 16) for number in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        if name == "TRAILER!!!":
            break
        names.append(name)
        modes[name] = fields[1]
        at += -(-(110 + fields[11]) // 4) * 4 + -(-fields[6] // 4) * 4
    assert names == ["a", "a/b", "dev", "dev/console", "init", "a/b/c"]
    assert modes["init"] & 0o111
    assert not modes["a/b/c"] & 0o111

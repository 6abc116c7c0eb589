"""What an image is made of: apt's sources and configuration, kernel modules in order, archives for the kernel."""

from pathlib import Path

import pytest

from rigctl.base.errors import RigError
from rigctl.virtual.machines.apt import configuration, debian_sources
from rigctl.virtual.machines.cpio import archive
from rigctl.virtual.machines.modules import in_order, loadable

DEB822 = """\
Types: deb deb-src
# where it was taken from
URIs: http://mirror.lan/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://vendor.lan/repo
Suites: nodistro
Components: main
"""


def test_debians_own_sources_are_taken_and_a_vendors_are_not() -> None:
    (found,) = debian_sources([("debian.sources", DEB822)], "bookworm")
    assert found == (
        "Types: deb\nURIs: http://mirror.lan/debian\nSuites: bookworm bookworm-updates\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def test_sources_in_lines_are_read_with_their_key() -> None:
    text = (
        "deb [arch=amd64 signed-by=/k.gpg] http://mirror.lan/debian bookworm main non-free # ours\n"
        "deb-src http://mirror.lan/debian bookworm main\n"
        "# deb http://mirror.lan/debian bookworm main\n"
        "deb http://vendor.lan/apt cloud-bookworm main\n"
        "deb http://mirror.lan/debian trixie main\n"
    )
    (found,) = debian_sources([("sources.list", text)], "bookworm")
    assert "URIs: http://mirror.lan/debian\nSuites: bookworm\n" in found
    assert "Signed-By: /k.gpg" in found


@pytest.mark.parametrize("change", [("Types: deb deb-src", "Types: deb-src"), ("URIs:", "Enabled: no\nURIs:")])
def test_sources_that_are_switched_off_or_hold_no_binaries_are_left_out(change: tuple[str, str]) -> None:
    assert list(debian_sources([("debian.sources", DEB822.replace(*change))], "bookworm")) == []


def test_apt_keeps_all_that_it_writes_in_its_own_folder_and_knows_one_machine_type() -> None:
    text = configuration(Path("/x"), "arm64")
    places = [line.split('"')[1] for line in text.splitlines() if line.startswith("Dir::")]
    assert all(place.startswith("/x/") or place == "/dev/null" for place in places)
    assert 'APT::Architectures { "arm64"; };' in text


def test_modules_are_loaded_after_those_that_they_need_and_once() -> None:
    needs = {"ext4": ["jbd2", "mbcache"], "jbd2": ["crc"], "mbcache": [], "crc": []}
    assert in_order(["ext4", "jbd2"], lambda name: needs[name]) == ["crc", "jbd2", "mbcache", "ext4"]


def test_a_modules_own_words_tell_what_it_needs_and_what_is_built_in_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "modules.builtin").write_text("kernel/lib/crc16.ko\n")
    (tmp_path / "kernel" / "jbd2.ko").write_bytes(b"ELF\0license=GPL\0depends=\0name=jbd2\0")
    (tmp_path / "kernel" / "ext4.ko").write_bytes(b"ELF\0license=GPL\0depends=jbd2,crc16\0name=ext4\0")
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

"""An archive that Linux unpacks as its first root file system: cpio's "newc" (initramfs-buffer-format in its docs).

Archives may follow each other in one file, so what all machines share is made once, and what is a machine's own added.
"""

import stat
from collections.abc import Iterator, Mapping
from typing import Final

_END: Final = "TRAILER!!!"
_DEVICE: Final = (5, 1)
"""/dev/console: without it the first process has no output."""


def archive(files: Mapping[str, bytes], programs: frozenset[str] = frozenset(), *, console: bool = False) -> bytes:
    """`files` by path, without a leading slash, in folders that are made for them; `programs` may be executed."""
    folders = sorted({folder for path in files for folder in _above(path)} | ({"dev"} if console else set()))
    entries = [_entry(folder, b"", stat.S_IFDIR | 0o755) for folder in folders]
    entries += [_entry("dev/console", b"", stat.S_IFCHR | 0o600, _DEVICE)] if console else []
    for path, content in files.items():
        entries.append(_entry(path, content, stat.S_IFREG | (0o755 if path in programs else 0o600)))
    return b"".join([*entries, _entry(_END, b"", 0)])


def _above(path: str) -> Iterator[str]:
    parts = path.split("/")[:-1]
    for number in range(len(parts)):
        yield "/".join(parts[: number + 1])


def _entry(name: str, content: bytes, mode: int, device: tuple[int, int] = (0, 0)) -> bytes:
    named = name.encode() + b"\0"
    # Inode, mode, owner, group, links, time, size, device (2), device it stands for (2), length of the name, checksum.
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(named), 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers)
    return _padded(head + named) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)

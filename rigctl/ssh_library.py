"""asyncssh, imported without a compiler: `from rigctl.ssh_library import asyncssh`.

It looks for liboqs and nettle (more key exchanges, more checksums) by `ctypes.util.find_library`, which runs ldconfig,
gcc and ld where there is none: a twentieth of a second of every command that reaches a node. Here the loader's folders
are looked at first.
"""

import ctypes.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FOLDERS: Final = ("lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "usr/local/lib64", "opt/homebrew/lib")


def _installed(name: str) -> bool:
    """Whether a library may be in one of the loader's usual folders, or in one that LD_LIBRARY_PATH names."""
    root = Path("/")
    named = [Path(each) for each in os.environ.get("LD_LIBRARY_PATH", "").split(":") if each]
    places = [*(root / each for each in _FOLDERS), *root.glob("usr/lib/*-linux-*"), *named]
    return any(next(place.glob(f"lib{name.removeprefix('lib')}*"), None) is not None for place in places)


@contextmanager
def _without_compilers() -> Iterator[None]:
    usual = ctypes.util.find_library

    def found(name: str) -> str | None:
        return usual(name) if _installed(name) else None

    ctypes.util.find_library = found
    try:
        yield
    finally:
        ctypes.util.find_library = usual


with _without_compilers():
    import asyncssh

__all__ = ["asyncssh"]

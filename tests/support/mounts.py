"""File systems for one test: with too little room, or without execution. Needs root."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(path: Path, options: str) -> Iterator[Path]:
    """A tmpfs with these options on `path`, which is made."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "rigctl-test", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)

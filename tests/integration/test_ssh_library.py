"""asyncssh is imported without other programs, unless there may be what it looks for."""

import os
import subprocess
import sys
from pathlib import Path

from rigctl import ssh_library

PROGRAM = """
import sys
started = []
sys.addaudithook(lambda event, words: started.append(words) if event in ("subprocess.Popen", "os.exec") else None)
import ctypes.util
usual = ctypes.util.find_library
from rigctl.ssh_library import asyncssh
assert asyncssh.connect and ctypes.util.find_library is usual
print(len(started))
"""


def started(**environment: str) -> int:
    """Programs that are started by the import."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_no_program_is_started_where_there_is_no_such_library() -> None:
    wanted = [name for name in ("oqs", "nettle") if ssh_library._installed(name)]
    assert (started() == 0) is not bool(wanted)


def test_a_folder_that_may_have_it_is_searched_as_usual(tmp_path: Path) -> None:
    (tmp_path / "liboqs.so.9").touch()
    assert started(LD_LIBRARY_PATH=str(tmp_path)) > started()

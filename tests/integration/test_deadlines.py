"""A test that hangs fails and shows where it stood; a session of a background shell gives no ignored signal away."""

import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
HANGING = """
import asyncio

async def waits_for_what_never_comes():
    await asyncio.Event().wait()

async def test_hangs():
    async with asyncio.TaskGroup() as group:
        group.create_task(waits_for_what_never_comes())
"""
ASKING = """
import subprocess, sys

def test_children_can_be_interrupted():
    asked = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert subprocess.check_output([sys.executable, "-c", asked], text=True) == "False\\n"
"""


def session(folder: Path, text: str, *options: str, ignoring: bool = False) -> subprocess.CompletedProcess[str]:
    """A pytest of its own, with our conftest.py, over one file with `text`."""
    shutil.copy(TESTS / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    (folder / "test_it.py").write_text(text)
    shell = "trap '' INT QUIT HUP; " if ignoring else ""
    command = ["bash", "-c", f'{shell}exec "$0" "$@"', sys.executable, "-m", "pytest", "-q", *options, "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_a_hanging_test_fails_and_shows_where_each_task_stood(tmp_path: Path) -> None:
    done = session(tmp_path, HANGING, "--timeout=1", "--timeout-method=signal")
    assert done.returncode == 1, done.stderr
    assert "test_it.py::test_hangs: its deadline has passed; 2 tasks" in done.stdout
    assert "in waits_for_what_never_comes" in done.stdout


def test_a_session_that_ignores_interrupts_does_not_hand_that_down(tmp_path: Path) -> None:
    done = session(tmp_path, ASKING, ignoring=True)
    assert done.returncode == 0, done.stdout

"""An agent that lies, over real SSH: one message in bounded time, bounded memory, and no text of it does anything."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from user import User

from rigctl.base import resources

SCENARIO = "rig: loopback\npairs: [pi1 -> pi2]\nduration: 500ms\nmax_skew: 1s\nexpect:\n  goodput: '>= 1K'\n"
DEADLINE_S = 100
COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe]")
RUN = """
import sys
from pathlib import Path
from rigctl.base import resources
resources.agents = lambda: Path(sys.argv[1])
from rigctl.cli.app import exit_code
code = exit_code(sys.argv[2:])
# Not getrusage(2): its peak includes that of the process that started this one.
kb = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
Path(sys.argv[1], "peak").write_text(str(int(kb) // 1024))
sys.exit(code)
"""


def lied_to(user: User, mode: str) -> "subprocess.CompletedProcess[str]":
    folder = user.folder / "agents"
    folder.mkdir(exist_ok=True)
    text = (Path(__file__).parents[1] / "support" / "hostile_agent.py").read_text()
    real = resources.agents() / f"rigctl-agent-{os.uname().machine}"
    (folder / real.name).write_text(text.replace("@MODE@", mode).replace("@REAL@", str(real.resolve())))
    command = [sys.executable, "-c", RUN, str(folder), "run", user.scenario(SCENARIO), "--report", "r.html"]
    how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": DEADLINE_S}
    done = subprocess.run(command, cwd=user.folder, env=user.environment, **how)
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert "internal error" not in said
    assert not COMMANDS.search(said), said
    assert int((folder / "peak").read_text()) < 600  # MB; 130 without a lie, 430 with two reports of 500,000 rows
    assert user.agents() == []
    return done


def test_no_text_of_an_agent_does_anything(user: User) -> None:
    """Look at a whole run; tests/unit/report/test_hostile_texts.py looks at each form of output."""
    done = lied_to(user, "texts")
    assert done.returncode == 0, done.stderr
    page = (user.folder / "r.html").read_text()
    assert page.count("<script") == page.count("</script>") == 2  # the data, and what reads the charts
    assert "<script>alert" not in page
    for words in (["show"], ["show", "--json"], ["export", "--level", "flows"]):
        assert not COMMANDS.search(user.rigctl(*words)), words


FLOODS = {
    "gigabyte": "at most 16384 bytes per line",
    "lines": "a report of over 500000 rows|no answer to report within",  # as fast as the machine reads
    "progress": "no answer to report within",
}


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.parametrize("mode", FLOODS)
def test_a_flood_is_one_message_and_takes_little_memory(user: User, mode: str) -> None:
    done = lied_to(user, mode)
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(FLOODS[mode], done.stderr)

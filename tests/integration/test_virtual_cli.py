"""`rigctl rig` as a user has it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from processes import DEADLINE_S, running
from user import ended
from virtual_rigs import NAME, rig, survivors

pytestmark = pytest.mark.usefixtures("runtime_folder")


def rigctl(*words: str) -> "subprocess.CompletedProcess[bytes]":
    return ended(("rig", *words), Path.cwd(), dict(os.environ))


def executing(file: str, command: str) -> list[str]:
    return [sys.executable, "-m", "rigctl", "rig", "exec", file, "a", "--", command]


def test_up_status_exec_down(tmp_path: Path) -> None:
    file = str(rig(tmp_path).source)
    assert b"not up" in rigctl("status", file).stdout
    started = rigctl("up", file)
    try:
        assert started.returncode == 0, started.stderr
        assert rigctl("up", file).stdout.startswith(f"{NAME}: is up already".encode())
        status = rigctl("status", file).stdout.decode()
        assert "b  10.77.0.2  eth0  1 Gbit/s  MTU 1500" in status
        ssh = next(line.strip() for line in status.splitlines() if line.strip().startswith("ssh "))
        command = [*shlex.split(ssh), "echo $RIGCTL_NODE"]
        said = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False)
        assert said.stdout == b"a\n", said.stderr
        assert rigctl("exec", file, "b", "--", "echo", "two  words").stdout == b"two  words\n"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with running(executing(file, "echo early >&2; cat"), **pipes) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == b"early\n"  # while it still waits for its input
            process.communicate(b"", timeout=DEADLINE_S)
            assert process.returncode == 0
    finally:
        ended = rigctl("down", file)
    assert (ended.returncode, ended.stdout) == (0, f"{NAME}: ended\n".encode())
    assert survivors(f"{NAME}-") == []


def test_exec_starts_a_rig_for_one_command_and_takes_a_file_as_input(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"x" * 300_000)
    command = executing(str(rig(tmp_path).source), "wc -c")
    with file.open("rb") as opened:
        done = subprocess.run(command, stdin=opened, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.stdout == b"300000\n", done.stderr
    assert survivors(f"{NAME}-") == []


@pytest.mark.parametrize("command", ["up", "down", "status"])
def test_a_real_rig_is_not_started(tmp_path: Path, command: str) -> None:
    file = tmp_path / "real.yaml"
    file.write_text("nodes:\n  a: {address: 127.0.0.1}\n  b: {address: 127.0.0.2}\n")
    done = rigctl(command, str(file))
    assert done.returncode == 2
    assert b"real: a real rig. Only virtual rigs can be started" in done.stderr

"""Foreign programs that rigctl starts with a deadline: nothing that they started outlives their answer."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread

import pytest
from processes import DEADLINE_S, eventually, eventually_async, program, running

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import process, run_bounded, run_command, run_in_thread
from rigctl.discovery.inventory import read_inventory
from rigctl.nightly.install import usable
from rigctl.remote.ssh_config import answers
from rigctl.rig.allocation import members_here

NOTE = "echo $$ >>{pids}; sleep 300 & echo $! >>{pids}; "
"""Part of a script that starts a child and notes both process ids."""


class Gone:
    """A file with the process ids that a script has noted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.path.read_text().split()] if self.path.exists() else []

    @property
    def all_ended(self) -> bool:
        """Wait until the kernel has ended them: SIGKILL takes a moment."""
        assert len(self.pids) >= 2
        return bool(eventually(lambda: all(process(pid) is None for pid in self.pids)))


@pytest.fixture
def noted(tmp_path: Path) -> Gone:
    return Gone(tmp_path / "pids")


def scripted(noted: Gone, rest: str, first: str = "") -> list[str]:
    return ["/bin/sh", "-c", first + NOTE.format(pids=noted.path) + rest]


def test_a_program_that_answers_is_not_waited_for_by_its_child_which_is_ended(noted: Gone) -> None:
    done = run_bounded(scripted(noted, "cat; echo oops >&2; exit 3"), DEADLINE_S, text=b"a\0\xff")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"a\0\xff", b"oops\n")
    assert noted.all_ended


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("", "wait"),
        ("trap '' TERM; ", "while :; do sleep 300 & wait; done"),
        ("(trap '' TERM; exec sleep 300) & echo $! >>{pids}; ", "wait"),
        ("", "kill -STOP $$"),
    ],
    ids=["waits", "ignores SIGTERM", "its child ignores SIGTERM", "stopped"],
)
def test_a_program_that_hangs_is_ended_with_all_that_it_started_and_what_it_said_is_kept(
    noted: Gone, first: str, rest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_then(noted, monkeypatch)
    with pytest.raises(subprocess.TimeoutExpired) as late:
        run_bounded(scripted(noted, rest, first=f"echo said; {first.format(pids=noted.path)}"), DEADLINE_S)
    assert late.value.output == b"said\n"
    assert noted.all_ended


def begun_then(noted: Gone, monkeypatch: pytest.MonkeyPatch, least: int = 2) -> None:
    """Let the deadline of a program begin when it has noted its processes."""
    from rigctl.base import processes

    real = processes.wait_end

    def after_start(started: "subprocess.Popen[bytes]", deadline_s: float) -> bool:
        eventually(lambda: len(noted.pids) >= least or started.poll() is not None)
        return real(started, min(deadline_s, 0.2))

    monkeypatch.setattr(processes, "wait_end", after_start)


def test_an_interrupt_ends_the_group_too(noted: Gone) -> None:
    def interrupt() -> None:
        eventually(lambda: len(noted.pids) >= 2)
        os.kill(os.getpid(), signal.SIGINT)

    watch = Thread(target=interrupt)
    watch.start()
    with pytest.raises(KeyboardInterrupt):
        run_bounded(scripted(noted, "wait"), DEADLINE_S)
    watch.join(DEADLINE_S)
    assert noted.all_ended


async def test_a_caller_that_is_cancelled_ends_its_programs_and_no_others(noted: Gone, tmp_path: Path) -> None:
    other = Gone(tmp_path / "others")
    asked = asyncio.create_task(run_in_thread(run_bounded, scripted(noted, "wait"), DEADLINE_S))
    others = asyncio.create_task(run_in_thread(run_bounded, scripted(other, "cat"), DEADLINE_S))
    await eventually_async(lambda: len(noted.pids) >= 2)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert noted.all_ended
    assert (await others).returncode == 0
    assert (await run_in_thread(run_bounded, ["true"], DEADLINE_S)).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [("--from", "hosts"), ("lab-pi",)], ids=["inventory", "Match exec"])
def test_a_command_that_is_ended_ends_the_programs_that_it_waits_for(
    words: Sequence[str], number: signal.Signals, noted: Gone, tmp_path: Path
) -> None:
    script = program(tmp_path / "bin" / "ansible-inventory", NOTE.format(pids=noted.path) + "wait")
    (tmp_path / "hosts").write_text("x\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text(f'Match exec "{script}"\n  User anna\n')
    environment = os.environ | {"PATH": f"{script.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "rigctl", "rig", "init", *words, "-o", "lab.yaml"]
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    with running(
        command, cwd=tmp_path, env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    ) as rigctl:
        eventually(lambda: len(noted.pids) >= 2)
        rigctl.send_signal(number)
        assert rigctl.wait(DEADLINE_S) == (130 if number == signal.SIGINT else -number)
    assert noted.all_ended


def test_a_program_without_a_group_left_or_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    assert run_command(["sh", "-c", "cat; echo ü"], text="a\n") == "a\nü\n"
    with pytest.raises(RigError, match=r"^sh -c echo one.*: one / two$"):
        run_command(["sh", "-c", "echo one >&2; echo two >&2; exit 1"])
    with pytest.raises(RigError, match="none is not installed"):
        run_command([str(tmp_path / "none")])


def ansible(folder: Path) -> None:
    read_inventory(folder / "hosts")


def match_exec(folder: Path) -> None:
    answers("ssh", "lab-pi", None, None, str(folder))


def scontrol(_: Path) -> None:
    members_here(srun=False)


def systemctl(_: Path) -> None:
    assert not usable()
    raise RigError("had not answered")


@pytest.mark.parametrize(
    ("ask", "name", "error"),
    [
        (ansible, "ansible-inventory", InputError),
        (match_exec, "hang", ValueError),
        (scontrol, "scontrol", InputError),
        (systemctl, "systemctl", RigError),
    ],
)
def test_no_program_that_rigctl_asks_lives_on_when_it_hangs(
    ask: Callable[[Path], None],
    name: str,
    error: type[Exception],
    noted: Gone,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = program(tmp_path / "bin" / name, NOTE.format(pids=noted.path) + "wait")
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    (tmp_path / "hosts").write_text("x\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text(f'Match exec "{script}"\n  User anna\n')
    begun_then(noted, monkeypatch)
    with pytest.raises(error, match=r"had not answered|did not run") as refused:
        ask(tmp_path)
    assert "\n" not in str(refused.value)
    assert noted.all_ended

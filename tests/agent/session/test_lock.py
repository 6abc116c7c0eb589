"""One run at a time has a node: agents that ask for the same lock, and what becomes of it when one of them ends."""

import fcntl
import re
import secrets
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock
from processes import DEADLINE_S, end, eventually, paused

WATCHDOG_S = 3600
HELLO, FIRST, SECOND = '"event":"hello"', '{"event":"busy","place":1}', '{"event":"busy","place":2}'


class Asker:
    """An agent that asks for a lock; `says` reads its next line."""

    def __init__(self, command: list[str], lock: str, holder: str, how: str, watchdog_s: int) -> None:
        words = [*command, "--watchdog", str(watchdog_s), "--lock", lock, f"17 {holder}", how]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def says(self, text: str) -> "Asker":
        assert text in self.stdout.readline()
        return self

    def has_it(self) -> None:
        """Wait for its hello; until then it tells how it moves up."""
        while HELLO not in (line := self.stdout.readline()):
            assert '"event":"busy"' in line

    def taken(self) -> None:
        eventually(lambda: struct.unpack("i", fcntl.ioctl(self.stdin, termios.FIONREAD, bytes(4))) == (0,))

    def kill(self) -> None:
        end(self.process)


@pytest.fixture
def ask(binary: Path) -> Iterator[Any]:
    lock = secrets.token_hex(6)
    with ExitStack() as stack:

        def asker(holder: str, how: str = "wait", watchdog_s: int = WATCHDOG_S, by: tuple[str, ...] = ()) -> Asker:
            made = Asker([*by, str(binary)], lock, holder, how, watchdog_s)
            stack.callback(end, made.process)
            return made

        yield asker
    assert lock not in Path("/proc/net/unix").read_text()


@pytest.mark.parametrize("how", ["now", "wait", "first"])
def test_a_lock_that_nobody_has_is_had_at_once(ask: Any, how: str) -> None:
    holder = ask("anna", how).says(HELLO)
    holder.stdin.write("1 ping\n")
    holder.says('"ok":true')


def test_first_come_first_served_and_nobody_who_does_not_wait_comes_between(ask: Any) -> None:
    holder = ask("anna").says(HELLO)
    waiters = []
    for number in range(1, 5):
        waiters.append(ask(f"waiter {number}").says(f'{{"event":"busy","place":{number}}}'))
    for waiter in waiters:
        holder.kill()
        hasty = ask("hasty", "now")
        assert hasty.process.wait(DEADLINE_S) == 3
        waiter.has_it()
        holder = waiter


def test_a_waiter_that_is_killed_is_out_of_the_queue(ask: Any) -> None:
    ask("anna").says(HELLO)
    first = ask("bob").says(FIRST)
    second = ask("carl").says(SECOND)
    first.kill()
    second.says(FIRST)


def test_a_run_that_had_the_node_goes_before_those_who_wait(ask: Any) -> None:
    holder = ask("anna").says(HELLO)
    waiter = ask("bob").says(FIRST)
    with paused(waiter.process):
        holder.kill()
        again = ask("anna", "first").says(HELLO)
    again.kill()
    waiter.says(HELLO)


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "silence"])
def test_a_waiter_ends_as_an_agent_does(ask: Any, how: str) -> None:
    ask("anna").says(HELLO)
    waiter = ask("bob", watchdog_s=1 if how == "silence" else WATCHDOG_S).says(FIRST)
    if how == "end of input":
        waiter.stdin.close()
    elif how == "SIGTERM":
        waiter.process.terminate()
    assert waiter.process.wait(DEADLINE_S) == (1 if how == "silence" else 0)


@pytest.mark.parametrize("binary", ["sanitized"], indirect=True)
def test_a_sign_of_life_keeps_a_waiter_and_its_orders_are_not_taken(ask: Any, clock: FakeClock) -> None:
    holder = ask("anna").says(HELLO)
    waiter = ask("bob", watchdog_s=10, by=clock.by).says(FIRST)
    for _ in range(3):
        clock.advance(9)
        waiter.stdin.write("\n1 ping\n")
        waiter.taken()
    holder.kill()
    waiter.says(HELLO)


def test_who_has_it_is_told_to_everybody_cut_to_what_a_name_may_hold(ask: Any) -> None:
    holder = ask("anna@lab7 pid 4711" + "x" * 100).says(HELLO)
    (label,) = re.findall(rf"@rigctl-lock-\w+-0 {holder.process.pid} 17 (.*)", Path("/proc/net/unix").read_text())
    assert label.startswith("anna@lab7 pid 4711xxx")

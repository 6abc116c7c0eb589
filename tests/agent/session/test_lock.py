"""One run at a time has a node: agents that ask for the same lock, and what becomes of it when one of them ends."""

import fcntl
import re
import secrets
import socket
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_clock import FakeClock
from processes import DEADLINE_S, eventually, paused
from talk import Start, Talk


@pytest.fixture
def ask(binary: Path) -> Iterator[Start]:
    """Start an agent that asks for a lock, which all agents of a test ask for."""
    lock = secrets.token_hex(6)
    with ExitStack() as stack:

        def asker(holder: str, how: str = "wait", *more: str, by: tuple[str, ...] = ()) -> Talk:
            words = ("--lock", lock, f"17 {holder}", how)
            return stack.enter_context(Talk([*by, str(binary)], *more, *words, greets=False))

        yield asker
    assert lock not in Path("/proc/net/unix").read_text()


def has_it(agent: Talk) -> Talk:
    agent.event("hello")
    return agent


def waits(agent: Talk, place: int) -> Talk:
    assert agent.event("busy")["place"] == place
    return agent


@pytest.mark.windows
@pytest.mark.parametrize("how", ["now", "wait", "first"])
def test_a_lock_that_nobody_has_is_had_at_once(ask: Start, how: str) -> None:
    holder = has_it(ask("anna", how))
    assert holder.events("busy") == []
    assert holder.ask("ping")["ok"]


@pytest.mark.windows
def test_first_come_first_served_and_nobody_who_does_not_wait_comes_between(ask: Start) -> None:
    holder = has_it(ask("anna"))
    waiters = [waits(ask(f"waiter {number}"), number) for number in range(1, 5)]
    for waiter in waiters:
        holder.process.kill()
        hasty = ask("hasty", "now")
        assert hasty.process.wait(DEADLINE_S) == 3
        holder = has_it(waiter)


@pytest.mark.parametrize("places", [[63], [62, 63], [0, 63]])
def test_an_agent_whose_place_a_stranger_has_says_that_it_waits(binary: Path, places: list[int]) -> None:
    lock = secrets.token_hex(6)
    with ExitStack() as stack:
        for place in places:
            stranger = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            stranger.bind(f"\0rigctl-lock-{lock}-{place}")
        words = [str(binary), "--lock", lock, "17 anna"]
        agent = stack.enter_context(Talk(words[:1], *words[1:], "wait", greets=False))
        waits(agent, 64)
        hasty = stack.enter_context(Talk(words[:1], *words[1:], "now", greets=False))
        assert hasty.process.wait(DEADLINE_S) == 3
        assert hasty.event("busy")["place"] == 64
        stranger.close()
        if len(places) == 1:
            has_it(agent)
        else:
            waits(agent, places[0] + 1)


@pytest.mark.windows
def test_a_waiter_that_is_killed_is_out_of_the_queue(ask: Start) -> None:
    has_it(ask("anna"))
    first = waits(ask("bob"), 1)
    second = waits(ask("carl"), 2)
    first.process.kill()
    waits(second, 1)


@pytest.mark.windows
def test_a_run_that_had_the_node_goes_before_those_who_wait(ask: Start) -> None:
    holder = has_it(ask("anna"))
    waiter = waits(ask("bob"), 1)
    with paused(waiter.process):
        holder.process.kill()
        holder.process.wait(DEADLINE_S)
        again = has_it(ask("anna", "first"))
    again.process.kill()
    has_it(waiter)


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "silence"])
def test_a_waiter_ends_as_an_agent_does(ask: Start, how: str) -> None:
    has_it(ask("anna"))
    waiter = waits(ask("bob", "wait", *(("--watchdog", "1") if how == "silence" else ())), 1)
    if how == "end of input":
        waiter.end()
    elif how == "SIGTERM":
        waiter.process.terminate()
    assert waiter.process.wait(DEADLINE_S) == (1 if how == "silence" else 0)


@pytest.mark.parametrize("binary", ["sanitized"], indirect=True)
def test_a_sign_of_life_keeps_a_waiter_and_its_orders_are_not_taken(ask: Start, clock: FakeClock) -> None:
    holder = has_it(ask("anna"))
    waiter = waits(ask("bob", "wait", "--watchdog", "10", by=clock.by), 1)
    for _ in range(3):
        clock.advance(9)
        waiter.write(b"\n1 ping\n")
        eventually(lambda: fcntl.ioctl(waiter.process.stdin or 0, termios.FIONREAD, bytes(4)) == bytes(4))  # all read
    holder.process.kill()
    has_it(waiter)


def test_who_has_it_is_told_to_everybody_cut_to_what_a_name_may_hold(ask: Start) -> None:
    holder = has_it(ask("anna@lab7 pid 4711" + "x" * 100))
    (label,) = re.findall(rf"@rigctl-lock-\w+-0 {holder.process.pid} 17 (.*)", Path("/proc/net/unix").read_text())
    assert label.startswith("anna@lab7 pid 4711xxx")

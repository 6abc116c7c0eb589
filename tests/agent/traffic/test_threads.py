"""Races between the main loop and the flows' threads: ThreadSanitizer ends an agent at the first one that it sees."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from snooping import Bridge, bridged, multicast
from talk import Start, Talk, at_work, close, completed, connecting, flowing, listening, progressed, reports


@pytest.fixture
def binary(threaded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TSAN_OPTIONS", "halt_on_error=1 report_thread_leaks=0 atexit_sleep_ms=50")
    return threaded


KINDS = {
    "stream": ("", "bin_us=1000"),
    "pingpong": ("test=pingpong size=100", ""),
    "busy pingpong": ("test=pingpong size=100 busy=1", ""),
    "blast": ("test=blast size=4000", ""),
    "requests": ("test=requests size=2000 reply=900", "per_second=20000"),
    "file": ("test=file size=1000000000000 disk=0", ""),
    "connect": ("test=connect size=1 close=reset", ""),
    "connect with a rate": ("test=connect size=1 close=receiver", "per_second=500"),
    "udp": ("transport=udp size=400", "rate=5000000 bin_us=1000"),
    "udp as fast as it goes": ("transport=udp size=1472", ""),
    "bursts": ("transport=udp test=burst size=400 length=200", ""),
    "udp pingpong": ("transport=udp test=pingpong size=64", ""),
}


def ended_cleanly(*agents: Talk) -> None:
    for agent in agents:
        code = agent.end()
        assert agent.process.stderr is not None
        assert code == 0, agent.process.stderr.read().decode()


@pytest.mark.parametrize("kind", KINDS)
def test_no_race_from_the_start_to_the_report(start: Start, kind: str) -> None:
    what, how = KINDS[kind]
    receiver, sender, _ = flowing(start, how, 300, extra=what, flows=3, interval_ms=10)
    assert all(report.last["ok"] for report in reports(receiver, sender))
    close(receiver, sender)
    ended_cleanly(receiver, sender)


@pytest.mark.parametrize("order", ["stop", "close"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_race_where_it_is_cut_off(start: Start, kind: str, order: str) -> None:
    what, how = KINDS[kind]
    receiver, sender, _ = flowing(start, how, extra=what, flows=3, interval_ms=10)
    for agent in (sender, receiver):
        at_work(agent, 3)
    for agent in (sender, receiver):
        assert agent.ask(f"{order} endpoint=1")["ok"]
    ended_cleanly(sender, receiver)


def test_no_race_while_progress_is_told(start: Start) -> None:
    receiver, sender, _ = flowing(start, "rate=5000000", extra="transport=udp size=400", flows=3)
    progressed(receiver)
    ended_cleanly(sender, receiver)


def test_no_race_while_files_are_made_and_read(start: Start, tmp_path: Path) -> None:
    receiver, sender, _ = flowing(start, extra=f"test=file size=3000000 disk=1 folder={tmp_path}", flows=2)
    completed(receiver, sender)
    ended_cleanly(receiver, sender)
    # One that is closed while its files are made.
    other = start()
    other.send(connecting(listening(start()), extra=f"test=file size=10000000000 disk=1 folder={tmp_path}"))
    assert other.ask("close endpoint=1")["ok"]
    ended_cleanly(other)


def _stop(bridge: Bridge) -> None:
    for node, endpoint in (("2", 1), ("3", 2), ("1", 1), ("1", 2)):
        assert bridge.agents[node].ask(f"stop endpoint={endpoint}")["ok"]


@pytest.mark.parametrize(("duration_ms", "meanwhile"), [(900, lambda _: None), (300_000, _stop)])
def test_no_race_while_a_group_is_joined_and_watched(
    binary: Path, duration_ms: int, meanwhile: Callable[[Bridge], None]
) -> None:
    with ExitStack() as stack:
        bridge = stack.enter_context(bridged(3, snooping=False, querier=False))
        bridge.start(binary, stack)
        multicast(bridge, ["2"], ["3"], duration_ms=duration_ms, meanwhile=lambda: meanwhile(bridge))
        ended_cleanly(*bridge.agents.values())

"""What FreeBSD's and Windows' kernels do differently, imitated on Linux by foreign_kernel.c.

The agents for these systems cannot be run here on their own kernels. The code that copes with them is the same on all
systems, so it is proved with a library that makes the calls of this kernel answer as theirs.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_clock import preloaded, with_library
from talk import Start, Talk, flowing, listening, ran, settings, stopped

UDP = "transport=udp"
Foreign = Callable[[str], Callable[[], Talk]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded(Path(__file__).parents[1] / "foreign_kernel.c", tmp_path_factory.mktemp("foreign"))


@pytest.fixture
def foreign(sanitized: Path, library: Path) -> Iterator[Foreign]:
    """Yield what gives a function that starts agents on a kernel with this behaviour."""
    with ExitStack() as stack:

        def on(behaviour: str) -> Callable[[], Talk]:
            by = with_library(library, FOREIGN_KERNEL=behaviour)
            return lambda: stack.enter_context(Talk([*by, str(sanitized)]))

        yield on


def granted(asked: int) -> int:
    """Return SO_RCVBUF as this kernel reports it after `asked` bytes were set."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        if asked:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, asked)
        return made.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def test_a_receive_buffer_that_is_refused_is_halved_until_it_is_granted_and_told(foreign: Foreign) -> None:
    came, _ = ran(foreign("maxsockbuf"), "rate=1000000", duration_ms=200, extra=f"{UDP} size=1000")
    assert came.totals[0]["rcvbuf"] == granted((4 << 20) // 8) > granted(0)


@pytest.mark.parametrize(("asked", "least"), [(3_000_000, 750_000), (1_000_000, 1_000_000), (70_000, 70_000)])
def test_a_window_that_is_refused_is_halved_and_the_granted_size_is_told(
    foreign: Foreign, asked: int, least: int
) -> None:
    receiver, sender, _ = flowing(foreign("maxsockbuf"), extra=f"window={asked}")
    came, sent = stopped(receiver, sender)
    assert came.totals[0]["rcvbuf"] == granted(least)
    assert sent.totals[0]["sndbuf"] is not None


@pytest.mark.parametrize(
    ("what", "how"),
    [
        (f"{UDP} size=9217", "rate=10000000"),
        (f"{UDP} size=65507", "rate=50000000"),
        (f"{UDP} test=pingpong size=30000", "iterations=3"),
        (f"{UDP} test=probe size=20000", ""),
    ],
)
def test_datagrams_larger_than_the_default_send_buffer_are_sent(foreign: Foreign, what: str, how: str) -> None:
    """On FreeBSD the default is net.inet.udp.maxdgram, 9,216 bytes."""
    came, sent = ran(foreign("maxdgram"), how, duration_ms=300, extra=what)
    assert sent.datagrams[0]["datagrams"] > 0
    assert sent.datagrams[0]["refused"] == 0
    assert came.datagrams[0]["datagrams"] > 0


def test_a_probe_of_a_path_sends_all_sizes_from_a_small_default_buffer(foreign: Foreign) -> None:
    start = foreign("maxdgram")
    receiver, sender = start(), start()
    port = listening(receiver, extra=f"{UDP} size=1000")
    token = settings().split()[0]
    side = f"address=127.0.0.1 port={port} bind=127.0.0.1 {token}"
    answer = sender.ask(f"probe target=1 source=1 {side} sizes=1000,9300,30000 stream=0")
    assert (answer["ok"], answer["refused"]) == (True, "")


def test_a_reading_that_fails_after_the_end_does_not_replace_what_is_known(foreign: Foreign, start: Start) -> None:
    """Windows may not tell of a connection that has ended; the retransmits of its last reading are kept."""
    for begin in (foreign("forgets"), start):
        receiver, sender, _ = flowing(begin, flows=2)
        _, sent = stopped(receiver, sender)
        for flow in (0, 1):
            totals, again = sent.totals[flow], [row[2] for row in sent.rows[flow]]
            assert sent.columns[2] == "retransmits"
            assert min(again) >= 0
            assert again == sorted(again)
            assert totals["retransmits"] == again[-1]
            assert totals["mss"] > 0


@pytest.mark.parametrize(("size", "count"), [(64, 100), (1400, 100), (9000, 20)])
def test_joined_datagrams_without_their_size_are_counted_one_by_one(foreign: Foreign, size: int, count: int) -> None:
    """The sender wakes each 250 µs, and one datagram is due each 200 µs: many go in pieces of two or more.

    On a busy machine a sender that wakes at its end sends a single datagram.
    """
    came, sent = ran(foreign("joins"), f"rate={8 * 5000 * size}", duration_ms=count // 5, extra=f"{UDP} size={size}")
    here, there = came.datagrams[0], sent.datagrams[0]
    assert here["datagrams"] == here["highest"] == there["datagrams"] > 0
    assert here["strays"] == 0
    assert came.totals[0]["bytes"] == sent.totals[0]["bytes"]

"""However an agent ends, nothing of it stays."""

import contextlib
import select
import signal
import socket
import struct
import subprocess
from itertools import product
from pathlib import Path

import pytest
from processes import DEADLINE_S, running
from talk import Start, Talk, arrived, asleep, begin, completed, connecting, joined, listening, started, stopped

from rigctl.base.version import __version__
from rigctl.protocol.lines import VERSION


def brought_to(state: str, receiver: Talk, sender: Talk, mute: socket.socket) -> None:
    if state == "listening":
        listening(receiver)
    elif state == "connecting":
        sender.send(connecting(mute.getsockname()[1], flows=3))
        assert select.select([mute], [], [], DEADLINE_S)[0]
    elif state != "idle":
        port = joined(receiver, sender, flows=3)
    if state in ("running", "ended"):
        started(receiver, sender)
        arrived(sender, port, flows=3)
    if state == "ended":
        stopped(receiver, sender)


BROUGHT = ["listening", "connecting", "connected", "running", "ended"]
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.parametrize(("state", "number"), [*product(["idle", *BROUGHT], [0]), *product(["running"], SIGNALS)])
def test_end_of_file_or_a_signal_ends_it(start: Start, mute: socket.socket, state: str, number: int) -> None:
    receiver, sender = start(), start()
    brought_to(state, receiver, sender, mute)
    for agent in (receiver, sender):
        if number:
            agent.process.send_signal(number)
        assert (agent.process.wait(DEADLINE_S) if number else agent.end()) == 0


@pytest.mark.windows
@pytest.mark.parametrize(
    "arguments",
    ["--nosuch", "--watchdog", "--watchdog 0", "--watchdog 1x", "a b c", "--lock", "--lock a 1", "--lock a 1 never"],
)
def test_wrong_arguments_are_reported_in_a_line(binary: Path, arguments: str) -> None:
    command = [str(binary), *arguments.split()]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    assert b"usage:" in done.stderr
    assert done.stdout == b""


@pytest.mark.windows
def test_the_version_is_one_line(binary: Path) -> None:
    done = subprocess.run([binary, "--version"], capture_output=True, timeout=DEADLINE_S, check=True)
    assert done.stdout.startswith(f"rigctl-agent {__version__} protocol {VERSION} ".encode())


@pytest.mark.windows
def test_a_reader_that_does_not_read_ends_the_agent(binary: Path) -> None:
    """Its output is a pipe that nobody reads: it must neither block nor grow, and end in the end."""
    with running([binary, "--watchdog", "3600"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            agent.stdin.write(b"".join(b"%d frobnicate\n" % n for n in range(1, 20_000)))
        assert agent.wait(DEADLINE_S) == 1


@pytest.mark.windows
@pytest.mark.parametrize("order", ["close endpoint=1", "stop endpoint=1"])
@pytest.mark.parametrize("state", BROUGHT)
def test_close_and_stop_are_served_in_every_state(start: Start, mute: socket.socket, order: str, state: str) -> None:
    receiver, sender = start(), start()
    brought_to(state, receiver, sender, mute)
    agent = sender if state == "connecting" else receiver
    assert agent.ask(order)["ok"]
    assert agent.ask("clock")["ok"]


@pytest.mark.windows
@pytest.mark.parametrize(("what", "how"), [("", ""), ("transport=udp size=64", "rate=1")])
@pytest.mark.parametrize("order", ["close endpoint=1", "stop endpoint=1"])
def test_flows_that_wait_are_ended_at_once(receiver: Talk, sender: Talk, order: str, what: str, how: str) -> None:
    """Half an hour before the start, or between two datagrams that are eight minutes apart."""
    joined(receiver, sender, extra=what)
    ahead_ns = 0 if how else 1800 * 10**9
    at_ns = receiver.ask("clock")["clock_ns"] + ahead_ns
    for agent in (receiver, sender):
        begin(agent, 600_000, how, at_ns)
        asleep(agent)
    assert sender.ask(order)["ok"]
    if order.startswith("stop"):
        completed(sender)
    assert receiver.ask(order)["ok"]


def test_a_receiver_that_breaks_off_after_the_last_byte_is_an_error(sender: Talk, mute: socket.socket) -> None:
    """It may have lost what was in transit: the sender cannot know that all of it arrived."""
    number = sender.send(connecting(mute.getsockname()[1]))
    peer, _ = mute.accept()
    with peer:
        assert len(peer.recv(20, socket.MSG_WAITALL)) == 20
        peer.sendall(b"\x06\0\0")
        assert sender.answer(number)[-1]["ok"]
        begin(sender, 100)
        while peer.recv(1 << 20):
            pass
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ended = sender.event("ended")
    assert ended["error"] == "ECONNRESET"
    assert "waiting for the receiver to end" in ended["message"]

"""However an agent ends, nothing of it stays."""

import contextlib
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest
from processes import running
from talk import Start, Talk, completed, connecting, joined, listening, started

from rigctl.base.version import __version__
from rigctl.protocol.lines import VERSION


def brought_to(state: str, receiver: Talk, sender: Talk) -> None:
    if state == "listening":
        listening(receiver)
    elif state == "connecting":
        # 198.51.100.0/24 leads nowhere: but no packet may leave the machine, so a full backlog on loopback stands in.
        sender.send(connecting(listening(receiver, flows=2, wait_ms=5000), flows=3, wait_ms=5000))
        time.sleep(0.1)
    elif state != "idle":
        joined(receiver, sender, flows=3)
    if state in ("running", "ended"):
        started([receiver, sender], 200 if state == "ended" else 20_000)
        time.sleep(0.1)
    if state == "ended":
        receiver.event("ended")


@pytest.mark.parametrize("state", ["idle", "listening", "connected", "running", "ended"])
def test_end_of_file_ends_it_in_every_state(start: Start, state: str) -> None:
    receiver, sender = start(), start()
    brought_to(state, receiver, sender)
    for agent in (receiver, sender):
        began_s = time.monotonic()
        assert agent.end() == 0
        assert time.monotonic() - began_s < 18  # its traffic would go on for 20 s
        assert not Path(f"/proc/{agent.process.pid}").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_during_traffic(start: Start, number: signal.Signals) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, flows=2)
    started([receiver, sender], 20_000)
    time.sleep(0.2)
    for agent in (sender, receiver):
        agent.process.send_signal(number)
        assert agent.process.wait(18) == 0


def test_silence_ends_it_and_a_ping_keeps_it(start: Start) -> None:
    agent = start("--watchdog", "2")
    for _ in range(6):
        time.sleep(0.5)
        assert agent.ask("ping")["ok"]
    began_s = time.monotonic()
    assert agent.process.wait(20) == 1
    assert time.monotonic() - began_s > 1.8


def test_quit_is_answered_first(start: Start) -> None:
    agent = start()
    assert agent.ask("quit")["ok"]
    assert agent.process.wait(1) == 0


@pytest.mark.parametrize(
    "arguments",
    ["--nosuch", "--watchdog", "--watchdog 0", "--watchdog 1x", "a b c", "--lock", "--lock a 1", "--lock a 1 never"],
)
def test_wrong_arguments_are_reported_in_a_line(binary: Path, arguments: str) -> None:
    done = subprocess.run(
        [binary, *arguments.split()], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert b"usage:" in done.stderr
    assert done.stdout == b""


def test_the_version_is_one_line(binary: Path) -> None:
    done = subprocess.run([binary, "--version"], capture_output=True, timeout=30, check=True)
    assert done.stdout.startswith(f"rigctl-agent {__version__} protocol {VERSION} ".encode())


def test_a_reader_that_does_not_read_ends_the_agent(binary: Path) -> None:
    """Its output is a pipe that nobody reads: it must neither block nor grow, and end in the end."""
    with running([binary, "--watchdog", "2"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            agent.stdin.write(b"".join(b"%d frobnicate\n" % n for n in range(1, 20_000)))
        assert agent.wait(5) == 1


@pytest.mark.parametrize("order", ["close endpoint=1", "stop endpoint=1"])
@pytest.mark.parametrize("state", ["listening", "connecting", "connected", "running", "ended"])
def test_close_and_stop_are_served_in_every_state(start: Start, order: str, state: str) -> None:
    receiver, sender = start(), start()
    brought_to(state, receiver, sender)
    agent = sender if state == "connecting" else receiver
    assert agent.ask(order)["ok"]
    assert agent.ask("clock")["ok"]


@pytest.mark.parametrize(("what", "how"), [("", ""), ("transport=udp size=64", "rate=1")])
@pytest.mark.parametrize("order", ["close endpoint=1", "stop endpoint=1"])
def test_flows_that_wait_for_their_time_are_ended_at_once(start: Start, order: str, what: str, how: str) -> None:
    """A minute before the start, or between two datagrams that are eight minutes apart."""
    receiver, sender = start(), start()
    joined(receiver, sender, extra=what)
    ahead_ns = 0 if how else 60 * 10**9
    at_ns = time.monotonic_ns() + ahead_ns
    for agent in (receiver, sender):
        assert agent.ask(f"start endpoint=1 at_ns={at_ns} duration_ms=600000 {how}".rstrip())["ok"]
    time.sleep(0.1)
    assert sender.ask(order)["ok"]
    if order.startswith("stop"):
        completed(sender)
    assert receiver.ask(order)["ok"]


def test_a_receiver_that_breaks_off_after_the_last_byte_is_an_error(start: Start) -> None:
    """It may have lost what was in transit: the sender cannot know that all of it arrived."""
    sender = start()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = sender.send(connecting(listener.getsockname()[1]))
        peer, _ = listener.accept()
    with peer:
        assert len(peer.recv(20, socket.MSG_WAITALL)) == 20
        peer.sendall(b"\x06")
        assert sender.answer(number)[-1]["ok"]
        started([sender], 100)
        while peer.recv(1 << 20):
            pass
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ended = sender.event("ended")
    assert ended["error"] == "ECONNRESET"
    assert "waiting for the receiver to end" in ended["message"]

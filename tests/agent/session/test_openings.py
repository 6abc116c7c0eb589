"""Who may bring data: the token, in time; strangers are dropped and counted."""

import resource
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from fake_clock import FakeClock
from processes import DEADLINE_S, eventually
from talk import TOKEN, Talk, connecting, joined, listening, report_of, served, started

OPENING = bytes.fromhex(TOKEN) + struct.pack(">I", 0)


def knock(port: int, data: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    made.sendall(data)
    return made


def shown(*words: str) -> list[list[str]]:
    lines = subprocess.run(["ss", "-Htn", *words], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split() for line in lines]


def taken(agent: Talk, stranger: socket.socket, count: int) -> None:
    peer = f"127.0.0.1:{stranger.getsockname()[1]}"

    def read() -> bool:
        words = [word for line in shown("-i", "dst", peer) for word in line]
        return words[:2] == ["ESTAB", "0"] and f"bytes_received:{count}" in words

    eventually(read)
    served(agent)


def waits(stranger: socket.socket) -> bool:
    """Tell whether nothing came, and no end-of-file."""
    stranger.setblocking(False)
    try:
        stranger.recv(1)
    except BlockingIOError:
        return True
    finally:
        stranger.settimeout(DEADLINE_S)
    return False


def test_there_is_no_port_but_that_of_a_receiver_on_its_own_address(receiver: Talk) -> None:
    assert receiver.listening_ports() == []
    port = listening(receiver, "127.0.0.2")
    assert receiver.listening_ports() == [port]
    own = [line for line in shown("-lp", "sport", "=", f":{port}") if f"pid={receiver.process.pid}," in line[-1]]
    assert [line[3] for line in own] == [f"127.0.0.2:{port}"]
    assert receiver.ask("close endpoint=1")["ok"]
    assert receiver.listening_ports() == []


def test_strangers_are_dropped_and_counted_and_the_right_flows_accepted(clock: FakeClock) -> None:
    receiver, sender = clock.start(), clock.start()
    port = listening(receiver)
    wrong = [
        knock(port, b"\x00" * 20),
        knock(port, bytes.fromhex(TOKEN) + struct.pack(">I", 7)),
        knock(port, b"GET / HTTP/1.0\r\n\r\n\r\n"),
    ]
    silent, half = knock(port, b""), knock(port, OPENING[:10])
    for stranger in wrong:
        assert stranger.recv(1) == b""
    taken(receiver, half, 10)
    clock.advance(1.9)
    served(receiver)
    assert waits(silent)
    assert waits(half)
    clock.advance(0.1)
    assert silent.recv(1) == b""
    assert half.recv(1) == b""
    assert sender.ask(connecting(port))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]
    started(receiver, sender, at_ns=clock.now_ns)
    assert sender.ask("stop endpoint=1")["ok"]
    receiver.event("ended")
    assert report_of(receiver).last["strangers"] == 5


def test_many_silent_strangers_do_not_keep_the_right_one_out(receiver: Talk, sender: Talk) -> None:
    port = listening(receiver)
    strangers = [knock(port, b"") for _ in range(300)]
    assert sender.ask(connecting(port))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]
    for stranger in strangers:
        stranger.close()


def test_an_opening_in_pieces_is_accepted(receiver: Talk) -> None:
    slow = knock(listening(receiver), OPENING[:3])
    taken(receiver, slow, 3)
    slow.sendall(OPENING[3:])
    assert slow.recv(1) == b"\x06"
    assert receiver.ask("ready endpoint=1")["ok"]


def test_a_number_that_is_taken_is_a_stranger(receiver: Talk) -> None:
    port = listening(receiver, flows=2)
    first = knock(port, OPENING)
    assert first.recv(1) == b"\x06"
    assert knock(port, OPENING).recv(1) == b""


def test_nobody_coming_is_a_time_out(receiver: Talk) -> None:
    listening(receiver, flows=3, wait_ms=200)
    answer = receiver.ask("ready endpoint=1")
    assert answer["error"] == "ETIMEDOUT"
    assert answer["message"].startswith("0 of 3 flows opened in time at 127.0.0.1 port ")
    assert answer["message"].endswith("no connection came")
    assert receiver.listening_ports() == []


def test_a_closed_port_refuses(receiver: Talk, sender: Talk) -> None:
    port = joined(receiver, sender)
    answer = sender.ask(connecting(port).replace("endpoint=1", "endpoint=2"))
    assert answer["error"] == "ECONNREFUSED"
    assert answer["message"] == f"flow 0 to 127.0.0.1 port {port}: connect: Connection refused"


def test_a_peer_that_never_accepts_is_a_time_out(clock: FakeClock) -> None:
    sender = clock.start()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        number = sender.send(connecting(port, wait_ms=300))
        peer, _ = mute.accept()
        with peer:
            assert peer.recv(20, socket.MSG_WAITALL) == OPENING
            clock.advance(0.3)
            (answer,) = sender.answer(number)
    assert answer["error"] == "ETIMEDOUT"
    expected = f"0 of 1 flows opened in time to 127.0.0.1 port {port}: connected, but not accepted"
    assert answer["message"] == expected


def test_a_peer_that_accepts_wrongly_is_no_peer(sender: Talk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as liar:
        number = sender.send(connecting(liar.getsockname()[1]))
        peer, _ = liar.accept()
        peer.sendall(b"\x15")
        assert sender.answer(number)[-1]["error"] == "ECONNABORTED"


def test_without_descriptors_it_waits_and_then_accepts(clock: FakeClock) -> None:
    receiver = clock.start()
    port = listening(receiver)
    used = len(list(Path(f"/proc/{receiver.process.pid}/fd").iterdir()))
    _, most = resource.prlimit(receiver.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(receiver.process.pid, resource.RLIMIT_NOFILE, (used, most))
    waiting = knock(port, OPENING)
    eventually(lambda: shown("-l", "src", f"127.0.0.1:{port}")[0][1] == "1")  # in the queue
    served(receiver)
    resource.prlimit(receiver.process.pid, resource.RLIMIT_NOFILE, (most, most))
    served(receiver)
    assert waits(waiting)  # it does not try all the time, but 0.1 s later
    clock.advance(0.1)
    assert waiting.recv(1) == b"\x06"
    assert receiver.ask("ready endpoint=1")["ok"]


@pytest.mark.parametrize("transport", ["tcp", "udp size=64"])
def test_the_first_free_port_of_a_range_is_taken(receiver: Talk, sender: Talk, transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        first = min(other.getsockname()[1], 65535 - 20)
        port = listening(receiver, extra=f"transport={transport} first_port={first} last_port={first + 20}")
        assert first < port <= first + 20
    assert sender.ask(connecting(port, extra=f"transport={transport}"))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]

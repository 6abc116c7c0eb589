"""Who may bring data: the token, in time; strangers are dropped and counted.

Networks that do not let everything through: the message names who to whom, and what was missing.
"""

import re
import resource
import socket
import struct
from pathlib import Path

import pytest
from cases import from_file
from fake_clock import FakeClock
from lab import Lab, firewall
from processes import DEADLINE_S, eventually, output_of, paused
from talk import TOKEN, Talk, connecting, joined, listening, ran, report_of, served, started

OPENING = bytes.fromhex(TOKEN) + struct.pack(">I", 0)
ACCEPTANCE = b"\x06\0\0"
"""The answer to the opening of a flow without datagrams."""


def knock(port: int, data: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    made.sendall(data)
    return made


def shown(*words: str) -> list[list[str]]:
    return [line.split() for line in output_of(["ss", "-Htn", *words]).splitlines()]


def taken(agent: Talk, stranger: socket.socket, count: int) -> None:
    peer = f"127.0.0.1:{stranger.getsockname()[1]}"

    def read() -> bool:
        words = [word for line in shown("-i", "dst", peer) for word in line]
        return words[:2] == ["ESTAB", "0"] and f"bytes_received:{count}" in words

    eventually(read)
    served(agent)


def is_reset(stranger: socket.socket) -> bool:
    """Wait for the end of a connection; tell whether it was reset, so that nothing of it is left at the other end."""
    try:
        return stranger.recv(1) != b"" and is_reset(stranger)
    except ConnectionResetError:
        return True


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
        assert is_reset(stranger)
    taken(receiver, half, 10)
    clock.advance(1.9)
    served(receiver)
    assert waits(silent)
    assert waits(half)
    clock.advance(0.1)
    assert is_reset(silent)
    assert is_reset(half)
    assert sender.ask(connecting(port))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]
    started(receiver, sender, at_ns=clock.now_ns)
    assert sender.ask("stop endpoint=1")["ok"]
    receiver.event("ended")
    assert report_of(receiver).last["strangers"] == 5


@pytest.mark.windows
def test_many_silent_strangers_do_not_keep_the_right_one_out(receiver: Talk, sender: Talk) -> None:
    port = listening(receiver)
    strangers = [knock(port, b"") for _ in range(300)]
    assert sender.ask(connecting(port))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]
    for stranger in strangers:
        stranger.close()


@pytest.mark.windows
def test_an_opening_in_pieces_is_accepted_and_who_brings_its_number_again_is_a_stranger(receiver: Talk) -> None:
    port = listening(receiver, flows=2)
    slow = knock(port, OPENING[:3])
    taken(receiver, slow, 3)
    slow.sendall(OPENING[3:])
    assert slow.recv(3) == ACCEPTANCE
    assert is_reset(knock(port, OPENING))
    other = knock(port, OPENING[:-1] + b"\1")
    assert receiver.ask("ready endpoint=1")["ok"]
    assert other.recv(3) == ACCEPTANCE


@pytest.mark.windows
def test_nobody_coming_is_a_time_out(receiver: Talk) -> None:
    listening(receiver, flows=3, wait_ms=200)
    answer = receiver.ask("ready endpoint=1")
    assert answer["error"] == "ETIMEDOUT"
    assert answer["message"].startswith("0 of 3 flows opened in time at 127.0.0.1 port ")
    assert answer["message"].endswith("no connection came")
    assert receiver.listening_ports() == []


@pytest.mark.windows
def test_a_closed_port_refuses(receiver: Talk, sender: Talk) -> None:
    port = joined(receiver, sender)
    answer = sender.ask(connecting(port).replace("endpoint=1", "endpoint=2"))
    assert answer["error"] == "ECONNREFUSED"
    assert answer["message"] == f"flow 0 to 127.0.0.1 port {port}: connect: Connection refused"


def test_a_peer_that_never_accepts_is_a_time_out(clock: FakeClock, mute: socket.socket) -> None:
    sender, port = clock.start(), mute.getsockname()[1]
    number = sender.send(connecting(port, wait_ms=300))
    peer, _ = mute.accept()
    with peer:
        assert peer.recv(20, socket.MSG_WAITALL) == OPENING
        clock.advance(0.3)
        (answer,) = sender.answer(number)
    assert answer["error"] == "ETIMEDOUT"
    expected = f"0 of 1 flows opened in time to 127.0.0.1 port {port}: connected, but not accepted"
    assert answer["message"] == expected


@pytest.mark.windows
def test_a_peer_that_accepts_wrongly_is_no_peer(sender: Talk, mute: socket.socket) -> None:
    number = sender.send(connecting(mute.getsockname()[1]))
    peer, _ = mute.accept()
    with peer:
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
    assert waiting.recv(3) == ACCEPTANCE
    assert receiver.ask("ready endpoint=1")["ok"]


def test_more_files_are_opened_than_the_shell_allows_at_first(binary: Path, sender: Talk) -> None:
    with Talk(["prlimit", "--nofile=40:4096", str(binary)]) as receiver:
        assert joined(receiver, sender, flows=100)


@pytest.mark.windows
@pytest.mark.parametrize("transport", ["tcp", "udp size=64"])
def test_the_first_free_port_of_a_range_is_taken(receiver: Talk, sender: Talk, transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        first = min(other.getsockname()[1], 65535 - 20)
        port = listening(receiver, extra=f"transport={transport} first_port={first} last_port={first + 20}")
        assert first < port <= first + 20
    assert sender.ask(connecting(port, extra=f"transport={transport}"))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]


@from_file
def test_a_firewall_is_told_by_how_it_refuses(lab: Lab, rule: str, error: str, message: str) -> None:
    receiver, sender = lab.start(), lab.start()
    firewall(lab, rule)
    port = listening(receiver)
    answer = sender.ask(connecting(port, wait_ms=500 if error == "ETIMEDOUT" else 60_000))
    assert answer["error"] == error
    assert f"to 127.0.0.1 port {port}: " in answer["message"]
    assert message in answer["message"]


@pytest.mark.parametrize(
    ("settings", "raises"),
    [
        ("net.core.somaxconn=1", "net.core.somaxconn"),
        ("net.ipv4.tcp_max_syn_backlog=4", "net.ipv4.tcp_max_syn_backlog"),
    ],
)
def test_a_full_queue_is_told_by_the_receiver_with_the_setting_that_helps(lab: Lab, settings: str, raises: str) -> None:
    """A stopped receiver accepts nothing, so that its queue is full for certain."""
    receiver, sender = lab.start(), lab.start()
    lab.run("sysctl", "-qw", "net.ipv4.tcp_syncookies=0", settings)
    port = listening(receiver, flows=16, wait_ms=1000)
    if raises.startswith("net.ipv4"):
        firewall(lab, "tcp flags & (syn|ack) == (syn|ack) drop")  # so that connections stay half open
    with paused(receiver.process):
        answer = sender.ask(connecting(port, flows=16, wait_ms=1000))
    assert answer["error"] == "ETIMEDOUT"
    told = receiver.ask("ready endpoint=1")
    assert told["error"] == "ENOBUFS"
    queue = 1 if settings.startswith("net.core") else 128
    found = re.fullmatch(
        rf"\d+ of 16 flows opened in time at 127\.0\.0\.1 port {port}: its listening socket, whose queue holds "
        rf"{queue}, dropped connections (\d+) times: raise {re.escape(raises)}",
        told["message"],
    )
    assert found, told
    assert int(found[1]) > 0


def test_a_firewall_that_limits_is_told_from_one_that_drops(lab: Lab) -> None:
    receiver, sender = lab.start(), lab.start()
    firewall(lab, "tcp flags & (syn|ack) == syn limit rate over 1/hour burst 2 packets drop")
    port = listening(receiver, flows=4, wait_ms=3000)
    answer = sender.ask(connecting(port, flows=4, wait_ms=3000))
    assert answer["error"] == "ETIMEDOUT"
    opened, _, why = answer["message"].partition(" of 4 flows opened in time to ")
    told = {"0": "no answer, not even a refusal (", "1": "no answer to the others (", "2": "no answer to the others ("}
    assert told[opened] in why  # 2, unless the machine was busy for three seconds
    assert receiver.ask("ready endpoint=1")["error"] == "ETIMEDOUT"


KINDS = ("", " test=pingpong size=4000", " test=blast size=4000", " test=file size=100000 disk=0")


def test_where_only_small_segments_pass_the_sender_says_so(lab: Lab) -> None:
    pairs = [(lab.start(), lab.start()) for _ in KINDS]
    ports = [joined(*pair, extra=f"mss=1000{kind}") for pair, kind in zip(pairs, KINDS, strict=True)]
    firewall(lab, "meta l4proto tcp meta length > 600 drop")
    for pair in pairs:
        started(*pair)
    eventually(lambda: all(in_vain(lab, port) for port in ports))
    for port, (receiver, sender) in zip(ports, pairs, strict=True):
        assert receiver.ask("stop endpoint=1")["ok"]
        assert sender.ask("stop endpoint=1")["ok"]
        says_so(sender, port)


def in_vain(lab: Lab, port: int) -> bool:
    """Tell whether a retransmission timer runs after three timeouts in a row."""
    shown = lab.run("ss", "-Htno", "dst", f"127.0.0.1:{port}")
    return re.search(r"timer:\(on,[^,]+,([3-9]|\d\d)\)", shown) is not None


def says_so(sender: Talk, port: int) -> None:
    ended = sender.event("ended")
    expected = (
        rf"flow 0 to 127\.0\.0\.1 port {port}: \d+ segments of at most (\d+) bytes were retransmitted, "
        r"(\d+) timeouts in a row, and not acknowledged; "
        r"(\d+) bytes were acknowledged before: check the MTU of the path"
    )
    found = re.fullmatch(expected, ended["message"])
    assert found, ended["message"]
    size, timeouts, acknowledged = map(int, found.groups())
    assert ended["error"] == "ETIMEDOUT"
    assert (size in (988, 1000), timeouts >= 3, acknowledged < 600) == (True, True, True)
    totals = report_of(sender).totals[0]
    assert (totals["timeouts"], totals["acked_bytes"]) == (timeouts, acknowledged)


def test_a_stream_that_arrives_leaves_nothing_unacknowledged(lab: Lab) -> None:
    _, sent = ran(lab.start, until=1_000_000)
    totals = sent.totals[0]
    assert (totals["unacked"], totals["timeouts"]) == (0, 0)
    # The 20 bytes of the opening and the two that open and end the connection are acknowledged, too.
    assert totals["bytes"] <= totals["acked_bytes"] <= totals["bytes"] + 22

"""The ports of receivers: nobody else can take them or their datagrams, and they can be used again at once."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from subprocess import PIPE

import pytest
from known import known
from lab import Lab
from processes import DEADLINE_S, running
from talk import TOKEN, Talk, completed, connecting, joined, reports, settings, started

PORT = 7000
ONE = f"first_port={PORT} last_port={PORT}"
UDP = "transport=udp size=64"
NOBODY = 65534
OPTIONS = ("", "SO_REUSEADDR", "SO_REUSEPORT")
ADDRESSES = ("127.0.0.1", "0.0.0.0")
PROGRAM = """
import errno, json, os, socket, sys
os.setgid({user}); os.setuid({user})
held = []
for line in sys.stdin:
    outcomes = []
    for kind, address, port, option in json.loads(line):
        made = socket.socket(socket.AF_INET, getattr(socket, kind))
        if option:
            made.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
        try:
            made.bind((address, port))
            if kind == "SOCK_STREAM":
                made.listen()
            held.append(made)
            outcomes.append("bound")
        except OSError as error:
            outcomes.append(errno.errorcode[error.errno])
    print(json.dumps(outcomes), flush=True)
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
Bind = Callable[[Sequence[tuple[str, str, int, str]]], list[str]]
"""Binds sockets of a kind, at an address and a port, with an option, and keeps them. Returns what became of each."""


@contextmanager
def somebody(lab: Lab, user: int = NOBODY) -> Iterator[Bind]:
    """Yield what another program in the namespace can bind, as this user."""
    command = [*lab.enter, sys.executable, "-c", PROGRAM.format(user=user)]
    with running(command, stdin=PIPE, stdout=PIPE) as process:

        def bind(wanted: Sequence[tuple[str, str, int, str]]) -> list[str]:
            known(process.stdin).write(json.dumps(wanted).encode() + b"\n")
            known(process.stdin).flush()
            outcomes: list[str] = json.loads(known(process.stdout).readline())
            return outcomes

        yield bind


def everything(*ports: int) -> list[tuple[str, str, int, str]]:
    return list(product(("SOCK_DGRAM", "SOCK_STREAM"), ADDRESSES, ports, OPTIONS))


def udp_ports(lab: Lab, agent: Talk) -> set[int]:
    lines = [line.split() for line in lab.run("ss", "-Huanp").splitlines()]
    return {int(words[3].rpartition(":")[2]) for words in lines if f",pid={agent.process.pid}," in words[-1]}


@as_root
@pytest.mark.parametrize("flows", [1, 10])
def test_nobody_can_bind_a_port_of_a_flow_and_each_flow_gets_its_own_datagrams(lab: Lab, flows: int) -> None:
    """While the receiver waits, when its flows are open, and while datagrams come; nor can a sender's port be bound."""
    receiver, sender = lab.start(), lab.start()
    side = settings(flows=flows, extra=UDP)
    with somebody(lab) as bind:
        port = receiver.ask(f"listen endpoint=1 address=127.0.0.1 {side}")["port"]
        assert set(bind(everything(port))) == {"EADDRINUSE"}
        assert sender.ask(f"connect endpoint=1 address=127.0.0.1 port={port} bind=127.0.0.1 {side}")["ok"]
        assert receiver.ask("ready endpoint=1")["ok"]
        ports = udp_ports(lab, sender)
        assert len(ports) == flows
        assert udp_ports(lab, receiver) == {port}
        datagrams = [wanted for wanted in everything(port, *ports) if wanted[0] == "SOCK_DGRAM"]
        assert set(bind(datagrams)) == {"EADDRINUSE"}
        started(receiver, sender, 400, "rate=51200")
        assert set(bind(datagrams)) == {"EADDRINUSE"}
        came, sent = reports(receiver, sender)
    for flow in range(flows):
        there, here = sent.datagrams[flow], came.datagrams[flow]
        assert 1 <= there["datagrams"] == here["datagrams"] == here["highest"]
        assert (here["strays"], here["duplicates"]) == (0, 0)


@pytest.mark.parametrize("flows", [1, 10])
@pytest.mark.parametrize("test", ["test=pingpong", "test=probe"])
def test_flows_that_share_a_port_get_their_own_answers(start: Callable[[], Talk], test: str, flows: int) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, flows=flows, interval_ms=20, extra=f"{UDP} {test}")
    started(receiver, sender, 200, "iterations=10" if "pingpong" in test else "")
    came, sent = reports(receiver, sender)
    for flow in range(flows):
        assert sent.datagrams[flow]["datagrams"] == came.datagrams[flow]["datagrams"] >= 1
        assert came.datagrams[flow]["strays"] == sent.datagrams[flow]["strays"] == 0


@as_root
@pytest.mark.parametrize("user", [NOBODY, 0])
@pytest.mark.parametrize("option", OPTIONS)
def test_a_port_that_another_program_has_is_passed_over_or_named(lab: Lab, option: str, user: int) -> None:
    """Even one of the same user that would share it."""
    receiver = lab.start()
    order = f"listen endpoint=1 address=127.0.0.1 {settings(extra=UDP)} first_port={PORT} last_port"
    with somebody(lab, user) as bind:
        assert bind([("SOCK_DGRAM", "0.0.0.0", PORT, option)]) == ["bound"]
        alone = receiver.ask(f"{order}={PORT}")
        assert alone["error"] == "EADDRINUSE"
        assert alone["message"] == f"bind 127.0.0.1 port {PORT} to {PORT}: none of these ports is free"
        assert receiver.ask(f"{order}={PORT + 1}")["port"] == PORT + 1


@as_root
def test_with_nobody_binding_all_the_time_a_port_is_the_receivers_or_refused(lab: Lab) -> None:
    """A receiver that has a port has it alone: the flow of a sender reaches it."""
    receiver, sender = lab.start(), lab.start()
    last = PORT + 3
    program = f"""
import os, socket, sys, threading
os.setgid({NOBODY}); os.setuid({NOBODY})
def bind():
    while not ended.is_set():
        for port in range({PORT}, {last + 1}):
            made = socket.socket()
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                made.bind(("127.0.0.1", port))
            except OSError:
                pass
            held.append(made)
            for old in held[:-2]:
                old.close()
            del held[:-2]
            ended.wait(0.0005)
held, ended = [], threading.Event()
threading.Thread(target=bind).start()
print("binds", flush=True)
sys.stdin.read()
ended.set()
"""
    taken = 0
    with running([*lab.enter, sys.executable, "-c", program], stdin=PIPE, stdout=PIPE) as other:
        assert known(other.stdout).readline() == b"binds\n"
        for number in range(1, 41):
            order = f"endpoint={number} address=127.0.0.1 {settings(extra=UDP)}"
            answer = receiver.ask(f"listen {order} first_port={PORT} last_port={last}")
            if not answer["ok"]:
                assert answer["message"] == f"bind 127.0.0.1 port {PORT} to {last}: none of these ports is free"
                continue
            taken += 1
            connected = sender.ask(f"connect {order} port={answer['port']} bind=127.0.0.1")
            assert connected["ok"], connected
            assert receiver.ask(f"ready endpoint={number}")["ok"]
            for agent in (receiver, sender):
                assert agent.ask(f"close endpoint={number}")["ok"]
    assert taken > 0


def is_free(receiver: Talk, extra: str = UDP) -> None:
    """Make a receiver on the port at once, and close it."""
    answer = receiver.ask(f"listen endpoint=9 address=127.0.0.1 {settings(extra=extra)} {ONE}")
    assert answer["ok"], answer
    assert receiver.ask("close endpoint=9")["ok"]


@pytest.mark.parametrize(
    "data", [b"", b"GET / HTTP/1.0\r\n\r\n\r\n", b"short", bytes.fromhex(TOKEN) + bytes([0, 0, 0, 9])]
)
def test_a_stranger_does_not_keep_the_port(lab: Lab, data: bytes) -> None:
    """Whether its connection was dropped, or was there when the flows were open, or when the receiver was closed."""
    stranger = (
        "import socket, sys\n"
        f"made = socket.create_connection(('127.0.0.1', {PORT}), {DEADLINE_S})\n"
        f"made.sendall({data!r})\n"
        "print('sent', flush=True)\n"
        "try: made.recv(1)\n"
        "except ConnectionResetError: print('reset', flush=True)\n"
        "else: print('ended', flush=True)\n"
    )
    receiver, sender = lab.start(), lab.start()
    for closes in (True, False):
        port = receiver.ask(f"listen endpoint=1 address=127.0.0.1 {settings()} {ONE}").get("port")
        assert port == PORT
        with running([*lab.enter, sys.executable, "-c", stranger], stdout=PIPE) as process:
            assert known(process.stdout).readline() == b"sent\n"
            assert closes or sender.ask(connecting(PORT))["ok"]
            assert receiver.ask("close endpoint=1")["ok"]
            assert known(process.stdout).readline() == b"reset\n"
        assert closes or sender.ask("close endpoint=1")["ok"]
        is_free(receiver)


KINDS = {
    "": "",
    "mptcp=1": "",
    "test=pingpong size=100": "iterations=5",
    "test=blast size=100": "iterations=5",
    "test=file size=1000 disk=0": "",
    UDP: "rate=512000",
    f"{UDP} test=pingpong": "iterations=5",
    f"{UDP} test=probe": "",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_test_can_follow_at_once_on_the_only_port(lab: Lab, kind: str) -> None:
    receiver, sender = lab.start(), lab.start()
    for _ in range(3):
        joined(receiver, sender, flows=2, extra=kind, listen=ONE)
        started(receiver, sender, 50, KINDS[kind])
        completed(receiver, sender)
        for agent in (receiver, sender):
            assert agent.ask("close endpoint=1")["ok"]


ENDS = (
    "never started",
    "stopped",
    "receiver stopped first",
    "closed",
    "receiver killed",
    "sender killed",
    "both ended",
)


@pytest.mark.parametrize("kind", ["", "test=pingpong size=100", UDP])
@pytest.mark.parametrize("end", ENDS)
def test_a_test_that_was_broken_off_does_not_keep_its_port(lab: Lab, kind: str, end: str) -> None:
    receiver, sender = lab.start(), lab.start()
    joined(receiver, sender, flows=3, extra=kind, listen=ONE)
    if end != "never started":
        started(receiver, sender)
    if end == "receiver stopped first":
        for agent in (receiver, sender):
            assert agent.ask("stop endpoint=1")["ok"]
            completed(agent)
    elif end == "stopped":
        ordered("stop", receiver, sender)
        completed(receiver, sender)
    if "ended" in end:
        assert [agent.end() for agent in (receiver, sender)] == [0, 0]
    elif "killed" in end:
        (killed, other) = (receiver, sender) if end.startswith("receiver") else (sender, receiver)
        killed.process.kill()
        killed.process.wait(DEADLINE_S)
        assert other.ask("close endpoint=1")["ok"]
    else:
        ordered("close", receiver, sender)
    is_free(lab.start())


def ordered(verb: str, *agents: Talk) -> None:
    """Give all agents this order, and then wait for their answers."""
    numbers = [(agent, agent.send(f"{verb} endpoint=1")) for agent in agents]
    assert all(agent.answer(number)[-1]["ok"] for agent, number in numbers)


def test_a_probe_of_a_path_does_not_keep_a_port(lab: Lab) -> None:
    """Neither that of its receiver, nor the one from which its connection comes."""
    receiver, sender = lab.start(), lab.start()
    port = receiver.ask(f"listen endpoint=1 address=127.0.0.1 {settings(extra=UDP)} {ONE}")["port"]
    path = f"address=127.0.0.1 port={port} bind=127.0.0.1 token={TOKEN}"
    assert sender.ask(f"probe target=1 source=7 {path} sizes=100 stream=1")["ok"]
    while "1:0:" not in sender.ask("probed last=0")["streams"]:
        pass
    assert receiver.ask("close endpoint=1")["ok"]
    assert lab.run("ss", "-Htan", "state", "time-wait") == ""
    is_free(receiver)

"""Probes: what arrives is reported by its sender's number and size, what does not by who refused it."""

from typing import Any

import pytest
from processes import eventually
from talk import TOKEN, Line, Start, Talk, listening

UDP = "transport=udp size=100"


def probe(sender: Talk, port: int, sizes: str = "100", address: str = "127.0.0.1", **how: Any) -> Line:
    keys = {"target": 1, "source": 7, "stream": 1, "bind": address, "token": TOKEN} | how
    words = " ".join(f"{key}={value}" for key, value in keys.items())
    return sender.ask(f"probe address={address} port={port} sizes={sizes} {words}")


def reported(agent: Talk, key: str, count: int = 1) -> list[str]:
    words: list[str] = []

    def enough() -> bool:
        words.extend(str(agent.ask("probed last=0")[key]).split())
        return len(words) >= count

    eventually(enough)
    return words


def test_datagrams_are_reported_by_sender_and_size_and_the_connection_with_its_time(
    receiver: Talk, sender: Talk
) -> None:
    for address in ("127.0.0.1", "::1"):
        answer = probe(sender, listening(receiver, address, extra=UDP), "20,1400,60000", address)
        assert answer == {"id": answer["id"], "ok": True, "refused": ""}
        assert sorted(reported(receiver, "heard", 3)) == ["7:1400", "7:20", "7:60000"]
        number, error, rtt_us = reported(sender, "streams")[0].split(":")
        assert (number, error) == ("1", "0")
        assert int(rtt_us) > 0
        assert sender.ask("probed last=1")["ok"]
        assert receiver.ask("close endpoint=1")["ok"]


@pytest.mark.windows
def test_a_datagram_with_another_token_is_not_reported(receiver: Talk, sender: Talk) -> None:
    port = listening(receiver, extra=UDP)
    assert probe(sender, port, "200", token="f" * 32)["ok"]
    assert probe(sender, port, "300", target=2)["ok"]
    assert reported(receiver, "heard") == ["7:300"]


def test_a_port_that_nobody_listens_on_is_refused_for_datagrams_and_connections(receiver: Talk, sender: Talk) -> None:
    address = "127.0.0.9"  # of no other test, whose receiver might get that port
    port = listening(receiver, address, extra=UDP)
    assert receiver.ask("close endpoint=1")["ok"]
    here = "127.0.0.1"  # else the connection might get the free port itself, and TCP connects a port to itself
    assert probe(sender, port, address=address, bind=here)["ok"]
    assert reported(sender, "errors") == [f"1:ECONNREFUSED:3:3:0:{address}"]
    assert probe(sender, port, address=address, bind=here, target=2)["ok"]
    assert [word.split(":")[1] for word in reported(sender, "streams")] == ["ECONNREFUSED"]


@pytest.mark.windows
def test_wrong_orders_are_refused_by_name(start: Start) -> None:
    agent = start()
    for how, wrong in (
        ({"sizes": "19"}, "sizes: expected 20 to 65507"),
        ({"sizes": "100,"}, "sizes: expected 20 to 65507"),
        ({"token": "short"}, "token: expected 32"),
        ({"target": 0}, "target: expected 1"),
        ({"source": 0}, "source: expected 1"),
        ({"stream": 2}, "stream: expected 0 or 1"),
        ({"bind": "::1"}, "bind: expected an address of the family of address"),
        ({"more": 1}, "more"),
    ):
        answer = probe(agent, 4711, **how)
        assert not answer["ok"]
        assert answer["error"] == "EPROTO"
        assert str(answer["message"]).startswith(wrong), answer
    assert not agent.ask("probed")["ok"]


@pytest.mark.windows
def test_targets_have_a_bound_and_are_forgotten_when_asked(receiver: Talk, sender: Talk) -> None:
    port = listening(receiver, extra=UDP)
    for target in range(1, 257):
        assert probe(sender, port, target=target, stream=0)["ok"]
    assert probe(sender, port, target=257, stream=0)["error"] == "ENOBUFS"
    assert sender.ask("probed last=1")["ok"]
    assert probe(sender, port, target=257, stream=0)["ok"]

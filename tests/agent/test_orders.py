"""Orders that make no sense are refused by name, and nothing is done."""

import pytest
from talk import TOKEN, Start, settings

from rigctl.protocol.lines import VERSION

LISTEN = f"listen endpoint=1 address=127.0.0.1 {settings()}"


def test_the_hello_says_who_it_is(start: Start) -> None:
    agent = start()
    assert agent.hello["protocol"] == VERSION
    assert agent.hello["pid"] == agent.process.pid
    assert agent.hello["cpus"] >= 1


def test_the_clock_runs(start: Start) -> None:
    agent = start()
    first, second = agent.ask("clock")["clock_ns"], agent.ask("clock")["clock_ns"]
    assert 0 < first < second


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("frobnicate", "unknown verb"),
        ("clock now=1", "now: unknown key"),
        ("start endpoint=1", "at_ns"),
        ("listen", "endpoint"),
        (LISTEN + " endpoint=2", "twice"),
        (LISTEN + " colour=red", "colour: unknown key"),
        (LISTEN + " loose", "key=value"),
        (LISTEN.replace(TOKEN, TOKEN[:-1]), "token"),
        (LISTEN.replace(TOKEN, "g" * 32), "token"),
        (LISTEN.replace("flows=1", "flows=0"), "flows"),
        (LISTEN.replace("flows=1", "flows=129"), "flows"),
        (LISTEN.replace("flows=1", "flows=1x"), "flows"),
        (LISTEN.replace("127.0.0.1", "localhost"), "address"),
        (LISTEN.replace("endpoint=1", "endpoint=65536"), "endpoint"),
        (LISTEN + " mss=87", "mss"),
        (LISTEN + " mss=32768", "mss"),
        (LISTEN + " window=0", "window"),
        (LISTEN + " window=-1", "window"),
        (LISTEN + " nodelay=2", "nodelay"),
        (LISTEN + " congestion=" + "x" * 16, "congestion"),
        (f"connect endpoint=1 address=::1 port=1 bind=127.0.0.1 {settings()}", "family"),
    ],
)
def test_an_order_without_sense_is_refused_by_name(start: Start, order: str, said: str) -> None:
    agent = start()
    answer = agent.ask(order)
    assert (answer["ok"], answer["error"]) == (False, "EPROTO")
    assert said in answer["message"]
    assert agent.listening_ports() == []
    assert agent.ask("close endpoint=1")["error"] == "ENOENT"


@pytest.mark.parametrize(
    "line",
    [b"1 clock\x00\n", b"1 cl\xffck\n", b"x clock\n", b"-1 clock\n", b"0 clock\n", b"99999999999 clock\n", b"1\n"],
)
def test_rubbish_is_refused_and_the_next_order_is_served(start: Start, line: bytes) -> None:
    agent = start()
    agent.write(line)
    assert agent.ask("clock")["ok"] in (True, False)
    assert agent.ask("ping")["ok"] is True


def test_a_line_that_is_too_long_is_refused_whole(start: Start) -> None:
    agent = start()
    agent.write(b"7 clock " + b"x" * 5000 + b"\n")
    answer = agent.answer(7)[-1]
    assert answer["error"] == "EPROTO"
    assert "1024" in answer["message"]
    assert agent.ask("ping")["ok"]


def test_what_the_kernel_refuses_is_said_with_its_errno(start: Start) -> None:
    agent = start()
    assert agent.ask(LISTEN.replace("127.0.0.1", "192.0.2.1"))["error"] == "EADDRNOTAVAIL"
    assert agent.ask(LISTEN + " congestion=nosuch")["error"] == "ENOENT"
    assert agent.ask(LISTEN)["ok"]


def test_an_endpoint_number_serves_once_at_a_time(start: Start) -> None:
    agent = start()
    assert agent.ask(LISTEN)["ok"]
    assert agent.ask(LISTEN)["error"] == "EEXIST"
    assert agent.ask("report endpoint=1")["error"] == "EBUSY"
    assert agent.ask("start endpoint=1 at_ns=1 duration_ms=1")["error"] == "EINVAL"
    assert agent.ask("close endpoint=1")["ok"]
    assert agent.listening_ports() == []
    assert agent.ask(LISTEN)["ok"]

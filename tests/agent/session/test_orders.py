"""Orders that make no sense are refused by name, and nothing is done."""

import pytest
from cases import from_file
from talk import TOKEN, Talk, joined, settings

LISTEN = f"listen endpoint=1 address=127.0.0.1 {settings()}"


@pytest.mark.windows
@from_file
def test_an_order_without_sense_is_refused_by_name(agent: Talk, order: str, message: str) -> None:
    answer = agent.ask(order.replace("LISTEN", LISTEN).replace("TOKEN", TOKEN))
    assert (answer["ok"], answer["error"]) == (False, "EPROTO")
    assert message in answer["message"]
    assert agent.listening_ports() == []
    assert agent.ask("close endpoint=1")["error"] == "ENOENT"


@pytest.mark.windows
@pytest.mark.parametrize(
    ("line", "number", "message"),
    [(b"4711", 4711, "verb"), (b"1 clock\x00", 0, "ASCII"), (b"1 cl\xffck", 0, "ASCII"), (b"x clock", 0, "number"),
     (b"-1 clock", 0, "number"), (b"0 clock", 0, "number"), (b"99999999999 clock", 0, "number"),
     (b"4711 clock " + b"x" * 5000, 4711, "4096")],
)  # fmt: skip
def test_rubbish_is_refused_and_the_next_order_is_served(agent: Talk, line: bytes, number: int, message: str) -> None:
    agent.write(line + b"\n")
    answer = agent.answer(number)[-1]
    assert answer["error"] == "EPROTO"
    assert message in answer["message"]
    assert agent.ask("ping")["ok"]


def test_an_endpoint_number_serves_once_at_a_time_and_what_the_kernel_refuses_takes_none(receiver: Talk) -> None:
    assert receiver.ask(LISTEN.replace("127.0.0.1", "192.0.2.1"))["error"] == "EADDRNOTAVAIL"
    assert receiver.ask(LISTEN + " congestion=nosuch")["error"] == "ENOENT"
    for folder, why in (("/nowhere", "No such file or directory"), ("/dev/shm", "it is in memory, not on a disk")):
        answer = receiver.ask(f"{LISTEN} test=file size=9 disk=1 folder={folder}")
        assert (answer["ok"], answer["message"]) == (False, f"folder {folder}: {why}")
    for _ in range(2):
        assert receiver.ask(LISTEN)["ok"]
        assert receiver.ask(LISTEN)["error"] == "EEXIST"
        assert receiver.ask("report endpoint=1")["error"] == "EBUSY"
        assert receiver.ask("start endpoint=1 at_ns=1 duration_ms=1")["error"] == "EINVAL"
        assert receiver.ask("close endpoint=1")["ok"]
        assert receiver.listening_ports() == []


@from_file
def test_a_start_without_sense_is_refused_before_any_traffic(
    receiver: Talk, sender: Talk, what: str, how: str, message: str
) -> None:
    joined(receiver, sender, extra=what, interval_ms=60000)
    for agent in (receiver, sender):
        answer = agent.ask(f"start endpoint=1 at_ns=1 {how}")
        assert (answer["ok"], answer["message"]) == (False, message)

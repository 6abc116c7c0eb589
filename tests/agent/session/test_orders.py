"""Orders that make no sense are refused by name, and nothing is done."""

import pytest
from cases import from_file
from talk import TOKEN, Talk, joined, settings

LISTEN = f"listen endpoint=1 address=127.0.0.1 {settings()}"


@pytest.mark.windows
@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("frobnicate", "unknown verb"),
        ("clock now=1", "now: unknown key"),
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
        (LISTEN + " nodelay=2", "nodelay"),
        (LISTEN + " congestion=" + "x" * 16, "congestion"),
        (f"connect endpoint=1 address=::1 port=1 bind=127.0.0.1 {settings()}", "family"),
        (LISTEN + " transport=udp", "size: expected 16 to 65507"),
        (LISTEN + " transport=udp size=15", "size: expected 16 to 65507"),
        (LISTEN + " transport=udp test=pingpong size=65508", "size: expected 1 to 65507"),
        (LISTEN + " transport=udp test=blast size=64", "transport: such a test goes over tcp"),
        (LISTEN + " transport=sctp", "transport: expected tcp or udp"),
        (LISTEN + " test=probe size=64", "transport: such a test goes over udp"),
        (LISTEN + " transport=udp test=probe size=15", "size: expected 16 to 65507"),
        (LISTEN + " test=nonsense size=1", "test: expected pingpong, blast, file or probe"),
        (LISTEN + " test=pingpong", "size: expected 1 to 16777216"),
        (LISTEN + " test=pingpong size=0", "size: expected 1 to 16777216"),
        (LISTEN + " test=blast size=16777217", "size: expected 1 to 16777216"),
        (LISTEN + " test=pingpong size=1 busy=2", "busy: expected 0 or 1"),
        (LISTEN + " test=blast size=1 busy=1", "busy: unknown key"),
        (LISTEN + " size=1", "size: unknown key"),
        (LISTEN + " test=file size=9 disk=1", "folder: expected a folder, at most 255 bytes"),
        (LISTEN + " test=file size=9", "disk: expected 0 or 1"),
        (LISTEN + " test=file size=9 disk=0 transport=udp", "transport: such a test goes over tcp"),
        (LISTEN + " copy=yes", "copy: expected 0 or 1"),
        (LISTEN + " zerocopy=1", "zerocopy: unknown key"),
        (LISTEN + " copy=1 test=blast size=8", "copy: unknown key"),
        (LISTEN + " dscp=64", "dscp: expected 0 to 63"),
        (LISTEN + " transport=udp size=100 mptcp=1", "mptcp: for tests over tcp only"),
        (LISTEN + " mptcp=2", "mptcp: expected 0 or 1"),
        (LISTEN + " first_port=5200 last_port=5199", "first_port: expected with a last_port that is not below it"),
        (LISTEN + " last_port=5200", "first_port: expected with a last_port that is not below it"),
        (LISTEN + " first_port=0 last_port=5", "first_port: expected 1 to 65535"),
        (LISTEN + " first_port=5 last_port=65536", "last_port: expected 1 to 65535"),
    ],
)
def test_an_order_without_sense_is_refused_by_name(agent: Talk, order: str, message: str) -> None:
    answer = agent.ask(order)
    assert (answer["ok"], answer["error"]) == (False, "EPROTO")
    assert message in answer["message"]
    assert agent.listening_ports() == []
    assert agent.ask("close endpoint=1")["error"] == "ENOENT"


@pytest.mark.windows
@pytest.mark.parametrize(
    ("line", "number", "message"),
    [(b"4711", 4711, "verb"), (b"1 clock\x00", 0, "ASCII"), (b"1 cl\xffck", 0, "ASCII"), (b"x clock", 0, "number"),
     (b"-1 clock", 0, "number"), (b"0 clock", 0, "number"), (b"99999999999 clock", 0, "number"),
     (b"4711 clock " + b"x" * 5000, 4711, "1024")],
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

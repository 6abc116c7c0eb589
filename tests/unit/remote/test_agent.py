"""The agent's reader and writer, over streams in memory that speak the real protocol, or rubbish."""

import asyncio
import gc
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest
from jumping_clock import JumpingClock
from processes import eventually_async, turns
from wire import HELLO, LAST, TOTALS

from rigctl.base.errors import NodeError
from rigctl.protocol.orders import Clock, Connect, Listen, Ping, Sockets, Start, Stop
from rigctl.remote import agent as agent_module
from rigctl.remote.agent import Agent, RefusedError, running
from rigctl.remote.clocks import estimate_offset
from rigctl.remote.host import RemoteProcess
from rigctl.remote.windows.install import HELD_S
from rigctl.settings import NODELAY, WINDOW, Settings

Replies = list[bytes]
Speak = Callable[[int, str, dict[str, str]], Replies]


class FakeAgent:
    """Stand in for the process of an agent: greet the controller, and answer each order by `speak`."""

    def __init__(self, speak: Speak, *greeting: bytes) -> None:
        self.speak, self.orders, self.said = speak, list[str](), asyncio.Queue[bytes]()
        self.signs_of_life, self.ended = 0, False
        self.readline = self.said.get
        self.say(*greeting)

    def say(self, *lines: bytes) -> None:
        for line in lines:
            self.said.put_nowait(line)

    def write(self, data: bytes) -> None:
        assert data.endswith(b"\n")
        if data == b"\n":
            self.signs_of_life += 1
            return
        number, verb, *words = data.decode().split()
        self.orders.append(verb)
        self.say(*self.speak(int(number), verb, dict(word.split("=", 1) for word in words)))

    async def drain(self) -> None:
        await turns()

    def write_eof(self) -> None:
        self.ended = True
        self.say(b"")

    async def last_words(self) -> str:
        return "Killed (exit code 137)"


def line(**values: object) -> bytes:
    return json.dumps(values).encode() + b"\n"


def obliging(number: int, verb: str, keys: dict[str, str]) -> Replies:
    answer = {"id": number, "ok": True} | {"clock": {"clock_ns": 1}, "listen": {"port": 40001}}.get(verb, {})
    if verb != "report":
        return [line(**answer)]
    rows = {"id": number, "flow": 0, "from": 0, "columns": ["t_ns", "bytes"], "rows": [[1100, 5], [100, 4]]}
    totals = TOTALS | {"id": number, "first_byte_ns": 1001, "last_byte_ns": None}
    return [line(**totals), line(**rows), line(**LAST | answer | {"endpoint": int(keys["endpoint"])})]


def mute(*_: object) -> Replies:
    return []


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    return JumpingClock(monkeypatch, agent_module)


@asynccontextmanager
async def talking(speak: Speak = obliging, **hello: object) -> AsyncIterator[tuple[Agent, FakeAgent]]:
    """An agent whose greeting has `hello` in place of the usual fields."""
    fake = FakeAgent(speak, line(**HELLO | hello))
    async with running("pi1", cast(RemoteProcess, fake)) as agent:
        yield agent, fake


SOCKETS = Sockets("0" * 32, flows=1, interval_ms=100, wait_ms=500)
LISTEN = Listen(1, "10.0.0.2", SOCKETS)


async def test_a_cell_is_ordered_answer_by_answer() -> None:
    async with talking() as (agent, fake):
        assert agent.hello.cpus == 4
        settings = Settings({WINDOW: 65536, NODELAY: True})
        assert await agent.listen(replace(LISTEN, sockets=replace(SOCKETS, settings=settings))) == 40001
        await agent.connect(Connect(1, "10.0.0.2", 40001, "10.0.0.1", SOCKETS))
        await agent.ready(1)
        await agent.start(Start(1, at_ns=1, duration_ms=1000))
        await agent.stop(1)
        assert (await agent.report(1)).sides[0].series.columns["t_ns"] == [1100, 1200]
        await agent.close(1)
        assert (await agent.order(Clock(), deadline_s=0)).ok  # it lies unread when the deadline has passed
    assert fake.orders == ["listen", "connect", "ready", "start", "stop", "report", "close", "clock"]
    assert fake.ended


async def test_answers_may_come_in_any_order() -> None:
    async with talking(lambda number, *_: [line(id=at, ok=True) for at in (2, 1) if number == 2]) as (agent, _):
        await asyncio.gather(agent.ready(1), agent.stop(1))


async def test_a_refusal_tells_what_and_why_and_the_agent_lives_on() -> None:
    full = {"ok": False, "error": "EADDRNOTAVAIL", "message": "bind \x1b]0;pwned\x07: Cannot assign"}
    async with talking(lambda number, *_: [line(id=number, **full)]) as (agent, fake):
        with pytest.raises(RefusedError) as caught:
            await agent.listen(LISTEN)
        assert str(caught.value) == "pi1: listen: bind ?]0;pwned?: Cannot assign (EADDRNOTAVAIL)"
        assert caught.value.error == "EADDRNOTAVAIL"
        fake.speak = obliging
        await agent.stop(1)


async def test_an_agent_that_never_answers_costs_its_deadline_and_a_late_answer_is_ignored(clock: JumpingClock) -> None:
    async with talking(mute) as (agent, fake):
        with pytest.raises(NodeError, match=r"pi1: no answer to clock within 2 s"):
            await agent.order(Clock(), deadline_s=2)
        fake.speak = obliging
        fake.say(line(id=1, ok=True, clock_ns=1))
        await agent.stop(1)
        assert not agent.ended


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"Segmentation fault\n", "expected one JSON object in ASCII, got: Segmentation fault"),
        (b'{"id":99,"ok":true}\n', "an answer to order 99, which was not sent"),
        (b"x" * 16385, "expected at most 16384 bytes per line"),
        (line(**HELLO), "a second hello"),
        (line(**(TOTALS | {"id": 1})), "a flow's report in answer to stop"),
    ],
)
async def test_a_broken_protocol_fails_what_waits_and_all_that_follows(said: bytes, expected: str) -> None:
    broken = f"^pi1: the agent violated the protocol: .*{re.escape(expected)}"
    async with talking(lambda *_: [said]) as (agent, _):
        for _ in range(2):
            with pytest.raises(NodeError, match=broken) as caught:
                await agent.order(Stop(1))
            assert (agent.ended, str(caught.value).isprintable()) == (True, True)


async def test_when_the_agent_ends_every_order_that_waits_fails_with_its_last_words() -> None:
    async with talking(mute) as (agent, fake):
        orders = [asyncio.create_task(agent.order(Stop(n))) for n in (1, 2, 3)]
        end = asyncio.create_task(agent.wait_endpoint(1))
        await eventually_async(lambda: fake.orders == ["stop"] * 3)
        await turns()  # the wait for the end begins, too
        fake.say(b"")
        failures = await asyncio.gather(*orders, end, return_exceptions=True)
    assert [str(failure) for failure in failures] == ["pi1: the agent ended: Killed (exit code 137)"] * 4


async def test_an_agent_that_does_not_greet_or_has_another_protocol_is_given_up(clock: JumpingClock) -> None:
    with pytest.raises(NodeError, match=r"pi1: the agent sent nothing within 70 s of its start"):
        async with running("pi1", cast(RemoteProcess, FakeAgent(mute)), held_s=HELD_S):
            pass
    silent = FakeAgent(mute)
    with pytest.raises(NodeError, match=r"pi1: the agent sent nothing within 10 s of its start"):
        async with running("pi1", cast(RemoteProcess, silent)):
            pass
    assert silent.signs_of_life == agent_module.HELLO_DEADLINE_S / agent_module.LOOK_S - 1
    with pytest.raises(NodeError, match=r"pi1: the agent speaks protocol 4.*rigctl agent build"):
        async with talking(protocol=4):
            pass


async def test_events_reach_those_who_asked_for_them() -> None:
    seen: list[tuple[int, int]] = []
    async with talking() as (agent, fake):
        await agent.listen(LISTEN)
        agent.on_progress(1, lambda clock_ns, total: seen.append((clock_ns, total)))
        fake.say(line(event="progress", clock_ns=7, bytes={"1": 10, "2": 20}))
        fake.say(line(event="ended", endpoint=1, error=None, message=None))
        await agent.wait_endpoint(1)
        await agent.wait_endpoint(1)  # it stays ended
        assert seen == [(7, 10)]
        await agent.listen(LISTEN)  # the number again: its new end
        fake.say(line(event="ended", endpoint=1, error="ECONNRESET", message="flow 2: recv: Connection reset by peer"))
        with pytest.raises(NodeError, match=r"pi1: flow 2: recv: Connection reset by peer \(ECONNRESET\)"):
            await agent.wait_endpoint(1)


async def test_silence_is_filled_with_pings_and_an_unanswered_one_ends_the_agent(clock: JumpingClock) -> None:
    async with talking() as (agent, fake):
        began_s = clock.monotonic()
        await eventually_async(lambda: fake.orders == [Ping.VERB] * 2)
        assert clock.monotonic() - began_s == pytest.approx(2 * agent_module.PING_AFTER_S, abs=0.1)
        fake.speak = mute
        await eventually_async(lambda: agent.ended)
        with pytest.raises(NodeError, match="no answer to ping"):
            await agent.order(Stop(1))


@pytest.mark.parametrize(("buckets", "lines"), [(1000, 2), (0, 4)])
async def test_buckets_and_lines_weigh_as_rows(monkeypatch: pytest.MonkeyPatch, buckets: int, lines: int) -> None:
    monkeypatch.setattr(agent_module, "ROWS_LIMIT", 60)
    async with talking(lambda number, *_: [line(id=number, flow=0, buckets=[[0, 0]] * buckets)] * lines) as (agent, _):
        with pytest.raises(NodeError, match="a report of over 60 rows"):
            await agent.report(1)


async def test_an_end_that_nobody_waits_for_is_no_unretrieved_exception() -> None:
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["message"]))
    async with talking(lambda *_: [b"garbage\n"]) as (agent, _):
        for order in (agent.order(Stop(1)), agent.listen(LISTEN)):
            with pytest.raises(NodeError):
                await order
    del agent
    gc.collect()
    assert problems == []


async def test_the_clock_offset_comes_from_the_quickest_exchange(clock: JumpingClock) -> None:
    def queued(number: int, verb: str, keys: dict[str, str]) -> Replies:
        # A queue before the clock is read: such an exchange is 1.5 ms off.
        clock.now_s += 0.0001 if number == 3 else 0.003
        return [line(id=number, ok=True, clock_ns=clock.monotonic_ns() + 5_000_000_000)]

    async with talking(queued) as (agent, fake):
        offset = await estimate_offset(agent)
    assert fake.orders == ["clock"] * 8
    assert abs(offset.offset_ns - 5_000_000_000) <= offset.error_ns == pytest.approx(50_000, abs=5000)

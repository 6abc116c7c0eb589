"""Programs on a node over one SSH channel, under a real OpenSSH server: whatever ends the channel ends them all."""

import asyncio
import os
import signal
from itertools import count

import pytest
from openssh import Start
from processes import DEADLINE_S, all_commands, ancestors, eventually_async

from rigctl.base.errors import NodeError
from rigctl.remote.children import SHELL_OUTLIVES_S, children_on
from rigctl.remote.host import connected

pytestmark = pytest.mark.usefixtures("home")
_DEADLINES = count(100_000 + os.getpid() * 100, 20)


@pytest.fixture
def deadline_s() -> int:
    """A deadline that no other test has: it names this test's processes."""
    return next(_DEADLINES)


def survivors(deadline_s: int) -> list[str]:
    marks = [f" {deadline_s + more} " for more in (1, SHELL_OUTLIVES_S)]
    return [words for _, words in all_commands() if any(mark in words for mark in marks)]


async def test_programs_run_side_by_side_and_each_gives_its_own_output(sshd: Start, deadline_s: int) -> None:
    async with connected(sshd().node()) as host, children_on(host, deadline_s) as children:
        one, other = children.start(["seq", "20000"]), children.start(["seq", "30001", "50000"])
        failing = children.start(["ls", "/no/such/file"])
        async with asyncio.timeout(DEADLINE_S):
            first, second, third = [await children.ended(number) for number in (one, other, failing)]
    assert first.output.split() == [b"%d" % number for number in range(1, 20001)]
    assert second.output.split() == [b"%d" % number for number in range(30001, 50001)]
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert third.exit_code == 2
    assert b"No such file" in third.output
    assert children.result(one) == first
    await eventually_async(lambda: survivors(deadline_s) == [])


async def test_a_connection_that_is_cut_ends_every_program(sshd: Start, deadline_s: int) -> None:
    server = sshd()
    node = server.node()
    async with connected(node) as host, children_on(host, deadline_s) as children:
        number = children.start(["sleep", "600"])
        await eventually_async(lambda: len(survivors(deadline_s)) >= 3)
        for pid, words in list(all_commands()):
            if words.startswith("sshd: ") and server.process.pid in ancestors(pid):
                os.kill(pid, signal.SIGKILL)
        await eventually_async(lambda: survivors(deadline_s) == [])
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(NodeError, match=node.name):
                await children.ended(number)


async def test_a_program_ends_at_its_deadline_even_where_nobody_notices_a_cut(sshd: Start) -> None:
    async with connected(sshd().node()) as host, children_on(host, 0.2) as children:
        async with asyncio.timeout(DEADLINE_S):
            ended = await children.ended(children.start(["sleep", "600"]))
        assert ended.exit_code == 124  # timeout(1)

"""Waiting for a node that is in use: the queue, over real SSH, and what becomes of it when somebody dies."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from locks import LOCKS, TOOLS, hosts_of, links
from openssh import GUEST_ID, Sshd, rig_of
from processes import DEADLINE_S, running

from rigctl.base.errors import BusyError
from rigctl.remote import lock, queue
from rigctl.remote.host import Host
from rigctl.remote.lock import locked
from rigctl.remote.queue import Turn, queued
from rigctl.remote.reach import connected

Start = Callable[..., Sshd]
pytestmark = pytest.mark.usefixtures("home", "often")

WAIT = """
import asyncio, pathlib, sys
from rigctl.records import Link
from rigctl.remote.queue import queued
from rigctl.remote.reach import connected
from rigctl.rig.inventory import Node, Rig

async def wait(name, port, key, known):
    node = Node(name, "127.0.0.1", Link(None, None), port=int(port), key=pathlib.Path(key),
                known_hosts=pathlib.Path(known), data_address="127.0.0.1")
    said = lambda line: print(line, flush=True)
    async with connected(Rig("r", "", {name: node}, None), [name]) as hosts, queued(hosts, "killed", 60, said) as turn:
        await turn.come()
        print("mine", flush=True)
        await asyncio.sleep(60)

asyncio.run(wait(*sys.argv[1:]))
"""


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "POLL_S", 0.05)


def ticket_pid(name: str) -> int:
    """Of the only ticket."""
    (link,) = LOCKS.glob(f"*-{name}.queue.*")
    return int(str(link.readlink()).split(":")[0])


@asynccontextmanager
async def in_line(hosts: dict[str, Host], who: str, said: list[str], wait_s: float = 30) -> AsyncIterator[Turn]:
    async with queued(hosts, who, wait_s, said.append) as turn:
        yield turn


async def has_said(said: list[str], text: str) -> None:
    async with asyncio.timeout(20):
        while not any(re.search(text, line) for line in said):
            await asyncio.sleep(0.02)


async def test_first_come_first_served_and_who_is_ahead_is_shown(sshd: Start, name: str) -> None:
    server, order = sshd("MaxSessions 50"), list[str]()
    places = {"bob": "nobody", "carl": "1 run", "dora": "2 runs"}

    async def run(who: str, hosts: dict[str, Host], said: list[str]) -> None:
        async with in_line(hosts, who, said) as turn:
            await turn.come()
            async with turn.kept(), locked(hosts, who, queue=False):
                order.append(who)
                await asyncio.sleep(0.1)

    async with hosts_of(server, name) as hosts, asyncio.timeout(60), asyncio.TaskGroup() as group:
        async with locked(hosts, "anna@lab7 pid 4711"):
            for who, place in places.items():
                said: list[str] = []
                group.create_task(run(who, hosts, said))
                await has_said(said, f"^{name} is in use by anna@lab7 pid 4711, since .*; {place} ahead in the queue")
    assert order == ["bob", "carl", "dora"]
    assert links(name) == []


async def test_a_run_that_does_not_wait_leaves_the_lock_to_those_who_do(sshd: Start, name: str) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with in_line(hosts, "bob", []) as turn:
            await turn.come()
            expected = rf"^{name}: the next turn is that of bob, since .*\. Wait for yours with"
            with pytest.raises(BusyError, match=expected):
                async with locked(hosts, "hasty"):
                    pass
            async with locked(hosts, "bob", queue=False):
                pass
        async with locked(hosts, "hasty"):
            pass


async def test_a_wait_ends_in_time_with_one_message(sshd: Start, name: str) -> None:
    async with hosts_of(sshd(), name) as hosts, locked(hosts, "anna"), in_line(hosts, "bob", []):
        async with in_line(hosts, "carl", [], wait_s=0.2) as turn:
            with pytest.raises(BusyError) as caught:
                await turn.come()
    message = rf"{name}: in use by anna, since .*; waited for 200 ms\. Wait longer \(--wait\), or end it .*"
    assert re.fullmatch(message, str(caught.value))


@pytest.mark.parametrize("with_bash", [True, False])
async def test_a_waiter_that_is_killed_is_out_of_the_queue(
    sshd: Start, name: str, with_bash: bool, tmp_path: Path
) -> None:
    server, said = sshd(*([] if with_bash else [f'SetEnv "PATH={without_bash(tmp_path)}"'])), list[str]()
    command = [sys.executable, "-c", WAIT, name, str(server.port), str(server.key), str(server.known_hosts)]
    async with hosts_of(server, name) as hosts, hosts_of(server, name) as other:
        async with locked(hosts, "anna"):
            with running(command, stdout=subprocess.PIPE) as waiter:
                assert waiter.stdout is not None
                assert b"in use by anna" in await asyncio.to_thread(waiter.stdout.readline)
                async with in_line(other, "bob", said) as turn, asyncio.timeout(30):
                    coming = asyncio.create_task(turn.come())
                    await has_said(said, "1 run ahead")
                    waiter.send_signal(signal.SIGKILL)
                    waiter.wait(DEADLINE_S)
                    await has_said(said, "nobody ahead")
                    coming.cancel()
    assert links(name) == []


async def test_a_ticket_whose_shell_is_killed_counts_no_more_and_its_owner_is_no_longer_waited_for(
    sshd: Start, name: str
) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with in_line(hosts, "bob", []) as first:
            await first.come()
            os.kill(ticket_pid(name), signal.SIGKILL)
            async with in_line(hosts, "carl", []) as second, asyncio.timeout(20):
                await second.come()
                assert len(links(name)) == 1, "the dead one is removed"
                await first.come()  # its node is lost: opening the node is left to tell why
    assert links(name) == []


async def test_a_holder_that_is_killed_lets_the_first_one_in(sshd: Start, name: str) -> None:
    said: list[str] = []
    async with hosts_of(sshd(), name) as hosts, in_line(hosts, "bob", said) as turn, asyncio.timeout(30):
        async with locked(hosts, "anna", queue=False):
            coming = asyncio.create_task(turn.come())
            await has_said(said, "in use by anna")
            (lock,) = (link for link in links(name) if ".queue." not in link.name)
            os.kill(int(str(lock.readlink()).split(":")[0]), signal.SIGKILL)
            await coming
            async with locked(hosts, "bob", queue=False):
                pass
    assert links(name) == []


async def test_two_runs_that_want_the_same_nodes_in_another_order_both_come_to_their_turn(
    sshd: Start, name: str
) -> None:
    server, done = sshd("MaxSessions 50"), list[str]()
    names = (f"{name}a", f"{name}b")

    async def run(who: str, wanted: tuple[str, ...]) -> None:
        async with hosts_of(server, *wanted) as hosts:
            for _ in range(2):
                async with in_line(hosts, who, []) as turn:
                    await turn.come()
                    async with turn.kept(), locked(hosts, who, queue=False):
                        done.append(who)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(run("x", names))
        group.create_task(run("y", names[::-1]))
    assert sorted(done) == ["x"] * 2 + ["y"] * 2
    assert links(name) == []


async def test_users_of_one_node_stand_in_one_queue(sshd: Start, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes a second user")
    server = sshd(sudoers="root ALL=(ALL) ALL\n")  # with a user beside root
    server.inside("/mnt/rigguest/authorized_keys").chmod(0o644)
    said: list[str] = []
    root = rig_of(replace(server.node(name), user="root"))
    async with hosts_of(server, name) as guests, connected(root, [name]) as roots, asyncio.timeout(40):
        async with in_line(guests, "a guest", []) as first, in_line(roots, "root", said) as second:
            await first.come()
            coming = asyncio.create_task(second.come())
            await has_said(said, f"{name} is free; next is a guest, since .*; 1 run ahead")
            (ticket,) = Path(f"/tmp/rigctl-locks-{GUEST_ID}").glob(f"*-{name}.queue.*")
            os.kill(int(str(ticket.readlink()).split(":")[0]), signal.SIGKILL)
            await coming


async def test_a_ticket_that_no_rigctl_made_keeps_nobody_waiting(sshd: Start, name: str) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    targets = ("nothing", f"1:1:{boot}", f"1:1:{boot}:0 dead", "9" * 4000)
    numbers = ("1", "-1", "08", "x", "99999999999999999999")
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna"):
            (link,) = links(name)
        for target in targets:
            forged = [link.with_name(f"{link.name}.queue.{number}") for number in numbers]
            for ticket in forged:
                ticket.symlink_to(target)
            async with in_line(hosts, "bob", []) as turn, asyncio.timeout(20):
                await turn.come()
            for ticket in forged:
                ticket.unlink(missing_ok=True)


async def test_a_place_outlives_what_is_done_meanwhile(sshd: Start, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "SILENCE_S", 2)
    monkeypatch.setattr(queue, "SIGN_OF_LIFE_S", 0.2)
    async with hosts_of(sshd(), name) as hosts, in_line(hosts, "bob", []) as turn:
        await turn.come()
        async with turn.kept():
            until_s = time.monotonic() + 3
            while time.monotonic() < until_s:
                assert ticket_pid(name)
                await asyncio.sleep(0.2)
        await turn.come()


def without_bash(tmp_path: Path) -> Path:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool) or "")
    return tools

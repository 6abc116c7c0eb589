"""One run at a time per node: the lock, held over real SSH, and how it ends."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from locks import LOCKS, TOOLS, hosts_of, links
from openssh import GUEST_ID, Sshd, rig_of
from processes import DEADLINE_S, running
from torture import TIMES

from rigctl.base.errors import NodeError, RigError
from rigctl.remote import lock
from rigctl.remote.host import Host
from rigctl.remote.lock import locked
from rigctl.remote.reach import connected

Start = Callable[..., Sshd]
pytestmark = pytest.mark.usefixtures("home")

HOLD = """
import asyncio, pathlib, sys
from rigctl.records import Link
from rigctl.remote.lock import locked
from rigctl.remote.reach import connected
from rigctl.rig.inventory import Node, Rig

async def hold(name, port, key, known):
    node = Node(name, "127.0.0.1", Link(None, None), port=int(port), key=pathlib.Path(key),
                known_hosts=pathlib.Path(known), data_address="127.0.0.1")
    async with connected(Rig("r", "", {name: node}, None), [name]) as hosts, locked(hosts, "anna@lab7 pid 4711"):
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(hold(*sys.argv[1:]))
"""


def holder_pid(name: str) -> int:
    (link,) = links(name)
    return int(str(link.readlink()).split(":")[0])


async def free_within(hosts: dict[str, Host], seconds: float) -> float:
    """How long it took until the lock could be had."""
    began = time.monotonic()
    while True:
        try:
            async with locked(hosts, "next"):
                return time.monotonic() - began
        except NodeError:
            if time.monotonic() - began > seconds:
                raise
            await asyncio.sleep(0.05)


async def test_a_lock_is_held_while_its_block_lasts_and_leaves_nothing(sshd: Start, name: str) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna@lab7 pid 4711"):
            pid = holder_pid(name)
            assert Path(f"/proc/{pid}").exists()
        assert links(name) == []
        assert not Path(f"/proc/{pid}").exists()


async def test_who_holds_it_and_since_when_is_told(sshd: Start, name: str) -> None:
    server = sshd()
    async with hosts_of(server, name) as mine, hosts_of(server, name) as theirs, locked(theirs, "anna@lab7 pid 4711"):
        with pytest.raises(NodeError) as caught:
            async with locked(mine, "bob"):
                pass
        since = r"since \d\d:\d\d:\d\d\. Wait for it to end \(--wait 30m\), or end it"
        assert re.match(rf"{name}: in use by anna@lab7 pid 4711, {since}", str(caught.value))
    async with hosts_of(server, name) as mine, locked(mine, "bob"):
        pass


async def test_a_holder_can_not_write_what_it_likes_into_a_message(sshd: Start, name: str) -> None:
    server = sshd()
    async with hosts_of(server, name) as mine, hosts_of(server, name) as theirs, locked(theirs, "a'b\n\x1b[2J; rm ü:x"):
        with pytest.raises(NodeError, match=re.escape("in use by a'b??[2J; rm ?:x, since")):
            async with locked(mine, "bob"):
                pass


async def test_all_or_none(sshd: Start, name: str) -> None:
    server, names = sshd(), (f"{name}a", f"{name}b", f"{name}c")
    async with hosts_of(server, *names) as hosts:
        async with locked({names[1]: hosts[names[1]]}, "anna"):
            with pytest.raises(NodeError, match=f"{names[1]}: in use by anna"):
                async with locked(hosts, "bob"):
                    pass
            assert [link.name.endswith(names[1]) for link in links(name)] == [True]
            async with locked({names[0]: hosts[names[0]]}, "carl"):
                with pytest.raises(RigError) as caught:
                    async with locked(hosts, "bob"):
                        pass
        assert [line[: len(name) + 13] for line in str(caught.value).splitlines()] == [
            f"{names[0]}: in use by c"[: len(name) + 13],
            f"{names[1]}: in use by a"[: len(name) + 13],
        ]


async def test_nodes_that_share_a_host_have_locks_of_their_own(sshd: Start, name: str) -> None:
    server = sshd()
    async with hosts_of(server, f"{name}a") as a, hosts_of(server, f"{name}b") as b, locked(a, "x"), locked(b, "y"):
        assert len(links(name)) == 2


async def test_a_dead_holders_lock_is_taken_over(sshd: Start, name: str) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna"):
            os.kill(holder_pid(name), 9)
            async with locked(hosts, "bob"):
                assert "bob" in str(links(name)[0].readlink())
        assert links(name) == []


async def test_a_number_used_again_by_another_process_is_no_holder(sshd: Start, name: str) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna"):
            (link,) = links(name)
            pid, start, boot, who = str(link.readlink()).split(":", 3)
        for stale in (f"{pid}:{start}:{boot}:{who}", f"1:1:{boot}:{who}", f"1:{start}:00000000:{who}"):
            link.symlink_to(stale)
            async with locked(hosts, "bob"):
                assert "bob" in str(link.readlink())


@pytest.mark.parametrize(
    "garbage", ["", "x", "-1:{start}:{boot}:1 x", "²:{start}:{boot}:1 x", "1:1:{boot}", "0:0:{boot}:0 x", "9" * 4000]
)
async def test_a_link_that_no_rigctl_made_is_no_holder(sshd: Start, name: str, garbage: str) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna"):
            (link,) = links(name)
            _, start, boot, _ = str(link.readlink()).split(":", 3)
        link.symlink_to(garbage.format(start=start, boot=boot) or "nothing")
        async with locked(hosts, "bob"):
            assert "bob" in str(link.readlink())
        assert links(name) == []


@pytest.mark.parametrize("told", ["²²² mallory", "9" * 300 + " mallory", "", "-5 mallory", "\x1b[2J"])
async def test_a_live_link_with_an_absurd_time_is_told_in_one_line(sshd: Start, name: str, told: str) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna"):
            (link,) = links(name)
            target = str(link.readlink()).split(":", 3)
            forged = LOCKS.with_name(f"{LOCKS.name}x-{name}") / link.name
            forged.parent.mkdir()
        try:
            pid = os.getpid()
            started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
            forged.symlink_to(f"{pid}:{started}:{target[2]}:{told}")
            with pytest.raises(NodeError) as caught:
                async with locked(hosts, "bob"):
                    pass
            expected = f"{name}: in use by an unknown run. Wait for it to end (--wait 30m), or end it"
            assert str(caught.value) == f"{expected} (on the node: process {pid}, its link in {forged.parent})"
        finally:
            shutil.rmtree(forged.parent)
        assert links(name) == []


async def test_the_lock_of_another_user_is_respected_and_can_not_be_removed(sshd: Start, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes a second user")
    server = sshd(sudoers="root ALL=(ALL) ALL\n")  # with a user beside root
    root = replace(server.node(name), user="root")
    authorized = server.inside("/mnt/rigguest/authorized_keys")
    authorized.chmod(0o644)
    async with hosts_of(server, name) as guests, connected(rig_of(root), [name]) as roots:
        async with locked(roots, "root's run"):
            (link,) = links(name)
            assert (await guests[name].run(f"rm -f {link}")).exit_code != 0
            with pytest.raises(NodeError, match="in use by root's run"):
                async with locked(guests, "a guest"):
                    pass
        async with locked(guests, "a guest"):
            with pytest.raises(NodeError, match="in use by a guest"):
                async with locked(roots, "root's run"):
                    pass
            os.kill(holder_pid_of(name, GUEST_ID), 9)
            async with locked(roots, "root's run"):
                pass  # a dead holder's link is passed over: it need not be removed


async def test_a_folder_with_our_name_that_is_another_users_is_passed_over(sshd: Start, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes a second user")
    squatted = Path(f"/tmp/rigctl-locks-{GUEST_ID}")
    squatted.mkdir(mode=0o777)
    try:
        async with hosts_of(sshd(sudoers="root ALL=(ALL) ALL\n"), name) as guests, locked(guests, "a guest"):
            (link,) = Path("/tmp").glob(f"rigctl-locks-{GUEST_ID}*/*-{name}")
            assert link.parent != squatted
            assert (link.parent.stat().st_uid, link.parent.stat().st_mode & 0o777) == (GUEST_ID, 0o755)
    finally:
        squatted.rmdir()


async def test_a_user_who_can_not_write_to_tmp_and_others_see_each_other(
    sshd: Start, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes a second user")
    server = sshd(sudoers="root ALL=(ALL) ALL\n")
    server.inside("/mnt/rigguest/authorized_keys").chmod(0o644)
    with_locks = sshd()
    read_only = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp"
    subprocess.run(["nsenter", "-t", str(server.process.pid), "-m", "sh", "-c", read_only], check=True, timeout=10)
    root = replace(with_locks.node(name), user="root")
    async with hosts_of(server, name) as guests, connected(rig_of(root), [name]) as roots:
        async with locked(guests, "a guest"):
            assert "the lock is in /var/tmp/" in caplog.text
            with pytest.raises(NodeError, match="in use by a guest"):
                async with locked(roots, "root's run"):
                    pass
        async with locked(roots, "root's run"):
            with pytest.raises(NodeError, match="in use by root's run"):
                async with locked(guests, "a guest"):
                    pass


async def test_a_link_to_a_process_of_another_user_is_no_holder(sshd: Start, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes a second user")
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna"):
            (link,) = links(name)
            boot = str(link.readlink()).split(":")[2]
        started = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
        forged = LOCKS.with_name(f"rigctl-locks-{GUEST_ID}-{name}")
        forged.mkdir()
        try:
            (forged / link.name).symlink_to(f"1:{started}:{boot}:1 mallory")
            os.chown(forged, GUEST_ID, GUEST_ID)
            async with locked(hosts, "bob"):
                pass
        finally:
            shutil.rmtree(forged)


async def test_any_number_of_dead_tickets_of_others_keeps_nobody_out_and_their_folder_is_named(
    sshd: Start, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with hosts_of(sshd(), name) as hosts:
        async with locked(hosts, "anna"):
            (link,) = links(name)
            boot = str(link.readlink()).split(":")[2]
        forged = LOCKS.with_name(f"{LOCKS.name}-{name}")
        forged.mkdir()
        try:
            for number in range(1, 20_001):
                (forged / f"{link.name}.queue.{number}").symlink_to(f"999999:1:{boot}:1 dead")
            async with locked(hosts, "bob"):
                assert f"{forged} holds more than 50" in caplog.text
        finally:
            shutil.rmtree(forged)


async def test_a_holder_that_is_terminated_takes_its_link_away(sshd: Start, name: str) -> None:
    async with hosts_of(sshd(), name) as hosts, locked(hosts, "anna"):
        assert len(links(name)) == 1
        os.kill(holder_pid(name), signal.SIGTERM)
        async with asyncio.timeout(20):
            while links(name):
                await asyncio.sleep(0.02)


def holder_pid_of(name: str, uid: int) -> int:
    (link,) = Path(f"/tmp/rigctl-locks-{uid}").glob(f"*-{name}")
    return int(str(link.readlink()).split(":")[0])


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.timeout(120 + 4 * TIMES)
async def test_of_many_who_find_a_dead_holder_one_takes_over(sshd: Start, name: str) -> None:
    async with hosts_of(sshd("MaxSessions 50"), name) as hosts:
        async with locked(hosts, "anna"):
            (link,) = links(name)
        for _ in range(TIMES):
            link.symlink_to("1:1:00000000:0 dead")
            won: list[int] = []
            everybody_tried = asyncio.Barrier(8)

            async def contend(number: int, won: list[int] = won, tried: asyncio.Barrier = everybody_tried) -> None:
                try:
                    async with locked(hosts, str(number)):
                        won.append(number)
                        await tried.wait()
                except NodeError as error:
                    assert "in use by" in str(error)
                    await tried.wait()

            async with asyncio.timeout(20), asyncio.TaskGroup() as group:
                for number in range(8):
                    group.create_task(contend(number))
            assert len(won) == 1
            assert links(name) == []


async def test_a_controller_that_is_killed_lets_go(sshd: Start, name: str) -> None:
    server = sshd()
    command = [sys.executable, "-c", HOLD, name, str(server.port), str(server.key), str(server.known_hosts)]
    with running(command, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert await asyncio.to_thread(controller.stdout.readline) == b"held\n"
        async with hosts_of(server, name) as hosts:
            with pytest.raises(NodeError, match="in use by anna@lab7 pid 4711"):
                async with locked(hosts, "bob"):
                    pass
            controller.kill()
            controller.wait(DEADLINE_S)
            assert await free_within(hosts, 20) < 15


@pytest.mark.parametrize("with_bash", [True, False])
async def test_a_holder_that_hears_nothing_lets_go(
    sshd: Start, name: str, monkeypatch: pytest.MonkeyPatch, with_bash: bool, tmp_path: Path
) -> None:
    monkeypatch.setattr(lock, "SILENCE_S", 2)
    options = [] if with_bash else [f'SetEnv "PATH={_without_bash(tmp_path)}"']
    server = sshd(*options)
    async with hosts_of(server, name) as mine, hosts_of(server, name) as theirs:
        monkeypatch.setattr(lock, "SIGN_OF_LIFE_S", 0.2)
        async with locked(theirs, "anna"):
            await asyncio.sleep(2.6)
            assert len(links(name)) == 1, "a sign of life keeps it"
        monkeypatch.setattr(lock, "SIGN_OF_LIFE_S", 60)
        async with locked(theirs, "anna"):
            if with_bash:
                assert 0.5 < await free_within(mine, 20) < 15
            else:  # dash can not limit a read: there the end of the connection must do
                await asyncio.sleep(2.6)
                assert len(links(name)) == 1
        assert links(name) == []


def _without_bash(tmp_path: Path) -> Path:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool) or "")
    return tools


async def test_a_folder_that_can_not_be_written_is_told(
    sshd: Start, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_SCRIPT", re.sub(r"for base in .*?;", "for base in /proc;", lock._SCRIPT))
    async with hosts_of(sshd(), name) as hosts:
        with pytest.raises(NodeError, match=f"{name}: could not be locked: no folder for a lock"):
            async with locked(hosts, "bob"):
                pass

"""Pushing an agent to a real node, and running it there."""

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openssh import Start
from processes import eventually_async, mounted

from rigctl.base.errors import NodeError
from rigctl.remote.deploy import agent_on, deploy
from rigctl.remote.host import Host, connected

pytestmark = pytest.mark.usefixtures("home")
MACHINE = {"aarch64": "aarch64", "armv7l": "armv7", "armv6l": "armv6"}.get(os.uname().machine, os.uname().machine)
TOOLS = ("sh", "tr", "uname", "mkdir", "cat", "chmod", "mv", "rm", "id", "touch", "find")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    agents = tmp_path / "agents"
    agents.mkdir()
    shutil.copy(shutil.which("true") or "/bin/true", agents / f"rigctl-agent-{MACHINE}")
    return agents


@asynccontextmanager
async def host_with(sshd: Start, **environment: object) -> AsyncIterator[Host]:
    settings = " ".join(f'"{name}={value}"' for name, value in environment.items())
    async with connected(sshd(f"SetEnv {settings}").node()) as host:
        yield host


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_the_agent_is_pushed_once_under_its_own_digest(sshd: Start, folder: Path, tmp_path: Path) -> None:
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache") as host:
        deployed = await deploy(host, folder)
        path = Path(deployed.path)
        # A home may be shared by hosts, a journal of host settings must not be.
        assert path == tmp_path / "cache/rigctl" / os.uname().nodename / f"agent-{deployed.sha256}"
        assert digest(path) == deployed.sha256
        assert path.stat().st_mode & 0o777 == 0o700
        inode = path.stat().st_ino
        assert await deploy(host, folder) == deployed
        assert path.stat().st_ino == inode, "it was there: nothing was written"
        assert names(path.parent) == [path.name]


async def test_an_agent_that_was_damaged_on_the_node_is_never_started(sshd: Start, tmp_path: Path) -> None:
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache") as host:
        path = Path((await deploy(host)).path)
        whole = path.read_bytes()
        path.write_bytes(b"#!/bin/sh\ntouch " + bytes(tmp_path / "ran"))
        async with agent_on(host) as agent:
            assert (await agent.clock()).node_ns > 0
            assert Path(f"/proc/{agent.hello.pid}/exe").resolve() == path
        assert path.read_bytes() == whole
        assert not (tmp_path / "ran").exists()


async def test_a_node_without_a_digest_tool_is_verified_from_here(sshd: Start, folder: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool) or "")
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache", PATH=tools) as host:
        assert (await host.run("command -v sha256sum")).exit_code != 0
        deployed = await deploy(host, folder)
        Path(deployed.path).write_bytes(b"damaged")
        await deploy(host, folder)
        assert digest(Path(deployed.path)) == deployed.sha256


async def test_runs_that_deploy_at_once_do_not_disturb_each_other(sshd: Start, folder: Path, tmp_path: Path) -> None:
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache") as host:
        first, *others = await asyncio.gather(*(deploy(host, folder) for _ in range(6)))
        assert others == [first] * 5
        assert digest(Path(first.path)) == first.sha256
        assert names(Path(first.path).parent) == [Path(first.path).name]


async def test_agents_that_nobody_uses_any_more_go(sshd: Start, folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache/rigctl" / os.uname().nodename
    cache.mkdir(parents=True)
    now = time.time()
    for name, age_days in (("agent-old", 9), ("agent-used", 2), (".new-cut-off", 3), ("precious", 99)):
        (cache / name).write_text("")
        os.utime(cache / name, (now - age_days * 86400,) * 2)
    async with host_with(sshd, XDG_CACHE_HOME=tmp_path / "cache") as host:
        deployed = await deploy(host, folder)
    assert names(cache) == sorted([Path(deployed.path).name, "agent-used", "precious"])


@pytest.mark.parametrize("unusable", ["noexec", "ro", "a file"])
async def test_an_unusable_home_is_passed_over(sshd: Start, folder: Path, tmp_path: Path, unusable: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "spare").mkdir()
    reasons = {"noexec": "Permission denied", "ro": "Read-only file system", "a file": "Not a directory"}
    with mounted(tmp_path / "mount", "ro" if unusable == "ro" else "noexec") as mount:
        cache = tmp_path / "file" if unusable == "a file" else mount
        async with host_with(sshd, XDG_CACHE_HOME=cache, TMPDIR=tmp_path / "spare") as host:
            deployed = await deploy(host, folder)
            assert deployed.path.startswith(f"{tmp_path}/spare/rigctl-{os.getuid()}/agent-")
            assert (await host.run(deployed.path)).exit_code == 0
            refusal = f"{cache}/rigctl/{os.uname().nodename} can't be used ({reasons[unusable]})"
            assert refusal in (deployed.note or "")


async def test_where_neither_home_nor_tmp_may_run_programs_var_tmp_does(sshd: Start, tmp_path: Path) -> None:
    with mounted(tmp_path / "mount", "noexec") as mount:
        async with host_with(sshd, XDG_CACHE_HOME=mount, TMPDIR=mount) as host, agent_on(host) as agent:
            place = Path(f"/proc/{agent.hello.pid}/exe").resolve().parent
            assert place == Path(f"/var/tmp/rigctl-{os.getuid()}")
            assert f"the agent was kept in {place} and removed at its end" in (agent.note or "")
        await eventually_async(lambda: not place.exists())


async def test_an_agent_beside_a_full_home_is_told_of_and_leaves_nothing(sshd: Start, tmp_path: Path) -> None:
    (tmp_path / "spare").mkdir()
    with mounted(tmp_path / "mount", "size=64k") as mount:
        (mount / "rigctl" / os.uname().nodename).mkdir(parents=True)
        with pytest.raises(OSError, match="No space left"):
            (mount / "filling").write_bytes(bytes(200_000))
        async with host_with(sshd, XDG_CACHE_HOME=mount, TMPDIR=tmp_path / "spare") as host:
            async with agent_on(host) as agent:
                note = agent.note or ""
                assert note.startswith(f"the agent was kept in {tmp_path}/spare/rigctl-")
                assert "No space left on device" in note or "I/O error" in note
                assert names(tmp_path / "spare") != []
            await eventually_async(lambda: not names(tmp_path / "spare"))


async def test_a_full_disk_is_told(sshd: Start, folder: Path, tmp_path: Path) -> None:
    (folder / f"rigctl-agent-{MACHINE}").write_bytes(os.urandom(200_000))
    with mounted(tmp_path / "mount", "size=64k") as mount:
        async with host_with(sshd, XDG_CACHE_HOME=mount) as host:
            with pytest.raises(NodeError, match=rf"pi1: could not put the agent into {mount}/.*: .*No space left"):
                await deploy(host, folder)
            assert names(mount / "rigctl" / os.uname().nodename) == []

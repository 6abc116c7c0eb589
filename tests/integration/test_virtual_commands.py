"""Commands over the embedded SSH server: exit codes, streams, and their end when the client goes."""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import pytest
from virtual_rigs import kept_up, login, output

from rigctl.rig.inventory import Rig


@pytest.fixture(scope="module", params=["namespaces", "loopback"])
def ready(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with kept_up(tmp_path_factory.mktemp("rig"), "a", "b", virtual=request.param, links="{mtu: 1500}") as started:
        yield started


async def test_commands_have_their_input_output_exit_code_and_signal(ready: Rig) -> None:
    async with login(ready, "a") as connection:
        done = await connection.run("echo out; echo err >&2; exit 42")
        assert (done.stdout, done.stderr, done.exit_status) == ("out\n", "err\n", 42)
        assert (await connection.run("no-such-command")).exit_status == 127
        done = await connection.run("kill -SEGV $$")
        assert done.exit_signal is not None
        assert done.exit_signal[0] == "SEGV"
        assert (await connection.run("wc -c", input="12345")).stdout == "5\n"
        assert (await connection.run("exec <&-; sleep 0.1; echo done", input="x" * 10**6)).stdout == "done\n"
        assert (await connection.run(None, input="echo $((6*7))\n")).stdout == "42\n"
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process(subsystem="sftp")
        data = os.urandom(8 * 1024 * 1024)
        done = await connection.run("cat", input=data, encoding=None)
        assert isinstance(done.stdout, bytes)
        assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


async def test_many_commands_run_at_once_on_nodes_with_homes_of_their_own(ready: Rig) -> None:
    async with login(ready, "b") as connection:
        every = await asyncio.gather(*(connection.run(f"sleep 0.1; echo {number}") for number in range(9)))
        assert [one.stdout for one in every] == [f"{number}\n" for number in range(9)]
    await output(ready, "a", "echo mine > ~/file")
    assert await output(ready, "b", "ls ~; echo $RIGCTL_NODE") == "b\n"


async def test_a_lost_client_means_end_of_file_and_a_background_job_stays(ready: Rig, tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with login(ready, "a") as connection:
        process = await connection.create_process(f"echo up; cat >/dev/null; sleep 0.3; echo eof > {told}")
        assert await process.stdout.readline() == "up\n"
        connection.abort()
    await until(told.exists, within_s=10)
    mark = tmp_path / "later"
    await output(ready, "a", f"(sleep 0.5; touch {mark}) >/dev/null 2>&1 </dev/null &")
    await until(mark.exists, within_s=10)


async def test_what_ignores_the_end_of_its_input_is_killed_with_its_children(ready: Rig, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    script = f"trap '' TERM HUP; echo up; while :; do date +%s%N > {alive}; sleep 0.05; done"
    async with login(ready, "a") as connection:
        process = await connection.create_process(f"sh -c {script!r} & wait")
        assert await process.stdout.readline() == "up\n"
        connection.abort()

    def quiet() -> bool:
        # Written within the last half second: still there.
        return alive.exists() and time.time() - alive.stat().st_mtime > 0.5

    await until(quiet, within_s=10)


async def until(true: Callable[[], bool], within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while not true():
            await asyncio.sleep(0.02)

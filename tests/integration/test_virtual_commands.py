"""Commands over the embedded SSH server: exit codes, streams, and their end when the client goes."""

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest
from processes import all_commands, eventually_async
from virtual_rigs import kept_up, login, output, rig

from rigctl.rig.inventory import Rig


@pytest.fixture(scope="module", params=["namespaces", "loopback"])
def ready(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    made = rig(tmp_path_factory.mktemp("rig"), "a", "b", virtual=request.param, links="{mtu: 1500}")
    with kept_up(made) as started:
        yield started


async def test_commands_have_their_input_output_exit_code_and_signal(ready: Rig) -> None:
    async with login(ready, "a") as connection:
        done = await connection.run("echo out; echo err >&2; exit 42")
        assert (done.stdout, done.stderr, done.exit_status) == ("out\n", "err\n", 42)
        assert (await connection.run("no-such-command")).exit_status == 127
        done = await connection.run("kill -SEGV $$")
        assert done.exit_signal and done.exit_signal[0] == "SEGV"
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
    told, go, mark = tmp_path / "told", tmp_path / "go", tmp_path / "later"
    async with login(ready, "a") as connection:
        # In a session of its own: the command is killed some seconds after the client has gone.
        reading = f"echo up; cat >/dev/null; echo eof > {told}"
        process = await connection.create_process(f"setsid --wait sh -c '{reading}'")
        assert await process.stdout.readline() == "up\n"
        connection.abort()
    await eventually_async(told.exists)
    waiting = f"until [ -e {go} ]; do sleep 0.02; done; touch {mark}"
    await output(ready, "a", f"({waiting}) >/dev/null 2>&1 </dev/null &")
    go.touch()
    await eventually_async(mark.exists)


async def test_what_ignores_the_end_of_its_input_is_killed_with_its_children(ready: Rig, tmp_path: Path) -> None:
    def alive() -> list[int]:
        return [pid for pid, words in all_commands() if str(tmp_path) in words]

    script = f"trap '' TERM HUP; echo up; while :; do sleep 0.05; : {tmp_path}; done"
    async with login(ready, "a") as connection:
        process = await connection.create_process(f"sh -c {script!r} & wait")
        assert await process.stdout.readline() == "up\n"
        assert alive()
        connection.abort()
    await eventually_async(lambda: not alive())

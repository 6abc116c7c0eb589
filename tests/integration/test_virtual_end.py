"""Whatever kills whichever part of a virtual rig, nothing of it stays: no process, interface, namespace or folder."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import eventually
from virtual_rigs import login, machine, output, rig, survivors

from rigctl.base.processes import Process
from rigctl.virtual.provide import down, find, layout_of, provided, start, up
from rigctl.virtual.state import sweep

pytestmark = pytest.mark.usefixtures("runtime_folder")


@pytest.fixture(autouse=True)
def machine_unchanged() -> Iterator[None]:
    before = machine()
    yield
    assert machine() == before


@pytest.mark.parametrize("part", ["holder", "starter"])
@pytest.mark.parametrize("kind", ["namespaces", "loopback"])
async def test_kill_9_of_holder_or_starter_leaves_nothing(part: str, kind: str, tmp_path: Path) -> None:
    tested = rig(tmp_path, virtual=kind, links="{mtu: 1500}")
    ready, state, _ = await up(tested)
    async with login(ready, "a") as connection:
        await connection.create_process("sleep 1000 & sleep 1000 | sleep 1000")
        victim: Process = getattr(state, part)
        os.kill(victim.pid, signal.SIGKILL)
        if kind == "namespaces":
            # The kernel's doing, without a next command.
            eventually(lambda: survivors(state.folder.name) == [])
        eventually(lambda: not state.up)
    assert sweep() == [state.folder.name]
    eventually(lambda: survivors(state.folder.name) == [])
    assert find(tested) == []
    assert not state.folder.exists()


async def test_a_rig_that_stays_holds_nothing_open_of_what_its_starter_was_given(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)  # as flock(1) passes its lock on
    inventory = rig(tmp_path)
    await up(inventory)
    try:
        os.close(writer)
        os.set_blocking(reader, False)
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)
        await down(inventory)


async def test_a_starter_that_dies_before_it_wrote_the_state_leaves_no_rig(tmp_path: Path) -> None:
    started = await start(layout_of(rig(tmp_path)), source=None, stay=True)
    assert started.state.up
    started.lifeline.close()  # what the kernel does for a killed starter
    eventually(lambda: not started.state.up)
    assert sweep() == [started.state.folder.name]


async def test_another_definition_is_another_rig_and_down_ends_both(tmp_path: Path) -> None:
    await up(rig(tmp_path))
    changed = rig(tmp_path, links="{rate: 100M, mtu: 1500}")
    async with provided(changed) as ready:
        assert "rate 98439" in await output(ready, "a", "tc qdisc show dev eth0")
    await up(changed)
    assert len(await down(changed)) == 2

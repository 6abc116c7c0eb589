"""Two controllers that write to one store at once lose nothing, and neither waits for ever."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import builders
import pytest
import writes
from processes import DEADLINE_S, running

from rigctl.base.errors import RigError
from rigctl.records import RunStatus
from rigctl.store import open_store
from rigctl.store.history import writing

RUNS = 3
NAMES = ("one", "other")
ROOT = Path(__file__).parents[3]


def test_two_controllers_that_write_at_once_to_a_new_store_lose_nothing(address: str) -> None:
    with ExitStack() as stack:
        command = [sys.executable, str(ROOT / "tests/support/writes.py"), address]
        how: dict[str, Any] = {"env": {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/support'}"}}
        how |= {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
        both = [stack.enter_context(running([*command, name, str(RUNS)], **how)) for name in NAMES]
        for process in both:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in both:
            _, errors = process.communicate(timeout=DEADLINE_S)
            assert (process.returncode, errors) == (0, b"")
    cells = [builders.cell(number) for number in range(1, writes.CELLS + 1)]
    with open_store(address, create=False) as store:
        infos = [store.run(run) for run in store.run_ids()]
        every = [(name, str(number)) for name in NAMES for number in range(RUNS)]
        assert sorted((info.plan.title, info.tags["number"]) for info in infos) == every
        for info in infos:
            assert info.status is RunStatus.COMPLETE
            assert info.tags["by"] == info.plan.title == info.facts["pi1"]["by"]
            assert store.repetitions(info.run) == [builders.repetition(cell) for cell in cells]
        assert len(store.history.accepted()) == len(NAMES) * RUNS
        assert [night.due_at for night in store.history.nights()] == [float(number) for number in range(RUNS)]


def test_a_writer_that_waits_too_long_says_who_holds_the_store(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.store.open._BUSY_MS", 50)
    monkeypatch.setattr("rigctl.store.postgresql._WAIT_MS", 50)
    with open_store(address) as one, open_store(address) as other:
        run = one.begin(builders.plan(), {}, {}, 1.0)
        with writing(one._engine), pytest.raises(RigError, match=r"is locked by another"):
            other.add(run, builders.failed(builders.cell()))
        other.add(run, builders.failed(builders.cell()))
        assert len(one.repetitions(run)) == 1

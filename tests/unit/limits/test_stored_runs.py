"""The limits of stored runs of each kind: what is not read may leave a limit unknown, but never changes it."""

from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from pages import GOLDEN, STORED

from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import CellSummary, summaries
from rigctl.store import Store, open_store


def _cells(store: Store, *, samples: bool) -> tuple[CellSummary, ...]:
    (run,) = store.run_ids()
    return summaries(condensed_in_memory(store.run(run), store.repetitions(run, samples=samples)))


@pytest.mark.parametrize("name", STORED)
def test_a_run_read_without_its_samples_has_the_same_limits_or_unknown_ones(name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.db"
    copy(GOLDEN / f"{name}.rigctl", file)
    with open_store(str(file)) as store:
        whole, blind = (_cells(store, samples=samples) for samples in (True, False))
    known: list[Any] = [(cell, *cell.streams) for cell in whole]
    for every, some in zip(known, blind, strict=True):
        assert some.limit in (every[0].limit, "unknown"), every[0].cell.number
        for stream, partly in zip(every[1:], some.streams, strict=True):
            assert partly.limit in (stream.limit, "unknown"), str(stream)

"""What `import rigctl` gives: few names, made when they are used."""

from pathlib import Path

import builders
import pytest

import rigctl
from rigctl.store import open_store

_LOADED = [getattr(rigctl, name) for name in rigctl.__all__]  # here: asyncssh starts ldconfig when it is imported


def test_there_are_at_most_twelve_names_each_with_a_docstring_and_on_the_page() -> None:
    assert len(rigctl.__all__) <= 12
    assert all(getattr(rigctl, name).__doc__ for name in rigctl.__all__)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text()
    assert all(f"`{name}" in page or f" `{name}`" in page for name in rigctl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'store_it'"):
        rigctl.store_it  # noqa: B018


def test_a_stored_run_is_read_with_its_frames_and_verdicts(tmp_path: Path) -> None:
    info, repetitions = builders.gigablox()
    with open_store(str(tmp_path / "runs.db")) as store:
        run = builders.put(store, info, repetitions)
    assert rigctl.runs(tmp_path / "runs.db") == [run]
    opened = rigctl.open_run(run[:12], tmp_path / "runs.db")
    assert (opened.id, opened.as_expected) == (run, True)
    assert opened.frames.pairs["goodput_mbps"].round().tolist()[:2] == [911.0, 941.0]
    assert opened.report.run == run
    opened.write_page(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_mistakes_are_its_own_errors(tmp_path: Path) -> None:
    with pytest.raises(rigctl.InputError, match="unknown unit"):
        rigctl.load("gigablox", sets=["window=64Q"])
    with pytest.raises(rigctl.RigctlError):
        rigctl.open_run(store=tmp_path / "none.db")


async def test_a_run_inside_an_event_loop_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rigctl.InputError, match="without a running event loop"):
        rigctl.run(rigctl.load("gigablox"), tmp_path / "runs.db")
    assert not (tmp_path / "runs.db").exists()

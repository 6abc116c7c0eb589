"""Fixture that runs the command line for the tests in this folder."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from in_process import Rigctl


@pytest.fixture
def rigctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Rigctl]:
    """Return a function that runs `rigctl` in the folder of the test."""
    yield Rigctl(monkeypatch, capsys, tmp_path)
    logging.getLogger("rigctl").setLevel(logging.NOTSET)  # -v

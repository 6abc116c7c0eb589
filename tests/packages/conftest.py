"""Fixtures for the wheel and the wheelhouse that `make packages` has built in dist/."""

import os
import tarfile
from pathlib import Path

import pytest
from packaged import ROOT


@pytest.fixture(scope="session")
def wheel() -> Path:
    (found,) = (ROOT / "dist").glob("rigctl-*.whl")
    return found


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the archive of `make wheelhouse`, and return its folder."""
    (archive,) = (ROOT / "dist").glob(f"rigctl-*-wheelhouse-{os.uname().machine}.tar")
    folder = tmp_path_factory.mktemp("house")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / archive.stem
